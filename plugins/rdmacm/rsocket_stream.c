// SPDX-License-Identifier: BSD-2-Clause
// Streams: their states, and what a program does with one that is connected.
#include "plugins/rdmacm/rsocket_stream.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

// What would change the meaning of a call, and what a stream has not. Other flags it may take as said.
enum {
    RECEIVE_REFUSED = MSG_OOB | MSG_ERRQUEUE | MSG_TRUNC,
    SEND_REFUSED = MSG_OOB | MSG_FASTOPEN | MSG_ZEROCOPY,
};

// ---- states

static const char *const state_names[RSOCKET_STATES] = {
    [RSOCKET_NEW] = "new",
    [RSOCKET_LISTENING] = "listening",
    [RSOCKET_CONNECTING] = "connecting",
    [RSOCKET_ACCEPTING] = "accepting",
    [RSOCKET_OPEN] = "open",
    [RSOCKET_ENDED] = "ended",
    [RSOCKET_FAILED] = "failed",
};

#define TO(state) (1u << RSOCKET_##state)

static const unsigned legal_moves[RSOCKET_STATES] = {
    [RSOCKET_NEW] = TO(LISTENING) | TO(CONNECTING) | TO(ACCEPTING),
    [RSOCKET_CONNECTING] = TO(OPEN) | TO(FAILED),
    [RSOCKET_ACCEPTING] = TO(OPEN) | TO(FAILED),
    [RSOCKET_OPEN] = TO(ENDED) | TO(FAILED),
    [RSOCKET_ENDED] = TO(FAILED),
};

void rsocket_stream_set_state(struct rsocket_stream *stream, enum rsocket_state state)
{
    if (stream->state == state)
        return;
    alb_log(ALB_LOG_DEBUG, "rsocket %d: %s -> %s", stream->rs.fd, state_names[stream->state], state_names[state]);
    alb_assert(legal_moves[stream->state] & 1u << state);
    stream->state = state;
}

void rsocket_stream_fail(struct rsocket_stream *stream, int error)
{
    if (stream->state == RSOCKET_FAILED)
        return;
    stream->rs.error = error;
    rsocket_stream_set_state(stream, RSOCKET_FAILED);
}

bool rsocket_stream_is_settled(struct rsocket *rs)
{
    enum rsocket_state state = rsocket_stream(rs)->state;
    return state != RSOCKET_CONNECTING && state != RSOCKET_ACCEPTING;
}

static int take_error(struct rsocket *rs)
{
    int error = rs->error;
    rs->error = 0;
    return error;
}

static short events(struct rsocket *rs)
{
    const struct rsocket_stream *stream = rsocket_stream(rs);
    const short readable = POLLIN | POLLRDNORM, writable = POLLOUT | POLLWRNORM;
    switch (stream->state) {
    case RSOCKET_NEW:
        return (short)(writable | POLLHUP);
    case RSOCKET_LISTENING:
        if (alb_list_is_empty(&stream->accepted))
            return 0;
        return readable;
    case RSOCKET_OPEN:
        return (short)((stream->inbox.unread > 0 || stream->has_ended_in ? readable : 0) |
                       (stream->has_ended_in ? POLLRDHUP : 0) |
                       (stream->has_ended_out || rsocket_flow_can_send(rs) ? writable : 0));
    case RSOCKET_ENDED: // programs take a hang-up for the end of what they can read
        return (short)(readable | writable | POLLRDHUP | (stream->inbox.unread == 0 ? POLLHUP : 0));
    case RSOCKET_FAILED:
        return (short)(readable | writable | POLLRDHUP | POLLHUP | (rs->error ? POLLERR : 0));
    default:
        return 0;
    }
}

// ---- sending and receiving

static bool is_unconnected(const struct rsocket_stream *stream)
{
    return stream->state == RSOCKET_NEW || stream->state == RSOCKET_LISTENING;
}

static bool has_input(struct rsocket *rs)
{
    const struct rsocket_stream *stream = rsocket_stream(rs);
    return stream->inbox.unread > 0 || stream->has_ended_in ||
           (stream->state != RSOCKET_OPEN && rsocket_stream_is_settled(rs));
}

static ssize_t receive(struct rsocket *rs, struct rsocket_cursor *to, int flags, struct sockaddr_storage *from)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    size_t length = to->left;
    int error = 0;
    if (flags & RECEIVE_REFUSED)
        return -EOPNOTSUPP;
    if (is_unconnected(stream))
        return -ENOTCONN;
    while (to->left > 0) {
        if (stream->inbox.unread == 0)
            error = rsocket_wait(rs, has_input, flags, ALB_TIME_NEVER);
        if (error || stream->inbox.unread == 0)
            break;
        rsocket_inbox_read(&stream->inbox, to, flags & MSG_PEEK);
        rsocket_flow_grant(stream);
        if (!(flags & MSG_WAITALL) || (flags & MSG_PEEK))
            break;
    }
    if (to->left < length || length == 0)
        return (ssize_t)(length - to->left);
    return -(error ? error : take_error(rs)); // without an error: the end
}

static bool may_send(struct rsocket *rs)
{
    const struct rsocket_stream *stream = rsocket_stream(rs);
    return rsocket_flow_can_send(rs) || stream->has_ended_out ||
           (stream->state != RSOCKET_OPEN && rsocket_stream_is_settled(rs));
}

int rsocket_stream_why_not_sent(struct rsocket *rs)
{
    const struct rsocket_stream *stream = rsocket_stream(rs);
    int error = take_error(rs);
    if (error)
        return error;
    return stream->has_ended_out || stream->state != RSOCKET_ENDED ? EPIPE : ECONNRESET;
}

static ssize_t send_all(struct rsocket *rs, struct rsocket_cursor *from, int flags)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    size_t length = from->left;
    int error = stream->has_iomap_news ? rsocket_iomap_flush(stream, flags) : 0;
    while (!error && from->left > 0) {
        if (!rsocket_flow_can_send(rs))
            error = rsocket_wait(rs, may_send, flags, ALB_TIME_NEVER);
        if (error)
            break;
        if (!rsocket_flow_can_send(rs)) {
            error = rsocket_stream_why_not_sent(rs);
            break;
        }
        rsocket_flow_send(stream, from);
    }
    return from->left < length ? (ssize_t)(length - from->left) : -error;
}

static ssize_t send_to(struct rsocket *rs, struct rsocket_cursor *from, int flags, const struct sockaddr *to,
                       socklen_t length)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    if (flags & SEND_REFUSED)
        return -EOPNOTSUPP;
    if (is_unconnected(stream))
        return -ENOTCONN;
    if (to || length)
        return -EISCONN;
    return send_all(rs, from, flags);
}

// ---- the end

static bool can_control_or_is_over(struct rsocket *rs)
{
    return rsocket_flow_can_control(rs) || rsocket_stream(rs)->state != RSOCKET_OPEN;
}

// Ends one direction or both, and tells the peer. Ending both is a disconnect.
static int end(struct rsocket_stream *stream, bool ends_in, bool ends_out, alb_time until)
{
    bool was_out = stream->has_ended_out;
    stream->has_ended_in |= ends_in;
    stream->has_ended_out |= ends_out;
    int error = rsocket_wait(&stream->rs, can_control_or_is_over, RSOCKET_WAIT, until);
    if (error || stream->state != RSOCKET_OPEN)
        return error;
    if (!stream->has_ended_in || !stream->has_ended_out) {
        if (ends_out && !was_out)
            rsocket_flow_control(stream, RSOCKET_CONTROL_SHUTDOWN);
        return 0;
    }
    rsocket_flow_control(stream, RSOCKET_CONTROL_DISCONNECT);
    if (stream->state == RSOCKET_OPEN)
        rsocket_stream_set_state(stream, RSOCKET_ENDED);
    return 0;
}

static int shut_down(struct rsocket *rs, int how)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
        return EINVAL;
    rsocket_progress(rs);
    if (stream->state == RSOCKET_ENDED)
        return 0;
    if (stream->state != RSOCKET_OPEN)
        return ENOTCONN;
    int error = end(stream, how != SHUT_WR, how != SHUT_RD, ALB_TIME_NEVER);
    rsocket_wake(rs);
    return error;
}

static bool is_delivered(struct rsocket *rs)
{
    const struct rsocket_stream *stream = rsocket_stream(rs);
    return !stream->cq || rsocket_flow_is_all_sent(stream) || stream->is_peer_gone || stream->state == RSOCKET_FAILED;
}

static void abandon_accepted(struct rsocket_stream *stream)
{
    struct alb_list taken, *node;
    alb_list_init(&taken);
    rsocket_stream_take_accepted(stream, &taken);
    while ((node = alb_list_pop(&taken)))
        rsocket_stream_abandon(ALB_LIST_ENTRY(node, struct rsocket_stream, link));
}

// At once, although streams that come from it keep it a while. Its events are taken with the lock held, so that none is
// waited for.
static void close_listener(struct rsocket_stream *stream)
{
    rdma_destroy_id(stream->id);
    stream->id = NULL;
    abandon_accepted(stream);
}

// What was sent has to be in the peer's memory before the queue pair goes.
static void close_stream(struct rsocket *rs, alb_time until)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    rsocket_progress(rs);
    if (stream->state == RSOCKET_LISTENING)
        close_listener(stream);
    if (stream->state == RSOCKET_OPEN)
        end(stream, true, true, until);
    if (stream->state == RSOCKET_OPEN || stream->state == RSOCKET_ENDED)
        rsocket_wait(rs, is_delivered, RSOCKET_WAIT, until);
}

static void free_stream(struct rsocket *rs)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    abandon_accepted(stream);
    if (stream->id && stream->id->qp)
        rdma_disconnect(stream->id);
    rsocket_pair_close(stream);
    if (stream->id)
        rdma_destroy_id(stream->id);
    if (stream->channel)
        rdma_destroy_event_channel(stream->channel);
    rsocket_fini(rs);
    free(stream);
}

static int address(struct rsocket *rs, bool is_peer, struct sockaddr_storage *out)
{
    const struct rsocket_stream *stream = rsocket_stream(rs);
    const struct rdma_addr *addr = &stream->id->route.addr;
    if (is_peer && (is_unconnected(stream) || !rsocket_stream_is_settled(rs) || stream->state == RSOCKET_FAILED))
        return ENOTCONN;
    *out = is_peer ? addr->dst_storage : addr->src_storage;
    if (out->ss_family == AF_UNSPEC)
        out->ss_family = (sa_family_t)rs->domain;
    return 0;
}

// ---- creating

static const struct rsocket_ops stream_ops = {
    .bind = rsocket_stream_bind,
    .connect = rsocket_stream_connect,
    .send = send_to,
    .receive = receive,
    .shutdown = shut_down,
    .progress = rsocket_flow_progress,
    .arm = rsocket_flow_arm,
    .events = events,
    .serve = rsocket_stream_serve,
    .probe = rsocket_flow_probe,
    .close = close_stream,
    .address = address,
    .set_option = rsocket_stream_set_option,
    .get_option = rsocket_stream_get_option,
    .free = free_stream,
};

struct rsocket_stream *rsocket_stream_new(int domain, const struct rsocket_settings *settings)
{
    struct rsocket_stream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    alb_list_init(&stream->accepted);
    alb_list_init(&stream->link);
    alb_list_init(&stream->local_iomaps);
    int error = rsocket_init(&stream->rs, &stream_ops, domain, SOCK_STREAM);
    if (error) {
        free(stream);
        errno = error;
        return NULL;
    }
    if (settings)
        stream->rs.settings = *settings;
    return stream;
}

static int open_id(struct rsocket_stream *stream)
{
    stream->channel = rdma_create_event_channel();
    if (!stream->channel)
        return errno;
    rsocket_set_blocking(stream->channel->fd, false);
    stream->rs.service_fd = stream->channel->fd;
    return rdma_create_id(stream->channel, &stream->id, NULL, RDMA_PS_TCP) ? errno : 0;
}

int rsocket_stream_create(int domain, struct rsocket **out)
{
    struct rsocket_stream *stream = rsocket_stream_new(domain, NULL);
    if (!stream)
        return errno;
    int error = open_id(stream);
    if (error)
        rsocket_stream_abandon(stream);
    else
        *out = &stream->rs;
    return error;
}
