// SPDX-License-Identifier: BSD-2-Clause
// When an operation with a number has reached each of its stages. What the target reports is in its clock, and is
// turned into ours.
#include "engine/impl.h"

// By the fastest round trip so far, the target's clock read in its middle: off by no more than half of it. Two engines
// of one host read one clock.
static void read_clock(struct alb_reflect_out *out, const struct alb_csa_verdict *verdict, alb_time now)
{
    const struct alb_csa *csa = out->csa;
    if (csa->qp->attr.av.same_host) {
        out->clock_offset_ns = 0;
        out->clock_error_ns = 0;
        return;
    }
    const struct alb_assoc_live *live = csa->assoc->live;
    uint64_t error_ns = live && live->rtt_min_ns ? live->rtt_min_ns / 2 : alb_assoc_rtt_ns(csa->assoc) / 2;
    if (error_ns > out->clock_error_ns)
        return;
    out->clock_error_ns = error_ns;
    out->clock_offset_ns = verdict->now - (now - error_ns);
}

// Not before the stage before it, and not after we have heard of it: what is otherwise is the clocks' error.
static alb_time to_our_clock(const struct alb_reflect_out *out, uint64_t at, alb_time before, alb_time now)
{
    alb_time ours = at - out->clock_offset_ns;
    if (at == 0)
        return ALB_TIME_NEVER;
    if ((int64_t)(ours - now) > 0)
        return now;
    return before != ALB_TIME_NEVER && (int64_t)(ours - before) < 0 ? ALB_MIN(before, now) : ours;
}

void alb_txn_out_note_stages(struct alb_txn_out *txn, const struct alb_csa_verdict *verdict, alb_time now)
{
    struct alb_reflect_out *out = txn->out;
    read_clock(out, verdict, now);
    struct alb_stages *stages = &txn->stages;
    if (stages->delivered == ALB_TIME_NEVER)
        stages->delivered = now;
    alb_time agreed_at =
        verdict->visible_at && verdict->decided_at ? ALB_MAX(verdict->visible_at, verdict->decided_at) : 0;
    stages->remote_placed = to_our_clock(out, verdict->placed_at, stages->transmitted, now);
    stages->visible = to_our_clock(out, verdict->visible_at, stages->remote_placed, now);
    stages->agreed = to_our_clock(out, agreed_at, stages->visible, now);
    stages->clock_error_ns = out->clock_error_ns;
}

void alb_txn_out_count_gaps(const struct alb_txn_out *txn)
{
    const struct alb_stages *stages = &txn->stages;
    const alb_time at[ALB_STAGE_GAPS + 1] = {stages->submitted,     stages->placed,    stages->transmitted,
                                             stages->remote_placed, stages->delivered, stages->visible,
                                             stages->agreed};
    struct alb_device_stats *stats = txn->out->csa->qp->engine->stats;
    for (uint32_t i = 0; i < ALB_STAGE_GAPS; i++) {
        if (at[i] == ALB_TIME_NEVER || at[i + 1] == ALB_TIME_NEVER)
            continue;
        uint64_t gap_ns = at[i + 1] > at[i] ? at[i + 1] - at[i] : 0; // another clock may be off
        stats->stage_gaps[i][gap_ns ? 63 - __builtin_clzll(gap_ns) : 0]++;
    }
}
