// SPDX-License-Identifier: BSD-2-Clause
// Windows of the event queue: what happens within one, node by node or by time with the same result. A window is a day
// of the calendar, or the part of it before an event that belongs to no node.
//
// Sides. Nobody hears of another node sooner than a length after. Where the nodes are of two sides, and nobody hears of
// its own side but through the other one, a window can be two lengths long, if the sides take turns: while side 0 has
// been passed until 3, side 1 is passed from 2 to 4, then side 0 from 3 to 5. So a node is passed half as often, with
// twice as many events each time, and its memory is fetched half as often. Day n, of side n % 2, ends where a day n
// without sides does, and begins one length sooner.
#include "sim/event_queue_impl.h"
#include "sim/event_sort.h"

#include <stdlib.h>
#include <string.h>

enum {
    DAYS = ALB_SIM_DAYS,
    SPARSE_NODES = 4, // a window with fewer events than one for so many nodes is sorted as a whole
};

void alb_sim_queue_set_windows(struct alb_sim_queue *queue, alb_sim_time length, uint32_t node_count, bool by_node,
                               const uint8_t *sides)
{
    struct alb_sim_windows *windows = &queue->windows;
    alb_assert(alb_sim_queue_count(queue) == 0 && length > 0 && windows->length == 0);
    windows->length = length;
    windows->node_count = node_count + 1;
    windows->by_node = queue->late.by_node = by_node;
    windows->latest = windows->ends[0] = windows->ends[1] = queue->now;
    windows->ties = calloc(windows->node_count, sizeof(*windows->ties));
    windows->firsts = calloc(windows->node_count + 1u, sizeof(*windows->firsts));
    alb_assert(windows->ties && windows->firsts);
    queue->day = queue->now / length;
    windows->has_sides = sides != NULL;
    if (!sides || !by_node)
        return;
    windows->side = malloc(windows->node_count);
    alb_assert(windows->side);
    windows->side[ALB_SIM_NO_NODE] = 0;
    memcpy(&windows->side[1], sides, node_count);
}

// Of the side that the open day belongs to.
static alb_sim_time *end_here(struct alb_sim_queue *queue)
{
    return &queue->windows.ends[queue->windows.side ? queue->day & 1 : 0];
}

static alb_sim_time end_of_day(const struct alb_sim_queue *queue, uint64_t day)
{
    return (day + 1) * queue->windows.length;
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
    alb_sim_time end = *end_here(queue);
    uint32_t count = 0;
    for (uint32_t i = 0; i < of_page; i++) {
        const struct alb_sim_slot *slot = &queue->sorted[i];
        if (slot->at < end)
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
    if (*end_here(queue) < end_of_day(queue, queue->day))
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
    struct alb_sim_windows *windows = &queue->windows;
    struct alb_sim_slot slot = alb_sim_heap_pop(&windows->nodeless);
    for (uint32_t side = 0; side < ALB_COUNT(windows->ends); side++)
        windows->ends[side] = ALB_MAX(windows->ends[side], slot.at);
    windows->latest = ALB_MAX(windows->latest, slot.at);
    queue->day = windows->ends[0] / windows->length;
    queue->now = slot.at;
    queue->fired++;
    slot.event->fire(slot.event, slot.at);
}

// No event is due before, of any node that has not been passed until then.
static alb_sim_time begin_of_day(const struct alb_sim_queue *queue, uint64_t day)
{
    const struct alb_sim_windows *windows = &queue->windows;
    return ALB_MAX((windows->side ? day - (day > 0) : day) * windows->length,
                   windows->ends[windows->side ? day & 1 : 0]);
}

// Where the window ends, the other side has been passed until one length before, as it has nothing to do.
static void begin_day(struct alb_sim_queue *queue, uint64_t day, alb_sim_time end_max)
{
    struct alb_sim_windows *windows = &queue->windows;
    queue->day = day;
    *end_here(queue) = ALB_MIN(end_of_day(queue, day), end_max);
    if (windows->side) {
        alb_sim_time *other = &windows->ends[~day & 1];
        *other = ALB_MAX(*other, ALB_MIN(day * windows->length, end_max));
    }
}

// The day whose window is next, of those with events before the limit; false: there is none. It is the first one, but
// where that has been passed until the limit, and its side waits for the other one.
static bool find_day(const struct alb_sim_queue *queue, alb_sim_time limit, uint64_t *day)
{
    if (queue->pages.count > 0)
        *day = alb_sim_queue_next_paged_day(queue);
    else if (queue->far.count > 0)
        *day = queue->far.slots[0].at / queue->windows.length;
    else
        return false;
    if (begin_of_day(queue, *day) < limit)
        return true;
    ++*day;
    return queue->windows.side && queue->pages.page[*day % DAYS].count && begin_of_day(queue, *day) < limit;
}

static alb_sim_time next_nodeless(const struct alb_sim_queue *queue)
{
    const struct alb_sim_heap *nodeless = &queue->windows.nodeless;
    return nodeless->count > 0 ? nodeless->slots[0].at : ALB_SIM_NEVER;
}

// Opens the next window, or fires what comes before it. False: nothing is due until then.
static bool open_window(struct alb_sim_queue *queue, alb_sim_time until)
{
    alb_sim_time next = next_nodeless(queue), limit = ALB_MIN(next, until + 1);
    uint64_t day;
    if (!find_day(queue, limit, &day)) {
        if (next <= until)
            fire_nodeless(queue);
        return next <= until;
    }
    begin_day(queue, day, limit);
    alb_sim_queue_take_from_far(queue);
    if (queue->pages.page[day % DAYS].count)
        take_window(queue, (uint32_t)(day % DAYS));
    return true;
}

static alb_sim_time earliest_of_day(const struct alb_sim_queue *queue, uint64_t day)
{
    uint32_t number = (uint32_t)(day % DAYS);
    return queue->pages.page[number].count ? alb_sim_page_earliest(&queue->pages, number) : ALB_SIM_NEVER;
}

alb_sim_time alb_sim_windows_next_at(const struct alb_sim_queue *queue)
{
    alb_sim_time at = next_nodeless(queue);
    for (uint32_t i = 0; i < queue->late.count; i++)
        at = ALB_MIN(at, queue->late.slots[i].at);
    if (queue->pages.count > 0) {
        uint64_t day = alb_sim_queue_next_paged_day(queue);
        at = ALB_MIN(at, earliest_of_day(queue, day));
        return ALB_MIN(at, earliest_of_day(queue, day + 1));
    }
    return queue->far.count > 0 ? ALB_MIN(at, queue->far.slots[0].at) : at;
}

// What the open window has, or what came late.
static void fire_window(struct alb_sim_queue *queue)
{
    struct alb_sim_windows *windows = &queue->windows;
    for (struct alb_sim_event *event; (event = alb_sim_queue_next_open(queue, ALB_SIM_NEVER));) {
        queue->fired++;
        windows->latest = ALB_MAX(windows->latest, queue->now);
        event->fire(event, queue->now);
    }
    queue->node = ALB_SIM_NO_NODE;
    queue->now = windows->latest;
    if (windows->ends[0] == windows->ends[1] && windows->side)
        queue->day = windows->ends[0] / windows->length;
}

// A run that is stopped, or has fired enough, ends with a day, whatever of no node divides that into windows; where
// there are sides, with one of side 0, which the other side is passed until the end of.
static void end_run(struct alb_sim_queue *queue, alb_sim_time until)
{
    struct alb_sim_windows *windows = &queue->windows;
    alb_sim_time length = windows->length, latest = windows->latest; // of nodes: later than what was of none before
    uint64_t days = (ALB_MAX(windows->ends[0], windows->ends[1]) + length - 1) / length;
    days = windows->has_sides ? days | 1 : ALB_MAX(days, 1ull);
    alb_sim_time end = ALB_MIN(days * length, until + 1);
    while (queue->late.count > 0 || open_window(queue, end - 1)) {
        uint64_t before = queue->fired;
        fire_window(queue);
        if (queue->fired > before)
            latest = windows->latest;
    }
    windows->latest = queue->now = windows->has_sides ? ALB_MAX(latest, end - ALB_MIN(end, length)) : latest;
}

bool alb_sim_windows_run(struct alb_sim_queue *queue, alb_sim_time until, uint64_t events_max)
{
    uint64_t before = alb_sim_queue_done(queue);
    queue->is_stopped = false;
    while (!queue->is_stopped && alb_sim_queue_done(queue) - before < events_max) {
        if (queue->late.count == 0 && !open_window(queue, until))
            return false;
        fire_window(queue);
    }
    end_run(queue, until);
    return queue->is_stopped || alb_sim_queue_next_at(queue) <= until;
}
