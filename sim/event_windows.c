// SPDX-License-Identifier: BSD-2-Clause
// Windows of the event queue: what happens within one, node by node or by time with the same result. A window is a day
// of the calendar, or the part of it before an event that belongs to no node.
#include "sim/event_queue_impl.h"
#include "sim/event_sort.h"

#include <stdlib.h>
#include <string.h>

enum {
    DAYS = ALB_SIM_DAYS,
    SPARSE_NODES = 4, // a window with fewer events than one for so many nodes is sorted as a whole
};

void alb_sim_queue_set_windows(struct alb_sim_queue *queue, alb_sim_time length, uint32_t node_count, bool by_node)
{
    struct alb_sim_windows *windows = &queue->windows;
    alb_assert(alb_sim_queue_count(queue) == 0 && length > 0 && windows->length == 0);
    windows->length = length;
    windows->node_count = node_count;
    windows->by_node = queue->late.by_node = by_node;
    windows->latest = windows->end = queue->now;
    windows->ties = calloc(node_count, sizeof(*windows->ties));
    windows->firsts = calloc(node_count + 1u, sizeof(*windows->firsts));
    alb_assert(windows->ties && windows->firsts);
    queue->day = alb_sim_queue_day_of(queue, windows->end);
}

// Node by node, each node's events by time: as many as there are, sorted by counting.
static void deal_out(struct alb_sim_queue *queue, const struct alb_sim_slot *slots, uint32_t count)
{
    uint32_t *firsts = queue->windows.firsts, node_count = queue->windows.node_count;
    struct alb_sim_slot *to = queue->run.slots;
    for (uint32_t i = 0; i < count; i++)
        firsts[slots[i].node + 1]++;
    for (uint32_t node = 1; node < node_count; node++)
        firsts[node + 1] += firsts[node];
    for (uint32_t i = 0; i < count; i++)
        to[firsts[slots[i].node]++] = slots[i];
    for (uint32_t node = 1; node < node_count; node++)
        alb_sim_sort(&to[firsts[node - 1]], firsts[node] - firsts[node - 1], false);
    memset(firsts, 0, (node_count + 1u) * sizeof(*firsts));
}

// Of the events to sort so many are due before the window's end; the others go back to their page.
static uint32_t put_back_later(struct alb_sim_queue *queue, uint32_t number, uint32_t of_page)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < of_page; i++) {
        const struct alb_sim_slot *slot = &queue->sorted[i];
        if (slot->at < queue->windows.end)
            queue->sorted[count++] = *slot;
        else
            alb_sim_page_put(&queue->pages, number, slot->event, slot->at, slot->tie, slot->node);
    }
    return count;
}

// The run, which is empty, gets those events of a page that are due before the window's end. Their places are worked
// out when they are asked for (alb_sim_windows_find): most are not.
static void take_window(struct alb_sim_queue *queue, uint32_t number)
{
    struct alb_sim_run *run = &queue->run;
    uint32_t count = queue->pages.page[number].count;
    alb_sim_queue_take_to_sort(queue, number);
    if (queue->windows.end < alb_sim_queue_begin_of(queue, queue->day + 1))
        count = put_back_later(queue, number, count);
    run->first = run->end = 0;
    alb_sim_run_reserve(run, count);
    if (queue->windows.by_node && count >= queue->windows.node_count / SPARSE_NODES) {
        deal_out(queue, queue->sorted, count);
    } else {
        alb_sim_sort(queue->sorted, count, queue->windows.by_node);
        memcpy(run->slots, queue->sorted, count * sizeof(*run->slots));
    }
    run->end = run->count = count;
}

struct alb_sim_slot *alb_sim_windows_find(struct alb_sim_queue *queue, const struct alb_sim_event *event)
{
    const struct alb_sim_run *run = &queue->run;
    if (run->count == 0 || event->keeper != queue->day % DAYS)
        return NULL;
    for (uint32_t i = run->first; i != run->end; i++) {
        struct alb_sim_slot *slot = &run->slots[i];
        if (slot->event == event)
            return slot;
        if (queue->windows.by_node && queue->node != ALB_SIM_NO_NODE && slot->node != queue->node)
            return NULL;
    }
    return NULL;
}

static void fire_nodeless(struct alb_sim_queue *queue)
{
    struct alb_sim_slot slot = alb_sim_heap_pop(&queue->windows.nodeless);
    queue->windows.end = ALB_MAX(queue->windows.end, slot.at);
    queue->windows.latest = ALB_MAX(queue->windows.latest, slot.at);
    queue->now = slot.at;
    queue->fired++;
    slot.event->fire(slot.event, slot.at);
}

// Opens the next window, or fires what comes before it. False: nothing is due until then.
static bool open_window(struct alb_sim_queue *queue, alb_sim_time until)
{
    struct alb_sim_windows *windows = &queue->windows;
    alb_sim_time begin = ALB_SIM_NEVER, next = ALB_SIM_NEVER;
    uint64_t day = 0;
    if (queue->pages.count > 0 || queue->far.count > 0) {
        day = queue->pages.count > 0 ? alb_sim_queue_next_paged_day(queue)
                                     : alb_sim_queue_day_of(queue, queue->far.slots[0].at);
        begin = ALB_MAX(alb_sim_queue_begin_of(queue, day), windows->end);
    }
    if (windows->nodeless.count > 0)
        next = windows->nodeless.slots[0].at;
    if (ALB_MIN(begin, next) > until)
        return false;
    if (next <= begin) {
        fire_nodeless(queue);
        return true;
    }
    queue->day = day;
    next = ALB_MIN(next, until + 1);
    windows->end = ALB_MIN(next, alb_sim_queue_begin_of(queue, day + 1));
    alb_sim_queue_take_from_far(queue);
    if (queue->pages.page[day % DAYS].count)
        take_window(queue, (uint32_t)(day % DAYS));
    return true;
}

alb_sim_time alb_sim_windows_next_at(const struct alb_sim_queue *queue)
{
    const struct alb_sim_heap *nodeless = &queue->windows.nodeless;
    alb_sim_time at = nodeless->count > 0 ? nodeless->slots[0].at : ALB_SIM_NEVER;
    for (uint32_t i = 0; i < queue->late.count; i++)
        at = ALB_MIN(at, queue->late.slots[i].at);
    if (queue->pages.count > 0)
        return ALB_MIN(at,
                       alb_sim_page_earliest(&queue->pages, (uint32_t)(alb_sim_queue_next_paged_day(queue) % DAYS)));
    return queue->far.count > 0 ? ALB_MIN(at, queue->far.slots[0].at) : at;
}

static void fire_window(struct alb_sim_queue *queue)
{
    for (struct alb_sim_event *event; (event = alb_sim_queue_next_open(queue, ALB_SIM_NEVER));) {
        queue->fired++;
        queue->windows.latest = ALB_MAX(queue->windows.latest, queue->now);
        event->fire(event, queue->now);
    }
    queue->node = ALB_SIM_NO_NODE;
    queue->now = queue->windows.latest;
}

bool alb_sim_windows_run(struct alb_sim_queue *queue, alb_sim_time until, uint64_t events_max)
{
    uint64_t before = queue->fired;
    queue->is_stopped = false;
    while (!queue->is_stopped) {
        if (queue->fired - before >= events_max)
            return alb_sim_queue_next_at(queue) <= until;
        if (queue->late.count == 0 && !open_window(queue, until))
            return false;
        fire_window(queue);
    }
    return true;
}
