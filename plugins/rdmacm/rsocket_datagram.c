// SPDX-License-Identifier: BSD-2-Clause
// Datagram rsockets: what a program does with them.
#include "plugins/rdmacm/rsocket_datagram.h"

#include "device/descriptor.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    REFUSED = MSG_OOB | MSG_ERRQUEUE,
    SERVED_MAX = 64, // at once
};

static int key_of(const struct rsocket *rs, const struct sockaddr *address, socklen_t length,
                  struct rsocket_peer_key *key)
{
    struct sockaddr_storage copy;
    int error = rsocket_take_address(rs, address, length, &copy);
    if (error)
        return error;
    memset(key, 0, sizeof(*key));
    return rdmacm_get_sockaddr((struct sockaddr *)&copy, &key->addr, &key->port) ? 0 : EAFNOSUPPORT;
}

static uint16_t own_port(const struct rsocket_datagram *datagram)
{
    struct sockaddr_storage name = {0};
    socklen_t length = sizeof(name);
    return getsockname(datagram->udp_fd, (struct sockaddr *)&name, &length) ? 0 : rdmacm_port(&name);
}

// Peers must be able to answer.
static int ensure_port(struct rsocket_datagram *datagram)
{
    struct sockaddr_storage any = {.ss_family = (sa_family_t)datagram->rs.domain};
    socklen_t length = datagram->rs.domain == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (own_port(datagram) != 0)
        return 0;
    return bind(datagram->udp_fd, (struct sockaddr *)&any, length) ? errno : 0;
}

static int bind_datagram(struct rsocket *rs, const struct sockaddr *address, socklen_t length)
{
    return bind(rsocket_datagram(rs)->udp_fd, address, length) ? errno : 0;
}

static int connect_datagram(struct rsocket *rs, const struct sockaddr *address, socklen_t length)
{
    struct rsocket_datagram *datagram = rsocket_datagram(rs);
    struct rsocket_peer_key key;
    struct rsocket_peer *peer;
    if (address && length >= sizeof(sa_family_t) && address->sa_family == AF_UNSPEC) {
        datagram->is_connected = false;
        return 0;
    }
    int error = key_of(rs, address, length, &key);
    if (!error)
        error = ensure_port(datagram);
    if (!error)
        error = rsocket_peer_get(datagram, &key, NULL, &peer);
    if (error)
        return error;
    datagram->connected = key;
    datagram->is_connected = true;
    return 0;
}

// ---- sending and receiving

static bool can_send(struct rsocket *rs)
{
    struct rsocket_datagram *datagram = rsocket_datagram(rs);
    ALB_LIST_FOR_EACH (&datagram->pairs, node)
        if (ALB_LIST_ENTRY(node, struct rsocket_dpair, link)->free_send_count == 0)
            return false;
    return true;
}

// While no thread has waited since, the peer is still there.
static ssize_t send_now(struct rsocket_datagram *datagram, struct rsocket_cursor *from,
                        const struct rsocket_peer_key *key)
{
    struct rsocket_peer *peer;
    size_t length = from->left;
    int error = rsocket_peer_get(datagram, key, NULL, &peer);
    if (error)
        return -error;
    struct rsocket_datagram_header header = {peer->pair->local, own_port(datagram)};
    if (length + RSOCKET_UDP_HEADER_MAX > peer->pair->payload_max_bytes)
        return -EMSGSIZE;
    if (peer->ah)
        error = rsocket_dpair_send(peer->pair, peer, &header, from);
    else
        error = rsocket_udp_send(datagram, peer, RSOCKET_UDP_DATA, from);
    return error ? -error : (ssize_t)length;
}

static ssize_t send_datagram(struct rsocket *rs, struct rsocket_cursor *from, int flags, const struct sockaddr *to,
                             socklen_t length)
{
    struct rsocket_datagram *datagram = rsocket_datagram(rs);
    struct rsocket_peer_key key = datagram->connected;
    int error = 0;
    if (flags & REFUSED)
        return -EOPNOTSUPP;
    if (datagram->has_ended_out)
        return -EPIPE;
    if (to)
        error = key_of(rs, to, length, &key);
    else if (!datagram->is_connected)
        error = EDESTADDRREQ;
    if (!error)
        error = ensure_port(datagram);
    if (!error && !can_send(rs))
        error = rsocket_wait(rs, can_send, flags, ALB_TIME_NEVER);
    return error ? -error : send_now(datagram, from, &key);
}

static bool has_arrival(struct rsocket *rs)
{
    const struct rsocket_datagram *datagram = rsocket_datagram(rs);
    return !alb_list_is_empty(&datagram->arrivals) || datagram->has_ended_in;
}

static ssize_t receive(struct rsocket *rs, struct rsocket_cursor *to, int flags, struct sockaddr_storage *from)
{
    struct rsocket_datagram *datagram = rsocket_datagram(rs);
    if (flags & REFUSED)
        return -EOPNOTSUPP;
    int error = has_arrival(rs) ? 0 : rsocket_wait(rs, has_arrival, flags, ALB_TIME_NEVER);
    if (error)
        return -error;
    if (alb_list_is_empty(&datagram->arrivals))
        return 0;
    struct rsocket_arrival *arrival = ALB_LIST_ENTRY(datagram->arrivals.next, struct rsocket_arrival, link);
    size_t length = ALB_MIN(to->left, (size_t)arrival->length);
    ssize_t result = (ssize_t)(flags & MSG_TRUNC ? arrival->length : length);
    to->is_short = length < arrival->length;
    rsocket_cursor_scatter(to, arrival->bytes, length);
    const struct rsocket_peer_key source = {arrival->from.source, arrival->from.port};
    rsocket_peer_name(rs, &source, from);
    if (!(flags & MSG_PEEK)) {
        alb_list_remove(&arrival->link);
        rsocket_dpair_again(datagram, arrival);
    }
    return result;
}

// ---- waiting

static bool progress(struct rsocket *rs)
{
    struct rsocket_datagram *datagram = rsocket_datagram(rs);
    bool has_changed = false;
    ALB_LIST_FOR_EACH (&datagram->pairs, node)
        has_changed |= rsocket_dpair_progress(datagram, ALB_LIST_ENTRY(node, struct rsocket_dpair, link));
    return has_changed;
}

static bool arm(struct rsocket *rs)
{
    struct rsocket_datagram *datagram = rsocket_datagram(rs);
    ALB_LIST_FOR_EACH (&datagram->pairs, node) {
        struct rsocket_dpair *pair = ALB_LIST_ENTRY(node, struct rsocket_dpair, link);
        if (!pair->is_armed)
            pair->is_armed = ibv_req_notify_cq(pair->cq, 0) == 0;
    }
    return !progress(rs);
}

static short events(struct rsocket *rs)
{
    return (short)((has_arrival(rs) ? POLLIN | POLLRDNORM : 0) | (can_send(rs) ? POLLOUT | POLLWRNORM : 0));
}

static bool serve(struct rsocket *rs)
{
    for (int i = 0; i < SERVED_MAX && rsocket_udp_receive(rsocket_datagram(rs)); i++)
        ;
    rsocket_wake(rs);
    return true;
}

// ---- the end

static int shut_down(struct rsocket *rs, int how)
{
    struct rsocket_datagram *datagram = rsocket_datagram(rs);
    if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
        return EINVAL;
    if (!datagram->is_connected)
        return ENOTCONN;
    datagram->has_ended_in |= how != SHUT_WR;
    datagram->has_ended_out |= how != SHUT_RD;
    rsocket_wake(rs);
    return 0;
}

static bool is_all_sent(struct rsocket *rs)
{
    struct rsocket_datagram *datagram = rsocket_datagram(rs);
    ALB_LIST_FOR_EACH (&datagram->pairs, node) {
        const struct rsocket_dpair *pair = ALB_LIST_ENTRY(node, struct rsocket_dpair, link);
        if (pair->free_send_count < pair->send_count)
            return false;
    }
    return true;
}

static void close_datagram(struct rsocket *rs, alb_time until)
{
    rsocket_wait(rs, is_all_sent, RSOCKET_WAIT, until);
}

static void free_datagram(struct rsocket *rs)
{
    struct rsocket_datagram *datagram = rsocket_datagram(rs);
    struct alb_list *node;
    while ((node = alb_list_pop(&datagram->arrivals))) {
        struct rsocket_arrival *arrival = ALB_LIST_ENTRY(node, struct rsocket_arrival, link);
        if (!arrival->pair)
            free(arrival);
    }
    rsocket_peers_fini(datagram);
    while (!alb_list_is_empty(&datagram->pairs))
        rsocket_dpair_close(ALB_LIST_ENTRY(datagram->pairs.next, struct rsocket_dpair, link));
    if (datagram->udp_fd >= 0)
        close(datagram->udp_fd);
    rsocket_fini(rs);
    free(datagram);
}

// ---- names and options

static int address(struct rsocket *rs, bool is_peer, struct sockaddr_storage *out)
{
    const struct rsocket_datagram *datagram = rsocket_datagram(rs);
    socklen_t length = sizeof(*out);
    if (!is_peer)
        return getsockname(datagram->udp_fd, (struct sockaddr *)out, &length) ? errno : 0;
    if (!datagram->is_connected)
        return ENOTCONN;
    rsocket_peer_name(rs, &datagram->connected, out);
    return 0;
}

static int set_option(struct rsocket *rs, int level, int name, const void *value, socklen_t length)
{
    struct rsocket_datagram *datagram = rsocket_datagram(rs);
    if (level != SOL_RDMA)
        return setsockopt(datagram->udp_fd, level, name, value, length) ? errno : 0;
    if (!alb_list_is_empty(&datagram->pairs))
        return EINVAL;
    return name == RDMA_SQSIZE || name == RDMA_RQSIZE || name == RDMA_INLINE
               ? rsocket_set_setting(&rs->settings, name, value, length)
               : EOPNOTSUPP;
}

static int get_option(struct rsocket *rs, int level, int name, void *value, socklen_t *length)
{
    if (level == SOL_RDMA)
        return rsocket_get_setting(&rs->settings, name, value, length);
    return getsockopt(rsocket_datagram(rs)->udp_fd, level, name, value, length) ? errno : 0;
}

// ---- creating

static const struct rsocket_ops datagram_ops = {
    .bind = bind_datagram,
    .connect = connect_datagram,
    .send = send_datagram,
    .receive = receive,
    .shutdown = shut_down,
    .progress = progress,
    .arm = arm,
    .events = events,
    .serve = serve,
    .close = close_datagram,
    .address = address,
    .set_option = set_option,
    .get_option = get_option,
    .free = free_datagram,
};

static int open_udp(struct rsocket_datagram *datagram)
{
    int domain = datagram->rs.domain, on = 1;
    datagram->udp_fd = alb_descriptor_aside(socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (datagram->udp_fd < 0)
        return errno;
    int failed = domain == AF_INET ? setsockopt(datagram->udp_fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on))
                                   : setsockopt(datagram->udp_fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
    if (failed)
        return errno;
    datagram->rs.service_fd = datagram->udp_fd;
    return rsocket_service_watch(&datagram->rs);
}

int rsocket_datagram_create(int domain, struct rsocket **out)
{
    struct rsocket_datagram *datagram = calloc(1, sizeof(*datagram));
    if (!datagram)
        return ENOMEM;
    datagram->udp_fd = -1;
    alb_list_init(&datagram->pairs);
    alb_list_init(&datagram->arrivals);
    int error = rsocket_init(&datagram->rs, &datagram_ops, domain, SOCK_DGRAM);
    if (error) {
        free(datagram);
        return error;
    }
    error = rsocket_peers_init(datagram);
    if (!error)
        error = open_udp(datagram);
    if (error) {
        rsocket_put(rsocket_table_take(datagram->rs.fd));
        return error;
    }
    *out = &datagram->rs;
    return 0;
}
