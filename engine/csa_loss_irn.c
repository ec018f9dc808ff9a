// SPDX-License-Identifier: BSD-2-Clause
// The loss policy "irn" (R. Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018): selective repeat. The
// receiver reports each segment that comes out of order; the sender takes what a newer one (or so many of
// them) has overtaken for lost, a retransmission not before a timeout. Two timeouts: low when few segments are in
// flight, high else.
#include "engine/csa_loss.h"

static void init(struct alb_csa_loss *loss)
{
    loss->low_ns = 100 * ALB_NS_PER_US; // the paper's, section 4.1
    loss->high_ns = 320 * ALB_NS_PER_US;
    loss->few = 3;
    loss->threshold = 1; // more is for networks that reorder
}

static bool is_lost(const struct alb_csa_loss *loss, const struct alb_loss_segment *segment,
                    const struct alb_loss_sending *sending)
{
    return segment->behind >= loss->threshold && !segment->was_resent;
}

static alb_time silence_ns(const struct alb_csa_loss *loss, const struct alb_loss_sending *sending)
{
    return sending->flying <= loss->few ? loss->low_ns : loss->high_ns;
}

const struct alb_csa_loss_ops alb_csa_loss_irn = {
    .name = "irn",
    .init = init,
    .is_lost = is_lost,
    .silence_ns = silence_ns,
    .on_silence = ALB_LOSS_RESEND_ALL,
    .takes_early = true,
    .reports_holes = true,
};
