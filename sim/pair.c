// SPDX-License-Identifier: BSD-2-Clause
#include "sim/pair.h"

static struct alb_addr addr_of(enum alb_sim_side side, bool is_ipv6)
{
    if (!is_ipv6)
        return alb_addr_from_ipv4((const uint8_t[4]){10, 0, 0, (uint8_t)(side + 1)});
    return (struct alb_addr){{0xfd, [15] = (uint8_t)(side + 1)}};
}

void alb_sim_pair_config_default(struct alb_sim_pair_config *config, bool is_ipv6)
{
    *config = (struct alb_sim_pair_config){.seed = 1};
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++) {
        struct alb_addr addr = addr_of(side, is_ipv6);
        alb_sim_host_config_default(&config->host[side], &addr);
        config->out[side].delay = ALB_SIM_US(1);
    }
}

static void init_way(struct alb_sim_pair *pair, const struct alb_sim_pair_config *config, enum alb_sim_side side)
{
    struct alb_sim_network *network = &pair->network;
    struct alb_sim_node *to = &pair->host[ALB_SIM_B - side].node;
    if (config->lane_count) {
        alb_sim_fabric_init(&pair->fabric[side], &network->queue, &network->packets, to, config->lanes[side],
                            config->lane_count);
        pair->fabric[side].spread = config->spread;
        pair->fabric[side].hash_seed = config->seed;
        to = &pair->fabric[side].node;
    }
    alb_sim_network_link(network, &pair->out[side], to, &config->out[side]);
    alb_sim_host_set_out(&pair->host[side], &pair->out[side]);
}

int alb_sim_pair_init(struct alb_sim_pair *pair, const struct alb_sim_pair_config *config)
{
    alb_sim_network_init(&pair->network, config->seed, true);
    if (config->packet_bytes_max)
        alb_sim_network_set_packet_max(&pair->network, config->packet_bytes_max);
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++) {
        int error = alb_sim_host_init(&pair->host[side], &pair->network, &config->host[side]);
        if (error) {
            if (side == ALB_SIM_B)
                alb_sim_host_fini(&pair->host[ALB_SIM_A]);
            alb_sim_network_fini(&pair->network);
            return error;
        }
    }
    pair->lane_count = config->lane_count;
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++)
        init_way(pair, config, side);
    return 0;
}

void alb_sim_pair_set_partition(struct alb_sim_pair *pair, bool is_cut)
{
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++)
        alb_sim_link_set_dead(&pair->out[side], is_cut);
}

void alb_sim_pair_fini(struct alb_sim_pair *pair)
{
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++) {
        alb_sim_host_fini(&pair->host[side]);
        alb_sim_link_fini(&pair->out[side]);
        if (pair->lane_count)
            alb_sim_fabric_fini(&pair->fabric[side]);
    }
    alb_sim_network_fini(&pair->network);
}
