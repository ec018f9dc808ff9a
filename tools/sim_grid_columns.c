// SPDX-License-Identifier: BSD-2-Clause
// Which figures a comparison has of each run: every metric of all flows, and those of flows for each workload.
#include "tools/command.h"
#include "tools/sim_grid.h"

#include <string.h>

static bool has_part(const struct sim_grid *grid, const char *part, uint32_t *parts)
{
    *parts = 0;
    for (uint32_t i = 0; i < grid->column_count; i++) {
        *parts += i > 0 && strcmp(grid->columns[i].part, grid->columns[i - 1].part) != 0;
        if (strcmp(grid->columns[i].part, part) == 0)
            return true;
    }
    return false;
}

bool sim_grid_add_part(struct sim_grid *grid, const char *part)
{
    uint32_t parts;
    if (has_part(grid, part, &parts))
        return true;
    if (parts == SIM_GRID_PARTS_MAX || grid->column_count + alb_metric_count > SIM_GRID_COLUMNS_MAX)
        return command_error(false, "sim compare", "the variants together have too many workloads; expected %d at most",
                             SIM_GRID_PARTS_MAX);
    for (uint32_t i = 0; i < alb_metric_count; i++) {
        struct sim_column *column = &grid->columns[grid->column_count];
        if (part[0] && !alb_metrics[i].is_of_part)
            continue;
        snprintf(column->part, sizeof(column->part), "%s", part);
        column->metric = &alb_metrics[i];
        grid->column_count++;
    }
    return true;
}

const char *sim_grid_name(const struct sim_column *column, char name[2 * ALB_DOCUMENT_WORD_MAX])
{
    snprintf(name, (size_t)2 * ALB_DOCUMENT_WORD_MAX, "%s%s%s", column->part, column->part[0] ? "." : "",
             column->metric->name);
    return name;
}

uint32_t sim_grid_find(const struct sim_grid *grid, const char *name)
{
    char of[2 * ALB_DOCUMENT_WORD_MAX];
    for (uint32_t i = 0; i < grid->column_count; i++)
        if (strcmp(sim_grid_name(&grid->columns[i], of), name) == 0)
            return i;
    return UINT32_MAX;
}
