// SPDX-License-Identifier: BSD-2-Clause
// Traces in the form of GOAL: what is understood can be carried out to its end, what is not is refused with a line.
//
// Input: the text of a trace.
#include "fuzz/fuzz.h"

#include "sim/goal.h"

#include <stdlib.h>
#include <string.h>

static void settle(uint32_t *waits, uint32_t *ready, uint32_t *count, uint32_t task)
{
    if (--waits[task] == 0)
        ready[(*count)++] = task;
}

// In some order everything can be done, unless receipts wait for any rank.
static void check_order(const struct alb_schedule *schedule)
{
    uint32_t n = schedule->task_count, count = 0;
    uint32_t *waits = malloc((n + 1u) * sizeof(*waits)), *ready = malloc((n + 1u) * sizeof(*ready));
    if (!waits || !ready)
        abort();
    for (uint32_t i = 0; i < n; i++) {
        const struct alb_task *task = &schedule->tasks[i];
        alb_assert(task->rank < schedule->rank_count);
        alb_assert(task->peer < schedule->rank_count || task->peer == ALB_TASK_ANY);
        waits[i] = task->waits + (task->kind == ALB_TASK_RECV && task->matched != ALB_TASK_NONE);
        if (waits[i] == 0)
            ready[count++] = i;
    }
    for (uint32_t done = 0; done < count; done++) {
        const struct alb_task *task = &schedule->tasks[ready[done]];
        for (uint32_t e = schedule->first_edge[ready[done]]; e < schedule->first_edge[ready[done] + 1]; e++)
            settle(waits, ready, &count, schedule->edges[e].to);
        if (task->kind == ALB_TASK_SEND && task->matched != ALB_TASK_NONE)
            settle(waits, ready, &count, task->matched);
    }
    alb_assert(count == n);
    free(waits);
    free(ready);
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
