// SPDX-License-Identifier: BSD-2-Clause
// Passive sides: what a program hears and knows of ids that requests have brought.
#include "fixture.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct sides {
    struct rdma_event_channel *channels[2]; // of the listener, and of the caller
    struct rdma_cm_id *listener, *server, *client;
};

static const struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};

// A call whose request has been taken; of the caller's type of service, at a listener of another.
static void call_with(struct sides *sides, uint8_t tos)
{
    uint8_t listeners_tos = 0x28;
    uint16_t port;
    struct rdma_conn_param asked = param;
    for (int i = 0; i < 2; i++)
        assert_non_null(sides->channels[i] = rdma_create_event_channel());
    sides->listener = fixture_listener(sides->channels[0], RDMA_PS_TCP, &port);
    sides->client = fixture_resolved(sides->channels[1], RDMA_PS_TCP, port);
    assert_int_equal(rdma_set_option(sides->listener, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &listeners_tos, 1), 0);
    assert_int_equal(rdma_set_option(sides->client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
    fixture_create_qp(sides->client);
    assert_int_equal(rdma_connect(sides->client, &asked), 0);
    struct rdma_cm_event *event = expect_event(sides->channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
    sides->server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    fixture_create_qp(sides->server);
}

static void call(struct sides *sides)
{
    call_with(sides, 0);
}

static void end(struct rdma_cm_id **id)
{
    if (*id && (*id)->qp)
        rdma_destroy_qp(*id);
    if (*id)
        assert_int_equal(rdma_destroy_id(*id), 0);
    *id = NULL;
}

static void end_sides(struct sides *sides)
{
    end(&sides->client);
    end(&sides->server);
    end(&sides->listener);
    for (int i = 0; i < 2; i++)
        rdma_destroy_event_channel(sides->channels[i]);
}

static enum ibv_qp_state state_of(struct rdma_cm_id *id)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

// The id has the listener's context still, and the program would take the event for one of the listener.
static void request__given_up_before_it_is_accepted(void **state)
{
    enum { LONG_ENOUGH_MS = 200 };
    struct sides sides;
    struct rdma_conn_param answer = param;
    call(&sides);
    struct pollfd poller = {.fd = sides.channels[0]->fd, .events = POLLIN};
    end(&sides.client);
    assert_int_equal(poll(&poller, 1, LONG_ENOUGH_MS), 0);
    expect_errno(rdma_accept(sides.server, &answer), EINVAL);
    assert_int_equal(state_of(sides.server), IBV_QPS_ERR);
    end_sides(&sides);
}

static void accept__with_too_much_to_say(void **state)
{
    static const char words[255];
    struct sides sides;
    struct rdma_conn_param answer = param;
    call(&sides);
    answer.private_data = words;
    answer.private_data_len = 197;
    expect_errno(rdma_accept(sides.server, &answer), EINVAL);
    answer.private_data_len = 196;
    assert_int_equal(rdma_accept(sides.server, &answer), 0);
    pass_event(sides.channels[1], RDMA_CM_EVENT_ESTABLISHED);
    end_sides(&sides);
}

// What the two say is of one class, the caller's: so it is with a kernel, also where the listener has another one.
static void request__brings_its_type_of_service(void **state)
{
    static const uint8_t types[] = {0x68, 0};
    for (size_t i = 0; i < sizeof(types); i++) {
        struct sides sides;
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
        int mask;
        call_with(&sides, types[i]);
        assert_int_equal(rdma_init_qp_attr(sides.server, &attr, &mask), 0);
        assert_int_equal(attr.ah_attr.grh.traffic_class, types[i]);
        end_sides(&sides);
    }
}

// The caller's, the other way round.
static void request__brings_its_path(void **state)
{
    struct sides sides;
    call_with(&sides, 0x68);
    assert_int_equal(sides.server->route.num_paths, 1);
    struct ibv_sa_path_rec path = *sides.server->route.path_rec, callers = *sides.client->route.path_rec;
    assert_memory_equal(&path.sgid, &callers.dgid, sizeof(path.sgid));
    assert_memory_equal(&path.dgid, &callers.sgid, sizeof(path.dgid));
    assert_int_equal(path.mtu, callers.mtu);
    assert_int_equal(path.packet_life_time, callers.packet_life_time);
    assert_int_equal(path.hop_limit, callers.hop_limit);
    assert_int_equal(path.pkey, callers.pkey);
    assert_int_equal(path.traffic_class, 0x68);
    end_sides(&sides);
}

// rdma_notify(3): who knows it already says so, and the error may be ignored. Before the answer there is nothing to
// establish.
static void notify__what_is_established(void **state)
{
    struct sides sides;
    struct rdma_conn_param answer = param;
    call(&sides);
    expect_errno(rdma_notify(sides.server, IBV_EVENT_COMM_EST), EINVAL);
    assert_int_equal(rdma_accept(sides.server, &answer), 0);
    pass_event(sides.channels[1], RDMA_CM_EVENT_ESTABLISHED);
    pass_event(sides.channels[0], RDMA_CM_EVENT_ESTABLISHED);
    expect_errno(rdma_notify(sides.server, IBV_EVENT_COMM_EST), EISCONN);
    expect_errno(rdma_notify(sides.client, IBV_EVENT_COMM_EST), EISCONN);
    end_sides(&sides);
}

// Connects, and then says no more.
static void connect_and_stop(uint16_t port)
{
    struct rdma_conn_param asked = param;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = fixture_resolved(channel, RDMA_PS_TCP, port);
    fixture_create_qp(id);
    assert_int_equal(rdma_connect(id, &asked), 0);
    pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    raise(SIGSTOP);
    _exit(0);
}

static void disconnect__from_one_that_does_not_answer(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); // it cannot follow a child that starts threads
#endif
    struct rdma_conn_param answer = param;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    uint16_t port;
    int status;
    struct rdma_cm_id *listener = fixture_listener(channel, RDMA_PS_TCP, &port);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        connect_and_stop(port);
    struct rdma_cm_event *event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    fixture_create_qp(server);
    assert_int_equal(rdma_accept(server, &answer), 0);
    pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(rdma_disconnect(server), 0);
    event = expect_event(channel, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(event->status, -ETIMEDOUT);
    assert_int_equal(rdma_ack_cm_event(event), 0);
    end(&server);
    end(&listener);
    rdma_destroy_event_channel(channel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request__given_up_before_it_is_accepted),
        cmocka_unit_test(accept__with_too_much_to_say),
        cmocka_unit_test(request__brings_its_type_of_service),
        cmocka_unit_test(request__brings_its_path),
        cmocka_unit_test(notify__what_is_established),
        cmocka_unit_test(disconnect__from_one_that_does_not_answer),
    };
    return cmocka_run_group_tests_name("passive", tests, fixture_setup, NULL);
}
