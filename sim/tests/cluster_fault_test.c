// SPDX-License-Identifier: BSD-2-Clause
// Faults of links come when they are due and go when they are repaired.
#include "cluster_bench.h"

#include "base/tests/test.h"

enum {
    KB = 1024,
    MB = 1024 * KB,
};

static void create(struct bench *b)
{
    bench_prepare(b, "csa");
    bench_create(b);
}

static void at(struct bench *b, alb_sim_time when, uint32_t cable, enum alb_cluster_fault_kind kind, uint64_t value)
{
    struct alb_cluster_fault fault = {when, cable, {true, true}, kind, value, false};
    assert_int_equal(alb_cluster_fault(b->cluster, &fault), 0);
}

static void end_at(struct bench *b, alb_sim_time when, uint32_t cable, enum alb_cluster_fault_kind kind)
{
    struct alb_cluster_fault fault = {when, cable, {true, true}, kind, 0, true};
    assert_int_equal(alb_cluster_fault(b->cluster, &fault), 0);
}

static void rate__a_tenth_from_then_on(void **state)
{
    struct bench b;
    create(&b);
    at(&b, ALB_SIM_US(100), 0, ALB_FAULT_RATE, 10000000000);
    at(&b, ALB_SIM_US(300), 0, ALB_FAULT_RATE, 0);
    bench_write(&b, 1, 0, 4 * MB); // 340 us at full rate
    bench_run(&b, 1);
    assert_in_range(b.last_at, ALB_SIM_US(500), ALB_SIM_US(800));
    bench_destroy(&b);
}

static void death__nothing_passes_before_the_repair(void **state)
{
    struct bench b;
    create(&b);
    at(&b, ALB_SIM_US(100), 0, ALB_FAULT_DEATH, 0);
    at(&b, ALB_SIM_US(900), 0, ALB_FAULT_REPAIR, 0);
    bench_write(&b, 1, 0, 2 * MB);
    alb_cluster_run(b.cluster, ALB_SIM_US(150), UINT64_MAX);
    uint64_t before = alb_cluster_host_stats(b.cluster, 0)->sum.counter[ALB_STAT_rcvd_pkts];
    alb_cluster_run(b.cluster, ALB_SIM_US(899), UINT64_MAX);
    assert_int_equal(alb_cluster_host_stats(b.cluster, 0)->sum.counter[ALB_STAT_rcvd_pkts], before);
    bench_run(&b, 1);
    assert_true(b.last_at > ALB_SIM_US(900));
    assert_int_equal(b.failed, 0);
    bench_destroy(&b);
}

static void death__switches_route_around_it(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_LEAF_SPINE;
    b.spec.spines = 2;
    b.config.engine.path = "single";
    bench_create(&b);
    for (uint32_t i = 0; i < 2; i++) // one of both is on the way of the flow
        at(&b, ALB_SIM_US(50 + 500 * i), bench_cable(&b, i ? "l0-s1" : "l0-s0"), ALB_FAULT_DEATH, ALB_SIM_US(100));
    at(&b, ALB_SIM_US(400), bench_cable(&b, "l0-s0"), ALB_FAULT_REPAIR, 0);
    bench_write(&b, 0, 20, 16 * MB);
    bench_run(&b, 1);
    assert_int_equal(b.failed, 0);
    struct alb_cluster_link_stats stats;
    for (uint32_t i = 0; i < 2; i++) {
        alb_cluster_link_stats(b.cluster, 2 * bench_cable(&b, i ? "l0-s1" : "l0-s0"), &stats);
        assert_true(stats.packets > 100);
    }
    bench_destroy(&b);
}

static void loss_and_corruption__are_counted(void **state)
{
    struct bench b;
    create(&b);
    at(&b, 0, 0, ALB_FAULT_LOSS, 10000000);
    at(&b, 0, 0, ALB_FAULT_CORRUPT, 20000000);
    bench_write(&b, 1, 0, 8 * MB);
    bench_run(&b, 1);
    struct alb_cluster_link_stats stats;
    alb_cluster_link_stats(b.cluster, 1, &stats);
    assert_in_range(stats.lost, 8, 60);
    assert_in_range(stats.corrupted, 16, 120);
    assert_int_equal(alb_cluster_host_stats(b.cluster, 0)->dropped[ALB_DROP_BAD_ICRC], stats.corrupted);
    bench_destroy(&b);
}

// What is lost has been on the wire.
static void loss__takes_its_time(void **state)
{
    struct bench b;
    create(&b);
    at(&b, 0, 0, ALB_FAULT_LOSS, 300000000);
    bench_write(&b, 1, 0, 8 * MB); // 680 us at full rate, of which 70 % arrives
    bench_run(&b, 1);
    struct alb_cluster_link_stats stats;
    alb_cluster_link_stats(b.cluster, 1, &stats);
    assert_true(stats.packets >= 2048 + stats.lost);
    assert_true(b.last_at >= ALB_SIM_US(960));
    bench_destroy(&b);
}

// The end of one fault is not the end of another one, and repairs nothing that is whole.
static void end__of_that_fault_alone(void **state)
{
    struct bench b;
    create(&b);
    at(&b, 0, 0, ALB_FAULT_LOSS, 1000000000);
    at(&b, ALB_SIM_US(20), 0, ALB_FAULT_CORRUPT, 1000);
    at(&b, ALB_SIM_US(20), 0, ALB_FAULT_RATE, 10000000000);
    at(&b, ALB_SIM_US(20), 0, ALB_FAULT_DELAY, ALB_SIM_US(50));
    at(&b, ALB_SIM_US(20), 0, ALB_FAULT_PAUSE, 0);
    for (enum alb_cluster_fault_kind kind = ALB_FAULT_CORRUPT; kind <= ALB_FAULT_DELAY; kind++)
        end_at(&b, ALB_SIM_US(40), 0, kind);
    end_at(&b, ALB_SIM_US(40), 0, ALB_FAULT_DEATH);
    end_at(&b, ALB_SIM_US(60), 0, ALB_FAULT_PAUSE);
    end_at(&b, ALB_SIM_MS(1), 0, ALB_FAULT_LOSS);
    bench_write(&b, 1, 0, 4 * KB);
    alb_cluster_run(b.cluster, ALB_SIM_US(990), UINT64_MAX);
    assert_int_equal(b.done, 0);
    bench_run(&b, 1);
    assert_int_equal(b.failed, 0);
    bench_destroy(&b);
}

// The delay is the cable's: what is around it stays.
static void delay__of_the_cable(void **state)
{
    alb_sim_time with[2];
    for (int i = 0; i < 2; i++) {
        struct bench b;
        bench_prepare(&b, "csa");
        b.config.host_latency = ALB_SIM_US(3);
        b.config.switches.latency = ALB_SIM_US(5);
        bench_create(&b);
        if (i)
            at(&b, 0, 0, ALB_FAULT_DELAY, b.topology.cables[0].delay);
        bench_write(&b, 1, 0, 4 * KB);
        bench_run(&b, 1);
        with[i] = b.last_at;
        bench_destroy(&b);
    }
    assert_int_equal(with[0], with[1]);
}

// Switches learn of a death some time after it; that of an earlier one, which was repaired, tells them nothing.
static void death__is_known_in_its_own_time(void **state)
{
    struct bench b;
    struct alb_cluster_link_stats stats;
    bench_prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_LEAF_SPINE;
    b.spec.spines = 2;
    b.config.engine.path = "spray";
    bench_create(&b);
    uint32_t cable = bench_cable(&b, "l0-s0");
    at(&b, ALB_SIM_US(10), cable, ALB_FAULT_DEATH, ALB_SIM_US(1000));
    end_at(&b, ALB_SIM_US(500), cable, ALB_FAULT_DEATH);
    at(&b, ALB_SIM_US(1000), cable, ALB_FAULT_DEATH, ALB_SIM_US(1000));
    alb_cluster_run(b.cluster, ALB_SIM_US(1500), UINT64_MAX); // 490 us after routes would have been without it
    bench_write(&b, 0, 20, 1 * MB);
    alb_cluster_run(b.cluster, ALB_SIM_US(1900), UINT64_MAX);
    alb_cluster_link_stats(b.cluster, 2 * cable, &stats);
    assert_true(stats.lost > 0);
    bench_run(&b, 1);
    assert_int_equal(b.failed, 0);
    bench_destroy(&b);
}

// One more fault of a dead cable does not keep switches from learning of the first.
static void death__of_what_is_dead_already(void **state)
{
    struct bench b;
    struct alb_cluster_link_stats stats;
    bench_prepare(&b, "rc");
    b.spec.shape = ALB_TOPOLOGY_LEAF_SPINE;
    b.spec.spines = 2;
    bench_create(&b);
    uint32_t cable = bench_cable(&b, "l0-s0");
    at(&b, ALB_SIM_US(10), cable, ALB_FAULT_DEATH, ALB_SIM_US(100));
    at(&b, ALB_SIM_US(50), cable, ALB_FAULT_DEATH, 0);
    alb_cluster_run(b.cluster, ALB_SIM_US(200), UINT64_MAX);
    for (uint32_t i = 0; i < 16; i++)
        bench_write(&b, i, 16 + i, 4 * KB);
    bench_run(&b, 16);
    alb_cluster_link_stats(b.cluster, 2 * cable, &stats);
    assert_int_equal(stats.lost, 0);
    bench_destroy(&b);
}

// No buffer is short where a switch has no way left for a packet.
static void death__loses_what_has_no_way(void **state)
{
    struct bench b;
    struct alb_cluster_switch_stats stats;
    bench_prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_LEAF_SPINE;
    b.spec.spines = 1;
    bench_create(&b);
    at(&b, 0, bench_cable(&b, "l0-s0"), ALB_FAULT_DEATH, ALB_SIM_US(1));
    alb_cluster_run(b.cluster, ALB_SIM_US(10), UINT64_MAX);
    bench_write(&b, 0, 20, 64 * KB);
    alb_cluster_run(b.cluster, ALB_SIM_US(100), UINT64_MAX);
    struct alb_cluster_totals totals = bench_totals(&b);
    alb_cluster_switch_stats(b.cluster, alb_topology_find(&b.topology, "l0"), &stats);
    assert_int_equal(totals.dropped, 0);
    assert_int_equal(stats.dropped, 0);
    assert_true(stats.lost > 0 && totals.lost == stats.lost);
    bench_destroy(&b);
}

// Nor is the ideal that of the routes around it.
static void death__changes_no_ideal(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_LEAF_SPINE;
    b.spec.spines = 1;
    bench_create(&b);
    alb_sim_time before = alb_cluster_ideal_time(b.cluster, 0, 20, 4 * KB, 4096, 100);
    at(&b, ALB_SIM_US(10), bench_cable(&b, "l0-s0"), ALB_FAULT_DEATH, ALB_SIM_US(10));
    alb_cluster_run(b.cluster, ALB_SIM_US(100), UINT64_MAX);
    assert_true(before > 0);
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 20, 4 * KB, 4096, 100), before);
    bench_destroy(&b);
}

static void pause__holds_until_it_is_let_go(void **state)
{
    struct bench b;
    create(&b);
    at(&b, ALB_SIM_US(20), 1, ALB_FAULT_PAUSE, 0);
    at(&b, ALB_SIM_US(620), 1, ALB_FAULT_RESUME, 0);
    bench_write(&b, 1, 0, 1 * MB);
    bench_run(&b, 1);
    struct alb_cluster_link_stats stats;
    alb_cluster_link_stats(b.cluster, 2, &stats);
    assert_in_range(stats.paused, ALB_SIM_US(590), ALB_SIM_US(600));
    assert_int_equal(stats.pauses, 1);
    assert_true(b.last_at > ALB_SIM_US(620));
    bench_destroy(&b);
}

static void fault__nonsense_is_refused(void **state)
{
    struct bench b;
    create(&b);
    struct alb_cluster_fault fault = {.cable = b.topology.cable_count, .kind = ALB_FAULT_DEATH};
    assert_int_not_equal(alb_cluster_fault(b.cluster, &fault), 0);
    fault = (struct alb_cluster_fault){.kind = ALB_FAULT_LOSS, .value = 1000000001};
    assert_int_not_equal(alb_cluster_fault(b.cluster, &fault), 0);
    fault.kind = ALB_FAULT_KINDS;
    assert_int_not_equal(alb_cluster_fault(b.cluster, &fault), 0);
    assert_string_equal(alb_cluster_fault_name(ALB_FAULT_DEATH), "death");
    assert_null(alb_cluster_fault_name(ALB_FAULT_KINDS));
    at(&b, ALB_SIM_S(9), 0, ALB_FAULT_DEATH, 0); // still scheduled at the end
    bench_destroy(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss__takes_its_time),
        cmocka_unit_test(end__of_that_fault_alone),
        cmocka_unit_test(delay__of_the_cable),
        cmocka_unit_test(death__is_known_in_its_own_time),
        cmocka_unit_test(death__of_what_is_dead_already),
        cmocka_unit_test(death__changes_no_ideal),
        cmocka_unit_test(death__loses_what_has_no_way),
        cmocka_unit_test(rate__a_tenth_from_then_on),
        cmocka_unit_test(death__nothing_passes_before_the_repair),
        cmocka_unit_test(death__switches_route_around_it),
        cmocka_unit_test(loss_and_corruption__are_counted),
        cmocka_unit_test(pause__holds_until_it_is_let_go),
        cmocka_unit_test(fault__nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
