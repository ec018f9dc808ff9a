// SPDX-License-Identifier: BSD-2-Clause
// CSA over paths of unequal length, without any loss: packets overtake each other all the time, and next to nothing is
// sent twice.
#include "world.h"

enum {
    KB = 1024,
    LANES = 4,
    FLOW_BYTES = 20 << 20,
};

static void options_of(const char *path, const char *loss, const alb_sim_time delays[LANES], struct options *options)
{
    world_transport = "csa";
    options_default(options);
    options->path_payload_max = 1472;
    options->pair.lane_count = LANES;
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++) {
        options->pair.host[side].engine.path_max = LANES;
        options->pair.host[side].engine.path = path;
        options->pair.host[side].engine.loss = loss;
        options->pair.out[side].bits_per_s = 20000000000;
        for (uint32_t i = 0; i < LANES; i++)
            options->pair.lanes[side][i] = (struct alb_sim_link_config){.bits_per_s = 10000000000, .delay = delays[i]};
    }
}

static struct world *world_of(const struct options *options)
{
    struct world *w = world_new(options);
    w->a.is_log_closed = w->b.is_log_closed = true;
    return w;
}

static void run_flow(const char *path, const char *loss, const alb_sim_time delays[LANES], uint32_t message_bytes,
                     uint32_t depth)
{
    struct options options;
    options_of(path, loss, delays, &options);
    struct world *w = world_of(&options);
    struct flow flow = world_flow(w, message_bytes, depth, FLOW_BYTES);
    flow_start(&flow);
    run_idle(w);
    assert_true(flow_is_done(&flow));
    expect_copied(&w->a, 0, &w->b, 128 * KB, message_bytes);
    for (uint32_t i = 0; i < LANES && strcmp(path, "spray") == 0; i++)
        assert_true(w->pair.fabric[A].lanes[i].stats.packets > w->a.segments / 50); // all have been used
    if (w->a.segments_again * 1000 >= w->a.segments)
        fail_msg("%s, messages of %u: %llu of %llu segments were sent again", path, message_bytes,
                 (unsigned long long)w->a.segments_again, (unsigned long long)w->a.segments);
    assert_int_equal(stat(&w->a, ALB_STAT_local_ack_timeout_err), 0);
    world_free(w);
}

static const alb_sim_time unequal[LANES] = {ALB_SIM_US(5), ALB_SIM_US(8), ALB_SIM_US(20), ALB_SIM_US(40)};
static const alb_sim_time far_apart[LANES] = {ALB_SIM_US(5), ALB_SIM_US(5), ALB_SIM_US(5), ALB_SIM_US(100)};

static void spray__unequal_paths(void **state)
{
    run_flow("spray", "csa", unequal, 64 * KB, 8);
    run_flow("spray", "csa", unequal, 4 * KB, 32);
    run_flow("spray", "csa", far_apart, 64 * KB, 8);
}

static void adaptive__unequal_paths(void **state)
{
    run_flow("adaptive", "csa", unequal, 64 * KB, 8);
    run_flow("adaptive", "csa", unequal, 4 * KB, 32);
}

// What comes early finds little room, and the flow does not drown in repetitions: 27 times its segments left before
// senders heard of room.
static void spray__with_little_room(void **state)
{
    struct options options;
    options_of("spray", "csa", far_apart, &options);
    options.pair.host[B].engine.csa_early_bytes_max = 64 * KB;
    struct world *w = world_of(&options);
    struct flow flow = world_flow(w, 4 * KB, 64, FLOW_BYTES);
    flow_start(&flow);
    run_for(w, ALB_SIM_MS(60));
    assert_true(flow_is_done(&flow));
    expect_copied(&w->a, 0, &w->b, 128 * KB, 4 * KB);
    assert_true(w->b.host->stats.dropped[ALB_DROP_NO_RESOURCES] > 100);
    assert_true(w->a.segments_again * 4 < w->a.segments);
    run_idle(w);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spray__unequal_paths),
        cmocka_unit_test(adaptive__unequal_paths),
        cmocka_unit_test(spray__with_little_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
