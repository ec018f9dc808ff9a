// SPDX-License-Identifier: BSD-2-Clause
// What `albedo sim compare` prints and writes.
#include "tools/command.h"
#include "tools/sim_grid.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// Those of runs that have the figure, sorted. Returns how many; *runs: of how many.
static uint32_t collect(const struct sim_grid *grid, uint32_t point, uint32_t policy, uint32_t number,
                        double values[SIM_GRID_SEEDS_MAX], uint32_t *runs)
{
    uint32_t count = 0;
    *runs = 0;
    for (uint32_t seed = 0; seed < grid->seeds; seed++) {
        const struct sim_cell *cell = sim_grid_cell(grid, point, policy, seed);
        *runs += cell->is_run;
        if (cell->is_run && !isnan(cell->values[number]))
            values[count++] = cell->values[number];
    }
    qsort(values, count, sizeof(*values), compare_doubles);
    return count;
}

static void print_figure(const struct sim_grid *grid, uint32_t point, uint32_t policy, uint32_t number)
{
    const struct alb_metric *metric = grid->columns[number].metric;
    double values[SIM_GRID_SEEDS_MAX];
    uint32_t runs, count = collect(grid, point, policy, number, values, &runs);
    char name[2 * ALB_DOCUMENT_WORD_MAX];
    char median[ALB_METRIC_TEXT_MAX], least[ALB_METRIC_TEXT_MAX], most[ALB_METRIC_TEXT_MAX];
    if (count == 0) {
        fprintf(grid->text, "  %-18s %s\n", sim_grid_name(&grid->columns[number], name),
                runs ? "        none" : "no run ended");
        return;
    }
    double middle = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    fprintf(grid->text, "  %-18s %12s  (%s .. %s)", sim_grid_name(&grid->columns[number], name),
            alb_metric_format(metric->unit, middle, median), alb_metric_format(metric->unit, values[0], least),
            alb_metric_format(metric->unit, values[count - 1], most));
    if (count < runs)
        fprintf(grid->text, ", in %" PRIu32 " of %" PRIu32 " runs", count, runs);
    fputc('\n', grid->text);
}

// How many runs of that policy were done, and in how many messages were not: these are in no completion time.
static void print_runs(const struct sim_grid *grid, uint32_t point, uint32_t policy)
{
    const uint32_t flows = sim_grid_find(grid, "flows"), flows_done = sim_grid_find(grid, "done");
    uint32_t done = 0, lacking = 0;
    for (uint32_t seed = 0; seed < grid->seeds; seed++) {
        const struct sim_cell *cell = sim_grid_cell(grid, point, policy, seed);
        done += cell->is_run && cell->end == ALB_RUN_DONE;
        lacking += cell->is_run && cell->values[flows_done] < cell->values[flows];
    }
    fprintf(grid->text, ": %" PRIu32 " of %" PRIu32 " runs done", done, grid->seeds);
    if (lacking)
        fprintf(grid->text, ", in %" PRIu32 " run%s messages failed or were open", lacking, lacking > 1 ? "s" : "");
    fputc('\n', grid->text);
}

void sim_grid_print(const struct sim_grid *grid)
{
    for (uint32_t point = 0; point < grid->point_count; point++) {
        for (uint32_t policy = 0; policy < grid->policy_count; policy++) {
            fprintf(grid->text, "%s", grid->policies[policy]);
            for (uint32_t i = 0; i < grid->vary_count; i++)
                fprintf(grid->text, ", %s = %s", grid->vary[i].key, sim_grid_value(grid, point, i));
            print_runs(grid, point, policy);
            for (uint32_t i = 0; i < grid->shown_count; i++)
                print_figure(grid, point, policy, grid->shown[i]);
        }
    }
}

static void write_cell(FILE *to, const struct sim_grid *grid, uint32_t point, uint32_t policy, uint32_t seed)
{
    const struct sim_cell *cell = sim_grid_cell(grid, point, policy, seed);
    char name[2 * ALB_DOCUMENT_WORD_MAX];
    fputs("{\"record\":\"cell\",\"policy\":", to);
    alb_result_string(to, grid->policies[policy]);
    for (uint32_t i = 0; i < grid->vary_count; i++) {
        fputc(',', to);
        alb_result_string(to, grid->vary[i].key);
        fputc(':', to);
        alb_result_string(to, sim_grid_value(grid, point, i));
    }
    fprintf(to, ",\"seed\":%" PRIu32 ",\"end\":\"%s\"", seed + 1,
            cell->is_run ? alb_result_end_name(cell->end) : "failed");
    for (uint32_t i = 0; i < grid->column_count && cell->is_run; i++)
        if (!isnan(cell->values[i]))
            fprintf(to, ",\"%s\":%.10g", sim_grid_name(&grid->columns[i], name), cell->values[i]);
    fprintf(to, ",\"trace\":\"%016" PRIx64 "\"}\n", cell->trace_hash);
}

static bool has_run(const struct sim_grid *grid)
{
    for (uint32_t i = 0; i < grid->point_count * grid->policy_count * grid->seeds; i++)
        if (sim_grid_cell(grid, 0, 0, i)->is_run)
            return true;
    return false;
}

int sim_grid_write_json(struct sim_grid *grid)
{
    FILE *to = has_run(grid) ? sim_output_begin(&grid->json) : NULL;
    for (uint32_t point = 0; point < grid->point_count && to; point++)
        for (uint32_t policy = 0; policy < grid->policy_count; policy++)
            for (uint32_t seed = 0; seed < grid->seeds; seed++)
                write_cell(to, grid, point, policy, seed);
    int error = grid->json.file == stdout ? 0 : sim_output_close(&grid->json);
    return error ? command_error(COMMAND_FAILED, "sim compare", "%s: %s", grid->options.json, strerror(error))
                 : COMMAND_OK;
}
