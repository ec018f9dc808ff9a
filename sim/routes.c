// SPDX-License-Identifier: BSD-2-Clause
#include "sim/routes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *get(size_t count, size_t size)
{
    void *memory = calloc(ALB_MAX(count, (size_t)1), size);
    alb_assert(memory);
    return memory;
}

// ---- neighbours -----------------------------------------------------------------------------------------------------

static void list_hops(struct alb_routes *routes)
{
    const struct alb_topology *topology = routes->topology;
    uint32_t *filled = get(topology->node_count, sizeof(*filled));
    routes->hop_first = get(topology->node_count + 1, sizeof(*routes->hop_first));
    routes->hops = get(2 * (size_t)topology->cable_count, sizeof(*routes->hops));
    for (uint32_t i = 0; i < topology->node_count; i++)
        routes->hop_first[i + 1] = routes->hop_first[i] + topology->nodes[i].cable_count;
    for (uint32_t i = 0; i < topology->cable_count; i++) {
        const struct alb_topology_cable *cable = &topology->cables[i];
        routes->hops[routes->hop_first[cable->a] + filled[cable->a]++] = (struct alb_routes_hop){i, cable->b};
        routes->hops[routes->hop_first[cable->b] + filled[cable->b]++] = (struct alb_routes_hop){i, cable->a};
    }
    free(filled);
}

static bool find_leaves(struct alb_routes *routes, char error[ALB_TOPOLOGY_ERROR_MAX])
{
    const struct alb_topology *topology = routes->topology;
    uint32_t *leaf_of = get(topology->node_count, sizeof(*leaf_of)); // and one
    routes->leaf_nodes = get(topology->node_count, sizeof(*routes->leaf_nodes));
    routes->host_leaf = get(topology->host_count, sizeof(*routes->host_leaf));
    routes->host_port = get(topology->host_count, sizeof(*routes->host_port));
    for (uint32_t node = topology->host_count; node < topology->node_count; node++)
        for (uint32_t port = 0; port < alb_routes_port_count(routes, node); port++) {
            uint32_t peer = routes->hops[routes->hop_first[node] + port].peer;
            if (peer >= topology->host_count)
                continue;
            if (!leaf_of[node]) {
                routes->leaf_nodes[routes->leaf_count] = node;
                leaf_of[node] = ++routes->leaf_count;
            }
            routes->host_leaf[peer] = leaf_of[node] - 1;
            routes->host_port[peer] = port;
        }
    free(leaf_of);
    for (uint32_t i = 0; i < topology->host_count; i++)
        if (topology->nodes[i].cable_count != 1 || routes->hops[routes->hop_first[i]].peer < topology->host_count) {
            snprintf(error, ALB_TOPOLOGY_ERROR_MAX, "host %s has %u cables: every host has one, to a switch",
                     topology->nodes[i].name, topology->nodes[i].cable_count);
            return false;
        }
    return true;
}

uint64_t alb_routes_bytes(const struct alb_topology *topology)
{
    bool *is_leaf = get(topology->node_count, sizeof(*is_leaf));
    uint64_t leaves = 0;
    for (uint32_t i = 0; i < topology->cable_count; i++) {
        const struct alb_topology_cable *cable = &topology->cables[i];
        leaves += cable->tier == 0 && !is_leaf[cable->b];
        is_leaf[cable->b] |= cable->tier == 0;
    }
    free(is_leaf);
    return leaves * (topology->node_count - topology->host_count) * sizeof(uint32_t);
}

int alb_routes_init(struct alb_routes *routes, const struct alb_topology *topology, char error[ALB_TOPOLOGY_ERROR_MAX])
{
    *routes = (struct alb_routes){.topology = topology};
    size_t switches = topology->node_count - topology->host_count;
    list_hops(routes);
    int failed = find_leaves(routes, error) ? 0 : EINVAL;
    routes->set_of = failed ? NULL : calloc(ALB_MAX(switches * routes->leaf_count, (size_t)1), sizeof(*routes->set_of));
    if (!failed && !routes->set_of)
        failed = ENOMEM;
    if (failed)
        alb_routes_fini(routes);
    else
        alb_routes_find(routes, NULL);
    return failed;
}

void alb_routes_fini(struct alb_routes *routes)
{
    free(routes->hop_first);
    free(routes->hops);
    free(routes->leaf_nodes);
    free(routes->host_leaf);
    free(routes->host_port);
    free(routes->set_of);
    free(routes->sets);
    free(routes->ports);
    *routes = (struct alb_routes){0};
}

// ---- shortest ways --------------------------------------------------------------------------------------------------

// Hops of every switch to that node; UINT32_MAX: no way. queue has room for all switches.
static void measure(const struct alb_routes *routes, uint32_t to, const bool *is_closed, uint32_t *distance,
                    uint32_t *queue)
{
    const struct alb_topology *topology = routes->topology;
    uint32_t head = 0, tail = 0;
    memset(distance, 0xff, topology->node_count * sizeof(*distance));
    distance[to] = 0;
    queue[tail++] = to;
    while (head < tail) {
        uint32_t node = queue[head++];
        for (uint32_t i = routes->hop_first[node]; i < routes->hop_first[node + 1]; i++) {
            const struct alb_routes_hop *hop = &routes->hops[i];
            if (hop->peer < topology->host_count || distance[hop->peer] != UINT32_MAX ||
                (is_closed && is_closed[hop->cable]))
                continue;
            distance[hop->peer] = distance[node] + 1;
            queue[tail++] = hop->peer;
        }
    }
}

static uint32_t collect(const struct alb_routes *routes, uint32_t node, const bool *is_closed, const uint32_t *distance,
                        uint32_t *ports)
{
    uint32_t count = 0;
    if (distance[node] == 0 || distance[node] == UINT32_MAX)
        return 0;
    for (uint32_t i = routes->hop_first[node]; i < routes->hop_first[node + 1]; i++) {
        const struct alb_routes_hop *hop = &routes->hops[i];
        if (hop->peer >= routes->topology->host_count && distance[hop->peer] == distance[node] - 1 &&
            !(is_closed && is_closed[hop->cable]))
            ports[count++] = i - routes->hop_first[node];
    }
    return count;
}

static void *grown(void *memory, uint32_t *capacity, uint32_t needed, size_t size)
{
    if (needed <= *capacity)
        return memory;
    needed = ALB_MAX(needed, 1024u);
    *capacity = ALB_MAX(2 * *capacity, needed);
    memory = realloc(memory, *capacity * size);
    alb_assert(memory);
    return memory;
}

// The set of a switch with those ports, made if it has none yet; of[]: the sets that it has.
static uint32_t intern(struct alb_routes *routes, uint32_t *of, uint32_t *of_count, const uint32_t *ports,
                       uint32_t count)
{
    for (uint32_t i = 0; i < *of_count; i++) {
        const struct alb_routes_set *set = &routes->sets[of[i]];
        if (set->count == count && memcmp(&routes->ports[set->first], ports, count * sizeof(*ports)) == 0)
            return of[i];
    }
    routes->sets = grown(routes->sets, &routes->set_capacity, routes->set_count + 1, sizeof(*routes->sets));
    routes->ports =
        grown(routes->ports, &routes->port_capacity, routes->port_count + count + 1, sizeof(*routes->ports));
    if (count)
        memcpy(&routes->ports[routes->port_count], ports, count * sizeof(*ports));
    routes->sets[routes->set_count] = (struct alb_routes_set){routes->port_count, count};
    routes->port_count += count;
    of[(*of_count)++] = routes->set_count;
    return routes->set_count++;
}

void alb_routes_find(struct alb_routes *routes, const bool *is_closed)
{
    const struct alb_topology *topology = routes->topology;
    uint32_t switches = topology->node_count - topology->host_count, leaves = routes->leaf_count;
    uint32_t *distance = get(topology->node_count, sizeof(*distance)),
             *queue = get(topology->node_count, sizeof(*queue));
    uint32_t *ports = get(ALB_TOPOLOGY_PORTS_MAX + 1, sizeof(*ports));
    uint32_t **of = get(switches, sizeof(*of)), *of_count = get(switches, sizeof(*of_count));
    routes->set_count = routes->port_count = 0;
    for (uint32_t leaf = 0; leaf < leaves; leaf++) {
        measure(routes, routes->leaf_nodes[leaf], is_closed, distance, queue);
        for (uint32_t i = 0; i < switches; i++) {
            uint32_t count = collect(routes, topology->host_count + i, is_closed, distance, ports);
            if ((of_count[i] & (of_count[i] - 1)) == 0) {
                of[i] = realloc(of[i], ALB_MAX(2 * of_count[i], 1u) * sizeof(**of));
                alb_assert(of[i]);
            }
            routes->set_of[(size_t)i * leaves + leaf] = intern(routes, of[i], &of_count[i], ports, count);
        }
    }
    for (uint32_t i = 0; i < switches; i++)
        free(of[i]);
    free(of);
    free(of_count);
    free(ports);
    free(queue);
    free(distance);
}

static const struct alb_routes_set *set_to(const struct alb_routes *routes, uint32_t node, uint32_t leaf)
{
    uint32_t index = node - routes->topology->host_count;
    return &routes->sets[routes->set_of[(size_t)index * routes->leaf_count + leaf]];
}

// As number count, if there is room. Returns how many there are then.
static uint32_t put(uint32_t *cables, uint32_t cables_max, uint32_t count, uint32_t cable)
{
    if (count < cables_max)
        cables[count] = cable;
    return count + 1;
}

uint32_t alb_routes_way(const struct alb_routes *routes, uint32_t from, uint32_t to, uint32_t *cables,
                        uint32_t cables_max, uint32_t *common)
{
    uint32_t leaf = routes->host_leaf[to], count = 0, forks_at = UINT32_MAX;
    uint32_t node = routes->leaf_nodes[routes->host_leaf[from]];
    if (from == to)
        return 0;
    count = put(cables, cables_max, count, routes->hops[routes->hop_first[from]].cable);
    while (node != routes->leaf_nodes[leaf]) {
        const struct alb_routes_set *set = set_to(routes, node, leaf);
        if (set->count == 0)
            return 0;
        const struct alb_routes_hop *hop = &routes->hops[routes->hop_first[node] + routes->ports[set->first]];
        if (set->count > 1)
            forks_at = ALB_MIN(forks_at, count);
        count = put(cables, cables_max, count, hop->cable);
        node = hop->peer;
    }
    count = put(cables, cables_max, count, routes->hops[routes->hop_first[to]].cable);
    if (common)
        *common = ALB_MIN(forks_at, count);
    return count;
}

// Calls visit for each link of the shortest ways from a switch to the host's leaf. These are all as long: whatever
// stands in the queue before a node is no farther away, so that all that lead to a node come before those that it has.
static void walk(const struct alb_routes *routes, uint32_t node, uint32_t to,
                 void (*visit)(void *context, uint32_t node, const struct alb_routes_hop *hop), void *context)
{
    uint32_t node_count = routes->topology->node_count, leaf = routes->host_leaf[to], head = 0, tail = 0;
    uint32_t *queue = get(node_count, sizeof(*queue));
    bool *is_queued = get(node_count, sizeof(*is_queued));
    for (queue[tail++] = node; head < tail; head++) {
        const struct alb_routes_set *set = set_to(routes, queue[head], leaf);
        for (uint32_t i = 0; i < set->count; i++) {
            const struct alb_routes_hop *hop =
                &routes->hops[routes->hop_first[queue[head]] + routes->ports[set->first + i]];
            if (!is_queued[hop->peer])
                queue[tail++] = hop->peer;
            is_queued[hop->peer] = true;
            visit(context, queue[head], hop);
        }
    }
    free(queue);
    free(is_queued);
}

struct least {
    const struct alb_topology *topology;
    alb_sim_time *to; // by node
    alb_sim_time (*time_of)(const void *context, uint32_t link);
    const void *context;
};

static void add_time(void *context, uint32_t node, const struct alb_routes_hop *hop)
{
    const struct least *least = context;
    uint32_t link = 2 * hop->cable + (least->topology->cables[hop->cable].a != node);
    alb_sim_time time = least->to[node] + least->time_of(least->context, link);
    least->to[hop->peer] = ALB_MIN(least->to[hop->peer], time);
}

alb_sim_time alb_routes_least(const struct alb_routes *routes, uint32_t node, uint32_t to,
                              alb_sim_time (*time_of)(const void *context, uint32_t link), const void *context)
{
    uint32_t node_count = routes->topology->node_count;
    struct least least = {routes->topology, get(node_count, sizeof(*least.to)), time_of, context};
    memset(least.to, 0xff, node_count * sizeof(*least.to)); // ALB_SIM_NEVER
    least.to[node] = 0;
    walk(routes, node, to, add_time, &least);
    alb_sim_time time = least.to[routes->leaf_nodes[routes->host_leaf[to]]];
    free(least.to);
    return time;
}

struct rates {
    const struct alb_topology *topology;
    uint32_t *hops; // to a node
    uint64_t *of;   // by hop
};

static void add_rate(void *context, uint32_t node, const struct alb_routes_hop *hop)
{
    const struct rates *rates = context;
    rates->of[rates->hops[node]] += rates->topology->cables[hop->cable].bits_per_s;
    rates->hops[hop->peer] = rates->hops[node] + 1;
}

void alb_routes_rates(const struct alb_routes *routes, uint32_t node, uint32_t to, uint64_t *bits_per_s, uint32_t hops)
{
    struct rates rates = {routes->topology, get(routes->topology->node_count, sizeof(*rates.hops)), bits_per_s};
    memset(bits_per_s, 0, hops * sizeof(*bits_per_s));
    walk(routes, node, to, add_rate, &rates);
    free(rates.hops);
}
