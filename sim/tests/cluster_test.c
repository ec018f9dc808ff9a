// SPDX-License-Identifier: BSD-2-Clause
// Clusters as a whole: flows across topologies, real bytes, what is counted, and that a seed reproduces.
#include "cluster_bench.h"

#include "base/tests/test.h"

#include <string.h>

enum {
    KB = 1024,
    MB = 1024 * KB,
};

static void write__one_flow_takes_about_its_ideal_time(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_FAT_TREE;
    bench_create(&b);
    alb_sim_time ideal = alb_cluster_ideal_time(b.cluster, 0, 15, 2 * MB, 4096, 180);
    assert_in_range(ideal, ALB_SIM_US(180), ALB_SIM_US(186)); // 175 us on the wire, 6 us and five packets on the way
    bench_write(&b, 0, 15, 2 * MB);
    bench_run(&b, 1);
    assert_in_range(b.last_at, ideal, ideal + ideal / 4);
    bench_destroy(&b);
}

static void ideal_time__adds_up(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.config.host_latency = ALB_SIM_NS(100);
    b.config.switches.latency = ALB_SIM_NS(50);
    bench_create(&b);
    alb_sim_time way = 2 * (ALB_SIM_US(1) + ALB_SIM_NS(100)) + ALB_SIM_NS(50);
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 1, 900, 1000, 100), way + 2 * 80000);
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 1, 2500, 1000, 100), way + 2 * 88000 + 88000 + 48000);
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 1, 1ull << 62, 1000, 100), ALB_SIM_END);
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 1, 1, 2500, 1000, 100), 0);
    bench_destroy(&b);
}

// A short packet waits for the full one before it where a link is slow, and has less to go from there on.
static void ideal_time__behind_a_slow_link(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_TWO_SITES;
    b.spec.host_bits_per_s = 400000000000;
    b.spec.long_bits_per_s = 100000000000;
    bench_create(&b);
    alb_sim_time way = alb_cluster_ideal_time(b.cluster, 0, 15, 1, 1000, 99) - (2 * 2000 + 8000); // the delays alone
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 15, 1318, 1000, 106), way + 22120 + 88480 + 33920 + 8480);
    bench_destroy(&b);
}

// A short packet behind a full one may overtake it by another way, and a link beside others holds nobody up.
static void ideal_time__where_ways_part(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_FAT_TREE;
    bench_create(&b);
    alb_sim_time way = alb_cluster_ideal_time(b.cluster, 0, 15, 1, 1000, 99) - 6 * 8000; // the delays alone
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 15, 1100, 1000, 100), way + 6 * 88000);
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 15, 2000, 1000, 100), way + 7 * 88000);
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 15, 9100, 1000, 100), way + 14 * 88000 + 16000);
    bench_destroy(&b);
    bench_prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_FAT_TREE;
    b.spec.core_bits_per_s = b.spec.host_bits_per_s / 2;
    bench_create(&b);
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 15, 9000, 1000, 100), way + (2 * 1 + 4 * 2 + 8) * 88000);
    bench_destroy(&b);
}

// Packets come ten times as fast as each of two ways takes them on, and take turns.
static void ideal_time__where_few_slow_ways_are_shared(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_LEAF_SPINE;
    b.spec.spines = 2;
    b.spec.core_bits_per_s = b.spec.host_bits_per_s / 10;
    bench_create(&b);
    alb_sim_time way = alb_cluster_ideal_time(b.cluster, 0, 20, 1, 1000, 99) - 22 * 8000; // the delays alone
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 20, 1000, 1000, 100), way + 22 * 88000);
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 20, 2000, 1000, 100), way + 23 * 88000);
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 20, 3000, 1000, 100), way + (22 + 10) * 88000);
    assert_int_equal(alb_cluster_ideal_time(b.cluster, 0, 20, 1000000, 1000, 100), way + (22 + 499 * 10) * 88000);
    bench_destroy(&b);
}

static void write__permutation_without_loss(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_FAT_TREE;
    b.spec.k = 8;
    bench_create(&b);
    bench_permutation(&b, 2 * MB);
    bench_run(&b, 128);
    struct alb_cluster_totals totals = bench_totals(&b);
    assert_true(b.last_at < ALB_SIM_US(500)); // 185 if no flows met
    assert_int_equal(totals.dropped, 0);
    assert_true(totals.packet_hops > 6 * 128 * 500);
    assert_true(totals.bytes < 128 * 512 * KB);
    bench_destroy(&b);
}

static void write__rc_with_pfc(void **state)
{
    struct bench b;
    bench_prepare(&b, "rc");
    b.spec.shape = ALB_TOPOLOGY_FAT_TREE;
    b.config.switches.flow_control = ALB_FLOW_CONTROL_PFC;
    b.config.switches.buffer_bytes = 4000000;
    b.config.switches.alpha_16ths = 4;
    b.config.switches.port_bytes_max = 0;
    bench_create(&b);
    bench_permutation(&b, 1 * MB);
    bench_run(&b, 16);
    assert_int_equal(b.failed, 0);
    assert_int_equal(bench_totals(&b).dropped, 0);
    bench_destroy(&b);
}

// What still waits for the wire has not been carried, though it is known when it will be.
static void link_stats__bytes_that_have_left(void **state)
{
    struct bench b;
    struct alb_cluster_link_stats stats;
    bench_prepare(&b, "rc");
    b.config.engine.congestion = "none";
    bench_create(&b);
    bench_incast(&b, 8, 1 * MB);
    alb_cluster_run(b.cluster, ALB_SIM_US(10), UINT64_MAX);
    alb_cluster_link_stats(b.cluster, 1, &stats); // down to host 0
    assert_true(stats.queued_bytes > 0);
    assert_in_range(stats.bytes, 80000, 125000); // 10 us of 100 Gb/s, but for the way of the first one
    assert_int_equal(stats.bytes, alb_cluster_link_bytes(b.cluster, 1));
    bench_destroy(&b);
}

static void rnic__few_contexts_slow_many_connections(void **state)
{
    alb_sim_time took[2];
    for (uint32_t turn = 0; turn < 2; turn++) {
        struct bench b;
        bench_prepare(&b, "rc");
        b.config.rnic = (struct alb_rnic_config){turn ? 4 : 64, ALB_SIM_US(1)};
        bench_create(&b);
        for (uint32_t i = 0; i < 45; i++)
            bench_write(&b, 0, 1 + i % 15, 64 * KB);
        bench_run(&b, 45);
        took[turn] = b.last_at;
        bench_destroy(&b);
    }
    assert_true(took[1] > took[0] + took[0] / 2);
}

// Whenever the fetch ends, also in the very moment in which another packet comes.
static void rnic__packets_stay_in_order(void **state)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct bench b;
        bench_prepare(&b, "rc");
        b.spec.hosts = 2;
        b.spec.host_bits_per_s = 8000000000; // 1 ns a byte
        b.config.engine.congestion = "none";
        b.config.switches.port_bytes_max = 0;
        b.config.rnic = (struct alb_rnic_config){4, ALB_SIM_NS(4177 + i)};
        bench_create(&b);
        bench_write(&b, 0, 1, 40 * KB);
        bench_run(&b, 1);
        assert_int_equal(alb_cluster_host_stats(b.cluster, 0)->sum.counter[ALB_STAT_retransmitted_pkts], 0);
        bench_destroy(&b);
    }
}

// ---- messages -------------------------------------------------------------------------------------------------------

static void post__all_operations_with_real_bytes(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.config.has_real_bytes = true;
    bench_create(&b);
    struct alb_channel *channel = bench_connect(&b, 3, 4);
    uint8_t *from = alb_cluster_memory(b.cluster, 3), *to = alb_cluster_memory(b.cluster, 4);
    for (uint32_t i = 0; i < 100 * KB; i++)
        from[i] = (uint8_t)(i * 7 + i / 251);
    memset(to + 500 * KB, 9, 1000);
    struct alb_message messages[] = {
        {.op = ALB_MESSAGE_WRITE, .bytes = 100 * KB, .remote_offset = 200 * KB},
        {.op = ALB_MESSAGE_WRITE_IMM, .bytes = 10, .remote_offset = 400 * KB, .imm = 77},
        {.op = ALB_MESSAGE_SEND, .bytes = 3000, .imm = 78},
        {.op = ALB_MESSAGE_READ, .bytes = 1000, .local_offset = 300 * KB, .remote_offset = 500 * KB},
    };
    for (uint32_t i = 0; i < ALB_COUNT(messages); i++)
        assert_int_equal(alb_cluster_post(b.cluster, channel, 0, &messages[i]), 0);
    bench_run(&b, 4);
    assert_int_equal(b.failed, 0);
    assert_int_equal(b.received, 2);
    assert_int_equal(b.received_bytes, 3010);
    assert_memory_equal(to + 200 * KB, from, 100 * KB);
    assert_memory_equal(to + 400 * KB, from, 10);
    assert_memory_equal(from + 300 * KB, to + 500 * KB, 1000);
    uint64_t receives = b.config.memory_bytes - (uint64_t)b.config.receives * b.config.receive_bytes;
    assert_memory_equal(to + receives + b.config.receive_bytes, from, 3000); // the second receive
    bench_destroy(&b);
}

static void post__limits(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.config.has_real_bytes = true;
    bench_create(&b);
    struct alb_connection connection;
    struct alb_channel *channel;
    alb_connection_default(&connection, 0, 1);
    connection.send_depth = 2;
    assert_int_equal(alb_cluster_connect(b.cluster, &connection, &channel), 0);
    struct alb_message message = {.op = ALB_MESSAGE_WRITE, .bytes = b.config.memory_bytes + 1};
    assert_int_not_equal(alb_cluster_post(b.cluster, channel, 0, &message), 0);
    message.bytes = 64;
    message.remote_offset = b.config.memory_bytes - 63;
    assert_int_not_equal(alb_cluster_post(b.cluster, channel, 0, &message), 0);
    message.remote_offset = 0;
    assert_int_equal(alb_cluster_post(b.cluster, channel, 0, &message), 0);
    assert_int_equal(alb_cluster_post(b.cluster, channel, 0, &message), 0);
    assert_int_not_equal(alb_cluster_post(b.cluster, channel, 0, &message), 0);
    bench_run(&b, 2);
    bench_destroy(&b);
}

static void connect__errors(void **state)
{
    struct bench b;
    struct alb_connection connection;
    struct alb_channel *channel;
    bench_prepare(&b, "csa");
    bench_create(&b);
    alb_connection_default(&connection, 0, 0);
    assert_int_not_equal(alb_cluster_connect(b.cluster, &connection, &channel), 0);
    connection.host[1] = 16;
    assert_int_not_equal(alb_cluster_connect(b.cluster, &connection, &channel), 0);
    bench_destroy(&b);
}

static void disconnect__in_the_middle(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    bench_create(&b);
    struct alb_channel *channel = bench_connect(&b, 0, 1);
    struct alb_message message = {.op = ALB_MESSAGE_WRITE, .bytes = 4 * MB};
    assert_int_equal(alb_cluster_post(b.cluster, channel, 0, &message), 0);
    alb_cluster_run(b.cluster, ALB_SIM_US(100), UINT64_MAX);
    alb_cluster_disconnect(b.cluster, channel);
    alb_cluster_run(b.cluster, ALB_SIM_MS(10), UINT64_MAX);
    assert_int_equal(b.done, 0);
    bench_write(&b, 0, 1, 64 * KB);
    bench_run(&b, 1);
    assert_int_equal(b.failed, 0);
    bench_destroy(&b);
}

static void uc__completes_when_sent(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    bench_create(&b);
    struct alb_connection connection;
    struct alb_channel *channel;
    alb_connection_default(&connection, 0, 1);
    connection.type = ALB_QPT_UC;
    assert_int_equal(alb_cluster_connect(b.cluster, &connection, &channel), 0);
    struct alb_message message = {.op = ALB_MESSAGE_WRITE_IMM, .bytes = 64 * KB, .imm = 5};
    assert_int_equal(alb_cluster_post(b.cluster, channel, 0, &message), 0);
    bench_run(&b, 1);
    alb_cluster_run(b.cluster, ALB_SIM_MS(10), UINT64_MAX);
    assert_int_equal(b.received, 1);
    bench_destroy(&b);
}

// ---- time -----------------------------------------------------------------------------------------------------------

static void run__ends_as_asked(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    bench_create(&b);
    assert_int_equal(alb_cluster_run(b.cluster, ALB_SIM_NEVER, UINT64_MAX), ALB_CLUSTER_IDLE);
    bench_write(&b, 0, 1, 1 * MB);
    assert_int_equal(alb_cluster_run(b.cluster, ALB_SIM_US(5), UINT64_MAX), ALB_CLUSTER_UNTIL);
    assert_int_equal(alb_cluster_now(b.cluster), ALB_SIM_US(5));
    uint64_t events = bench_totals(&b).events;
    assert_int_equal(alb_cluster_run(b.cluster, ALB_SIM_NEVER, 10), ALB_CLUSTER_EVENTS);
    assert_int_equal(bench_totals(&b).events, events + 10);
    bench_run(&b, 1);
    bench_destroy(&b);
}

static uint64_t hash_of_seed(uint64_t seed)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.config.seed = seed;
    b.spec.shape = ALB_TOPOLOGY_FAT_TREE;
    bench_create(&b);
    struct alb_cluster_fault fault = {.cable = 3, .ways = {true, true}, .kind = ALB_FAULT_LOSS, .value = 10000000};
    assert_int_equal(alb_cluster_fault(b.cluster, &fault), 0);
    bench_permutation(&b, 256 * KB);
    bench_run(&b, 16);
    uint64_t hash = alb_cluster_trace_hash(b.cluster);
    bench_destroy(&b);
    return hash;
}

static void trace_hash__follows_from_the_seed(void **state)
{
    uint64_t first = hash_of_seed(5);
    assert_true(first == hash_of_seed(5));
    assert_true(first != hash_of_seed(6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write__one_flow_takes_about_its_ideal_time),
        cmocka_unit_test(ideal_time__adds_up),
        cmocka_unit_test(ideal_time__where_ways_part),
        cmocka_unit_test(ideal_time__where_few_slow_ways_are_shared),
        cmocka_unit_test(ideal_time__behind_a_slow_link),
        cmocka_unit_test(write__permutation_without_loss),
        cmocka_unit_test(write__rc_with_pfc),
        cmocka_unit_test(link_stats__bytes_that_have_left),
        cmocka_unit_test(rnic__packets_stay_in_order),
        cmocka_unit_test(rnic__few_contexts_slow_many_connections),
        cmocka_unit_test(post__all_operations_with_real_bytes),
        cmocka_unit_test(post__limits),
        cmocka_unit_test(connect__errors),
        cmocka_unit_test(disconnect__in_the_middle),
        cmocka_unit_test(uc__completes_when_sent),
        cmocka_unit_test(run__ends_as_asked),
        cmocka_unit_test(trace_hash__follows_from_the_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
