// SPDX-License-Identifier: BSD-2-Clause
// rsetsockopt(3), rgetsockopt(3) of streams. Some options ask for what a stream always does; they are remembered and
// given back. What it does not do is refused.
#include "plugins/rdmacm/rsocket_stream.h"
#include "wire/aeth.h"

#include <endian.h>
#include <infiniband/sa.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

enum flags_of { OF_SOCKET, OF_TCP, OF_IPV6 };

enum {
    SEGMENT_DEFAULT_BYTES = 1024, // before a path is known
    KEEPALIVE_IDLE_S = 7200,
    BUFFER_MIN_BYTES = 2048,
    BUFFER_MAX_BYTES = 1 << 29, // twice that is an int, too
};

static int remember(struct rsocket *rs, enum flags_of of, int name, const void *value, socklen_t length)
{
    int number, error = rsocket_option_int(value, length, &number);
    if (error)
        return error;
    if (number)
        rs->flags_on[of] |= 1ull << name;
    else
        rs->flags_on[of] &= ~(1ull << name);
    return 0;
}

static int give_int(int number, void *value, socklen_t *length)
{
    return rsocket_option_give(&number, sizeof(number), value, length);
}

static int recall(const struct rsocket *rs, enum flags_of of, int name, void *value, socklen_t *length)
{
    return give_int((rs->flags_on[of] >> name & 1) != 0, value, length);
}

// As with sockets, the buffer is twice what is asked for; one that is in use stays.
static int set_buffer(const struct rsocket_stream *stream, uint32_t *bytes, const void *value, socklen_t length)
{
    int number, error = rsocket_option_int(value, length, &number);
    if (error)
        return error;
    if (!stream->cq)
        *bytes = (uint32_t)ALB_MIN(ALB_MAX(number, BUFFER_MIN_BYTES), BUFFER_MAX_BYTES) * 2;
    return 0;
}

static int set_linger(struct rsocket *rs, const void *value, socklen_t length)
{
    if (length < sizeof(rs->linger))
        return EINVAL;
    memcpy(&rs->linger, value, sizeof(rs->linger));
    return 0;
}

static int set_one_family(struct rsocket_stream *stream, const void *value, socklen_t length)
{
    if (stream->rs.domain != AF_INET6)
        return ENOPROTOOPT;
    if (rdma_set_option(stream->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, (void *)value, length))
        return errno;
    return remember(&stream->rs, OF_IPV6, IPV6_V6ONLY, value, length);
}

static int set_socket_option(struct rsocket_stream *stream, int name, const void *value, socklen_t length)
{
    struct rsocket *rs = &stream->rs;
    switch (name) {
    case SO_REUSEADDR: // a port is free as soon as its rsocket has gone
    case SO_OOBINLINE: // there is no other data
    case SO_KEEPALIVE: // a connection has acknowledgements of its own
        return remember(rs, OF_SOCKET, name, value, length);
    case SO_RCVBUF:
        return set_buffer(stream, &rs->settings.receive_bytes, value, length);
    case SO_SNDBUF:
        return set_buffer(stream, &rs->settings.send_bytes, value, length);
    case SO_LINGER:
        return set_linger(rs, value, length);
    default:
        return ENOPROTOOPT;
    }
}

static int set_tcp_option(struct rsocket *rs, int name, const void *value, socklen_t length)
{
    int number, error = rsocket_option_int(value, length, &number);
    switch (name) {
    case TCP_NODELAY: // nothing is ever held back
        return remember(rs, OF_TCP, name, value, length);
    case TCP_MAXSEG:
    case TCP_KEEPIDLE:
    case TCP_KEEPINTVL:
    case TCP_KEEPCNT:
        return error ? error : number > 0 ? 0 : EINVAL;
    default:
        return ENOPROTOOPT;
    }
}

// The way to a peer is the host's to choose.
static int set_rdma_option(struct rsocket_stream *stream, int name, const void *value, socklen_t length)
{
    if (name == RDMA_ROUTE)
        return EOPNOTSUPP;
    // A listener's options are for the streams that it accepts.
    if (stream->state != RSOCKET_NEW && stream->state != RSOCKET_LISTENING)
        return EINVAL;
    return rsocket_set_setting(&stream->rs.settings, name, value, length);
}

int rsocket_stream_set_option(struct rsocket *rs, int level, int name, const void *value, socklen_t length)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    switch (level) {
    case SOL_SOCKET:
        return set_socket_option(stream, name, value, length);
    case IPPROTO_TCP:
        return set_tcp_option(rs, name, value, length);
    case IPPROTO_IPV6:
        return name == IPV6_V6ONLY ? set_one_family(stream, value, length) : ENOPROTOOPT;
    case SOL_RDMA:
        return set_rdma_option(stream, name, value, length);
    default:
        return ENOPROTOOPT;
    }
}

// ---- asking

static int get_socket_option(struct rsocket_stream *stream, int name, void *value, socklen_t *length)
{
    struct rsocket *rs = &stream->rs;
    int error = rs->error;
    switch (name) {
    case SO_REUSEADDR:
    case SO_OOBINLINE:
    case SO_KEEPALIVE:
        return recall(rs, OF_SOCKET, name, value, length);
    case SO_RCVBUF:
        return give_int((int)rs->settings.receive_bytes, value, length);
    case SO_SNDBUF:
        return give_int((int)rs->settings.send_bytes, value, length);
    case SO_LINGER:
        return rsocket_option_give(&rs->linger, sizeof(rs->linger), value, length);
    case SO_ERROR:
        rs->error = 0;
        return give_int(error, value, length);
    case SO_TYPE:
        return give_int(rs->type, value, length);
    case SO_DOMAIN:
        return give_int(rs->domain, value, length);
    case SO_PROTOCOL:
        return give_int(IPPROTO_TCP, value, length);
    case SO_ACCEPTCONN:
        return give_int(stream->state == RSOCKET_LISTENING, value, length);
    default:
        return ENOPROTOOPT;
    }
}

static int segment_bytes(const struct rsocket_stream *stream)
{
    const struct rdma_route *route = &stream->id->route;
    return route->num_paths > 0 ? (int)alb_mtu_bytes(route->path_rec->mtu) : SEGMENT_DEFAULT_BYTES;
}

static int get_tcp_option(struct rsocket_stream *stream, int name, void *value, socklen_t *length)
{
    switch (name) {
    case TCP_NODELAY:
        return recall(&stream->rs, OF_TCP, name, value, length);
    case TCP_MAXSEG:
        return give_int(segment_bytes(stream), value, length);
    case TCP_KEEPIDLE:
        return give_int(KEEPALIVE_IDLE_S, value, length);
    case TCP_KEEPINTVL:
    case TCP_KEEPCNT:
        return give_int(1, value, length);
    default:
        return ENOPROTOOPT;
    }
}

static int get_route(const struct rsocket_stream *stream, void *value, socklen_t *length)
{
    const struct rdma_route *route = &stream->id->route;
    struct ibv_path_data data = {0};
    if (route->num_paths == 0)
        return ENOTCONN;
    if (*length < sizeof(data))
        return EINVAL;
    const struct ibv_sa_path_rec *path = route->path_rec;
    enum { EXACTLY = 2 << 6 };
    data.path = (struct ibv_path_record){
        .dgid = path->dgid,
        .sgid = path->sgid,
        .dlid = path->dlid,
        .slid = path->slid,
        .flowlabel_hoplimit = htobe32(be32toh(path->flow_label) << 8 | path->hop_limit),
        .tclass = path->traffic_class,
        .reversible_numpath = (uint8_t)((path->reversible ? 0x80 : 0) | 1),
        .pkey = path->pkey,
        .qosclass_sl = htobe16(path->sl),
        .mtu = path->mtu | EXACTLY,
        .rate = path->rate | EXACTLY,
        .packetlifetime = path->packet_life_time | EXACTLY,
    };
    return rsocket_option_give(&data, sizeof(data), value, length);
}

int rsocket_stream_get_option(struct rsocket *rs, int level, int name, void *value, socklen_t *length)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    switch (level) {
    case SOL_SOCKET:
        return get_socket_option(stream, name, value, length);
    case IPPROTO_TCP:
        return get_tcp_option(stream, name, value, length);
    case IPPROTO_IPV6:
        return name == IPV6_V6ONLY ? recall(rs, OF_IPV6, name, value, length) : ENOPROTOOPT;
    case SOL_RDMA:
        return name == RDMA_ROUTE ? get_route(stream, value, length)
                                  : rsocket_get_setting(&rs->settings, name, value, length);
    default:
        return ENOPROTOOPT;
    }
}
