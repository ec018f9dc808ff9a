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

static void use_window(struct alb_engine_config *config)
{
    config->congestion = "window";
}

static void landed__tells_the_policy_how_busy_the_host_is(void **state)
{
    struct csa_pair *c = csa_pair_new(use_window, NULL);
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    alb_csa_note_landed(live, 0, 1000);
    assert_int_equal(live->congestion.window.host_load, 0); // not told yet
    alb_engine_note_host_load(c->engines[0], 3 * ALB_HOST_LOAD_ONE);
    alb_csa_note_landed(live, 0, 2000);
    assert_int_equal(live->congestion.window.host_load, 3 * ALB_HOST_LOAD_ONE);
    alb_engine_note_host_load(c->engines[0], 1000 * ALB_HOST_LOAD_ONE);
    alb_csa_note_landed(live, 0, 3000);
    assert_int_equal(live->congestion.window.host_load, ALB_HOST_LOAD_MAX);
    csa_pair_free(c);
}

static void use_dcqcn(struct alb_engine_config *config)
{
    config->congestion = "dcqcn";
}

// A sender that is paced asks for reports by what leaves in a round trip, however wide the window is: what it has not
// asked about would be silence to it.
static void flow__of_a_paced_sender_is_what_leaves_in_a_round_trip(void **state)
{
    struct csa_pair *c = csa_pair_new(use_dcqcn, NULL);
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    live->rtt_ns = 200 * ALB_NS_PER_US;
    assert_int_equal(alb_assoc_flow_bytes(live), live->congestion.window_bytes); // nothing has slowed it yet
    live->congestion.dcqcn.is_limited = true;
    live->congestion.dcqcn.rate_bytes_per_s = 50000000;
    assert_int_equal(alb_assoc_flow_bytes(live), 10000);
    live->in_line = 1;
    assert_false(alb_assoc_report_is_due(live, 10000 / 4 - 1));
    assert_true(alb_assoc_report_is_due(live, 10000 / 4));
    live->credit_bytes = 5000;
    assert_int_equal(alb_assoc_flow_bytes(live), 5000);
    csa_pair_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(window__lets_one_segment_go_in_any_case),
        cmocka_unit_test(landed__tells_the_policy_how_busy_the_host_is),
        cmocka_unit_test(flow__of_a_paced_sender_is_what_leaves_in_a_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
