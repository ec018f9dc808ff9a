// SPDX-License-Identifier: BSD-2-Clause
// Policy "adaptive", its rules one by one: what is reported of paths, and what becomes of them.
#include "base/prng.h"
#include "engine/tests/path_reported.h"

#include <stdlib.h>
#include <string.h>

#define US ALB_NS_PER_US
#define MS ALB_NS_PER_MS

static void leave__three_of_few(void **state)
{
    struct alb_paths_out *paths = path_reported_new(3);
    for (uint8_t p = 0; p < 3; p++)
        path_reported(paths, p, 500, 0, MS);
    path_reported(paths, 1, 10, 3, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    path_reported(paths, 1, 10, 2, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    assert_int_equal(paths->path[1].back_off, 1);
    // The others are what they were.
    assert_int_equal(alb_path_load(paths, 0)->weight, ALB_PATH_WEIGHT_MAX);
    assert_int_equal(paths->path[0].recent_sent, 500);
    // It does not come back because another one is left.
    path_reported(paths, 2, 10, 8, MS);
    assert_int_equal(alb_path_load(paths, 2)->state, ALB_PATH_LEFT);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    // The last one stays.
    path_reported(paths, 0, 100, 80, MS);
    assert_int_equal(alb_path_load(paths, 0)->state, ALB_PATH_GOOD);
    assert_int_equal(alb_path_load(paths, 0)->suspicion, 0);
    free(paths);
}

// One packet leaves by the path, and has been under way that long when it is told.
static void tell_rtt(struct alb_paths_out *paths, uint8_t path, uint32_t rtt_ns, alb_time now)
{
    const struct alb_path_out *out = &paths->path[path];
    alb_path_sent(paths, path, 0, now);
    const struct alb_csa_path_entry entry = {
        .path = path, .settled = out->next, .received = out->received_seen + 1, .echo = (uint32_t)(now - rtt_ns)};
    alb_path_heard(paths, &alb_path_adaptive, &entry, now);
}

// A path that has nothing in its way is faster than those that all is sent by. They stay.
static void leave__slow_beside_most_others(void **state)
{
    struct alb_paths_out *paths = path_reported_new(4);
    alb_time now = 10 * MS;
    for (int i = 0; i < 400; i++, now += 100 * US)
        for (uint8_t p = 0; p < 3; p++)
            tell_rtt(paths, p, MS, now);
    paths->path[0].rtt_min_ns = 100 * US;
    alb_path_load(paths, 3)->weight = 8;
    for (int i = 0; i < 2; i++) // the first one ends a round
        tell_rtt(paths, 3, 100 * US, now);
    for (int i = 0; i < 3; i++)
        tell_rtt(paths, 0, 1200 * US, now);
    assert_int_equal(alb_path_load(paths, 0)->state, ALB_PATH_GOOD);
    for (int i = 0; i < 3; i++)
        tell_rtt(paths, 0, 6 * MS, now);
    assert_int_equal(alb_path_load(paths, 0)->state, ALB_PATH_LEFT);
    free(paths);
}

static void leave__spread_losses_are_forgiven(void **state)
{
    struct alb_paths_out *paths = path_reported_new(2);
    path_reported(paths, 0, 500, 0, MS);
    for (int i = 0; i < 300; i++)
        path_reported(paths, 1, 100, 1, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    free(paths);
}

static void leave__compared_with_good_paths_only(void **state)
{
    struct alb_paths_out *paths = path_reported_new(3);
    path_reported(paths, 0, 500, 0, MS);
    path_reported(paths, 1, 500, 50, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    paths->path[0].recent_lost = 100; // the other good one loses a fifth
    path_reported(paths, 2, 50, 8, MS);
    assert_int_equal(alb_path_load(paths, 2)->state, ALB_PATH_GOOD);
    paths->path[1].recent_lost = 0; // what a left one does is of no account
    path_reported(paths, 2, 50, 8, MS);
    assert_int_equal(alb_path_load(paths, 2)->state, ALB_PATH_GOOD);
    paths->path[0].recent_lost = 0;
    path_reported(paths, 2, 50, 8, MS);
    assert_int_equal(alb_path_load(paths, 2)->state, ALB_PATH_LEFT);
    free(paths);
}

static void leave__not_for_a_lighter_one(void **state)
{
    struct alb_paths_out *paths = path_reported_new(2);
    path_reported(paths, 0, 500, 0, MS);
    alb_path_load(paths, 0)->weight = 8; // just taken back
    path_reported(paths, 1, 50, 25, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    alb_path_load(paths, 0)->weight = ALB_PATH_WEIGHT_MAX;
    path_reported(paths, 1, 50, 0, MS); // what was before does not count
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    path_reported(paths, 1, 50, 25, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    free(paths);
}

static void leave__not_what_bears_all(void **state)
{
    struct alb_paths_out *paths = path_reported_new(4);
    for (uint8_t p = 0; p < 4; p++)
        path_reported(paths, p, 500, 0, MS);
    alb_path_set_state(paths, 2, ALB_PATH_LEFT);
    alb_path_set_state(paths, 3, ALB_PATH_LEFT);
    path_reported_inflight(paths, 0, 20000);
    path_reported_inflight(paths, 1, 80000);
    path_reported(paths, 1, 50, 25, MS); // four fifths: it may lose for that
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    path_reported_inflight(paths, 0, 60000);
    path_reported_inflight(paths, 1, 40000);
    path_reported(paths, 1, 50, 25, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    free(paths);

    // While half of the paths remain, that is no question.
    paths = path_reported_new(4);
    for (uint8_t p = 0; p < 4; p++)
        path_reported(paths, p, 500, 0, MS);
    alb_path_set_state(paths, 3, ALB_PATH_LEFT);
    path_reported_inflight(paths, 1, 80000);
    path_reported(paths, 1, 50, 25, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    free(paths);
}

// The longest that timestamps can tell is longer than what is kept of it.
static void news__the_longest_round_trip(void **state)
{
    struct alb_paths_out *paths = path_reported_new(ALB_PATHS_MANY);
    alb_path_sent(paths, 0, 0, MS);
    alb_time now = MS + 1900 * MS;
    const struct alb_csa_path_entry entry = {.settled = 1, .received = 1, .echo = (uint32_t)MS};
    assert_int_equal(alb_path_heard(paths, &alb_path_adaptive, &entry, now).rtt_sample_ns, 1900 * MS);
    assert_int_equal(alb_path_pace(paths, 0)->recent_ns, ALB_PATH_RECENT_NS_MAX);
    free(paths);
}

// Its first packet may have been fast; what has not come for so long says more.
static void silent__it_is_late_at_least(void **state)
{
    struct alb_paths_out *paths = path_reported_new(ALB_PATHS_MANY);
    path_reported_rtt(paths, 0, ALB_PATHS_MANY, 20 * US);
    alb_path_sent(paths, 3, 4096, MS);
    assert_true(alb_path_silent(paths, &alb_path_adaptive, 3, 2 * MS));
    assert_in_range(alb_path_pace(paths, 3)->recent_ns, MS - 2 * US, MS + 2 * US);
    assert_int_equal(alb_path_load(paths, 3)->state, ALB_PATH_GOOD);
    path_reported_inflight(paths, 0, 4096);
    // Others are known: it is late, but looked at again in time.
    paths->typical_ns = 20 * US;
    alb_path_sent(paths, 5, 4096, 2 * MS);
    assert_true(alb_path_silent(paths, &alb_path_adaptive, 5, 3 * MS));
    assert_int_equal(alb_path_pace(paths, 5)->recent_ns, 60 * US);
    assert_true(alb_path_pace(paths, 5)->is_late);
    // When it is taken back it has no past.
    alb_path_sent(paths, 5, 4096, 3 * MS);
    assert_true(alb_path_silent(paths, &alb_path_adaptive, 5, 4 * MS));
    assert_int_equal(alb_path_load(paths, 5)->state, ALB_PATH_LEFT);
    assert_int_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 2048, 60 * MS), 5);
    path_reported(paths, 5, 4, 0, 60 * MS);
    assert_int_equal(alb_path_load(paths, 5)->state, ALB_PATH_GOOD);
    assert_int_equal(alb_path_pace(paths, 5)->recent_ns, 0);
    assert_false(alb_path_pace(paths, 5)->is_late);
    free(paths);
}

static void silent__three_at_once_or_twice(void **state)
{
    struct alb_paths_out *paths = path_reported_new(3);
    for (int i = 0; i < 3; i++)
        alb_path_sent(paths, 0, 0, MS);
    assert_true(alb_path_silent(paths, &alb_path_adaptive, 0, 2 * MS));
    assert_int_equal(alb_path_load(paths, 0)->state, ALB_PATH_LEFT);
    assert_int_equal(paths->path[0].back_off, 0); // nothing was reported of the others either
    alb_path_sent(paths, 1, 0, MS);
    assert_true(alb_path_silent(paths, &alb_path_adaptive, 1, 2 * MS));
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    alb_path_sent(paths, 1, 0, 3 * MS);
    path_reported(paths, 2, 10, 0, 4 * MS);
    assert_true(alb_path_silent(paths, &alb_path_adaptive, 1, 5 * MS));
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    assert_int_equal(paths->path[1].back_off, 1);
    // The last one: the one whose time comes first stands in.
    alb_path_sent(paths, 2, 0, 5 * MS);
    alb_path_silent(paths, &alb_path_adaptive, 2, 6 * MS);
    alb_path_sent(paths, 2, 0, 6 * MS);
    alb_path_silent(paths, &alb_path_adaptive, 2, 7 * MS);
    assert_int_equal(alb_path_load(paths, 2)->state, ALB_PATH_LEFT);
    assert_int_equal(alb_path_load(paths, 0)->state, ALB_PATH_GOOD);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    free(paths);
}

static void back__all_are_suspected_anew(void **state)
{
    struct alb_paths_out *paths = path_reported_new(2);
    alb_time now = MS;
    path_reported(paths, 0, 500, 0, now);
    path_reported(paths, 1, 50, 25, now);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    path_reported(paths, 0, 100, 50, now);
    alb_path_load(paths, 0)->suspicion = 700;
    now += 34 * MS;
    path_reported_inflight(paths, 0, 1000);
    assert_int_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 1000, now), 1);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_TRYING);
    path_reported(paths, 1, 4, 0, now);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    assert_int_equal(alb_path_load(paths, 1)->weight, 8);
    assert_int_equal(paths->path[1].recent_sent, 0);
    assert_int_equal(alb_path_load(paths, 0)->suspicion, 0);
    assert_int_equal(alb_path_load(paths, 0)->weight, ALB_PATH_WEIGHT_MAX);
    free(paths);
}

static void back__the_past_is_forgotten_in_time(void **state)
{
    struct alb_paths_out *paths = path_reported_new(2);
    alb_time now = 1000 * MS;
    alb_path_set_state(paths, 1, ALB_PATH_TRYING);
    paths->path[1].back_off = 2;
    path_reported(paths, 1, 8, 0, now);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    for (int i = 0; i < 300; i++, now += MS) {
        struct alb_path_out *out = &paths->path[0];
        alb_path_sent(paths, 0, 0, now);
        struct alb_csa_path_entry entry = {
            .settled = out->next, .received = out->received_seen + 1, .echo = (uint32_t)(now - 100 * US)};
        alb_path_heard(paths, &alb_path_adaptive, &entry, now);
        if (i == 120)
            assert_int_equal(paths->path[1].back_off, 2);
        if (i == 140)
            assert_int_equal(paths->path[1].back_off, 1);
        if (i == 185)
            assert_int_equal(paths->path[1].back_off, 1);
        if (i == 205)
            assert_int_equal(paths->path[1].back_off, 0);
    }
    free(paths);
}

// A path that loses one packet in ten passes a trial of four more often than not.
static void back__a_trial_is_longer_each_time(void **state)
{
    static const uint32_t packets[] = {4, 4, 8, 16, 32, 32};
    for (uint32_t back_off = 0; back_off < ALB_COUNT(packets); back_off++) {
        struct alb_paths_out *paths = path_reported_new(2);
        path_reported(paths, 0, 500, 0, MS);
        path_reported_inflight(paths, 0, 1000);
        alb_path_set_state(paths, 1, ALB_PATH_TRYING);
        paths->path[1].back_off = back_off & 7;
        for (uint32_t came = 0; came < packets[back_off]; came += 4) {
            assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_TRYING);
            assert_int_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 1000, MS), 1); // it wants more
            path_reported(paths, 1, 4, 0, MS);
        }
        assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
        alb_path_set_state(paths, 1, ALB_PATH_TRYING);
        paths->path[1].recent_sent = paths->path[1].recent_lost = 0;
        path_reported(paths, 1, 4, 1, MS);
        assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
        free(paths);
    }
}

// Where all lose as much a long trial would never be passed.
static void back__a_trial_may_lose_what_others_do(void **state)
{
    struct alb_paths_out *paths = path_reported_new(2);
    path_reported(paths, 0, 500, 0, MS);
    paths->path[0].recent_lost = 25;
    alb_path_set_state(paths, 1, ALB_PATH_TRYING);
    paths->path[1].back_off = 5;
    path_reported(paths, 1, 32, 3, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    alb_path_set_state(paths, 1, ALB_PATH_TRYING);
    paths->path[1].recent_sent = paths->path[1].recent_lost = 0;
    paths->path[0].recent_sent = 500;
    paths->path[0].recent_lost = 25;
    path_reported(paths, 1, 32, 4, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    free(paths);
}

static void adaptive__a_trial_is_small(void **state)
{
    struct alb_paths_out *paths = path_reported_new(2);
    path_reported_inflight(paths, 0, 1000);
    alb_path_set_state(paths, 1, ALB_PATH_LEFT);
    paths->path[1].try_at = 100;
    for (int i = 0; i < 10; i++)
        assert_int_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 64000, (100ull << 20) - 1), 0);
    assert_int_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 64000, 100ull << 20), 1);
    assert_int_equal(alb_path_burst_bytes(paths, 1, UINT32_MAX), ALB_PATH_TRY_BYTES);
    // Four packets try it, in one burst or in several. Then nothing goes there until the answer.
    for (int i = 0; i < 4; i++) {
        assert_int_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 64000, 100ull << 20), 1);
        alb_path_sent(paths, 1, 1000, 100ull << 20);
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 64000, 100ull << 20), 0);
    free(paths);
}

static void adaptive__marks_make_it_lighter(void **state)
{
    struct alb_paths_out *paths = path_reported_new(2);
    uint32_t chosen[2] = {0};
    for (uint32_t i = 1; i <= 200; i++)
        for (uint8_t p = 0; p < 2; p++) {
            alb_time now = i * MS;
            alb_path_sent(paths, p, 0, now);
            struct alb_csa_path_entry entry = {
                .path = p, .settled = i, .received = i, .marked = p ? i : 0, .echo = (uint32_t)now};
            alb_path_heard(paths, &alb_path_adaptive, &entry, now + 100 * US);
        }
    assert_in_range(alb_path_load(paths, 1)->weight, 25, 40);
    assert_int_equal(alb_path_load(paths, 0)->weight, ALB_PATH_WEIGHT_MAX);
    for (int i = 0; i < 300; i++) {
        uint16_t p = alb_paths_choose(paths, &alb_path_adaptive, 0, 1000, 201 * MS);
        chosen[p]++;
        alb_path_sent(paths, p, 1000, 201 * MS);
    }
    assert_in_range(chosen[1], 80, 120);
    free(paths);
}

// Anything a peer may say of what left by the path.
static struct alb_csa_path_entry draw_entry(struct alb_prng *prng, const struct alb_path_out *out, uint8_t path,
                                            alb_time now)
{
    uint32_t waiting = (uint32_t)alb_psn_diff(out->next, out->settled);
    uint32_t settled = (uint32_t)alb_prng_below(prng, waiting + 1u);
    return (struct alb_csa_path_entry){
        .path = path,
        .settled = (out->settled + settled) & ALB_PSN_MASK,
        .received = out->received_seen + (uint32_t)alb_prng_below(prng, settled + 2u),
        .echo = (uint32_t)(now - alb_prng_below(prng, 200 * US)),
        .delay_ns = alb_prng_below(prng, 8) ? 0 : UINT32_MAX,
    };
}

static void draw_step(struct alb_prng *prng, struct alb_paths_out *paths, alb_time now)
{
    uint8_t path = (uint8_t)alb_prng_below(prng, paths->count);
    uint32_t bytes = alb_prng_below(prng, 3) ? (uint32_t)alb_prng_below(prng, 2) * 2048 : 0;
    const struct alb_csa_path_entry entry = draw_entry(prng, &paths->path[path], path, now);
    switch (alb_prng_below(prng, 8)) {
    case 0:
        alb_path_silent(paths, &alb_path_adaptive, path, now);
        break;
    case 1:
    case 2:
        alb_path_heard(paths, &alb_path_adaptive, &entry, now);
        break;
    case 3:
    case 4:
        alb_path_done(paths, path, (uint32_t)alb_prng_below(prng, 2) * alb_path_load(paths, path)->inflight_bytes);
        break;
    default:
        alb_path_sent(paths, alb_paths_choose(paths, &alb_path_adaptive, 0, bytes, now), bytes, now);
    }
}

static void counts__whatever_is_reported(void **state)
{
    static const uint8_t counts[] = {3, ALB_PATHS_MANY, ALB_PATHS_MAX};
    struct alb_prng prng;
    alb_prng_init(&prng, 15);
    for (uint32_t c = 0; c < ALB_COUNT(counts); c++) {
        struct alb_paths_out *paths = path_reported_new(counts[c]);
        uint32_t loaded = 0;
        for (alb_time now = MS; now < 5000 * MS; now += 500 * US) {
            draw_step(&prng, paths, now);
            path_reported_recount(paths);
            loaded = ALB_MAX(loaded, (uint32_t)paths->loaded);
        }
        assert_int_equal(paths->is_paced, counts[c] >= ALB_PATHS_MANY);
        assert_int_not_equal(loaded, 0);
        free(paths);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leave__three_of_few),
        cmocka_unit_test(leave__slow_beside_most_others),
        cmocka_unit_test(leave__spread_losses_are_forgiven),
        cmocka_unit_test(leave__compared_with_good_paths_only),
        cmocka_unit_test(leave__not_for_a_lighter_one),
        cmocka_unit_test(leave__not_what_bears_all),
        cmocka_unit_test(news__the_longest_round_trip),
        cmocka_unit_test(silent__it_is_late_at_least),
        cmocka_unit_test(silent__three_at_once_or_twice),
        cmocka_unit_test(back__all_are_suspected_anew),
        cmocka_unit_test(back__the_past_is_forgotten_in_time),
        cmocka_unit_test(back__a_trial_is_longer_each_time),
        cmocka_unit_test(back__a_trial_may_lose_what_others_do),
        cmocka_unit_test(adaptive__a_trial_is_small),
        cmocka_unit_test(adaptive__marks_make_it_lighter),
        cmocka_unit_test(counts__whatever_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
