// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include "base/types.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct ends {
    struct rdma_event_channel *channels[2]; // of the listener's side, and of the caller's
    struct rdma_cm_id *listener, *server, *client;
    uint16_t port;
};

static void open_ends_at(struct ends *ends, enum rdma_port_space ps, const char *here, const char *there)
{
    memset(ends, 0, sizeof(*ends));
    for (int i = 0; i < 2; i++)
        assert_non_null(ends->channels[i] = rdma_create_event_channel());
    ends->listener = fixture_listener_at(ends->channels[0], ps, here, &ends->port);
    ends->client = fixture_resolved_at(ends->channels[1], ps, there, ends->port);
    fixture_create_qp(ends->client);
}

static void open_ends(struct ends *ends, enum rdma_port_space ps)
{
    open_ends_at(ends, ps, fixture_address, fixture_address);
}

static void close_id(struct rdma_cm_id *id)
{
    if (!id)
        return;
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
}

static void close_ends(struct ends *ends)
{
    close_id(ends->client);
    close_id(ends->server);
    close_id(ends->listener);
    for (int i = 0; i < 2; i++)
        rdma_destroy_event_channel(ends->channels[i]);
}

static void call(struct ends *ends)
{
    struct rdma_conn_param param = {.private_data = "knock",
                                    .private_data_len = 6,
                                    .responder_resources = 3,
                                    .initiator_depth = 5,
                                    .retry_count = 6,
                                    .rnr_retry_count = 5};
    assert_int_equal(rdma_connect(ends->client, &param), 0);
}

static void take_call(struct ends *ends)
{
    struct rdma_cm_event *event = expect_event(ends->channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_ptr_equal(event->listen_id, ends->listener);
    assert_ptr_equal(event->id->context, (void *)7);
    assert_string_equal(
        event->id->qp_type == IBV_QPT_UD ? event->param.ud.private_data : event->param.conn.private_data, "knock");
    if (event->id->qp_type == IBV_QPT_RC) {
        assert_int_equal(event->param.conn.responder_resources, 5); // what the other asks is what we answer
        assert_int_equal(event->param.conn.initiator_depth, 3);
        assert_int_equal(event->param.conn.retry_count, 6);
        assert_int_equal(event->param.conn.qp_num, ends->client->qp->qp_num);
        assert_int_equal(event->param.conn.private_data_len, 56);
    }
    ends->server = event->id;
    assert_int_equal(rdma_get_src_port(ends->server), rdma_get_dst_port(ends->client));
    assert_int_equal(rdma_get_dst_port(ends->server), rdma_get_src_port(ends->client));
    assert_int_equal(rdma_ack_cm_event(event), 0);
    fixture_create_qp(ends->server);
}

static void accept_call(struct ends *ends)
{
    struct rdma_conn_param param = {
        .private_data = "come in", .private_data_len = 8, .responder_resources = 5, .initiator_depth = 3};
    assert_int_equal(rdma_accept(ends->server, &param), 0);
    struct rdma_cm_event *event = expect_event(ends->channels[1], RDMA_CM_EVENT_ESTABLISHED);
    assert_ptr_equal(event->id, ends->client);
    assert_string_equal(event->param.conn.private_data, "come in");
    assert_int_equal(event->param.conn.qp_num, ends->server->qp->qp_num);
    assert_int_equal(rdma_ack_cm_event(event), 0);
    pass_event(ends->channels[0], RDMA_CM_EVENT_ESTABLISHED);
}

static struct ibv_wc wait_for(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int count;
    while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    assert_int_equal(count, 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    return wc;
}

static struct ibv_qp_attr attributes_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr;
}

static void connect__data_flows_and_both_part(void **state)
{
    static char from[64] = "over the connection", to[64];
    struct ends ends;
    open_ends(&ends, RDMA_PS_TCP);
    call(&ends);
    take_call(&ends);
    struct ibv_mr *source = rdma_reg_msgs(ends.client, from, sizeof(from));
    struct ibv_mr *target = rdma_reg_msgs(ends.server, to, sizeof(to));
    assert_int_equal(rdma_post_recv(ends.server, NULL, to, sizeof(to), target), 0);
    accept_call(&ends);
    struct ibv_qp_attr attr = attributes_of(ends.client->qp);
    assert_int_equal(attr.qp_state, IBV_QPS_RTS);
    assert_int_equal(attr.max_rd_atomic, 5);
    assert_int_equal(attr.max_dest_rd_atomic, 3);
    assert_int_equal(attr.retry_cnt, 6);
    assert_int_equal(rdma_post_send(ends.client, NULL, from, sizeof(from), source, 0), 0);
    wait_for(ends.client->send_cq);
    assert_int_equal(wait_for(ends.server->recv_cq).byte_len, sizeof(from));
    assert_string_equal(to, "over the connection");

    assert_int_equal(rdma_disconnect(ends.client), 0);
    pass_event(ends.channels[0], RDMA_CM_EVENT_DISCONNECTED);
    pass_event(ends.channels[1], RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(rdma_disconnect(ends.server), 0); // which has ended already
    pass_event(ends.channels[0], RDMA_CM_EVENT_TIMEWAIT_EXIT);
    pass_event(ends.channels[1], RDMA_CM_EVENT_TIMEWAIT_EXIT);
    ibv_dereg_mr(source);
    ibv_dereg_mr(target);
    close_ends(&ends);
}

// What the caller asked for is what it gets at most, in each direction.
static void connect__reads_as_deep_as_the_peer_grants(void **state)
{
    static const struct {
        uint8_t granted_reads, own_reads, max_rd_atomic, max_dest_rd_atomic;
    } cases[] = {{1, 2, 1, 2}, {0, 3, 0, 3}, {5, 0, 5, 0}, {9, 8, 5, 3}};
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        struct rdma_conn_param param = {.responder_resources = cases[i].granted_reads,
                                        .initiator_depth = cases[i].own_reads};
        struct ends ends;
        open_ends(&ends, RDMA_PS_TCP);
        call(&ends);
        take_call(&ends);
        assert_int_equal(rdma_accept(ends.server, &param), 0);
        pass_event(ends.channels[1], RDMA_CM_EVENT_ESTABLISHED);
        struct ibv_qp_attr attr = attributes_of(ends.client->qp);
        assert_int_equal(attr.max_rd_atomic, cases[i].max_rd_atomic);
        assert_int_equal(attr.max_dest_rd_atomic, cases[i].max_dest_rd_atomic);
        close_ends(&ends);
    }
}

// BytePS takes any other event after DISCONNECTED for an error and ends. No kernel has one until the program
// disconnects.
static void connect__timewait_begins_with_the_programs_own_word(void **state)
{
    enum { LONGER_THAN_TIMEWAIT_MS = 500 };
    struct ends ends;
    open_ends(&ends, RDMA_PS_TCP);
    struct pollfd poller = {.fd = ends.channels[0]->fd, .events = POLLIN};
    call(&ends);
    take_call(&ends);
    accept_call(&ends);
    assert_int_equal(rdma_disconnect(ends.client), 0);
    pass_event(ends.channels[1], RDMA_CM_EVENT_DISCONNECTED);
    pass_event(ends.channels[1], RDMA_CM_EVENT_TIMEWAIT_EXIT);
    pass_event(ends.channels[0], RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(poll(&poller, 1, LONGER_THAN_TIMEWAIT_MS), 0);
    assert_int_equal(rdma_disconnect(ends.server), 0);
    pass_event(ends.channels[0], RDMA_CM_EVENT_TIMEWAIT_EXIT);
    assert_int_equal(rdma_disconnect(ends.server), 0); // tells it no second time
    assert_int_equal(poll(&poller, 1, LONGER_THAN_TIMEWAIT_MS), 0);
    close_ends(&ends);
}

// Their senders ask again.
static void connect__beyond_the_backlog_is_not_queued(void **state)
{
    enum { BACKLOG = 2, CALLERS = 5 };
    struct rdma_event_channel *channels[] = {rdma_create_event_channel(), rdma_create_event_channel()};
    struct rdma_cm_id *listener, *callers[CALLERS];
    struct rdma_conn_param param = {.retry_count = 7};
    struct rdma_cm_event *event;
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    assert_int_equal(rdma_create_id(channels[0], &listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&here), 0);
    assert_int_equal(rdma_listen(listener, BACKLOG), 0);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = fixture_resolved(channels[1], RDMA_PS_TCP, ntohs(rdma_get_src_port(listener)));
        fixture_create_qp(callers[i]);
        assert_int_equal(rdma_connect(callers[i], &param), 0);
    }
    usleep(100000); // all requests have come
    assert_int_equal(fcntl(channels[0]->fd, F_SETFL, O_NONBLOCK), 0);
    struct rdma_cm_id *taken[BACKLOG];
    for (int i = 0; i < BACKLOG; i++) {
        assert_int_equal(rdma_get_cm_event(channels[0], &event), 0);
        taken[i] = event->id;
        assert_int_equal(rdma_ack_cm_event(event), 0);
    }
    expect_errno(rdma_get_cm_event(channels[0], &event), EAGAIN);
    for (int i = 0; i < BACKLOG; i++)
        close_id(taken[i]);
    for (int i = 0; i < CALLERS; i++)
        close_id(callers[i]);
    close_id(listener);
    for (int i = 0; i < 2; i++)
        rdma_destroy_event_channel(channels[i]);
}

// Programs (fio, libfabric) ask for 10 or 15 retries, and the kernel takes that for the most there are.
static void connect__takes_too_many_retries_for_the_most(void **state)
{
    struct ends ends;
    struct rdma_conn_param param = {
        .responder_resources = 1, .initiator_depth = 1, .retry_count = 10, .rnr_retry_count = 9};
    open_ends(&ends, RDMA_PS_TCP);
    assert_int_equal(rdma_connect(ends.client, &param), 0);
    struct rdma_cm_event *event = expect_event(ends.channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_int_equal(event->param.conn.retry_count, 7);
    assert_int_equal(event->param.conn.rnr_retry_count, 7);
    ends.server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    fixture_create_qp(ends.server);
    assert_int_equal(rdma_accept(ends.server, &param), 0);
    pass_event(ends.channels[1], RDMA_CM_EVENT_ESTABLISHED);
    struct ibv_qp_attr attr = attributes_of(ends.client->qp);
    assert_int_equal(attr.retry_cnt, 7);
    assert_int_equal(attr.rnr_retry, 7);
    close_ends(&ends);
}

// As the kernel does it: a channel's ids end with it, whether the program destroys them or not.
static void channel__ends_its_ids(void **state)
{
    struct ends ends;
    struct rdma_event_channel *another = rdma_create_event_channel();
    struct pollfd poller = {.events = POLLIN};
    open_ends(&ends, RDMA_PS_TCP);
    call(&ends);
    take_call(&ends);
    accept_call(&ends);
    struct rdma_cm_id *second = fixture_resolved(another, RDMA_PS_TCP, ends.port);
    fixture_create_qp(second);
    assert_int_equal(rdma_connect(second, NULL), 0);
    poller.fd = ends.channels[0]->fd;
    assert_int_equal(poll(&poller, 1, -1), 1); // its request, which is not taken
    rdma_destroy_event_channel(ends.channels[0]);
    pass_event(another, RDMA_CM_EVENT_REJECTED);
    pass_event(ends.channels[1], RDMA_CM_EVENT_DISCONNECTED);
    expect_errno(rdma_listen(ends.listener, 1), EBADF);
    close_id(second);
    close_id(ends.client);
    close_id(ends.server);
    close_id(ends.listener);
    rdma_destroy_event_channel(ends.channels[1]);
    rdma_destroy_event_channel(another);
}

// A listener that moves to another channel takes its requests along, whose ids are not the old channel's any more.
static void migrate__takes_requests_along(void **state)
{
    struct ends ends;
    struct rdma_event_channel *to = rdma_create_event_channel();
    open_ends(&ends, RDMA_PS_TCP);
    struct pollfd poller = {.fd = ends.channels[0]->fd, .events = POLLIN};
    call(&ends);
    assert_int_equal(poll(&poller, 1, -1), 1);
    assert_int_equal(rdma_migrate_id(ends.listener, to), 0);
    rdma_destroy_event_channel(ends.channels[0]);
    ends.channels[0] = to;
    take_call(&ends);
    assert_ptr_equal(ends.server->channel, to);
    accept_call(&ends);
    assert_int_equal(rdma_disconnect(ends.client), 0);
    pass_event(to, RDMA_CM_EVENT_DISCONNECTED);
    close_ends(&ends);
}

// Its caller has gone meanwhile, of which the program hears nothing before it accepts.
static void migrate__takes_along_a_request_that_was_given_up(void **state)
{
    struct ends ends;
    struct rdma_event_channel *to = rdma_create_event_channel();
    open_ends(&ends, RDMA_PS_TCP);
    struct pollfd poller = {.fd = ends.channels[0]->fd, .events = POLLIN};
    call(&ends);
    assert_int_equal(poll(&poller, 1, -1), 1);
    close_id(ends.client); // which rejects
    ends.client = NULL;
    usleep(100 * 1000);
    assert_int_equal(rdma_migrate_id(ends.listener, to), 0);
    rdma_destroy_event_channel(ends.channels[0]);
    ends.channels[0] = to;
    struct rdma_cm_event *event = expect_event(to, RDMA_CM_EVENT_CONNECT_REQUEST);
    ends.server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    poller.fd = to->fd;
    assert_int_equal(poll(&poller, 1, 0), 0);
    close_ends(&ends);
}

// At the address itself, and at any.
static void connect__over_ipv6(void **state)
{
    static const char *const listening[] = {"::1", "::"};
    if (!fixture_has_ipv6)
        skip();
    for (int i = 0; i < 2; i++) {
        struct ends ends;
        open_ends_at(&ends, RDMA_PS_TCP, listening[i], "::1");
        call(&ends);
        take_call(&ends);
        assert_int_equal(ends.server->route.addr.src_addr.sa_family, AF_INET6);
        assert_int_equal(ends.server->route.addr.dst_addr.sa_family, AF_INET6);
        accept_call(&ends);
        close_ends(&ends);
    }
}

// A listener at any IPv6 address is reached by IPv4, unless it wants its own family only.
static void connect__ipv4_to_a_listener_of_ipv6(void **state)
{
    struct ends ends;
    if (!fixture_has_ipv6)
        skip();
    open_ends_at(&ends, RDMA_PS_TCP, "::", fixture_address);
    call(&ends);
    take_call(&ends);
    accept_call(&ends);
    close_ends(&ends);

    struct sockaddr_storage any = fixture_sockaddr("::", 0);
    int one = 1;
    open_ends(&ends, RDMA_PS_TCP);
    assert_int_equal(rdma_destroy_id(ends.listener), 0);
    assert_int_equal(rdma_create_id(ends.channels[0], &ends.listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_set_option(ends.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)), 0);
    ((struct sockaddr_in6 *)&any)->sin6_port = rdma_get_dst_port(ends.client);
    assert_int_equal(rdma_bind_addr(ends.listener, (struct sockaddr *)&any), 0);
    assert_int_equal(rdma_listen(ends.listener, 1), 0);
    call(&ends);
    pass_event(ends.channels[1], RDMA_CM_EVENT_REJECTED);
    close_ends(&ends);
}

// The port spaces have each their own ports.
static void connect__port_space_ib(void **state)
{
    struct ends ends;
    struct rdma_cm_id *same_port;
    open_ends(&ends, RDMA_PS_IB);
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, ends.port);
    assert_int_equal(rdma_create_id(NULL, &same_port, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(same_port, (struct sockaddr *)&here), 0);
    call(&ends);
    take_call(&ends);
    accept_call(&ends);
    assert_int_equal(rdma_destroy_id(same_port), 0);
    close_ends(&ends);
}

static void connect__rejected_with_words(void **state)
{
    struct ends ends;
    open_ends(&ends, RDMA_PS_TCP);
    call(&ends);
    take_call(&ends);
    assert_int_equal(rdma_reject(ends.server, "not today", 10), 0);
    struct rdma_cm_event *event = expect_event(ends.channels[1], RDMA_CM_EVENT_REJECTED);
    assert_int_equal(event->status, 28); // consumer defined
    assert_string_equal(event->param.conn.private_data, "not today");
    assert_int_equal(rdma_ack_cm_event(event), 0);
    close_ends(&ends);
}

static struct rdma_cm_id *accept_another(struct ends *ends)
{
    struct rdma_conn_param param = {.retry_count = 7};
    struct rdma_cm_event *event = expect_event(ends->channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    fixture_create_qp(id);
    assert_int_equal(rdma_accept(id, &param), 0);
    return id;
}

// The program has moved it itself.
static void connect__a_queue_pair_that_cannot_be_moved(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    struct ends ends;
    int mask;
    open_ends(&ends, RDMA_PS_TCP);
    struct pollfd poller = {.fd = ends.channels[1]->fd, .events = POLLIN};
    call(&ends);
    ends.server = accept_another(&ends);
    assert_int_equal(poll(&poller, 1, -1), 1);
    assert_int_equal(rdma_init_qp_attr(ends.client, &attr, &mask), 0);
    assert_int_equal(ibv_modify_qp(ends.client->qp, &attr, mask), 0);
    pass_event(ends.channels[1], RDMA_CM_EVENT_CONNECT_ERROR);
    assert_int_equal(attributes_of(ends.client->qp).qp_state, IBV_QPS_ERR);
    pass_event(ends.channels[0], RDMA_CM_EVENT_REJECTED);
    close_ends(&ends);
}

// The peer takes its answer back before the caller has heard it: CONNECT_ERROR says it all.
static void connect__fails_once(void **state)
{
    struct rdma_event_channel *later = rdma_create_event_channel();
    struct rdma_conn_param param = {.retry_count = 7};
    struct rdma_cm_event *event;
    struct ends ends;
    open_ends(&ends, RDMA_PS_TCP);
    struct pollfd poller = {.fd = ends.channels[1]->fd, .events = POLLIN};
    call(&ends);
    ends.server = accept_another(&ends);
    assert_int_equal(poll(&poller, 1, -1), 1);
    close_id(ends.server);
    struct rdma_cm_id *client = fixture_resolved(later, RDMA_PS_TCP, ends.port); // answered after that
    fixture_create_qp(client);
    assert_int_equal(rdma_connect(client, &param), 0);
    ends.server = accept_another(&ends);
    pass_event(later, RDMA_CM_EVENT_ESTABLISHED);
    pass_event(ends.channels[1], RDMA_CM_EVENT_CONNECT_ERROR);
    assert_int_equal(attributes_of(ends.client->qp).qp_state, IBV_QPS_ERR);
    assert_int_equal(fcntl(ends.channels[1]->fd, F_SETFL, O_NONBLOCK), 0);
    expect_errno(rdma_get_cm_event(ends.channels[1], &event), EAGAIN);
    close_id(client);
    close_ends(&ends);
    rdma_destroy_event_channel(later);
}

static void connect__nobody_listens(void **state)
{
    struct ends ends;
    open_ends(&ends, RDMA_PS_TCP);
    assert_int_equal(rdma_destroy_id(ends.listener), 0);
    ends.listener = NULL;
    call(&ends);
    struct rdma_cm_event *event = expect_event(ends.channels[1], RDMA_CM_EVENT_REJECTED);
    assert_int_equal(event->status, 8); // invalid service id
    assert_int_equal(rdma_ack_cm_event(event), 0);
    close_ends(&ends);
}

// A request that is not taken ends with its listener.
static void connect__the_listener_goes(void **state)
{
    struct ends ends;
    open_ends(&ends, RDMA_PS_TCP);
    call(&ends);
    struct rdma_cm_event *event = expect_event(ends.channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
    ends.server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    assert_int_equal(rdma_destroy_id(ends.server), 0);
    ends.server = NULL;
    pass_event(ends.channels[1], RDMA_CM_EVENT_REJECTED);
    close_ends(&ends);
}

static void connect__private_data_too_long(void **state)
{
    static char bytes[255];
    struct ends ends;
    struct rdma_conn_param param = {.private_data = bytes, .private_data_len = 57};
    open_ends(&ends, RDMA_PS_TCP);
    expect_errno(rdma_connect(ends.client, &param), EINVAL);
    param.private_data_len = 56;
    assert_int_equal(rdma_connect(ends.client, &param), 0);
    expect_errno(rdma_connect(ends.client, &param), EINVAL); // it is connecting
    struct rdma_cm_event *event = expect_event(ends.channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
    ends.server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    param.private_data_len = 197;
    expect_errno(rdma_accept(ends.server, &param), EINVAL);
    expect_errno(rdma_reject(ends.server, bytes, 149), EINVAL);
    close_ends(&ends);
}

// None, whatever its length.
static void connect__private_data_that_is_not_there(void **state)
{
    struct ends ends;
    struct rdma_conn_param param = {.private_data_len = 8};
    open_ends(&ends, RDMA_PS_TCP);
    assert_int_equal(rdma_connect(ends.client, &param), 0);
    struct rdma_cm_event *event = expect_event(ends.channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
    ends.server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    assert_int_equal(rdma_reject(ends.server, NULL, 10), 0);
    pass_event(ends.channels[1], RDMA_CM_EVENT_REJECTED);
    close_ends(&ends);
    open_ends(&ends, RDMA_PS_TCP);
    call(&ends);
    take_call(&ends);
    assert_int_equal(rdma_accept(ends.server, &param), 0);
    pass_event(ends.channels[1], RDMA_CM_EVENT_ESTABLISHED);
    close_ends(&ends);
}

static void connect__more_reads_than_the_device_has(void **state)
{
    struct ends ends;
    open_ends(&ends, RDMA_PS_TCP);
    expect_errno(rdma_connect(ends.client, &(struct rdma_conn_param){.responder_resources = 200}), EINVAL);
    expect_errno(rdma_connect(ends.client, &(struct rdma_conn_param){.initiator_depth = 200}), EINVAL);
    call(&ends);
    take_call(&ends);
    expect_errno(rdma_accept(ends.server, &(struct rdma_conn_param){.responder_resources = 200}), EINVAL);
    accept_call(&ends);
    close_ends(&ends);
}

static void datagrams__address_and_number_are_learnt(void **state)
{
    struct ends ends;
    open_ends(&ends, RDMA_PS_UDP);
    call(&ends);
    take_call(&ends);
    struct rdma_conn_param param = {.private_data = "come in", .private_data_len = 8};
    assert_int_equal(rdma_accept(ends.server, &param), 0);
    struct rdma_cm_event *event = expect_event(ends.channels[1], RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(event->param.ud.qp_num, ends.server->qp->qp_num);
    assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
    assert_string_equal(event->param.ud.private_data, "come in");
    struct ibv_ah *ah = ibv_create_ah(ends.client->pd, &event->param.ud.ah_attr);
    assert_non_null(ah);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(rdma_ack_cm_event(event), 0);
    close_ends(&ends);
}

// Of programs that own their queue pairs: both learn what the other wants to agree on, and it can be refused.
static void ece__is_exchanged_and_rejected(void **state)
{
    struct ends ends;
    struct ibv_ece ours = {.vendor_id = 0x15b3, .options = 0x10203}, theirs = {.comp_mask = 1};
    struct rdma_conn_param param = {.qp_num = 77};
    open_ends(&ends, RDMA_PS_TCP);
    expect_errno(rdma_set_local_ece(ends.client, &ours), EINVAL); // its queue pair is rdma_cm's
    expect_errno(rdma_get_remote_ece(ends.client, &theirs), EINVAL);
    rdma_destroy_qp(ends.client);
    expect_errno(rdma_set_local_ece(ends.client, &theirs), EINVAL);
    assert_int_equal(rdma_set_local_ece(ends.client, &ours), 0);
    assert_int_equal(rdma_connect(ends.client, &param), 0);
    struct rdma_cm_event *event = expect_event(ends.channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
    ends.server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    assert_int_equal(rdma_get_remote_ece(ends.server, &theirs), 0);
    assert_memory_equal(&theirs, &ours, sizeof(ours));
    ours.options = 0x10000;
    param.qp_num++; // two queue pairs of one host have two numbers
    assert_int_equal(rdma_set_local_ece(ends.server, &ours), 0);
    assert_int_equal(rdma_accept(ends.server, &param), 0);
    pass_event(ends.channels[1], RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_int_equal(rdma_get_remote_ece(ends.client, &theirs), 0);
    assert_memory_equal(&theirs, &ours, sizeof(ours));
    assert_int_equal(rdma_reject_ece(ends.client, NULL, 0), 0);
    event = expect_event(ends.channels[0], RDMA_CM_EVENT_REJECTED);
    assert_int_equal(event->status, 35); // vendor option not supported
    assert_int_equal(rdma_ack_cm_event(event), 0);
    close_ends(&ends);
}

// As with a kernel's rdma_cm: a queue pair that is moved too early must not end up connected to queue pair 0.
static void init_qp_attr__once_the_peer_is_known(void **state)
{
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .qp_num = 0x123456};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    struct ends ends;
    int mask;
    open_ends(&ends, RDMA_PS_TCP);
    rdma_destroy_qp(ends.client); // the queue pairs are the program's own
    expect_errno(rdma_init_qp_attr(ends.client, &attr, &mask), EINVAL);
    assert_int_equal(rdma_connect(ends.client, &param), 0);
    expect_errno(rdma_init_qp_attr(ends.client, &attr, &mask), EINVAL);
    attr.qp_state = IBV_QPS_RTS;
    expect_errno(rdma_init_qp_attr(ends.client, &attr, &mask), EINVAL);
    attr.qp_state = IBV_QPS_INIT;
    assert_int_equal(rdma_init_qp_attr(ends.client, &attr, &mask), 0);
    struct rdma_cm_event *event = expect_event(ends.channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
    ends.server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(rdma_init_qp_attr(ends.server, &attr, &mask), 0);
    assert_int_equal(attr.dest_qp_num, 0x123456);
    param.qp_num = 0x654321;
    assert_int_equal(rdma_accept(ends.server, &param), 0);
    pass_event(ends.channels[1], RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_int_equal(rdma_init_qp_attr(ends.client, &attr, &mask), 0);
    assert_int_equal(attr.dest_qp_num, 0x654321);
    close_ends(&ends);
}

static void calls__without_a_connection(void **state)
{
    struct ends ends;
    open_ends(&ends, RDMA_PS_TCP);
    expect_errno(rdma_disconnect(ends.client), EINVAL);
    expect_errno(rdma_accept(ends.client, NULL), EINVAL);
    expect_errno(rdma_reject(ends.client, NULL, 0), EINVAL);
    expect_errno(rdma_establish(ends.client), EINVAL);
    expect_errno(rdma_notify(ends.client, IBV_EVENT_COMM_EST), EINVAL);
    expect_errno(rdma_accept(ends.listener, NULL), EINVAL);
    expect_errno(rdma_listen(ends.listener, 1), EINVAL);
    close_ends(&ends);
}

// Connects, and ends without a word about it.
static void connect_and_exit(uint16_t port)
{
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = fixture_resolved(channel, RDMA_PS_TCP, port);
    fixture_create_qp(id);
    assert_int_equal(rdma_connect(id, &param), 0);
    pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    exit(0);
}

// As a kernel does for the process. QEMU's iSCSI driver leaves it to that.
static void connect__a_process_that_exits_disconnects(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); // it cannot follow a child that starts threads
#endif
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct pollfd told = {.fd = channel->fd, .events = POLLIN};
    int status;
    uint16_t port;
    struct rdma_cm_id *listener = fixture_listener(channel, RDMA_PS_TCP, &port);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        connect_and_exit(port);
    struct rdma_cm_event *event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    fixture_create_qp(server);
    assert_int_equal(rdma_accept(server, &param), 0);
    pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(poll(&told, 1, 10000), 1);
    pass_event(channel, RDMA_CM_EVENT_DISCONNECTED);
    close_id(server);
    close_id(listener);
    rdma_destroy_event_channel(channel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connect__data_flows_and_both_part),
        cmocka_unit_test(connect__reads_as_deep_as_the_peer_grants),
        cmocka_unit_test(connect__timewait_begins_with_the_programs_own_word),
        cmocka_unit_test(connect__beyond_the_backlog_is_not_queued),
        cmocka_unit_test(connect__takes_too_many_retries_for_the_most),
        cmocka_unit_test(channel__ends_its_ids),
        cmocka_unit_test(migrate__takes_requests_along),
        cmocka_unit_test(migrate__takes_along_a_request_that_was_given_up),
        cmocka_unit_test(connect__over_ipv6),
        cmocka_unit_test(connect__ipv4_to_a_listener_of_ipv6),
        cmocka_unit_test(connect__port_space_ib),
        cmocka_unit_test(connect__rejected_with_words),
        cmocka_unit_test(connect__a_queue_pair_that_cannot_be_moved),
        cmocka_unit_test(connect__fails_once),
        cmocka_unit_test(connect__nobody_listens),
        cmocka_unit_test(connect__the_listener_goes),
        cmocka_unit_test(connect__private_data_too_long),
        cmocka_unit_test(connect__private_data_that_is_not_there),
        cmocka_unit_test(connect__more_reads_than_the_device_has),
        cmocka_unit_test(datagrams__address_and_number_are_learnt),
        cmocka_unit_test(ece__is_exchanged_and_rejected),
        cmocka_unit_test(init_qp_attr__once_the_peer_is_known),
        cmocka_unit_test(calls__without_a_connection),
        cmocka_unit_test(connect__a_process_that_exits_disconnects),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
