// SPDX-License-Identifier: BSD-2-Clause
// Every way of choosing among many paths gives the answer of the plainest loop.
#include "base/prng.h"
#include "base/tests/test.h"
#include "engine/path_choice.h"

#include <stdlib.h>

enum {
    ROUNDS = 20000,
    TICK = 1000000,
};

static struct alb_prng prng;

static int seed(void **state)
{
    alb_prng_init(&prng, 7);
    return 0;
}

static bool chance(uint32_t percent)
{
    return alb_prng_below(&prng, 100) < percent;
}

// Few different values, so that many cost the same; now and then the largest.
static void draw_path(struct alb_paths_out *paths, uint32_t path, uint32_t good_percent, uint32_t large_percent)
{
    struct alb_path_load *load = alb_path_load(paths, path);
    struct alb_path_pace *pace = alb_path_pace(paths, path);
    load->inflight_bytes = chance(50)              ? 0
                           : chance(large_percent) ? UINT32_MAX / 2
                                                   : (uint32_t)alb_prng_below(&prng, 4) * 2048;
    load->weight = chance(70) ? ALB_PATH_WEIGHT_MAX : (uint8_t)(4 + alb_prng_below(&prng, ALB_PATH_WEIGHT_MAX - 3));
    load->suspicion = (uint16_t)alb_prng_u64(&prng);
    alb_path_set_state(paths, path,
                       chance(good_percent) ? ALB_PATH_GOOD
                       : chance(50)         ? ALB_PATH_LEFT
                                            : ALB_PATH_TRYING);
    pace->recent_ns = (chance(30)              ? 0
                       : chance(large_percent) ? ALB_PATH_RECENT_NS_MAX
                                               : 12000 + 64 * (uint32_t)alb_prng_below(&prng, 8)) &
                      ALB_PATH_RECENT_NS_MAX;
    pace->is_late = chance(5);
    pace->is_waiting = chance(50);
    pace->since = (uint32_t)(chance(large_percent) ? alb_prng_u64(&prng) : TICK - alb_prng_below(&prng, 40));
}

static struct alb_paths_out *draw_paths(void)
{
    uint32_t count = (uint32_t)(ALB_PATHS_MANY + alb_prng_below(&prng, ALB_PATHS_MAX - ALB_PATHS_MANY + 1));
    uint32_t good_percent = chance(50) ? 100 : chance(50) ? 80 : 5, large_percent = chance(50) ? 0 : 2;
    struct alb_paths_out *paths = malloc(alb_paths_out_bytes(count));
    assert_non_null(paths);
    alb_paths_out_init(paths, count, 0);
    for (uint32_t path = 0; path < count; path++)
        draw_path(paths, path, good_percent, large_percent);
    if (paths->good == 0)
        alb_path_set_state(paths, (uint32_t)alb_prng_below(&prng, count), ALB_PATH_GOOD);
    paths->current = (uint8_t)alb_prng_below(&prng, count);
    return paths;
}

static struct alb_path_outlook draw_outlook(void)
{
    bool is_known = chance(80);
    return (struct alb_path_outlook){is_known ? 18000 : 0, is_known ? 18000 : UINT64_MAX, TICK};
}

static uint64_t cost_of(const struct alb_paths_out *paths, uint32_t path, const struct alb_path_outlook *outlook,
                        uint32_t bytes)
{
    const struct alb_path_pace *pace = alb_path_pace(paths, path);
    uint64_t ns = pace->recent_ns > 0 ? pace->recent_ns : outlook->unknown_ns;
    if (pace->is_waiting)
        ns = ALB_MAX(ns, (uint64_t)(outlook->tick - pace->since) * 1024);
    ns = ALB_MIN(ns, (uint64_t)ALB_PATH_DELAY_MAX_NS);
    if (ns > outlook->late_ns || pace->is_late)
        ns *= 8;
    return ((uint64_t)alb_path_load(paths, path)->inflight_bytes + bytes) * (ns / 64 + 1);
}

static uint32_t cheapest(const struct alb_paths_out *paths, const struct alb_path_outlook *outlook, uint32_t bytes)
{
    uint32_t best = paths->count;
    for (uint32_t i = 1; i <= paths->count; i++) {
        uint32_t path = (paths->current + i) % paths->count;
        const struct alb_path_load *load = alb_path_load(paths, path);
        if (load->state != ALB_PATH_GOOD)
            continue;
        if (best == paths->count ||
            (unsigned __int128)cost_of(paths, path, outlook, bytes) * alb_path_load(paths, best)->weight <
                (unsigned __int128)cost_of(paths, best, outlook, bytes) * load->weight)
            best = path;
    }
    return best;
}

static uint32_t typical(const struct alb_paths_out *paths, uint64_t late_ns)
{
    uint64_t sum_ns = 0;
    uint32_t known = 0;
    for (uint32_t path = 0; path < paths->count; path++) {
        uint32_t recent_ns = alb_path_pace(paths, path)->recent_ns;
        if (alb_path_load(paths, path)->state != ALB_PATH_GOOD || recent_ns == 0)
            continue;
        sum_ns += ALB_MIN((uint64_t)recent_ns, late_ns);
        known++;
    }
    return known > 0 ? (uint32_t)(sum_ns / known) : 0;
}

static void cheapest__every_chooser(void **state)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct alb_paths_out *paths = draw_paths();
        const struct alb_path_outlook outlook = draw_outlook();
        uint32_t bytes = chance(80) ? 2048 : (uint32_t)alb_prng_below(&prng, 2049);
        const struct alb_path_chooser *chooser;
        for (uint32_t i = 0; (chooser = alb_path_chooser(i)); i++) {
            uint32_t typical_ns = 1;
            uint32_t got = chooser->cheapest(paths, &outlook, bytes, &typical_ns);
            if (got != cheapest(paths, &outlook, bytes) || typical_ns != typical(paths, outlook.late_ns))
                fail_msg("%s: path %u of %u, %u ns, round %u", chooser->name, got, paths->count, typical_ns, round);
        }
        free(paths);
    }
}

static void typical__every_chooser(void **state)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct alb_paths_out *paths = draw_paths();
        uint64_t late_ns = chance(80) ? 12200 : UINT64_MAX;
        const struct alb_path_chooser *chooser;
        for (uint32_t i = 0; (chooser = alb_path_chooser(i)); i++)
            assert_int_equal(chooser->typical(paths, late_ns), typical(paths, late_ns));
        free(paths);
    }
}

static bool has_waited(const struct alb_paths_out *paths, uint32_t first, uint32_t past, alb_path_tick since)
{
    for (uint32_t path = first; path < past; path++)
        if (alb_path_waits_since(alb_path_pace(paths, path), since))
            return true;
    return false;
}

// One of those asked for by itself, then others as well.
static void has_waited__every_chooser(void **state)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct alb_paths_out *paths = draw_paths();
        uint32_t first = (uint32_t)alb_prng_below(&prng, paths->count);
        uint32_t past = first + (uint32_t)alb_prng_below(&prng, paths->count - first + 1u);
        alb_path_tick since = (alb_path_tick)alb_prng_u64(&prng);
        const struct alb_path_chooser *chooser;
        for (uint32_t path = 0; path < paths->count; path++)
            alb_path_pace(paths, path)->since = since + (uint32_t)alb_prng_below(&prng, 1000) - (chance(1) ? 500 : 0);
        for (uint32_t i = 0; (chooser = alb_path_chooser(i)); i++)
            assert_int_equal(chooser->has_waited(paths, first, past, since), has_waited(paths, first, past, since));
        free(paths);
    }
}

static void alb_path_chooser_best__the_last_one(void **state)
{
    const struct alb_path_chooser *last = NULL, *chooser;
    for (uint32_t i = 0; (chooser = alb_path_chooser(i)); i++)
        last = chooser;
    assert_ptr_equal(alb_path_chooser_best(), last);
    assert_ptr_equal(alb_path_chooser(0), &alb_path_chooser_plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(cheapest__every_chooser, seed),
        cmocka_unit_test_setup(typical__every_chooser, seed),
        cmocka_unit_test(has_waited__every_chooser),
        cmocka_unit_test(alb_path_chooser_best__the_last_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
