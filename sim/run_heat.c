// SPDX-License-Identifier: BSD-2-Clause
// How busy each link was over time: the bytes that left by it, interval by interval, as long as any do. When the
// columns are used up two become one, so that a run of any length fits.
#include "sim/run.h"

#include <stdlib.h>
#include <string.h>

static uint64_t *column_at(struct alb_heat *heat, uint32_t column)
{
    return &heat->bytes[(size_t)column * heat->links];
}

static void halve(struct alb_heat *heat)
{
    uint32_t columns = heat->columns;
    for (uint32_t c = 1; c < columns; c++)
        for (uint32_t l = 0; l < heat->links; l++) {
            uint64_t bytes = column_at(heat, c)[l];
            uint64_t *to = &column_at(heat, c / 2)[l];
            *to = c % 2 ? *to + bytes : bytes;
        }
    heat->columns = (columns + 1) / 2;
    memset(column_at(heat, heat->columns), 0, (size_t)(columns - heat->columns) * heat->links * sizeof(*heat->bytes));
    heat->interval *= 2;
}

// False: nothing has left since the last look.
static bool look(struct alb_run *run)
{
    struct alb_heat *heat = &run->heat;
    uint64_t all = 0;
    for (uint32_t l = 0; l < heat->links; l++) {
        uint64_t bytes = alb_cluster_link_bytes(run->cluster, l);
        bytes = ALB_MAX(bytes, heat->before[l]); // by a change of rate what is left on the wire may be a byte more
        heat->since[l] = bytes - heat->before[l];
        heat->before[l] = bytes;
        all |= heat->since[l];
    }
    return all != 0;
}

// Of what left between the last two looks. Empty columns are there only where something leaves behind them: a timer
// that waits behind the last byte costs no resolution.
static void add_column(struct alb_heat *heat, alb_sim_time now)
{
    alb_sim_time within = ALB_MAX(now, (alb_sim_time)1) - 1;
    while (within / heat->interval >= heat->columns_max)
        halve(heat);
    uint32_t column = (uint32_t)(within / heat->interval);
    for (uint32_t l = 0; l < heat->links; l++)
        column_at(heat, column)[l] += heat->since[l];
    heat->columns = column + 1;
    heat->end = now;
}

// As long as the columns will be, if something leaves until then.
static alb_sim_time next_look(const struct alb_heat *heat, alb_sim_time now)
{
    alb_sim_time interval = heat->interval;
    while (now / interval >= heat->columns_max)
        interval *= 2;
    return (now / interval + 1) * interval;
}

static void on_column(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_run *run = ALB_CONTAINER_OF(event, struct alb_run, heat.event);
    struct alb_sim_queue *queue = alb_cluster_queue(run->cluster);
    queue->looks++;
    if (look(run))
        add_column(&run->heat, now);
    if (alb_sim_queue_count(queue) > 0)
        alb_sim_queue_schedule(queue, event, next_look(&run->heat, now));
}

void alb_heat_init(struct alb_run *run, alb_sim_time interval)
{
    struct alb_heat *heat = &run->heat;
    heat->links = 2 * run->topology.cable_count;
    heat->columns_max = ALB_MIN((uint32_t)ALB_HEAT_COLUMNS_MAX, ALB_HEAT_CELLS_MAX / ALB_MAX(heat->links, 1u) & ~1u);
    heat->columns_max = ALB_MAX(heat->columns_max, 2u);
    heat->interval = interval;
    heat->bytes = calloc((size_t)heat->columns_max * heat->links + 1, sizeof(*heat->bytes));
    heat->before = calloc(heat->links + 1u, sizeof(*heat->before));
    heat->since = calloc(heat->links + 1u, sizeof(*heat->since));
    alb_assert(heat->bytes && heat->before && heat->since);
    alb_sim_event_init(&heat->event, on_column);
    alb_sim_queue_schedule(alb_cluster_queue(run->cluster), &heat->event, interval);
}

// The run ended before the last look, which came within its last window: what left in between is no part of it.
static void take_back(struct alb_run *run, alb_sim_time now)
{
    struct alb_heat *heat = &run->heat;
    for (uint32_t l = 0; l < heat->links; l++) {
        uint64_t bytes = alb_cluster_link_bytes(run->cluster, l);
        for (uint32_t c = heat->columns; c-- > 0 && heat->before[l] > bytes;) {
            uint64_t back = ALB_MIN(column_at(heat, c)[l], heat->before[l] - bytes);
            column_at(heat, c)[l] -= back;
            heat->before[l] -= back;
        }
    }
    heat->columns = (uint32_t)((ALB_MAX(now, (alb_sim_time)1) - 1) / heat->interval) + 1;
    heat->end = now;
}

void alb_heat_end(struct alb_run *run)
{
    if (!run->heat.bytes)
        return;
    alb_sim_time now = alb_cluster_now(run->cluster);
    alb_sim_queue_cancel(alb_cluster_queue(run->cluster), &run->heat.event);
    if (now < run->heat.end)
        take_back(run, now);
    if (look(run) || run->heat.columns == 0)
        add_column(&run->heat, now);
}

double alb_heat_load(const struct alb_run *run, uint32_t column, uint32_t link)
{
    const struct alb_heat *heat = &run->heat;
    alb_sim_time begin = column * heat->interval, end = ALB_MIN(begin + heat->interval, heat->end);
    double bits = (double)heat->bytes[(size_t)column * heat->links + link] * 8;
    return end > begin ? bits * (double)ALB_SIM_S(1) /
                             ((double)(end - begin) * (double)run->topology.cables[link / 2].bits_per_s)
                       : 0;
}

void alb_heat_fini(struct alb_run *run)
{
    free(run->heat.bytes);
    free(run->heat.before);
    free(run->heat.since);
}
