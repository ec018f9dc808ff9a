// SPDX-License-Identifier: BSD-2-Clause
// Unreliable connected service, the receiving side: a message with a gap is lost whole, and nothing is reported.
#include "engine/tests/pair_expect.h"

enum {
    MTU = 1024,
};

static void post(struct pair_qps *c, enum alb_wr_opcode opcode, uint64_t wr_id, uint32_t offset, uint32_t length)
{
    struct alb_sge sge = pair_sge(c->pair, 0, offset, length);
    struct alb_send_wr wr = {
        .wr_id = wr_id,
        .opcode = opcode,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .imm_data = 0x1234,
        .remote_addr = pair_va(c->pair, 1, offset),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
    };
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
}

static uint64_t dropped(const struct pair_qps *c, enum alb_drop reason)
{
    return c->pair->hosts[1].stats.dropped[reason];
}

static void uc__sends_and_writes_arrive(void **state)
{
    struct pair_qps *c = *state;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 100000, 3 * MTU), 0);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 2, 0, 0), 0);
    post(c, ALB_WR_SEND, 11, 0, 2 * MTU + 1);
    post(c, ALB_WR_RDMA_WRITE, 12, 5000, MTU + 3);
    post(c, ALB_WR_RDMA_WRITE_WITH_IMM, 13, 9000, 77);
    pair_settle(c->pair);
    for (uint64_t i = 11; i <= 13; i++)
        pair_expect(c->pair, 0, i, ALB_WC_SUCCESS);
    pair_expect(c->pair, 1, 1, ALB_WC_SUCCESS);
    pair_expect(c->pair, 1, 2, ALB_WC_SUCCESS);
    const uint8_t *from = c->pair->hosts[0].memory;
    const uint8_t *to = c->pair->hosts[1].memory;
    assert_memory_equal(to + 100000, from, 2 * MTU + 1);
    assert_memory_equal(to + 5000, from + 5000, MTU + 3);
    assert_memory_equal(to + 9000, from + 9000, 77);
}

static void uc__nothing_is_answered(void **state)
{
    struct pair_qps *c = *state;
    post(c, ALB_WR_RDMA_WRITE, 1, 0, MTU);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(pair_send(c->pair, 1), 0);
}

// Whichever packet of a message is lost, the message is, and the one behind it arrives in the same receive.
static void uc__a_gap_loses_one_message(void **state)
{
    struct pair_qps *c = *state;
    for (uint32_t lost = 0; lost < 3; lost++) {
        assert_int_equal(pair_receive(c->pair, c->qps[1], 10 + lost, 100000, 3 * MTU), 0);
        post(c, ALB_WR_SEND, 1, 0, 3 * MTU);
        post(c, ALB_WR_SEND, 2, 8192, 3 * MTU);
        assert_int_equal(pair_send(c->pair, 0), 6);
        for (uint32_t i = 0; i < 6; i++)
            i == lost ? pair_lose(c->pair, 0) : pair_deliver(c->pair, 0);
        pair_expect(c->pair, 1, 10 + lost, ALB_WC_SUCCESS);
        pair_expect_none(c->pair, 1);
        assert_memory_equal(c->pair->hosts[1].memory + 100000, c->pair->hosts[0].memory + 8192, 3 * MTU);
        pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
        pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
    }
}

static void uc__packets_out_of_order_lose_their_message(void **state)
{
    struct pair_qps *c = *state;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 100000, 3 * MTU), 0);
    post(c, ALB_WR_SEND, 1, 0, 3 * MTU);
    pair_send(c->pair, 0);
    struct alb_list *second = c->pair->wire[0].next->next;
    alb_list_remove(second);
    alb_list_push_front(&c->pair->wire[0], second);
    pair_deliver_all(c->pair, 0);
    pair_expect_none(c->pair, 1);
    assert_true(dropped(c, ALB_DROP_OUT_OF_SEQUENCE) > 0);
    post(c, ALB_WR_SEND, 2, 4096, 3 * MTU);
    pair_settle(c->pair);
    pair_expect(c->pair, 1, 1, ALB_WC_SUCCESS);
}

// The target may have been away: the first message of whatever number is taken.
static void uc__a_gap_before_a_message_costs_nothing_of_it(void **state)
{
    struct pair_qps *c = *state;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 0, MTU), 0);
    for (int i = 0; i < 5; i++)
        post(c, ALB_WR_RDMA_WRITE, 1, 0, 8);
    post(c, ALB_WR_SEND, 2, 0, 8);
    pair_send(c->pair, 0);
    for (int i = 0; i < 5; i++)
        pair_lose(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_expect(c->pair, 1, 1, ALB_WC_SUCCESS);
    assert_int_equal(dropped(c, ALB_DROP_OUT_OF_SEQUENCE), 0);
}

static void uc__no_receive_drops_the_message(void **state)
{
    struct pair_qps *c = *state;
    post(c, ALB_WR_SEND, 1, 0, 2 * MTU);
    pair_settle(c->pair);
    assert_int_equal(dropped(c, ALB_DROP_NO_RECEIVE), 1);
    assert_int_equal(dropped(c, ALB_DROP_OUT_OF_SEQUENCE), 1); // the rest of it
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
}

static void uc__too_long_a_message_leaves_the_receive(void **state)
{
    struct pair_qps *c = *state;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 100000, 100), 0);
    post(c, ALB_WR_SEND, 1, 0, 101);
    pair_settle(c->pair);
    pair_expect_none(c->pair, 1);
    assert_int_equal(dropped(c, ALB_DROP_RECEIVE_TOO_SHORT), 1);
    post(c, ALB_WR_SEND, 2, 0, 100);
    pair_settle(c->pair);
    pair_expect(c->pair, 1, 1, ALB_WC_SUCCESS);
}

static void uc__memory_that_is_not_the_peers(void **state)
{
    struct pair_qps *c = *state;
    post(c, ALB_WR_RDMA_WRITE, 1, PAIR_MEMORY_BYTES - 4, 4);
    struct alb_send_wqe *wqe = alb_send_queue_at(&c->qps[0]->sq, 0);
    wqe->remote_addr++;
    pair_settle(c->pair);
    assert_int_equal(dropped(c, ALB_DROP_ACCESS), 1);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS); // the sender never learns
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
}

// A receive whose own key is bad cannot be used: it completes in error, and so does the queue pair (10.3.1.5).
static void uc__a_broken_receive_is_an_error_of_ours(void **state)
{
    struct pair_qps *c = *state;
    struct alb_event event;
    struct alb_sge sge = {.addr = 8, .length = 64, .lkey = 12345};
    bool bell;
    assert_int_equal(alb_qp_recv_post(c->qps[1], 1, &sge, 1, &bell), 0);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 2, 0, 64), 0);
    post(c, ALB_WR_SEND, 1, 0, 8);
    pair_settle(c->pair);
    pair_expect(c->pair, 1, 1, ALB_WC_LOC_PROT_ERR);
    pair_expect(c->pair, 1, 2, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_true(pair_event(c->pair, 1, ALB_EVENT_QP_FAILED, &event));
    assert_true(event.failure.at_responder);
}

static void uc__solicited(void **state)
{
    struct pair_qps *c = *state;
    struct alb_event event;
    struct alb_sge sge = pair_sge(c->pair, 0, 0, 8);
    struct alb_send_wr wr = {.opcode = ALB_WR_SEND, .sge = &sge, .sge_count = 1};
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 0, 64), 0);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 2, 0, 64), 0);
    alb_cq_arm(c->pair->hosts[1].cq, ALB_CQ_ARM_SOLICITED);
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    pair_settle(c->pair);
    assert_false(pair_event(c->pair, 1, ALB_EVENT_CQ_NOTIFY, &event));
    wr.flags = ALB_SEND_SOLICITED;
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    pair_settle(c->pair);
    assert_true(pair_event(c->pair, 1, ALB_EVENT_CQ_NOTIFY, &event));
}

static void uc__in_error_nothing_is_received(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    post(c, ALB_WR_RDMA_WRITE, 1, 0, 8);
    pair_settle(c->pair);
    assert_int_equal(dropped(c, ALB_DROP_WRONG_QP_STATE), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_UC_TEST(uc__sends_and_writes_arrive),
        PAIR_UC_TEST(uc__nothing_is_answered),
        PAIR_UC_TEST(uc__a_gap_loses_one_message),
        PAIR_UC_TEST(uc__packets_out_of_order_lose_their_message),
        PAIR_UC_TEST(uc__a_gap_before_a_message_costs_nothing_of_it),
        PAIR_UC_TEST(uc__no_receive_drops_the_message),
        PAIR_UC_TEST(uc__too_long_a_message_leaves_the_receive),
        PAIR_UC_TEST(uc__memory_that_is_not_the_peers),
        PAIR_UC_TEST(uc__a_broken_receive_is_an_error_of_ours),
        PAIR_UC_TEST(uc__solicited),
        PAIR_UC_TEST(uc__in_error_nothing_is_received),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
