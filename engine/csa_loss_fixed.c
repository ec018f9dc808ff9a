// SPDX-License-Identifier: BSD-2-Clause
// The loss policy "fixed": one interval for everything, as UD-based transports had it before intervals adapted. The
// receiver reports what it holds at that interval while it misses something; what left before and is not held is lost;
// silence is acted upon after it.
#include "engine/csa_loss.h"

static void init(struct alb_csa_loss *loss)
{
    loss->interval_ns = 200 * ALB_NS_PER_US;
}

static bool is_lost(const struct alb_csa_loss *loss, const struct alb_loss_segment *segment,
                    const struct alb_loss_sending *sending)
{
    return segment->age_ns >= loss->interval_ns;
}

static alb_time silence_ns(const struct alb_csa_loss *loss, const struct alb_loss_sending *sending)
{
    return loss->interval_ns;
}

const struct alb_csa_loss_ops alb_csa_loss_fixed = {
    .name = "fixed",
    .init = init,
    .is_lost = is_lost,
    .silence_ns = silence_ns,
    .on_silence = ALB_LOSS_RESEND_ALL,
    .takes_early = true,
    .watches_tail = true,
};
