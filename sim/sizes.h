// SPDX-License-Identifier: BSD-2-Clause
// Distributions of flow sizes, read from data files (scenarios/sizes), and of the time between flows. Whole numbers
// only, so that every machine draws the same.
#pragma once

#include "base/prng.h"
#include "sim/complaint.h"
#include "sim/time.h"

#define ALB_SIZES_POINTS_MAX 64

// The part of flows that are not larger than so many bytes.
struct alb_sizes_point {
    uint64_t bytes;
    uint32_t per_billion;
};

struct alb_sizes {
    struct alb_sizes_point points[ALB_SIZES_POINTS_MAX]; // growing, from 0 to 1,000,000,000
    uint32_t count;
};

// Lines of "bytes percent", growing from 0 percent to 100; # begins a comment. False: the complaint says what is wrong.
bool alb_sizes_parse(struct alb_sizes *sizes, const char *file, const char *text, size_t length,
                     struct alb_complaint *complaint);
// 1 or more.
uint64_t alb_sizes_draw(const struct alb_sizes *sizes, struct alb_prng *prng);
// Rounded down.
uint64_t alb_sizes_mean(const struct alb_sizes *sizes);
// The time to the next arrival of a Poisson process: exponential with that mean (below 10^15 ps), right to a millionth.
alb_sim_time alb_sizes_gap(alb_sim_time mean, struct alb_prng *prng);
