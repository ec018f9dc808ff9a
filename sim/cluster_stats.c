// SPDX-License-Identifier: BSD-2-Clause
// What there is to be known of a cluster.
#include "sim/cluster_impl.h"

#include <stdlib.h>

void alb_cluster_link_stats(const struct alb_cluster *cluster, uint32_t number, struct alb_cluster_link_stats *stats)
{
    const struct alb_sim_link *link = &cluster->links[number];
    alb_sim_time now = alb_cluster_now(cluster);
    *stats = (struct alb_cluster_link_stats){
        .packets = link->stats.packets,
        .bytes = alb_cluster_link_bytes(cluster, number),
        .lost = link->stats.lost,
        .dropped = link->stats.overflowed,
        .marked = link->stats.marked,
        .trimmed = link->stats.trimmed,
        .corrupted = link->stats.corrupted,
        .pauses = link->stats.pauses,
        .paused = link->stats.held_up + (link->is_held_up ? now - link->held_since : 0),
        .queued_bytes = alb_sim_link_queued_bytes(link, now),
        .queued_bytes_peak = link->queue_bytes_peak,
    };
}

uint64_t alb_cluster_link_bytes(const struct alb_cluster *cluster, uint32_t link)
{
    const struct alb_sim_link *of = &cluster->links[link];
    uint64_t queued_bytes = alb_sim_link_queued_bytes(of, alb_cluster_now(cluster));
    return of->stats.bytes - (queued_bytes - of->waiting_bytes);
}

void alb_cluster_switch_stats(const struct alb_cluster *cluster, uint32_t node, struct alb_cluster_switch_stats *stats)
{
    const struct alb_sim_switch *sw = &cluster->switches[node - cluster->topology.host_count];
    *stats = (struct alb_cluster_switch_stats){
        .buffered_bytes = alb_sim_switch_buffered(sw, alb_cluster_now(cluster)),
        .buffered_bytes_peak = sw->stats.buffered_bytes_peak,
        .headroom_bytes_peak = sw->stats.headroom_bytes_peak,
        .lost = sw->stats.homeless,
        .trimmed = sw->stats.trimmed,
        .pauses_sent = sw->stats.pauses_sent,
    };
    for (uint32_t i = 0; i < sw->port_count; i++) {
        stats->marked += sw->outs[i]->stats.marked;
        stats->dropped += sw->outs[i]->stats.overflowed;
    }
}

const struct alb_device_stats *alb_cluster_host_stats(const struct alb_cluster *cluster, uint32_t host)
{
    return &cluster->hosts[host].host.stats;
}

uint64_t alb_cluster_trace_hash(const struct alb_cluster *cluster)
{
    return alb_sim_network_trace_hash(&cluster->network);
}

void alb_cluster_watch(struct alb_cluster *cluster, uint32_t host, struct alb_sim_capture *capture, FILE *trace)
{
    cluster->hosts[host].host.capture = capture;
    cluster->hosts[host].host.trace = trace;
}

static uint64_t bytes_of_tables(const struct alb_cluster *cluster)
{
    const struct alb_topology *topology = &cluster->topology;
    const struct alb_routes *routes = &cluster->routes;
    uint64_t bytes = sizeof(*cluster) + cluster->network.packets.memory_bytes;
    bytes += cluster->link_count * (sizeof(struct alb_sim_link) + sizeof(struct alb_sim_port));
    bytes += cluster->switch_count * sizeof(struct alb_sim_switch);
    bytes += topology->host_count * sizeof(struct alb_cluster_host);
    bytes += topology->node_count * sizeof(*topology->nodes) + topology->cable_count * sizeof(*topology->cables);
    bytes += (uint64_t)cluster->switch_count * routes->leaf_count * sizeof(*routes->set_of);
    return bytes + cluster->link_count * sizeof(*routes->hops) + routes->port_capacity * sizeof(*routes->ports);
}

void alb_cluster_totals(const struct alb_cluster *cluster, struct alb_cluster_totals *totals)
{
    *totals = (struct alb_cluster_totals){
        .events = cluster->network.queue.fired,
        .packets_under_way = cluster->network.packets.outstanding,
        .bytes = bytes_of_tables(cluster),
    };
    for (uint32_t i = 0; i < cluster->link_count; i++) {
        const struct alb_sim_link_stats *stats = &cluster->links[i].stats;
        totals->packet_hops += stats->packets;
        totals->dropped += stats->overflowed;
        totals->lost += stats->lost;
        totals->trimmed += stats->trimmed;
        totals->marked += stats->marked;
        totals->pauses += stats->pauses;
    }
    for (uint32_t i = 0; i < cluster->switch_count; i++)
        totals->lost += cluster->switches[i].stats.homeless;
    for (uint32_t i = 0; i < cluster->topology.host_count; i++) {
        const struct alb_cluster_host *host = &cluster->hosts[i];
        totals->packets_sent += host->host.sent;
        totals->packets_received += host->host.received;
        totals->engine_bytes += host->host.memory.bytes;
        totals->cache_hits += host->host.rnic ? alb_rnic_hits(host->host.rnic) : 0;
        totals->cache_misses += host->host.rnic ? alb_rnic_misses(host->host.rnic) : 0;
        totals->bytes += host->memory ? cluster->config.memory_bytes : 0;
    }
    totals->bytes += totals->engine_bytes;
}

static alb_sim_time time_of(const struct alb_topology_cable *cable, uint64_t bytes)
{
    return (alb_sim_time)((unsigned __int128)bytes * 8 * ALB_SIM_S(1) / cable->bits_per_s);
}

// What packets take on a way: of full ones and of a shorter last one, by cable.
struct way {
    uint64_t full_bytes, last_bytes; // on the wire
    uint32_t count, common;          // of cables; so many of the first ones have no other beside them
    alb_sim_time *full, *last, delay;
};

static alb_sim_time sum(const alb_sim_time *times, uint32_t from, uint32_t to)
{
    alb_sim_time time = 0;
    for (uint32_t i = from; i < to; i++)
        time += times[i];
    return time;
}

// Of several packets, the last one shorter. On cables that have no other beside them they go one behind the other, as
// fast as the slowest of these so far sends, and the short one waits for them at each; behind a fork each may have a
// way for itself, and the short one overtake; by the last cable all of them go.
static alb_sim_time ideal_of_many(const struct way *way, uint64_t packets)
{
    uint32_t end = way->count - 1;
    alb_sim_time slowest = 0, first = 0, last = 0;
    for (uint32_t i = 0; i < way->common; i++) {
        slowest = ALB_MAX(slowest, way->full[i]);
        first += way->full[i];
        last = ALB_MAX(last, first + (packets - 2) * slowest) + way->last[i];
    }
    last += sum(way->last, way->common, way->count);
    alb_sim_time before_last = sum(way->full, 0, way->count) + (packets - 2) * slowest;
    alb_sim_time first_at_end = ALB_MIN(sum(way->full, 0, end), last - way->last[end]);
    alb_sim_time all = first_at_end + (packets - 1) * way->full[end] + way->last[end];
    all = ALB_MAX(all, last);
    return ALB_MAX(all, before_last);
}

// Adds a cable, that node being at its beginning. Returns the one at its end.
static uint32_t add_cable(const struct alb_cluster *cluster, struct way *way, uint32_t number, uint32_t node)
{
    const struct alb_topology_cable *cable = &cluster->topology.cables[number];
    uint32_t side = cable->a == node ? 0 : 1;
    way->delay += alb_cluster_delay_of(cluster, 2 * number + side);
    way->full[way->count] = time_of(cable, way->full_bytes);
    way->last[way->count++] = time_of(cable, way->last_bytes);
    return side ? cable->a : cable->b;
}

// A packet by a link.
struct hop {
    const struct alb_cluster *cluster;
    uint64_t bytes;
};

static alb_sim_time time_of_hop(const void *context, uint32_t link)
{
    const struct hop *hop = context;
    return time_of(&hop->cluster->topology.cables[link / 2], hop->bytes) + alb_cluster_delay_of(hop->cluster, link);
}

// All cables from a fork to the host's leaf as one: whatever a packet needs by the fastest of the ways.
static void add_fastest(const struct alb_cluster *cluster, struct way *way, const struct alb_routes *routes,
                        uint32_t fork, uint32_t to)
{
    const struct hop full = {cluster, way->full_bytes}, last = {cluster, way->last_bytes};
    way->full[way->count] = alb_routes_least(routes, fork, to, time_of_hop, &full);
    way->last[way->count++] = alb_routes_least(routes, fork, to, time_of_hop, &last);
}

static void follow_way(const struct alb_cluster *cluster, const struct alb_routes *routes, uint32_t from, uint32_t to,
                       uint32_t count, struct way *way)
{
    uint32_t *cables = malloc(count * sizeof(*cables)), node = from;
    alb_assert(cables);
    alb_routes_way(routes, from, to, cables, count, &way->common);
    uint32_t one_by_one = cluster->topology.has_unlike_ways ? way->common : count;
    for (uint32_t i = 0; i < one_by_one; i++)
        node = add_cable(cluster, way, cables[i], node);
    if (one_by_one < count) {
        add_fastest(cluster, way, routes, node, to);
        add_cable(cluster, way, cables[count - 1], routes->leaf_nodes[routes->host_leaf[to]]);
    }
    free(cables);
}

alb_sim_time alb_cluster_ideal_time(const struct alb_cluster *cluster, uint32_t from, uint32_t to, uint64_t bytes,
                                    uint32_t payload_bytes, uint32_t overhead_bytes)
{
    const struct alb_routes *routes = cluster->has_built ? &cluster->built : &cluster->routes;
    uint64_t packets = bytes ? (bytes + payload_bytes - 1) / payload_bytes : 1;
    struct way way = {.full_bytes = payload_bytes + overhead_bytes,
                      .last_bytes = bytes - (packets - 1) * payload_bytes + overhead_bytes};
    uint32_t cables = alb_routes_way(routes, from, to, NULL, 0, NULL);
    if (cables == 0)
        return 0;
    way.full = malloc(2 * (size_t)cables * sizeof(*way.full));
    alb_assert(way.full);
    way.last = way.full + cables;
    follow_way(cluster, routes, from, to, cables, &way);
    alb_sim_time time = way.delay + (packets > 1 ? ideal_of_many(&way, packets) : sum(way.last, 0, way.count));
    free(way.full);
    return time;
}
