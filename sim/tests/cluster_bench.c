// SPDX-License-Identifier: BSD-2-Clause
#include "cluster_bench.h"

#include "base/tests/test.h"

#include <string.h>

static void on_complete(void *context, const struct alb_cluster_completion *completion, alb_sim_time now)
{
    struct bench *bench = context;
    bench->failed += completion->status != ALB_WC_SUCCESS;
    bench->last_at = now;
    if (!completion->is_received) {
        bench->done++;
        return;
    }
    bench->received++;
    bench->received_bytes += completion->bytes;
}

void bench_prepare(struct bench *bench, const char *transport)
{
    memset(bench, 0, sizeof(*bench));
    alb_topology_spec_default(&bench->spec);
    assert_int_equal(alb_cluster_config_default(&bench->config, transport), 0);
    bench->config.seed = 1;
    bench->config.on_complete = on_complete;
    bench->config.context = bench;
}

void bench_create(struct bench *bench)
{
    char error[ALB_TOPOLOGY_ERROR_MAX];
    assert_true(alb_topology_build(&bench->topology, &bench->spec, error));
    assert_int_equal(alb_cluster_create(&bench->config, &bench->topology, &bench->cluster), 0);
}

void bench_destroy(struct bench *bench)
{
    alb_cluster_destroy(bench->cluster);
    alb_topology_free(&bench->topology);
}

struct alb_channel *bench_connect(struct bench *bench, uint32_t from, uint32_t to)
{
    struct alb_connection connection;
    struct alb_channel *channel;
    alb_connection_default(&connection, from, to);
    assert_int_equal(alb_cluster_connect(bench->cluster, &connection, &channel), 0);
    return channel;
}

void bench_write(struct bench *bench, uint32_t from, uint32_t to, uint64_t bytes)
{
    struct alb_message message = {.op = ALB_MESSAGE_WRITE, .bytes = bytes};
    assert_int_equal(alb_cluster_post(bench->cluster, bench_connect(bench, from, to), 0, &message), 0);
}

void bench_incast(struct bench *bench, uint32_t count, uint64_t bytes)
{
    for (uint32_t i = 1; i <= count; i++)
        bench_write(bench, i, 0, bytes);
}

void bench_permutation(struct bench *bench, uint64_t bytes)
{
    uint32_t hosts = bench->topology.host_count;
    for (uint32_t i = 0; i < hosts; i++)
        bench_write(bench, i, (i + hosts / 2) % hosts, bytes);
}

void bench_run(struct bench *bench, uint32_t done)
{
    alb_sim_time limit = alb_cluster_now(bench->cluster) + ALB_SIM_S(1);
    while (bench->done < done && alb_cluster_run(bench->cluster, limit, 1000) == ALB_CLUSTER_EVENTS)
        ;
    assert_int_equal(bench->done, done);
}

struct alb_cluster_totals bench_totals(const struct bench *bench)
{
    struct alb_cluster_totals totals;
    alb_cluster_totals(bench->cluster, &totals);
    return totals;
}

uint32_t bench_cable(const struct bench *bench, const char *pattern)
{
    uint32_t cable;
    assert_true(alb_topology_select(&bench->topology, pattern, &cable, 1) > 0);
    return cable;
}
