// SPDX-License-Identifier: BSD-2-Clause
// Round-trip times, measured and reported.
#include "engine/tests/csa_pair.h"

#define MS ALB_NS_PER_MS

static void rtt__is_smoothed(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc *assoc = c->csa[0]->assoc;
    assert_int_equal(alb_assoc_rtt_ns(assoc), MS); // nothing is known
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], assoc);
    live->peer_rtt_ns = 300000;
    assert_int_equal(alb_assoc_rtt_ns(assoc), 300000); // what the peer says, if that is all
    alb_assoc_on_rtt(live, 80000);
    assert_int_equal(alb_assoc_rtt_ns(assoc), 80000);
    assert_int_equal(live->rtt_var_ns, 10000);
    alb_assoc_on_rtt(live, 160000);
    assert_int_equal(live->rtt_ns, 90000);
    assert_int_equal(live->rtt_min_ns, 80000);
    assert_int_equal(live->rtt_var_ns, 27500);
    assert_int_equal(alb_assoc_margin_ns(c->engines[0], assoc), 90000); // four times the variation, or a round trip
}

static void margin__is_a_round_trip_at_most(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc *assoc = c->csa[0]->assoc;
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], assoc);
    live->rtt_ns = live->rtt_min_ns = 1600;
    live->rtt_var_ns = 1500000000;
    assert_int_equal(alb_assoc_margin_ns(c->engines[0], assoc), 1600);
    live->rtt_var_ns = 0;
    assert_int_equal(alb_assoc_margin_ns(c->engines[0], assoc), 200);
    live->rtt_ns = 10; // a floor for what clocks and processors do
    assert_int_equal(alb_assoc_margin_ns(c->engines[0], assoc), c->engines[0]->config.csa_margin_min_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(rtt__is_smoothed),
        CSA_PAIR_TEST(margin__is_a_round_trip_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
