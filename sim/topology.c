// SPDX-License-Identifier: BSD-2-Clause
// Topologies made from a few numbers.
#include "sim/topology.h"

#include "sim/topology_impl.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void alb_topology_spec_default(struct alb_topology_spec *spec)
{
    *spec = (struct alb_topology_spec){
        .shape = ALB_TOPOLOGY_STAR,
        .hosts = 16,
        .leaves = 4,
        .spines = 4,
        .k = 4,
        .oversubscription = 1,
        .long_cables = 1,
        .host_bits_per_s = 100000000000,
        .core_bits_per_s = 100000000000,
        .long_bits_per_s = 100000000000,
        .host_delay = ALB_SIM_US(1),
        .core_delay = ALB_SIM_US(1),
        .long_delay = ALB_SIM_MS(25),
    };
}

// ---- growing one ----------------------------------------------------------------------------------------------------

uint32_t alb_topology_add_node(struct alb_topology *topology, const char *format, ...)
{
    uint32_t count = topology->node_count;
    if ((count & (count - 1)) == 0) { // a power of two is full
        topology->nodes = realloc(topology->nodes, ALB_MAX(2 * (size_t)count, (size_t)1) * sizeof(*topology->nodes));
        alb_assert(topology->nodes);
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(topology->nodes[count].name, ALB_TOPOLOGY_NAME_MAX, format, arguments);
    va_end(arguments);
    topology->nodes[count].cable_count = 0;
    topology->node_count++;
    return count;
}

void alb_topology_add_cable(struct alb_topology *topology, const struct alb_topology_cable *cable)
{
    uint32_t count = topology->cable_count;
    if ((count & (count - 1)) == 0) {
        topology->cables = realloc(topology->cables, ALB_MAX(2 * (size_t)count, (size_t)1) * sizeof(*topology->cables));
        alb_assert(topology->cables);
    }
    topology->cables[topology->cable_count++] = *cable;
    topology->nodes[cable->a].cable_count++;
    topology->nodes[cable->b].cable_count++;
    topology->tier_count = ALB_MAX(topology->tier_count, cable->tier + 1);
}

void alb_topology_add_hosts(struct alb_topology *topology, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        alb_topology_add_node(topology, "h%u", i);
    topology->host_count = count;
}

void alb_topology_free(struct alb_topology *topology)
{
    free(topology->nodes);
    free(topology->cables);
    *topology = (struct alb_topology){0};
}

// ---- shapes ---------------------------------------------------------------------------------------------------------

static void join_host(struct alb_topology *topology, const struct alb_topology_spec *spec, uint32_t host, uint32_t to)
{
    alb_topology_add_cable(topology,
                           &(struct alb_topology_cable){host, to, 0, spec->host_bits_per_s, spec->host_delay});
}

static void join_core(struct alb_topology *topology, const struct alb_topology_spec *spec, uint32_t from, uint32_t to,
                      uint32_t tier)
{
    alb_topology_add_cable(topology,
                           &(struct alb_topology_cable){from, to, tier, spec->core_bits_per_s, spec->core_delay});
}

static void build_star(struct alb_topology *topology, const struct alb_topology_spec *spec)
{
    alb_topology_add_hosts(topology, spec->hosts);
    uint32_t center = alb_topology_add_node(topology, "s0");
    for (uint32_t i = 0; i < spec->hosts; i++)
        join_host(topology, spec, i, center);
}

static void build_leaf_spine(struct alb_topology *topology, const struct alb_topology_spec *spec)
{
    uint32_t first_leaf = spec->leaves * spec->hosts, first_spine = first_leaf + spec->leaves;
    alb_topology_add_hosts(topology, first_leaf);
    for (uint32_t i = 0; i < spec->leaves; i++)
        alb_topology_add_node(topology, "l%u", i);
    for (uint32_t i = 0; i < spec->spines; i++)
        alb_topology_add_node(topology, "s%u", i);
    for (uint32_t i = 0; i < first_leaf; i++)
        join_host(topology, spec, i, first_leaf + i / spec->hosts);
    for (uint32_t leaf = 0; leaf < spec->leaves; leaf++)
        for (uint32_t spine = 0; spine < spec->spines; spine++)
            join_core(topology, spec, first_leaf + leaf, first_spine + spine, 1);
}

// M. Al-Fares, A. Loukissas, A. Vahdat: A scalable, commodity data center network architecture, 2008.
static void build_fat_tree(struct alb_topology *topology, const struct alb_topology_spec *spec)
{
    uint32_t half = spec->k / 2, aggregations = half / spec->oversubscription, hosts = spec->k * half * half;
    uint32_t first_edge = hosts, first_aggregation = first_edge + spec->k * half;
    uint32_t first_core = first_aggregation + spec->k * aggregations;
    alb_topology_add_hosts(topology, hosts);
    for (uint32_t i = 0; i < spec->k * half; i++)
        alb_topology_add_node(topology, "p%ue%u", i / half, i % half);
    for (uint32_t i = 0; i < spec->k * aggregations; i++)
        alb_topology_add_node(topology, "p%ua%u", i / aggregations, i % aggregations);
    for (uint32_t i = 0; i < aggregations * half; i++)
        alb_topology_add_node(topology, "c%u", i);
    for (uint32_t i = 0; i < hosts; i++)
        join_host(topology, spec, i, first_edge + i / half);
    for (uint32_t edge = 0; edge < spec->k * half; edge++)
        for (uint32_t i = 0; i < aggregations; i++)
            join_core(topology, spec, first_edge + edge, first_aggregation + edge / half * aggregations + i, 1);
    for (uint32_t i = 0; i < spec->k * aggregations; i++)
        for (uint32_t up = 0; up < half; up++)
            join_core(topology, spec, first_aggregation + i, first_core + i % aggregations * half + up, 2);
}

static void build_two_sites(struct alb_topology *topology, const struct alb_topology_spec *spec)
{
    alb_topology_add_hosts(topology, spec->hosts);
    uint32_t site = alb_topology_add_node(topology, "s0");
    alb_topology_add_node(topology, "s1");
    for (uint32_t i = 0; i < spec->hosts; i++)
        join_host(topology, spec, i, site + (i >= (spec->hosts + 1) / 2));
    for (uint32_t i = 0; i < spec->long_cables; i++)
        alb_topology_add_cable(
            topology, &(struct alb_topology_cable){site, site + 1, 1, spec->long_bits_per_s, spec->long_delay});
}

// ---- what is possible -----------------------------------------------------------------------------------------------

static struct alb_topology_fault fault_if(bool is_wrong, const char *key, const char *why)
{
    return is_wrong ? (struct alb_topology_fault){key, why} : (struct alb_topology_fault){0};
}

static struct alb_topology_fault fault_of_leaf_spine(const struct alb_topology_spec *spec)
{
    const uint64_t hosts = spec->hosts, leaves = spec->leaves, spines = spec->spines;
    if (hosts == 0 || leaves == 0 || spines == 0)
        return (struct alb_topology_fault){hosts == 0    ? "hosts"
                                           : leaves == 0 ? "leaves"
                                                         : "spines",
                                           "a leaf-spine has at least one leaf, one spine and one host at each leaf"};
    if (hosts + spines > ALB_TOPOLOGY_PORTS_MAX || leaves > ALB_TOPOLOGY_PORTS_MAX)
        return (struct alb_topology_fault){leaves > ALB_TOPOLOGY_PORTS_MAX ? "leaves"
                                           : hosts >= spines               ? "hosts"
                                                                           : "spines",
                                           "a switch has at most 65536 ports"};
    if (hosts * leaves + leaves + spines > ALB_TOPOLOGY_NODES_MAX)
        return (struct alb_topology_fault){"hosts", "at most 1048576 hosts and switches"};
    return fault_if((hosts + spines) * leaves > ALB_TOPOLOGY_CABLES_MAX, hosts >= spines ? "hosts" : "spines",
                    "at most 4194304 cables");
}

static struct alb_topology_fault fault_of_fat_tree(const struct alb_topology_spec *spec)
{
    if (spec->k < 2 || spec->k > 128 || spec->k % 2 != 0)
        return (struct alb_topology_fault){"k", "k, the ports of a switch in a fat-tree, is even, and 2 to 128"};
    return fault_if(spec->oversubscription == 0 || spec->k / 2 % spec->oversubscription != 0, "oversubscription",
                    "the oversubscription of a fat-tree divides k / 2, since an edge has k / 2 divided by it uplinks");
}

struct alb_topology_fault alb_topology_find_fault(const struct alb_topology_spec *spec)
{
    if (spec->host_bits_per_s == 0 || spec->core_bits_per_s == 0 || spec->long_bits_per_s == 0)
        return (struct alb_topology_fault){"rate", "a rate of 0: links have a rate"};
    switch (spec->shape) {
    case ALB_TOPOLOGY_STAR:
        return fault_if(spec->hosts == 0 || spec->hosts > ALB_TOPOLOGY_PORTS_MAX, "hosts",
                        "a star has 1 to 65536 hosts");
    case ALB_TOPOLOGY_LEAF_SPINE:
        return fault_of_leaf_spine(spec);
    case ALB_TOPOLOGY_FAT_TREE:
        return fault_of_fat_tree(spec);
    case ALB_TOPOLOGY_TWO_SITES:
        if (spec->hosts < 2 || spec->hosts > ALB_TOPOLOGY_PORTS_MAX)
            return (struct alb_topology_fault){"hosts", "two sites have 2 to 65536 hosts"};
        return fault_if(spec->long_cables == 0 || spec->long_cables > 4096, "long_cables",
                        "1 to 4096 cables join two sites");
    default:
        return (struct alb_topology_fault){"topology", "not a shape that follows from numbers"};
    }
}

bool alb_topology_build(struct alb_topology *topology, const struct alb_topology_spec *spec,
                        char error[ALB_TOPOLOGY_ERROR_MAX])
{
    const struct alb_topology_fault fault = alb_topology_find_fault(spec);
    *topology = (struct alb_topology){0};
    if (fault.why) {
        snprintf(error, ALB_TOPOLOGY_ERROR_MAX, "%s", fault.why);
        return false;
    }
    if (spec->shape == ALB_TOPOLOGY_STAR)
        build_star(topology, spec);
    else if (spec->shape == ALB_TOPOLOGY_LEAF_SPINE)
        build_leaf_spine(topology, spec);
    else if (spec->shape == ALB_TOPOLOGY_FAT_TREE)
        build_fat_tree(topology, spec);
    else
        build_two_sites(topology, spec);
    return true;
}

// ---- sides ----------------------------------------------------------------------------------------------------------

enum {
    SIDE_UNKNOWN = 2,
};

// Of one end, if only that of the other one is known. True if it was.
static bool spread_side(const struct alb_topology_cable *cable, uint8_t *sides)
{
    uint8_t *a = &sides[cable->a], *b = &sides[cable->b];
    if ((*a == SIDE_UNKNOWN) == (*b == SIDE_UNKNOWN))
        return false;
    if (*a == SIDE_UNKNOWN)
        *a = !*b;
    else
        *b = !*a;
    return true;
}

uint8_t *alb_topology_sides(const struct alb_topology *topology)
{
    uint8_t *sides = malloc(topology->node_count);
    alb_assert(sides);
    memset(sides, SIDE_UNKNOWN, topology->node_count);
    memset(sides, 0, topology->host_count);
    for (bool moves = true; moves;) {
        moves = false;
        for (uint32_t i = 0; i < topology->cable_count; i++)
            moves |= spread_side(&topology->cables[i], sides);
    }
    for (uint32_t i = 0; i < topology->node_count; i++)
        sides[i] %= SIDE_UNKNOWN; // where no host is
    for (uint32_t i = 0; i < topology->cable_count; i++)
        if (sides[topology->cables[i].a] == sides[topology->cables[i].b]) {
            free(sides);
            return NULL;
        }
    return sides;
}
