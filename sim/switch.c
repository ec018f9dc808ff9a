// SPDX-License-Identifier: BSD-2-Clause
#include "sim/switch.h"

#include "sim/ecmp.h"

#include <stdlib.h>

enum {
    FETCH_PORTS = 32, // of so many ports the links are asked for together
};

void alb_switch_config_default(struct alb_switch_config *config)
{
    *config = (struct alb_switch_config){
        .alpha_16ths = 0,
        .port_bytes_max = 5 * 150000,
        .mark_per_million = 1000000,
        .pfc_xon_gap_bytes = 2 * 4200,
        .packet_wire_bytes = 4300, // in a data centre, about
        .trim_bytes_max = 1 << 20,
    };
}

// ---- where to -------------------------------------------------------------------------------------------------------

// turn: of spraying; moves on if it is used. Whether a packet goes up or down cannot be predicted, so there is one way
// through for both, without a branch.
static struct alb_sim_link *way_of(const struct alb_sim_switch *sw, const struct alb_sim_packet *packet, uint32_t *turn)
{
    const struct alb_routes *routes = sw->shared->routes;
    if (alb_unlikely(packet->to >= routes->topology->host_count))
        return NULL;
    uint32_t leaf = routes->host_leaf[packet->to];
    const struct alb_routes_set *set = &routes->sets[routes->set_of[(size_t)sw->number * routes->leaf_count + leaf]];
    uint32_t is_here = leaf == sw->leaf;
    if (alb_unlikely((is_here | set->count) == 0))
        return NULL;
    uint32_t pick = alb_ecmp_pick(packet->flow_hash, sw->salt, set->count); // 0 of one
    if (alb_unlikely(sw->shared->config->spread == ALB_SPREAD_SPRAY) && set->count > 1)
        pick = (*turn)++ % set->count;
    uint32_t here = routes->host_port[packet->to], there = routes->ports[set->first + pick];
    return sw->outs[there ^ ((here ^ there) & -is_here)];
}

static void fetch_link(const struct alb_sim_switch *sw, const struct alb_sim_link *link)
{
    alb_sim_fetch(sw->goes_ahead ? (const void *)&link->to : link, sw->goes_ahead ? 1 : 2);
}

// Where it will go, most likely. In windows that are passed node by node many come one after the other: for the first
// of them, wherever they may go.
static void soon(struct alb_sim_node *node, const struct alb_sim_packet *packet)
{
    struct alb_sim_switch *sw = ALB_CONTAINER_OF(node, struct alb_sim_switch, node);
    const struct alb_sim_windows *windows = &sw->shared->queue->windows;
    if (!windows->by_node || sw->port_count > FETCH_PORTS) {
        uint32_t turn = sw->turn;
        const struct alb_sim_link *out = way_of(sw, packet, &turn);
        if (out)
            fetch_link(sw, out);
        return;
    }
    uint64_t window = windows->ends[0] + windows->ends[1];
    if (sw->fetched_in == window)
        return;
    sw->fetched_in = window;
    for (uint32_t port = 0; port < sw->port_count; port++)
        fetch_link(sw, sw->outs[port]);
}

// ---- no room --------------------------------------------------------------------------------------------------------

// What is cut off is payload behind its first ALB_SIM_TRIM_TO bytes. A packet that has no more goes on whole, before
// the others: where switches trim, what only informs has a class of its own (Ultra Ethernet).
static bool trim(struct alb_sim_switch *sw, struct alb_sim_link *out, struct alb_sim_packet *packet)
{
    const struct alb_switch_config *config = sw->shared->config;
    uint32_t cut_bytes = packet->is_trimmed || alb_sim_load(packet)->length <= ALB_SIM_TRIM_TO
                             ? 0
                             : alb_sim_load(packet)->length - ALB_SIM_TRIM_TO;
    if (!config->trims || out->urgent_bytes + packet->wire_bytes - cut_bytes > config->trim_bytes_max)
        return false;
    packet->is_trimmed = true;
    packet->wire_bytes -= cut_bytes;
    out->stats.trimmed += cut_bytes > 0;
    sw->stats.trimmed += cut_bytes > 0;
    return true;
}

static void drop(struct alb_sim_switch *sw, struct alb_sim_packet *packet, alb_sim_time now)
{
    if (packet->from->has_credit_limit) { // it takes no room, and gives back what it took on the way
        sw->buffered_bytes += packet->wire_bytes;
        sw->ports[packet->from->to_port].ingress_bytes += packet->wire_bytes;
        alb_sim_switch_release(sw, packet, now);
    }
    alb_sim_packet_put(sw->shared->pool, packet);
}

// Where nothing can be held up the links do all.
static void pass_on(struct alb_sim_switch *sw, struct alb_sim_link *out, struct alb_sim_packet *packet,
                    alb_sim_time now)
{
    sw->uncounted_bytes -= packet->wire_bytes;
    alb_sim_link_send(out, packet, now);
    if (sw->uncounted_bytes < 0)
        alb_sim_switch_count(sw, now);
}

static void receive(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct alb_sim_switch *sw = ALB_CONTAINER_OF(node, struct alb_sim_switch, node);
    struct alb_sim_link *out = way_of(sw, packet, &sw->turn);
    packet->from = packet->on;
    if (alb_unlikely(!out)) {
        sw->stats.homeless++;
        drop(sw, packet, now);
        return;
    }
    if (alb_likely(sw->goes_ahead)) {
        pass_on(sw, out, packet, now);
        return;
    }
    bool has_room = packet->is_trimmed ? trim(sw, out, packet)
                                       : alb_sim_switch_admit(sw, out, packet, now) || trim(sw, out, packet);
    if (has_room) {
        alb_sim_link_send(out, packet, now);
        return;
    }
    out->stats.overflowed++;
    drop(sw, packet, now);
}

static void on_departed(struct alb_sim_node *node, struct alb_sim_link *link, struct alb_sim_packet *packet,
                        alb_sim_time now)
{
    if (!packet->is_trimmed)
        alb_sim_switch_release(ALB_CONTAINER_OF(node, struct alb_sim_switch, node), packet, now);
}

// ---- life -----------------------------------------------------------------------------------------------------------

void alb_sim_switch_init(struct alb_sim_switch *sw, const struct alb_sim_switches *shared, uint32_t number,
                         uint64_t seed)
{
    const struct alb_routes *routes = shared->routes;
    uint32_t node = routes->topology->host_count + number;
    *sw = (struct alb_sim_switch){
        .node = {receive, on_departed, soon},
        .shared = shared,
        .port_count = alb_routes_port_count(routes, node),
        .number = number,
        .leaf = ALB_SIM_NO_LEAF,
        .salt = alb_ecmp_mix(seed ^ ((uint64_t)number + 1) << 32),
    };
    sw->turn = (uint32_t)(sw->salt >> 32);
    for (uint32_t leaf = 0; leaf < routes->leaf_count; leaf++)
        if (routes->leaf_nodes[leaf] == node)
            sw->leaf = leaf & ALB_SIM_NO_LEAF;
    sw->ports = calloc(ALB_MAX(sw->port_count, 1u), sizeof(*sw->ports));
    sw->outs = calloc(ALB_MAX(sw->port_count, 1u), sizeof(*sw->outs));
    alb_assert(sw->ports && sw->outs);
}

void alb_sim_switch_fini(struct alb_sim_switch *sw)
{
    free(sw->ports);
    free(sw->outs);
}

void alb_sim_switch_join(struct alb_sim_switch *sw, uint32_t port, struct alb_sim_link *out, struct alb_sim_link *in)
{
    sw->ports[port].out = out;
    sw->ports[port].in = in;
    out->feeder = &sw->node;
    in->to_port = (uint16_t)port;
    sw->outs[port] = out;
}
