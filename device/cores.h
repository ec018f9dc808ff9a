// SPDX-License-Identifier: BSD-2-Clause
// Whether a core is free: what decides if it is worth while, or even harmful, to spin. And how many threads want each,
// which makes everything slower and is no congestion.
#pragma once

#include "base/types.h"
#include "engine/engine.h"

struct alb_cores {
    int loadavg_fd; // -1: not to be known, and then no core counts as free, and the load is one
    uint32_t usable, online;
    alb_time looked_at;
    bool is_one_free;
    uint64_t load_sum; // smoothed
};

void alb_cores_init(struct alb_cores *cores);
void alb_cores_fini(struct alb_cores *cores);

// True if no more threads want to run on this machine than this process may use cores, the calling one counted. Looks
// at most once a millisecond, and less often where two or more want to run for each core.
bool alb_cores_has_free(struct alb_cores *cores, alb_time now);

// How many threads want to run, for each processor of this machine, in parts of ALB_HOST_LOAD_ONE: a mean over a fifth
// of a second, ALB_HOST_LOAD_ONE at least. Looks at most once in ten milliseconds.
uint32_t alb_cores_load(struct alb_cores *cores, alb_time now);

// Whether a thread of the program may spin for what it waits for: by the same mean fewer than one and a half threads
// were too many, as far as that was to be known. Two programs that talk to each other are three on two cores, since who
// looks is one, and who has woken another is still awake; a thread that computes beside them makes it four.
bool alb_cores_have_room(const struct alb_cores *cores);

// The number of runnable threads in the text of /proc/loadavg ("0.20 0.18 0.12 1/80 11206"); UINT32_MAX if there is
// none.
uint32_t alb_cores_parse_runnable(const char *loadavg);
