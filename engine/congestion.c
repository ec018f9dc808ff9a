// SPDX-License-Identifier: BSD-2-Clause
// Congestion policies. "window" is what TCP did before it grew clever (RFC 5681): double a round until the first loss,
// then grow by a segment a round, halve when the network says that it was too much. "fixed" holds the largest window
// whatever happens. "none" knows no bound.
#include "engine/engine.h"
#include "engine/policy.h"
#include "wire/roce.h"

enum {
    GROWTH_BYTES = ALB_ROCE_PAYLOAD_MAX, // a round, above the threshold
};

static void set_window(struct alb_congestion *congestion, uint64_t bytes)
{
    uint64_t bounded = ALB_MIN(bytes, (uint64_t)congestion->window_max_bytes);
    congestion->window_bytes = (uint32_t)ALB_MAX(bounded, (uint64_t)congestion->window_min_bytes);
}

static void window_init(struct alb_congestion *congestion, const struct alb_engine_config *config)
{
    *congestion = (struct alb_congestion){
        .window_min_bytes = config->window_min_bytes,
        .window_max_bytes = config->window_max_bytes,
        .threshold_bytes = config->window_max_bytes,
    };
    set_window(congestion, config->window_start_bytes);
}

static void window_on_ack(struct alb_congestion *congestion, uint32_t bytes, bool limited)
{
    congestion->hold_bytes -= ALB_MIN(bytes, congestion->hold_bytes);
    if (!limited)
        return;
    if (congestion->window_bytes < congestion->threshold_bytes) {
        set_window(congestion, (uint64_t)congestion->window_bytes + bytes);
        return;
    }
    uint64_t credit = (uint64_t)congestion->credit_bytes + bytes;
    congestion->credit_bytes = (uint32_t)(credit % congestion->window_bytes);
    if (credit >= congestion->window_bytes)
        set_window(congestion, congestion->window_bytes + credit / congestion->window_bytes * GROWTH_BYTES);
}

// Halves, unless it already did for what was in flight then: losses of one round are one event.
static void window_shrink(struct alb_congestion *congestion, uint32_t inflight_bytes)
{
    if (congestion->hold_bytes > 0)
        return;
    set_window(congestion, congestion->window_bytes / 2);
    congestion->threshold_bytes = congestion->window_bytes;
    congestion->credit_bytes = 0;
    congestion->hold_bytes = inflight_bytes;
}

static void window_on_loss(struct alb_congestion *congestion, uint32_t inflight_bytes, enum alb_loss_cause cause)
{
    switch (cause) {
    case ALB_LOSS_NAK:
    case ALB_LOSS_GAP:
        window_shrink(congestion, inflight_bytes);
        break;
    case ALB_LOSS_TIMEOUT: // not even the answers came: begin again from the bottom
        congestion->threshold_bytes = ALB_MAX(congestion->window_bytes / 2, congestion->window_min_bytes);
        set_window(congestion, 0);
        congestion->credit_bytes = 0;
        congestion->hold_bytes = 0;
        break;
    case ALB_LOSS_RNR: // the peer's program was slow, not the network
        break;
    }
}

static void fixed_init(struct alb_congestion *congestion, const struct alb_engine_config *config)
{
    *congestion = (struct alb_congestion){.window_bytes = config->window_max_bytes};
}

static void none_init(struct alb_congestion *congestion, const struct alb_engine_config *config)
{
    *congestion = (struct alb_congestion){.window_bytes = UINT32_MAX};
}

static void ignore_ack(struct alb_congestion *congestion, uint32_t bytes, bool limited)
{
}

static void ignore_loss(struct alb_congestion *congestion, uint32_t inflight_bytes, enum alb_loss_cause cause)
{
}

static void ignore_mark(struct alb_congestion *congestion, uint32_t inflight_bytes)
{
}

const struct alb_congestion_ops alb_congestion_window = {
    .name = "window",
    .init = window_init,
    .on_ack = window_on_ack,
    .on_loss = window_on_loss,
    .on_mark = window_shrink,
};

const struct alb_congestion_ops alb_congestion_fixed = {
    .name = "fixed",
    .init = fixed_init,
    .on_ack = ignore_ack,
    .on_loss = ignore_loss,
    .on_mark = ignore_mark,
};

const struct alb_congestion_ops alb_congestion_none = {
    .name = "none",
    .init = none_init,
    .on_ack = ignore_ack,
    .on_loss = ignore_loss,
    .on_mark = ignore_mark,
};
