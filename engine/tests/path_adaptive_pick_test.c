// SPDX-License-Identifier: BSD-2-Clause
// Policy "adaptive": which path is chosen.
#include "engine/tests/path_reported.h"

#include <stdlib.h>
#include <string.h>

#define US ALB_NS_PER_US
#define MS ALB_NS_PER_MS

// How often each of many paths takes one of so many reports, which leave at once.
static void report(struct alb_paths_out *paths, uint32_t count, uint32_t *times, alb_time now)
{
    memset(times, 0, ALB_PATHS_MANY * sizeof(*times));
    for (uint32_t i = 0; i < count; i++) {
        uint16_t path = alb_paths_choose(paths, &alb_path_adaptive, 0, 2048, now);
        alb_path_sent(paths, path, 0, now);
        times[path]++;
    }
}

// Not all by the one whose last round trip was least: were it to die, its loss would never be reported.
static void pick__reports_take_paths_in_turn(void **state)
{
    struct alb_paths_out *paths = path_reported_new(ALB_PATHS_MANY);
    uint32_t times[ALB_PATHS_MANY];
    for (uint8_t p = 0; p < ALB_PATHS_MANY; p++) {
        path_reported(paths, p, 8, 0, 10 * MS);
        path_reported_rtt(paths, p, p + 1u, 20 * US + p * 100);
    }
    report(paths, 4 * ALB_PATHS_MANY, times, 10 * MS);
    for (uint32_t p = 0; p < ALB_PATHS_MANY; p++)
        assert_int_equal(times[p], 4);
    // One that something left by long ago is late.
    alb_path_pace(paths, 3)->since = alb_path_tick_of(9 * MS);
    report(paths, 2 * (ALB_PATHS_MANY - 1), times, 10 * MS);
    for (uint32_t p = 0; p < ALB_PATHS_MANY; p++)
        assert_int_equal(times[p], p == 3 ? 0 : 2);
    free(paths);
}

// Whatever they weigh: were all to go by the best path when nothing is heard of any, the peer would hear nothing if
// just that one has died. And not by neighbours in a row, which may share a route.
static void pick__reports_take_all_when_none_is_heard(void **state)
{
    static const uint32_t counts[] = {2, 3, 5, 8, 11, ALB_PATHS_MANY};
    for (size_t c = 0; c < ALB_COUNT(counts); c++) {
        uint32_t count = counts[c], times[ALB_PATHS_MANY];
        struct alb_paths_out *paths = path_reported_new(count);
        for (uint8_t p = 0; p < count; p++) {
            path_reported(paths, p, 8, 0, 10 * MS);
            alb_path_load(paths, p)->weight = 20 + p;
            if (count >= ALB_PATHS_MANY)
                path_reported_rtt(paths, p, p + 1u, 100 * US);
            alb_path_sent(paths, p, 0, 10 * MS);
        }
        report(paths, count, times, 10 * MS); // the best of them, and what is typical becomes known
        report(paths, 3 * count, times, 50 * MS);
        for (uint32_t p = 0; p < count; p++)
            assert_int_equal(times[p], 3);
        for (uint32_t i = 0, last = paths->current; count == 8 && i < 8; i++, last = paths->current) {
            int apart = abs((int)alb_paths_choose(paths, &alb_path_adaptive, 0, 2048, 50 * MS) - (int)last);
            assert_in_range(apart, 2, 6);
        }
        free(paths);
    }
}

// What ends a message has no other behind it: it tries no path of which nothing is known.
static void pick__an_awaited_report_takes_known_paths_in_turn(void **state)
{
    struct alb_paths_out *paths = path_reported_new(ALB_PATHS_MANY);
    uint32_t times[ALB_PATHS_MANY];
    path_reported_rtt(paths, 4, 10, 20 * US);
    path_reported_rtt(paths, 9, 10, 60 * US); // late
    paths->is_awaited = true;
    report(paths, 1, times, 10 * MS); // what is typical becomes known
    report(paths, 10, times, 10 * MS);
    for (uint32_t p = 0; p < ALB_PATHS_MANY; p++)
        assert_int_equal(times[p], p >= 4 && p < 9 ? 2 : 0);
    paths->is_awaited = false;
    report(paths, 2 * (ALB_PATHS_MANY - 1), times, 10 * MS);
    for (uint32_t p = 0; p < ALB_PATHS_MANY; p++)
        assert_int_equal(times[p], p == 9 ? 0 : 2);
    free(paths);

    paths = path_reported_new(ALB_PATHS_MANY); // nothing is known of any
    paths->is_awaited = true;
    report(paths, 2 * ALB_PATHS_MANY, times, 10 * MS);
    for (uint32_t p = 0; p < ALB_PATHS_MANY; p++)
        assert_int_equal(times[p], 2);
    free(paths);
}

// It was the slowest queue of all then, and the others are slow now because something is in them.
static void pick__late_until_measured_again(void **state)
{
    const struct alb_path_news news = {.is_new = true, .rtt_sample_ns = 60 * US};
    struct alb_paths_out *paths = path_reported_new(ALB_PATHS_MANY);
    for (uint8_t p = 0; p < ALB_PATHS_MANY; p++)
        path_reported_inflight(paths, p, p == 3 ? 0 : 4096);
    path_reported_rtt(paths, 0, ALB_PATHS_MANY, 20 * US);
    path_reported_rtt(paths, 3, 4, 60 * US);
    paths->typical_ns = 20 * US;
    for (uint32_t i = 0; i < 8; i++)
        assert_int_not_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 2048, MS), 3);
    assert_in_range(paths->typical_ns, 20 * US, 21 * US); // one that is late says little of most
    alb_path_adaptive.on_news(paths, 3, &news, MS);
    path_reported_rtt(paths, 0, ALB_PATHS_MANY, 60 * US);
    paths->typical_ns = 60 * US;
    for (uint32_t i = 0; i < 8; i++)
        assert_int_not_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 2048, MS), 3);
    alb_path_adaptive.on_news(paths, 3, &news, MS);
    assert_int_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 2048, MS), 3);
    free(paths);
}

// Were they all to try what was left, a peer that asks eight times and gives up would hear nothing: four paths of a
// dead route take 16 packets to try.
static void pick__reports_try_one_in_four(void **state)
{
    for (uint32_t count = 5; count <= ALB_PATHS_MANY; count += ALB_PATHS_MANY - 5) {
        struct alb_paths_out *paths = path_reported_new(count);
        uint32_t times[ALB_PATHS_MANY], tried = 0;
        for (uint8_t p = 0; p < 4; p++)
            alb_path_set_state(paths, p, ALB_PATH_LEFT);
        report(paths, 16, times, 40 * MS);
        for (uint8_t p = 0; p < 4; p++)
            tried += times[p];
        assert_int_equal(tried, 4);
        free(paths);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pick__reports_take_paths_in_turn),
        cmocka_unit_test(pick__reports_take_all_when_none_is_heard),
        cmocka_unit_test(pick__an_awaited_report_takes_known_paths_in_turn),
        cmocka_unit_test(pick__late_until_measured_again),
        cmocka_unit_test(pick__reports_try_one_in_four),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
