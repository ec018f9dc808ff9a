// SPDX-License-Identifier: BSD-2-Clause
// Collectives as schedules: which rank sends what to which in which step, and which receipt each send waits for. All
// data has `bytes` bytes at each rank before (reduce-scatter, all-reduce, all-to-all) or after it (all-gather).
#pragma once

#include "sim/schedule.h"

enum alb_collective {
    ALB_COLLECTIVE_ALL_REDUCE_RING, // reduce-scatter, then all-gather: 2 (n - 1) steps of bytes / n
    ALB_COLLECTIVE_ALL_REDUCE_TREE, // up a binary tree and down again, piece by piece
    ALB_COLLECTIVE_ALL_GATHER,      // ring: n - 1 steps
    ALB_COLLECTIVE_REDUCE_SCATTER,  // ring: n - 1 steps
    ALB_COLLECTIVE_ALL_TO_ALL,      // n - 1 steps; in step s rank r sends bytes / n to r + s, once it has what
                                    // step s - 1 brings and step s - 1 has left
    ALB_COLLECTIVES,
};

struct alb_collective_config {
    enum alb_collective kind;
    const uint32_t *ranks; // in order
    uint32_t rank_count;   // 2 at least
    uint64_t bytes;
    uint32_t pieces;    // of the tree: 1 at least
    uint32_t rounds;    // one after the other, each rank as soon as it has its part
    alb_sim_time at;    // it begins
    alb_sim_time think; // what a rank calculates between a receipt and the send that waits for it; 0: nothing
};

// Adds it to a schedule as a work of its own.
void alb_collective_add(struct alb_schedule *schedule, const char *name, const struct alb_collective_config *config);
