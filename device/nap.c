// SPDX-License-Identifier: BSD-2-Clause
#include "device/nap.h"

void alb_nap_end(struct alb_nap *nap)
{
    *nap = (struct alb_nap){0};
}

alb_time alb_nap_begin(struct alb_nap *nap, alb_time takeover_ns, alb_time doubled_max_ns, alb_time share_max_ns,
                       alb_time now)
{
    if (!alb_nap_is_on(nap))
        nap->since = now;
    alb_time doubled_ns = ALB_MIN(takeover_ns << nap->doublings, doubled_max_ns);
    alb_time share_ns = ALB_MIN((now - nap->since) / ALB_NAP_SHARE, share_max_ns);
    nap->doublings += nap->doublings < ALB_NAP_DOUBLINGS;
    return ALB_MAX(doubled_ns, share_ns);
}
