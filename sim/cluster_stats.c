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
        .events = alb_sim_queue_done(&cluster->network.queue),
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

static alb_sim_time time_of(uint64_t bytes, uint64_t bits_per_s)
{
    return alb_sim_until_end((unsigned __int128)bytes * 8 * ALB_SIM_S(1) / bits_per_s);
}

// Of many packets it may lie far beyond the end of time.
typedef unsigned __int128 long_time;

// What packets take on a way: of full ones and of a shorter last one, by cable.
struct way {
    uint64_t full_bytes, last_bytes; // on the wire
    uint32_t count, common;          // of cables; so many of the first ones have no other beside them
    alb_sim_time *full, *last, delay;
    uint64_t *abreast;  // cables that packets share there; UINT64_MAX: each packet has one for itself
    uint64_t narrowest; // of ways that differ: the least that all of them together carry at any hop; 0: they don't
};

static long_time sum(const alb_sim_time *times, uint32_t from, uint32_t to)
{
    long_time time = 0;
    for (uint32_t i = from; i < to; i++)
        time += times[i];
    return time;
}

// Of several packets, the last one shorter. On cables that have no other beside them they go one behind the other, as
// fast as the slowest of these so far sends, and the short one waits for them at each. Behind a fork they share the
// cables that lie abreast, as evenly as their number lets them, and the short one may overtake; by the last cable all
// of them go.
static long_time ideal_of_many(const struct way *way, uint64_t packets)
{
    const uint64_t more = packets - 2; // full ones behind the first
    long_time slowest = 0, first = 0, last = 0;
    for (uint32_t i = 0; i < way->common; i++) {
        slowest = ALB_MAX(slowest, (long_time)way->full[i]);
        first += way->full[i];
        last = ALB_MAX(last, first + more * slowest) + way->last[i];
    }
    const long_time full = sum(way->full, 0, way->count);
    long_time ideal = ALB_MAX(full + more * slowest, last + sum(way->last, way->common, way->count));
    if (way->narrowest) {
        uint64_t bytes = (packets - 1) * way->full_bytes + way->last_bytes;
        ideal = ALB_MAX(ideal, first + time_of(bytes, way->narrowest) + way->last[way->count - 1]);
    }
    for (uint32_t i = way->common; i < way->count; i++) {
        uint64_t abreast = way->abreast[i];
        long_time full_ones = (long_time)(more / abreast) * way->full[i] + more % abreast * slowest;
        long_time begun = ALB_MIN(first, last);
        ideal = ALB_MAX(ideal, full + full_ones);
        ideal =
            ALB_MAX(ideal, begun + (long_time)((packets - 1) / abreast) * way->full[i] + sum(way->last, i, way->count));
        first += way->full[i];
        last += way->last[i];
    }
    return ideal;
}

// Adds a cable, that node being at its beginning. Returns the one at its end.
static uint32_t add_cable(const struct alb_cluster *cluster, struct way *way, uint32_t number, uint32_t node)
{
    const struct alb_topology_cable *cable = &cluster->topology.cables[number];
    uint32_t side = cable->a == node ? 0 : 1;
    way->delay += alb_cluster_delay_of(cluster, 2 * number + side);
    way->full[way->count] = time_of(way->full_bytes, cable->bits_per_s);
    way->last[way->count] = time_of(way->last_bytes, cable->bits_per_s);
    way->abreast[way->count++] = 1;
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
    return time_of(hop->bytes, hop->cluster->topology.cables[link / 2].bits_per_s) +
           alb_cluster_delay_of(hop->cluster, link);
}

// What all cables of each hop carry together: for free().
static uint64_t *rates_behind(const struct alb_routes *routes, uint32_t fork, uint32_t to, uint32_t hops)
{
    uint64_t *rates = malloc(hops * sizeof(*rates));
    alb_assert(rates);
    alb_routes_rates(routes, fork, to, rates, hops);
    return rates;
}

// All hops from a fork to the host's leaf as one: whatever a packet needs by the fastest of the ways.
static void add_fastest(const struct alb_cluster *cluster, struct way *way, const struct alb_routes *routes,
                        uint32_t fork, uint32_t to, uint32_t hops)
{
    const struct hop full = {cluster, way->full_bytes}, last = {cluster, way->last_bytes};
    way->full[way->count] = alb_routes_least(routes, fork, to, time_of_hop, &full);
    way->last[way->count] = alb_routes_least(routes, fork, to, time_of_hop, &last);
    way->abreast[way->count++] = UINT64_MAX;
    uint64_t *rates = rates_behind(routes, fork, to, hops);
    way->narrowest = rates[0];
    for (uint32_t i = 1; i < hops; i++)
        way->narrowest = ALB_MIN(way->narrowest, rates[i]);
    free(rates);
}

// These hops, whose cables are all alike. Where they are as fast as one before them they are not shared: packets come
// no faster than each of them goes on.
static void add_alike(const struct alb_cluster *cluster, struct way *way, const struct alb_routes *routes,
                      uint32_t fork, uint32_t to, const uint32_t *cables, uint32_t hops)
{
    const uint64_t bits_per_s = cluster->topology.cables[cables[0]].bits_per_s;
    bool is_shared = true;
    for (uint32_t i = 0; i < way->common; i++)
        is_shared &= way->full[i] < time_of(way->full_bytes, bits_per_s);
    uint64_t *rates = is_shared ? rates_behind(routes, fork, to, hops) : NULL;
    for (uint32_t i = 0, node = fork; i < hops; i++) {
        node = add_cable(cluster, way, cables[i], node);
        way->abreast[way->count - 1] = is_shared ? rates[i] / bits_per_s : UINT64_MAX;
    }
    free(rates);
}

static void follow_way(const struct alb_cluster *cluster, const struct alb_routes *routes, uint32_t from, uint32_t to,
                       uint32_t count, struct way *way)
{
    uint32_t *cables = malloc(count * sizeof(*cables)), node = from;
    alb_assert(cables);
    alb_routes_way(routes, from, to, cables, count, &way->common);
    for (uint32_t i = 0; i < way->common; i++)
        node = add_cable(cluster, way, cables[i], node);
    if (way->common < count) {
        uint32_t hops = count - 1 - way->common;
        if (cluster->topology.has_unlike_ways)
            add_fastest(cluster, way, routes, node, to, hops);
        else
            add_alike(cluster, way, routes, node, to, cables + way->common, hops);
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
    way.abreast = malloc(cables * sizeof(*way.abreast));
    alb_assert(way.full && way.abreast);
    way.last = way.full + cables;
    follow_way(cluster, routes, from, to, cables, &way);
    long_time time = way.delay + (packets > 1 ? ideal_of_many(&way, packets) : sum(way.last, 0, way.count));
    free(way.full);
    free(way.abreast);
    return alb_sim_until_end(time);
}
