// SPDX-License-Identifier: BSD-2-Clause
// What the two halves of the path policy "adaptive" share: leaving and returning (path_adaptive.c), and the choice
// (path_adaptive_pick.c).
#pragma once

#include "engine/path_choice.h"

enum {
    ALB_PATH_TRIAL_PACKETS = 4,  // that must come; twice as many each time that it is left again,
    ALB_PATH_TRIAL_MAX = 32,     // up to this: one that loses 10 % then passes once in thirty times
    ALB_PATH_LATE_PERCENT = 150, // of the typical round-trip time: a path that takes longer is late
};

// ---- times of 2^20 ns in 24 bits ------------------------------------------------------------------------------------

static inline uint32_t alb_path_moment_of(alb_time time)
{
    return (uint32_t)(time >> 20) & ALB_PSN_MASK;
}

static inline bool alb_path_has_come(uint32_t moment, alb_time now)
{
    return alb_psn_diff(alb_path_moment_of(now), moment) >= 0;
}

// ---- paths ----------------------------------------------------------------------------------------------------------

static inline bool alb_path_is_good(const struct alb_paths_out *paths, uint32_t path)
{
    return alb_path_load(paths, path)->state == ALB_PATH_GOOD;
}

// Longer than this is late. UINT64_MAX: nothing is known.
static inline uint64_t alb_path_late_ns(const struct alb_paths_out *paths)
{
    return paths->typical_ns ? (uint64_t)paths->typical_ns * ALB_PATH_LATE_PERCENT / 100 : UINT64_MAX;
}

static inline void alb_path_begin_record(const struct alb_paths_out *paths, struct alb_path_out *out)
{
    out->recent_sent = out->recent_lost = out->recent_marked = 0;
    alb_path_load(paths, (uint32_t)(out - paths->path))->suspicion = 0;
    out->slow = 0;
}

static inline uint32_t alb_path_trial_packets(const struct alb_path_out *out)
{
    return ALB_MIN((uint32_t)ALB_PATH_TRIAL_PACKETS << (out->back_off - (out->back_off > 0)),
                   (uint32_t)ALB_PATH_TRIAL_MAX);
}

// pick and may_try of the policy.
uint16_t alb_path_adaptive_pick(struct alb_paths_out *paths, uint32_t flow_hash, uint32_t bytes, alb_time now);
bool alb_path_adaptive_may_try(struct alb_paths_out *paths, uint16_t path, alb_time now);
