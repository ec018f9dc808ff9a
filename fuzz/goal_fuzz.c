// SPDX-License-Identifier: BSD-2-Clause
// Traces in the form of GOAL: what is understood can be carried out to its end, what is not is refused with a line.
//
// Input: the text of a trace.
#include "fuzz/fuzz.h"

#include "sim/goal.h"

#include <stdlib.h>
#include <string.h>

// How far each task has come.
struct progress {
    bool has_begun, is_done, is_blocked;
};

static bool has_message(const struct alb_schedule *schedule, const struct progress *progress, uint32_t task)
{
    const struct alb_task *t = &schedule->tasks[task];
    return t->kind != ALB_TASK_RECV || t->matched == ALB_TASK_NONE || progress[t->matched].has_begun;
}

// Begins and ends what waits for nothing any more; returns how many tasks have ended or begun.
static uint32_t do_some(const struct alb_schedule *schedule, struct progress *progress)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < schedule->task_count; i++)
        progress[i].is_blocked = false;
    for (uint32_t e = 0; e < schedule->edge_count; e++) {
        const struct alb_task_edge *edge = &schedule->edges[e];
        const struct progress *from = &progress[edge->from];
        progress[edge->to].is_blocked |= !(edge->at_start ? from->has_begun : from->is_done);
    }
    for (uint32_t i = 0; i < schedule->task_count; i++) {
        struct progress *p = &progress[i];
        bool ends = p->has_begun && !p->is_done && has_message(schedule, progress, i);
        bool begins = !p->has_begun && !p->is_blocked;
        p->is_done |= ends;
        p->has_begun |= begins;
        count += ends + begins;
    }
    return count;
}

// In some order everything can be done, unless receipts wait for any rank.
static void check_order(const struct alb_schedule *schedule)
{
    uint32_t n = schedule->task_count, left = 2 * n;
    struct progress *progress = calloc(n + 1u, sizeof(*progress));
    if (!progress)
        abort();
    for (uint32_t i = 0; i < n; i++) {
        const struct alb_task *task = &schedule->tasks[i];
        alb_assert(task->rank < schedule->rank_count);
        alb_assert(task->peer < schedule->rank_count || task->peer == ALB_TASK_ANY);
    }
    for (uint32_t done = 1; done > 0; left -= done)
        done = do_some(schedule, progress);
    alb_assert(left == 0);
    free(progress);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct alb_schedule schedule;
    struct alb_complaint complaint = {0};
    char *text = malloc(size ? size : 1); // as long as it is, so that a sanitizer sees what is read behind it
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    if (alb_goal_parse(&schedule, "trace", "file", text, size, &complaint)) {
        check_order(&schedule);
        alb_schedule_fini(&schedule);
    } else {
        alb_assert(strncmp(complaint.text, "file:", 5) == 0);
    }
    free(text);
    return 0;
}
