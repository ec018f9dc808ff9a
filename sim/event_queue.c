// SPDX-License-Identifier: BSD-2-Clause
#include "sim/event_queue.h"

#include <stdlib.h>
#include <string.h>

enum {
    DAYS = ALB_SIM_DAYS,
    TODAY = DAYS, // keepers behind those of the pages
    FAR,
    DAY_SHIFT_START = 10, // a nanosecond
    DAY_SHIFT_MIN = 2,
    DAY_SHIFT_MAX = 24, // 17 us: the calendar reaches 137 ms
    PAGE_CAPACITY_MIN = 4,
    // When so many days have been opened, or so many events were scheduled beyond the calendar, the length of a day is
    // thought over. It should have about so many events; fewer are better than a crowd beyond the calendar.
    WATCH_DAYS = 1024,
    WATCH_FAR = 65536,
    DAY_EVENTS_MAX = 48,
    DAY_EVENTS_MIN = 6,
};

void alb_sim_queue_init(struct alb_sim_queue *queue)
{
    *queue = (struct alb_sim_queue){.day_shift = DAY_SHIFT_START};
    alb_sim_heap_init(&queue->today, TODAY);
    alb_sim_heap_init(&queue->far, FAR);
}

void alb_sim_queue_fini(struct alb_sim_queue *queue)
{
    alb_sim_heap_fini(&queue->today);
    alb_sim_heap_fini(&queue->far);
    for (uint32_t i = 0; i < DAYS; i++)
        free(queue->pages[i].slots);
    *queue = (struct alb_sim_queue){0};
}

// ---- pages ----------------------------------------------------------------------------------------------------------

static void page_put(struct alb_sim_queue *queue, uint32_t number, const struct alb_sim_slot *slot)
{
    struct alb_sim_page *page = &queue->pages[number];
    if (page->count == page->capacity) {
        page->capacity = ALB_MAX(page->capacity * 2, (uint32_t)PAGE_CAPACITY_MIN);
        page->slots = realloc(page->slots, page->capacity * sizeof(*page->slots));
        alb_assert(page->slots);
    }
    if (page->count == 0)
        queue->used[number / 64] |= 1ull << number % 64;
    slot->event->keeper = number;
    slot->event->place = page->count;
    page->slots[page->count++] = *slot;
    queue->paged++;
}

static void page_remove(struct alb_sim_queue *queue, uint32_t number, uint32_t place)
{
    struct alb_sim_page *page = &queue->pages[number];
    page->slots[place].event->place = ALB_SIM_UNSCHEDULED;
    page->count--;
    queue->paged--;
    if (place != page->count) {
        page->slots[place] = page->slots[page->count];
        page->slots[place].event->place = place;
    }
    if (page->count == 0)
        queue->used[number / 64] &= ~(1ull << number % 64);
}

// The next day that has a page with events; there is one.
static uint64_t next_paged_day(const struct alb_sim_queue *queue)
{
    uint32_t today = (uint32_t)queue->day % DAYS;
    uint32_t word = today / 64;
    uint64_t bits = queue->used[word] & ~0ull << today % 64;
    while (bits == 0) {
        word = (word + 1) % (DAYS / 64);
        bits = queue->used[word];
    }
    uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(bits);
    return queue->day + (number - today) % DAYS;
}

// ---- where an event belongs -----------------------------------------------------------------------------------------

static void file(struct alb_sim_queue *queue, const struct alb_sim_slot *slot)
{
    uint64_t day = slot->at >> queue->day_shift;
    if (day <= queue->day) {
        alb_sim_heap_push(&queue->today, *slot);
    } else if (day - queue->day < DAYS) {
        page_put(queue, (uint32_t)day % DAYS, slot);
    } else {
        queue->watch.far++;
        alb_sim_heap_push(&queue->far, *slot);
    }
}

// Days of another length: all that was filed by them is filed anew.
static void set_day_shift(struct alb_sim_queue *queue, uint32_t day_shift)
{
    uint64_t count = 0;
    struct alb_sim_slot *slots = malloc((queue->paged + queue->far.count + 1) * sizeof(*slots));
    alb_assert(slots);
    for (uint32_t i = 0; i < DAYS; i++) {
        if (queue->pages[i].count)
            memcpy(&slots[count], queue->pages[i].slots, queue->pages[i].count * sizeof(*slots));
        count += queue->pages[i].count;
        queue->pages[i].count = 0;
    }
    if (queue->far.count)
        memcpy(&slots[count], queue->far.slots, queue->far.count * sizeof(*slots));
    count += queue->far.count;
    queue->far.count = 0;
    queue->paged = 0;
    memset(queue->used, 0, sizeof(queue->used));
    queue->day = (queue->day << queue->day_shift) >> day_shift;
    queue->day_shift = day_shift;
    for (uint64_t i = 0; i < count; i++)
        file(queue, &slots[i]);
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

// Those of the far ones that the calendar reaches now.
static void take_from_far(struct alb_sim_queue *queue)
{
    while (queue->far.count > 0 && (queue->far.slots[0].at >> queue->day_shift) < queue->day + DAYS) {
        struct alb_sim_slot slot = alb_sim_heap_pop(&queue->far);
        file(queue, &slot);
    }
}

// Makes the next day that has events today, if it begins until then. False: none does.
static bool open_day(struct alb_sim_queue *queue, alb_sim_time until)
{
    uint64_t day;
    if (queue->paged > 0)
        day = next_paged_day(queue);
    else if (queue->far.count > 0)
        day = queue->far.slots[0].at >> queue->day_shift;
    else
        return false;
    if (day << queue->day_shift > until)
        return false;
    queue->day = day;
    struct alb_sim_page *page = &queue->pages[day % DAYS];
    // Most of these objects are in no cache: they are asked for together, before they are needed one by one.
    for (uint32_t i = 0; i < page->count; i++) {
        __builtin_prefetch(page->slots[i].event, 1);
        __builtin_prefetch((const char *)page->slots[i].event + 64, 1);
    }
    for (uint32_t i = 0; i < page->count; i++) {
        const char *soon = page->slots[i].event->soon;
        __builtin_prefetch(soon, 1);
        __builtin_prefetch(soon + 64, 1);
        alb_sim_heap_push(&queue->today, page->slots[i]);
    }
    queue->paged -= page->count;
    queue->watch.events += page->count;
    page->count = 0;
    queue->used[day % DAYS / 64] &= ~(1ull << day % 64);
    take_from_far(queue);
    if (++queue->watch.days >= WATCH_DAYS || queue->watch.far >= WATCH_FAR)
        think_over(queue);
    return true;
}

static alb_sim_time earliest_of(const struct alb_sim_page *page)
{
    alb_sim_time at = ALB_SIM_NEVER;
    for (uint32_t i = 0; i < page->count; i++)
        at = ALB_MIN(at, page->slots[i].at);
    return at;
}

alb_sim_time alb_sim_queue_next_at(const struct alb_sim_queue *queue)
{
    if (queue->today.count > 0)
        return queue->today.slots[0].at;
    if (queue->paged > 0)
        return earliest_of(&queue->pages[next_paged_day(queue) % DAYS]);
    return queue->far.count > 0 ? queue->far.slots[0].at : ALB_SIM_NEVER;
}

// ---- events ---------------------------------------------------------------------------------------------------------

void alb_sim_queue_schedule(struct alb_sim_queue *queue, struct alb_sim_event *event, alb_sim_time at)
{
    alb_sim_queue_cancel(queue, event);
    if (at == ALB_SIM_NEVER)
        return;
    alb_assert(at >= queue->now);
    file(queue, &(struct alb_sim_slot){at, queue->sequence++, event});
}

void alb_sim_queue_cancel(struct alb_sim_queue *queue, struct alb_sim_event *event)
{
    if (!alb_sim_event_is_scheduled(event))
        return;
    if (event->keeper == TODAY)
        alb_sim_heap_remove(&queue->today, event->place);
    else if (event->keeper == FAR)
        alb_sim_heap_remove(&queue->far, event->place);
    else
        page_remove(queue, event->keeper, event->place);
}

bool alb_sim_queue_run(struct alb_sim_queue *queue, alb_sim_time until, uint64_t events_max)
{
    for (queue->is_stopped = false; !queue->is_stopped;) {
        while (queue->today.count == 0)
            if (!open_day(queue, until))
                return false;
        if (queue->today.slots[0].at > until)
            return false;
        if (events_max-- == 0)
            return true;
        struct alb_sim_slot first = alb_sim_heap_pop(&queue->today);
        queue->now = first.at;
        queue->fired++;
        first.event->fire(first.event, first.at);
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
    queue->now = to;
}
