// SPDX-License-Identifier: BSD-2-Clause
// Streams come into being: what the calls begin goes on in the service thread, event by event of the connection
// manager, so that a program that does not block finds it done. A listener accepts what comes, up to its backlog, and
// the program takes from there.
#include "plugins/rdmacm/rsocket_stream.h"

#include "base/log.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    RESOLVE_MS = 2000,
    RETRIES = 7,
    BACKLOG_DEFAULT = 128,
    BACKLOG_MAX = 1024,
};

int rsocket_stream_bind(struct rsocket *rs, const struct sockaddr *address, socklen_t length)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    struct sockaddr_storage copy;
    if (stream->state != RSOCKET_NEW)
        return EINVAL;
    int error = rsocket_take_address(rs, address, length, &copy);
    if (error)
        return error;
    return rdma_bind_addr(stream->id, (struct sockaddr *)&copy) ? errno : 0;
}

// ---- connecting

static int state_error(enum rsocket_state state)
{
    switch (state) {
    case RSOCKET_NEW:
        return 0;
    case RSOCKET_CONNECTING:
    case RSOCKET_ACCEPTING:
        return EALREADY;
    case RSOCKET_OPEN:
        return EISCONN;
    case RSOCKET_LISTENING:
        return EINVAL;
    default:
        return ENOTCONN;
    }
}

static int begin_connect(struct rsocket *rs, const struct sockaddr *address, socklen_t length)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    struct sockaddr_storage copy;
    int error = state_error(stream->state);
    if (!error)
        error = rsocket_take_address(rs, address, length, &copy);
    if (error)
        return error;
    if (rdma_resolve_addr(stream->id, NULL, (struct sockaddr *)&copy, RESOLVE_MS))
        return errno;
    rsocket_stream_set_state(stream, RSOCKET_CONNECTING);
    error = rsocket_service_watch(rs);
    if (error)
        rsocket_stream_fail(stream, error);
    stream->is_outcome_due = !error;
    return error;
}

// A call that goes on without its program says how it went when the program calls again, once, as TCP does on Linux.
// It is EINPROGRESS until then: librspreload takes any other error, EALREADY too, for a reason to go on by TCP.
int rsocket_stream_connect(struct rsocket *rs, const struct sockaddr *address, socklen_t length)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    int error = stream->is_outcome_due ? 0 : begin_connect(rs, address, length);
    if (error)
        return error;
    error = rsocket_wait(rs, rsocket_stream_is_settled, 0, ALB_TIME_NEVER);
    if (error)
        return error == EAGAIN ? EINPROGRESS : error;
    stream->is_outcome_due = false;
    if (stream->state != RSOCKET_FAILED)
        return 0;
    error = rs->error;
    rs->error = 0;
    return error ? error : ECONNREFUSED;
}

static void call_peer(struct rsocket_stream *stream)
{
    uint8_t hello[RSOCKET_HELLO_BYTES];
    struct rdma_conn_param param = {
        .private_data = hello,
        .private_data_len = sizeof(hello),
        .flow_control = 1,
        .retry_count = RETRIES,
        .rnr_retry_count = RETRIES, // which means for ever: the peer takes messages when its program lets it
    };
    int error = rsocket_pair_open(stream);
    if (!error) {
        rsocket_flow_greet(stream, hello);
        error = rdma_connect(stream->id, &param) ? errno : 0;
    }
    if (error)
        rsocket_stream_fail(stream, error);
}

static int error_of(const struct rdma_cm_event *event)
{
    switch (event->event) {
    case RDMA_CM_EVENT_REJECTED:
        return ECONNREFUSED;
    case RDMA_CM_EVENT_UNREACHABLE:
        return ETIMEDOUT;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
        return event->status < 0 ? -event->status : EHOSTUNREACH;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        return ENETDOWN;
    default:
        return ECONNRESET;
    }
}

// ---- listening

// What came in: a stream of its own, on a channel of its own.
static int adopt(struct rsocket_stream *listener, struct rdma_cm_id *id, struct rsocket_stream **out)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rsocket_stream *stream = channel ? rsocket_stream_new(listener->rs.domain, &listener->rs.settings) : NULL;
    if (stream && !rdma_migrate_id(id, channel)) {
        rsocket_set_blocking(channel->fd, false);
        stream->channel = channel;
        stream->rs.service_fd = channel->fd;
        stream->id = id;
        *out = stream;
        return 0;
    }
    int error = errno;
    if (stream)
        rsocket_stream_abandon(stream);
    if (channel)
        rdma_destroy_event_channel(channel);
    return error;
}

static int answer(struct rsocket_stream *stream, const struct rdma_conn_param *asked)
{
    uint8_t hello[RSOCKET_HELLO_BYTES];
    struct rdma_conn_param param = {
        .private_data = hello,
        .private_data_len = sizeof(hello),
        .responder_resources = asked->responder_resources,
        .initiator_depth = asked->initiator_depth,
        .flow_control = 1,
        .rnr_retry_count = RETRIES,
    };
    if (!rsocket_flow_meet(stream, asked->private_data, asked->private_data_len))
        return EPROTO;
    int error = rsocket_pair_open(stream);
    if (error)
        return error;
    rsocket_flow_greet(stream, hello);
    return rdma_accept(stream->id, &param) ? errno : 0;
}

// Once: the program hears nothing of a connection that is not made. EPROTO is its peer's affair.
static void complain(const struct rsocket_stream *listener, int error)
{
    static atomic_flag is_said = ATOMIC_FLAG_INIT;
    if (error == EPROTO || !alb_log_is_shown(ALB_LOG_WARNING) || atomic_flag_test_and_set(&is_said))
        return;
    alb_log(ALB_LOG_WARNING, "rsocket %d listens, and must refuse a connection: %s%s", listener->rs.fd, strerror(error),
            error == EMFILE ? "; `ulimit -n` bounds how many descriptors there may be" : "");
}

static void on_request(struct rsocket_stream *listener, struct rdma_cm_event *event)
{
    struct rdma_cm_id *id = event->id;
    struct rsocket_stream *stream = NULL;
    struct rdma_conn_param asked = event->param.conn;
    uint8_t hello[RSOCKET_HELLO_BYTES];
    if (asked.private_data_len > sizeof(hello))
        asked.private_data_len = sizeof(hello);
    if (asked.private_data)
        memcpy(hello, asked.private_data, asked.private_data_len);
    asked.private_data = asked.private_data ? hello : NULL;
    rdma_ack_cm_event(event);
    int error = adopt(listener, id, &stream);
    if (error) {
        complain(listener, error);
        rdma_reject(id, NULL, 0);
        rdma_destroy_id(id);
        return;
    }
    rsocket_stream_set_state(stream, RSOCKET_ACCEPTING);
    error = answer(stream, &asked);
    if (error)
        rdma_reject(id, NULL, 0);
    else
        error = rsocket_service_watch(&stream->rs);
    if (error) {
        complain(listener, error);
        rsocket_stream_abandon(stream);
        return;
    }
    stream->listener = listener;
    rsocket_ref(&listener->rs);
    listener->queued++;
}

void rsocket_stream_abandon(struct rsocket_stream *stream)
{
    struct rsocket *rs = rsocket_table_take(stream->rs.fd);
    if (!rs)
        return;
    rs->is_closed = true;
    rsocket_put(rs);
}

// The stream's way to the program ends: in the listener's queue, or nowhere.
static void leave_listener(struct rsocket_stream *stream)
{
    struct rsocket_stream *listener = stream->listener;
    if (!listener)
        return;
    stream->listener = NULL;
    rsocket_lock(&listener->rs);
    bool is_taken = stream->state == RSOCKET_OPEN && !listener->rs.is_closed;
    if (is_taken) {
        alb_list_push_back(&listener->accepted, &stream->link);
        rsocket_wake(&listener->rs);
    } else {
        listener->queued--;
        if (!listener->rs.is_closed)
            rsocket_service_again(&listener->rs);
    }
    rsocket_unlock(&listener->rs);
    if (!is_taken)
        rsocket_stream_abandon(stream);
    rsocket_put(&listener->rs);
}

void rsocket_stream_take_accepted(struct rsocket_stream *listener, struct alb_list *taken)
{
    struct alb_list *node;
    while ((node = alb_list_pop(&listener->accepted)))
        alb_list_push_back(taken, node);
}

// An id has no family of its own: rdma_listen of one that is bound to nothing listens at IPv4's addresses.
static int ensure_bound(struct rsocket_stream *stream)
{
    struct sockaddr_storage any = {.ss_family = (sa_family_t)stream->rs.domain};
    bool is_bound = stream->id->route.addr.src_storage.ss_family != AF_UNSPEC;
    return is_bound || rdma_bind_addr(stream->id, (struct sockaddr *)&any) == 0 ? 0 : errno;
}

static int listen_now(struct rsocket_stream *stream, int backlog)
{
    if (stream->state != RSOCKET_NEW && stream->state != RSOCKET_LISTENING)
        return EINVAL;
    stream->backlog = backlog <= 0 ? BACKLOG_DEFAULT : (uint32_t)ALB_MIN(backlog, BACKLOG_MAX);
    if (stream->state == RSOCKET_LISTENING)
        return 0;
    int error = ensure_bound(stream);
    if (error)
        return error;
    if (rdma_listen(stream->id, (int)stream->backlog))
        return errno;
    rsocket_stream_set_state(stream, RSOCKET_LISTENING);
    return rsocket_service_watch(&stream->rs);
}

int rlisten(int socket, int backlog)
{
    struct rsocket *rs = rsocket_take(socket);
    if (!rs)
        return -1;
    int error = rs->type == SOCK_STREAM ? listen_now(rsocket_stream(rs), backlog) : EOPNOTSUPP;
    rsocket_give(rs);
    return rdmacm_result(error);
}

static bool has_accepted(struct rsocket *rs)
{
    return !alb_list_is_empty(&rsocket_stream(rs)->accepted);
}

static int take_accepted(struct rsocket *rs, struct rsocket_stream **out)
{
    struct rsocket_stream *listener = rsocket_stream(rs);
    if (rs->type != SOCK_STREAM)
        return EOPNOTSUPP;
    if (listener->state != RSOCKET_LISTENING)
        return EINVAL;
    int error = rsocket_wait(rs, has_accepted, 0, ALB_TIME_NEVER);
    if (error)
        return error;
    *out = ALB_LIST_ENTRY(alb_list_pop(&listener->accepted), struct rsocket_stream, link);
    listener->queued--;
    rsocket_service_again(rs);
    return 0;
}

// Its number is one that was free when the program asked, as with sockets: librspreload takes a number of its own just
// before, and counts on it to be the lower one. Where none is free, the number that it has is as good.
static int number_of(struct rsocket_stream *accepted)
{
    struct rsocket *rs = &accepted->rs;
    rsocket_lock(rs);
    if (rsocket_table_renumber(rs))
        rsocket_service_again(rs); // under its new number
    int fd = rs->fd;
    rsocket_unlock(rs);
    return fd;
}

// The peer's name is that of the caller, whatever has become of the stream since.
static int accept_next(int socket, int *fd, struct sockaddr_storage *peer)
{
    struct rsocket_stream *accepted;
    struct rsocket *rs = rsocket_take(socket);
    if (!rs)
        return EBADF;
    int error = take_accepted(rs, &accepted);
    rsocket_give(rs);
    if (error)
        return error;
    *peer = accepted->id->route.addr.dst_storage;
    *fd = number_of(accepted);
    return 0;
}

int raccept(int socket, struct sockaddr *address, socklen_t *length)
{
    int fd;
    struct sockaddr_storage peer;
    rsocket_cancel_off(); // over all of it: what was taken has to be handed on
    int error = accept_next(socket, &fd, &peer);
    rsocket_cancel_back();
    if (error)
        return rdmacm_fail(error);
    if (address)
        rsocket_give_address(&peer, address, length);
    return fd;
}

// ---- events

static void on_established(struct rsocket_stream *stream, const struct rdma_conn_param *param)
{
    bool is_caller = stream->state == RSOCKET_CONNECTING;
    if (!is_caller && stream->state != RSOCKET_ACCEPTING)
        return;
    if (is_caller && !rsocket_flow_meet(stream, param->private_data, param->private_data_len))
        rsocket_stream_fail(stream, EPROTO);
    else
        rsocket_stream_set_state(stream, RSOCKET_OPEN);
    leave_listener(stream);
}

// The other end has gone, or was never there. What it had sent before is taken first.
static void on_end(struct rsocket_stream *stream, int error)
{
    rsocket_progress(&stream->rs);
    stream->is_peer_gone = true;
    if (stream->state == RSOCKET_CONNECTING || stream->state == RSOCKET_ACCEPTING || stream->state == RSOCKET_OPEN)
        rsocket_stream_fail(stream, error);
    leave_listener(stream);
}

static void on_event(struct rsocket_stream *stream, const struct rdma_cm_event *event)
{
    switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (rdma_resolve_route(stream->id, RESOLVE_MS))
            rsocket_stream_fail(stream, errno);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        call_peer(stream);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        on_established(stream, &event->param.conn);
        break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
    default:
        on_end(stream, error_of(event));
    }
    rsocket_wake(&stream->rs);
}

static bool has_room(const struct rsocket_stream *stream)
{
    return stream->state != RSOCKET_LISTENING || stream->queued < stream->backlog;
}

bool rsocket_stream_serve(struct rsocket *rs)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    struct rdma_cm_event *event;
    while (has_room(stream)) {
        if (rdma_get_cm_event(stream->channel, &event))
            return true;
        if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
            on_request(stream, event);
            continue;
        }
        on_event(stream, event);
        rdma_ack_cm_event(event);
    }
    return false;
}
