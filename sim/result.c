// SPDX-License-Identifier: BSD-2-Clause
#include "sim/result.h"

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

const char *alb_result_end_name(enum alb_run_end end)
{
    static const char *const names[] = {"done", "stuck", "time", "events"};
    return names[end];
}

void alb_result_string(FILE *to, const char *text)
{
    fputc('"', to);
    while (*text) {
        size_t bytes = alb_text_character(text);
        unsigned char c = (unsigned char)*text;
        if (bytes == 0)
            fputs("\\ufffd", to);
        else if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < ' ' || c == '<') // which a page, where it may stand in a script, would take for its own
            fprintf(to, "\\u%04x", c);
        else
            fwrite(text, 1, bytes, to);
        text += ALB_MAX(bytes, (size_t)1);
    }
    fputc('"', to);
}

static void write_text(FILE *to, const char *name, const char *text)
{
    fprintf(to, ",\"%s\":", name);
    alb_result_string(to, text);
}

static void write_run(FILE *to, const struct alb_result_of *result)
{
    const struct alb_scenario *scenario = result->run->scenario;
    fputs("{\"record\":\"run\"", to);
    write_text(to, "scenario", result->scenario);
    if (result->variant)
        write_text(to, "variant", result->variant);
    fprintf(to, ",\"seed\":%" PRIu64, scenario->seed);
    write_text(to, "transport", scenario->host.transport ? "csa" : "rc");
    write_text(to, "loss", scenario->engine.loss);
    write_text(to, "congestion", scenario->engine.congestion);
    write_text(to, "path", scenario->engine.path);
    write_text(to, "credit", scenario->engine.credit);
    write_text(to, "end", alb_result_end_name(result->run->end));
    fprintf(to, ",\"hosts\":%" PRIu32 ",\"switches\":%" PRIu32 ",\"cables\":%" PRIu32 ",\"events\":%.0f",
            result->run->topology.host_count, result->run->topology.node_count - result->run->topology.host_count,
            result->run->topology.cable_count, result->summary->events);
    fprintf(to, ",\"wall_s\":%.3f,\"trace\":\"%016" PRIx64 "\"}\n", result->wall_seconds, result->summary->trace_hash);
}

// Nanoseconds with their picoseconds, or null for a moment that never came.
static void write_moment(FILE *to, const char *name, alb_sim_time at)
{
    if (at == ALB_SIM_NEVER)
        fprintf(to, ",\"%s\":null", name);
    else
        fprintf(to, ",\"%s\":%" PRIu64 ".%03u", name, at / 1000, (unsigned)(at % 1000));
}

static void write_flow(FILE *to, const struct alb_run *run, uint32_t index)
{
    const struct alb_task *task = &run->schedule.tasks[index];
    const struct alb_task_times *times = &run->times[index];
    const char *state = alb_run_task_has_come(run, index) ? "done"
                        : alb_run_task_failed(run, index) ? "failed"
                                                          : "open";
    fprintf(to, "{\"record\":\"flow\",\"flow\":%" PRIu32, index);
    write_text(to, "work", run->schedule.works[task->work].name);
    fprintf(to, ",\"from\":%" PRIu32 ",\"to\":%" PRIu32 ",\"bytes\":%" PRIu64, task->rank, task->peer, task->bytes);
    if (run->schedule.works[task->work].steps)
        fprintf(to, ",\"step\":%" PRIu32, task->step);
    write_moment(to, "begun_ns", times->begun);
    write_moment(to, "arrived_ns", times->arrived);
    write_moment(to, "done_ns", times->done);
    write_moment(to, "ideal_ns", alb_run_ideal(run, index));
    fprintf(to, ",\"state\":\"%s\"}\n", state);
}

static void write_link(FILE *to, const struct alb_run *run, uint32_t link)
{
    const struct alb_topology_cable *cable = &run->topology.cables[link / 2];
    const struct alb_topology_node *nodes = run->topology.nodes;
    bool is_back = link % 2;
    struct alb_cluster_link_stats stats;
    alb_cluster_link_stats(run->cluster, link, &stats);
    fprintf(to, "{\"record\":\"link\",\"link\":%" PRIu32, link);
    write_text(to, "from", nodes[is_back ? cable->b : cable->a].name);
    write_text(to, "to", nodes[is_back ? cable->a : cable->b].name);
    fprintf(to,
            ",\"tier\":%" PRIu32 ",\"bits_per_s\":%" PRIu64 ",\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64
            ",\"lost\":%" PRIu64 ",\"dropped\":%" PRIu64 ",\"marked\":%" PRIu64 ",\"trimmed\":%" PRIu64
            ",\"corrupted\":%" PRIu64 ",\"pauses\":%" PRIu64,
            cable->tier, cable->bits_per_s, stats.packets, stats.bytes, stats.lost, stats.dropped, stats.marked,
            stats.trimmed, stats.corrupted, stats.pauses);
    write_moment(to, "paused_ns", stats.paused);
    fprintf(to, ",\"queued_bytes_peak\":%" PRIu64, stats.queued_bytes_peak);
    if (run->heat.bytes) {
        fprintf(to, ",\"interval_ns\":%" PRIu64 ",\"interval_bytes\":[", run->heat.interval / 1000);
        for (uint32_t c = 0; c < run->heat.columns; c++)
            fprintf(to, "%s%" PRIu64, c ? "," : "", run->heat.bytes[(size_t)c * run->heat.links + link]);
        fputc(']', to);
    }
    fputs("}\n", to);
}

static void write_switch(FILE *to, const struct alb_run *run, uint32_t node)
{
    struct alb_cluster_switch_stats stats;
    alb_cluster_switch_stats(run->cluster, node, &stats);
    fputs("{\"record\":\"switch\"", to);
    write_text(to, "switch", run->topology.nodes[node].name);
    fprintf(to,
            ",\"buffered_bytes_peak\":%" PRIu64 ",\"headroom_bytes_peak\":%" PRIu64 ",\"lost\":%" PRIu64
            ",\"dropped\":%" PRIu64 ",\"trimmed\":%" PRIu64 ",\"marked\":%" PRIu64 ",\"pauses_sent\":%" PRIu64 "}\n",
            stats.buffered_bytes_peak, stats.headroom_bytes_peak, stats.lost, stats.dropped, stats.trimmed,
            stats.marked, stats.pauses_sent);
}

// The engine's counters that are not zero.
static void write_host(FILE *to, const struct alb_run *run, uint32_t host)
{
    const struct alb_stats *stats = &alb_cluster_host_stats(run->cluster, host)->sum;
    fprintf(to, "{\"record\":\"host\",\"host\":%" PRIu32, host);
    for (unsigned i = 0; i < ALB_STAT_COUNT; i++)
        if (stats->counter[i])
            fprintf(to, ",\"%s\":%" PRIu64, alb_stat_name((enum alb_stat)i), stats->counter[i]);
    fputs("}\n", to);
}

static void write_metrics(FILE *to, const struct alb_summary *summary, const char *part, bool is_of_part)
{
    for (uint32_t i = 0; i < alb_metric_count; i++) {
        double value;
        if (alb_metrics[i].is_of_part == is_of_part && alb_metric_value(summary, &alb_metrics[i], part, &value))
            fprintf(to, ",\"%s\":%.10g", alb_metrics[i].name, value);
    }
    fputs("}\n", to);
}

int alb_result_write(FILE *to, const struct alb_result_of *result)
{
    const struct alb_run *run = result->run;
    errno = 0;
    write_run(to, result);
    for (uint32_t i = 0; i < run->schedule.task_count; i++)
        if (run->schedule.tasks[i].kind == ALB_TASK_SEND)
            write_flow(to, run, i);
    for (uint32_t link = 0; link < 2 * run->topology.cable_count; link++)
        write_link(to, run, link);
    for (uint32_t node = run->topology.host_count; node < run->topology.node_count; node++)
        write_switch(to, run, node);
    for (uint32_t host = 0; host < run->topology.host_count; host++)
        write_host(to, run, host);
    for (uint32_t i = 0; i < result->summary->part_count; i++) {
        fputs("{\"record\":\"part\"", to);
        write_text(to, "work", result->summary->parts[i].name);
        write_metrics(to, result->summary, result->summary->parts[i].name, true);
    }
    fputs("{\"record\":\"part\",\"work\":\"all\"", to);
    write_metrics(to, result->summary, NULL, true);
    fputs("{\"record\":\"network\"", to);
    write_metrics(to, result->summary, NULL, false);
    return fflush(to) == 0 && !ferror(to) ? 0 : errno ? errno : EIO;
}
