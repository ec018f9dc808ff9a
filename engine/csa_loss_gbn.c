// SPDX-License-Identifier: BSD-2-Clause
// The loss policy "go-back-n", as RoCE NICs have it (InfiniBand specification, 9.7.5.2.8): the receiver takes segments
// in order only and says once that it was given another; the sender begins again at the first that is not acknowledged.
// timeout: 0 is three round trips, as a transport that measures them would have it; a NIC's is fixed.
#include "engine/csa_loss.h"

enum {
    ROUND_TRIPS = 3,
};

// What went again within the last round trip is answered later.
static bool is_lost(const struct alb_csa_loss *loss, const struct alb_loss_segment *segment,
                    const struct alb_loss_sending *sending)
{
    return sending->is_nak && (!segment->was_resent || segment->age_ns >= sending->rtt_ns);
}

static alb_time silence_ns(const struct alb_csa_loss *loss, const struct alb_loss_sending *sending)
{
    return loss->timeout_ns ? loss->timeout_ns : ROUND_TRIPS * sending->rtt_ns + sending->margin_ns;
}

const struct alb_csa_loss_ops alb_csa_loss_gbn = {
    .name = "go-back-n",
    .is_lost = is_lost,
    .silence_ns = silence_ns,
    .on_silence = ALB_LOSS_RESEND_ALL,
    .goes_back = true,
};
