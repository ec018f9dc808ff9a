// SPDX-License-Identifier: BSD-2-Clause
// A fabric: several links side by side that lead to one node, and what stands before them, a switch that spreads
// packets over them as ECMP does: by what a flow has in common, so that packets of one path stay in order.
#pragma once

#include "sim/link.h"

#define ALB_SIM_LANES_MAX 64

enum alb_sim_spread {
    ALB_SIM_SPREAD_EXACT, // path p of a host takes lane p mod count
    ALB_SIM_SPREAD_HASH,  // addresses and ports are hashed: paths may meet on one lane
};

struct alb_sim_fabric {
    struct alb_sim_node node; // where its packets come in
    enum alb_sim_spread spread;
    uint64_t hash_seed;
    uint32_t count;
    struct alb_sim_link lanes[ALB_SIM_LANES_MAX];
};

// Lanes get a link each as configured, all of them into that node.
void alb_sim_fabric_init(struct alb_sim_fabric *fabric, struct alb_sim_queue *queue, struct alb_sim_packet_pool *pool,
                         struct alb_sim_node *to, const struct alb_sim_link_config *lanes, uint32_t count);
void alb_sim_fabric_fini(struct alb_sim_fabric *fabric);

// The lane that a packet takes.
uint32_t alb_sim_fabric_lane_of(const struct alb_sim_fabric *fabric, const struct alb_sim_packet *packet);
