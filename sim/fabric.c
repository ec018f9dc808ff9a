// SPDX-License-Identifier: BSD-2-Clause
#include "sim/fabric.h"

#include "sim/ecmp.h"

uint32_t alb_sim_fabric_lane_of(const struct alb_sim_fabric *fabric, const struct alb_sim_packet *packet)
{
    const struct alb_sim_load *load = alb_sim_load(packet);
    uint32_t port = load->source.port;
    if (fabric->spread == ALB_SIM_SPREAD_EXACT)
        return port < ALB_SIM_PATH_PORT ? 0 : (port - ALB_SIM_PATH_PORT) % fabric->count;
    return alb_ecmp_pick(alb_ecmp_hash(&load->source, &load->destination), fabric->hash_seed, fabric->count);
}

static void pass_on(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct alb_sim_fabric *fabric = ALB_CONTAINER_OF(node, struct alb_sim_fabric, node);
    alb_sim_link_send(&fabric->lanes[alb_sim_fabric_lane_of(fabric, packet)], packet, now);
}

void alb_sim_fabric_init(struct alb_sim_fabric *fabric, struct alb_sim_queue *queue, struct alb_sim_packet_pool *pool,
                         struct alb_sim_node *to, const struct alb_sim_link_config *lanes, uint32_t count)
{
    alb_assert(count > 0 && count <= ALB_SIM_LANES_MAX);
    *fabric = (struct alb_sim_fabric){.node.receive = pass_on, .count = count};
    for (uint32_t i = 0; i < count; i++)
        alb_sim_link_init(&fabric->lanes[i], queue, pool, to, &lanes[i]);
}

void alb_sim_fabric_fini(struct alb_sim_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->count; i++)
        alb_sim_link_fini(&fabric->lanes[i]);
}
