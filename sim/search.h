// SPDX-License-Identifier: BSD-2-Clause
// The search for a broken promise: from one seed, two hosts with limits, queue pairs, memory, work, errors and a
// network drawn at random, every completion and every byte checked against the model (sim/model.h). Then the network
// becomes good, and everything must end. The same seed does the same again.
#pragma once

#include "base/types.h"

struct alb_search_result {
    char failure[320]; // empty: every promise was kept
    uint64_t trace_hash;
    uint64_t requests, receives, packets, lost, retransmitted;
    uint64_t failed_qps, phases;
    uint64_t restarts, partitions;
    alb_time virtual_ns;
};

struct alb_search_options {
    const char *transport; // "rc" (NULL too) or "csa"
    const char *trace;     // the file that the engines' trace is written to as JSON lines, or NULL
    const char *capture;   // likewise what the first host sends and receives, as pcap
};

// False if a promise was broken.
bool alb_search_run(uint64_t seed, const struct alb_search_options *options, struct alb_search_result *result);
