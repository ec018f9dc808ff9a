// SPDX-License-Identifier: BSD-2-Clause
// The network and its hosts: payload left at home, the host's own link as its pace, more than two hosts with a node
// between them.
#include "world.h"

#include "sim/tests/star.h"

#include <stdlib.h>

enum {
    KB = 1024,
};

static alb_sim_time time_of_write(bool carries_payload, struct world **out)
{
    struct options options;
    options_default(&options);
    options.pair.out[A].bits_per_s = options.pair.out[B].bits_per_s = 100000000000;
    struct world *w = world_new(&options);
    w->pair.network.carries_payload = carries_payload;
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 64 * KB, 128 * KB});
    while (!alb_cq_peek(w->a.cq))
        assert_true(alb_sim_queue_step(&w->pair.network.queue));
    alb_sim_time at = now_of(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    run_idle(w);
    *out = w;
    return at;
}

static void payload_left_at_home__takes_the_same_time(void **state)
{
    struct world *with, *without;
    assert_int_equal(time_of_write(true, &with), time_of_write(false, &without));
    expect_copied(&with->a, 0, &with->b, 128 * KB, 64 * KB);
    for (uint32_t i = 0; i < 64 * KB; i++)
        assert_int_equal(without->b.memory[128 * KB + i], 0);
    assert_int_equal(without->pair.out[A].stats.bytes, with->pair.out[A].stats.bytes);
    world_free(with);
    world_free(without);
}

static void payload_left_at_home__damage_is_still_noticed(void **state)
{
    struct world *w = world_default();
    w->pair.network.carries_payload = false;
    on_way_to_b(w, (struct alb_sim_rule){NTH(2), .action = ALB_SIM_CORRUPT, .amount = 8000});
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 4 * KB, 128 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    assert_int_equal(w->b.host->stats.dropped[ALB_DROP_BAD_ICRC], 1);
    world_free(w);
}

static void slow_link__is_the_pace_of_its_host(void **state)
{
    struct options options;
    options_default(&options);
    options.pair.out[A].bits_per_s = 1000000000;
    options.pair.host[A].ahead_bytes = 4 * KB;
    struct world *w = world_new(&options);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 48 * KB, 128 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    // A call of the engine's tx may fill a batch, so what waits is bounded by the limit and a batch: the window, here.
    assert_true(w->pair.out[A].queue_bytes_peak < 64 * KB);
    uint64_t wire_ps = w->pair.out[A].stats.bytes * 8000; // at 1 Gb/s
    const struct sent *last = &w->a.log[w->a.log_count - 1];
    assert_true(last->at < wire_ps && wire_ps < last->at + ALB_SIM_US(600));
    world_free(w);
}

static void slow_link__small_batches_keep_to_what_may_wait(void **state)
{
    struct options options;
    options_default(&options);
    options.pair.out[A].bits_per_s = 1000000000;
    options.pair.host[A].ahead_bytes = 4 * KB;
    options.pair.host[A].batch = 2;
    struct world *w = world_new(&options);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 48 * KB, 128 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    assert_true(w->pair.out[A].queue_bytes_peak < 16 * KB);
    world_free(w);
}

// ---- what happens to hosts and ways ---------------------------------------------------------------------------------

static void partition__loses_until_it_is_mended(void **state)
{
    struct world *w = world_default();
    alb_sim_pair_set_partition(&w->pair, true);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, KB, 128 * KB});
    run_for(w, ALB_SIM_MS(100)); // one timeout
    expect_none(w->a.cq);
    assert_int_equal(w->b.host->stats.sum.counter[ALB_STAT_rcvd_pkts], 0);
    alb_sim_pair_set_partition(&w->pair, false);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    assert_int_equal(w->pair.out[A].stats.lost, 2);
    world_free(w);
}

static void lanes__lie_behind_the_link(void **state)
{
    struct options options;
    options_default(&options);
    options.pair.lane_count = 3;
    options.pair.lanes[A][0].delay = ALB_SIM_US(20); // of path 0, the only one that RC has
    options.pair.lanes[B][0].delay = ALB_SIM_US(30);
    struct world *w = world_new(&options);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, KB, 128 * KB});
    run_idle(w);
    struct alb_wc wc;
    expect_wc_as(w->a.cq, 1, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.timestamp, 1000 + 20000 + 1000 + 30000);
    assert_int_equal(w->pair.fabric[A].lanes[0].stats.packets, 1);
    assert_int_equal(w->pair.fabric[B].lanes[0].stats.packets, 1);
    world_free(w);
}

static void restart__leaves_nothing_of_the_former_engine(void **state)
{
    struct world *w = world_default();
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 8 * KB, 128 * KB});
    world_restart(w, &w->b); // with packets for it under way
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_RETRY_EXC_ERR);
    assert_int_equal(w->b.host->stats.dropped[ALB_DROP_UNKNOWN_QP], 64); // eight packets, eight times
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    assert_int_equal(alb_qp_modify(w->a.qp, &attr, ALB_QP_STATE, 0), 0);
    connect_qps(w, w->a.qp, w->b.qp);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 2, 0, 8 * KB, 128 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    expect_copied(&w->a, 0, &w->b, 128 * KB, 8 * KB);
    world_free(w);
}

static void star__incast_through_one_node(void **state)
{
    struct star_config config;
    star_config_default(&config, 5);
    config.down.queue_bytes_max = 100 * KB;
    struct star *star = star_new(&config);
    for (uint32_t i = 1; i < 5; i++)
        star_flow(star, i, 0, 16 * KB, 4, 64 * KB);
    star_run(star);
    for (uint32_t i = 1; i < 5; i++)
        assert_true(star_is_done(star, i));
    // Four hosts share the link to the first: no sooner than all the bytes take.
    uint64_t payload_ps = 4ull * 64 * KB * 8 * 100;
    assert_true(alb_sim_network_now(&star->network) > payload_ps);
    star_free(star);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload_left_at_home__takes_the_same_time),
        cmocka_unit_test(payload_left_at_home__damage_is_still_noticed),
        cmocka_unit_test(slow_link__is_the_pace_of_its_host),
        cmocka_unit_test(slow_link__small_batches_keep_to_what_may_wait),
        cmocka_unit_test(partition__loses_until_it_is_mended),
        cmocka_unit_test(lanes__lie_behind_the_link),
        cmocka_unit_test(restart__leaves_nothing_of_the_former_engine),
        cmocka_unit_test(star__incast_through_one_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
