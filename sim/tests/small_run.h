// SPDX-License-Identifier: BSD-2-Clause
// Runs of scenarios that a test writes down.
#pragma once

#include "sim/run.h"

struct small_run {
    struct alb_document document;
    struct alb_scenario scenario;
    struct alb_run run;
};

// Runs it to its end; the test fails if it can't be built.
void small_run_go(struct small_run *small, const char *text, bool has_heat);
// Only builds it.
void small_run_begin(struct small_run *small, const char *text);
void small_run_end(struct small_run *small);
