// SPDX-License-Identifier: BSD-2-Clause
#include "base/tests/test.h"
#include "small_run.h"

#include <stdio.h>

static struct small_run small;

// What all columns hold together is what each link has carried.
static void expect_every_byte(const struct alb_heat *heat)
{
    for (uint32_t link = 0; link < heat->links; link++) {
        uint64_t bytes = 0;
        for (uint32_t c = 0; c < heat->columns; c++)
            bytes += heat->bytes[(size_t)c * heat->links + link];
        assert_int_equal(bytes, alb_cluster_link_bytes(small.run.cluster, link));
    }
}

static void alb_heat__accounts_for_every_byte(void **state)
{
    small_run_go(&small, "[scenario]\ninterval = 1us\n[workload]\nkind = permutation\nsize = 4M\n", true);
    const struct alb_heat *heat = &small.run.heat;
    assert_true(heat->columns > 32 && heat->interval > ALB_SIM_US(1)); // of 350 us and more
    expect_every_byte(heat);
    small_run_end(&small);
}

// Also where columns fall into the window that a run ends with, behind its end.
static void alb_heat__has_no_byte_behind_the_end(void **state)
{
    static const char *const orders[] = {"time", "window", "host"};
    for (size_t i = 0; i < ALB_COUNT(orders); i++) {
        char text[400];
        snprintf(text, sizeof(text),
                 "[scenario]\norder = %s\n[network]\nhosts = 3\nrate = 1Gb/s\ndelay = 1us\n[host]\nlatency = 500ns\n"
                 "[workload]\nkind = all-reduce-ring\nsize = 1\nop = send\nrounds = 3\nthink = 3us\nstart = 7us\n",
                 orders[i]);
        small_run_go(&small, text, true);
        const struct alb_heat *heat = &small.run.heat;
        assert_true(heat->end <= alb_cluster_now(small.run.cluster) && heat->columns * heat->interval >= heat->end);
        expect_every_byte(heat);
        small_run_end(&small);
    }
}

// A full link is as full in each interval, though packets take several of them.
static void alb_heat__divides_a_packet_over_intervals(void **state)
{
    small_run_go(&small,
                 "[scenario]\ninterval = 5us\n[network]\nhosts = 2\nrate = 1Gb/s\n"
                 "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 40000\n",
                 true);
    const struct alb_heat *heat = &small.run.heat;
    assert_true(heat->columns > 20);
    for (uint32_t c = 1; c < 20; c++)
        assert_in_range(heat->bytes[(size_t)c * heat->links], 500, 750); // 625
    small_run_end(&small);
}

// The last column, too, is as long as the run was in it.
static void alb_heat_load__of_a_column_that_is_cut_off(void **state)
{
    small_run_go(&small,
                 "[scenario]\ninterval = 5us\nend = 52us\n[network]\nhosts = 2\nrate = 1Gb/s\n"
                 "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 40000\n",
                 true);
    assert_int_equal(small.run.heat.end, ALB_SIM_US(52));
    assert_int_equal(small.run.heat.columns, 11);
    for (uint32_t c = 1; c < 11; c++)
        assert_true(alb_heat_load(&small.run, c, 0) > 0.8 && alb_heat_load(&small.run, c, 0) < 1.2);
    small_run_end(&small);
}

// The last message is lost whole, so the run ends when its sender's timer does, 67 ms later.
static void alb_heat__ends_with_the_last_byte(void **state)
{
    small_run_go(&small,
                 "[scenario]\ninterval = 5us\n[network]\nhosts = 2\nrate = 1Gb/s\n[host]\ntransport = rc\n"
                 "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 40000\n"
                 "[fault]\ncables = h0-*\nkind = death\nat = 300us\n",
                 true);
    assert_true(alb_cluster_now(small.run.cluster) > ALB_SIM_MS(60));
    assert_int_equal(small.run.heat.interval, ALB_SIM_US(5));
    small_run_end(&small);
}

// Columns in which nothing leaves are there if something leaves behind them.
static void alb_heat__has_the_quiet_between_two_bursts(void **state)
{
    small_run_go(&small,
                 "[scenario]\ninterval = 1us\n[network]\nhosts = 2\nrate = 10Gb/s\n"
                 "[workload a]\nkind = pairs\nhosts = 0\nto = 1\nsize = 40000\n"
                 "[workload b]\nkind = pairs\nhosts = 0\nto = 1\nsize = 40000\nstart = 1ms\n",
                 true);
    struct alb_heat *heat = &small.run.heat;
    uint64_t bytes[3] = {0}; // until 64 us, until 960 us, behind that
    assert_true(heat->end > ALB_SIM_MS(1) && heat->end <= heat->interval * heat->columns);
    for (uint32_t c = 0; c < heat->columns; c++) {
        alb_sim_time begin = c * heat->interval;
        bytes[begin < ALB_SIM_US(64) ? 0 : begin < ALB_SIM_US(960) ? 1 : 2] += heat->bytes[(size_t)c * heat->links];
    }
    assert_in_range(bytes[0], 40000, 50000);
    assert_int_equal(bytes[1], 0);
    assert_in_range(bytes[2], 40000, 50000);
    small_run_end(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_heat__accounts_for_every_byte),
        cmocka_unit_test(alb_heat__has_no_byte_behind_the_end),
        cmocka_unit_test(alb_heat__divides_a_packet_over_intervals),
        cmocka_unit_test(alb_heat_load__of_a_column_that_is_cut_off),
        cmocka_unit_test(alb_heat__ends_with_the_last_byte),
        cmocka_unit_test(alb_heat__has_the_quiet_between_two_bursts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
