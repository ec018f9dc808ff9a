// SPDX-License-Identifier: BSD-2-Clause
// The loss policy "sleek", after the loss recovery of the Ultra Ethernet Consortium's reference simulator: the receiver
// reports segments that come out of order; one that so many newer ones have overtaken is lost; at the tail a probe goes
// out, and what its answer does not hold is lost.
#include "engine/csa_loss.h"

static void init(struct alb_csa_loss *loss)
{
    loss->threshold = 5;
}

static bool is_lost(const struct alb_csa_loss *loss, const struct alb_loss_segment *segment,
                    const struct alb_loss_sending *sending)
{
    if (segment->was_resent && segment->age_ns < sending->rtt_ns)
        return false;
    return segment->behind >= loss->threshold || (sending->answers_probe && segment->behind > 0);
}

static alb_time silence_ns(const struct alb_csa_loss *loss, const struct alb_loss_sending *sending)
{
    return sending->rtt_ns + sending->rtt_ns / 2 + sending->margin_ns;
}

const struct alb_csa_loss_ops alb_csa_loss_sleek = {
    .name = "sleek",
    .init = init,
    .is_lost = is_lost,
    .silence_ns = silence_ns,
    .waits_round_trip = true,
    .on_silence = ALB_LOSS_PROBE,
    .takes_early = true,
    .reports_holes = true,
};
