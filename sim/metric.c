// SPDX-License-Identifier: BSD-2-Clause
// The figures of a summary by name, and how they are written.
#include "sim/summary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define PART(member)    true, offsetof(struct alb_summary_part, member)
#define NETWORK(member) false, offsetof(struct alb_summary_network, member)

const struct alb_metric alb_metrics[] = {
    {"flows", ALB_METRIC_NUMBER, PART(flows), "messages"},
    {"done", ALB_METRIC_NUMBER, PART(done), "of them that are done"},
    {"failed", ALB_METRIC_NUMBER, PART(failed), "whose queue pair failed, or that UC lost"},
    {"time", ALB_METRIC_NS, PART(time),
     "from the first beginning to the last end: of a collective, its last receipt or calculation"},
    {"ideal", ALB_METRIC_NS, PART(ideal), "of a workload that is a collective: the shortest possible"},
    {"over_ideal", ALB_METRIC_NUMBER, PART(over_ideal), "of such a one: time by ideal"},
    {"goodput", ALB_METRIC_BITS_PER_S, PART(goodput), "payload by time, all hosts together"},
    {"fct_min", ALB_METRIC_NS, PART(fct.min), "flow completion time: from post to completion"},
    {"fct_mean", ALB_METRIC_NS, PART(fct.mean), ""},
    {"fct_p50", ALB_METRIC_NS, PART(fct.p50), ""},
    {"fct_p95", ALB_METRIC_NS, PART(fct.p95), ""},
    {"fct_p99", ALB_METRIC_NS, PART(fct.p99), ""},
    {"fct_p999", ALB_METRIC_NS, PART(fct.p999), ""},
    {"fct_max", ALB_METRIC_NS, PART(fct.max), ""},
    {"slowdown_mean", ALB_METRIC_NUMBER, PART(slowdown.mean), "completion time by that of an idle network"},
    {"slowdown_p50", ALB_METRIC_NUMBER, PART(slowdown.p50), ""},
    {"slowdown_p95", ALB_METRIC_NUMBER, PART(slowdown.p95), ""},
    {"slowdown_p99", ALB_METRIC_NUMBER, PART(slowdown.p99), ""},
    {"slowdown_p999", ALB_METRIC_NUMBER, PART(slowdown.p999), ""},
    {"slowdown_max", ALB_METRIC_NUMBER, PART(slowdown.max), ""},
    {"packets", ALB_METRIC_NUMBER, NETWORK(packets), "that hosts sent"},
    {"packet_hops", ALB_METRIC_NUMBER, NETWORK(packet_hops), "that left any port"},
    {"retransmitted", ALB_METRIC_NUMBER, NETWORK(retransmitted), "packets sent again (rc: of requests)"},
    {"retransmitted_part", ALB_METRIC_NUMBER, NETWORK(retransmitted_part), "of packets"},
    {"spurious", ALB_METRIC_NUMBER, NETWORK(spurious),
     "packets that came though they had come before (rc: of requests)"},
    {"resent", ALB_METRIC_NUMBER, NETWORK(resent), "parts of messages of partial completion sent again"},
    {"timeouts", ALB_METRIC_NUMBER, NETWORK(timeouts), "of the transport"},
    {"cache_hits", ALB_METRIC_NUMBER, NETWORK(cache_hits),
     "packets whose queue pair a NIC's cache held or was fetching"},
    {"cache_misses", ALB_METRIC_NUMBER, NETWORK(cache_misses), "packets for which a NIC fetched their queue pair"},
    {"dropped", ALB_METRIC_NUMBER, NETWORK(dropped), "for want of buffer"},
    {"lost", ALB_METRIC_NUMBER, NETWORK(lost), "by faults"},
    {"corrupted", ALB_METRIC_NUMBER, NETWORK(corrupted), "by faults"},
    {"trimmed", ALB_METRIC_NUMBER, NETWORK(trimmed), "to headers"},
    {"trimmed_resent", ALB_METRIC_NUMBER, NETWORK(trimmed_resent), "of them sent again since the peer reported them"},
    {"marked", ALB_METRIC_NUMBER, NETWORK(marked), "with congestion experienced"},
    {"pauses", ALB_METRIC_NUMBER, NETWORK(pauses), "of links, by PFC or by a fault"},
    {"paused", ALB_METRIC_NS, NETWORK(paused), "all links together, by PFC, by a fault or for want of credit"},
    {"buffer_peak", ALB_METRIC_BYTES, NETWORK(buffer_peak), "of the fullest switch, without the headroom of PFC"},
    {"queue_peak", ALB_METRIC_BYTES, NETWORK(queue_peak), "of the longest queue"},
    {"busiest", ALB_METRIC_NUMBER, NETWORK(busiest), "part of its rate that the busiest link used"},
    {"utilization", ALB_METRIC_NUMBER, NETWORK(utilization), "the mean of links between switches"},
    {"state_bytes", ALB_METRIC_BYTES, NETWORK(state_bytes), "of an engine"},
    {"host_bytes", ALB_METRIC_BYTES, NETWORK(host_bytes), "of the simulation, by hosts"},
    {"simulated", ALB_METRIC_NS, NETWORK(time), "when the run ended"},
};
const uint32_t alb_metric_count = ALB_COUNT(alb_metrics);

const struct alb_metric *alb_metric_find(const char *name)
{
    for (uint32_t i = 0; i < alb_metric_count; i++)
        if (strcmp(alb_metrics[i].name, name) == 0)
            return &alb_metrics[i];
    return NULL;
}

static const struct alb_summary_part *find_part(const struct alb_summary *summary, const char *name)
{
    for (uint32_t i = 0; i < summary->part_count; i++)
        if (strcmp(summary->parts[i].name, name) == 0)
            return &summary->parts[i];
    return NULL;
}

// A time that no flow has, or an ideal of what is no collective: 0 would look like the best of all.
static bool has_figure(const struct alb_summary_part *of, const struct alb_metric *metric)
{
    const size_t at = metric->offset;
    if (at >= offsetof(struct alb_summary_part, fct) &&
        at < offsetof(struct alb_summary_part, slowdown) + sizeof(struct alb_summary_times))
        return of->done > 0;
    if (at == offsetof(struct alb_summary_part, ideal))
        return of->ideal > 0;
    if (at == offsetof(struct alb_summary_part, over_ideal))
        return of->ideal > 0 && of->time > 0;
    return at != offsetof(struct alb_summary_part, time) || of->time > 0;
}

bool alb_metric_value(const struct alb_summary *summary, const struct alb_metric *metric, const char *part,
                      double *value)
{
    const char *from = (const char *)&summary->network;
    if (metric->is_of_part) {
        const struct alb_summary_part *of = part ? find_part(summary, part) : &summary->all;
        if (!of || !has_figure(of, metric))
            return false;
        from = (const char *)of;
    } else if (part) {
        return false;
    }
    memcpy(value, from + metric->offset, sizeof(*value));
    return true;
}

struct scale {
    double factor;
    const char *unit;
};

static char *format_scaled(const struct scale *scales, double value, char text[ALB_METRIC_TEXT_MAX])
{
    uint32_t i = 0; // the largest scale comes first, the last has factor 1 or less
    while (scales[i + 1].unit && fabs(value) < scales[i].factor)
        i++;
    snprintf(text, ALB_METRIC_TEXT_MAX, "%.4g %s", value / scales[i].factor, scales[i].unit);
    return text;
}

char *alb_metric_format(enum alb_metric_unit unit, double value, char text[ALB_METRIC_TEXT_MAX])
{
    static const struct scale times[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}, {0, NULL}};
    static const struct scale rates[] = {{1e12, "Tb/s"}, {1e9, "Gb/s"}, {1e6, "Mb/s"},
                                         {1e3, "kb/s"},  {1, "b/s"},    {0, NULL}};
    static const struct scale sizes[] = {{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}, {0, NULL}};
    if (isnan(value))
        return strcpy(text, "none");
    switch (unit) {
    case ALB_METRIC_NS:
        return format_scaled(times, value, text);
    case ALB_METRIC_BITS_PER_S:
        return format_scaled(rates, value, text);
    case ALB_METRIC_BYTES:
        return format_scaled(sizes, value, text);
    default:
        snprintf(text, ALB_METRIC_TEXT_MAX, fabs(value) < 1e15 && value == floor(value) ? "%.0f" : "%.4g", value);
        return text;
    }
}

// ---- the whole, for people ------------------------------------------------------------------------------------------

static void print_times(FILE *to, const char *name, const struct alb_summary_times *times, enum alb_metric_unit unit)
{
    const double values[] = {times->min, times->mean, times->p50, times->p95, times->p99, times->p999, times->max};
    char text[ALB_METRIC_TEXT_MAX];
    fprintf(to, "  %-10s", name);
    for (size_t i = 0; i < ALB_COUNT(values); i++)
        fprintf(to, " %10s", alb_metric_format(unit, values[i], text));
    fputc('\n', to);
}

static void print_part(FILE *to, const struct alb_summary_part *part)
{
    char time[ALB_METRIC_TEXT_MAX], goodput[ALB_METRIC_TEXT_MAX], ideal[ALB_METRIC_TEXT_MAX];
    fprintf(to, "%s: %.0f of %.0f messages done, %.0f failed", part->name, part->done, part->flows, part->failed);
    if (part->done > 0)
        fprintf(to, ", in %s, %s", alb_metric_format(ALB_METRIC_NS, part->time, time),
                alb_metric_format(ALB_METRIC_BITS_PER_S, part->goodput, goodput));
    fputc('\n', to);
    if (part->is_collective && part->time > 0)
        fprintf(to, "  collective %.3f times the ideal of %s\n", part->over_ideal,
                alb_metric_format(ALB_METRIC_NS, part->ideal, ideal));
    if (part->done == 0)
        return;
    fprintf(to, "  %-10s %10s %10s %10s %10s %10s %10s %10s\n", "", "min", "mean", "P50", "P95", "P99", "P99.9", "max");
    print_times(to, "fct", &part->fct, ALB_METRIC_NS);
    print_times(to, "slowdown", &part->slowdown, ALB_METRIC_NUMBER);
}

static void print_bins(FILE *to, const struct alb_summary *summary)
{
    char text[ALB_METRIC_TEXT_MAX];
    if (summary->bin_count < 2)
        return;
    fputs("slowdown by size\n", to);
    for (uint32_t i = 0; i < summary->bin_count; i++) {
        const struct alb_summary_bin *bin = &summary->bins[i];
        bool is_last = bin->bytes_max == UINT64_MAX;
        fprintf(to, "  %-5s %-8s %8" PRIu64 " flows, mean %.3g, P50 %.3g, P95 %.3g, P99 %.3g, P99.9 %.3g\n",
                is_last ? "above" : "up to",
                is_last ? "" : alb_metric_format(ALB_METRIC_BYTES, (double)bin->bytes_max, text), bin->flows,
                bin->slowdown.mean, bin->slowdown.p50, bin->slowdown.p95, bin->slowdown.p99, bin->slowdown.p999);
    }
}

void alb_summary_print(const struct alb_summary *summary, FILE *to)
{
    for (uint32_t i = 0; i < summary->part_count; i++)
        print_part(to, &summary->parts[i]);
    if (summary->part_count > 1)
        print_part(to, &summary->all);
    print_bins(to, summary);
    fputs("network\n", to);
    for (uint32_t i = 0; i < alb_metric_count; i++) {
        const struct alb_metric *metric = &alb_metrics[i];
        char text[ALB_METRIC_TEXT_MAX];
        double value;
        if (metric->is_of_part || !alb_metric_value(summary, metric, NULL, &value) || value == 0)
            continue;
        fprintf(to, "  %-18s %12s  %s\n", metric->name, alb_metric_format(metric->unit, value, text), metric->text);
    }
    fprintf(to, "trace %016" PRIx64 "\n", summary->trace_hash);
}
