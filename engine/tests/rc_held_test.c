// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs that the window toward a peer holds back, while that peer is silent or gone.
#include "engine/tests/rc_completer.h"

// Connects count more queue pairs, of which each has as much to send as the window is wide.
static void ask_by_many(struct pair_qps *c, struct alb_qp *many[][2], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        pair_connect(c->pair, ALB_QPT_RC, many[i], NULL);
        assert_int_equal(pair_ask(c->pair, many[i][0], ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 0, 64 * MTU), 0);
    }
}

// They share a window that has room for a few of them; but where nothing comes from the peer, none waits for the others
// to fail. One alone takes 27 timeouts.
static void held__all_notice_a_dead_peer_side_by_side(void **state)
{
    enum { MANY = 60 };
    struct pair_qps *c = *state;
    struct alb_qp *many[MANY][2];
    struct alb_wc wc;
    uint32_t failed = 0, quarters = 0;
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    ask_by_many(c, many, MANY);
    for (; failed < MANY && quarters < 4 * 1000; quarters++) {
        pair_send(c->pair, 0);
        lose_all(c, 0);
        pair_pass(c->pair, TIMEOUT_NS / 4);
        for (; pair_poll(c->pair, 0, &wc); failed++)
            assert_int_equal(wc.status, ALB_WC_RETRY_EXC_ERR);
    }
    assert_in_range(quarters / 4, 27, 2 * 27);
    assert_int_equal(alb_engine_deadline(c->pair->hosts[0].engine), ALB_TIME_NEVER);
}

// By acknowledgements: such as most are, or with a flag, so that they are taken the general way (rc_usual.c).
static void be_held_while_the_peer_is_heard(struct pair_qps *c, bool is_usual)
{
    enum { MANY = 20 };
    struct alb_roce heard = response(c, ALB_RC_ACK, 0, ACK);
    heard.becn = !is_usual;
    struct alb_qp *many[MANY][2];
    ask(c, ALB_WR_RDMA_WRITE, MANY, 8);
    ask_by_many(c, many, MANY);
    const struct alb_peer *peer = c->qps[0]->peer;
    for (uint32_t halves = 0; halves < 2 * 24; halves++) {
        pair_send(c->pair, 0);
        lose_all(c, 0);
        if (counted(c, ALB_STAT_local_ack_timeout_err) > 0)
            assert_in_range(peer->inflight_bytes, 1, peer->congestion.window_bytes);
        pair_pass(c->pair, TIMEOUT_NS / 2);
        pair_inject(c->pair, 1, &heard, NULL, 0);
    }
    pair_settle(c->pair);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(alb_qp_current_state(many[i][0]), ALB_QPS_RTS);
        assert_int_equal(alb_rc_of(many[i][0])->retries_left, 7);
    }
    pair_pass(c->pair, 100 * (alb_time)TIMEOUT_NS); // and nothing of it is left
    assert_int_equal(alb_qp_current_state(many[MANY - 1][0]), ALB_QPS_RTS);
}

// As long as the peer answers anyone, those whom the window holds back wait, and it costs them nothing.
static void held__costs_nothing_while_the_peer_is_heard(void **state)
{
    be_held_while_the_peer_is_heard(*state, true);
}

static void held__costs_nothing_while_the_peer_is_heard_unusually(void **state)
{
    be_held_while_the_peer_is_heard(*state, false);
}

static void for_ever(struct alb_qp_attr *attr, int side)
{
    attr->timeout = 0;
}

// The window is full of what was lost of one that never asks again: the peer is there, though nothing comes from it.
static void get_through_a_full_window(struct pair_qps *c)
{
    struct alb_qp *patient[2];
    pair_connect(c->pair, ALB_QPT_RC, patient, for_ever);
    assert_int_equal(pair_ask(c->pair, patient[0], ALB_WR_RDMA_WRITE, 1, 0, 0, 128 * MTU), 0);
    pair_send(c->pair, 0);
    lose_all(c, 0);
    ask(c, ALB_WR_RDMA_WRITE, 2, MTU);
    struct alb_wc wc;
    uint32_t timeouts = 0;
    for (; !pair_poll(c->pair, 0, &wc) && timeouts < 2 * 27; timeouts++) {
        pair_settle(c->pair);
        pair_pass(c->pair, TIMEOUT_NS);
    }
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
    assert_in_range(timeouts, 2, 2 * 27 - 1);
}

static void held__asks_a_silent_peer_though_the_window_is_full(void **state)
{
    struct pair_qps *c = *state;
    get_through_a_full_window(c);
    assert_int_equal(alb_rc_of(c->qps[0])->retries_left, 7);
}

// What was spent in silence had made its time longer.
static void held__is_as_quick_to_notice_a_loss_afterwards(void **state)
{
    struct pair_qps *c = *state;
    get_through_a_full_window(c);
    ask(c, ALB_WR_RDMA_WRITE, 3, 8);
    assert_int_equal(pair_send(c->pair, 0), 1);
    lose_all(c, 0);
    pair_pass(c->pair, TIMEOUT_NS);
    assert_int_equal(counted(c, ALB_STAT_local_ack_timeout_err), 1);
}

// New retries are given while some of the old ones are spent: none of those come back on top.
static void held__retries_that_are_given_anew(void **state)
{
    const struct alb_qp_attr drain = {.state = ALB_QPS_SQD, .retry_cnt = 3}, go_on = {.state = ALB_QPS_RTS};
    struct pair_qps *c = *state;
    struct alb_qp *patient[2];
    struct alb_rc *rc = alb_rc_of(c->qps[0]);
    pair_connect(c->pair, ALB_QPT_RC, patient, for_ever);
    assert_int_equal(pair_ask(c->pair, patient[0], ALB_WR_RDMA_WRITE, 1, 0, 0, 128 * MTU), 0);
    pair_send(c->pair, 0);
    lose_all(c, 0);
    ask(c, ALB_WR_RDMA_WRITE, 2, MTU);
    pair_send(c->pair, 0);
    for (; rc->held_timeouts < 2; pair_send(c->pair, 0))
        pair_pass(c->pair, TIMEOUT_NS);
    assert_int_equal(rc->retries_left, 5);
    assert_int_equal(alb_qp_modify(c->qps[0], &drain, ALB_QP_STATE, c->pair->now), 0);
    assert_int_equal(alb_qp_modify(c->qps[0], &drain, ALB_QP_STATE | ALB_QP_RETRY_CNT, c->pair->now), 0);
    assert_int_equal(rc->retries_left, 3);
    assert_int_equal(rc->held_timeouts, 0);
    assert_int_equal(alb_qp_modify(c->qps[0], &go_on, ALB_QP_STATE, c->pair->now), 0);
    for (uint32_t i = 0; i < 2 * 27; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, TIMEOUT_NS);
    }
    pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
    assert_int_equal(rc->retries_left, 3);
    assert_int_equal(rc->timeouts, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_RC_TEST(held__all_notice_a_dead_peer_side_by_side),
        PAIR_RC_TEST(held__costs_nothing_while_the_peer_is_heard),
        PAIR_RC_TEST(held__costs_nothing_while_the_peer_is_heard_unusually),
        PAIR_RC_TEST(held__asks_a_silent_peer_though_the_window_is_full),
        PAIR_RC_TEST(held__is_as_quick_to_notice_a_loss_afterwards),
        PAIR_RC_TEST(held__retries_that_are_given_anew),
    };
    return cmocka_run_group_tests_name("rc_held", tests, NULL, NULL);
}
