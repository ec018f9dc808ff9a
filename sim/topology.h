// SPDX-License-Identifier: BSD-2-Clause
// Topologies: which hosts and switches there are and what connects them. Made from a few numbers or read from a file;
// a cluster (sim/cluster.h) is built from one.
//
// Hosts are nodes 0 to host_count - 1 and are called h0, h1, ...; switches follow. Every cable is two links, one each
// way: cable c has link 2c from its end a to its end b and link 2c + 1 back. A cable belongs to a tier: 0 joins hosts
// to switches, 1 and up the switches among themselves, upward.
#pragma once

#include "sim/time.h"

#include <stdio.h>

#define ALB_TOPOLOGY_NAME_MAX   32
#define ALB_TOPOLOGY_ERROR_MAX  256
#define ALB_TOPOLOGY_NODES_MAX  (1u << 20)
#define ALB_TOPOLOGY_CABLES_MAX (1u << 22)
#define ALB_TOPOLOGY_PORTS_MAX  65536 // of one switch

enum alb_topology_shape {
    ALB_TOPOLOGY_STAR,       // all hosts at one switch, s0
    ALB_TOPOLOGY_LEAF_SPINE, // leaves l0, l1, ...; spines s0, s1, ...; every leaf to every spine
    ALB_TOPOLOGY_FAT_TREE, // of k-port switches in three tiers: pods of edges p0e0 and aggregations p0a0, cores c0, ...
    ALB_TOPOLOGY_TWO_SITES, // a star at each of two sites (s0, s1), long cables between
    ALB_TOPOLOGY_FILE,
};

struct alb_topology_spec {
    enum alb_topology_shape shape;
    uint32_t hosts;          // STAR, TWO_SITES: in all; LEAF_SPINE: of one leaf; FAT_TREE: not looked at
    uint32_t leaves, spines; // LEAF_SPINE
    uint32_t k;              // FAT_TREE: ports of a switch, even; k^3/4 hosts, k/2 of them at each edge
    uint32_t
        oversubscription; // FAT_TREE: an edge has k/2 divided by it uplinks, so many aggregations a pod; divides k/2
    uint32_t long_cables; // TWO_SITES: between the sites
    uint64_t host_bits_per_s, core_bits_per_s, long_bits_per_s; // tier 0, the tiers above, between sites
    alb_sim_time host_delay, core_delay, long_delay;
};

struct alb_topology_node {
    char name[ALB_TOPOLOGY_NAME_MAX];
    uint32_t cable_count;
};

struct alb_topology_cable {
    uint32_t a, b; // nodes; the one nearer to the hosts is a
    uint32_t tier;
    uint64_t bits_per_s; // not 0
    alb_sim_time delay;
};

struct alb_topology {
    uint32_t host_count, node_count, cable_count, tier_count;
    struct alb_topology_node *nodes;
    struct alb_topology_cable *cables;
    bool has_unlike_ways; // those of as many hops may be slower than each other: cables between switches differ
};

// A star of 16 hosts, 100 Gb/s and 1 us everywhere, leaves 4, spines 4, k 4, one long cable of 25 ms, no
// oversubscription.
void alb_topology_spec_default(struct alb_topology_spec *spec);

// Of a network that cannot be: the key of [network] it lies in, and what would be right. why: NULL if it can be.
struct alb_topology_fault {
    const char *key, *why;
};

struct alb_topology_fault alb_topology_find_fault(const struct alb_topology_spec *spec);
// False, and the fault's "why" in error. Then there is nothing to free. Not for ALB_TOPOLOGY_FILE.
bool alb_topology_build(struct alb_topology *topology, const struct alb_topology_spec *spec,
                        char error[ALB_TOPOLOGY_ERROR_MAX]);
// Reads a topology: lines of
//     hosts N
//     switch NAME
//     cable NODE NODE RATE DELAY [xN]        RATE such as 100Gb/s, DELAY such as 600ns, 25ms
//     # comment
// Hosts are h0 to h(N-1). False, and "name:line: what was expected" in error.
bool alb_topology_read(struct alb_topology *topology, FILE *file, const char *name, char error[ALB_TOPOLOGY_ERROR_MAX]);
void alb_topology_free(struct alb_topology *topology);

// A side for each node, 0 for hosts, so that every cable joins side 0 and side 1: for free(). NULL: there is none.
uint8_t *alb_topology_sides(const struct alb_topology *topology);

// The node of that name, or UINT32_MAX.
uint32_t alb_topology_find(const struct alb_topology *topology, const char *name);
// Selects cables, in order, and writes as many as fit; returns how many there are. Pattern: "tier:T" all of a tier,
// "tier:T:N" the first N of it, "A-B" those between nodes that match A and B in either order, where * stands for any
// text ("p0a*-c*", "h3-*").
uint32_t alb_topology_select(const struct alb_topology *topology, const char *pattern, uint32_t *cables,
                             uint32_t cables_max);
// What a pattern "tier:T:N" says; too large a number is UINT32_MAX. False: it is none.
bool alb_topology_first_of_tier(const char *pattern, uint32_t *tier, uint32_t *number);
