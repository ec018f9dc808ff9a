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
    bool is_durable;       // transactions: of durable regions, which their targets' restarts leave
    bool is_short;       // one phase, or two, of few steps and small messages: the same promises at a fifth of the cost
    const char *trace;   // the file that the engines' trace is written to as JSON lines, or NULL
    const char *capture; // likewise what the first host sends and receives, as pcap
};

struct alb_search_txn_result {
    char failure[320];
    uint64_t trace_hash;
    uint64_t transactions, committed, aborted, corrupt, doubts, unknown; // as reported
    uint64_t questions, plain, reads, restarts, breaks, packets, lost;
    uint64_t renewals;                                                 // of regions
    uint64_t journaled, journal_errors, redone, bound_again, unplaced; // of durable regions
    uint64_t gone_back;                                                // words that a recovery brought back older
    alb_time virtual_ns;
};

// False if a promise was broken. Of the second one those that reflection makes (sim/model_txn.h); it speaks CSA.
bool alb_search_txn_run(uint64_t seed, const struct alb_search_options *options, struct alb_search_txn_result *result);
bool alb_search_run(uint64_t seed, const struct alb_search_options *options, struct alb_search_result *result);
