// SPDX-License-Identifier: BSD-2-Clause
#include "sim/run.h"

#include "base/text.h"
#include "engine/policy.h"
#include "sim/routes.h"
#include "sim/workload.h"
#include "wire/csa.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RESERVED_QPS = 17, // indexes that an engine keeps for itself
    SEND_DEPTH_MIN = 16,
    RECEIVES_MIN = 64,
    SPARE_PEERS = 4,
    QPS_MAX = 65500,        // of an engine: indexes of 16 bits, some of them reserved
    CSA_PING_BYTES = 8,     // that a segment of UC leaves room for,
    CSA_UC_BYTES_MIN = 512, // and what it has at least
    IPV4_UDP_BYTES = 28,
    FRAME_BYTES = 38,     // Ethernet: preamble 8, header 14, FCS 4, gap 12
    TRACE_RECORDS = 4096, // taken each time that the engine has run
};

// ---- network --------------------------------------------------------------------------------------------------------

static bool build_topology(struct alb_run *run, struct alb_complaint *complaint)
{
    const struct alb_scenario *scenario = run->scenario;
    const struct alb_document_entry *place;
    char error[ALB_TOPOLOGY_ERROR_MAX];
    if (scenario->network.shape != ALB_TOPOLOGY_FILE) {
        const struct alb_topology_fault fault = alb_topology_find_fault(&scenario->network);
        place = alb_scenario_place(scenario, "network", "", fault.why ? fault.key : "");
        return fault.why ? alb_complain(complaint, place->file, place->line, "%s", fault.why)
                         : alb_topology_build(&run->topology, &scenario->network, error);
    }
    place = alb_scenario_place(scenario, "network", "", "topology");
    if (!scenario->network_file)
        return alb_complain(complaint, place->file, place->line, "topology = file; expected file = NAME too");
    size_t length;
    place = alb_scenario_place(scenario, "network", "", "file");
    char *text = alb_scenario_file(scenario, scenario->network_file, place, &length, complaint);
    FILE *file = text ? fmemopen(text, length ? length : 1, "r") : NULL;
    bool is_good = file && alb_topology_read(&run->topology, file, scenario->network_file, error);
    if (text && !is_good)
        alb_complain(complaint, place->file, place->line, "%s", file ? error : strerror(errno));
    if (file)
        fclose(file);
    free(text);
    return is_good;
}

// Before anything is made: they come behind the hosts, and would be the last to find that there is too little.
static bool has_room_for_routes(const struct alb_run *run, struct alb_complaint *complaint)
{
    const struct alb_scenario *scenario = run->scenario;
    const struct alb_document_entry *place = alb_scenario_place(scenario, "network", "", "");
    const double gib = 1 << 30;
    uint64_t free = scenario->memory_bytes, bytes = free ? alb_routes_bytes(&run->topology) : 0;
    return bytes <= free ||
           alb_complain(complaint, place->file, place->line,
                        "routes between %" PRIu32 " switches take %.1f GiB of memory, and there are "
                        "%.1f; expected a smaller cluster",
                        run->topology.node_count - run->topology.host_count, (double)bytes / gib, (double)free / gib);
}

// The rate of the first host's link: what a load is a part of.
static uint64_t host_rate(const struct alb_run *run)
{
    for (uint32_t c = 0; c < run->topology.cable_count; c++)
        if (run->topology.cables[c].tier == 0 && run->topology.cables[c].a == 0)
            return run->topology.cables[c].bits_per_s;
    return run->scenario->network.host_bits_per_s;
}

// ---- channels -------------------------------------------------------------------------------------------------------

enum { KEYS = 4 };

// By the first of the pairs that are not alike.
static int compare_keys(const uint32_t keys[KEYS][2])
{
    for (size_t i = 0; i < KEYS; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static int compare_channels(const void *left, const void *right)
{
    const struct alb_run_channel *a = left, *b = right;
    const uint32_t keys[KEYS][2] = {{a->work, b->work}, {a->low, b->low}, {a->high, b->high}, {a->index, b->index}};
    return compare_keys(keys);
}

// The channel of a send: messages of a pair take its queue pairs in turn.
static struct alb_run_channel key_of(const struct alb_run *run, uint32_t index, uint32_t turn)
{
    const struct alb_task *task = &run->schedule.tasks[index];
    return (struct alb_run_channel){.low = ALB_MIN(task->rank, task->peer),
                                    .high = ALB_MAX(task->rank, task->peer),
                                    .index = turn % run->schedule.works[task->work].queue_pairs,
                                    .work = task->work,
                                    .waiting_first = {ALB_TASK_NONE, ALB_TASK_NONE}};
}

// A send, and how many of its pair are before it.
struct turn {
    uint32_t work, rank, peer, task, turn;
};

static int compare_turns(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    const uint32_t keys[KEYS][2] = {{a->work, b->work}, {a->rank, b->rank}, {a->peer, b->peer}, {a->task, b->task}};
    return compare_keys(keys);
}

static uint32_t list_turns(const struct alb_run *run, struct turn *turns)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->schedule.task_count; i++) {
        const struct alb_task *task = &run->schedule.tasks[i];
        if (task->kind == ALB_TASK_SEND)
            turns[count++] = (struct turn){.work = task->work, .rank = task->rank, .peer = task->peer, .task = i};
    }
    qsort(turns, count, sizeof(*turns), compare_turns);
    for (uint32_t i = 1; i < count; i++) {
        const struct turn *before = &turns[i - 1];
        bool goes_on = before->work == turns[i].work && before->rank == turns[i].rank && before->peer == turns[i].peer;
        turns[i].turn = goes_on ? before->turn + 1 : 0;
    }
    return count;
}

static void collect_channels(struct alb_run *run)
{
    uint32_t n = run->schedule.task_count;
    struct turn *turns = malloc((n + 1u) * sizeof(*turns));
    run->channels = malloc((n + 1u) * sizeof(*run->channels));
    run->channel_of = malloc((n + 1u) * sizeof(*run->channel_of));
    alb_assert(turns && run->channels && run->channel_of);
    uint32_t count = list_turns(run, turns);
    for (uint32_t i = 0; i < count; i++)
        run->channels[i] = key_of(run, turns[i].task, turns[i].turn);
    qsort(run->channels, count, sizeof(*run->channels), compare_channels);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || compare_channels(&run->channels[i], &run->channels[run->channel_count - 1]) != 0)
            run->channels[run->channel_count++] = run->channels[i];
    run->channels = realloc(run->channels, (run->channel_count + 1u) * sizeof(*run->channels));
    run->traffic = calloc(run->channel_count + 1u, sizeof(*run->traffic));
    alb_assert(run->channels && run->traffic);
    for (uint32_t i = 0; i < n; i++)
        run->channel_of[i] = ALB_TASK_NONE;
    for (uint32_t i = 0; i < count; i++) {
        struct alb_run_channel key = key_of(run, turns[i].task, turns[i].turn);
        const struct alb_run_channel *found =
            bsearch(&key, run->channels, run->channel_count, sizeof(key), compare_channels);
        uint32_t side = turns[i].rank != found->low, index = (uint32_t)(found - run->channels);
        run->traffic[index].messages[side]++;
        run->traffic[index].heard[side] += alb_run_is_heard(run, turns[i].task);
        run->channel_of[turns[i].task] = index;
    }
    free(turns);
}

// As many as the work has under way at a time, but no more than there are.
static uint32_t send_depth(const struct alb_run *run, uint32_t channel)
{
    uint32_t messages = ALB_MAX(run->traffic[channel].messages[0], run->traffic[channel].messages[1]);
    uint32_t depth = run->schedule.works[run->channels[channel].work].depth;
    return ALB_MAX(ALB_MIN(messages, depth), (uint32_t)SEND_DEPTH_MIN);
}

// The workload that a channel is of.
static const struct alb_document_entry *place_of(const struct alb_run *run, const struct alb_run_channel *channel)
{
    const struct alb_scenario *scenario = run->scenario;
    for (uint32_t i = 0; i < scenario->workload_count; i++)
        if (strcmp(scenario->workloads[i].name, run->schedule.works[channel->work].name) == 0)
            return scenario->workloads[i].where;
    return scenario->workloads[0].where;
}

static bool has_room(struct alb_run *run, const char *what, uint32_t made, uint32_t all)
{
    const struct alb_scenario *scenario = run->scenario;
    return !scenario->has_room || scenario->has_room(what, made, all, run->too_large, sizeof(run->too_large));
}

// The first connections of a host touch memory that the others share.
static bool has_room_for_connections(struct alb_run *run, uint32_t made)
{
    uint32_t hosts = run->topology.host_count;
    bool is_asked = (made & (made - 1)) == 0 && (made == 0 || made >= hosts);
    return !is_asked || has_room(run, "connections", made, run->channel_count) || made / 2 < hosts;
}

static bool connect(struct alb_run *run, struct alb_complaint *complaint)
{
    for (uint32_t i = 0; i < run->channel_count; i++) {
        struct alb_run_channel *channel = &run->channels[i];
        const struct alb_document_entry *place = place_of(run, channel);
        if (!has_room_for_connections(run, i))
            return alb_complain(complaint, place->file, place->line, "%s; expected fewer", run->too_large);
        const struct alb_work *work = &run->schedule.works[channel->work];
        struct alb_connection connection;
        alb_connection_default(&connection, channel->low, channel->high);
        connection.user[0] = connection.user[1] = i;
        connection.type = work->is_unreliable ? ALB_QPT_UC : ALB_QPT_RC;
        connection.partial_messages = work->partial ? ALB_RUN_PARTIAL_MESSAGES : 0;
        connection.timeout = work->timeout;
        connection.retry_cnt = work->retries;
        connection.send_depth = send_depth(run, i);
        int error = alb_cluster_connect(run->cluster, &connection, &channel->channel);
        if (error)
            return alb_complain(complaint, place->file, place->line,
                                "hosts %" PRIu32 " and %" PRIu32 " can't be connected: %s; expected larger limits in "
                                "[host] (queue_pair_max, peer_max, pool)",
                                channel->low, channel->high, strerror(error));
    }
    return true;
}

// ---- hosts ----------------------------------------------------------------------------------------------------------

static void need(struct alb_run_needs *needs, uint32_t peer, uint32_t receives)
{
    needs->qps++;
    needs->receives += receives;
    needs->peers += needs->last_peer != peer + 1; // channels are sorted: once for each work at most
    needs->last_peer = peer + 1;
}

// That of the host's link, if neither a key nor a parameter of the policy gives one: a sender by DCQCN never sends
// faster, once it has been told of a mark. At least what it rises by.
static void set_dcqcn_rate_max(struct alb_engine_config *engine, uint64_t bits_per_s)
{
    uint64_t rate = ALB_MIN(bits_per_s / 8, ALB_DCQCN_RATE_MAX_BYTES_PER_S);
    struct alb_engine_config with_parameters = *engine;
    const struct alb_dcqcn_config *dcqcn = &with_parameters.dcqcn;
    alb_congestion_set(&with_parameters);
    if (dcqcn->rate_max_bytes_per_s)
        return;
    rate = ALB_MAX(rate, dcqcn->rate_min_bytes_per_s);
    rate = ALB_MAX(rate, dcqcn->additive_bytes_per_s);
    engine->dcqcn.rate_max_bytes_per_s = ALB_MAX(rate, dcqcn->hyper_bytes_per_s);
}

static void change_host(void *context, uint32_t host, struct alb_engine_config *engine)
{
    const struct alb_run *run = context;
    const struct alb_document *document = &run->scenario->document;
    if (!alb_document_find(document, "host", "", "queue_pair_max"))
        engine->qp_max = run->needs[host].qps + RESERVED_QPS;
    if (!alb_document_find(document, "host", "", "peer_max"))
        engine->peer_max = run->needs[host].peers + SPARE_PEERS;
    alb_scenario_change_host(run->scenario, host, engine);
    set_dcqcn_rate_max(engine, run->needs[host].bits_per_s);
    engine->unreliable_bytes_per_s = ALB_MAX(run->needs[host].bits_per_s / 8, (uint64_t)1);
    if (run->scenario->has_trace && host == run->scenario->traced_host)
        engine->trace_records = TRACE_RECORDS;
}

static uint32_t receives_of(void *context, uint32_t host)
{
    const struct alb_run *run = context;
    uint32_t given = run->scenario->host.receives;
    return given ? given : ALB_MAX(run->needs[host].receives, (uint32_t)RECEIVES_MIN);
}

// The most queue pairs that a host has.
static uint32_t count_needs(struct alb_run *run)
{
    uint32_t most = 0;
    run->needs = calloc(run->topology.host_count, sizeof(*run->needs));
    alb_assert(run->needs);
    for (uint32_t i = 0; i < run->channel_count; i++) {
        const struct alb_run_channel *channel = &run->channels[i];
        const uint32_t *heard = run->traffic[i].heard, depth = send_depth(run, i);
        need(&run->needs[channel->low], channel->high, ALB_MIN(heard[1], depth));
        need(&run->needs[channel->high], channel->low, ALB_MIN(heard[0], depth));
        most = ALB_MAX(most, run->needs[channel->low].qps);
        most = ALB_MAX(most, run->needs[channel->high].qps);
    }
    for (uint32_t c = 0; c < run->topology.cable_count; c++)
        if (run->topology.cables[c].tier == 0)
            run->needs[run->topology.cables[c].a].bits_per_s = run->topology.cables[c].bits_per_s;
    return most;
}

static bool check_queue_pairs(struct alb_run *run, struct alb_complaint *complaint)
{
    const struct alb_document_entry *where = run->scenario->workloads[0].where;
    uint32_t most = count_needs(run);
    return most <= QPS_MAX || alb_complain(complaint, where->file, where->line,
                                           "a host has %" PRIu32 " queue pairs; expected %d at most", most, QPS_MAX);
}

// As much as the messages' places take, and receives that hold the largest SEND.
static bool size_memory(struct alb_run *run, struct alb_cluster_config *config, struct alb_complaint *complaint)
{
    uint32_t channel = 0;
    for (uint32_t i = 0; i < run->schedule.task_count; i++) {
        const struct alb_task *task = &run->schedule.tasks[i];
        if (task->kind == ALB_TASK_SEND && run->schedule.works[task->work].op == ALB_WORK_SEND)
            config->receive_bytes = ALB_MAX(config->receive_bytes, (uint32_t)task->bytes);
    }
    run->receive_bytes = config->receive_bytes;
    for (uint32_t host = 0; host < run->topology.host_count; host++)
        config->receives = ALB_MAX(config->receives, receives_of(run, host));
    if (!alb_run_bytes_layout(run, &channel)) {
        const struct alb_document_entry *place = alb_scenario_place(run->scenario, "host", "", "real_bytes");
        return alb_complain(complaint, place->file, place->line,
                            "real_bytes: hosts %" PRIu32 " and %" PRIu32 " have more than 4 GiB of messages for each "
                            "other by one queue pair; expected less",
                            run->channels[channel].low, run->channels[channel].high);
    }
    config->memory_bytes =
        ALB_MAX(config->memory_bytes, run->memory_used + (uint64_t)config->receives * config->receive_bytes + 1);
    return true;
}

// [host LIST] names hosts that there are.
static bool check_host_lists(const struct alb_run *run, struct alb_complaint *complaint)
{
    const struct alb_document *document = &run->scenario->document;
    for (uint32_t i = 0; i < document->count; i++) {
        const struct alb_document_entry *entry = &document->entries[i];
        uint32_t *hosts;
        if (strcmp(entry->section, "host") != 0 || !entry->name[0] || entry->key[0])
            continue;
        if (alb_scenario_hosts(entry->name, run->topology.host_count, entry, &hosts, complaint) == 0)
            return false;
        free(hosts);
    }
    return alb_scenario_host_lists_agree(run->scenario, run->topology.host_count, complaint);
}

// By time where the shortest delay changes, and where both ends are looked at at once: what is sent unreliably, bytes.
static enum alb_cluster_order order_of(const struct alb_run *run)
{
    const struct alb_scenario *scenario = run->scenario;
    bool is_by_time = scenario->host.has_real_bytes;
    for (uint32_t i = 0; i < run->schedule.work_count; i++)
        is_by_time |= run->schedule.works[i].is_unreliable;
    for (uint32_t i = 0; i < scenario->fault_count; i++)
        is_by_time |= scenario->faults[i].kind == ALB_FAULT_DELAY;
    return is_by_time ? ALB_CLUSTER_BY_TIME : (enum alb_cluster_order)scenario->order;
}

static bool has_room_for_hosts(void *context, uint32_t made)
{
    return has_room(context, "hosts", made, ((struct alb_run *)context)->topology.host_count);
}

static bool create_cluster(struct alb_run *run, struct alb_complaint *complaint)
{
    const struct alb_scenario *scenario = run->scenario;
    const struct alb_document_entry *place = alb_scenario_place(scenario, "host", "", "");
    struct alb_cluster_config config;
    uint64_t headroom_bytes = 0;
    int error = alb_cluster_config_default(&config, scenario->host.transport ? "csa" : "rc");
    config.seed = scenario->seed;
    config.order = order_of(run);
    config.engine = scenario->engine;
    config.host_config = change_host;
    config.switches = scenario->switches;
    config.rnic = (struct alb_rnic_config){scenario->host.cache_entries, scenario->host.miss_penalty};
    config.host_latency = scenario->host.latency;
    config.ahead_bytes = scenario->host.ahead_bytes;
    config.batch = scenario->host.batch;
    config.mtu_bytes = scenario->host.mtu_bytes;
    config.payload_max_bytes = scenario->host.payload_bytes;
    config.has_real_bytes = scenario->host.has_real_bytes;
    config.memory_bytes = scenario->host.memory_bytes;
    if (scenario->host.has_real_bytes && !size_memory(run, &config, complaint))
        return false;
    config.on_complete = alb_run_on_complete;
    config.host_receives = receives_of;
    config.has_room = has_room_for_hosts;
    config.context = run;
    config.headroom_bytes = &headroom_bytes;
    if (!error)
        error = alb_cluster_create(&config, &run->topology, &run->cluster);
    if (error == ENOMEM) {
        place = alb_scenario_place(scenario, "network", "", "");
        return alb_complain(complaint, place->file, place->line, "%s; expected a smaller cluster",
                            run->too_large[0] ? run->too_large : "no memory is left");
    }
    if (headroom_bytes) {
        place = alb_scenario_place(scenario, "switch", "", "buffer");
        return alb_complain(complaint, place->file, place->line,
                            "buffer: expected more than the headroom that pfc keeps for a switch's ports, %" PRIu64
                            " bytes here",
                            headroom_bytes);
    }
    return !error || alb_complain(complaint, place->file, place->line,
                                  "no cluster can be made of this: %s; expected limits of [host] and [switch] that "
                                  "agree with each other",
                                  strerror(error));
}

// ---- the whole ------------------------------------------------------------------------------------------------------

// All that can be known without a cluster. False: there is nothing to free.
static bool plan(struct alb_run *run, const struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    *run = (struct alb_run){.scenario = scenario};
    if (!build_topology(run, complaint))
        return false;
    if (!has_room_for_routes(run, complaint) ||
        !alb_workload_schedule(&run->schedule, scenario, run->topology.host_count, host_rate(run), complaint)) {
        alb_topology_free(&run->topology);
        return false;
    }
    collect_channels(run);
    bool is_good = check_host_lists(run, complaint) && check_queue_pairs(run, complaint);
    if (!is_good)
        alb_run_fini(run);
    return is_good;
}

bool alb_run_check(const struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    struct alb_run run;
    if (!plan(&run, scenario, complaint))
        return false;
    bool is_good = alb_run_faults(&run, complaint);
    alb_run_fini(&run);
    return is_good;
}

bool alb_run_init(struct alb_run *run, const struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    if (!plan(run, scenario, complaint))
        return false;
    bool is_good = create_cluster(run, complaint) && connect(run, complaint) && alb_run_faults(run, complaint);
    if (is_good && !alb_run_tasks_init(run))
        is_good = alb_complain(complaint, scenario->workloads[0].where->file, scenario->workloads[0].where->line,
                               "no memory for so many messages; expected fewer");
    if (is_good && run->places) {
        alb_run_bytes_fill(run);
        alb_run_model_begin(run);
    }
    if (!is_good)
        alb_run_fini(run);
    return is_good;
}

void alb_run_fini(struct alb_run *run)
{
    alb_run_model_fini(run);
    if (run->cluster)
        alb_cluster_destroy(run->cluster);
    alb_heat_fini(run);
    alb_run_tasks_fini(run);
    alb_run_bytes_fini(run);
    free(run->channels);
    free(run->channel_of);
    free(run->traffic);
    free(run->needs);
    alb_schedule_fini(&run->schedule);
    alb_topology_free(&run->topology);
}

uint64_t alb_run_bytes_arrived(const struct alb_run *run)
{
    uint32_t payload_bytes, overhead_bytes;
    uint64_t received = 0;
    if (run->bytes_done == run->bytes)
        return run->bytes;
    for (uint32_t host = 0; host < run->topology.host_count; host++)
        received += alb_cluster_host_stats(run->cluster, host)->sum.counter[ALB_STAT_rcvd_bytes];
    alb_run_packet(run, &run->schedule.works[0], &payload_bytes, &overhead_bytes);
    uint32_t datagram_bytes = payload_bytes + overhead_bytes - IPV4_UDP_BYTES - FRAME_BYTES;
    uint64_t arrived = (uint64_t)((double)received * payload_bytes / datagram_bytes);
    return ALB_MAX(run->bytes_done, ALB_MIN(arrived, run->bytes - 1));
}

// When it ends at the latest.
static alb_sim_time limit_of(const struct alb_run *run, const struct alb_run_options *options)
{
    return ALB_MIN(options->until, run->scenario->end);
}

static void tell(const struct alb_run *run, const struct alb_run_options *options)
{
    if (!options->on_progress)
        return;
    const struct alb_run_progress progress = {.now = alb_cluster_now(run->cluster),
                                              .until = limit_of(run, options),
                                              .events = alb_sim_queue_done(alb_cluster_queue(run->cluster)),
                                              .bytes_done = alb_run_bytes_arrived(run),
                                              .bytes = run->bytes,
                                              .tasks_done = run->tasks_done,
                                              .tasks = run->schedule.task_count};
    options->on_progress(options->context, &progress);
}

// How many events may still happen: a window ends with more than were asked for.
static uint64_t events_left(const struct alb_run *run, const struct alb_run_options *options)
{
    return options->events_max - ALB_MIN(options->events_max, alb_sim_queue_done(alb_cluster_queue(run->cluster)));
}

// In pieces, for reports of progress.
static enum alb_cluster_end go(struct alb_run *run, const struct alb_run_options *options)
{
    alb_sim_time until = limit_of(run, options);
    uint64_t piece = ALB_MAX(options->progress_events, (uint64_t)1);
    enum alb_cluster_end end;
    do {
        end = alb_cluster_run(run->cluster, until, ALB_MIN(piece, events_left(run, options)));
        tell(run, options);
    } while (end == ALB_CLUSTER_EVENTS && events_left(run, options) > 0);
    return end;
}

// What comes after the last task is done may have no effect any more, which memory shows when nothing is left to come.
static void come_to_rest(struct alb_run *run, const struct alb_run_options *options, enum alb_cluster_end end)
{
    alb_sim_time until = limit_of(run, options);
    while (end == ALB_CLUSTER_STOPPED && !run->violation[0]) // again by each completion
        end = alb_cluster_run(run->cluster, until, events_left(run, options));
    run->is_at_rest = end == ALB_CLUSTER_IDLE;
}

enum alb_run_end alb_run_go(struct alb_run *run, const struct alb_run_options *options)
{
    if (options->has_heat)
        alb_heat_init(run, run->scenario->interval ? run->scenario->interval : ALB_SIM_US(1));
    alb_run_starts_begin(run);
    enum alb_cluster_end end = go(run, options);
    alb_heat_end(run);
    if (end == ALB_CLUSTER_IDLE)
        alb_run_lose(run);
    if (run->models) {
        come_to_rest(run, options, end);
        alb_run_model_end(run, run->is_at_rest);
    }
    bool is_done = run->tasks_done == run->schedule.task_count;
    run->end = is_done                     ? ALB_RUN_DONE
               : end == ALB_CLUSTER_UNTIL  ? ALB_RUN_TIME
               : end == ALB_CLUSTER_EVENTS ? ALB_RUN_EVENTS
                                           : ALB_RUN_STUCK;
    return run->end;
}

alb_sim_time alb_run_time(const struct alb_run *run)
{
    return run->end == ALB_RUN_DONE && run->ended_at > 0 ? run->ended_at : alb_cluster_now(run->cluster);
}

// ---- the ideal ------------------------------------------------------------------------------------------------------

// Of those WRITEs of RC that nobody is told of: the others' is longer by the immediate data.
static uint32_t csa_header_bytes(const struct alb_work *work)
{
    if (work->op == ALB_WORK_READ)
        return alb_csa_segment_header_bytes(ALB_CSA_RESPONSE, ALB_CSA_READ_DATA, 0);
    if (work->op == ALB_WORK_SEND)
        return alb_csa_segment_header_bytes(ALB_CSA_REQUEST, ALB_CSA_SEND_IMM, 0);
    return alb_csa_segment_header_bytes(ALB_CSA_REQUEST, work->is_unreliable ? ALB_CSA_WRITE_IMM : ALB_CSA_WRITE, 0);
}

void alb_run_packet(const struct alb_run *run, const struct alb_work *work, uint32_t *payload_bytes,
                    uint32_t *overhead_bytes)
{
    const struct alb_scenario_host *host = &run->scenario->host;
    const uint32_t outside = IPV4_UDP_BYTES + FRAME_BYTES;
    if (host->transport == 0) {
        *payload_bytes = host->mtu_bytes;
        *overhead_bytes = ALB_BTH_BYTES + ALB_ICRC_BYTES + outside;
    } else {
        uint32_t inside = ALB_CSA_OUTER_BYTES + csa_header_bytes(work) + ALB_ICRC_BYTES;
        *payload_bytes = (host->payload_bytes - inside) & ~7u;
        if (work->is_unreliable)
            *payload_bytes = ALB_MAX(*payload_bytes - CSA_PING_BYTES, (uint32_t)CSA_UC_BYTES_MIN);
        *overhead_bytes = inside + outside;
    }
}

alb_sim_time alb_run_ideal(const struct alb_run *run, uint32_t index)
{
    const struct alb_task *task = &run->schedule.tasks[index];
    const struct alb_work *work = &run->schedule.works[task->work];
    uint32_t payload_bytes, overhead_bytes;
    alb_run_packet(run, work, &payload_bytes, &overhead_bytes);
    bool reads = work->op == ALB_WORK_READ;
    uint32_t from = reads ? task->peer : task->rank, to = reads ? task->rank : task->peer;
    alb_sim_time there = alb_cluster_ideal_time(run->cluster, from, to, task->bytes, payload_bytes, overhead_bytes);
    if (work->is_unreliable) // whose end is its arrival
        return there;
    return there + alb_cluster_ideal_time(run->cluster, to, from, 1, payload_bytes, overhead_bytes);
}
