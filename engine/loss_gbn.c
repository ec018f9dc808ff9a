// SPDX-License-Identifier: BSD-2-Clause
// Go-back-N, the loss policy of the InfiniBand specification: the receiver takes segments in order only and reports a
// gap once (9.7.5.2.8), the sender starts again at the oldest one that is not acknowledged.
#include "engine/policy.h"

static enum alb_loss_verdict on_segment(struct alb_loss_receiver *receiver, int32_t distance)
{
    if (distance < 0)
        return ALB_LOSS_DUPLICATE;
    if (distance == 0) {
        receiver->is_reported = false;
        return ALB_LOSS_ACCEPT;
    }
    if (receiver->is_reported)
        return ALB_LOSS_DROP;
    receiver->is_reported = true;
    return ALB_LOSS_REPORT;
}

// Behind one missing answer come many that arrive too early, and each shows the same gap: only the first is acted on. A
// timeout starts afresh, since what was sent again is then lost too.
static int32_t on_loss(struct alb_loss_sender *sender, enum alb_loss_cause cause)
{
    if (cause == ALB_LOSS_GAP && sender->is_recovering)
        return -1;
    sender->is_recovering = cause == ALB_LOSS_GAP || cause == ALB_LOSS_NAK;
    return 0;
}

static void on_progress(struct alb_loss_sender *sender)
{
    sender->is_recovering = false;
}

const struct alb_loss_ops alb_loss_go_back_n = {
    .name = "go-back-n",
    .on_segment = on_segment,
    .on_loss = on_loss,
    .on_progress = on_progress,
};
