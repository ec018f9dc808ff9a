// SPDX-License-Identifier: BSD-2-Clause
// Clusters as a whole: flows across topologies, and that what the switches promise holds end to end.
#include "sim/cluster.h"

#include "base/tests/test.h"

#include <string.h>

enum {
    KB = 1024,
    MB = 1024 * KB,
};

struct bench {
    struct alb_topology topology;
    struct alb_topology_spec spec;
    struct alb_cluster_config config;
    struct alb_cluster *cluster;
    uint32_t done, received, failed;
    alb_sim_time last_at;
};

static void on_complete(void *context, const struct alb_cluster_completion *completion, alb_sim_time now)
{
    struct bench *bench = context;
    bench->failed += completion->status != ALB_WC_SUCCESS;
    bench->done += !completion->is_received;
    bench->received += completion->is_received;
    bench->last_at = now;
}

static void prepare(struct bench *bench, const char *transport)
{
    memset(bench, 0, sizeof(*bench));
    alb_topology_spec_default(&bench->spec);
    assert_int_equal(alb_cluster_config_default(&bench->config, transport), 0);
    bench->config.seed = 1;
    bench->config.on_complete = on_complete;
    bench->config.context = bench;
}

static void create(struct bench *bench)
{
    char error[ALB_TOPOLOGY_ERROR_MAX];
    assert_true(alb_topology_build(&bench->topology, &bench->spec, error));
    assert_int_equal(alb_cluster_create(&bench->config, &bench->topology, &bench->cluster), 0);
}

static void destroy(struct bench *bench)
{
    alb_cluster_destroy(bench->cluster);
    alb_topology_free(&bench->topology);
}

static struct alb_channel *connect(struct bench *bench, uint32_t from, uint32_t to)
{
    struct alb_connection connection;
    struct alb_channel *channel;
    alb_connection_default(&connection, from, to);
    assert_int_equal(alb_cluster_connect(bench->cluster, &connection, &channel), 0);
    return channel;
}

static void write_flow(struct bench *bench, uint32_t from, uint32_t to, uint64_t bytes)
{
    struct alb_message message = {.op = ALB_MESSAGE_WRITE, .bytes = bytes};
    assert_int_equal(alb_cluster_post(bench->cluster, connect(bench, from, to), 0, &message), 0);
}

static void write__single_flow_takes_about_its_ideal_time(void **state)
{
    struct bench b;
    prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_FAT_TREE;
    create(&b);
    write_flow(&b, 0, 15, 2 * MB);
    assert_int_equal(alb_cluster_run(b.cluster, ALB_SIM_S(1), UINT64_MAX), ALB_CLUSTER_UNTIL);
    printf("done at %llu ns\n", (unsigned long long)b.last_at / 1000);
    assert_int_equal(b.done, 1);
    destroy(&b);
}

static void permutation(struct bench *b, uint32_t hosts)
{
    for (uint32_t i = 0; i < hosts; i++)
        write_flow(b, i, (i + hosts / 2) % hosts, 2 * MB);
}

static void write__permutation(void **state)
{
    struct bench b;
    prepare(&b, "csa");
    b.spec.shape = ALB_TOPOLOGY_FAT_TREE;
    b.spec.k = 8;
    create(&b);
    permutation(&b, 128);
    alb_cluster_run(b.cluster, ALB_SIM_S(1), UINT64_MAX);
    struct alb_cluster_totals totals;
    alb_cluster_totals(b.cluster, &totals);
    printf("done %u at %llu ns; hops %llu events %llu dropped %llu marked %llu engine %llu bytes %llu\n", b.done,
           (unsigned long long)b.last_at / 1000, (unsigned long long)totals.packet_hops,
           (unsigned long long)totals.events, (unsigned long long)totals.dropped, (unsigned long long)totals.marked,
           (unsigned long long)totals.engine_bytes, (unsigned long long)totals.bytes);
    assert_int_equal(b.done, 128);
    destroy(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write__single_flow_takes_about_its_ideal_time),
        cmocka_unit_test(write__permutation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
