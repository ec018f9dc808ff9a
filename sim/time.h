// SPDX-License-Identifier: BSD-2-Clause
// Virtual time. The network counts picoseconds (one byte at 400 Gb/s takes 20 of them); engines count nanoseconds, as
// they do in a device.
#pragma once

#include "base/types.h"

// Picoseconds since the start of the simulation: 213 days of them.
typedef uint64_t alb_sim_time;

#define ALB_SIM_NEVER UINT64_MAX
// What would come about then or later never does, so that sums of moments and spans stay times: 160 days.
#define ALB_SIM_END (ALB_SIM_NEVER / 4 * 3)

#define ALB_SIM_NS(n) ((alb_sim_time)(n)*1000)
#define ALB_SIM_US(n) ((alb_sim_time)(n)*1000000)
#define ALB_SIM_MS(n) ((alb_sim_time)(n)*1000000000)
#define ALB_SIM_S(n)  ((alb_sim_time)(n)*1000000000000)

// What an engine's clock shows at that moment.
static inline alb_time alb_sim_to_ns(alb_sim_time at)
{
    return at / 1000;
}

// A moment or a span that was worked out: the end is all that lies beyond it.
static inline alb_sim_time alb_sim_until_end(unsigned __int128 time)
{
    return time < ALB_SIM_END ? (alb_sim_time)time : ALB_SIM_END;
}

// When to schedule what is due at that moment.
static inline alb_sim_time alb_sim_before_end(alb_sim_time at)
{
    return at < ALB_SIM_END ? at : ALB_SIM_NEVER;
}

static inline alb_sim_time alb_sim_from_ns(alb_time ns)
{
    return ns >= ALB_SIM_NEVER / 1000 ? ALB_SIM_NEVER : ns * 1000;
}
