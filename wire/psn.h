// SPDX-License-Identifier: BSD-2-Clause
// Packet sequence numbers: arithmetic modulo 2^24. Of two numbers, the one up to 2^23 - 1 ahead is the later one.
#pragma once

#include "base/types.h"

typedef uint32_t alb_psn; // always below 2^24

#define ALB_PSN_MASK 0xffffffu

// psn moved forward (or, with a negative count, back).
static inline alb_psn alb_psn_add(alb_psn psn, int32_t count)
{
    return (psn + (uint32_t)count) & ALB_PSN_MASK;
}

static inline alb_psn alb_psn_next(alb_psn psn)
{
    return (psn + 1) & ALB_PSN_MASK;
}

// How far a is ahead of b: -2^23 ... 2^23 - 1, negative if a is before b.
static inline int32_t alb_psn_diff(alb_psn a, alb_psn b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

static inline bool alb_psn_is_before(alb_psn a, alb_psn b)
{
    return alb_psn_diff(a, b) < 0;
}

static inline bool alb_psn_is_after(alb_psn a, alb_psn b)
{
    return alb_psn_diff(a, b) > 0;
}

// True if psn is one of the count numbers that begin with first; count is at most 2^24.
static inline bool alb_psn_is_within(alb_psn psn, alb_psn first, uint32_t count)
{
    return ((psn - first) & ALB_PSN_MASK) < count;
}
