// SPDX-License-Identifier: BSD-2-Clause
// What a run comes to: times of flows and collectives with their percentiles, against the ideal; what the network and
// the engines counted. Each figure has a name, by which expectations (sim/expect.h) and comparisons ask for it.
#pragma once

#include "sim/run.h"

enum {
    ALB_SUMMARY_BINS = 8, // of sizes
};

// Of some times: nanoseconds, or multiples of the ideal.
struct alb_summary_times {
    double min, mean, p50, p95, p99, p999, max;
};

// A work, or all of them.
struct alb_summary_part {
    char name[64];
    bool is_collective;
    double flows, done, failed;        // messages; lost ones of UC count as failed
    double bytes;                      // of those that are done
    double time;                       // ns from the first beginning to the last end
    double ideal, over_ideal;          // a collective's shortest time in ns, and how many times that it took
    double goodput;                    // bits per second: bytes over time
    struct alb_summary_times fct;      // flow completion time
    struct alb_summary_times slowdown; // fct over that of an idle network
};

// Slowdown of flows of up to so many bytes, and more than the bin before.
struct alb_summary_bin {
    uint64_t bytes_max;
    uint64_t flows;
    struct alb_summary_times slowdown;
};

struct alb_summary_network {
    double time;                                      // simulated, ns
    double packets, packet_hops;                      // sent by hosts; that left any port
    double retransmitted, spurious;                   // packets sent again; that came though they had come before
    double trimmed_resent;                            // packets that were trimmed and reported, and so went again
    double resent;                                    // parts of messages of partial completion, by the program
    double timeouts;                                  // of the transport
    double cache_hits, cache_misses;                  // packets, in RNICs' caches of queue pairs
    double dropped, lost, trimmed, marked, corrupted; // for want of buffer, by fault, ...
    double pauses, paused;                            // times, and ns of all links together
    double buffer_peak, queue_peak; // bytes: of the fullest switch without headroom, of the longest queue
    double busiest, utilization;    // part of its rate that the busiest link used, and the mean of tier 1 and up
    double state_bytes, host_bytes; // of an engine, mean at the end; the whole simulation by hosts
    double expectations_refused;    // announcements that the transport did not take
    double retransmitted_part;      // of packets
};

struct alb_summary {
    struct alb_summary_part all;
    struct alb_summary_part *parts; // by work
    uint32_t part_count;
    struct alb_summary_bin bins[ALB_SUMMARY_BINS];
    uint32_t bin_count;
    struct alb_summary_network network;
    uint64_t trace_hash;
    double events;
};

// The part of its rate that a link used in a run. What leaves is counted as it begins to, so that a run that is cut
// would have a little more than there is.
double alb_summary_link_used(const struct alb_run *run, uint32_t link);

// The run is not needed any more afterwards.
void alb_summary_make(struct alb_summary *summary, const struct alb_run *run);
void alb_summary_fini(struct alb_summary *summary);

enum alb_metric_unit {
    ALB_METRIC_NUMBER,
    ALB_METRIC_NS,
    ALB_METRIC_BITS_PER_S,
    ALB_METRIC_BYTES,
};

struct alb_metric {
    const char *name;
    enum alb_metric_unit unit;
    bool is_of_part;
    size_t offset; // in struct alb_summary_part or struct alb_summary_network; a double
    const char *text;
};

extern const struct alb_metric alb_metrics[];
extern const uint32_t alb_metric_count;

const struct alb_metric *alb_metric_find(const char *name); // NULL: no such one
// Of the part with that name (NULL: of all). False: no such part, a time of messages of which none is done, or an ideal
// of what is no collective.
bool alb_metric_value(const struct alb_summary *summary, const struct alb_metric *metric, const char *part,
                      double *value);
// "195.3 us", "92.1 Gb/s", "1.5 MiB"; "none" for what is no number.
#define ALB_METRIC_TEXT_MAX 40
char *alb_metric_format(enum alb_metric_unit unit, double value, char text[ALB_METRIC_TEXT_MAX]);
void alb_summary_print(const struct alb_summary *summary, FILE *to);
