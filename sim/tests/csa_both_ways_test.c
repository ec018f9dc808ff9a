// SPDX-License-Identifier: BSD-2-Clause
// CSA when reports have to wait on their way, behind the data of the host that sends them, or behind each other, which
// is no reason for the other one to hold back.
#include "base/tests/test.h"

#include "star.h"

enum { KB = 1024, BYTES_PER_S = 50000000 };

static uint32_t paths, standing_bytes; // of host 1; 0: as the other

static void change(struct alb_engine_config *engine)
{
    static uint32_t made;
    int error = alb_engine_config_transport(engine, "csa");
    alb_assert(error == 0);
    engine->path_max = paths;
    if (made++ % 2 == 0 || standing_bytes == 0)
        return;
    engine->congestion = "fixed";
    engine->window_max_bytes = standing_bytes;
}

static struct star *new_star(void)
{
    struct star_config config;
    star_config_default(&config, 2);
    config.is_wheel = false;
    config.down = (struct alb_sim_link_config){
        .bits_per_s = 8ull * BYTES_PER_S, .delay = ALB_SIM_US(10), .queue_bytes_max = 400 * KB};
    config.up.bits_per_s = 10000000000;
    config.path_payload_max = 1472;
    config.change = change;
    return star_new(&config);
}

static void begin(struct star *star, uint32_t from, uint32_t to)
{
    star_flow(star, from, to, 16 * KB, 16, UINT64_MAX);
}

static void end(struct star *star, uint32_t flows)
{
    for (uint32_t i = 0; i < flows; i++)
        flow_stop(&star->hosts[i].flow);
    star_run(star);
    star_free(star);
}

// What a host's flow gets through, in percent of the link.
static uint32_t percent(struct star *star, uint32_t from, alb_sim_time span)
{
    uint64_t before = star->hosts[from].flow.done_bytes;
    alb_sim_network_run_for(&star->network, span);
    return (uint32_t)((star->hosts[from].flow.done_bytes - before) * 100 /
                      (BYTES_PER_S / 1000 * (span / ALB_SIM_MS(1))));
}

static void both_ways(void)
{
    struct star *star = new_star();
    begin(star, 0, 1);
    begin(star, 1, 0);
    alb_sim_network_run_for(&star->network, ALB_SIM_MS(500));
    uint64_t before = star->hosts[0].flow.done_bytes;
    assert_true(percent(star, 1, ALB_SIM_MS(500)) >= 87); // 89 or 90 by itself
    assert_true(star->hosts[0].flow.done_bytes - before >= BYTES_PER_S / 2 / 100 * 87);
    end(star, 2);
}

static void both_ways__by_one_path(void **state)
{
    paths = 1;
    both_ways();
}

static void both_ways__by_several_paths(void **state)
{
    paths = 4;
    both_ways();
}

// The other one keeps three times as much in its queue as a round trip may last by the policy's target.
static void reports_that_wait(uint32_t path_count)
{
    paths = path_count;
    standing_bytes = 3 * BYTES_PER_S / 1000;
    struct star *star = new_star();
    begin(star, 0, 1);
    alb_sim_network_run_for(&star->network, ALB_SIM_MS(500));
    assert_true(percent(star, 0, ALB_SIM_MS(200)) >= 88);
    begin(star, 1, 0);
    percent(star, 0, ALB_SIM_MS(100)); // until it is known how much comes
    for (uint32_t i = 0; i < 4; i++)
        assert_true(percent(star, 0, ALB_SIM_MS(100)) >= 75);
    end(star, 2);
    standing_bytes = 0;
}

static void reports__that_wait(void **state)
{
    reports_that_wait(1);
    reports_that_wait(4);
}

// By 1 Mb/s four reports take 6 ms, and a round trip may last for one by the policy's target.
static void reports__by_a_slow_way_back(void **state)
{
    paths = 4;
    struct star *star = new_star();
    alb_sim_link_set_rate(&star->hosts[0].down, 1000000, 0);
    begin(star, 0, 1);
    percent(star, 0, ALB_SIM_MS(500));
    assert_true(percent(star, 0, ALB_SIM_MS(3000)) >= 12); // 16; 3 while each packet asked for a report
    end(star, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways__by_one_path),
        cmocka_unit_test(both_ways__by_several_paths),
        cmocka_unit_test(reports__that_wait),
        cmocka_unit_test(reports__by_a_slow_way_back),
    };
    return cmocka_run_group_tests_name("csa_both_ways", tests, NULL, NULL);
}
