// SPDX-License-Identifier: BSD-2-Clause
// The device's clock: CLOCK_MONOTONIC in nanoseconds.
#pragma once

#include "base/types.h"

#include <time.h>

static inline alb_time alb_clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (alb_time)now.tv_sec * ALB_NS_PER_S + (alb_time)now.tv_nsec;
}

static inline struct timespec alb_timespec(alb_time at)
{
    return (struct timespec){.tv_sec = (time_t)(at / ALB_NS_PER_S), .tv_nsec = (long)(at % ALB_NS_PER_S)};
}
