// SPDX-License-Identifier: BSD-2-Clause
// Two hosts and the two links between them: the network of the first tests.
#pragma once

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
};

struct alb_sim_pair {
    struct alb_sim_network network;
    struct alb_sim_host host[ALB_SIM_SIDES];
    struct alb_sim_link out[ALB_SIM_SIDES]; // the link that leaves that side
};

// 10.0.0.1 and 10.0.0.2, or fd00::1 and fd00::2; links without limit of rate, 1 us long.
void alb_sim_pair_config_default(struct alb_sim_pair_config *config, bool is_ipv6);
// The errno of alb_engine_create. Packets carry their bytes.
int alb_sim_pair_init(struct alb_sim_pair *pair, const struct alb_sim_pair_config *config);
// Every object of both engines has been destroyed.
void alb_sim_pair_fini(struct alb_sim_pair *pair);
