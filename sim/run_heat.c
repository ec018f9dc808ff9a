// SPDX-License-Identifier: BSD-2-Clause
// How busy each link was over time: the bytes that left by it, interval by interval. When the columns are used up two
// become one, so that a run of any length fits.
#include "sim/run.h"

#include <stdlib.h>
#include <string.h>

static void halve(struct alb_heat *heat)
{
    for (uint32_t c = 0; c < heat->columns; c++)
        for (uint32_t l = 0; l < heat->links; l++) {
            uint64_t bytes = heat->bytes[(size_t)c * heat->links + l];
            uint64_t *to = &heat->bytes[(size_t)(c / 2) * heat->links + l];
            *to = c % 2 ? *to + bytes : bytes;
        }
    heat->columns /= 2;
    heat->interval *= 2;
}

static void add_column(struct alb_run *run)
{
    struct alb_heat *heat = &run->heat;
    for (uint32_t l = 0; l < heat->links; l++) {
        uint64_t bytes = alb_cluster_link_bytes(run->cluster, l);
        bytes = ALB_MAX(bytes, heat->before[l]); // by a change of rate what is left on the wire may be a byte more
        heat->bytes[(size_t)heat->columns * heat->links + l] = bytes - heat->before[l];
        heat->before[l] = bytes;
    }
    heat->columns++;
}

static void on_column(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_run *run = ALB_CONTAINER_OF(event, struct alb_run, heat.event);
    alb_cluster_queue(run->cluster)->looks++;
    add_column(run);
    if (run->heat.columns == run->heat.columns_max)
        halve(&run->heat);
    if (alb_sim_queue_count(alb_cluster_queue(run->cluster)) > 0)
        alb_sim_queue_schedule(alb_cluster_queue(run->cluster), event, now + run->heat.interval);
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
    alb_assert(heat->bytes && heat->before);
    alb_sim_event_init(&heat->event, on_column);
    alb_sim_queue_schedule(alb_cluster_queue(run->cluster), &heat->event, interval);
}

void alb_heat_end(struct alb_run *run)
{
    if (!run->heat.bytes)
        return;
    alb_sim_queue_cancel(alb_cluster_queue(run->cluster), &run->heat.event);
    add_column(run);
    run->heat.end = alb_cluster_now(run->cluster);
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
}
