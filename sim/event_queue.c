// SPDX-License-Identifier: BSD-2-Clause
#include "sim/event_queue.h"

#include "sim/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    DAYS = ALB_SIM_DAYS,
    RUN = DAYS, // keepers behind those of the pages
    LATE,
    FAR,
    CHUNK_SLOTS = ALB_SIM_CHUNK_SLOTS,
    CHUNK_SHIFT = 4, // a place in a page is its chunk's number, shifted, and the slot's
    CHUNK_NONE = UINT32_MAX,
    CHUNKS_MIN = 64,
    RUN_MIN = 256,
    DAY_SHIFT_START = 10, // a nanosecond
    DAY_SHIFT_MIN = 2,
    DAY_SHIFT_MAX = 24, // 17 us: the calendar reaches 137 ms
    DAYS_AHEAD = 2,     // a day is opened at most so long before it begins
    STAGE_EVENTS = 5,   // between the stages of what an event will need
    // When so many days have been opened, or so many events were scheduled beyond the calendar, the length of a day is
    // thought over. It should have about so many events; fewer are better than a crowd beyond the calendar.
    WATCH_DAYS = 1024,
    WATCH_FAR = 65536,
    DAY_EVENTS_MAX = 24,
    DAY_EVENTS_MIN = 6,
    SORT_EVENTS_MAX = 64, // more are left to qsort
};

void alb_sim_queue_init(struct alb_sim_queue *queue)
{
    *queue = (struct alb_sim_queue){.day_shift = DAY_SHIFT_START, .chunk_free = CHUNK_NONE};
    for (uint32_t i = 0; i < DAYS; i++)
        queue->pages[i].chunk = CHUNK_NONE;
    alb_sim_heap_init(&queue->late, LATE);
    alb_sim_heap_init(&queue->far, FAR);
}

void alb_sim_queue_fini(struct alb_sim_queue *queue)
{
    alb_sim_heap_fini(&queue->late);
    alb_sim_heap_fini(&queue->far);
    free(queue->run.slots);
    free(queue->chunks);
    free(queue->sorted);
    *queue = (struct alb_sim_queue){0};
}

// ---- pages ----------------------------------------------------------------------------------------------------------

static uint32_t get_chunk(struct alb_sim_queue *queue)
{
    uint32_t number = queue->chunk_free;
    if (number != CHUNK_NONE) {
        queue->chunk_free = queue->chunks[number].next;
        return number;
    }
    if (queue->chunk_count == queue->chunk_capacity) {
        uint32_t capacity = ALB_MAX(2 * queue->chunk_capacity, (uint32_t)CHUNKS_MIN);
        struct alb_sim_chunk *chunks = alb_sim_big(capacity * sizeof(*chunks));
        alb_assert(capacity <= 1u << (32 - CHUNK_SHIFT - 1));
        if (queue->chunk_count)
            memcpy(chunks, queue->chunks, queue->chunk_count * sizeof(*chunks));
        free(queue->chunks);
        queue->chunks = chunks;
        queue->chunk_capacity = capacity;
    }
    return queue->chunk_count++;
}

static void put_chunk(struct alb_sim_queue *queue, uint32_t number)
{
    queue->chunks[number].next = queue->chunk_free;
    queue->chunk_free = number;
}

// Slots of the page's first chunk that are used; the page is not empty.
static uint32_t first_used(const struct alb_sim_page *page)
{
    return (page->count - 1) % CHUNK_SLOTS + 1;
}

static void page_put(struct alb_sim_queue *queue, uint32_t number, const struct alb_sim_slot *slot)
{
    struct alb_sim_page *page = &queue->pages[number];
    uint32_t used = page->count ? first_used(page) : CHUNK_SLOTS;
    if (used == CHUNK_SLOTS) {
        uint32_t chunk = get_chunk(queue);
        queue->chunks[chunk].next = page->chunk;
        page->chunk = chunk;
        used = 0;
    }
    if (page->count++ == 0)
        queue->used[number / 64] |= 1ull << number % 64;
    slot->event->keeper = number;
    slot->event->place = page->chunk << CHUNK_SHIFT | used;
    queue->chunks[page->chunk].slots[used] = *slot;
    queue->paged++;
}

// The last one of the first chunk takes the place that becomes free.
static void page_remove(struct alb_sim_queue *queue, uint32_t number, uint32_t place)
{
    struct alb_sim_page *page = &queue->pages[number];
    struct alb_sim_chunk *first = &queue->chunks[page->chunk];
    uint32_t last = first_used(page) - 1;
    struct alb_sim_slot *slot = &queue->chunks[place >> CHUNK_SHIFT].slots[place % (1u << CHUNK_SHIFT)];
    slot->event->place = ALB_SIM_UNSCHEDULED;
    if (slot != &first->slots[last]) {
        *slot = first->slots[last];
        slot->event->place = place;
    }
    page->count--;
    queue->paged--;
    if (last == 0) {
        uint32_t chunk = page->chunk;
        page->chunk = first->next;
        put_chunk(queue, chunk);
    }
    if (page->count == 0)
        queue->used[number / 64] &= ~(1ull << number % 64);
}

// Empties the page into slots, which have room.
static void page_take(struct alb_sim_queue *queue, uint32_t number, struct alb_sim_slot *slots)
{
    struct alb_sim_page *page = &queue->pages[number];
    uint32_t used = first_used(page);
    while (page->chunk != CHUNK_NONE) {
        uint32_t chunk = page->chunk;
        memcpy(slots, queue->chunks[chunk].slots, used * sizeof(*slots));
        slots += used;
        used = CHUNK_SLOTS;
        page->chunk = queue->chunks[chunk].next;
        put_chunk(queue, chunk);
    }
    queue->paged -= page->count;
    page->count = 0;
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

// ---- the run --------------------------------------------------------------------------------------------------------

static void reserve_run(struct alb_sim_run *run, uint32_t count)
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

// What later events will need is asked for: the closer they are, the more is known of it.
static void look_ahead(const struct alb_sim_run *run)
{
    for (uint32_t stage = 1; stage < ALB_SIM_STAGES; stage++) {
        uint32_t index = run->first + (ALB_SIM_STAGES - stage) * STAGE_EVENTS;
        if ((int32_t)(run->end - index) <= 0)
            continue;
        const struct alb_sim_event *event = run->slots[index & run->mask].event;
        if (event && event->soon)
            event->soon(event, stage);
    }
}

// ---- where an event belongs -----------------------------------------------------------------------------------------

static void file(struct alb_sim_queue *queue, const struct alb_sim_slot *slot)
{
    uint64_t day = slot->at >> queue->day_shift;
    if (day - queue->day - 1 < DAYS - 1) {
        page_put(queue, (uint32_t)day % DAYS, slot);
    } else if (day <= queue->day) {
        alb_sim_heap_push(&queue->late, *slot);
    } else {
        queue->watch.far++;
        alb_sim_heap_push(&queue->far, *slot);
    }
}

// Days of another length: all that was filed by them is filed anew. The last open day ends when it would have, or
// later.
static void set_day_shift(struct alb_sim_queue *queue, uint32_t day_shift)
{
    uint64_t count = 0;
    struct alb_sim_slot *slots = malloc((queue->paged + queue->far.count + 1) * sizeof(*slots));
    alb_assert(slots);
    for (uint32_t i = 0; i < DAYS; i++) {
        uint32_t of_page = queue->pages[i].count;
        if (of_page)
            page_take(queue, i, &slots[count]);
        count += of_page;
    }
    if (queue->far.count)
        memcpy(&slots[count], queue->far.slots, queue->far.count * sizeof(*slots));
    count += queue->far.count;
    queue->far.count = 0;
    queue->day = (((queue->day + 1) << queue->day_shift) - 1) >> day_shift;
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

static int compare(const void *a, const void *b)
{
    return alb_sim_slot_is_before(a, b) ? -1 : 1;
}

static void sort(struct alb_sim_slot *slots, uint32_t count)
{
    if (count > SORT_EVENTS_MAX) {
        qsort(slots, count, sizeof(*slots), compare);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        struct alb_sim_slot slot = slots[i];
        uint32_t at = i;
        for (; at > 0 && alb_sim_slot_is_before(&slot, &slots[at - 1]); at--)
            slots[at] = slots[at - 1];
        slots[at] = slot;
    }
}

// A page's events, sorted, at the end of the run.
static void append_day(struct alb_sim_queue *queue, uint32_t number)
{
    struct alb_sim_run *run = &queue->run;
    uint32_t count = queue->pages[number].count;
    if (count > queue->sorted_capacity) {
        queue->sorted_capacity = ALB_MAX(count, 2 * queue->sorted_capacity);
        free(queue->sorted);
        queue->sorted = malloc(queue->sorted_capacity * sizeof(*queue->sorted));
        alb_assert(queue->sorted);
    }
    page_take(queue, number, queue->sorted);
    sort(queue->sorted, count);
    reserve_run(run, count);
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
    if (queue->paged == 0)
        return;
    const struct alb_sim_page *page = &queue->pages[next_paged_day(queue) % DAYS];
    uint32_t used = first_used(page);
    for (uint32_t number = page->chunk; number != CHUNK_NONE; used = CHUNK_SLOTS) {
        const struct alb_sim_chunk *chunk = &queue->chunks[number];
        for (uint32_t i = 0; i < used; i++)
            __builtin_prefetch(chunk->slots[i].event, 1);
        number = chunk->next;
    }
}

// Opens the next day that has events, if it begins until then. False: none does.
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
    if (queue->pages[day % DAYS].count) {
        queue->watch.events += queue->pages[day % DAYS].count;
        append_day(queue, (uint32_t)day % DAYS);
    }
    take_from_far(queue);
    fetch_next_day(queue);
    if (++queue->watch.days >= WATCH_DAYS || queue->watch.far >= WATCH_FAR)
        think_over(queue);
    return true;
}

// The last open day has begun.
static void open_ahead(struct alb_sim_queue *queue)
{
    uint64_t today = queue->now >> queue->day_shift;
    if (queue->paged > 0)
        open_day(queue, (today + DAYS_AHEAD) << queue->day_shift);
}

static alb_sim_time earliest_of(const struct alb_sim_queue *queue, const struct alb_sim_page *page)
{
    alb_sim_time at = ALB_SIM_NEVER;
    uint32_t used = first_used(page);
    for (uint32_t number = page->chunk; number != CHUNK_NONE; number = queue->chunks[number].next) {
        for (uint32_t i = 0; i < used; i++)
            at = ALB_MIN(at, queue->chunks[number].slots[i].at);
        used = CHUNK_SLOTS;
    }
    return at;
}

alb_sim_time alb_sim_queue_next_at(const struct alb_sim_queue *queue)
{
    const struct alb_sim_run *run = &queue->run;
    alb_sim_time at = queue->late.count > 0 ? queue->late.slots[0].at : ALB_SIM_NEVER;
    for (uint32_t i = run->first; run->count > 0 && i != run->end; i++)
        if (run->slots[i & run->mask].event)
            return ALB_MIN(at, run->slots[i & run->mask].at);
    if (at != ALB_SIM_NEVER)
        return at;
    if (queue->paged > 0)
        return earliest_of(queue, &queue->pages[next_paged_day(queue) % DAYS]);
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
    if (event->keeper == RUN)
        run_remove(&queue->run, event->place);
    else if (event->keeper == LATE)
        alb_sim_heap_remove(&queue->late, event->place);
    else if (event->keeper == FAR)
        alb_sim_heap_remove(&queue->far, event->place);
    else
        page_remove(queue, event->keeper, event->place);
}

// Takes the next event out of the run, whose first one it is.
static void shift_run(struct alb_sim_queue *queue)
{
    struct alb_sim_run *run = &queue->run;
    look_ahead(run);
    run_remove(run, run->first & run->mask);
    if ((int32_t)(run->first++ - run->last_day) >= 0)
        open_ahead(queue);
}

// Takes the next event out, if it is due until then; NULL: none is.
static struct alb_sim_event *next_event(struct alb_sim_queue *queue, alb_sim_time until)
{
    const struct alb_sim_slot *first;
    while (!(first = run_first(&queue->run)) && queue->late.count == 0)
        if (!open_day(queue, until))
            return NULL;
    bool is_late = queue->late.count > 0 && (!first || alb_sim_slot_is_before(&queue->late.slots[0], first));
    if (alb_unlikely(is_late))
        first = &queue->late.slots[0];
    struct alb_sim_event *event = first->event;
    if (first->at > until)
        return NULL;
    queue->now = first->at;
    if (alb_unlikely(is_late))
        alb_sim_heap_remove(&queue->late, 0);
    else
        shift_run(queue);
    return event;
}

bool alb_sim_queue_run(struct alb_sim_queue *queue, alb_sim_time until, uint64_t events_max)
{
    queue->is_stopped = false;
    for (uint64_t count = 0; !queue->is_stopped; count++) {
        if (alb_unlikely(count == events_max))
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
    queue->now = to;
}
