// SPDX-License-Identifier: BSD-2-Clause
// Traces in the form of GOAL: what is understood can be carried out to its end, what is not is refused with a line.
//
// Input: the text of a trace.
#include "fuzz/fuzz.h"

#include "sim/goal.h"

#include <stdlib.h>
#include <string.h>

static bool waits(const struct alb_schedule *schedule, const bool *is_done, uint32_t task)
{
    const struct alb_task *t = &schedule->tasks[task];
    return t->kind == ALB_TASK_RECV && t->matched != ALB_TASK_NONE && !is_done[t->matched];
}

// Does what waits for nothing any more; returns how many tasks that were.
static uint32_t do_some(const struct alb_schedule *schedule, bool *is_done, bool *is_blocked)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < schedule->task_count; i++)
        is_blocked[i] = is_done[i] || waits(schedule, is_done, i);
    for (uint32_t e = 0; e < schedule->edge_count; e++)
        is_blocked[schedule->edges[e].to] |= !is_done[schedule->edges[e].from];
    for (uint32_t i = 0; i < schedule->task_count; i++) {
        is_done[i] |= !is_blocked[i];
        count += !is_blocked[i];
    }
    return count;
}

// In some order everything can be done, unless receipts wait for any rank.
static void check_order(const struct alb_schedule *schedule)
{
    uint32_t n = schedule->task_count, left = n;
    bool *is_done = calloc(n + 1u, sizeof(*is_done)), *is_blocked = calloc(n + 1u, sizeof(*is_blocked));
    if (!is_done || !is_blocked)
        abort();
    for (uint32_t i = 0; i < n; i++) {
        const struct alb_task *task = &schedule->tasks[i];
        alb_assert(task->rank < schedule->rank_count);
        alb_assert(task->peer < schedule->rank_count || task->peer == ALB_TASK_ANY);
    }
    for (uint32_t done = 1; done > 0; left -= done)
        done = do_some(schedule, is_done, is_blocked);
    alb_assert(left == 0);
    free(is_done);
    free(is_blocked);
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
