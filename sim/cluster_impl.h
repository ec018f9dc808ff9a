// SPDX-License-Identifier: BSD-2-Clause
// What a cluster is made of: shared by the files that make it.
#pragma once

#include "sim/cluster.h"
#include "sim/network.h"
#include "sim/switch.h"

#define ALB_CLUSTER_IOVA (1ull << 20) // where a host's memory begins, for work requests and keys

struct alb_cluster_host {
    struct alb_sim_host host;
    struct alb_cluster *cluster;
    uint32_t number;
    struct alb_pd *pd;
    struct alb_cq *cq;
    struct alb_srq *srq;
    struct alb_region *region;
    uint8_t *memory;      // of its own, with real bytes
    uint32_t receives;    // posted at all times
    uint32_t completions; // that may come: messages posted, receives
};

struct alb_posted {
    uint64_t user, bytes;
    enum alb_message_op op;
};

struct alb_channel_end {
    struct alb_channel *channel;
    struct alb_cluster_host *host;
    struct alb_qp *qp;
    struct alb_posted *posted; // ring of the connection's send_depth
    uint32_t first, count;
    uint64_t number; // of the next message
};

struct alb_channel {
    struct alb_list link;
    struct alb_connection connection;
    struct alb_channel_end ends[2];
};

struct alb_cluster {
    struct alb_cluster_config config;
    struct alb_topology topology;
    struct alb_routes routes;
    struct alb_sim_network network;
    struct alb_sim_switches shared;
    uint32_t link_count, switch_count;
    struct alb_sim_link *links;      // of cable c: 2c and 2c + 1
    struct alb_sim_switch *switches; // by node, less the hosts
    struct alb_cluster_host *hosts;
    struct alb_list channels;
    struct alb_list faults;  // scheduled
    bool *is_closed;         // cables that no route uses
    uint32_t *deaths;        // of each cable, when it was alive, so far
    struct alb_routes built; // as they were at first, if cables can be closed (alb_routes_init has been called)
    bool has_built;
    uint64_t fault_seed;
    struct alb_sim_huge huge; // the engines' memory, if they are many
    uint8_t *arena;           // what all hosts have for memory without real bytes: never written
};

// ---- sim/cluster_channel.c ------------------------------------------------------------------------------------------

// What a host needs before channels: its verbs objects. The errno of those.
int alb_cluster_host_open(struct alb_cluster_host *host);
void alb_cluster_host_close(struct alb_cluster_host *host);
void alb_cluster_disconnect_all(struct alb_cluster *cluster);

// ---- sim/cluster_fault.c --------------------------------------------------------------------------------------------

void alb_cluster_forget_faults(struct alb_cluster *cluster);
// Delay of a link as built: of the cable, the switch or host at its end, the host at its beginning.
alb_sim_time alb_cluster_delay_of(const struct alb_cluster *cluster, uint32_t link);
