// SPDX-License-Identifier: BSD-2-Clause
// When an operation with a number has reached each of its stages. What the target reports is in its clock, and is
// turned into ours.
#include "engine/impl.h"

#define DRIFT 2000 // clocks run apart by one part of so many at most: as far as adjtimex(2) lets one be slewed

static bool is_known(const struct alb_reflect_clock *clock)
{
    return clock->span_ns != UINT64_MAX;
}

static bool is_later(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) > 0;
}

// What was known a while ago is less certain now.
static void grow_old(struct alb_reflect_clock *clock, alb_time now)
{
    uint64_t drift_ns = (now - clock->at) / DRIFT;
    if (!is_known(clock) || drift_ns == 0)
        return;
    clock->least -= drift_ns;
    clock->span_ns += 2 * drift_ns;
    clock->at = now;
}

// How far the target's clock is ahead, by what must have been before what: it wrote the verdict before we read it, held
// the bytes before we were told so, and not before the last of them had left. (As by Cristian and NTP, but nothing is
// taken for granted of how long one way takes.) False: what was observed does not bound it.
static bool observe(struct alb_reflect_clock *clock, const struct alb_stages *stages,
                    const struct alb_csa_verdict *verdict, alb_time now)
{
    if (!verdict->placed_at || stages->transmitted == ALB_TIME_NEVER)
        return false;
    uint64_t least = verdict->now - now, least_by_placed = verdict->placed_at - stages->delivered;
    if (is_later(least_by_placed, least))
        least = least_by_placed;
    uint64_t most = verdict->placed_at - stages->transmitted;
    *clock = (struct alb_reflect_clock){.least = least, .span_ns = most - least, .at = now};
    return !is_later(least, most); // else the target contradicts itself
}

// What holds by all that was observed; by the newest alone, if a clock was set or stood still meanwhile.
static void narrow(struct alb_reflect_clock *clock, const struct alb_reflect_clock *seen)
{
    uint64_t least = is_later(seen->least, clock->least) ? seen->least : clock->least;
    uint64_t most = clock->least + clock->span_ns, seen_most = seen->least + seen->span_ns;
    most = is_later(most, seen_most) ? seen_most : most;
    if (!is_known(clock) || is_later(least, most)) {
        *clock = *seen;
        return;
    }
    clock->least = least;
    clock->span_ns = most - least;
}

// Two engines of one host read one clock.
static void read_clock(struct alb_reflect_out *out, const struct alb_stages *stages,
                       const struct alb_csa_verdict *verdict, alb_time now)
{
    struct alb_reflect_clock seen;
    if (out->csa->qp->attr.av.same_host) {
        out->clock = (struct alb_reflect_clock){.at = now};
        return;
    }
    grow_old(&out->clock, now);
    if (observe(&seen, stages, verdict, now))
        narrow(&out->clock, &seen);
}

// Not before the stage before it, and not after what it was before: what is otherwise is the clocks' error.
static alb_time to_our_clock(const struct alb_reflect_out *out, uint64_t at, alb_time before, alb_time latest)
{
    alb_time ours = at - (out->clock.least + out->clock.span_ns / 2);
    if (at == 0 || !is_known(&out->clock))
        return ALB_TIME_NEVER;
    if (is_later(ours, latest))
        return latest;
    return before != ALB_TIME_NEVER && is_later(before, ours) ? ALB_MIN(before, latest) : ours;
}

void alb_txn_out_note_stages(struct alb_txn_out *txn, const struct alb_csa_verdict *verdict, alb_time now)
{
    struct alb_reflect_out *out = txn->out;
    struct alb_stages *stages = &txn->stages;
    if (stages->delivered == ALB_TIME_NEVER)
        stages->delivered = now;
    read_clock(out, stages, verdict, now);
    alb_time agreed_at =
        verdict->visible_at && verdict->decided_at ? ALB_MAX(verdict->visible_at, verdict->decided_at) : 0;
    stages->remote_placed = to_our_clock(out, verdict->placed_at, stages->transmitted, stages->delivered);
    // Nothing is exposed before COMMIT has come, which leaves behind the first verdict.
    alb_time before = txn->has_committed ? stages->delivered : stages->remote_placed;
    stages->visible = to_our_clock(out, verdict->visible_at, before, now);
    stages->agreed = to_our_clock(out, agreed_at, stages->visible, now);
    stages->clock_error_ns = is_known(&out->clock) ? (out->clock.span_ns + 1) / 2 : UINT64_MAX;
}

void alb_txn_out_count_gaps(struct alb_txn_out *txn)
{
    const struct alb_stages *stages = &txn->stages;
    const alb_time at[ALB_STAGE_GAPS + 1] = {stages->submitted,     stages->placed,    stages->transmitted,
                                             stages->remote_placed, stages->delivered, stages->visible,
                                             stages->agreed};
    struct alb_device_stats *stats = txn->out->csa->qp->engine->stats;
    for (uint32_t i = 0; i < ALB_STAGE_GAPS; i++) {
        if (at[i] == ALB_TIME_NEVER || at[i + 1] == ALB_TIME_NEVER || txn->gaps_counted >> i & 1)
            continue;
        txn->gaps_counted |= (uint8_t)(1u << i);
        uint64_t gap_ns = at[i + 1] > at[i] ? at[i + 1] - at[i] : 0; // another clock may be off
        stats->stage_gaps[i][gap_ns ? 63 - __builtin_clzll(gap_ns) : 0]++;
    }
}
