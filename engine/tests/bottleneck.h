// SPDX-License-Identifier: BSD-2-Clause
// Flows that share one queue, in virtual time, for tests of congestion policies: packets of one size wait for the link,
// are marked above a threshold, dropped above a limit, lost by chance, and acknowledged one base round trip after they
// have passed it. Hosts may stall: what comes to the sender meanwhile is taken when the stall ends.
#pragma once

#include "base/prng.h"
#include "base/tests/test.h"
#include "engine/engine.h"
#include "engine/policy.h"

enum {
    BOTTLENECK_FLOWS = 32,
    BOTTLENECK_PACKETS = 1 << 14,
};

struct bottleneck_flow {
    const struct alb_congestion_ops *ops;
    struct alb_congestion congestion;
    struct alb_dcqcn_np np;
    alb_time start, stop;
    uint32_t inflight_bytes, inflight_peak_bytes;
    uint64_t came_bytes; // since bottleneck_measure
    uint64_t lost_bytes;
    bool limited;
};

struct bottleneck_packet {
    uint8_t flow;
    bool is_marked, is_lost, is_cnp;
    alb_time sent_at;
    alb_time at; // when the sender hears of it
};

struct bottleneck {
    struct alb_engine_config engine;
    uint64_t bytes_per_s;
    uint32_t packet_bytes;
    alb_time rtt_ns;
    uint32_t mark_above_bytes; // 0: none
    uint32_t queue_bytes_max;
    uint32_t lost_per_billion;
    alb_time stall_each_ns, stall_ns;

    alb_time now;
    uint64_t step;
    struct alb_prng prng;
    struct bottleneck_flow flows[BOTTLENECK_FLOWS];
    uint32_t flow_count;
    uint32_t queued_bytes, queue_peak_bytes;
    // Both in the order of the link: what waits for it, and what the senders will hear of.
    struct bottleneck_packet queue[BOTTLENECK_PACKETS], answers[BOTTLENECK_PACKETS];
    uint32_t queue_head, queue_tail, answers_head, answers_tail;
};

// 10 Gb/s, packets of 4096 bytes, 30 us, a queue of 1 MB without marks. The caller changes what it likes, and frees it.
struct bottleneck *bottleneck_new(void);
struct bottleneck_flow *bottleneck_add(struct bottleneck *b, const struct alb_congestion_ops *ops, alb_time start);
// Runs for that long.
void bottleneck_run(struct bottleneck *b, alb_time ns);
// Counts from zero.
void bottleneck_measure(struct bottleneck *b);
// What came since then, in percent of what the link could have carried in so long.
uint32_t bottleneck_percent(const struct bottleneck *b, alb_time ns);
// Smallest to largest share of the flows, in percent.
uint32_t bottleneck_fairness(const struct bottleneck *b);
