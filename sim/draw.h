// SPDX-License-Identifier: BSD-2-Clause
// Scenarios drawn from a seed: any topology, switches, policies, limits, workloads and faults that come to an end, with
// real bytes. What is drawn must be done to the last byte, whatever happens on the way; but for messages by UC, which
// may be lost with a packet.
#pragma once

#include "base/prng.h"

#include <stddef.h>
#include <stdint.h>

#define ALB_DRAW_TEXT_MAX 16384
#define ALB_DRAW_NAME_MAX 64

struct alb_drawn {
    char text[ALB_DRAW_TEXT_MAX];
    // Data files that it may name. What may go from them alone, or together, ends in a comment of its own.
    char sizes_name[ALB_DRAW_NAME_MAX], trace_name[ALB_DRAW_NAME_MAX];
    char sizes[ALB_DRAW_TEXT_MAX], trace[ALB_DRAW_TEXT_MAX];
};

void alb_draw_scenario(uint64_t seed, struct alb_drawn *drawn);

// Of draw_data.c: a distribution of sizes, and a trace of up to so many ranks, two or more, that can be done.
void alb_draw_sizes(struct alb_prng *prng, char text[ALB_DRAW_TEXT_MAX]);
void alb_draw_trace(struct alb_prng *prng, uint32_t ranks_max, char text[ALB_DRAW_TEXT_MAX]);
