// SPDX-License-Identifier: BSD-2-Clause
// Traces in the text form of GOAL, the group operation assembly language (T. Hoefler, C. Siebert, A. Lumsdaine, "Group
// operation assembly language", ICPP 2009), as LogGOPSim and ATLAHS read it:
//
//     num_ranks 2
//     rank 0 {
//     l1: calc 1500                    nanoseconds
//     l2: send 4096b to 1 tag 7
//     l2 requires l1                   begins when l1 is done; irequires: when l1 begins
//     }
//     rank 1 {
//     recv 4096b from 0 tag 7          from -1: any rank; tag -1: any tag
//     }
//
// "cpu N" behind an operation places it on a processor of its rank, which does one calculation at a time. "nic 0" may
// stand there too; hosts have no other. Comments are // and /* */.
#pragma once

#include "sim/schedule.h"

enum {
    ALB_GOAL_RANKS_MAX = 1 << 20,
    ALB_GOAL_LABEL_MAX = 32,
    ALB_GOAL_TASKS_MAX = 1 << 28,
};

// Makes a schedule with one work called name. False: malformed, an unknown rank or label, a send without a receipt of
// its size, a cycle; the complaint has the line and what was expected. Then there is no schedule.
bool alb_goal_parse(struct alb_schedule *schedule, const char *name, const char *file, const char *text, size_t length,
                    struct alb_complaint *complaint);
