// SPDX-License-Identifier: BSD-2-Clause
#include "sim/event_queue_impl.h"
#include "sim/event_sort.h"
#include "sim/fetch.h"

#include <stdlib.h>
#include <string.h>

enum {
    DAYS = ALB_SIM_DAYS,
    RUN = DAYS, // keepers behind those of the pages
    LATE,
    FAR,
    NODELESS,
    RUN_MIN = 256,
    DAY_SHIFT_START = 10, // a nanosecond
    DAY_SHIFT_MIN = 2,
    DAY_SHIFT_MAX = 24, // 17 us: the calendar reaches 137 ms
    DAYS_AHEAD = 2,     // a day is opened at most so long before it begins
    FETCH_EVENTS = 20,  // before it fires an event is fetched, if that was not done when its day was opened
    STAGE_EVENTS = 5,   // between the stages of what an event will need
    // When so many days have been opened, or so many events were scheduled beyond the calendar, the length of a day is
    // thought over. It should have about so many events; fewer are better than a crowd beyond the calendar.
    WATCH_DAYS = 1024,
    WATCH_FAR = 65536,
    DAY_EVENTS_MAX = 24,
    DAY_EVENTS_MIN = 6,
    TIE_SHIFT = 44, // of the node in a tie
};

void alb_sim_queue_init(struct alb_sim_queue *queue)
{
    *queue = (struct alb_sim_queue){.day_shift = DAY_SHIFT_START};
    alb_sim_pages_init(&queue->pages);
    alb_sim_heap_init(&queue->late, LATE);
    alb_sim_heap_init(&queue->far, FAR);
    alb_sim_heap_init(&queue->windows.nodeless, NODELESS);
}

void alb_sim_queue_fini(struct alb_sim_queue *queue)
{
    alb_sim_heap_fini(&queue->late);
    alb_sim_heap_fini(&queue->far);
    alb_sim_heap_fini(&queue->windows.nodeless);
    free(queue->windows.ties);
    free(queue->windows.firsts);
    free(queue->windows.side);
    free(queue->run.slots);
    alb_sim_pages_fini(&queue->pages);
    free(queue->sorted);
    *queue = (struct alb_sim_queue){0};
}

// ---- the run --------------------------------------------------------------------------------------------------------

void alb_sim_run_reserve(struct alb_sim_run *run, uint32_t count)
{
    uint32_t used = run->end - run->first, capacity = ALB_MAX(run->slots ? run->mask + 1 : 0, (uint32_t)RUN_MIN);
    while (capacity - used < count)
        capacity *= 2;
    if (run->slots && capacity == run->mask + 1)
        return;
    struct alb_sim_slot *slots = malloc(capacity * sizeof(*slots));
    alb_assert(slots);
    for (uint32_t i = run->first; i != run->end; i++) {
        slots[i & (capacity - 1)] = run->slots[i & run->mask];
        if (slots[i & (capacity - 1)].event)
            slots[i & (capacity - 1)].event->place = i & (capacity - 1);
    }
    free(run->slots);
    run->slots = slots;
    run->mask = capacity - 1;
}

// Its first slot that has an event; NULL: there is none.
static struct alb_sim_slot *run_first(struct alb_sim_run *run)
{
    for (; run->first != run->end; run->first++)
        if (alb_likely(run->slots[run->first & run->mask].event))
            return &run->slots[run->first & run->mask];
    return NULL;
}

static void run_remove(struct alb_sim_run *run, uint32_t place)
{
    run->slots[place].event->place = ALB_SIM_UNSCHEDULED;
    run->slots[place].event = NULL;
    run->count--;
}

static void fetch(const struct alb_sim_run *run, uint32_t index)
{
    if ((int32_t)(run->end - index) > 0)
        alb_sim_fetch(run->slots[index & run->mask].event, 1);
}

// What later events will need is asked for: the closer they are, the more is known of it.
static void look_ahead(const struct alb_sim_run *run, uint32_t first_stage)
{
    for (uint32_t stage = first_stage; stage < ALB_SIM_STAGES; stage++) {
        uint32_t index = run->first + (ALB_SIM_STAGES - stage) * STAGE_EVENTS;
        if ((int32_t)(run->end - index) <= 0)
            continue;
        const struct alb_sim_event *event = run->slots[index & run->mask].event;
        if (event && event->soon)
            event->soon(event, stage);
    }
}

// ---- where an event belongs -----------------------------------------------------------------------------------------

// Too late for the page of its day.
static bool is_late(const struct alb_sim_queue *queue, alb_sim_time at, uint64_t day, uint32_t node)
{
    return queue->windows.length ? at < alb_sim_windows_end_of(&queue->windows, node) : day <= queue->day;
}

static void file(struct alb_sim_queue *queue, struct alb_sim_event *event, alb_sim_time at, uint64_t tie, uint32_t node)
{
    uint64_t day = alb_sim_queue_day_of(queue, at, node);
    if (alb_unlikely(is_late(queue, at, day, node))) {
        alb_sim_heap_push(&queue->late, (struct alb_sim_slot){at, tie, event, node});
    } else if (alb_likely(day - queue->day < DAYS)) {
        alb_sim_page_put(&queue->pages, (uint32_t)(day % DAYS), event, at, tie, node);
    } else {
        queue->watch.far++;
        alb_sim_heap_push(&queue->far, (struct alb_sim_slot){at, tie, event, node});
    }
}

static void file_slot(struct alb_sim_queue *queue, const struct alb_sim_slot *slot)
{
    file(queue, slot->event, slot->at, slot->tie, slot->node);
}

// Days of another length: all that was filed by them is filed anew. The last open day ends when it would have, or
// later.
static void set_day_shift(struct alb_sim_queue *queue, uint32_t day_shift)
{
    uint64_t count = 0;
    struct alb_sim_slot *slots = malloc((queue->pages.count + queue->far.count + 1) * sizeof(*slots));
    alb_assert(slots);
    for (uint32_t i = 0; i < DAYS; i++) {
        uint32_t of_page = queue->pages.page[i].count;
        if (of_page)
            alb_sim_page_take(&queue->pages, i, &slots[count]);
        count += of_page;
    }
    if (queue->far.count)
        memcpy(&slots[count], queue->far.slots, queue->far.count * sizeof(*slots));
    count += queue->far.count;
    queue->far.count = 0;
    queue->day = (((queue->day + 1) << queue->day_shift) - 1) >> day_shift;
    queue->day_shift = day_shift;
    for (uint64_t i = 0; i < count; i++)
        file_slot(queue, &slots[i]);
    free(slots);
}

static void think_over(struct alb_sim_queue *queue)
{
    uint32_t events = queue->watch.events / ALB_MAX(queue->watch.days, 1u);
    bool is_crowded_beyond = queue->watch.far > queue->watch.events / 4;
    uint32_t shift = queue->day_shift;
    if (events > DAY_EVENTS_MAX && !is_crowded_beyond && shift > DAY_SHIFT_MIN)
        shift--;
    else if ((events < DAY_EVENTS_MIN || is_crowded_beyond) && shift < DAY_SHIFT_MAX)
        shift++;
    memset(&queue->watch, 0, sizeof(queue->watch));
    if (shift != queue->day_shift)
        set_day_shift(queue, shift);
}

// ---- days -----------------------------------------------------------------------------------------------------------

void alb_sim_queue_take_from_far(struct alb_sim_queue *queue)
{
    while (queue->far.count > 0 &&
           alb_sim_queue_day_of(queue, queue->far.slots[0].at, queue->far.slots[0].node) < queue->day + DAYS) {
        struct alb_sim_slot slot = alb_sim_heap_pop(&queue->far);
        file_slot(queue, &slot);
    }
}

void alb_sim_queue_take_to_sort(struct alb_sim_queue *queue, uint32_t number)
{
    uint32_t count = queue->pages.page[number].count;
    if (count > queue->sorted_capacity) {
        queue->sorted_capacity = ALB_MAX(count, 2 * queue->sorted_capacity);
        free(queue->sorted);
        queue->sorted = malloc(queue->sorted_capacity * sizeof(*queue->sorted));
        alb_assert(queue->sorted);
    }
    alb_sim_page_take(&queue->pages, number, queue->sorted);
}

// A page's events, sorted, at the end of the run.
static void append_day(struct alb_sim_queue *queue, uint32_t number)
{
    struct alb_sim_run *run = &queue->run;
    uint32_t count = queue->pages.page[number].count;
    alb_sim_queue_take_to_sort(queue, number);
    alb_sim_sort(queue->sorted, count, false);
    alb_sim_run_reserve(run, count);
    run->last_day = run->end;
    for (uint32_t i = 0; i < count; i++) {
        struct alb_sim_event *event = queue->sorted[i].event;
        uint32_t place = run->end++ & run->mask;
        run->slots[place] = queue->sorted[i];
        event->keeper = RUN;
        event->place = place;
        if (event->soon)
            event->soon(event, 0);
    }
    run->count += count;
}

// Events of the next day with a page, which is not open yet: asked for together.
static void fetch_next_day(const struct alb_sim_queue *queue)
{
    if (queue->pages.count > 0)
        alb_sim_page_fetch(&queue->pages, (uint32_t)(alb_sim_queue_next_paged_day(queue) % DAYS));
}

// Opens the next day that has events, if it begins until then. False: none does.
static bool open_day(struct alb_sim_queue *queue, alb_sim_time until)
{
    uint64_t day;
    if (queue->pages.count > 0)
        day = alb_sim_queue_next_paged_day(queue);
    else if (queue->far.count > 0)
        day = queue->far.slots[0].at >> queue->day_shift;
    else
        return false;
    if (day << queue->day_shift > until)
        return false;
    queue->day = day;
    if (queue->pages.page[day % DAYS].count) {
        queue->watch.events += queue->pages.page[day % DAYS].count;
        append_day(queue, (uint32_t)day % DAYS);
    }
    alb_sim_queue_take_from_far(queue);
    fetch_next_day(queue);
    if (++queue->watch.days >= WATCH_DAYS || queue->watch.far >= WATCH_FAR)
        think_over(queue);
    return true;
}

// The last open day has begun.
static void open_ahead(struct alb_sim_queue *queue)
{
    uint64_t today = queue->now >> queue->day_shift;
    if (queue->pages.count > 0)
        open_day(queue, (today + DAYS_AHEAD) << queue->day_shift);
}

alb_sim_time alb_sim_queue_next_at(const struct alb_sim_queue *queue)
{
    const struct alb_sim_run *run = &queue->run;
    if (queue->windows.length)
        return alb_sim_windows_next_at(queue);
    alb_sim_time at = queue->late.count > 0 ? queue->late.slots[0].at : ALB_SIM_NEVER;
    for (uint32_t i = run->first; run->count > 0 && i != run->end; i++)
        if (run->slots[i & run->mask].event)
            return ALB_MIN(at, run->slots[i & run->mask].at);
    if (at != ALB_SIM_NEVER)
        return at;
    if (queue->pages.count > 0)
        return alb_sim_page_earliest(&queue->pages, (uint32_t)(alb_sim_queue_next_paged_day(queue) % DAYS));
    return queue->far.count > 0 ? queue->far.slots[0].at : ALB_SIM_NEVER;
}

// ---- events ---------------------------------------------------------------------------------------------------------

static void file_for(struct alb_sim_queue *queue, struct alb_sim_event *event, alb_sim_time at, uint32_t node)
{
    struct alb_sim_windows *windows = &queue->windows;
    uint64_t tie = (uint64_t)queue->node << TIE_SHIFT | windows->ties[queue->node]++;
    alb_assert(node == queue->node || queue->node == ALB_SIM_NO_NODE || at >= alb_sim_windows_end_of(windows, node));
    if (alb_unlikely(node == ALB_SIM_NO_NODE))
        alb_sim_heap_push(&windows->nodeless, (struct alb_sim_slot){at, tie, event, node});
    else
        file(queue, event, at, tie, node);
}

void alb_sim_queue_schedule_for(struct alb_sim_queue *queue, struct alb_sim_event *event, alb_sim_time at,
                                uint32_t node)
{
    if (alb_unlikely(alb_sim_event_is_scheduled(event)))
        alb_sim_queue_cancel(queue, event);
    if (at == ALB_SIM_NEVER)
        return;
    alb_assert(at >= queue->now);
    if (queue->windows.length)
        file_for(queue, event, at, node);
    else
        file(queue, event, at, queue->sequence++, ALB_SIM_NO_NODE);
}

void alb_sim_queue_schedule(struct alb_sim_queue *queue, struct alb_sim_event *event, alb_sim_time at)
{
    alb_sim_queue_schedule_for(queue, event, at, queue->node);
}

void alb_sim_queue_cancel(struct alb_sim_queue *queue, struct alb_sim_event *event)
{
    struct alb_sim_slot *slot;
    if (!alb_sim_event_is_scheduled(event))
        return;
    if (event->keeper == RUN)
        run_remove(&queue->run, event->place);
    else if (event->keeper == LATE)
        alb_sim_heap_remove(&queue->late, event->place);
    else if (event->keeper == FAR)
        alb_sim_heap_remove(&queue->far, event->place);
    else if (event->keeper == NODELESS)
        alb_sim_heap_remove(&queue->windows.nodeless, event->place);
    else if (queue->windows.length && (slot = alb_sim_windows_find(queue, event)))
        run_remove(&queue->run, (uint32_t)(slot - queue->run.slots));
    else
        alb_sim_page_remove(&queue->pages, event->keeper, event->place);
}

// Takes the next event out of the run, whose first one it is.
static void shift_run(struct alb_sim_queue *queue)
{
    struct alb_sim_run *run = &queue->run;
    if (queue->windows.length) {
        fetch(run, run->first + FETCH_EVENTS);
        look_ahead(run, 0);
    } else {
        look_ahead(run, 1);
    }
    run_remove(run, run->first & run->mask);
    if ((int32_t)(run->first++ - run->last_day) >= 0 && !queue->windows.length)
        open_ahead(queue);
}

struct alb_sim_event *alb_sim_queue_next_open(struct alb_sim_queue *queue, alb_sim_time until)
{
    const struct alb_sim_slot *first = run_first(&queue->run);
    bool by_node = queue->windows.by_node;
    if (!first && queue->late.count == 0)
        return NULL;
    bool takes_late =
        queue->late.count > 0 && (!first || alb_sim_slot_is_before(&queue->late.slots[0], first, by_node));
    if (takes_late)
        first = &queue->late.slots[0];
    struct alb_sim_event *event = first->event;
    if (first->at > until)
        return NULL;
    queue->now = first->at;
    queue->node = first->node;
    if (takes_late)
        alb_sim_heap_remove(&queue->late, 0);
    else
        shift_run(queue);
    return event;
}

static struct alb_sim_event *next_event(struct alb_sim_queue *queue, alb_sim_time until)
{
    while (!run_first(&queue->run) && queue->late.count == 0)
        if (!open_day(queue, until))
            return NULL;
    return alb_sim_queue_next_open(queue, until);
}

bool alb_sim_queue_run(struct alb_sim_queue *queue, alb_sim_time until, uint64_t events_max)
{
    if (queue->windows.length)
        return alb_sim_windows_run(queue, until, events_max);
    queue->is_stopped = false;
    for (uint64_t before = alb_sim_queue_done(queue); !queue->is_stopped;) {
        if (alb_unlikely(alb_sim_queue_done(queue) - before == events_max))
            return alb_sim_queue_next_at(queue) <= until;
        struct alb_sim_event *event = next_event(queue, until);
        if (!event)
            return false;
        queue->fired++;
        event->fire(event, queue->now);
    }
    return true;
}

bool alb_sim_queue_step(struct alb_sim_queue *queue)
{
    uint64_t fired = queue->fired;
    alb_sim_queue_run(queue, ALB_SIM_NEVER - 1, 1);
    return queue->fired != fired;
}

void alb_sim_queue_advance(struct alb_sim_queue *queue, alb_sim_time to)
{
    alb_assert(to >= queue->now && alb_sim_queue_next_at(queue) >= to);
    queue->now = queue->windows.latest = to;
}
