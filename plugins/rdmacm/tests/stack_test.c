// SPDX-License-Identifier: BSD-2-Clause
// The device works within the program's calls, and so on the stacks of its threads, which may be small: dapltest gives
// its threads 64 KiB, which the C library shares. What is deeper than the guard page lands, without a word from the
// kernel, in the memory of another thread.
#include "fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 512 * 1024, DEPTH_MAX = 20 * 1024, MESSAGE_BYTES = 256 * 1024, PAINT = 0xA5 };

static void wait_for(struct ibv_cq *cq, struct ibv_comp_channel *channel)
{
    struct ibv_wc wc;
    struct ibv_cq *told;
    void *context;
    assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
        assert_int_equal(ibv_get_cq_event(channel, &told, &context), 0);
        ibv_ack_cq_events(told, 1);
        assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
    }
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void exchange(struct rdma_cm_id *client, struct rdma_cm_id *server)
{
    static char from[MESSAGE_BYTES] = "on a small stack", to[MESSAGE_BYTES];
    struct ibv_mr *source = rdma_reg_msgs(client, from, sizeof(from));
    struct ibv_mr *target = rdma_reg_read(server, to, sizeof(to));
    assert_non_null(source);
    assert_non_null(target);
    assert_int_equal(rdma_post_recv(server, NULL, to, sizeof(to), target), 0);
    assert_int_equal(rdma_post_send(client, NULL, from, sizeof(from), source, 0), 0);
    wait_for(client->send_cq, client->send_cq_channel);
    wait_for(server->recv_cq, server->recv_cq_channel);
    assert_string_equal(to, from);
    assert_int_equal(rdma_post_read(client, NULL, from, sizeof(from), source, 0, (uintptr_t)to, target->rkey), 0);
    wait_for(client->send_cq, client->send_cq_channel);
    assert_int_equal(rdma_dereg_mr(source), 0);
    assert_int_equal(rdma_dereg_mr(target), 0);
}

static void *live(void *argument)
{
    struct rdma_event_channel *channels[2];
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};
    uint16_t port;
    for (int i = 0; i < 2; i++)
        assert_non_null(channels[i] = rdma_create_event_channel());
    struct rdma_cm_id *listener = fixture_listener(channels[0], RDMA_PS_TCP, &port);
    struct rdma_cm_id *client = fixture_resolved(channels[1], RDMA_PS_TCP, port);
    fixture_create_qp(client);
    assert_int_equal(rdma_connect(client, &param), 0);
    struct rdma_cm_event *event = expect_event(channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    fixture_create_qp(server);
    assert_int_equal(rdma_accept(server, &param), 0);
    pass_event(channels[1], RDMA_CM_EVENT_ESTABLISHED);
    pass_event(channels[0], RDMA_CM_EVENT_ESTABLISHED);
    exchange(client, server);
    assert_int_equal(rdma_disconnect(client), 0);
    pass_event(channels[0], RDMA_CM_EVENT_DISCONNECTED);
    rdma_destroy_qp(client);
    rdma_destroy_qp(server);
    assert_int_equal(rdma_destroy_id(client), 0);
    assert_int_equal(rdma_destroy_id(server), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
    for (int i = 0; i < 2; i++)
        rdma_destroy_event_channel(channels[i]);
    return NULL;
}

// How much of a painted stack has been written to.
static size_t depth_of(const uint8_t *stack)
{
    size_t clean = 0;
    while (clean < STACK_BYTES && stack[clean] == PAINT)
        clean++;
    return STACK_BYTES - clean;
}

static void stack__a_small_one_suffices(void **state)
{
    pthread_attr_t attr;
    pthread_t thread;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); // what they put around every variable is not ours
#endif
    uint8_t *stack = aligned_alloc(4096, STACK_BYTES);
    assert_non_null(stack);
    memset(stack, PAINT, STACK_BYTES);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstack(&attr, stack, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attr, live, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    size_t depth = depth_of(stack);
    print_message("%zu bytes of stack\n", depth);
    assert_in_range(depth, 1024, DEPTH_MAX);
    pthread_attr_destroy(&attr);
    free(stack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stack__a_small_one_suffices),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
