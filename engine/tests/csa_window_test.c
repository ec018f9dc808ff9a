// SPDX-License-Identifier: BSD-2-Clause
// What may be in flight.
#include "engine/tests/csa_pair.h"

static void window__lets_one_segment_go_in_any_case(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    live->congestion.window_bytes = 1000;
    assert_true(alb_assoc_permits(live, 50000));
    alb_assoc_charge(live, 400);
    assert_true(alb_assoc_permits(live, 600));
    assert_false(alb_assoc_permits(live, 601));
    live->credit_bytes = 500; // of window and credit the smaller one
    assert_true(alb_assoc_permits(live, 100));
    assert_false(alb_assoc_permits(live, 101));
    live->credit_bytes = 0;
    assert_false(alb_assoc_permits(live, 1));
    alb_assoc_release(live, 400);
    assert_true(alb_assoc_permits(live, 50000));
}

enum {
    CROWD = 32, // streams that have more to send than a window holds of each
    CROWD_SEGMENTS = 4,
};

static void window__is_not_kept_by_streams_that_wait_for_their_turn_to_ask(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    struct alb_qp *qps[CROWD][2];
    live->congestion.window_bytes = CROWD * CSA_PAIR_CHARGE;
    for (uint32_t i = 0; i < CROWD; i++) {
        pair_connect(c->pair, ALB_QPT_RC, qps[i], NULL);
        assert_int_equal(
            pair_ask(c->pair, qps[i][0], ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 0, CROWD_SEGMENTS * CSA_PAIR_SEGMENT),
            0);
    }
    assert_int_equal(pair_send(c->pair, 0), CROWD);
    assert_int_equal(live->inflight_bytes, CROWD * CSA_PAIR_CHARGE);
    assert_int_equal(live->in_line, CROWD);
    pair_deliver_together(c->pair, 0, CROWD);
    pair_send(c->pair, 1);
    while (pair_count(c->pair, 1) > 0)
        pair_deliver(c->pair, 1);
    assert_int_equal(live->inflight_bytes, 0);
    pair_settle(c->pair);
    assert_int_equal(live->in_line, 0);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(window__lets_one_segment_go_in_any_case),
        CSA_GREETED_TEST(window__is_not_kept_by_streams_that_wait_for_their_turn_to_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
