// SPDX-License-Identifier: BSD-2-Clause
// Tasks that wait for nothing but their time: each rank has a list of its own, in order of time, and one event.
#include "sim/run.h"

#include <stdlib.h>

static alb_sim_time start_of(const struct alb_run *run, uint32_t task)
{
    return run->schedule.tasks[task].kind == ALB_TASK_SEND ? run->schedule.tasks[task].at : 0;
}

static void await_start(struct alb_run_start *start)
{
    struct alb_run *run = start->run;
    if (start->first < start->end)
        alb_cluster_schedule(run->cluster, start->rank, &start->event, start_of(run, run->starts[start->first]));
}

static void on_start(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_run_start *start = ALB_CONTAINER_OF(event, struct alb_run_start, event);
    struct alb_run *run = start->run;
    while (start->first < start->end && start_of(run, run->starts[start->first]) <= now)
        alb_run_push_ready(run, run->starts[start->first++]);
    await_start(start);
    alb_run_drain(run, now);
}

struct start {
    alb_sim_time at;
    uint32_t rank, task;
};

static int compare_starts(const void *left, const void *right)
{
    const struct start *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->task < b->task ? -1 : 1;
}

// Each rank begins what is its own.
static void divide_starts(struct alb_run *run, const struct start *starts, uint32_t count)
{
    for (uint32_t rank = 0; rank < run->schedule.rank_count; rank++) {
        run->rank_starts[rank] = (struct alb_run_start){.run = run, .rank = rank};
        alb_sim_event_init(&run->rank_starts[rank].event, on_start);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct alb_run_start *start = &run->rank_starts[starts[i].rank];
        run->starts[i] = starts[i].task;
        if (start->end == 0)
            start->first = i;
        start->end = i + 1;
    }
}

bool alb_run_starts_init(struct alb_run *run)
{
    uint32_t n = run->schedule.task_count, count = 0;
    struct start *starts = malloc((n + 1u) * sizeof(*starts));
    run->starts = malloc((n + 1u) * sizeof(*run->starts));
    run->rank_starts = malloc(run->schedule.rank_count * sizeof(*run->rank_starts));
    if (!starts || !run->starts || !run->rank_starts) {
        free(starts);
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (run->schedule.tasks[i].waits == 0)
            starts[count++] = (struct start){start_of(run, i), run->schedule.tasks[i].rank, i};
    qsort(starts, count, sizeof(*starts), compare_starts);
    divide_starts(run, starts, count);
    free(starts);
    return true;
}

void alb_run_starts_fini(struct alb_run *run)
{
    free(run->starts);
    free(run->rank_starts);
}

void alb_run_starts_begin(struct alb_run *run)
{
    for (uint32_t rank = 0; rank < run->schedule.rank_count; rank++)
        await_start(&run->rank_starts[rank]);
}
