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
    SIM_GRID_PARTS_MAX = 64, // workloads, those of all variants together
    SIM_GRID_COLUMNS_MAX = 1600,
    SIM_GRID_SHOWN_MAX = 16,
    SIM_GRID_SEEDS_MAX = 10000,
    SIM_GRID_JOBS_MAX = 256,
};

struct sim_vary {
    char *key;
    char *values[SIM_GRID_VALUES_MAX];
    uint32_t count;
};

// A figure: of all flows, or of one workload.
struct sim_column {
    char part[ALB_DOCUMENT_WORD_MAX]; // empty: of all
    const struct alb_metric *metric;
};

// The result of one run, as its process writes it to its pipe, with a value for each column.
struct sim_cell {
    bool is_run, is_stuck; // is_stuck: as in sim_outcome
    enum alb_run_end end;
    uint64_t trace_hash;
    double values[]; // NAN: none
};

struct sim_grid {
    struct sim_options options;
    char *policies[SIM_GRID_POLICIES_MAX];
    struct sim_vary vary[SIM_GRID_VARY_MAX];
    struct sim_column columns[SIM_GRID_COLUMNS_MAX];
    char *shown_names[SIM_GRID_SHOWN_MAX];
    uint32_t shown[SIM_GRID_SHOWN_MAX]; // numbers of columns
    uint32_t policy_count, vary_count, shown_count, column_count;
    uint32_t point_count; // combinations of what varies
    uint32_t seeds, jobs;
    bool has_progress;
    FILE *text; // medians: stdout, unless the result is written there
    struct sim_output json;
    uint8_t *cells; // by point, policy, seed, of sim_grid_cell_bytes each
};

// Of a workload that is in none of them yet. False, and that is said: there are too many.
bool sim_grid_add_part(struct sim_grid *grid, const char *part);
// The column of METRIC or WORKLOAD.METRIC; UINT32_MAX: none.
uint32_t sim_grid_find(const struct sim_grid *grid, const char *name);
// Writes it as it is asked for.
const char *sim_grid_name(const struct sim_column *column, char name[2 * ALB_DOCUMENT_WORD_MAX]);

size_t sim_grid_cell_bytes(const struct sim_grid *grid);

struct sim_cell *sim_grid_cell(const struct sim_grid *grid, uint32_t point, uint32_t policy, uint32_t seed);
// What the key of that number is set to at a point.
const char *sim_grid_value(const struct sim_grid *grid, uint32_t point, uint32_t vary);

// The functions below return a status of the command (COMMAND_OK), and have reported what is wrong.

// Checks each scenario once, so that a mistake is reported once and not by each run, and finds the columns.
int sim_grid_check(struct sim_grid *grid);
// Runs all of it, a process for each run, grid->jobs at a time.
int sim_grid_run(const struct sim_grid *grid);
// A comparison fails where runs were stuck, as `albedo sim` does.
int sim_grid_check_ends(const struct sim_grid *grid);

// ---- sim_grid_print.c -----------------------------------------------------------------------------------------------

// The median of each figure with its spread.
void sim_grid_print(const struct sim_grid *grid);
// Every figure of every run, a line each.
int sim_grid_write_json(struct sim_grid *grid);
