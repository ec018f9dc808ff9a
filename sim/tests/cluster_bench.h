// SPDX-License-Identifier: BSD-2-Clause
// A cluster and flows of WRITEs on it, counted.
#pragma once

#include "sim/cluster.h"

struct bench {
    struct alb_topology_spec spec;
    struct alb_topology topology;
    struct alb_cluster_config config;
    struct alb_cluster *cluster;
    uint32_t done, received, failed;
    uint64_t received_bytes;
    alb_sim_time last_at;
};

// A star of 16 hosts with that transport; the caller changes spec and config.
void bench_prepare(struct bench *bench, const char *transport);
void bench_create(struct bench *bench);
void bench_destroy(struct bench *bench);
struct alb_channel *bench_connect(struct bench *bench, uint32_t from, uint32_t to);
// One WRITE of so many bytes.
void bench_write(struct bench *bench, uint32_t from, uint32_t to, uint64_t bytes);
// Hosts 1 to count write to host 0.
void bench_incast(struct bench *bench, uint32_t count, uint64_t bytes);
// Host i writes to host (i + half) mod hosts.
void bench_permutation(struct bench *bench, uint64_t bytes);
// Until so many messages are done, for a virtual second at most; fails otherwise.
void bench_run(struct bench *bench, uint32_t done);
struct alb_cluster_totals bench_totals(const struct bench *bench);
// Of the first cable that the pattern selects.
uint32_t bench_cable(const struct bench *bench, const char *pattern);
