// SPDX-License-Identifier: BSD-2-Clause
// The policy in virtual time: what is left, when, and what it carries meanwhile.
#include "engine/tests/path_network.h"

#include <stdlib.h>
#include <string.h>

#define US     ALB_NS_PER_US
#define MS     ALB_NS_PER_MS
#define RTT_NS (100 * US)

enum {
    PERCENT = 10000000, // of a billion
    SEEDS = 8,
};

static struct network *four_paths(uint64_t seed)
{
    struct network *network = network_new(&alb_path_adaptive, 4, seed);
    network_run(network, 20 * MS);
    assert_int_equal(network_good(network), 4);
    network_measure(network);
    return network;
}

// Runs until the path is left, and checks that it took ten round trips at most.
static void expect_left(struct network *network, uint32_t path)
{
    alb_time began = network->now;
    for (int i = 0; i < 10 && network->path[path].left_at < began; i++)
        network_run(network, RTT_NS);
    assert_true(network->path[path].left_at >= began);
    for (uint32_t i = 0; i < network->count; i++)
        assert_true(i == path || network->path[i].left_at < began);
}

static void expect_taken_back(struct network *network, uint32_t path)
{
    for (int i = 0; i < 1200 && alb_path_load(network->paths, path)->state != ALB_PATH_GOOD; i++)
        network_run(network, MS);
    assert_int_equal(alb_path_load(network->paths, path)->state, ALB_PATH_GOOD);
    network_run(network, 3 * MS);
    network_measure(network);
    network_run(network, 20 * MS);
    assert_int_equal(network_good(network), network->count);
    assert_true(network_share_percent(network, path) * network->count > 70);
    assert_true(network_percent_of(network, network->count) >= 90);
}

static void adaptive__equal_paths_share(void **state)
{
    struct network *network = four_paths(1);
    network_run(network, 100 * MS);
    for (uint32_t i = 0; i < 4; i++) {
        assert_in_range(network_share_percent(network, i), 23, 27);
        assert_int_equal(network->path[i].left_at, 0);
    }
    assert_true(network_percent_of(network, 4) >= 97);
    assert_int_equal(network->lost, 0);
    network_free(network);
}

static void adaptive__leaves_a_path_that_loses(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct network *network = four_paths(seed);
        network->path[2].loss_ppb = 10 * PERCENT;
        expect_left(network, 2);
        network_measure(network);
        network_run(network, 100 * MS);
        assert_true(network_share_percent(network, 2) <= 3);
        assert_true(network_percent_of(network, 3) >= 90);
        network->path[2].loss_ppb = 0;
        expect_taken_back(network, 2);
        network_free(network);
    }
}

static void adaptive__leaves_a_path_that_slows(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct network *network = four_paths(seed);
        network_set_rate(network, 1, network->path[1].bytes_per_s / 10);
        expect_left(network, 1);
        network_run(network, 10 * RTT_NS);
        network_measure(network);
        network_run(network, 100 * MS);
        assert_true(network_percent_of(network, 3) >= 90);
        network_set_rate(network, 1, network->path[1].bytes_per_s * 10);
        expect_taken_back(network, 1);
        network_free(network);
    }
}

static void adaptive__leaves_a_path_that_dies(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct network *network = four_paths(seed);
        network->path[3].is_dead = true;
        expect_left(network, 3);
        network_run(network, 5 * RTT_NS);
        network_measure(network);
        network_run(network, 100 * MS);
        assert_true(network_percent_of(network, 3) >= 95);
        network->path[3].is_dead = false;
        expect_taken_back(network, 3);
        network_free(network);
    }
}

static void adaptive__leaves_it_with_lost_frames_too(void **state)
{
    struct network *network = four_paths(5);
    network->frame_loss_ppb = 5 * PERCENT;
    network_run(network, 50 * MS);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(network->path[i].left_at, 0);
    assert_int_equal(network->lost, 0);
    network->path[0].is_dead = true;
    expect_left(network, 0);
    network_free(network);
}

static void adaptive__stays_where_all_lose(void **state)
{
    static const uint32_t losses[] = {PERCENT / 10, PERCENT, 5 * PERCENT};
    for (size_t l = 0; l < ALB_COUNT(losses); l++) {
        alb_time left_ns = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct network *network = network_new(&alb_path_adaptive, 4, seed);
            for (uint32_t i = 0; i < 4; i++)
                network->path[i].loss_ppb = losses[l];
            network_run(network, 10 * MS);
            network_measure(network);
            network_run(network, 100 * MS);
            for (uint32_t i = 0; i < 4; i++)
                left_ns += network->path[i].left_ns;
            assert_int_equal(network->spurious, 0);
            network_free(network);
        }
        assert_true(left_ns < SEEDS * 4 * 100 * MS / 20); // one twentieth of the time
    }
}

static void adaptive__leaves_what_is_worse_than_the_others(void **state)
{
    // One percent everywhere, ten on one of them.
    alb_time left_ns = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct network *network = network_new(&alb_path_adaptive, 4, seed);
        for (uint32_t i = 0; i < 4; i++)
            network->path[i].loss_ppb = PERCENT;
        network_run(network, 30 * MS);
        network_measure(network);
        network->path[1].loss_ppb = 10 * PERCENT;
        network_run(network, 100 * MS);
        assert_true(network->path[1].left_ns > 50 * MS);
        left_ns += network->path[0].left_ns;
        network_free(network);
    }
    assert_true(left_ns < SEEDS * 100 * MS / 20);
}

static void adaptive__most_are_bad(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct network *network = network_new(&alb_path_adaptive, 4, seed);
        for (uint32_t i = 1; i < 4; i++)
            network->path[i].loss_ppb = 10 * PERCENT;
        network_run(network, 10 * MS);
        assert_int_equal(alb_path_load(network->paths, 0)->state, ALB_PATH_GOOD);
        assert_in_range(network_good(network), 1, 2);
        network_free(network);
    }
}

static void adaptive__the_only_path(void **state)
{
    struct network *network = network_new(&alb_path_adaptive, 1, 3);
    network->path[0].loss_ppb = 10 * PERCENT;
    network_run(network, 20 * MS);
    assert_true(network_percent_of(network, 1) >= 85);
    network->path[0].is_dead = true;
    network_run(network, 20 * MS);
    network->path[0].is_dead = false;
    network->path[0].loss_ppb = 0;
    network_run(network, 2 * MS);
    network_measure(network);
    network_run(network, 10 * MS);
    assert_true(network_percent_of(network, 1) >= 95);
    assert_int_equal(network_good(network), 1);
    network_free(network);
}

static void adaptive__a_cut_of_all_paths(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct network *network = four_paths(seed);
        for (uint32_t i = 0; i < 4; i++)
            network->path[i].is_dead = true;
        network_run(network, 30 * MS);
        assert_true(network_good(network) >= 1);
        for (uint32_t i = 0; i < 4; i++)
            network->path[i].is_dead = false;
        network_run(network, 200 * MS);
        network_measure(network);
        network_run(network, 20 * MS);
        assert_int_equal(network_good(network), 4);
        assert_true(network_percent_of(network, 4) >= 90);
        network_free(network);
    }
}

static void adaptive__all_but_one_die_and_that_one_then(void **state)
{
    // The last path dies when another one is back: that one is found.
    struct network *network = four_paths(4);
    for (uint32_t i = 1; i < 4; i++)
        network->path[i].is_dead = true;
    network_run(network, 500 * MS);
    assert_int_equal(network_good(network), 1);
    network->path[2].is_dead = false;
    network->path[0].is_dead = true;
    network_run(network, 10 * MS);
    network_measure(network);
    network_run(network, 10 * MS);
    assert_int_equal(alb_path_load(network->paths, 2)->state, ALB_PATH_GOOD);
    assert_true(network_percent_of(network, 1) >= 90);
    network_free(network);
}

static void adaptive__a_late_one_of_many_waits(void **state)
{
    struct network *network = network_new(&alb_path_adaptive, ALB_PATHS_MANY, 11);
    network->path[0].delay_ns += 400 * US;
    network_run(network, 20 * MS);
    network_measure(network);
    network_run(network, 100 * MS);
    assert_int_equal(network_share_percent(network, 0), 0);
    assert_int_equal(network->lost, 0);
    assert_true(network_percent_of(network, ALB_PATHS_MANY - 1) >= 97);
    network_free(network);
}

static void adaptive__unequal_delays_are_weighed(void **state)
{
    struct network *network = network_new(&alb_path_adaptive, 4, 11);
    network->path[0].delay_ns += 400 * US; // five times the round trip of the others
    network_run(network, 20 * MS);
    network_measure(network);
    network_run(network, 100 * MS);
    assert_int_equal(network->path[0].left_at, 0);
    assert_in_range(network_share_percent(network, 0), 1, 15);
    assert_int_equal(network->lost, 0);
    assert_true(network_percent_of(network, 3) >= 97);
    network_free(network);
}

static void adaptive__noise_is_no_reason(void **state)
{
    // Round trips vary by five times what they are, and the sender is away for a few milliseconds now and then.
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct network *network = network_new(&alb_path_adaptive, 8, seed);
        network->stall_ns = 3 * MS;
        for (uint32_t i = 0; i < 8; i++)
            network->path[i].jitter_ns = 500 * US;
        network_run(network, 200 * MS);
        for (uint32_t i = 0; i < 8; i++)
            assert_int_equal(network->path[i].left_at, 0);
        assert_int_equal(network->lost, 0);
        network_free(network);
    }
}

static void adaptive__a_route_grows_longer(void **state)
{
    // No loss, no queue, but seven times as long: in time it is used again.
    struct network *network = four_paths(12);
    network->path[0].delay_ns += 600 * US;
    network_run(network, 4000 * MS);
    assert_int_equal(alb_path_load(network->paths, 0)->state, ALB_PATH_GOOD);
    network_measure(network);
    network_run(network, 50 * MS);
    assert_int_equal(network->path[0].left_ns, 0);
    network_free(network);
}

static void adaptive__tries_rarely_and_backs_off(void **state)
{
    struct network *network = network_new(&alb_path_adaptive, 4, 13);
    network->interval_ns = 50 * US; // not much to send
    network->burst_packets = 2;
    network_run(network, 20 * MS);
    network->path[1].is_dead = true;
    network_run(network, 5 * MS);
    assert_int_equal(alb_path_load(network->paths, 1)->state, ALB_PATH_LEFT);
    network_run(network, 10 * ALB_NS_PER_S);
    // After 32, 64, 128 ... ms, and then once a second, with two bursts each.
    assert_in_range(network->path[1].trials, 22, 34);
    network->path[1].is_dead = false;
    network_run(network, 1200 * MS);
    assert_int_equal(network_good(network), 4);
    network_free(network);
}

// ---- rules one by one -------------------------------------------------------------------------------------

static struct alb_paths_out *paths_new(uint32_t count)
{
    struct alb_paths_out *paths = malloc(alb_paths_out_bytes(count));
    assert_non_null(paths);
    alb_paths_out_init(paths, count, 0);
    return paths;
}

// So many packets leave by the path, and some of them are lost; without a round-trip time.
static void tell(struct alb_paths_out *paths, uint8_t path, uint32_t sent, uint32_t lost, alb_time now)
{
    struct alb_path_out *out = &paths->path[path];
    for (uint32_t i = 0; i < sent; i++)
        alb_path_sent(paths, path, 0, now);
    struct alb_csa_path_entry entry = {
        .path = path,
        .settled = out->next,
        .received = out->received_seen + sent - lost,
        .echo = (uint32_t)now,
        .delay_ns = UINT32_MAX,
    };
    alb_path_heard(paths, &alb_path_adaptive, &entry, now);
}

static void leave__three_of_few(void **state)
{
    struct alb_paths_out *paths = paths_new(3);
    for (uint8_t p = 0; p < 3; p++)
        tell(paths, p, 500, 0, MS);
    tell(paths, 1, 10, 3, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    tell(paths, 1, 10, 2, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    assert_int_equal(paths->path[1].back_off, 1);
    // The others are what they were.
    assert_int_equal(alb_path_load(paths, 0)->weight, ALB_PATH_WEIGHT_MAX);
    assert_int_equal(paths->path[0].recent_sent, 500);
    // It does not come back because another one is left.
    tell(paths, 2, 10, 8, MS);
    assert_int_equal(alb_path_load(paths, 2)->state, ALB_PATH_LEFT);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    // The last one stays.
    tell(paths, 0, 100, 80, MS);
    assert_int_equal(alb_path_load(paths, 0)->state, ALB_PATH_GOOD);
    assert_int_equal(alb_path_load(paths, 0)->suspicion, 0);
    free(paths);
}

static void leave__spread_losses_are_forgiven(void **state)
{
    struct alb_paths_out *paths = paths_new(2);
    tell(paths, 0, 500, 0, MS);
    for (int i = 0; i < 300; i++)
        tell(paths, 1, 100, 1, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    free(paths);
}

static void leave__compared_with_good_paths_only(void **state)
{
    struct alb_paths_out *paths = paths_new(3);
    tell(paths, 0, 500, 0, MS);
    tell(paths, 1, 500, 50, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    paths->path[0].recent_lost = 100; // the other good one loses a fifth
    tell(paths, 2, 50, 8, MS);
    assert_int_equal(alb_path_load(paths, 2)->state, ALB_PATH_GOOD);
    paths->path[1].recent_lost = 0; // what a left one does is of no account
    tell(paths, 2, 50, 8, MS);
    assert_int_equal(alb_path_load(paths, 2)->state, ALB_PATH_GOOD);
    paths->path[0].recent_lost = 0;
    tell(paths, 2, 50, 8, MS);
    assert_int_equal(alb_path_load(paths, 2)->state, ALB_PATH_LEFT);
    free(paths);
}

static void leave__not_for_a_lighter_one(void **state)
{
    struct alb_paths_out *paths = paths_new(2);
    tell(paths, 0, 500, 0, MS);
    alb_path_load(paths, 0)->weight = 8; // just taken back
    tell(paths, 1, 50, 25, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    alb_path_load(paths, 0)->weight = ALB_PATH_WEIGHT_MAX;
    tell(paths, 1, 50, 0, MS); // what was before does not count
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    tell(paths, 1, 50, 25, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    free(paths);
}

static void leave__not_what_bears_all(void **state)
{
    struct alb_paths_out *paths = paths_new(4);
    for (uint8_t p = 0; p < 4; p++)
        tell(paths, p, 500, 0, MS);
    alb_path_set_state(paths, 2, ALB_PATH_LEFT);
    alb_path_set_state(paths, 3, ALB_PATH_LEFT);
    alb_path_load(paths, 0)->inflight_bytes = 20000;
    alb_path_load(paths, 1)->inflight_bytes = 80000;
    tell(paths, 1, 50, 25, MS); // four fifths: it may lose for that
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    alb_path_load(paths, 0)->inflight_bytes = 60000;
    alb_path_load(paths, 1)->inflight_bytes = 40000;
    tell(paths, 1, 50, 25, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    free(paths);

    // While half of the paths remain, that is no question.
    paths = paths_new(4);
    for (uint8_t p = 0; p < 4; p++)
        tell(paths, p, 500, 0, MS);
    alb_path_set_state(paths, 3, ALB_PATH_LEFT);
    alb_path_load(paths, 1)->inflight_bytes = 80000;
    tell(paths, 1, 50, 25, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    free(paths);
}

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

// Not all by the one whose last round trip was least: were it to die, nothing would ever be heard of it.
static void pick__reports_take_paths_in_turn(void **state)
{
    struct alb_paths_out *paths = paths_new(ALB_PATHS_MANY);
    uint32_t times[ALB_PATHS_MANY];
    for (uint8_t p = 0; p < ALB_PATHS_MANY; p++) {
        tell(paths, p, 8, 0, 10 * MS);
        alb_path_pace(paths, p)->recent_ns = 20 * US + p * 100;
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

static void silent__three_at_once_or_twice(void **state)
{
    struct alb_paths_out *paths = paths_new(3);
    for (int i = 0; i < 3; i++)
        alb_path_sent(paths, 0, 0, MS);
    assert_true(alb_path_silent(paths, &alb_path_adaptive, 0, 2 * MS));
    assert_int_equal(alb_path_load(paths, 0)->state, ALB_PATH_LEFT);
    assert_int_equal(paths->path[0].back_off, 0); // the others have not been heard of either
    alb_path_sent(paths, 1, 0, MS);
    assert_true(alb_path_silent(paths, &alb_path_adaptive, 1, 2 * MS));
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    alb_path_sent(paths, 1, 0, 3 * MS);
    tell(paths, 2, 10, 0, 4 * MS);
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
    struct alb_paths_out *paths = paths_new(2);
    alb_time now = MS;
    tell(paths, 0, 500, 0, now);
    tell(paths, 1, 50, 25, now);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    tell(paths, 0, 100, 50, now);
    alb_path_load(paths, 0)->suspicion = 700;
    now += 34 * MS;
    assert_int_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 1000, now), 1);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_TRYING);
    tell(paths, 1, 4, 0, now);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    assert_int_equal(alb_path_load(paths, 1)->weight, 8);
    assert_int_equal(paths->path[1].recent_sent, 0);
    assert_int_equal(alb_path_load(paths, 0)->suspicion, 0);
    assert_int_equal(alb_path_load(paths, 0)->weight, ALB_PATH_WEIGHT_MAX);
    free(paths);
}

static void back__the_past_is_forgotten_in_time(void **state)
{
    struct alb_paths_out *paths = paths_new(2);
    alb_time now = 1000 * MS;
    alb_path_set_state(paths, 1, ALB_PATH_TRYING);
    paths->path[1].back_off = 2;
    tell(paths, 1, 8, 0, now);
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
        struct alb_paths_out *paths = paths_new(2);
        tell(paths, 0, 500, 0, MS);
        alb_path_set_state(paths, 1, ALB_PATH_TRYING);
        paths->path[1].back_off = back_off & 7;
        for (uint32_t came = 0; came < packets[back_off]; came += 4) {
            assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_TRYING);
            assert_int_equal(alb_paths_choose(paths, &alb_path_adaptive, 0, 1000, MS), 1); // it wants more
            tell(paths, 1, 4, 0, MS);
        }
        assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
        alb_path_set_state(paths, 1, ALB_PATH_TRYING);
        paths->path[1].recent_sent = paths->path[1].recent_lost = 0;
        tell(paths, 1, 4, 1, MS);
        assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
        free(paths);
    }
}

// Where all lose as much a long trial would never be passed.
static void back__a_trial_may_lose_what_others_do(void **state)
{
    struct alb_paths_out *paths = paths_new(2);
    tell(paths, 0, 500, 0, MS);
    paths->path[0].recent_lost = 25;
    alb_path_set_state(paths, 1, ALB_PATH_TRYING);
    paths->path[1].back_off = 5;
    tell(paths, 1, 32, 3, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_GOOD);
    alb_path_set_state(paths, 1, ALB_PATH_TRYING);
    paths->path[1].recent_sent = paths->path[1].recent_lost = 0;
    paths->path[0].recent_sent = 500;
    paths->path[0].recent_lost = 25;
    tell(paths, 1, 32, 4, MS);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_LEFT);
    free(paths);
}

static void adaptive__a_trial_is_small(void **state)
{
    struct alb_paths_out *paths = paths_new(2);
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

static void adaptive__little_to_send(void **state)
{
    // One packet at a time, on paths that differ by a little: all stay known, and the best one carries most.
    struct network *network = network_new(&alb_path_adaptive, 4, 14);
    network->interval_ns = 500 * US;
    network->burst_packets = 1;
    for (uint32_t i = 0; i < 4; i++)
        network->path[i].delay_ns += i * 30 * US;
    network_run(network, 1000 * MS);
    network_measure(network);
    network_run(network, 1000 * MS);
    assert_true(network_share_percent(network, 0) >= 80);
    for (uint32_t i = 0; i < 4; i++)
        assert_in_range(network->path[i].sent, 5, 2000);
    network->path[0].delay_ns += 200 * US; // now it is the worst
    network_run(network, 1000 * MS);
    network_measure(network);
    network_run(network, 1000 * MS);
    assert_true(network_share_percent(network, 0) <= 10);
    assert_true(network_share_percent(network, 1) >= 80);
    network_free(network);
}

static void adaptive__marks_make_it_lighter(void **state)
{
    struct alb_paths_out *paths = paths_new(2);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adaptive__equal_paths_share),
        cmocka_unit_test(adaptive__leaves_a_path_that_loses),
        cmocka_unit_test(adaptive__leaves_a_path_that_slows),
        cmocka_unit_test(adaptive__leaves_a_path_that_dies),
        cmocka_unit_test(adaptive__leaves_it_with_lost_frames_too),
        cmocka_unit_test(adaptive__stays_where_all_lose),
        cmocka_unit_test(adaptive__leaves_what_is_worse_than_the_others),
        cmocka_unit_test(adaptive__most_are_bad),
        cmocka_unit_test(adaptive__the_only_path),
        cmocka_unit_test(adaptive__a_cut_of_all_paths),
        cmocka_unit_test(adaptive__all_but_one_die_and_that_one_then),
        cmocka_unit_test(adaptive__a_late_one_of_many_waits),
        cmocka_unit_test(adaptive__unequal_delays_are_weighed),
        cmocka_unit_test(adaptive__noise_is_no_reason),
        cmocka_unit_test(adaptive__a_route_grows_longer),
        cmocka_unit_test(adaptive__tries_rarely_and_backs_off),
        cmocka_unit_test(leave__three_of_few),
        cmocka_unit_test(leave__spread_losses_are_forgiven),
        cmocka_unit_test(leave__compared_with_good_paths_only),
        cmocka_unit_test(leave__not_for_a_lighter_one),
        cmocka_unit_test(leave__not_what_bears_all),
        cmocka_unit_test(pick__reports_take_paths_in_turn),
        cmocka_unit_test(silent__three_at_once_or_twice),
        cmocka_unit_test(back__all_are_suspected_anew),
        cmocka_unit_test(back__the_past_is_forgotten_in_time),
        cmocka_unit_test(back__a_trial_is_longer_each_time),
        cmocka_unit_test(back__a_trial_may_lose_what_others_do),
        cmocka_unit_test(adaptive__a_trial_is_small),
        cmocka_unit_test(adaptive__little_to_send),
        cmocka_unit_test(adaptive__marks_make_it_lighter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
