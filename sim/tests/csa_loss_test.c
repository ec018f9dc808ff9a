// SPDX-License-Identifier: BSD-2-Clause
// What random loss on four paths, both ways, costs the goodput of a flow that would fill its link: hardly more than the
// packets that are lost, since nothing waits for a timeout and a lost packet is no sign of congestion.
#include "world.h"

enum {
    KB = 1024,
    LANES = 4,
    PERCENT = 10000000, // of parts per billion
};

// Bytes that complete in 100 ms; *again: segments that were sent again; *lost: packets that were lost on their way.
static uint64_t goodput(uint32_t loss, uint64_t *again, uint64_t *lost)
{
    struct options options;
    world_transport = "csa";
    options_default(&options);
    options.path_payload_max = 1472;
    options.pair.lane_count = LANES;
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++) {
        options.pair.host[side].engine.path_max = LANES;
        options.pair.out[side].bits_per_s = 10000000000;
        for (uint32_t i = 0; i < LANES; i++)
            options.pair.lanes[side][i] =
                (struct alb_sim_link_config){.bits_per_s = 5000000000, .delay = ALB_SIM_US(10)};
    }
    struct world *w = world_new(&options);
    w->a.is_log_closed = w->b.is_log_closed = true;
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++)
        for (uint32_t i = 0; i < LANES; i++)
            alb_sim_link_set_faults(&w->pair.fabric[side].lanes[i], &(struct alb_faults_spec){.loss = loss},
                                    LANES * side + i);
    struct flow flow = world_flow(w, 64 * KB, 16, UINT64_MAX);
    flow_start(&flow);
    run_for(w, ALB_SIM_MS(20)); // it has found its rate
    uint64_t before = flow.done_bytes;
    run_for(w, ALB_SIM_MS(100));
    uint64_t done = flow.done_bytes - before;
    flow_stop(&flow);
    run_idle(w);
    assert_true(flow_is_done(&flow));
    expect_copied(&w->a, 0, &w->b, 128 * KB, 64 * KB);
    assert_int_equal(stat(&w->a, ALB_STAT_local_ack_timeout_err), 0);
    *again = w->a.segments_again;
    *lost = 0;
    for (uint32_t i = 0; i < LANES; i++)
        *lost += w->pair.fabric[A].lanes[i].stats.lost;
    world_free(w);
    return done;
}

static void loss__costs_what_is_lost(void **state)
{
    static const struct {
        uint32_t loss, percent;
    } all[] = {{PERCENT / 100, 99}, {PERCENT / 10, 99}, {PERCENT, 98}, {5 * PERCENT, 90}};
    uint64_t again, lost, lossless = goodput(0, &again, &lost);
    assert_int_equal(again, 0);
    assert_true(lossless > 110000000); // of the 125 MB that 100 ms of 10 Gb/s are
    for (size_t i = 0; i < ALB_COUNT(all); i++) {
        uint64_t bytes = goodput(all[i].loss, &again, &lost);
        assert_true(lost > 0);
        assert_true(again <= lost); // lost reports are not sent again
        if (bytes * 100 < lossless * all[i].percent)
            fail_msg("%llu bytes with %u lost of a billion, %llu without", (unsigned long long)bytes, all[i].loss,
                     (unsigned long long)lossless);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss__costs_what_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
