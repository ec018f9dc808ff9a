// SPDX-License-Identifier: BSD-2-Clause
// How long the device thread sleeps while a program polls. On a virtual processor each nap costs the poller 30 to 50 us
// (docs/LESSONS.md, 45, 150), but what is left to a poller that does not come back waits for the end of the nap. So
// naps double some times, and then last a sixteenth of the time that has been polled for, if the program does nothing
// but poll.
#pragma once

#include "base/types.h"

#define ALB_NAP_DOUBLINGS 2u
#define ALB_NAP_SHARE     16u
#define ALB_NAP_MAX_NS    (2 * ALB_NS_PER_MS)

struct alb_nap {
    alb_time since;     // polled without a break, as far as is known; 0: not polled
    uint32_t doublings; // up to ALB_NAP_DOUBLINGS
};

static inline bool alb_nap_is_on(const struct alb_nap *nap)
{
    return nap->since != 0;
}

// Polling has ended.
void alb_nap_end(struct alb_nap *nap);

// Returns how long after its last poll to look at the program again. Polling ends with takeover_ns without a poll;
// doubled naps take doubled_max_ns at most, and the sixteenth share_max_ns.
alb_time alb_nap_begin(struct alb_nap *nap, alb_time takeover_ns, alb_time doubled_max_ns, alb_time share_max_ns,
                       alb_time now);
