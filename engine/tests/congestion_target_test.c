// SPDX-License-Identifier: BSD-2-Clause
#include "engine/congestion_target.h"
#include "engine/tests/bottleneck.h"

#include <stdlib.h>

#define TARGET_NS (1 * ALB_NS_PER_MS)

static int setup(void **state)
{
    static struct alb_engine_config config;
    struct alb_congestion *congestion = calloc(1, sizeof(*congestion));
    alb_engine_config_default(&config);
    assert_int_equal(alb_engine_config_transport(&config, "csa"), 0);
    config.rtt_target_ns = TARGET_NS;
    alb_congestion_window.init(congestion, &config);
    *state = congestion;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void slow_rounds(struct alb_congestion *congestion, uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++)
        alb_rtt_target_adapt(congestion, true, false);
}

static void overflow_rounds(struct alb_congestion *congestion, uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++)
        alb_rtt_target_adapt(congestion, false, true);
}

static void target__is_what_is_configured(void **state)
{
    struct alb_congestion *congestion = *state;
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS);
    assert_int_equal(alb_rtt_target_long_ns(congestion), 0);
    alb_rtt_target_note(&congestion->window, 20000, 1);
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS); // a short path changes nothing
}

static void target__is_longer_on_a_busy_host(void **state)
{
    struct alb_congestion *congestion = *state;
    congestion->window.host_load = ALB_HOST_LOAD_ONE / 2; // not everything is in use
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS);
    congestion->window.host_load = ALB_HOST_LOAD_ONE * 5 / 2;
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS * 5 / 2);
    congestion->window.host_load = ALB_HOST_LOAD_MAX;
    assert_int_equal(alb_rtt_target_ns(congestion), 4 * TARGET_NS);
    congestion->window.share = ALB_CSA_SHARE_EVEN * 2; // who has more than others answers for it all the same
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS);
}

static void target__is_doubled_where_it_is_missed(void **state)
{
    struct alb_congestion *congestion = *state;
    slow_rounds(congestion, 15);
    alb_rtt_target_adapt(congestion, false, false); // not one after the other
    slow_rounds(congestion, 15);
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS);
    slow_rounds(congestion, 1);
    assert_int_equal(alb_rtt_target_ns(congestion), 2 * TARGET_NS);
    slow_rounds(congestion, 16 * 20);
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS << 10);
}

static void target__is_halved_where_the_queue_overflows_first(void **state)
{
    struct alb_congestion *congestion = *state;
    overflow_rounds(congestion, 47); // two that are 16 rounds apart
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS);
    overflow_rounds(congestion, 1);
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS / 2);
    overflow_rounds(congestion, 48 * 10);
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS / 8);
}

static void target__is_not_halved_below_what_was_too_short(void **state)
{
    struct alb_congestion *congestion = *state;
    slow_rounds(congestion, 16);
    overflow_rounds(congestion, 48 * 10);
    assert_int_equal(alb_rtt_target_ns(congestion), 2 * TARGET_NS);
}

static void calm_rounds(struct alb_congestion *congestion, uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++)
        alb_rtt_target_adapt(congestion, false, false);
}

static void target__is_tried_anew_from_time_to_time(void **state)
{
    struct alb_congestion *congestion = *state;
    alb_rtt_target_set_level(&congestion->window, 2);
    calm_rounds(congestion, 4095);
    assert_int_equal(congestion->window.level, 2);
    calm_rounds(congestion, 1);
    assert_int_equal(congestion->window.level, 1);
    calm_rounds(congestion, 2 * 4096);
    assert_int_equal(congestion->window.level, 0);
    alb_rtt_target_set_level(&congestion->window, -2);
    calm_rounds(congestion, 4096);
    assert_int_equal(congestion->window.level, -1);
}

static void target__that_was_too_short_may_be_tried_again(void **state)
{
    struct alb_congestion *congestion = *state;
    slow_rounds(congestion, 16);
    calm_rounds(congestion, 4096);
    overflow_rounds(congestion, 48);
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS / 2);
}

// The window was cut for a target that was too short.
static void threshold__is_raised_with_the_target(void **state)
{
    struct alb_congestion *congestion = *state;
    uint32_t start_bytes = congestion->config->window_start_bytes;
    congestion->window.unpressed_bytes = start_bytes / 2;
    slow_rounds(congestion, 16);
    assert_int_equal(congestion->window.threshold_bytes, start_bytes / 2);
    congestion->window.unpressed_bytes = 3 * start_bytes;
    slow_rounds(congestion, 16);
    assert_int_equal(congestion->window.threshold_bytes, start_bytes); // the first window at most
    alb_rtt_target_set_base(congestion, TARGET_NS, 1);
    assert_int_equal(congestion->window.threshold_bytes, start_bytes);
    alb_rtt_target_set_base(congestion, 4 * TARGET_NS, 2);
    assert_int_equal(congestion->window.threshold_bytes, 3 * start_bytes); // what the path is longer by was no queue
}

static void target__is_less_for_who_has_more(void **state)
{
    static const struct {
        uint8_t share;
        uint64_t divisor;
    } cases[] = {{0, 1}, {ALB_CSA_SHARE_EVEN / 2, 1}, {ALB_CSA_SHARE_EVEN, 1}, {ALB_CSA_SHARE_EVEN * 2, 4}, {255, 4}};
    struct alb_congestion *congestion = *state;
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        congestion->window.share = cases[i].share;
        assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS / cases[i].divisor);
    }
    congestion->window.share = ALB_CSA_SHARE_EVEN * 2;
    alb_rtt_target_set_level(&congestion->window, 2);
    calm_rounds(congestion, ALB_AMPLE_ROUNDS);
    assert_int_equal(congestion->window.level, 1); // what was doubled is halved
}

static void target__follows_a_path_that_is_long_by_itself(void **state)
{
    struct alb_congestion *congestion = *state;
    alb_rtt_target_note(&congestion->window, 8 * TARGET_NS, 1);
    assert_int_equal(alb_rtt_target_long_ns(congestion), 8 * TARGET_NS);
    assert_int_equal(alb_rtt_target_room_ns(congestion), 2 * TARGET_NS);
    assert_int_equal(alb_rtt_target_ns(congestion), 10 * TARGET_NS);
    alb_rtt_target_note(&congestion->window, TARGET_NS / 2, 2); // one alone may have been read late
    assert_int_equal(alb_rtt_target_long_ns(congestion), 8 * TARGET_NS);
    alb_rtt_target_note(&congestion->window, TARGET_NS / 2, 3);
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS);
}

// Who begins beside many others finds their first windows in the queue, and no short round trip.
static void target__in_a_crowd_a_long_round_trip_is_a_queue(void **state)
{
    struct alb_congestion *congestion = *state;
    alb_rtt_target_note(&congestion->window, 8 * TARGET_NS, 1);
    congestion->window.share = ALB_CSA_SHARE_EVEN;
    assert_int_equal(alb_rtt_target_ns(congestion), TARGET_NS);
    alb_rtt_target_set_base(congestion, 16 * TARGET_NS, 2); // beyond what their windows are
    assert_int_equal(alb_rtt_target_long_ns(congestion), 16 * TARGET_NS);
}

static void target__begins_anew_on_a_longer_path(void **state)
{
    struct alb_congestion *congestion = *state;
    alb_rtt_target_set_level(&congestion->window, 3);
    alb_rtt_target_set_base(congestion, TARGET_NS / 2, 1);
    assert_int_equal(congestion->window.level, 3);
    alb_rtt_target_set_base(congestion, 4 * TARGET_NS, 2);
    assert_int_equal(congestion->window.level, 0);
    alb_rtt_target_set_level(&congestion->window, 1);
    alb_rtt_target_set_base(congestion, 5 * TARGET_NS, 3); // a quarter more is the same path
    assert_int_equal(congestion->window.level, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(target__is_what_is_configured),
        TEST(target__is_longer_on_a_busy_host),
        TEST(target__is_doubled_where_it_is_missed),
        TEST(target__is_halved_where_the_queue_overflows_first),
        TEST(target__is_not_halved_below_what_was_too_short),
        TEST(target__is_tried_anew_from_time_to_time),
        TEST(target__that_was_too_short_may_be_tried_again),
        TEST(threshold__is_raised_with_the_target),
        TEST(target__is_less_for_who_has_more),
        TEST(target__follows_a_path_that_is_long_by_itself),
        TEST(target__in_a_crowd_a_long_round_trip_is_a_queue),
        TEST(target__begins_anew_on_a_longer_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
