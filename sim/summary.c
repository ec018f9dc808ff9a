// SPDX-License-Identifier: BSD-2-Clause
#include "sim/summary.h"

#include "sim/ideal.h"

#include <stdlib.h>
#include <string.h>

#define PS_PER_NS 1000.0

static const uint64_t bin_edges[ALB_SUMMARY_BINS] = {4096,    16384,   65536,    262144,
                                                     1048576, 4194304, 16777216, UINT64_MAX};

// ---- times ----------------------------------------------------------------------------------------------------------

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// The smallest one that at least that part of them does not exceed.
static double percentile(const double *sorted, uint64_t count, double part)
{
    uint64_t rank = (uint64_t)(part * (double)count);
    if ((double)rank < part * (double)count)
        rank++;
    return sorted[rank ? rank - 1 : 0];
}

// Sorts them.
static struct alb_summary_times times_of(double *values, uint64_t count)
{
    struct alb_summary_times times = {0};
    if (count == 0)
        return times;
    qsort(values, count, sizeof(*values), compare);
    for (uint64_t i = 0; i < count; i++)
        times.mean += values[i] / (double)count;
    times.min = values[0];
    times.p50 = percentile(values, count, 0.5);
    times.p95 = percentile(values, count, 0.95);
    times.p99 = percentile(values, count, 0.99);
    times.p999 = percentile(values, count, 0.999);
    times.max = values[count - 1];
    return times;
}

// ---- flows ----------------------------------------------------------------------------------------------------------

// A message that has come through.
struct flow {
    uint64_t bytes;
    double fct, slowdown;
    uint32_t work;
};

struct flows {
    struct flow *all;
    uint64_t count;
};

static void collect(const struct alb_run *run, struct flows *flows)
{
    flows->all = malloc((run->schedule.task_count + 1u) * sizeof(*flows->all));
    flows->count = 0;
    alb_assert(flows->all);
    for (uint32_t i = 0; i < run->schedule.task_count; i++) {
        const struct alb_task *task = &run->schedule.tasks[i];
        if (task->kind != ALB_TASK_SEND || !alb_run_task_has_come(run, i))
            continue;
        double fct = (double)(alb_run_task_end(run, i) - run->times[i].begun);
        flows->all[flows->count++] =
            (struct flow){task->bytes, fct / PS_PER_NS, fct / (double)ALB_MAX(alb_run_ideal(run, i), 1ull), task->work};
    }
}

// Flows of that work (UINT32_MAX: of all), and sizes above low up to high.
static uint64_t pick(const struct flows *flows, uint32_t work, uint64_t low, uint64_t high, double *fct,
                     double *slowdown)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < flows->count; i++) {
        const struct flow *flow = &flows->all[i];
        if ((work != UINT32_MAX && flow->work != work) || (low && flow->bytes <= low) || flow->bytes > high)
            continue;
        fct[count] = flow->fct;
        slowdown[count++] = flow->slowdown;
    }
    return count;
}

// The receipts of a collective are posted when the run begins, whenever that does.
static bool waits_from_start(const struct alb_run *run, const struct alb_task *task)
{
    return task->kind == ALB_TASK_RECV && run->schedule.works[task->work].is_collective;
}

// A collective is complete when every rank has what it is to get, whenever senders hear of that.
static bool ends_at_sender(const struct alb_run *run, const struct alb_task *task)
{
    return task->kind == ALB_TASK_SEND && !run->schedule.works[task->work].is_collective;
}

// Counts, and when its tasks began and ended.
static void measure_part(const struct alb_run *run, uint32_t first, uint32_t count, struct alb_summary_part *part)
{
    alb_sim_time begun = ALB_SIM_NEVER, done = 0;
    for (uint32_t i = first; i < first + count; i++) {
        const struct alb_task *task = &run->schedule.tasks[i];
        const struct alb_task_times *times = &run->times[i];
        if (times->begun != ALB_SIM_NEVER && !waits_from_start(run, task))
            begun = ALB_MIN(begun, times->begun);
        bool is_come = alb_run_task_has_come(run, i);
        if (task->kind != ALB_TASK_SEND && times->done != ALB_SIM_NEVER)
            done = ALB_MAX(done, times->done);
        if (task->kind != ALB_TASK_SEND)
            continue;
        if (is_come && ends_at_sender(run, task))
            done = ALB_MAX(done, alb_run_task_end(run, i));
        part->flows++;
        part->done += is_come;
        part->failed += alb_run_task_failed(run, i);
        part->bytes += is_come ? (double)task->bytes : 0;
    }
    if (begun < done) {
        part->time = (double)(done - begun) / PS_PER_NS;
        part->goodput = part->bytes * 8e9 / part->time;
    }
}

static void summarize_part(const struct alb_run *run, const struct flows *flows, uint32_t work, double *fct,
                           double *slowdown, struct alb_summary_part *part)
{
    bool is_all = work == UINT32_MAX;
    const struct alb_work *of = is_all ? NULL : &run->schedule.works[work];
    *part = (struct alb_summary_part){0};
    snprintf(part->name, sizeof(part->name), "%s", is_all ? "all" : of->name);
    measure_part(run, is_all ? 0 : of->first_task, is_all ? run->schedule.task_count : of->task_count, part);
    uint64_t count = pick(flows, work, 0, UINT64_MAX, fct, slowdown);
    part->fct = times_of(fct, count);
    part->slowdown = times_of(slowdown, count);
    part->is_collective = !is_all && of->is_collective;
    if (part->is_collective) {
        part->ideal = (double)alb_ideal_work(run, work) / PS_PER_NS;
        part->over_ideal = part->ideal > 0 ? part->time / part->ideal : 0;
    }
}

static void summarize_bins(struct alb_summary *summary, const struct flows *flows, double *fct, double *slowdown)
{
    uint64_t low = 0;
    for (uint32_t i = 0; i < ALB_SUMMARY_BINS; i++) {
        uint64_t count = pick(flows, UINT32_MAX, low, bin_edges[i], fct, slowdown);
        low = bin_edges[i];
        if (count == 0)
            continue;
        summary->bins[summary->bin_count++] = (struct alb_summary_bin){bin_edges[i], count, times_of(slowdown, count)};
    }
}

// ---- network --------------------------------------------------------------------------------------------------------

static void add_hosts(const struct alb_run *run, struct alb_summary_network *network)
{
    for (uint32_t host = 0; host < run->topology.host_count; host++) {
        const struct alb_stats *stats = &alb_cluster_host_stats(run->cluster, host)->sum;
        network->retransmitted += (double)stats->counter[ALB_STAT_retransmitted_pkts];
        network->trimmed_resent += (double)stats->counter[ALB_STAT_trimmed_pkts];
        network->spurious += (double)stats->counter[ALB_STAT_duplicate_request];
        network->timeouts += (double)stats->counter[ALB_STAT_local_ack_timeout_err];
    }
}

double alb_summary_link_used(const struct alb_run *run, uint32_t link)
{
    double seconds = (double)alb_run_time(run) / 1e12, rate = (double)run->topology.cables[link / 2].bits_per_s;
    double bits = (double)alb_cluster_link_bytes(run->cluster, link) * 8;
    return seconds > 0 ? ALB_MIN(bits / seconds / rate, 1.0) : 0;
}

static void add_links(const struct alb_run *run, struct alb_summary_network *network)
{
    double core = 0;
    uint32_t core_links = 0;
    for (uint32_t link = 0; link < 2 * run->topology.cable_count; link++) {
        const struct alb_topology_cable *cable = &run->topology.cables[link / 2];
        struct alb_cluster_link_stats stats;
        alb_cluster_link_stats(run->cluster, link, &stats);
        network->paused += (double)stats.paused / PS_PER_NS;
        network->corrupted += (double)stats.corrupted;
        network->queue_peak = ALB_MAX(network->queue_peak, (double)stats.queued_bytes_peak);
        double used = alb_summary_link_used(run, link);
        network->busiest = ALB_MAX(network->busiest, used);
        if (cable->tier > 0) {
            core += used;
            core_links++;
        }
    }
    network->utilization = core_links ? core / core_links : 0;
}

static void add_switches(const struct alb_run *run, struct alb_summary_network *network)
{
    for (uint32_t node = run->topology.host_count; node < run->topology.node_count; node++) {
        struct alb_cluster_switch_stats stats;
        alb_cluster_switch_stats(run->cluster, node, &stats);
        network->buffer_peak = ALB_MAX(network->buffer_peak, (double)stats.buffered_bytes_peak);
    }
}

static void summarize_network(struct alb_summary *summary, const struct alb_run *run)
{
    struct alb_summary_network *network = &summary->network;
    struct alb_cluster_totals totals;
    alb_cluster_totals(run->cluster, &totals);
    *network = (struct alb_summary_network){
        .time = (double)alb_run_time(run) / PS_PER_NS,
        .packets = (double)totals.packets_sent,
        .packet_hops = (double)totals.packet_hops,
        .dropped = (double)totals.dropped,
        .lost = (double)totals.lost,
        .trimmed = (double)totals.trimmed,
        .marked = (double)totals.marked,
        .pauses = (double)totals.pauses,
        .cache_hits = (double)totals.cache_hits,
        .cache_misses = (double)totals.cache_misses,
        .state_bytes = (double)totals.engine_bytes / run->topology.host_count,
        .host_bytes = (double)totals.bytes / run->topology.host_count,
        .resent = (double)run->resent,
        .expectations_refused = (double)run->expectations_refused,
    };
    add_hosts(run, network);
    add_links(run, network);
    add_switches(run, network);
    network->retransmitted_part = network->packets > 0 ? network->retransmitted / network->packets : 0;
    summary->events = (double)totals.events;
    summary->trace_hash = alb_cluster_trace_hash(run->cluster);
}

void alb_summary_make(struct alb_summary *summary, const struct alb_run *run)
{
    struct flows flows;
    *summary = (struct alb_summary){.part_count = run->schedule.work_count};
    collect(run, &flows);
    double *fct = malloc((flows.count + 1) * sizeof(*fct)), *slowdown = malloc((flows.count + 1) * sizeof(*slowdown));
    summary->parts = calloc(run->schedule.work_count, sizeof(*summary->parts));
    alb_assert(fct && slowdown && summary->parts);
    for (uint32_t work = 0; work < run->schedule.work_count; work++)
        summarize_part(run, &flows, work, fct, slowdown, &summary->parts[work]);
    summarize_part(run, &flows, UINT32_MAX, fct, slowdown, &summary->all);
    summarize_bins(summary, &flows, fct, slowdown);
    summarize_network(summary, run);
    free(fct);
    free(slowdown);
    free(flows.all);
}

void alb_summary_fini(struct alb_summary *summary)
{
    free(summary->parts);
}
