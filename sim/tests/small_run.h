// SPDX-License-Identifier: BSD-2-Clause
// Runs of scenarios that a test writes down.
#pragma once

#include "sim/draw.h"
#include "sim/run.h"

struct small_run {
    struct alb_document document;
    struct alb_scenario scenario;
    struct alb_run run;
};

// Runs it to its end; the test fails if it can't be built.
void small_run_go(struct small_run *small, const char *text, bool has_heat);
// The data files of what was drawn.
void small_run_name(struct alb_scenario_data data[2], struct alb_drawn *drawn);
// Runs it.
void small_run_go_with(struct small_run *small, struct alb_drawn *drawn);
// Runs one whose "topology = file" has "file = map", with that text.
void small_run_go_on(struct small_run *small, const char *text, char *map);
// Only builds it.
void small_run_begin(struct small_run *small, const char *text);
void small_run_end(struct small_run *small);
