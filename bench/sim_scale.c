// SPDX-License-Identifier: BSD-2-Clause
// How fast the simulator is and how much memory it takes: a permutation on a fat-tree, of which every packet that
// leaves a port counts; and the event queue by itself, which is the limit. One line of JSON each.
#include "base/prng.h"
#include "sim/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct options {
    uint32_t k, paths, window_bytes;
    uint64_t bytes;
    const char *transport, *path, *congestion, *spread, *order;
    uint64_t queue_events, poll_ns;
    uint32_t ahead_bytes;
    bool lists_hosts, lists_pairs;
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t resident_bytes_peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

// ---- the event queue ------------------------------------------------------------------------------------------------

struct ball {
    struct alb_sim_event event;
    struct hold *hold;
};

// Every event schedules itself anew, as far ahead as packets do: the hold model (W. R. Franta, K. Maly, 1977).
struct hold {
    struct alb_sim_queue queue;
    struct alb_prng prng;
};

static void bounce(struct alb_sim_event *event, alb_sim_time now)
{
    struct hold *hold = ALB_CONTAINER_OF(event, struct ball, event)->hold;
    alb_sim_queue_schedule(&hold->queue, event, now + ALB_SIM_NS(300) + alb_prng_u64(&hold->prng) % ALB_SIM_US(1));
}

static void measure_queue(uint64_t events, uint32_t count)
{
    struct hold *hold = calloc(1, sizeof(*hold));
    struct ball *balls = calloc(count, sizeof(*balls));
    alb_assert(hold && balls);
    alb_sim_queue_init(&hold->queue);
    alb_prng_init(&hold->prng, 1);
    for (uint32_t i = 0; i < count; i++) {
        balls[i].hold = hold;
        alb_sim_event_init(&balls[i].event, bounce);
        bounce(&balls[i].event, 0);
    }
    alb_sim_queue_run(&hold->queue, ALB_SIM_NEVER - 1, events / 4); // until it has found its pace
    double begin = seconds();
    alb_sim_queue_run(&hold->queue, ALB_SIM_NEVER - 1, events);
    double took = seconds() - begin;
    printf(
        "{\"case\": \"event_queue\", \"under_way\": %u, \"events\": %llu, \"seconds\": %.3f, \"events_per_s\": %.0f}\n",
        count, (unsigned long long)events, took, (double)events / took);
    alb_sim_queue_fini(&hold->queue);
    free(balls);
    free(hold);
}

// ---- the permutation ------------------------------------------------------------------------------------------------

struct run {
    uint32_t done, failed;
    alb_sim_time last_at;
    bool lists_hosts;
};

static void on_complete(void *context, const struct alb_cluster_completion *completion, alb_sim_time now)
{
    struct run *run = context;
    run->done++;
    run->failed += completion->status != ALB_WC_SUCCESS;
    run->last_at = ALB_MAX(run->last_at, now);
    if (run->lists_hosts)
        printf("%u %llu\n", alb_channel_connection(completion->channel)->host[0], (unsigned long long)now / 1000);
}

static void configure(struct alb_cluster_config *config, const struct options *options)
{
    int error = alb_cluster_config_default(config, options->transport);
    alb_assert(error == 0);
    if (options->path)
        config->engine.path = options->path;
    if (options->congestion)
        config->engine.congestion = options->congestion;
    if (options->window_bytes)
        config->engine.window_start_bytes = config->engine.window_max_bytes = options->window_bytes;
    if (strcmp(options->spread, "spray") == 0)
        config->switches.spread = ALB_SPREAD_SPRAY;
    config->engine.path_max = options->paths;
    config->host_poll = ALB_SIM_NS(options->poll_ns);
    if (options->ahead_bytes)
        config->ahead_bytes = options->ahead_bytes;
    config->seed = 1;
    config->order = strcmp(options->order, "host") == 0     ? ALB_CLUSTER_BY_HOST
                    : strcmp(options->order, "window") == 0 ? ALB_CLUSTER_WINDOWS_BY_TIME
                                                            : ALB_CLUSTER_BY_TIME;
    config->on_complete = on_complete;
}

// Each host sends to one, and one sends to it (S. Sattolo, 1986: never itself). For free().
static uint32_t *permute(uint32_t hosts)
{
    uint32_t *to = calloc(hosts, sizeof(*to));
    struct alb_prng prng;
    alb_assert(to);
    alb_prng_init(&prng, 7);
    for (uint32_t i = 0; i < hosts; i++)
        to[i] = i;
    for (uint32_t i = hosts - 1; i > 0; i--) {
        uint32_t k = (uint32_t)alb_prng_below(&prng, i), other = to[k];
        to[k] = to[i];
        to[i] = other;
    }
    return to;
}

static void list_pairs(uint32_t hosts)
{
    uint32_t *to = permute(hosts);
    for (uint32_t i = 0; i < hosts; i++)
        printf("%u %u\n", i, to[i]);
    free(to);
}

static void post_permutation(struct alb_cluster *cluster, uint32_t hosts, uint64_t bytes)
{
    uint32_t *to = permute(hosts);
    for (uint32_t i = 0; i < hosts; i++) {
        struct alb_connection connection;
        struct alb_channel *channel;
        struct alb_message message = {.op = ALB_MESSAGE_WRITE, .bytes = bytes};
        alb_connection_default(&connection, i, to[i]);
        int error = alb_cluster_connect(cluster, &connection, &channel);
        error = error ? error : alb_cluster_post(cluster, channel, 0, &message);
        alb_assert(error == 0);
    }
    free(to);
}

static void report(const struct alb_cluster *cluster, const struct run *run, double took)
{
    struct alb_cluster_totals totals;
    uint32_t hosts = alb_cluster_topology(cluster)->host_count;
    uint64_t again = 0;
    alb_cluster_totals(cluster, &totals);
    for (uint32_t i = 0; i < hosts; i++)
        again += alb_cluster_host_stats(cluster, i)->sum.counter[ALB_STAT_retransmitted_pkts];
    printf("{\"case\": \"permutation\", \"hosts\": %u, \"done\": %u, \"failed\": %u, \"last_us\": %.1f, \"packets\": "
           "%llu, "
           "\"packet_hops\": %llu, \"events\": %llu, \"dropped\": %llu, \"sent_again\": %llu, \"seconds\": %.3f, "
           "\"packet_hops_per_s\": %.0f, \"engine_bytes_per_host\": %llu, \"bytes_per_host\": %llu, "
           "\"resident_bytes\": %llu, \"trace_hash\": \"%016llx\"}\n",
           hosts, run->done, run->failed, (double)run->last_at / 1e6, (unsigned long long)totals.packets_sent,
           (unsigned long long)totals.packet_hops, (unsigned long long)totals.events,
           (unsigned long long)totals.dropped, (unsigned long long)again, took, (double)totals.packet_hops / took,
           (unsigned long long)totals.engine_bytes / hosts, (unsigned long long)totals.bytes / hosts,
           (unsigned long long)resident_bytes_peak(), (unsigned long long)alb_cluster_trace_hash(cluster));
}

static void measure_permutation(const struct options *options)
{
    struct alb_topology_spec spec;
    struct alb_topology topology;
    struct alb_cluster_config config;
    struct alb_cluster *cluster;
    struct run run = {.lists_hosts = options->lists_hosts};
    char why[ALB_TOPOLOGY_ERROR_MAX];
    alb_topology_spec_default(&spec);
    spec.shape = ALB_TOPOLOGY_FAT_TREE;
    spec.k = options->k;
    configure(&config, options);
    config.context = &run;
    if (!alb_topology_build(&topology, &spec, why) || alb_cluster_create(&config, &topology, &cluster) != 0) {
        fprintf(stderr, "no such cluster: %s\n", why);
        exit(2);
    }
    post_permutation(cluster, topology.host_count, options->bytes);
    double begin = seconds();
    while (run.done < topology.host_count && alb_cluster_run(cluster, ALB_SIM_S(1), 100000) == ALB_CLUSTER_EVENTS)
        ;
    report(cluster, &run, seconds() - begin);
    alb_cluster_destroy(cluster);
    alb_topology_free(&topology);
}

// ---- options --------------------------------------------------------------------------------------------------------

static void usage(void)
{
    fprintf(stderr, "usage: alb_sim_scale [--k N] [--bytes N] [--paths N] [--window N] [--transport T] [--path P] "
                    "[--congestion C] [--spread ecmp|spray] [--poll-ns N] [--ahead BYTES] [--order host|window|time] "
                    "[--queue EVENTS] [--list] [--pairs]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    struct options options = {
        .k = 16, .paths = 64, .bytes = 2000000, .transport = "csa", .spread = "ecmp", .order = "host"};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--list") == 0) {
            options.lists_hosts = true;
            continue;
        }
        if (strcmp(argv[i], "--pairs") == 0) {
            options.lists_pairs = true;
            continue;
        }
        if (!value)
            usage();
        if (strcmp(argv[i], "--k") == 0)
            options.k = (uint32_t)atoi(value);
        else if (strcmp(argv[i], "--bytes") == 0)
            options.bytes = strtoull(value, NULL, 0);
        else if (strcmp(argv[i], "--paths") == 0)
            options.paths = (uint32_t)atoi(value);
        else if (strcmp(argv[i], "--window") == 0)
            options.window_bytes = (uint32_t)atoi(value);
        else if (strcmp(argv[i], "--transport") == 0)
            options.transport = value;
        else if (strcmp(argv[i], "--path") == 0)
            options.path = value;
        else if (strcmp(argv[i], "--congestion") == 0)
            options.congestion = value;
        else if (strcmp(argv[i], "--spread") == 0)
            options.spread = value;
        else if (strcmp(argv[i], "--order") == 0)
            options.order = value;
        else if (strcmp(argv[i], "--poll-ns") == 0)
            options.poll_ns = strtoull(value, NULL, 0);
        else if (strcmp(argv[i], "--ahead") == 0)
            options.ahead_bytes = (uint32_t)atoi(value);
        else if (strcmp(argv[i], "--queue") == 0)
            options.queue_events = strtoull(value, NULL, 0);
        else
            usage();
        i++;
    }
    if (options.lists_pairs)
        list_pairs(options.k * options.k * options.k / 4);
    else if (options.queue_events)
        measure_queue(options.queue_events, 65536);
    else
        measure_permutation(&options);
    return 0;
}
