// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/bottleneck.h"

#include "wire/csa.h"

#include <stdlib.h>

static const struct alb_congestion_ops *const window = &alb_congestion_window;

// The share of the link, in percent, that flows which begin one after the other get after so long.
static uint32_t settle(struct bottleneck *b, uint32_t flows, alb_time apart_ns, alb_time warm_up_ns, alb_time ns)
{
    for (uint32_t f = 0; f < flows; f++)
        bottleneck_add(b, window, f * apart_ns);
    bottleneck_run(b, flows * apart_ns + warm_up_ns);
    bottleneck_measure(b);
    bottleneck_run(b, ns);
    return bottleneck_percent(b, ns);
}

static uint64_t time_of(const struct bottleneck *b, uint64_t bytes)
{
    return bytes * ALB_NS_PER_S / b->bytes_per_s;
}

static uint32_t lost_percent(const struct bottleneck *b)
{
    uint64_t lost = 0, came = 0;
    for (uint32_t f = 0; f < b->flow_count; f++) {
        lost += b->flows[f].lost_bytes;
        came += b->flows[f].came_bytes;
    }
    return (uint32_t)(lost * 100 / (lost + came));
}

static void window__one_flow_fills_the_link_and_no_queue_beyond_its_target(void **state)
{
    struct bottleneck *b = bottleneck_new();
    assert_in_range(settle(b, 1, 0, 10 * ALB_NS_PER_MS, 100 * ALB_NS_PER_MS), 97, 100);
    assert_true(b->rtt_ns + time_of(b, b->queue_peak_bytes) < b->engine.rtt_target_ns * 13 / 10);
    assert_int_equal(lost_percent(b), 0);
    free(b);
}

static void window__slow_start_ends_when_a_queue_shows(void **state)
{
    struct bottleneck *b = bottleneck_new();
    bottleneck_add(b, window, 0);
    bottleneck_run(b, 10 * ALB_NS_PER_MS);
    assert_true(b->queue_peak_bytes < 256 << 10); // of 1 MB
    assert_true(bottleneck_percent(b, 10 * ALB_NS_PER_MS) >= 98);
    free(b);
}

static void window__flows_share_whoever_came_first(void **state)
{
    static const uint32_t flows[] = {2, 4, 8, 16};
    for (size_t i = 0; i < ALB_COUNT(flows); i++) {
        struct bottleneck *b = bottleneck_new();
        b->packet_bytes = 1500;
        assert_in_range(settle(b, flows[i], 5 * ALB_NS_PER_MS, 50 * ALB_NS_PER_MS, ALB_NS_PER_S), 98, 100);
        assert_true(bottleneck_fairness(b) >= 70);
        assert_int_equal(lost_percent(b), 0);
        free(b);
    }
}

static void window__takes_what_another_leaves(void **state)
{
    struct bottleneck *b = bottleneck_new();
    bottleneck_add(b, window, 0);
    struct bottleneck_flow *other = bottleneck_add(b, window, 0);
    bottleneck_run(b, 50 * ALB_NS_PER_MS);
    other->stop = b->now;
    bottleneck_run(b, 5 * ALB_NS_PER_MS);
    bottleneck_measure(b);
    bottleneck_run(b, 10 * ALB_NS_PER_MS);
    assert_in_range(bottleneck_percent(b, 10 * ALB_NS_PER_MS), 98, 100);
    free(b);
}

static void window__marks_keep_the_queue_short(void **state)
{
    for (uint32_t flows = 1; flows <= 16; flows *= 4) {
        struct bottleneck *b = bottleneck_new();
        b->mark_above_bytes = 65536;
        b->engine.rtt_target_ns = ALB_NS_PER_MS; // round trips tell nothing here
        assert_in_range(settle(b, flows, 5 * ALB_NS_PER_MS, 50 * ALB_NS_PER_MS, 300 * ALB_NS_PER_MS), 98, 100);
        assert_true(b->queue_peak_bytes < 65536 * 2);
        assert_true(bottleneck_fairness(b) >= 70);
        free(b);
    }
}

static void window__many_flows_with_hardly_a_packet_each(void **state)
{
    for (int marks = 0; marks < 2; marks++) {
        struct bottleneck *b = bottleneck_new();
        b->mark_above_bytes = marks ? 65536 : 0;
        assert_in_range(settle(b, 32, ALB_NS_PER_MS / 10, 200 * ALB_NS_PER_MS, 1500 * ALB_NS_PER_MS), 98, 100);
        assert_true(bottleneck_fairness(b) >= 80);
        assert_int_equal(lost_percent(b), 0);
        free(b);
    }
}

static void window__lost_packets_do_not_slow_it(void **state)
{
    static const struct {
        uint32_t lost_per_billion;
        alb_time rtt_ns;
        uint32_t percent;
    } all[] = {
        {1000000, 30000, 99},   {10000000, 30000, 98},  {50000000, 30000, 95},
        {10000000, 200000, 97}, {50000000, 200000, 90}, {10000000, 800000, 80},
    };
    for (size_t i = 0; i < ALB_COUNT(all); i++) {
        struct bottleneck *b = bottleneck_new();
        b->lost_per_billion = all[i].lost_per_billion;
        b->rtt_ns = all[i].rtt_ns;
        b->engine.rtt_target_ns = all[i].rtt_ns * 2;
        assert_true(settle(b, 1, 0, 100 * ALB_NS_PER_MS, 300 * ALB_NS_PER_MS) >= all[i].percent);

        free(b);
    }
}

// The queue is shorter than the target: nothing but losses tell.
static void window__many_lost_packets_do(void **state)
{
    for (uint32_t flows = 1; flows <= 8; flows *= 2) {
        struct bottleneck *b = bottleneck_new();
        b->queue_bytes_max = 100000;
        b->engine.rtt_target_ns = ALB_NS_PER_MS;
        assert_in_range(settle(b, flows, 5 * ALB_NS_PER_MS, 50 * ALB_NS_PER_MS, 300 * ALB_NS_PER_MS), 95, 100);
        assert_true(lost_percent(b) < 15);
        assert_true(bottleneck_fairness(b) >= 60);
        free(b);
    }
}

static void window__a_path_longer_than_the_target(void **state)
{
    for (alb_time rtt_ns = 61000; rtt_ns < 2000000; rtt_ns = rtt_ns * 3 / 2) {
        struct bottleneck *b = bottleneck_new();
        b->rtt_ns = rtt_ns;
        uint32_t percent = settle(b, 2, ALB_NS_PER_MS, 500 * ALB_NS_PER_MS, 500 * ALB_NS_PER_MS);
        assert_true(percent >= 90);
        assert_true(bottleneck_fairness(b) >= 50);
        assert_true(lost_percent(b) <= 2);
        free(b);
    }
}

// ---- long paths -----------------------------------------------------------------------------------------------------

// 1 Gb/s, and the target of real devices.
static struct bottleneck *new_long(alb_time rtt_ns, uint32_t queue_percent)
{
    struct bottleneck *b = bottleneck_new();
    b->bytes_per_s = 125000000;
    b->rtt_ns = rtt_ns;
    b->queue_bytes_max = (uint32_t)(b->bytes_per_s * rtt_ns / ALB_NS_PER_S * queue_percent / 100);
    b->engine.rtt_target_ns = ALB_NS_PER_MS;
    return b;
}

static const alb_time long_ms[] = {5, 10, 50, 100};

static void window__a_long_path_is_filled_at_once(void **state)
{
    for (size_t i = 0; i < ALB_COUNT(long_ms); i++)
        for (uint32_t lost = 0; lost <= 1000000; lost += 1000000) {
            alb_time rtt_ns = long_ms[i] * ALB_NS_PER_MS;
            struct bottleneck *b = new_long(rtt_ns, 100);
            b->lost_per_billion = lost;
            bottleneck_add(b, window, 0);
            bottleneck_run(b, 20 * rtt_ns);
            assert_true(bottleneck_percent(b, 20 * rtt_ns) >= 50); // eight of them are slow start's
            bottleneck_measure(b);
            bottleneck_run(b, 100 * rtt_ns);
            assert_true(bottleneck_percent(b, 100 * rtt_ns) >= 96);
            assert_int_equal(lost_percent(b), 0);
            free(b);
        }
}

static void window__a_long_path_with_a_short_queue(void **state)
{
    for (size_t i = 0; i < ALB_COUNT(long_ms); i++)
        for (uint32_t flows = 1; flows <= 8; flows *= 2) {
            struct bottleneck *b = new_long(long_ms[i] * ALB_NS_PER_MS, 25);
            assert_true(settle(b, flows, 20 * ALB_NS_PER_MS, 3 * ALB_NS_PER_S, 8 * ALB_NS_PER_S) >= 95);
            assert_true(lost_percent(b) < 3);
            free(b);
        }
}

static void window__flows_share_a_long_path(void **state)
{
    for (uint32_t ms = 10; ms <= 20; ms *= 2)
        for (uint32_t flows = 2; flows <= 4; flows *= 2) {
            struct bottleneck *b = new_long(ms * ALB_NS_PER_MS, 200);
            assert_true(settle(b, flows, 100 * ALB_NS_PER_MS, 12 * ALB_NS_PER_S, 8 * ALB_NS_PER_S) >= 97);
            assert_true(bottleneck_fairness(b) >= 50);
            assert_int_equal(lost_percent(b), 0);
            free(b);
        }
}

static void window__a_path_becomes_longer_and_shorter(void **state)
{
    static const alb_time rtt_us[] = {100, 20000, 60000, 10000, 100};
    struct bottleneck *b = new_long(ALB_NS_PER_MS, 0);
    b->queue_bytes_max = 2500000;
    bottleneck_add(b, window, 0);
    for (size_t i = 0; i < ALB_COUNT(rtt_us); i++) {
        b->rtt_ns = rtt_us[i] * ALB_NS_PER_US;
        bottleneck_run(b, 12 * ALB_NS_PER_S);
        bottleneck_measure(b);
        bottleneck_run(b, 3 * ALB_NS_PER_S);
        assert_true(bottleneck_percent(b, 3 * ALB_NS_PER_S) >= 90);
    }
    assert_true(time_of(b, b->queued_bytes) <= b->engine.rtt_target_ns * 13 / 10);
    free(b);
}

// A failure sends it by a longer way. A window that is cut to a quarter, and more, and does not change round trips, is
// not what makes them long.
static void window__a_longer_path_is_known_after_some_rounds(void **state)
{
    static const uint32_t rtt_ms[][2] = {{2, 20}, {2, 50}, {10, 30}, {20, 70}};
    for (size_t i = 0; i < ALB_COUNT(rtt_ms); i++) {
        struct bottleneck *b = new_long(rtt_ms[i][0] * ALB_NS_PER_MS, 0);
        b->queue_bytes_max = 5000000;
        bottleneck_add(b, window, 0);
        bottleneck_run(b, 1200 * ALB_NS_PER_MS);
        b->rtt_ns = rtt_ms[i][1] * ALB_NS_PER_MS;
        bottleneck_run(b, 40 * b->rtt_ns);
        bottleneck_measure(b);
        bottleneck_run(b, 10 * b->rtt_ns);
        assert_true(bottleneck_percent(b, 10 * b->rtt_ns) >= 95);
        free(b);
    }
}

// A report that was read late counts as one that came early.
static void window__one_round_trip_that_is_too_short_is_none(void **state)
{
    struct bottleneck *b = new_long(20 * ALB_NS_PER_MS, 100);
    bottleneck_add(b, window, 0);
    for (uint32_t i = 0; i < 50; i++) {
        bottleneck_run(b, 40 * ALB_NS_PER_MS);
        const struct alb_ack early = {.bytes = 4096, .rtt_ns = 12000000, .packets = 1};
        window->on_ack(&b->flows[0].congestion, &early, b->now);
    }
    assert_true(bottleneck_percent(b, 2 * ALB_NS_PER_S) >= 85);
    free(b);
}

// What comes while the sender does not run is seen late: round trips of milliseconds, now and then.
static void window__hosts_that_stall(void **state)
{
    for (alb_time stall_ns = ALB_NS_PER_MS; stall_ns <= 8 * ALB_NS_PER_MS; stall_ns *= 2) {
        struct bottleneck *b = bottleneck_new();
        b->engine.rtt_target_ns = ALB_NS_PER_MS;
        b->queue_bytes_max = 4000000;
        b->stall_each_ns = 5 * stall_ns;
        b->stall_ns = stall_ns;
        assert_true(settle(b, 1, 0, 50 * ALB_NS_PER_MS, 500 * ALB_NS_PER_MS) >= 80); // of the time it runs
        free(b);
    }
}

// ---- one by one -----------------------------------------------------------------------------------------------------

static const struct alb_engine_config config = {
    .window_start_bytes = 64000,
    .window_min_bytes = 4000,
    .window_max_bytes = 1000000,
    .rtt_target_ns = ALB_NS_PER_MS,
};

static struct alb_congestion start(void)
{
    struct alb_congestion congestion;
    window->init(&congestion, &config);
    return congestion;
}

static void window__does_not_grow_unless_it_is_what_limits(void **state)
{
    struct alb_congestion c = start();
    struct alb_ack ack = {.bytes = 64000, .rtt_ns = 50000, .packets = 16};
    for (alb_time now = 1; now < 100 * ALB_NS_PER_MS; now += 60000)
        window->on_ack(&c, &ack, now);
    assert_int_equal(c.window_bytes, 64000);
    ack.limited = true;
    window->on_ack(&c, &ack, 100 * ALB_NS_PER_MS);
    assert_int_equal(c.window_bytes, 128000);
}

static void window__shrinks_in_the_second_slow_round(void **state)
{
    struct alb_congestion c = start();
    struct alb_ack ack = {.bytes = 1000, .rtt_ns = 100000, .packets = 1};
    alb_time now = 1;
    window->on_ack(&c, &ack, now); // the path is short
    ack.rtt_ns = 4000000;
    window->on_ack(&c, &ack, now += 4000000);
    window->on_ack(&c, &ack, now += 4000000);
    assert_int_equal(c.window_bytes, 64000);
    window->on_ack(&c, &ack, now += 4000000);
    assert_in_range(c.window_bytes, 32000, 32001); // four times the target: no more than half
    ack.rtt_ns = 100000;
    window->on_ack(&c, &ack, now + 4000000);
    assert_in_range(c.window_bytes, 32000, 32001);
}

// Two rounds at 60 % of the target: what is left of the window.
static uint32_t window_after_two_rounds(uint8_t share)
{
    struct alb_congestion c = start();
    struct alb_ack ack = {.bytes = 1000, .rtt_ns = 600000, .packets = 10, .share = share};
    alb_time now = 1;
    window->on_ack(&c, &ack, now);
    window->on_ack(&c, &ack, now += 700000);
    window->on_ack(&c, &ack, now + 700000);
    return c.window_bytes;
}

static void window__who_has_more_than_others_shrinks_first(void **state)
{
    assert_int_equal(window_after_two_rounds(0), 64000); // not given
    assert_int_equal(window_after_two_rounds(1), 64000);
    assert_int_equal(window_after_two_rounds(ALB_CSA_SHARE_EVEN), 64000);
    assert_in_range(window_after_two_rounds(ALB_CSA_SHARE_EVEN * 3 / 2), 40000, 56000);
    assert_in_range(window_after_two_rounds(ALB_CSA_SHARE_EVEN * 2), 32000, 40000);
    assert_int_equal(window_after_two_rounds(255), window_after_two_rounds(ALB_CSA_SHARE_EVEN * 2));
}

static void window__marks_cost_by_the_share(void **state)
{
    static const uint32_t shares[] = {ALB_CSA_SHARE_EVEN, 0, ALB_CSA_SHARE_EVEN * 2, ALB_CSA_SHARE_EVEN / 4};
    uint32_t cut[ALB_COUNT(shares)];
    for (size_t i = 0; i < ALB_COUNT(shares); i++) {
        struct alb_congestion c = start();
        struct alb_ack ack = {.bytes = 1000, .rtt_ns = 50000, .packets = 100, .marked = 1};
        ack.share = (uint8_t)shares[i];
        alb_time now = 1;
        for (; now < 40 * ALB_NS_PER_MS; now += 60000) // until the share of marks is one in a hundred
            window->on_ack(&c, &ack, now);
        c.window_bytes = 1000000;
        window->on_ack(&c, &ack, now);
        cut[i] = 1000000 - c.window_bytes;
    }
    assert_in_range(cut[0], 4000, 7000);
    assert_int_equal(cut[1], cut[0]); // not given
    assert_in_range(cut[2], 2 * cut[0] - 100, 2 * cut[0] + 100);
    assert_in_range(cut[3], cut[0] / 4 - 25, cut[0] / 4 + 25);
}

static void window__the_first_mark_counts_as_its_part(void **state)
{
    struct alb_congestion c = start();
    struct alb_ack ack = {.bytes = 4000, .rtt_ns = 50000, .packets = 32, .marked = 1};
    window->on_ack(&c, &ack, 60000);
    assert_in_range(c.window_bytes, 62000, 63999);
}

static void window__grows_fast_while_there_is_room(void **state)
{
    struct alb_congestion c = start();
    struct alb_ack ack = {.bytes = 4000, .limited = true, .rtt_ns = 250000, .packets = 1, .marked = 1};
    window->on_ack(&c, &ack, 1); // no slow start from here
    ack.marked = 0;
    uint32_t before = c.window_bytes;
    for (alb_time now = 300000; now < 3300000; now += 300000) // a quarter of the target
        window->on_ack(&c, &ack, now);
    assert_true(c.window_bytes >= 2 * before);
}

// The window after some rounds of that round trip, where an idle one takes 150 us.
static uint32_t grown_to(uint32_t rtt_ns)
{
    struct alb_congestion c = start();
    struct alb_ack ack = {.bytes = 4000, .limited = true, .rtt_ns = 150000, .packets = 1, .marked = 1};
    window->on_ack(&c, &ack, 1); // no slow start from here
    c.window_bytes = c.window.threshold_bytes = 8000;
    alb_time now = 200000;
    ack.marked = 0;
    for (ack.rtt_ns = rtt_ns; now < 4000000; now += 450000) {
        ack.bytes = c.window_bytes;
        window->on_ack(&c, &ack, now);
    }
    return c.window_bytes;
}

static void window__begins_anew_where_the_others_have_ended(void **state)
{
    assert_true(grown_to(400000) < 48000);
    assert_true(grown_to(150000) >= 64000); // as much as a new flow begins with
}

static void window__silence_begins_at_the_bottom(void **state)
{
    struct alb_congestion c = start();
    window->on_loss(&c, 64000, 64000, ALB_LOSS_NAK, 1);
    assert_int_equal(c.window_bytes, 64000);
    window->on_loss(&c, 64000, 64000, ALB_LOSS_RNR, 1);
    assert_int_equal(c.window_bytes, 64000);
    window->on_loss(&c, 64000, 64000, ALB_LOSS_TIMEOUT, 1);
    assert_int_equal(c.window_bytes, 4000);
    struct alb_ack ack = {.bytes = 4000, .limited = true, .rtt_ns = 50000, .packets = 1};
    for (alb_time now = 60000; now < 600000; now += 60000, ack.bytes *= 2) // doubles up to half of what it was
        window->on_ack(&c, &ack, now);
    assert_in_range(c.window_bytes, 32000, 36000);
}

static void window__stays_within_its_bounds_whatever_comes(void **state)
{
    struct alb_congestion c = start();
    struct alb_prng prng;
    alb_prng_init(&prng, 1);
    alb_time now = 0;
    for (uint32_t i = 0; i < 300000; i++) {
        uint64_t random = alb_prng_u64(&prng);
        uint32_t any[4];
        for (size_t k = 0; k < ALB_COUNT(any); k++)
            any[k] = (uint32_t)alb_prng_u64(&prng) >> alb_prng_below(&prng, 32);
        now += any[0];
        if ((random & 7) == 0)
            window->on_loss(&c, any[1], any[2], random >> 8 & 3, now);
        struct alb_ack ack = {any[1],
                              random >> 16 & 1,
                              any[2],
                              any[3] & any[1],
                              any[3],
                              any[0],
                              any[2] >> (random >> 24 & 31),
                              (uint8_t)(random >> 32),
                              (uint8_t)(random >> 40)};
        window->on_ack(&c, &ack, now);
        assert_in_range(c.window_bytes, config.window_min_bytes, config.window_max_bytes);
    }
}

static void window__what_reports_wait_for_is_no_queue_of_ours(void **state)
{
    struct alb_congestion c = start();
    struct alb_ack ack = {.bytes = 1000, .limited = true, .rtt_ns = 100000, .packets = 1};
    alb_time now = 1;
    window->on_ack(&c, &ack, now);
    ack.rtt_ns = 4000000;
    ack.back_ns = 3900000;
    for (uint32_t i = 0; i < 10; i++)
        window->on_ack(&c, &ack, now += 4000000);
    assert_true(c.window_bytes > 64000);
    assert_true(c.window.rtt_ns > 2500000); // a round lasts as long as a round trip
    uint32_t window_bytes = c.window_bytes;
    ack.back_ns = 0;
    for (uint32_t i = 0; i < 3; i++)
        window->on_ack(&c, &ack, now += 4000000);
    assert_true(c.window_bytes < window_bytes);
}

// Of the window of a long path that has lost packets leaves at once what a new flow may send, and the rest in its time.
static void window__a_long_path_with_losses_is_paced(void **state)
{
    struct alb_congestion c = start();
    struct alb_ack ack = {.bytes = 64000, .limited = true, .rtt_ns = 20000000, .packets = 16, .lost = 1};
    alb_time now = 40 * ALB_NS_PER_MS;
    window->on_burst(&c, 200000, now);
    assert_int_equal(window->send_at(&c, now), now);
    window->on_ack(&c, &ack, now); // slow start: 128 kB, in a third of a round trip
    assert_int_equal(c.window_bytes, 128000);
    window->on_burst(&c, 64000, now);
    assert_int_equal(window->send_at(&c, now), now);
    window->on_burst(&c, 32000, now);
    assert_true(c.is_paced);
    assert_in_range(window->send_at(&c, now), now + 1666000, now + 1667000);
    now += 2 * ALB_NS_PER_MS;
    assert_int_equal(window->send_at(&c, now), now);
    window->on_burst(&c, 32000, now); // late by a fifth of what it takes
    assert_in_range(window->send_at(&c, now), now + 1333000, now + 1334000);
    assert_int_equal(window->send_at(&c, now + 200 * ALB_NS_PER_S), now + 200 * ALB_NS_PER_S); // numbers have wrapped
}

static void window__a_short_path_is_not_paced(void **state)
{
    struct alb_congestion c = start();
    struct alb_ack ack = {.bytes = 64000, .limited = true, .rtt_ns = 1900000, .packets = 16, .lost = 1};
    window->on_ack(&c, &ack, ALB_NS_PER_MS);
    for (uint32_t i = 0; i < 10; i++)
        window->on_burst(&c, 64000, ALB_NS_PER_MS);
    assert_false(c.is_paced);
    assert_int_equal(window->send_at(&c, ALB_NS_PER_MS), ALB_NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window__one_flow_fills_the_link_and_no_queue_beyond_its_target),
        cmocka_unit_test(window__slow_start_ends_when_a_queue_shows),
        cmocka_unit_test(window__flows_share_whoever_came_first),
        cmocka_unit_test(window__takes_what_another_leaves),
        cmocka_unit_test(window__marks_keep_the_queue_short),
        cmocka_unit_test(window__many_flows_with_hardly_a_packet_each),
        cmocka_unit_test(window__lost_packets_do_not_slow_it),
        cmocka_unit_test(window__many_lost_packets_do),
        cmocka_unit_test(window__a_path_longer_than_the_target),
        cmocka_unit_test(window__a_long_path_is_filled_at_once),
        cmocka_unit_test(window__a_long_path_with_a_short_queue),
        cmocka_unit_test(window__flows_share_a_long_path),
        cmocka_unit_test(window__a_long_path_with_losses_is_paced),
        cmocka_unit_test(window__a_short_path_is_not_paced),
        cmocka_unit_test(window__a_path_becomes_longer_and_shorter),
        cmocka_unit_test(window__a_longer_path_is_known_after_some_rounds),
        cmocka_unit_test(window__one_round_trip_that_is_too_short_is_none),
        cmocka_unit_test(window__hosts_that_stall),
        cmocka_unit_test(window__does_not_grow_unless_it_is_what_limits),
        cmocka_unit_test(window__what_reports_wait_for_is_no_queue_of_ours),
        cmocka_unit_test(window__shrinks_in_the_second_slow_round),
        cmocka_unit_test(window__who_has_more_than_others_shrinks_first),
        cmocka_unit_test(window__marks_cost_by_the_share),
        cmocka_unit_test(window__the_first_mark_counts_as_its_part),
        cmocka_unit_test(window__grows_fast_while_there_is_room),
        cmocka_unit_test(window__begins_anew_where_the_others_have_ended),
        cmocka_unit_test(window__silence_begins_at_the_bottom),
        cmocka_unit_test(window__stays_within_its_bounds_whatever_comes),
    };
    return cmocka_run_group_tests_name("congestion_window", tests, NULL, NULL);
}
