// SPDX-License-Identifier: BSD-2-Clause
#include "sim/event_queue.h"

#include <stdlib.h>

enum {
    ARITY = 4,
    CAPACITY_MIN = 256,
};

void alb_sim_queue_init(struct alb_sim_queue *queue)
{
    *queue = (struct alb_sim_queue){0};
}

void alb_sim_queue_fini(struct alb_sim_queue *queue)
{
    free(queue->slots);
    *queue = (struct alb_sim_queue){0};
}

static bool is_before(const struct alb_sim_slot *a, const struct alb_sim_slot *b)
{
    return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

static void put(struct alb_sim_queue *queue, uint32_t place, const struct alb_sim_slot *slot)
{
    queue->slots[place] = *slot;
    slot->event->place = place;
}

// Moves the hole at place toward the root until slot fits into it.
static void sift_up(struct alb_sim_queue *queue, uint32_t place, struct alb_sim_slot slot)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / ARITY;
        if (!is_before(&slot, &queue->slots[parent]))
            break;
        put(queue, place, &queue->slots[parent]);
        place = parent;
    }
    put(queue, place, &slot);
}

static uint32_t first_child(const struct alb_sim_queue *queue, uint32_t place)
{
    uint32_t begin = place * ARITY + 1;
    uint32_t end = ALB_MIN(begin + ARITY, queue->count);
    uint32_t first = begin;
    for (uint32_t i = begin + 1; i < end; i++)
        if (is_before(&queue->slots[i], &queue->slots[first]))
            first = i;
    return first;
}

static void sift_down(struct alb_sim_queue *queue, uint32_t place, struct alb_sim_slot slot)
{
    for (;;) {
        uint32_t child = first_child(queue, place);
        if (child >= queue->count || !is_before(&queue->slots[child], &slot))
            break;
        put(queue, place, &queue->slots[child]);
        place = child;
    }
    put(queue, place, &slot);
}

static void take_out(struct alb_sim_queue *queue, uint32_t place)
{
    queue->slots[place].event->place = ALB_SIM_UNSCHEDULED;
    struct alb_sim_slot last = queue->slots[--queue->count];
    if (place == queue->count)
        return;
    if (place > 0 && is_before(&last, &queue->slots[(place - 1) / ARITY]))
        sift_up(queue, place, last);
    else
        sift_down(queue, place, last);
}

static void grow(struct alb_sim_queue *queue)
{
    uint32_t capacity = ALB_MAX(queue->capacity * 2, (uint32_t)CAPACITY_MIN);
    queue->slots = realloc(queue->slots, (size_t)capacity * sizeof(*queue->slots));
    alb_assert(queue->slots);
    queue->capacity = capacity;
}

void alb_sim_queue_schedule(struct alb_sim_queue *queue, struct alb_sim_event *event, alb_sim_time at)
{
    alb_sim_queue_cancel(queue, event);
    if (at == ALB_SIM_NEVER)
        return;
    alb_assert(at >= queue->now);
    if (queue->count == queue->capacity)
        grow(queue);
    sift_up(queue, queue->count++, (struct alb_sim_slot){at, queue->sequence++, event});
}

void alb_sim_queue_cancel(struct alb_sim_queue *queue, struct alb_sim_event *event)
{
    if (alb_sim_event_is_scheduled(event))
        take_out(queue, event->place);
}

bool alb_sim_queue_step(struct alb_sim_queue *queue)
{
    if (queue->count == 0)
        return false;
    struct alb_sim_slot first = queue->slots[0];
    take_out(queue, 0);
    queue->now = first.at;
    queue->fired++;
    first.event->fire(first.event, first.at);
    return true;
}

void alb_sim_queue_advance(struct alb_sim_queue *queue, alb_sim_time to)
{
    alb_assert(to >= queue->now && alb_sim_queue_next_at(queue) >= to);
    queue->now = to;
}
