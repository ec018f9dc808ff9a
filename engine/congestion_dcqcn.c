// SPDX-License-Identifier: BSD-2-Clause
// Congestion policy "dcqcn": Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015. A CNP
// cuts the rate by half of alpha, the estimate of how much of the traffic is marked. Then the rate climbs back in
// steps, one each time a timer ends and one each time a number of bytes has left: halfway to the target rate (fast
// recovery), then with the target rate growing slowly (additive), then fast (hyper increase).
//
// No timer runs: what its steps would have done is made up for when the state is used. The names of the paper stand in
// engine/dcqcn.h.
#include "engine/dcqcn.h"

#include "engine/engine.h"
#include "engine/policy.h"

#define ALPHA_ONE (1u << 24)

static const uint64_t burst_bytes_min = 16384;       // however slow: a segment or two may catch up
static const uint64_t idle_ns = 100 * ALB_NS_PER_MS; // a sender idle for so long starts anew

void alb_dcqcn_config_default(struct alb_dcqcn_config *config)
{
    *config = (struct alb_dcqcn_config){
        .rate_max_bytes_per_s = 5000000000,
        .rate_min_bytes_per_s = 1250000,
        .additive_bytes_per_s = 5000000,
        .hyper_bytes_per_s = 50000000,
        .gain_log2 = 8,
        .recovery_steps = 5,
        .counter_bytes = 10000000,
        .increase_ns = 55 * ALB_NS_PER_US,
        .alpha_ns = 55 * ALB_NS_PER_US,
        .cnp_ns = 50 * ALB_NS_PER_US,
        .burst_ns = 100 * ALB_NS_PER_US,
    };
}

bool alb_dcqcn_config_is_valid(const struct alb_dcqcn_config *config)
{
    return config->rate_max_bytes_per_s <= ALB_DCQCN_RATE_MAX_BYTES_PER_S && config->rate_min_bytes_per_s > 0 &&
           config->rate_min_bytes_per_s <= config->rate_max_bytes_per_s &&
           config->additive_bytes_per_s <= config->rate_max_bytes_per_s &&
           config->hyper_bytes_per_s <= config->rate_max_bytes_per_s && config->gain_log2 > 0 &&
           config->gain_log2 <= 16 && config->recovery_steps < UINT16_MAX && config->counter_bytes > 0 &&
           config->increase_ns >= ALB_NS_PER_US && config->alpha_ns >= ALB_NS_PER_US &&
           config->burst_ns <= ALB_DCQCN_BURST_MAX_NS;
}

// ---- notification point ---------------------------------------------------------------------------------------------

bool alb_dcqcn_np_on_mark(struct alb_dcqcn_np *np, const struct alb_dcqcn_config *config, alb_time now)
{
    if (now < np->silent_until)
        return false;
    np->silent_until = now + config->cnp_ns;
    return true;
}

// ---- reaction point: rates ------------------------------------------------------------------------------------------

static void init(struct alb_congestion *congestion, const struct alb_engine_config *config)
{
    *congestion = (struct alb_congestion){.config = config, .window_bytes = config->window_max_bytes};
}

static const struct alb_dcqcn_config *parameters(const struct alb_congestion *congestion)
{
    return &congestion->config->dcqcn;
}

// One step up.
static void climb(struct alb_congestion *congestion)
{
    const struct alb_dcqcn_config *p = parameters(congestion);
    struct alb_dcqcn *d = &congestion->dcqcn;
    uint32_t most = ALB_MAX(d->timer_steps, d->counter_steps), least = ALB_MIN(d->timer_steps, d->counter_steps);
    uint64_t target = d->target_bytes_per_s;
    if (least > p->recovery_steps)
        target += (least - p->recovery_steps) * p->hyper_bytes_per_s;
    else if (most >= p->recovery_steps)
        target += p->additive_bytes_per_s;
    d->target_bytes_per_s = ALB_MIN(target, p->rate_max_bytes_per_s);
    d->rate_bytes_per_s = (d->rate_bytes_per_s + d->target_bytes_per_s + 1) / 2;
}

static void count_step(uint16_t *steps)
{
    *steps = (uint16_t)ALB_MIN(*steps + 1, UINT16_MAX);
}

// ---- reaction point: pacing -----------------------------------------------------------------------------------------

static int64_t credit_bytes_max(const struct alb_congestion *congestion)
{
    uint64_t bytes = parameters(congestion)->burst_ns * congestion->dcqcn.rate_bytes_per_s / ALB_NS_PER_S;
    return (int64_t)ALB_MAX(bytes, burst_bytes_min);
}

// Credit grows with time, at the rate that held meanwhile; what is left of a byte counts next time.
static void earn(struct alb_congestion *congestion, alb_time until)
{
    struct alb_dcqcn *d = &congestion->dcqcn;
    if (until <= d->earned_until)
        return;
    uint64_t longest_ns = (uint64_t)burst_bytes_min * ALB_NS_PER_S / d->rate_bytes_per_s; // for the slowest rates
    uint64_t elapsed_ns = ALB_MIN(until - d->earned_until, ALB_MAX(longest_ns, ALB_DCQCN_BURST_MAX_NS));
    uint64_t bytes = elapsed_ns * d->rate_bytes_per_s / ALB_NS_PER_S;
    int64_t most = credit_bytes_max(congestion);
    if (d->credit_bytes + (int64_t)bytes >= most) {
        d->credit_bytes = most;
        d->earned_until = until;
        return;
    }
    d->credit_bytes += (int64_t)bytes;
    d->earned_until += (bytes * ALB_NS_PER_S + d->rate_bytes_per_s - 1) / d->rate_bytes_per_s;
}

// Makes up for what the two timers would have done until now.
static void advance(struct alb_congestion *congestion, alb_time now)
{
    const struct alb_dcqcn_config *p = parameters(congestion);
    struct alb_dcqcn *d = &congestion->dcqcn;
    if (!d->is_limited)
        return;
    if (now > d->used_at && now - d->used_at > idle_ns) {
        *d = (struct alb_dcqcn){0};
        return;
    }
    d->used_at = now;
    for (;;) {
        alb_time at = ALB_MIN(d->alpha_at, d->increase_at);
        if (at > now)
            break;
        earn(congestion, at);
        if (at == d->alpha_at) {
            d->alpha -= d->alpha >> p->gain_log2;
            d->alpha_at += p->alpha_ns;
        }
        if (at == d->increase_at) {
            count_step(&d->timer_steps);
            climb(congestion);
            d->increase_at += p->increase_ns;
        }
    }
    earn(congestion, now);
}

// ---- reaction point: events -----------------------------------------------------------------------------------------

static void on_sent(struct alb_congestion *congestion, uint32_t bytes, alb_time now)
{
    const struct alb_dcqcn_config *p = parameters(congestion);
    struct alb_dcqcn *d = &congestion->dcqcn;
    advance(congestion, now);
    if (!d->is_limited)
        return;
    d->credit_bytes -= bytes;
    d->counted_bytes += bytes;
    for (; d->counted_bytes >= p->counter_bytes; d->counted_bytes -= p->counter_bytes) {
        count_step(&d->counter_steps);
        climb(congestion);
    }
}

static void on_mark(struct alb_congestion *congestion, uint32_t inflight_bytes, alb_time now)
{
    const struct alb_dcqcn_config *p = parameters(congestion);
    struct alb_dcqcn *d = &congestion->dcqcn;
    advance(congestion, now);
    if (!d->is_limited)
        *d = (struct alb_dcqcn){.is_limited = true,
                                .rate_bytes_per_s = p->rate_max_bytes_per_s,
                                .alpha = ALPHA_ONE,
                                .earned_until = now,
                                .used_at = now};
    else if (now - d->cut_at < p->cnp_ns)
        return; // no honest peer sends more of them
    d->target_bytes_per_s = d->rate_bytes_per_s;
    uint64_t rate = d->rate_bytes_per_s - d->rate_bytes_per_s * d->alpha / (2 * ALPHA_ONE);
    d->rate_bytes_per_s = ALB_MAX(rate, p->rate_min_bytes_per_s);
    d->alpha += (ALPHA_ONE - d->alpha) >> p->gain_log2;
    d->timer_steps = d->counter_steps = 0;
    d->counted_bytes = 0;
    d->cut_at = now;
    d->alpha_at = now + p->alpha_ns;
    d->increase_at = now + p->increase_ns;
}

// DCQCN was made for networks without loss, and says nothing of it. Lost packets do not slow it; silence counts as a
// CNP, as one may be among what was lost.
static void on_loss(struct alb_congestion *congestion, uint32_t inflight_bytes, uint32_t lost_bytes,
                    enum alb_loss_cause cause, alb_time now)
{
    if (cause == ALB_LOSS_TIMEOUT)
        on_mark(congestion, inflight_bytes, now);
}

static alb_time send_at(struct alb_congestion *congestion, alb_time now)
{
    struct alb_dcqcn *d = &congestion->dcqcn;
    advance(congestion, now);
    if (!d->is_limited || d->credit_bytes > 0)
        return now;
    uint64_t wait_ns = ((uint64_t)(1 - d->credit_bytes) * ALB_NS_PER_S) / d->rate_bytes_per_s + 1;
    wait_ns = ALB_MIN(wait_ns, idle_ns / 2);       // who waits is not idle
    return ALB_MIN(now + wait_ns, d->increase_at); // by then the rate may be another
}

static uint64_t rate_bytes_per_s(const struct alb_congestion *congestion)
{
    return congestion->dcqcn.is_limited ? congestion->dcqcn.rate_bytes_per_s : 0;
}

const struct alb_congestion_ops alb_congestion_dcqcn = {
    .name = "dcqcn",
    .needs_feedback = true,
    .wants_cnp = true,
    .init = init,
    .on_sent = on_sent,
    .on_loss = on_loss,
    .on_mark = on_mark,
    .send_at = send_at,
    .rate_bytes_per_s = rate_bytes_per_s,
};
