// SPDX-License-Identifier: BSD-2-Clause
// A cluster's life and time.
#include "sim/cluster.h"

#include "sim/cluster_impl.h"
#include "sim/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WINDOW_MAX ALB_SIM_US(4)   // what happens in a longer one is more than a cache holds
#define WINDOW_MIN ALB_SIM_NS(100) // in a shorter one too little happens at a host
#define HUGE_HOSTS 128             // so many engines get their memory in huge pages

// ---- configuration --------------------------------------------------------------------------------------------------

int alb_cluster_config_default(struct alb_cluster_config *config, const char *transport)
{
    *config = (struct alb_cluster_config){
        .ahead_bytes = 16384,
        .batch = ALB_SIM_BATCH_MAX,
        .mtu_bytes = 4096,
        .payload_max_bytes = 4192, // 4096 bytes of a message and headers
        .memory_bytes = 1 << 20,
        .receives = 64,
        .receive_bytes = 4096,
    };
    alb_switch_config_default(&config->switches);
    struct alb_engine_config *engine = &config->engine;
    alb_engine_config_default(engine);
    int error = alb_engine_config_transport(engine, transport);
    if (error)
        return error;
    engine->pd_max = engine->cq_max = engine->srq_max = 1;
    engine->region_max = 16;
    engine->qp_max = 1024;
    engine->peer_max = 1024;
    engine->path_max = 64;
    engine->csa_pool_bytes = 256 << 10;
    engine->csa_early_bytes_max = 128 << 10;
    engine->csa_window_segments = 2048;
    engine->txn_staging_bytes = 0;       // no transactions
    engine->rtt_target_ns = 28000;       // twice an idle fat-tree's, with 1 us a hop
    engine->window_start_bytes = 300000; // what 100 Gb/s carry in 24 us: there and back, and until a report
    engine->unreliable_bytes_per_s = 12500000000;
    return 0;
}

// ---- links and switches ---------------------------------------------------------------------------------------------

static bool is_host(const struct alb_cluster *cluster, uint32_t node)
{
    return node < cluster->topology.host_count;
}

static struct alb_sim_switch *switch_at(const struct alb_cluster *cluster, uint32_t node)
{
    return &cluster->switches[node - cluster->topology.host_count];
}

static struct alb_sim_node *node_at(const struct alb_cluster *cluster, uint32_t node)
{
    return is_host(cluster, node) ? &cluster->hosts[node].host.node : &switch_at(cluster, node)->node;
}

static void make_link(struct alb_cluster *cluster, uint32_t number)
{
    const struct alb_topology_cable *cable = &cluster->topology.cables[number / 2];
    const struct alb_switch_config *switches = &cluster->config.switches;
    struct alb_sim_link *link = &cluster->links[number];
    uint32_t from = number % 2 ? cable->b : cable->a, to = number % 2 ? cable->a : cable->b;
    struct alb_sim_link_config config = {
        .bits_per_s = cable->bits_per_s,
        .delay = alb_cluster_delay_of(cluster, number),
        .faults_seed = alb_prng_u64(&cluster->network.prng),
    };
    if (!is_host(cluster, from) && switches->mark_max_bytes) {
        config.mark_above_bytes = ALB_MAX(switches->mark_min_bytes, (uint64_t)1);
        config.mark_always_bytes = switches->mark_max_bytes;
        config.mark_per_million = switches->mark_per_million;
    }
    alb_sim_network_link(&cluster->network, link, node_at(cluster, to), &config);
    link->number = number;
    link->from_node = from + 1;
    alb_assert(to + 1 < 1u << 24);
    link->to_node = to + 1;
    link->from_host = is_host(cluster, from);
    link->to_host = is_host(cluster, to);
}

static void join_links(struct alb_cluster *cluster)
{
    const struct alb_routes *routes = &cluster->routes;
    for (uint32_t node = 0; node < cluster->topology.node_count; node++)
        for (uint32_t port = 0; port < alb_routes_port_count(routes, node); port++) {
            uint32_t cable = routes->hops[routes->hop_first[node] + port].cable;
            uint32_t way = cluster->topology.cables[cable].a == node ? 0 : 1;
            struct alb_sim_link *out = &cluster->links[2 * cable + way], *in = &cluster->links[2 * cable + 1 - way];
            if (is_host(cluster, node))
                alb_sim_host_set_out(&cluster->hosts[node].host, out);
            else
                alb_sim_switch_join(switch_at(cluster, node), port, out, in);
        }
}

static int make_network(struct alb_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->switch_count; i++)
        alb_sim_switch_init(&cluster->switches[i], &cluster->shared, i, cluster->config.seed);
    for (uint32_t i = 0; i < cluster->link_count; i++)
        make_link(cluster, i);
    join_links(cluster);
    for (uint32_t i = 0; i < cluster->switch_count; i++)
        if (!alb_sim_switch_begin(&cluster->switches[i])) {
            if (cluster->config.headroom_bytes)
                *cluster->config.headroom_bytes = alb_sim_switch_headroom(&cluster->switches[i]);
            return EINVAL;
        }
    return 0;
}

// ---- hosts ----------------------------------------------------------------------------------------------------------

static int make_host(struct alb_cluster *cluster, uint32_t number)
{
    const struct alb_cluster_config *config = &cluster->config;
    struct alb_cluster_host *host = &cluster->hosts[number];
    uint32_t address = number + 1;
    struct alb_addr addr =
        alb_addr_from_ipv4((const uint8_t[4]){10, (uint8_t)(address >> 16), (uint8_t)(address >> 8), (uint8_t)address});
    struct alb_sim_host_config host_config = {.addr = addr,
                                              .engine = config->engine,
                                              .burst_segments_max = 1,
                                              .ahead_bytes = config->ahead_bytes,
                                              .batch = config->batch,
                                              .poll_delay = config->host_poll};
    host_config.engine.csa_payload_bytes =
        ALB_MIN(host_config.engine.csa_payload_bytes, config->payload_max_bytes & ~3u);
    host_config.engine.csa_trusts_routes = true;
    host_config.engine.has_no_payload = !config->has_real_bytes;
    if (config->host_config)
        config->host_config(config->context, number, &host_config.engine);
    host->receives = config->host_receives ? config->host_receives(config->context, number) : config->receives;
    host_config.engine.srq_wr_max = ALB_MAX(host_config.engine.srq_wr_max, host->receives);
    host_config.engine.cqe_max = ALB_MAX(host_config.engine.cqe_max, 2 * host->receives); // and what it sends
    int error = alb_sim_host_init(&host->host, &cluster->network, &host_config);
    if (error)
        return error;
    host->cluster = cluster;
    host->number = number;
    host->host.sim_node = number + 1;
    if (config->rnic.cache_entries && !host->host.is_csa)
        host->host.rnic =
            alb_rnic_new(config->rnic.cache_entries, config->rnic.miss_penalty, host_config.engine.qp_max);
    error = alb_cluster_host_open(host);
    if (error)
        alb_sim_host_fini(&host->host);
    return error;
}

static bool has_room(const struct alb_cluster *cluster, uint32_t hosts)
{
    const struct alb_cluster_config *config = &cluster->config;
    return !config->has_room || (hosts & (hosts - 1)) != 0 || config->has_room(config->context, hosts);
}

static int make_hosts(struct alb_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->topology.host_count; i++) {
        int error = has_room(cluster, i) ? make_host(cluster, i) : ENOMEM;
        if (error) {
            cluster->hosts[i].cluster = NULL; // the first of those that are not there
            return error;
        }
    }
    return 0;
}

// ---- order ----------------------------------------------------------------------------------------------------------

// What a link does when it is dead gives credit back at once, to its other end.
static void set_windows(struct alb_cluster *cluster)
{
    const struct alb_cluster_config *config = &cluster->config;
    alb_sim_time length = WINDOW_MAX;
    for (uint32_t i = 0; i < cluster->link_count; i++)
        length = ALB_MIN(length, cluster->links[i].delay);
    if (config->order != ALB_CLUSTER_BY_TIME && length >= WINDOW_MIN &&
        config->switches.flow_control != ALB_FLOW_CONTROL_CREDITS) {
        uint8_t *sides = alb_topology_sides(&cluster->topology);
        alb_sim_queue_set_windows(&cluster->network.queue, length, cluster->topology.node_count,
                                  config->order == ALB_CLUSTER_BY_HOST, sides);
        free(sides);
    }
}

// ---- life -----------------------------------------------------------------------------------------------------------

static bool is_valid(const struct alb_cluster_config *config, const struct alb_topology *topology)
{
    const struct alb_switch_config *switches = &config->switches;
    return topology->host_count > 0 && config->receives > 0 && config->mtu_bytes >= 256 &&
           config->payload_max_bytes >= 512 && config->payload_max_bytes <= 65504 &&
           !(switches->trims && switches->flow_control != ALB_FLOW_CONTROL_NONE) &&
           (switches->mark_max_bytes == 0 || switches->mark_min_bytes < switches->mark_max_bytes);
}

static void copy_topology(struct alb_topology *to, const struct alb_topology *from)
{
    *to = *from;
    to->nodes = malloc(from->node_count * sizeof(*to->nodes));
    to->cables = malloc(ALB_MAX(from->cable_count, 1u) * sizeof(*to->cables));
    alb_assert(to->nodes && to->cables);
    memcpy(to->nodes, from->nodes, from->node_count * sizeof(*to->nodes));
    if (from->cable_count)
        memcpy(to->cables, from->cables, from->cable_count * sizeof(*to->cables));
}

static void *get(size_t count, size_t size)
{
    size_t bytes = ALB_MAX(count, (size_t)1) * size;
    return memset(alb_sim_big(bytes), 0, bytes);
}

static struct alb_cluster *new_cluster(const struct alb_cluster_config *config, const struct alb_topology *topology)
{
    struct alb_cluster *cluster = get(1, sizeof(*cluster));
    cluster->config = *config;
    cluster->config.switches.packet_wire_bytes =
        ALB_MAX(config->switches.packet_wire_bytes, config->payload_max_bytes + ALB_SIM_FRAME_BYTES);
    copy_topology(&cluster->topology, topology);
    cluster->link_count = 2 * topology->cable_count;
    cluster->switch_count = topology->node_count - topology->host_count;
    cluster->links = get(cluster->link_count, sizeof(*cluster->links));
    cluster->switches = get(cluster->switch_count, sizeof(*cluster->switches));
    cluster->hosts = get(topology->host_count, sizeof(*cluster->hosts));
    cluster->is_closed = get(topology->cable_count, sizeof(*cluster->is_closed));
    cluster->deaths = get(topology->cable_count, sizeof(*cluster->deaths));
    cluster->shared = (struct alb_sim_switches){&cluster->config.switches, &cluster->routes, &cluster->network.packets,
                                                &cluster->network.queue};
    cluster->fault_seed = config->seed ^ 0x6661756c74;
    alb_list_init(&cluster->channels);
    alb_list_init(&cluster->faults);
    alb_sim_network_init(&cluster->network, config->seed, config->has_real_bytes);
    if (topology->host_count >= HUGE_HOSTS)
        cluster->network.huge = &cluster->huge;
    if (config->payload_max_bytes > cluster->network.packets.packet_bytes_max)
        alb_sim_network_set_packet_max(&cluster->network, config->payload_max_bytes);
    return cluster;
}

int alb_cluster_create(const struct alb_cluster_config *config, const struct alb_topology *topology,
                       struct alb_cluster **out)
{
    char why[ALB_TOPOLOGY_ERROR_MAX];
    if (!is_valid(config, topology))
        return EINVAL;
    struct alb_cluster *cluster = new_cluster(config, topology);
    cluster->arena = mmap(NULL, ALB_MAX_MESSAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    // Hosts first: they tell soon whether there is memory for all, routes take long where there are many.
    int error = cluster->arena != MAP_FAILED ? make_hosts(cluster) : ENOMEM;
    if (!error)
        error = alb_routes_init(&cluster->routes, &cluster->topology, why);
    if (!error)
        error = make_network(cluster);
    if (error) {
        alb_cluster_destroy(cluster);
        return error;
    }
    set_windows(cluster);
    *out = cluster;
    return 0;
}

void alb_cluster_destroy(struct alb_cluster *cluster)
{
    alb_cluster_disconnect_all(cluster);
    alb_cluster_forget_faults(cluster);
    for (uint32_t i = 0; i < cluster->topology.host_count && cluster->hosts[i].cluster; i++) {
        alb_cluster_host_close(&cluster->hosts[i]);
        alb_sim_host_fini(&cluster->hosts[i].host);
        alb_rnic_free(cluster->hosts[i].host.rnic);
    }
    for (uint32_t i = 0; i < cluster->link_count && cluster->links[i].queue; i++)
        alb_sim_link_fini(&cluster->links[i]);
    for (uint32_t i = 0; i < cluster->switch_count; i++)
        alb_sim_switch_fini(&cluster->switches[i]);
    alb_sim_network_fini(&cluster->network);
    alb_routes_fini(&cluster->routes);
    alb_routes_fini(&cluster->built);
    alb_topology_free(&cluster->topology);
    if (cluster->arena != MAP_FAILED)
        munmap(cluster->arena, ALB_MAX_MESSAGE);
    alb_sim_huge_fini(&cluster->huge);
    free(cluster->links);
    free(cluster->switches);
    free(cluster->hosts);
    free(cluster->is_closed);
    free(cluster->deaths);
    free(cluster);
}

// ---- time -----------------------------------------------------------------------------------------------------------

enum alb_cluster_end alb_cluster_run(struct alb_cluster *cluster, alb_sim_time until, uint64_t events_max)
{
    struct alb_sim_queue *queue = &cluster->network.queue;
    if (alb_sim_queue_run(queue, ALB_MIN(until, ALB_SIM_NEVER - 1), events_max))
        return queue->is_stopped ? ALB_CLUSTER_STOPPED : ALB_CLUSTER_EVENTS;
    if (alb_sim_queue_count(queue) == 0)
        return ALB_CLUSTER_IDLE;
    if (until > queue->now)
        alb_sim_queue_advance(queue, until);
    return ALB_CLUSTER_UNTIL;
}

void alb_cluster_stop(struct alb_cluster *cluster)
{
    cluster->network.queue.is_stopped = true;
}

alb_sim_time alb_cluster_now(const struct alb_cluster *cluster)
{
    return cluster->network.queue.now;
}

struct alb_sim_queue *alb_cluster_queue(struct alb_cluster *cluster)
{
    return &cluster->network.queue;
}

void alb_cluster_schedule(struct alb_cluster *cluster, uint32_t host, struct alb_sim_event *event, alb_sim_time at)
{
    alb_sim_queue_schedule_for(&cluster->network.queue, event, at, cluster->hosts[host].host.sim_node);
}

const struct alb_topology *alb_cluster_topology(const struct alb_cluster *cluster)
{
    return &cluster->topology;
}
