// SPDX-License-Identifier: BSD-2-Clause
// What a scenario that was drawn comes to.
#pragma once

#include "sim/run.h"

enum {
    SIM_WHY_MAX = 700,
    SIM_DATA_MAX = 2,
    SIM_JUDGED_SECONDS = 100, // what takes longer, or more events, does not end
    SIM_JUDGED_EVENTS = 20000000,
};

// A scenario with the data files that it names.
struct sim_case {
    struct alb_document document;
    struct alb_scenario_data data[SIM_DATA_MAX]; // texts are allocated
    uint32_t data_count;
};

void sim_case_copy(struct sim_case *copy, const struct sim_case *from);
void sim_case_fini(struct sim_case *of);

enum sim_verdict {
    SIM_GOOD,
    SIM_IMPOSSIBLE,  // no scenario
    SIM_BROKEN,      // a promise: wrong bytes, a message that arrives twice or completes unasked
    SIM_FAILED,      // messages that nothing may keep from arriving
    SIM_STUCK,       // nothing happens any more, and not all is done
    SIM_NEVER_ENDED, // within its time or its events
};

struct sim_judgement {
    enum sim_verdict verdict;
    const char *promise; // BROKEN: which one, without names and numbers; else NULL
    char why[SIM_WHY_MAX];
};

typedef void (*sim_judge)(const struct sim_case *of, struct sim_judgement *judgement);

// Runs it.
void sim_judge_case(const struct sim_case *of, struct sim_judgement *judgement);
// Of a run that has ended.
void sim_judge_run(const struct alb_run *run, struct sim_judgement *judgement);

// What fails in another way is another failure, most often none of the product's.
bool sim_fails_alike(const struct sim_judgement *a, const struct sim_judgement *b);
