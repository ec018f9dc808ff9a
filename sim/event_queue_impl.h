// SPDX-License-Identifier: BSD-2-Clause
// What the files of the event queue share.
#pragma once

#include "sim/event_queue.h"

// With windows: of the last window of the node's side that the moment is in.
static inline uint64_t alb_sim_queue_day_of(const struct alb_sim_queue *queue, alb_sim_time at, uint32_t node)
{
    const struct alb_sim_windows *windows = &queue->windows;
    if (windows->length == 0)
        return at >> queue->day_shift;
    uint64_t day = at / windows->length;
    return windows->side ? day + ((day ^ windows->side[node]) & 1) : day;
}

// What is due before has been taken into the run.
static inline alb_sim_time alb_sim_windows_end_of(const struct alb_sim_windows *windows, uint32_t node)
{
    return windows->ends[windows->side ? windows->side[node] : 0];
}

// The next day that has a page with events; there is one.
static inline uint64_t alb_sim_queue_next_paged_day(const struct alb_sim_queue *queue)
{
    uint32_t today = (uint32_t)(queue->day % ALB_SIM_DAYS);
    return queue->day + (alb_sim_pages_next(&queue->pages, today) - today) % ALB_SIM_DAYS;
}

// ---- sim/event_queue.c ----------------------------------------------------------------------------------------------

// Room for so many more behind its end.
void alb_sim_run_reserve(struct alb_sim_run *run, uint32_t count);
// Those of the far ones that the calendar reaches now.
void alb_sim_queue_take_from_far(struct alb_sim_queue *queue);
// A page's events, where a day is sorted.
void alb_sim_queue_take_to_sort(struct alb_sim_queue *queue, uint32_t number);
// Takes the next open event out, if it is due until then; NULL: none is.
struct alb_sim_event *alb_sim_queue_next_open(struct alb_sim_queue *queue, alb_sim_time until);

// ---- sim/event_windows.c --------------------------------------------------------------------------------------------

// With windows, where only late ones are open between two of them.
alb_sim_time alb_sim_windows_next_at(const struct alb_sim_queue *queue);
// An event's slot in the run, if it is there and not in its page. A node asks for its own events alone.
struct alb_sim_slot *alb_sim_windows_find(struct alb_sim_queue *queue, const struct alb_sim_event *event);
// alb_sim_queue_run with windows.
bool alb_sim_windows_run(struct alb_sim_queue *queue, alb_sim_time until, uint64_t events_max);
