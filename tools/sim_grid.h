// SPDX-License-Identifier: BSD-2-Clause
// What `albedo sim compare` runs: a scenario under each policy, with each combination of varied values and each seed,
// and the figures that come of it.
#pragma once

#include "tools/sim.h"
#include "tools/sim_output.h"

enum {
    SIM_GRID_POLICIES_MAX = 32,
    SIM_GRID_VARY_MAX = 4,
    SIM_GRID_VALUES_MAX = 32,
    SIM_GRID_METRICS_MAX = 64,
    SIM_GRID_SHOWN_MAX = 16,
    SIM_GRID_SEEDS_MAX = 10000,
    SIM_GRID_JOBS_MAX = 256,
};

struct sim_vary {
    char *key;
    char *values[SIM_GRID_VALUES_MAX];
    uint32_t count;
};

// The result of one run, as its process writes it to its pipe.
struct sim_cell {
    bool is_run;
    double values[SIM_GRID_METRICS_MAX]; // by number of alb_metrics, of all flows; NAN: none
    uint64_t trace_hash;
    enum alb_run_end end;
};

struct sim_grid {
    struct sim_options options;
    char *policies[SIM_GRID_POLICIES_MAX];
    struct sim_vary vary[SIM_GRID_VARY_MAX];
    const struct alb_metric *shown[SIM_GRID_SHOWN_MAX];
    uint32_t policy_count, vary_count, shown_count;
    uint32_t point_count; // combinations of what varies
    uint32_t seeds, jobs;
    bool has_progress;
    FILE *text; // medians: stdout, unless the result is written there
    struct sim_output json;
    struct sim_cell *cells; // by point, policy, seed
};

struct sim_cell *sim_grid_cell(const struct sim_grid *grid, uint32_t point, uint32_t policy, uint32_t seed);
// What the key of that number is set to at a point.
const char *sim_grid_value(const struct sim_grid *grid, uint32_t point, uint32_t vary);

// The functions below return a status of the command (COMMAND_OK), and have reported what is wrong.

// Checks each scenario once, so that a mistake is reported once and not by each run.
int sim_grid_check(const struct sim_grid *grid);
// Runs all of it, a process for each run, grid->jobs at a time.
int sim_grid_run(const struct sim_grid *grid);

// ---- sim_grid_print.c -----------------------------------------------------------------------------------------------

// The median of each figure with its spread.
void sim_grid_print(const struct sim_grid *grid);
// Every figure of every run, a line each.
int sim_grid_write_json(struct sim_grid *grid);
