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
    SEEDS = TEST_SOME(8),
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
        cmocka_unit_test(adaptive__little_to_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
