// SPDX-License-Identifier: BSD-2-Clause
// Congestion policy "aimd": what TCP did before it grew clever (RFC 5681). It doubles a round until the first loss,
// then grows by a segment a round, and halves when the network says that it was too much.
#include "engine/engine.h"
#include "engine/policy.h"
#include "wire/roce.h"

enum {
    GROWTH_BYTES = ALB_ROCE_PAYLOAD_MAX, // a round, above the threshold
};

static void set_window(struct alb_congestion *congestion, uint64_t bytes)
{
    uint64_t bounded = ALB_MIN(bytes, (uint64_t)congestion->config->window_max_bytes);
    congestion->window_bytes = (uint32_t)ALB_MAX(bounded, (uint64_t)congestion->config->window_min_bytes);
}

static void init(struct alb_congestion *congestion, const struct alb_engine_config *config)
{
    *congestion = (struct alb_congestion){.config = config, .aimd.threshold_bytes = config->window_max_bytes};
    set_window(congestion, config->window_start_bytes);
}

static void on_ack(struct alb_congestion *congestion, const struct alb_ack *ack, alb_time now)
{
    uint32_t bytes = ack->bytes;
    congestion->aimd.hold_bytes -= ALB_MIN(bytes, congestion->aimd.hold_bytes);
    if (!ack->limited)
        return;
    if (congestion->window_bytes < congestion->aimd.threshold_bytes) {
        set_window(congestion, (uint64_t)congestion->window_bytes + bytes);
        return;
    }
    uint64_t credit = (uint64_t)congestion->aimd.credit_bytes + bytes;
    congestion->aimd.credit_bytes = (uint32_t)(credit % congestion->window_bytes);
    if (credit >= congestion->window_bytes)
        set_window(congestion, congestion->window_bytes + credit / congestion->window_bytes * GROWTH_BYTES);
}

// Halves, unless it already did for what was in flight then: losses of one round are one event.
static void shrink(struct alb_congestion *congestion, uint32_t inflight_bytes, alb_time now)
{
    if (congestion->aimd.hold_bytes > 0)
        return;
    set_window(congestion, congestion->window_bytes / 2);
    congestion->aimd.threshold_bytes = congestion->window_bytes;
    congestion->aimd.credit_bytes = 0;
    congestion->aimd.hold_bytes = inflight_bytes;
}

static void on_loss(struct alb_congestion *congestion, uint32_t inflight_bytes, uint32_t lost_bytes,
                    enum alb_loss_cause cause, alb_time now)
{
    switch (cause) {
    case ALB_LOSS_NAK:
    case ALB_LOSS_GAP:
        shrink(congestion, inflight_bytes, now);
        break;
    case ALB_LOSS_TIMEOUT: // not even the answers came: begin again from the bottom
        congestion->aimd.threshold_bytes = ALB_MAX(congestion->window_bytes / 2, congestion->config->window_min_bytes);
        set_window(congestion, 0);
        congestion->aimd.credit_bytes = 0;
        congestion->aimd.hold_bytes = 0;
        break;
    case ALB_LOSS_RNR:     // the peer's program was slow, not the network
    case ALB_LOSS_TRIMMED: // counts as a mark
        break;
    }
}

const struct alb_congestion_ops alb_congestion_aimd = {
    .name = "aimd",
    .init = init,
    .on_ack = on_ack,
    .on_loss = on_loss,
    .on_mark = shrink,
};
