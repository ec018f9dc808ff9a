// SPDX-License-Identifier: BSD-2-Clause
// Routes: for every switch and every switch with hosts (a leaf) the ports that lead there by as few hops as possible.
//
// The ports of a node are numbered in the order of its cables. Port sets are shared: a switch has few different ones.
#pragma once

#include "sim/topology.h"

struct alb_routes_hop {
    uint32_t cable, peer; // the node at its other end
};

struct alb_routes_set {
    uint32_t first, count; // in ports; count 0: there is no way, but first may be looked at
};

struct alb_routes {
    const struct alb_topology *topology;
    uint32_t *hop_first;         // of every node: index of its port 0 in hops; one more behind the last
    struct alb_routes_hop *hops; // of all ports
    uint32_t leaf_count;
    uint32_t *leaf_nodes; // node of each leaf
    uint32_t *host_leaf;  // leaf of each host
    uint32_t *host_port;  // the leaf's port that leads to it
    uint32_t *set_of;     // [switch * leaf_count + leaf], switches counted from 0
    struct alb_routes_set *sets;
    uint32_t *ports;
    uint32_t set_count, set_capacity, port_count, port_capacity;
};

// What routes take of memory, but for what is small beside it where it is much.
uint64_t alb_routes_bytes(const struct alb_topology *topology);
// Every host has one cable, to a switch: EINVAL and one line in error otherwise. EINVAL, ENOMEM: there is nothing to
// free. The topology stays the caller's, and as it is.
int alb_routes_init(struct alb_routes *routes, const struct alb_topology *topology, char error[ALB_TOPOLOGY_ERROR_MAX]);
void alb_routes_fini(struct alb_routes *routes);
// Finds all ways anew. is_closed: cables that none may take, by number; NULL: all are open.
void alb_routes_find(struct alb_routes *routes, const bool *is_closed);

static inline uint32_t alb_routes_port_count(const struct alb_routes *routes, uint32_t node)
{
    return routes->hop_first[node + 1] - routes->hop_first[node];
}
// One shortest way from host to host: the cables, as many as fit; returns how many there are, 0: there is no way, or
// the hosts are one. *common: so many of the first ones every other shortest way has, too (as it has the last one);
// NULL: not asked for.
uint32_t alb_routes_way(const struct alb_routes *routes, uint32_t from, uint32_t to, uint32_t *cables,
                        uint32_t cables_max, uint32_t *common);
// The least that time_of comes to for the links of any shortest way from a switch to the host's leaf, which there is.
alb_sim_time alb_routes_least(const struct alb_routes *routes, uint32_t node, uint32_t to,
                              alb_sim_time (*time_of)(const void *context, uint32_t link), const void *context);
// What all cables of each hop of these ways carry together. hops: how many these ways have.
void alb_routes_rates(const struct alb_routes *routes, uint32_t node, uint32_t to, uint64_t *bits_per_s, uint32_t hops);
