// SPDX-License-Identifier: BSD-2-Clause
#include "sim/workload.h"

#include "sim/goal.h"
#include "sim/sizes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PS_PER_S 1000000000000ull

enum {
    CONNECTION_BYTES = 8 << 10, // at least: both its queue pairs
    TASKS_MAX = 1 << 28,
    MESSAGES_MAX = 1 << 25, // of pairs: a few GB, before anything is known of their connections
};

struct list {
    uint32_t *hosts;
    uint32_t count;
};

struct builder {
    struct alb_schedule *schedule;
    const struct alb_scenario *scenario;
    const struct alb_scenario_workload *workload;
    uint32_t host_count;
    uint64_t bits_per_s;
    struct alb_prng prng; // of this workload
    struct alb_complaint *complaint;
    struct list hosts, to;
    struct alb_sizes sizes; // count 0: one size
    uint32_t senders;       // so far, for the gap between them
};

// Where the workload says that key.
static const struct alb_document_entry *place_of(const struct builder *builder, const char *key)
{
    return alb_scenario_place(builder->scenario, "workload", builder->workload->where->name, key);
}

static bool complain(struct builder *builder, const char *key, const char *what)
{
    const struct alb_document_entry *where = place_of(builder, key);
    return alb_complain(builder->complaint, where->file, where->line, "%s", what);
}

// ---- flows ----------------------------------------------------------------------------------------------------------

static uint64_t draw_bytes(struct builder *builder)
{
    return builder->sizes.count ? alb_sizes_draw(&builder->sizes, &builder->prng) : builder->workload->bytes;
}

// What nearly takes up memory is refused later, by what has been used when some connections are made (sim/run.h).
static bool has_memory(struct builder *builder, uint64_t pairs)
{
    const struct alb_scenario_workload *workload = builder->workload;
    uint64_t each_way = pairs * ALB_MIN(workload->queue_pairs, workload->messages),
             free = builder->scenario->memory_bytes;
    uint64_t least = each_way / 2; // where each pair sends both ways by one
    const double gib = 1 << 30;
    char what[200];
    if (free == 0 || least * CONNECTION_BYTES <= free)
        return true;
    snprintf(what, sizeof(what),
             "%" PRIu64 " connections take %.1f GiB of memory or more, and there are %.1f; expected fewer", least,
             (double)least * CONNECTION_BYTES / gib, (double)free / gib);
    return complain(builder, "kind", what);
}

// For the messages of so many pairs more. Asked for all of them before the first is made, since the last may be hours
// away.
static bool has_room(struct builder *builder, uint64_t pairs)
{
    uint64_t taken = ALB_MIN(builder->schedule->task_count, (uint32_t)MESSAGES_MAX);
    return pairs * builder->workload->messages <= MESSAGES_MAX - taken ||
           complain(builder, "messages", "too many messages; expected 33,554,432 at most in all");
}

// All messages of a pair; each waits for the one that is depth before it.
static bool add_pair(struct builder *builder, uint32_t from, uint32_t to, alb_sim_time at)
{
    const struct alb_scenario_workload *workload = builder->workload;
    if (!has_room(builder, 1))
        return false;
    uint32_t first = builder->schedule->task_count;
    for (uint32_t i = 0; i < workload->messages; i++) {
        uint64_t bytes = draw_bytes(builder);
        if (bytes > ALB_MAX_MESSAGE)
            return complain(builder, builder->sizes.count ? "sizes" : "size",
                            "a message is larger than a queue pair carries; expected up to 2 GiB");
        uint32_t task = alb_schedule_send(builder->schedule, from, to, bytes, ALB_TASK_UNHEARD, at);
        if (i >= workload->depth)
            alb_schedule_require(builder->schedule, task, first + i - workload->depth, false);
    }
    return true;
}

// So many senders, each a gap after the one before.
static bool begins_in_time(struct builder *builder, uint64_t senders)
{
    alb_sim_time start = builder->workload->start, gap = builder->workload->gap;
    return gap == 0 || senders <= 1 + (ALB_SCHEDULE_TIME_MAX - start) / gap ||
           complain(
               builder, "gap",
               "the last message would begin after more than 106 days; expected a shorter gap or an earlier start");
}

static alb_sim_time next_start(struct builder *builder)
{
    return builder->workload->start + builder->workload->gap * builder->senders++;
}

// A cyclic permutation (S. Sattolo, 1986), so that no host sends to itself.
static bool add_permutation(struct builder *builder)
{
    const struct list *hosts = &builder->hosts;
    uint32_t *to = malloc(hosts->count * sizeof(*to));
    alb_assert(to);
    memcpy(to, hosts->hosts, hosts->count * sizeof(*to));
    for (uint32_t i = hosts->count - 1; i > 0; i--) {
        uint32_t j = (uint32_t)alb_prng_below(&builder->prng, i), swapped = to[i];
        to[i] = to[j];
        to[j] = swapped;
    }
    bool is_good = begins_in_time(builder, hosts->count);
    for (uint32_t i = 0; i < hosts->count && is_good; i++)
        is_good = add_pair(builder, hosts->hosts[i], to[i], next_start(builder));
    free(to);
    return is_good;
}

// Every sender with every receiver but itself.
static uint64_t count_incast(const struct builder *builder)
{
    uint64_t pairs = (uint64_t)builder->to.count * builder->hosts.count;
    uint8_t *sends = calloc(builder->host_count, 1);
    alb_assert(sends);
    for (uint32_t i = 0; i < builder->hosts.count; i++)
        sends[builder->hosts.hosts[i]] = 1;
    for (uint32_t i = 0; i < builder->to.count; i++)
        pairs -= sends[builder->to.hosts[i]];
    free(sends);
    return pairs;
}

static bool add_incast(struct builder *builder)
{
    uint64_t pairs = count_incast(builder);
    bool is_good = has_room(builder, pairs) && has_memory(builder, pairs) && begins_in_time(builder, pairs);
    for (uint32_t r = 0; r < builder->to.count; r++)
        for (uint32_t i = 0; i < builder->hosts.count && is_good; i++)
            if (builder->hosts.hosts[i] != builder->to.hosts[r])
                is_good = add_pair(builder, builder->hosts.hosts[i], builder->to.hosts[r], next_start(builder));
    return is_good;
}

static bool add_all_to_all(struct builder *builder)
{
    uint32_t n = builder->hosts.count;
    uint64_t pairs = (uint64_t)n * (n - 1);
    bool is_good = has_room(builder, pairs) && has_memory(builder, pairs) && begins_in_time(builder, n);
    for (uint32_t i = 0; i < n && is_good; i++) {
        alb_sim_time at = next_start(builder);
        for (uint32_t shift = 1; shift < n && is_good; shift++)
            is_good = add_pair(builder, builder->hosts.hosts[i], builder->hosts.hosts[(i + shift) % n], at);
    }
    return is_good;
}

static bool add_pairs(struct builder *builder)
{
    uint32_t n = ALB_MAX(builder->hosts.count, builder->to.count);
    if (!begins_in_time(builder, n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = builder->hosts.hosts[i % builder->hosts.count], to = builder->to.hosts[i % builder->to.count];
        if (from == to)
            return complain(builder, "to", "a host sends to itself; expected another one in to");
        if (!add_pair(builder, from, to, next_start(builder)))
            return false;
    }
    return true;
}

// Flows begin as a Poisson process, between hosts drawn at random.
static bool add_poisson(struct builder *builder)
{
    const struct alb_scenario_workload *workload = builder->workload;
    uint64_t message = builder->sizes.count ? alb_sizes_mean(&builder->sizes) : workload->bytes;
    unsigned __int128 mean = (unsigned __int128)message * ALB_MAX(workload->messages, 1u);
    unsigned __int128 bits_per_s = (unsigned __int128)builder->bits_per_s * workload->load_per_billion / 1000000000;
    unsigned __int128 span = mean * 8 * PS_PER_S / ALB_MAX(bits_per_s, (unsigned __int128)1);
    alb_sim_time gap = (alb_sim_time)(span / builder->hosts.count), at = workload->start;
    if (gap == 0 || gap > ALB_SIM_S(1000))
        return complain(builder, "load",
                        "flows would begin less often than every 1000 s, or more often than each picosecond; "
                        "expected another load or size");
    for (uint32_t i = 0; workload->flows == 0 || i < workload->flows; i++) {
        at += alb_sizes_gap(gap, &builder->prng);
        if (workload->end && at > workload->end)
            break;
        if (at > ALB_SCHEDULE_TIME_MAX)
            return complain(builder, "load",
                            "a flow would begin after more than 106 days; expected another load, fewer flows or an "
                            "earlier start");
        uint32_t from = (uint32_t)alb_prng_below(&builder->prng, builder->hosts.count);
        uint32_t to = (uint32_t)alb_prng_below(&builder->prng, builder->hosts.count - 1);
        to += to >= from;
        if (!add_pair(builder, builder->hosts.hosts[from], builder->hosts.hosts[to], at))
            return false;
    }
    return true;
}

// ---- what has steps -------------------------------------------------------------------------------------------------

// Each step of each round may wait for as long as a rank thinks about what two others have sent it; those of a tree
// that is not full yet, too, at each of 32 levels.
static bool thinks_in_time(struct builder *builder, uint64_t steps)
{
    const struct alb_scenario_workload *workload = builder->workload;
    unsigned __int128 all = (unsigned __int128)workload->think * (2 * steps + 64) * workload->rounds;
    return all <= ALB_SCHEDULE_TIME_MAX - workload->start ||
           complain(builder, "think",
                    "all rounds would take more than 106 days; expected to think for less, fewer rounds or an earlier "
                    "start");
}

static bool add_collective(struct builder *builder)
{
    const struct alb_scenario_workload *workload = builder->workload;
    const struct alb_collective_config config = {
        .kind = (enum alb_collective)(workload->kind - ALB_WORKLOAD_COLLECTIVE),
        .ranks = builder->hosts.hosts,
        .rank_count = builder->hosts.count,
        .bytes = workload->bytes,
        .pieces = workload->pieces,
        .rounds = workload->rounds,
        .at = workload->start,
        .think = workload->think,
    };
    uint64_t parts = config.kind == ALB_COLLECTIVE_ALL_REDUCE_TREE ? workload->pieces : config.rank_count;
    if (workload->bytes / parts >= ALB_MAX_MESSAGE)
        return complain(builder, "size", "a part is larger than a queue pair carries; expected parts of up to 2 GiB");
    uint64_t steps = config.kind == ALB_COLLECTIVE_ALL_REDUCE_TREE ? 2 * workload->pieces : 2ull * config.rank_count;
    if (steps * config.rank_count * 3 > TASKS_MAX / workload->rounds)
        return complain(builder, "rounds", "too many messages; expected 268,435,456 operations at most in all");
    if (!thinks_in_time(builder, steps))
        return false;
    alb_collective_add(builder->schedule, workload->name, &config);
    return true;
}

static bool add_goal(struct builder *builder)
{
    const struct alb_scenario_workload *workload = builder->workload;
    struct alb_schedule trace;
    size_t length;
    char *text =
        alb_scenario_file(builder->scenario, workload->file, place_of(builder, "file"), &length, builder->complaint);
    if (!text)
        return false;
    char path[ALB_SCENARIO_PATH_MAX];
    bool is_good = alb_goal_parse(&trace, workload->name, alb_scenario_path(builder->scenario, workload->file, path),
                                  text, length, builder->complaint);
    free(text);
    if (!is_good)
        return false;
    if (trace.rank_count > builder->hosts.count)
        is_good =
            complain(builder, "file", "the trace has more ranks than there are hosts; expected one host for each");
    else
        alb_schedule_append(builder->schedule, &trace, builder->hosts.hosts);
    alb_schedule_fini(&trace);
    return is_good;
}

// ---- all of them ----------------------------------------------------------------------------------------------------

static bool read_sizes(struct builder *builder)
{
    const struct alb_scenario_workload *workload = builder->workload;
    size_t length;
    builder->sizes.count = 0;
    if (!workload->sizes)
        return true;
    char *text =
        alb_scenario_file(builder->scenario, workload->sizes, place_of(builder, "sizes"), &length, builder->complaint);
    char path[ALB_SCENARIO_PATH_MAX];
    bool is_good = text && alb_sizes_parse(&builder->sizes, alb_scenario_path(builder->scenario, workload->sizes, path),
                                           text, length, builder->complaint);
    free(text);
    return is_good;
}

// Each host has one part in what all do together; the lists of pairs say who goes with whom.
static bool check_once(struct builder *builder, const char *key, const struct list *list)
{
    uint8_t *is_there = calloc(builder->host_count, 1);
    const struct alb_document_entry *where = place_of(builder, key);
    uint32_t i = 0;
    alb_assert(is_there);
    while (i < list->count && !is_there[list->hosts[i]])
        is_there[list->hosts[i++]] = 1;
    free(is_there);
    return i == list->count || builder->workload->kind == ALB_WORKLOAD_PAIRS ||
           alb_complain(builder->complaint, where->file, where->line,
                        "%s: host %" PRIu32 " is there twice; expected each once", key, list->hosts[i]);
}

static bool read_lists(struct builder *builder)
{
    const struct alb_scenario_workload *workload = builder->workload;
    builder->hosts.count = alb_scenario_hosts(workload->hosts, builder->host_count, place_of(builder, "hosts"),
                                              &builder->hosts.hosts, builder->complaint);
    if (builder->hosts.count == 0)
        return false;
    if (workload->to) {
        builder->to.count = alb_scenario_hosts(workload->to, builder->host_count, place_of(builder, "to"),
                                               &builder->to.hosts, builder->complaint);
        if (builder->to.count == 0)
            return false;
    }
    bool is_between = workload->kind != ALB_WORKLOAD_PAIRS && workload->kind != ALB_WORKLOAD_INCAST;
    if (!check_once(builder, "hosts", &builder->hosts) || !check_once(builder, "to", &builder->to))
        return false;
    if (!is_between || workload->kind == ALB_WORKLOAD_GOAL || builder->hosts.count >= 2)
        return true;
    const struct alb_document_entry *all = alb_document_find(&builder->scenario->document, "network", "", "hosts");
    const struct alb_document_entry *where = all && builder->host_count < 2 ? all : place_of(builder, "hosts");
    return alb_complain(builder->complaint, where->file, where->line, "one host alone; expected two at least");
}

static bool add_kind(struct builder *builder)
{
    switch (builder->workload->kind) {
    case ALB_WORKLOAD_PERMUTATION:
        return add_permutation(builder);
    case ALB_WORKLOAD_INCAST:
        return add_incast(builder);
    case ALB_WORKLOAD_ALL_TO_ALL:
        return add_all_to_all(builder);
    case ALB_WORKLOAD_POISSON:
        return add_poisson(builder);
    case ALB_WORKLOAD_PAIRS:
        return add_pairs(builder);
    case ALB_WORKLOAD_GOAL:
        return add_goal(builder);
    default:
        return add_collective(builder);
    }
}

static void describe(struct builder *builder, uint32_t first)
{
    const struct alb_scenario_workload *workload = builder->workload;
    for (uint32_t i = first; i < builder->schedule->work_count; i++) {
        struct alb_work *work = &builder->schedule->works[i];
        work->op = workload->op;
        work->is_unreliable = workload->is_unreliable;
        work->partial = workload->partial;
        work->queue_pairs = workload->queue_pairs;
        work->depth = workload->kind < ALB_WORKLOAD_GOAL ? workload->depth : 1;
        work->timeout = workload->timeout;
        work->retries = workload->retries;
    }
}

static bool add_workload(struct builder *builder)
{
    uint32_t first = builder->schedule->work_count, first_task = builder->schedule->task_count;
    builder->hosts = builder->to = (struct list){0};
    builder->senders = 0;
    bool is_good = read_sizes(builder) && read_lists(builder);
    if (is_good && builder->workload->kind < ALB_WORKLOAD_GOAL) {
        struct alb_work *work = alb_schedule_begin(builder->schedule, builder->workload->name);
        work->rank_count = builder->hosts.count;
    }
    is_good = is_good && add_kind(builder);
    if (is_good && builder->schedule->task_count == first_task)
        is_good =
            complain(builder, "", "the workload sends nothing; expected at least one message from a host to another");
    describe(builder, first);
    if (builder->hosts.count)
        free(builder->hosts.hosts);
    if (builder->to.count)
        free(builder->to.hosts);
    return is_good;
}

bool alb_workload_schedule(struct alb_schedule *schedule, const struct alb_scenario *scenario, uint32_t host_count,
                           uint64_t bits_per_s, struct alb_complaint *complaint)
{
    struct builder builder = {.schedule = schedule,
                              .scenario = scenario,
                              .host_count = host_count,
                              .bits_per_s = bits_per_s,
                              .complaint = complaint};
    bool is_good = true;
    alb_schedule_init(schedule, host_count);
    for (uint32_t i = 0; i < scenario->workload_count && is_good; i++) {
        builder.workload = &scenario->workloads[i];
        alb_prng_init(&builder.prng, scenario->seed * 1000003 + i);
        is_good = add_workload(&builder);
    }
    is_good = is_good && alb_schedule_seal(schedule, scenario->document.file, complaint);
    if (!is_good)
        alb_schedule_fini(schedule);
    return is_good;
}
