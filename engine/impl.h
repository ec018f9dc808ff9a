// SPDX-License-Identifier: BSD-2-Clause
// The engine's own struct: the tables of its objects and the parts that are one per engine.
#pragma once

#include "base/chacha.h"
#include "base/list.h"
#include "base/map.h"
#include "base/wheel.h"
#include "engine/csa.h"
#include "engine/deadline.h"
#include "engine/delivery.h"
#include "engine/engine.h"
#include "engine/peer.h"
#include "engine/policy.h"
#include "engine/qpn.h"
#include "engine/scheduler.h"
#include "engine/trace.h"

struct alb_cm;

struct alb_pd {
    struct alb_engine *engine;
    uint32_t refs;
};

struct alb_xrcd {
    struct alb_engine *engine;
    uint32_t refs;
    struct alb_list qps; // of type XRC_RECV
};

struct alb_ah {
    struct alb_pd *pd;
    struct alb_av av;
};

struct alb_engine {
    struct alb_engine_config config;
    struct alb_rng rng;
    struct alb_wheel wheel;
    alb_time now;                // the last one given, for calls without a time of their own
    alb_time back_at;            // when its driver came last that had been away: much later than it was asked to
    struct alb_region **regions; // by key index
    uint8_t *region_tags;        // by key index: low byte of the last key that stood there
    uint32_t region_table_size;  // a power of two
    struct alb_qp **qps;         // by QPN index
    struct alb_qpn_rest qpn_rest;
    struct alb_srq **xrc_srqs; // by number's index; NULL while there are none
    uint32_t pd_count, ah_count, cq_count, srq_count, xrcd_count, xrc_srq_count, region_count, qp_count;
    struct alb_scheduler scheduler;
    struct alb_list unsent; // queue pairs of UC and UD whose last packets the driver may still refer to
    struct alb_map *groups; // address -> struct alb_group; NULL while there are none
    struct alb_peers peers;
    struct alb_pacer pacer; // of unreliable traffic
    struct alb_list events;
    struct alb_qp *_Atomic bells; // stack of queue pairs whose bell has rung
    _Atomic uint8_t host_load;    // 0: not told
    const struct alb_loss_ops *loss;
    const struct alb_congestion_ops *congestion;
    const struct alb_path_ops *path;
    struct alb_trace trace;
    struct alb_device_stats *stats;
    struct alb_csa_engine *csa;         // NULL: the transport is another
    struct alb_reflect_engine *reflect; // likewise
    struct alb_cm *cm;                  // NULL: queue pair 1 is not open
};

static inline void *alb_engine_get_memory(struct alb_engine *engine, size_t bytes)
{
    return engine->config.memory.get(engine->config.memory.context, bytes);
}

static inline void alb_engine_put_memory(struct alb_engine *engine, void *memory, size_t bytes)
{
    if (memory)
        engine->config.memory.put(engine->config.memory.context, memory, bytes);
}

static inline void alb_trace_add(struct alb_engine *engine, enum alb_trace_kind kind, uint32_t qpn, uint32_t psn,
                                 uint64_t a, uint64_t b, alb_time now)
{
    if (alb_unlikely(engine->trace.capacity > 0))
        alb_trace_put(&engine->trace, kind, qpn, psn, a, b, now);
}

// Counts for the queue pair and for the device.
static inline void alb_qp_count(struct alb_qp *qp, enum alb_stat stat, uint64_t n)
{
    qp->stats->stats.counter[stat] += n;
    qp->engine->stats->sum.counter[stat] += n;
}

static inline void alb_qp_count_received(struct alb_qp *qp, const struct alb_datagram *datagram)
{
    alb_qp_count(qp, ALB_STAT_rcvd_pkts, 1);
    alb_qp_count(qp, ALB_STAT_rcvd_bytes, datagram->length + ALB_ICRC_BYTES);
}

// Counts what a queue pair has added to a batch since it held that many segments. The device's own sum counts whole
// batches.
static inline void alb_qp_count_sent(struct alb_qp *qp, const struct alb_tx *tx, uint32_t segments_before)
{
    uint64_t bytes = 0;
    for (uint32_t i = segments_before; i < tx->segment_count; i++)
        bytes += tx->segments[i].length;
    qp->stats->stats.counter[ALB_STAT_sent_pkts] += tx->segment_count - segments_before;
    qp->stats->stats.counter[ALB_STAT_sent_bytes] += bytes;
}

// The queue pair with that number, or NULL.
struct alb_qp *alb_engine_find_qp(struct alb_engine *engine, alb_qpn qpn);
