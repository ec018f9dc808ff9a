// SPDX-License-Identifier: BSD-2-Clause
// Two hosts and what lies between them: a link in each direction, or a link and then several lanes side by side.
#pragma once

#include "sim/fabric.h"
#include "sim/network.h"

enum alb_sim_side {
    ALB_SIM_A,
    ALB_SIM_B,
    ALB_SIM_SIDES,
};

struct alb_sim_pair_config {
    uint64_t seed;
    struct alb_sim_host_config host[ALB_SIM_SIDES];
    struct alb_sim_link_config out[ALB_SIM_SIDES]; // the link that leaves that side
    uint32_t lane_count;                           // 0: that link leads to the other side
    enum alb_sim_spread spread;
    struct alb_sim_link_config lanes[ALB_SIM_SIDES][ALB_SIM_LANES_MAX]; // behind it
    uint32_t packet_bytes_max;                                          // 0: what a RoCE packet can have
};

struct alb_sim_pair {
    struct alb_sim_network network;
    struct alb_sim_host host[ALB_SIM_SIDES];
    struct alb_sim_link out[ALB_SIM_SIDES]; // the link that leaves that side
    uint32_t lane_count;
    struct alb_sim_fabric fabric[ALB_SIM_SIDES]; // the lanes that leave that side
};

// 10.0.0.1 and 10.0.0.2, or fd00::1 and fd00::2; links without limit of rate, 1 us long.
void alb_sim_pair_config_default(struct alb_sim_pair_config *config, bool is_ipv6);
// The errno of alb_engine_create. Packets carry their bytes.
int alb_sim_pair_init(struct alb_sim_pair *pair, const struct alb_sim_pair_config *config);
// Cuts both ways, or mends them: what is sent or would arrive while they are cut is lost.
void alb_sim_pair_set_partition(struct alb_sim_pair *pair, bool is_cut);
// Every object of both engines has been destroyed.
void alb_sim_pair_fini(struct alb_sim_pair *pair);
