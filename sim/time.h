// SPDX-License-Identifier: BSD-2-Clause
// Virtual time. The network counts picoseconds (one byte at 400 Gb/s takes 20 of them); engines count nanoseconds, as
// they do in a device.
#pragma once

#include "base/types.h"

// Picoseconds since the start of the simulation: 213 days of them.
typedef uint64_t alb_sim_time;

#define ALB_SIM_NEVER UINT64_MAX

#define ALB_SIM_NS(n) ((alb_sim_time)(n)*1000)
#define ALB_SIM_US(n) ((alb_sim_time)(n)*1000000)
#define ALB_SIM_MS(n) ((alb_sim_time)(n)*1000000000)
#define ALB_SIM_S(n)  ((alb_sim_time)(n)*1000000000000)

// What an engine's clock shows at that moment.
static inline alb_time alb_sim_to_ns(alb_sim_time at)
{
    return at / 1000;
}

static inline alb_sim_time alb_sim_from_ns(alb_time ns)
{
    return ns >= ALB_SIM_NEVER / 1000 ? ALB_SIM_NEVER : ns * 1000;
}
