// SPDX-License-Identifier: BSD-2-Clause
// The UDP side of a datagram rsocket: how peers learn each other's queue pairs, with the first datagrams along.
#include "plugins/rdmacm/rsocket_datagram.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

union control {
    struct cmsghdr align;
    uint8_t bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

// The address of ours in what the kernel says about a datagram.
static bool get_local(struct msghdr *message, struct alb_addr *local)
{
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one)) {
        if (one->cmsg_level == IPPROTO_IP && one->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            uint8_t ipv4[4];
            memcpy(&info, CMSG_DATA(one), sizeof(info));
            memcpy(ipv4, &info.ipi_addr, sizeof(ipv4));
            *local = alb_addr_from_ipv4(ipv4);
            return true;
        }
        if (one->cmsg_level == IPPROTO_IPV6 && one->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(one), sizeof(info));
            memcpy(local->bytes, &info.ipi6_addr, sizeof(local->bytes));
            return true;
        }
    }
    return false;
}

// Asks the kernel to send from an address of ours.
static void set_local(struct msghdr *message, union control *control, int domain, const struct alb_addr *local)
{
    message->msg_control = control;
    message->msg_controllen = sizeof(*control);
    struct cmsghdr *one = CMSG_FIRSTHDR(message);
    if (domain == AF_INET) {
        struct in_pktinfo info = {0};
        memcpy(&info.ipi_spec_dst, local->bytes + 12, 4);
        *one = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(info)), .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO};
        memcpy(CMSG_DATA(one), &info, sizeof(info));
        message->msg_controllen = CMSG_SPACE(sizeof(info));
        return;
    }
    struct in6_pktinfo info = {0};
    memcpy(&info.ipi6_addr, local->bytes, sizeof(local->bytes));
    *one = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(info)), .cmsg_level = IPPROTO_IPV6, .cmsg_type = IPV6_PKTINFO};
    memcpy(CMSG_DATA(one), &info, sizeof(info));
    message->msg_controllen = CMSG_SPACE(sizeof(info));
}

int rsocket_udp_send(struct rsocket_datagram *datagram, const struct rsocket_peer *peer, enum rsocket_udp_op op,
                     struct rsocket_cursor *from)
{
    uint8_t bytes[RSOCKET_UDP_HEADER_MAX + RSOCKET_DATAGRAM_MAX];
    struct rsocket_udp_header header = {.op = op, .qpn = peer->pair->id->qp->qp_num, .source = peer->pair->local};
    struct sockaddr_storage name;
    union control control = {0};
    struct iovec iov = {.iov_base = bytes};
    struct msghdr message = {.msg_name = &name,
                             .msg_namelen = rsocket_peer_name(&datagram->rs, &peer->key, &name),
                             .msg_iov = &iov,
                             .msg_iovlen = 1};
    size_t skip = rsocket_udp_header_encode(&header, bytes), length = from ? from->left : 0;
    if (skip + length > RSOCKET_DATAGRAM_MAX)
        return EMSGSIZE;
    if (from)
        rsocket_cursor_gather(from, bytes + skip, length);
    iov.iov_len = skip + length;
    set_local(&message, &control, datagram->rs.domain, &peer->pair->local);
    return sendmsg(datagram->udp_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

static void list(struct rsocket_datagram *datagram, const struct rsocket_peer_key *key, const uint8_t *bytes,
                 size_t length)
{
    if (datagram->udp_arrivals >= datagram->rs.settings.receive_queue)
        return;
    struct rsocket_arrival *arrival = malloc(sizeof(*arrival) + length);
    if (!arrival)
        return;
    *arrival = (struct rsocket_arrival){
        .from = {key->addr, key->port}, .bytes = (uint8_t *)(arrival + 1), .length = (uint32_t)length};
    memcpy(arrival->bytes, bytes, length);
    datagram->udp_arrivals++;
    alb_list_push_back(&datagram->arrivals, &arrival->link);
}

static void take(struct rsocket_datagram *datagram, const struct rsocket_peer_key *key, const struct alb_addr *local,
                 const uint8_t *bytes, size_t length)
{
    struct rsocket_udp_header header;
    struct rsocket_peer *peer;
    size_t skip = rsocket_udp_header_decode(bytes, length, &header);
    bool is_connected_to =
        datagram->connected.port == key->port && alb_addr_equals(&datagram->connected.addr, &key->addr);
    if (skip == 0 || (datagram->is_connected && !is_connected_to) || rsocket_peer_get(datagram, key, local, &peer))
        return;
    rsocket_peer_learn(peer, header.qpn);
    if (header.op != RSOCKET_UDP_DATA)
        return;
    rsocket_udp_send(datagram, peer, RSOCKET_UDP_CONTROL, NULL); // if it is lost, the next datagram asks again
    list(datagram, key, bytes + skip, length - skip);
}

bool rsocket_udp_receive(struct rsocket_datagram *datagram)
{
    uint8_t bytes[RSOCKET_UDP_HEADER_MAX + RSOCKET_DATAGRAM_MAX];
    struct sockaddr_storage name;
    union control control;
    struct iovec iov = {bytes, sizeof(bytes)};
    struct msghdr message = {.msg_name = &name,
                             .msg_namelen = sizeof(name),
                             .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t length = recvmsg(datagram->udp_fd, &message, MSG_DONTWAIT);
    struct rsocket_peer_key key = {0};
    struct alb_addr local;
    if (length < 0)
        return false;
    bool is_whole = !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && get_local(&message, &local);
    if (is_whole && rdmacm_get_sockaddr((struct sockaddr *)&name, &key.addr, &key.port))
        take(datagram, &key, &local, bytes, (size_t)length);
    return true;
}
