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
    alb_assoc_on_rtt(live, 80000, 0);
    assert_int_equal(alb_assoc_rtt_ns(assoc), 80000);
    assert_int_equal(live->rtt_var_ns, 10000);
    alb_assoc_on_rtt(live, 160000, 0);
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

// The clocks are 1,000,000 apart, and the way takes 500 at least.
static void way_back__what_waits_takes_longer(void **state)
{
    struct alb_way_back back = {0};
    assert_int_equal(alb_way_back_waited_ns(&back, 1000700, MS), 0); // the first says nothing
    assert_int_equal(alb_way_back_waited_ns(&back, 1000500, 2 * MS), 0);
    assert_int_equal(alb_way_back_waited_ns(&back, 1000500, 3 * MS), 0);
    assert_int_equal(alb_way_back_waited_ns(&back, 1030500, 4 * MS), 30000);
}

// Times are modulo 2^32, and the peer's clock may be ahead.
static void way_back__over_the_end_of_the_clock(void **state)
{
    struct alb_way_back back = {0};
    assert_int_equal(alb_way_back_waited_ns(&back, UINT32_MAX - 9, MS), 0);
    assert_int_equal(alb_way_back_waited_ns(&back, 40, 2 * MS), 50);
    assert_int_equal(alb_way_back_waited_ns(&back, UINT32_MAX - 19, 3 * MS), 0);
    assert_int_equal(alb_way_back_waited_ns(&back, 40, 4 * MS), 60);
}

// A peer's clock that goes slower makes what it sends seem to wait more and more: for two seconds at most.
static void way_back__clocks_that_drift_apart(void **state)
{
    struct alb_way_back back = {0};
    for (alb_time at = MS; at < 20000 * MS; at += 10 * MS)
        assert_true(alb_way_back_waited_ns(&back, (uint32_t)(at / 20000), at) <= 100000); // 50 parts in a million
    back = (struct alb_way_back){0};
    for (alb_time at = MS; at < 20000 * MS; at += 10 * MS)
        assert_int_equal(alb_way_back_waited_ns(&back, 0u - (uint32_t)(at / 20000), at), 0);
}

static void way_back__after_a_pause_it_is_learnt_anew(void **state)
{
    struct alb_way_back back = {0};
    alb_way_back_waited_ns(&back, 500, MS);
    assert_int_equal(alb_way_back_waited_ns(&back, 900000, 1500 * MS), 899500);
    assert_int_equal(alb_way_back_waited_ns(&back, 900000, 5000 * MS), 0);
}

static void way_back__a_sample_without_what_it_waited(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    alb_assoc_on_rtt(live, 80000, 10000);
    alb_assoc_on_rtt(live, 90000, 50000);
    assert_int_equal(live->rtt_sample_ns, 80000);
    assert_int_equal(live->there_sample_ns, 40000);
    alb_assoc_on_rtt(live, 90000, 100000); // by what the peer says of its clock it has waited longer than it took
    assert_int_equal(live->there_sample_ns, 0);
    assert_int_equal(live->rtt_ns, 82343); // what the transport reckons with is a whole round trip
}

// What lay unread may have waited for a busy host, unless the peer's data made a queue that it waited in.
static void way_back__what_lay_unread(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    live->inflight_bytes = 100000;
    live->rtt_ns = 100000;
    assert_int_equal(alb_assoc_waited_ns(live, 5000, 0, MS), 0);
    assert_int_equal(alb_assoc_waited_ns(live, 45000, 0, MS), 40000);
    assert_false(live->reports_wait);
    assert_int_equal(alb_assoc_waited_ns(live, 65000, 0, MS), 60000);
    assert_true(live->reports_wait); // for more than half of a round trip
    assert_int_equal(alb_assoc_waited_ns(live, 65000, 30000, MS), 30000);
    assert_false(live->reports_wait);
    assert_int_equal(alb_assoc_waited_ns(live, 45000, 10000, MS), 30000);
    assert_int_equal(alb_assoc_waited_ns(live, 45000, UINT32_MAX, MS), 0);
    live->credit_in.rate = 1 << 20; // as much as we have in flight
    assert_int_equal(alb_assoc_waited_ns(live, 45000, UINT32_MAX, MS), 40000);
    live->reports_queued = 10;
    assert_int_equal(alb_assoc_waited_ns(live, 45000, 0, MS), 40000);
    assert_int_equal(live->reports_queued, 9); // they have waited behind data
    live->credit_in.rate = 0;
    assert_int_equal(alb_assoc_waited_ns(live, 45000, 0, MS), 40000);
    assert_int_equal(live->reports_queued, UINT8_MAX);
    live->inflight_bytes = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(rtt__is_smoothed),
        CSA_PAIR_TEST(margin__is_a_round_trip_at_most),
        cmocka_unit_test(way_back__what_waits_takes_longer),
        cmocka_unit_test(way_back__over_the_end_of_the_clock),
        cmocka_unit_test(way_back__clocks_that_drift_apart),
        cmocka_unit_test(way_back__after_a_pause_it_is_learnt_anew),
        CSA_PAIR_TEST(way_back__a_sample_without_what_it_waited),
        CSA_PAIR_TEST(way_back__what_lay_unread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
