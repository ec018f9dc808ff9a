// SPDX-License-Identifier: BSD-2-Clause
// Each rule of the reaction point and the notification point by itself, then flows that share a queue.
#include "engine/tests/bottleneck.h"

#include <stdlib.h>

static const struct alb_congestion_ops *const dcqcn = &alb_congestion_dcqcn;

static struct alb_engine_config config;

static int setup(void **state)
{
    alb_engine_config_default(&config);
    return 0;
}

static struct alb_congestion start(void)
{
    struct alb_congestion congestion;
    dcqcn->init(&congestion, &config);
    return congestion;
}

// Lets time pass, as a sender that has nothing to send sees it.
static void wait_until(struct alb_congestion *c, alb_time now)
{
    dcqcn->send_at(c, now);
}

static void dcqcn__nothing_holds_it_before_the_first_cnp(void **state)
{
    struct alb_congestion c = start();
    assert_int_equal(c.window_bytes, config.window_max_bytes);
    for (alb_time now = 0; now < 1000; now++) {
        assert_int_equal(dcqcn->send_at(&c, now), now);
        dcqcn->on_sent(&c, 65536, now);
    }
}

static void dcqcn__a_cnp_cuts_by_half_of_alpha(void **state)
{
    struct alb_congestion c = start();
    dcqcn->on_mark(&c, 0, 1000);
    assert_int_equal(c.dcqcn.rate_bytes_per_s, 2500000000); // alpha begins with 1
    assert_int_equal(c.dcqcn.target_bytes_per_s, 5000000000);
    dcqcn->on_mark(&c, 0, 1000 + config.dcqcn.cnp_ns - 1); // too soon for an honest peer
    assert_int_equal(c.dcqcn.rate_bytes_per_s, 2500000000);
    dcqcn->on_mark(&c, 0, 1000 + config.dcqcn.cnp_ns);
    assert_int_equal(c.dcqcn.rate_bytes_per_s, 1250000000);
    assert_int_equal(c.dcqcn.target_bytes_per_s, 2500000000);
}

static void dcqcn__alpha_shrinks_while_no_cnp_comes(void **state)
{
    struct alb_congestion c = start();
    dcqcn->on_mark(&c, 0, 0);
    uint32_t one = c.dcqcn.alpha;
    wait_until(&c, config.dcqcn.alpha_ns - 1);
    assert_int_equal(c.dcqcn.alpha, one);
    wait_until(&c, config.dcqcn.alpha_ns);
    assert_int_equal(c.dcqcn.alpha, one - one / 256);
    wait_until(&c, 256 * config.dcqcn.alpha_ns); // 1/e
    assert_in_range(c.dcqcn.alpha, one / 1000 * 360, one / 1000 * 376);
    uint32_t before = c.dcqcn.alpha;
    dcqcn->on_mark(&c, 0, 256 * config.dcqcn.alpha_ns);
    assert_int_equal(c.dcqcn.alpha, before + (one - before) / 256);
}

static void dcqcn__climbs_in_three_stages(void **state)
{
    config.dcqcn.rate_max_bytes_per_s = 8000000000;
    struct alb_congestion c = start();
    dcqcn->on_mark(&c, 0, 0);
    dcqcn->on_mark(&c, 0, 50000); // the target is 4 GB/s, the rate 2
    alb_time now = 50000;
    uint64_t rate = 2000000000, target = 4000000000;
    assert_int_equal(c.dcqcn.rate_bytes_per_s, rate);
    for (uint32_t step = 1; step <= 12; step++) {
        if (step >= 5)
            target += config.dcqcn.additive_bytes_per_s;
        rate = (rate + target + 1) / 2;
        wait_until(&c, now += config.dcqcn.increase_ns);
        assert_int_equal(c.dcqcn.target_bytes_per_s, target);
        assert_int_equal(c.dcqcn.rate_bytes_per_s, rate);
    }
    // The other counter has been still: hyper increase begins when it has made more than five steps too.
    for (uint32_t step = 1; step <= 8; step++) {
        dcqcn->on_sent(&c, config.dcqcn.counter_bytes, now);
        target += step > 5 ? (step - 5) * config.dcqcn.hyper_bytes_per_s : config.dcqcn.additive_bytes_per_s;
        rate = (rate + target + 1) / 2;
        assert_int_equal(c.dcqcn.target_bytes_per_s, target);
        assert_int_equal(c.dcqcn.rate_bytes_per_s, rate);
    }
}

static void dcqcn__stays_between_its_rates(void **state)
{
    struct alb_congestion c = start();
    alb_time now = 0;
    for (uint32_t i = 0; i < 100; i++)
        dcqcn->on_mark(&c, 0, now += config.dcqcn.cnp_ns);
    assert_int_equal(c.dcqcn.rate_bytes_per_s, config.dcqcn.rate_min_bytes_per_s);
    for (uint32_t i = 0; i < 2000; i++)
        wait_until(&c, now += config.dcqcn.increase_ns);
    assert_int_equal(c.dcqcn.target_bytes_per_s, config.dcqcn.rate_max_bytes_per_s);
    assert_in_range(c.dcqcn.rate_bytes_per_s, config.dcqcn.rate_max_bytes_per_s - 2, config.dcqcn.rate_max_bytes_per_s);
}

static void dcqcn__sends_at_its_rate(void **state)
{
    static const uint32_t packets[] = {64, 1500, 65536};
    config.dcqcn.increase_ns = ALB_NS_PER_S; // the rate stays
    for (size_t i = 0; i < ALB_COUNT(packets); i++) {
        struct alb_congestion c = start();
        dcqcn->on_mark(&c, 0, 1);
        c.dcqcn.rate_bytes_per_s = 100000000;
        uint64_t sent = 0;
        for (alb_time now = 1, at; now < 20 * ALB_NS_PER_MS; now = at) {
            at = dcqcn->send_at(&c, now);
            if (at > now)
                continue;
            dcqcn->on_sent(&c, packets[i], now);
            sent += packets[i];
            at = now + 7; // a sender is not always there when it may go on
        }
        assert_in_range(sent, 2000000 - 2 * 65536, 2000000 + 2 * 65536);
    }
}

static void dcqcn__a_late_sender_catches_up_a_little(void **state)
{
    config.dcqcn.increase_ns = ALB_NS_PER_S;
    struct alb_congestion c = start();
    dcqcn->on_mark(&c, 0, 1);
    c.dcqcn.rate_bytes_per_s = 1000000000;
    alb_time now = 10 * ALB_NS_PER_MS;
    uint64_t sent = 0;
    for (; dcqcn->send_at(&c, now) == now; sent += 1000)
        dcqcn->on_sent(&c, 1000, now);
    assert_in_range(sent, 100000, 101000); // 100 us, not 10 ms
}

// However slow: a sender that waits for its rate has something to send.
static void dcqcn__who_waits_is_not_idle(void **state)
{
    static const uint64_t rates[] = {1, 125000};
    for (size_t i = 0; i < ALB_COUNT(rates); i++) {
        config.dcqcn.increase_ns = 10 * ALB_NS_PER_S;
        config.dcqcn.rate_min_bytes_per_s = rates[i];
        struct alb_congestion c = start();
        alb_time now = 1;
        dcqcn->on_mark(&c, 0, now);
        c.dcqcn.rate_bytes_per_s = c.dcqcn.target_bytes_per_s = rates[i];
        uint64_t sent = 0;
        while (now < 5 * ALB_NS_PER_S) {
            alb_time at = dcqcn->send_at(&c, now);
            assert_true(c.dcqcn.is_limited);
            if (at == now) {
                dcqcn->on_sent(&c, 65000, now);
                sent += 65000;
            }
            now = ALB_MAX(at, now + 1);
        }
        assert_in_range(sent, 65000, 5 * rates[i] + 2 * 65000);
    }
}

static void dcqcn__time_and_silence(void **state)
{
    struct alb_congestion c = start();
    dcqcn->on_loss(&c, 10000, 1000, ALB_LOSS_NAK, 1000);
    assert_false(c.dcqcn.is_limited);
    dcqcn->on_loss(&c, 10000, 10000, ALB_LOSS_TIMEOUT, 1000);
    assert_int_equal(c.dcqcn.rate_bytes_per_s, 2500000000);
    wait_until(&c, 1000 + 101 * ALB_NS_PER_MS); // idle so long that all is forgotten
    assert_false(c.dcqcn.is_limited);
    dcqcn->on_mark(&c, 0, UINT64_MAX / 2); // no loop over the time since
    wait_until(&c, UINT64_MAX - ALB_NS_PER_S);
    assert_false(c.dcqcn.is_limited);
}

static void alb_dcqcn_np_on_mark__one_cnp_in_so_long(void **state)
{
    struct alb_dcqcn_np np = {0};
    assert_true(alb_dcqcn_np_on_mark(&np, &config.dcqcn, 0));
    assert_false(alb_dcqcn_np_on_mark(&np, &config.dcqcn, 1));
    assert_false(alb_dcqcn_np_on_mark(&np, &config.dcqcn, 49999));
    assert_true(alb_dcqcn_np_on_mark(&np, &config.dcqcn, 50000));
    assert_false(alb_dcqcn_np_on_mark(&np, &config.dcqcn, 60000));
    assert_true(alb_dcqcn_np_on_mark(&np, &config.dcqcn, ALB_NS_PER_S));
}

static void alb_dcqcn_config_is_valid__refuses(void **state)
{
    assert_true(alb_dcqcn_config_is_valid(&config.dcqcn));
    struct alb_dcqcn_config wrong[10];
    for (size_t i = 0; i < ALB_COUNT(wrong); i++)
        wrong[i] = config.dcqcn;
    wrong[0].rate_max_bytes_per_s = ALB_DCQCN_RATE_MAX_BYTES_PER_S + 1;
    wrong[1].rate_min_bytes_per_s = 0;
    wrong[2].rate_min_bytes_per_s = wrong[2].rate_max_bytes_per_s + 1;
    wrong[3].gain_log2 = 0;
    wrong[4].gain_log2 = 17;
    wrong[5].counter_bytes = 0;
    wrong[6].increase_ns = 999;
    wrong[7].alpha_ns = 0;
    wrong[8].burst_ns = ALB_NS_PER_S;
    wrong[9].hyper_bytes_per_s = wrong[9].rate_max_bytes_per_s + 1;
    for (size_t i = 0; i < ALB_COUNT(wrong); i++)
        assert_false(alb_dcqcn_config_is_valid(&wrong[i]));
}

// ---- a shared queue -------------------------------------------------------------------------------------------------

static void dcqcn__flows_share_whoever_came_first(void **state)
{
    for (uint32_t flows = 2; flows <= 16; flows *= 2) {
        struct bottleneck *b = bottleneck_new();
        b->engine.window_max_bytes = 256 << 10;
        b->engine.dcqcn.rate_max_bytes_per_s = b->bytes_per_s;
        b->queue_bytes_max = 64 << 20;
        b->mark_above_bytes = 100000;
        for (uint32_t f = 0; f < flows; f++)
            bottleneck_add(b, dcqcn, f * ALB_NS_PER_MS);
        bottleneck_run(b, 300 * ALB_NS_PER_MS);
        bottleneck_measure(b);
        bottleneck_run(b, 500 * ALB_NS_PER_MS);
        assert_in_range(bottleneck_percent(b, 500 * ALB_NS_PER_MS), 85, 100);
        assert_true(bottleneck_fairness(b) >= 75);
        assert_true(b->queue_peak_bytes < 512 << 10);
        free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(dcqcn__nothing_holds_it_before_the_first_cnp, setup),
        cmocka_unit_test_setup(dcqcn__a_cnp_cuts_by_half_of_alpha, setup),
        cmocka_unit_test_setup(dcqcn__alpha_shrinks_while_no_cnp_comes, setup),
        cmocka_unit_test_setup(dcqcn__climbs_in_three_stages, setup),
        cmocka_unit_test_setup(dcqcn__stays_between_its_rates, setup),
        cmocka_unit_test_setup(dcqcn__sends_at_its_rate, setup),
        cmocka_unit_test_setup(dcqcn__a_late_sender_catches_up_a_little, setup),
        cmocka_unit_test_setup(dcqcn__who_waits_is_not_idle, setup),
        cmocka_unit_test_setup(dcqcn__time_and_silence, setup),
        cmocka_unit_test_setup(alb_dcqcn_np_on_mark__one_cnp_in_so_long, setup),
        cmocka_unit_test_setup(alb_dcqcn_config_is_valid__refuses, setup),
        cmocka_unit_test_setup(dcqcn__flows_share_whoever_came_first, setup),
    };
    return cmocka_run_group_tests_name("congestion_dcqcn", tests, NULL, NULL);
}
