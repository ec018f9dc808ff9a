// SPDX-License-Identifier: BSD-2-Clause
// How a thread that polls shares its core: after a few polls in a row that found nothing it yields. That is what lets
// 64 pollers on two cores get on, as what one waits for is often another one's turn. But a thread that computes keeps
// the core to the end of its turn, and who has yielded pays with a turn of his own (LESSONS 147).
#pragma once

#include "base/types.h"

#define ALB_SHARE_POLLS_MIN 4u
#define ALB_SHARE_POLLS_MAX 64u

// A yield to nobody takes 1.2 us where system calls are slow; to a thread that only yields back, 9.
#define ALB_SHARE_CALL_MAX_NS (3 * ALB_NS_PER_US / 2)

struct alb_share {
    uint32_t empty_polls;    // in a row
    uint32_t polls_to_yield; // so many of them
    alb_time keeps_until;    // not before
    alb_time call_ns;        // of the shortest yield so far
};

#define ALB_SHARE_INIT                                                          \
    {                                                                           \
        .polls_to_yield = ALB_SHARE_POLLS_MIN, .call_ns = ALB_SHARE_CALL_MAX_NS \
    }

// A poll found something.
static inline void alb_share_found(struct alb_share *share)
{
    share->empty_polls = 0;
}

// A poll found nothing. True: it is time to look at the clock, and then to yield if alb_share_yields.
static inline bool alb_share_found_none(struct alb_share *share)
{
    if (++share->empty_polls < share->polls_to_yield)
        return false;
    share->empty_polls = 0;
    return true;
}

static inline bool alb_share_yields(const struct alb_share *share, alb_time now)
{
    return now >= share->keeps_until;
}

// The core was yielded from before to after. load: alb_engine_host_load then. True if another thread had the core.
bool alb_share_yielded(struct alb_share *share, alb_time before, alb_time after, uint32_t load);
