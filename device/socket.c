// SPDX-License-Identifier: BSD-2-Clause
// Socket options and address forms: everything Linux wants to hear before a UDP socket can carry RoCEv2.
#include "device/socket.h"

#include "device/descriptor.h"
#include "device/syscalls.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <unistd.h>

// Asked for; the kernel gives what net.core.rmem_max allows. Half of it is payload, the rest the kernel's own overhead.
#define BUFFER_BYTES (4 << 20)

socklen_t alb_sockaddr_encode(const struct alb_endpoint *endpoint, union alb_sockaddr *sockaddr)
{
    memset(&sockaddr->storage, 0, sizeof(struct sockaddr_in6));
    if (alb_addr_is_ipv4(&endpoint->addr)) {
        struct sockaddr_in *in = (struct sockaddr_in *)sockaddr;
        in->sin_family = AF_INET;
        in->sin_port = htons(endpoint->port);
        memcpy(&in->sin_addr, endpoint->addr.bytes + 12, 4);
        return sizeof(*in);
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sockaddr;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(endpoint->port);
    memcpy(&in6->sin6_addr, endpoint->addr.bytes, 16);
    return sizeof(*in6);
}

bool alb_sockaddr_decode(const union alb_sockaddr *sockaddr, struct alb_endpoint *endpoint)
{
    if (sockaddr->any.sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)sockaddr;
        uint8_t bytes[4];
        memcpy(bytes, &in->sin_addr, 4);
        endpoint->addr = alb_addr_from_ipv4(bytes);
        endpoint->port = ntohs(in->sin_port);
        return true;
    }
    if (sockaddr->any.sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sockaddr;
        memcpy(endpoint->addr.bytes, &in6->sin6_addr, 16);
        endpoint->port = ntohs(in6->sin6_port);
        return true;
    }
    return false;
}

static bool set_option(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

static void set_ipv4_options(int fd)
{
    // DF: a lost fragment would lose the datagram, and the ICRC covers an identification that must be foreseeable.
    set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
    set_option(fd, IPPROTO_IP, IP_RECVTTL, 1);
}

static void set_ipv6_options(int fd)
{
    set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
    set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    set_option(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
    set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1); // RoCEv2 peers may leave the UDP checksum out: the ICRC protects
}

// Returns -1 with errno.
static int open_unbound(bool is_ipv4)
{
    int fd = alb_descriptor_aside(
        socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
    if (fd < 0)
        return -1;
    if (is_ipv4)
        set_ipv4_options(fd);
    else
        set_ipv6_options(fd);
    set_option(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
    set_option(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES);
    set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
    set_option(fd, IPPROTO_UDP, UDP_GRO, 1); // kernels before 5.0 do not know it: single datagrams then
    return fd;
}

// With the error that a call has just left.
static int give_up(int fd)
{
    int error = errno;
    close(fd);
    return error;
}

// absent: the host need not have the address now.
static int open_bound(struct alb_socket *sock, const struct alb_endpoint *local, bool absent)
{
    union alb_sockaddr address;
    socklen_t length = alb_sockaddr_encode(local, &address);
    bool is_ipv4 = alb_addr_is_ipv4(&local->addr);
    int fd = open_unbound(is_ipv4);
    if (fd < 0)
        return errno;
    if (absent)
        set_option(fd, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, is_ipv4 ? IP_FREEBIND : IPV6_FREEBIND, 1);
    bool gso_works = set_option(fd, IPPROTO_UDP, UDP_SEGMENT, 0); // likewise
    if (bind(fd, &address.any, length) != 0)
        return give_up(fd);
    *sock = (struct alb_socket){.fd = fd, .local = *local, .gso_works = gso_works};
    alb_socket_set_hop_limit(sock, IPDEFTTL);
    return 0;
}

int alb_socket_open(struct alb_socket *sock, const struct alb_endpoint *local)
{
    return open_bound(sock, local, false);
}

int alb_socket_open_absent(struct alb_socket *sock, const struct alb_endpoint *local)
{
    return open_bound(sock, local, true);
}

// Datagrams that arrive there have no receiver, and must not take up memory.
static void refuse_all(int fd)
{
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog program = {.len = 1, .filter = &nothing};
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

int alb_socket_open_sender(struct alb_socket *sock, const struct alb_addr *local)
{
    const struct alb_endpoint any_port = {.addr = *local};
    union alb_sockaddr name = {.any.sa_family = AF_UNSPEC};
    socklen_t length = sizeof(name.storage);
    int error = alb_socket_open(sock, &any_port);
    if (error)
        return error;
    refuse_all(sock->fd);
    sock->only_sends = true;
    if (getsockname(sock->fd, &name.any, &length) != 0)
        return give_up(sock->fd);
    return alb_sockaddr_decode(&name, &sock->local) ? 0 : EAFNOSUPPORT;
}

// IPv4 checks the interface of each membership, if asked to; IPv6 that of the socket only.
static bool join(int fd, const struct alb_addr *group, uint32_t ifindex)
{
    if (alb_addr_is_ipv4(group)) {
        struct ip_mreqn request = {.imr_ifindex = (int)ifindex};
        memcpy(&request.imr_multiaddr, group->bytes + 12, 4);
        return set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0) &&
               setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) == 0;
    }
    struct ipv6_mreq request = {.ipv6mr_interface = ifindex};
    memcpy(&request.ipv6mr_multiaddr, group->bytes, 16);
    return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof(request)) == 0;
}

int alb_socket_open_group(struct alb_socket *sock, const struct alb_endpoint *group, uint32_t ifindex)
{
    union alb_sockaddr address;
    bool is_ipv4 = alb_addr_is_ipv4(&group->addr);
    socklen_t length = alb_sockaddr_encode(group, &address);
    int fd = open_unbound(is_ipv4);
    if (fd < 0)
        return errno;
    bool is_ready = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) && // for other processes' sockets of the same group
                    (is_ipv4 || set_option(fd, SOL_SOCKET, SO_BINDTOIFINDEX, (int)ifindex)) &&
                    bind(fd, &address.any, length) == 0 && join(fd, &group->addr, ifindex);
    if (!is_ready)
        return give_up(fd);
    *sock = (struct alb_socket){.fd = fd, .local = *group, .is_group = true};
    return 0;
}

void alb_socket_set_multicast_interface(struct alb_socket *sock, uint32_t ifindex)
{
    const struct ip_mreqn request = {.imr_ifindex = (int)ifindex};
    if (alb_addr_is_ipv4(&sock->local.addr))
        setsockopt(sock->fd, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof(request));
    else
        set_option(sock->fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)ifindex);
}

void alb_socket_close(struct alb_socket *sock)
{
    if (sock->fd >= 0)
        close(sock->fd);
    sock->fd = -1;
}

void alb_socket_set_hop_limit(struct alb_socket *sock, uint8_t hop_limit)
{
    bool is_ipv4 = alb_addr_is_ipv4(&sock->local.addr);
    if (set_option(sock->fd, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, is_ipv4 ? IP_TTL : IPV6_UNICAST_HOPS, hop_limit))
        sock->hop_limit = hop_limit;
}

void alb_socket_set_traffic_class(struct alb_socket *sock, uint8_t traffic_class)
{
    bool is_ipv4 = alb_addr_is_ipv4(&sock->local.addr);
    if (set_option(sock->fd, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, is_ipv4 ? IP_TOS : IPV6_TCLASS, traffic_class))
        sock->traffic_class = traffic_class;
}

bool alb_socket_set_segment_bytes(struct alb_socket *sock, uint16_t segment_bytes)
{
    bool is_set = set_option(sock->fd, IPPROTO_UDP, UDP_SEGMENT, segment_bytes);
    if (is_set)
        sock->segment_bytes = segment_bytes;
    return is_set;
}

void alb_socket_connect(struct alb_socket *sock, const struct alb_endpoint *peer)
{
    union alb_sockaddr name;
    socklen_t length = alb_sockaddr_encode(peer, &name);
    if (alb_sys_connect(sock->fd, &name.any, length) == 0)
        sock->peer = *peer;
}

void alb_socket_set_fragmenting(struct alb_socket *sock, bool is_fragmenting)
{
    if (alb_addr_is_ipv4(&sock->local.addr)) // routers cut it if we do not
        set_option(sock->fd, IPPROTO_IP, IP_MTU_DISCOVER, is_fragmenting ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO);
    else // by the route's MTU: a smaller one that IPV6_MTU sets cuts nothing that the route carries
        set_option(sock->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, is_fragmenting ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_DO);
}

uint32_t alb_socket_receive_bytes(const struct alb_socket *sock)
{
    int bytes = 0;
    socklen_t size = sizeof(bytes);
    if (getsockopt(sock->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) != 0 || bytes < 0)
        return 0;
    return (uint32_t)bytes / 2; // Linux tells twice what may be used
}
