// SPDX-License-Identifier: BSD-2-Clause
#include "sim/event_heap.h"

#include <stdlib.h>

enum {
    ARITY = 4,
    CAPACITY_MIN = 64,
};

void alb_sim_heap_init(struct alb_sim_heap *heap, uint32_t keeper)
{
    *heap = (struct alb_sim_heap){.keeper = keeper};
}

void alb_sim_heap_fini(struct alb_sim_heap *heap)
{
    free(heap->slots);
    heap->slots = NULL;
}

static void put(struct alb_sim_heap *heap, uint32_t place, const struct alb_sim_slot *slot)
{
    heap->slots[place] = *slot;
    slot->event->place = place;
}

// Moves the hole at place toward the root until slot fits into it.
static void sift_up(struct alb_sim_heap *heap, uint32_t place, struct alb_sim_slot slot)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / ARITY;
        if (!alb_sim_slot_is_before(&slot, &heap->slots[parent], heap->by_node))
            break;
        put(heap, place, &heap->slots[parent]);
        place = parent;
    }
    put(heap, place, &slot);
}

static uint32_t first_child(const struct alb_sim_heap *heap, uint32_t place)
{
    uint32_t begin = place * ARITY + 1;
    uint32_t end = ALB_MIN(begin + ARITY, heap->count);
    uint32_t first = begin;
    for (uint32_t i = begin + 1; i < end; i++)
        if (alb_sim_slot_is_before(&heap->slots[i], &heap->slots[first], heap->by_node))
            first = i;
    return first;
}

static void sift_down(struct alb_sim_heap *heap, uint32_t place, struct alb_sim_slot slot)
{
    for (;;) {
        uint32_t child = first_child(heap, place);
        if (child >= heap->count || !alb_sim_slot_is_before(&heap->slots[child], &slot, heap->by_node))
            break;
        put(heap, place, &heap->slots[child]);
        place = child;
    }
    put(heap, place, &slot);
}

static void grow(struct alb_sim_heap *heap)
{
    uint32_t capacity = ALB_MAX(heap->capacity * 2, (uint32_t)CAPACITY_MIN);
    heap->slots = realloc(heap->slots, (size_t)capacity * sizeof(*heap->slots));
    alb_assert(heap->slots);
    heap->capacity = capacity;
}

void alb_sim_heap_push(struct alb_sim_heap *heap, struct alb_sim_slot slot)
{
    if (heap->count == heap->capacity)
        grow(heap);
    slot.event->keeper = heap->keeper;
    sift_up(heap, heap->count++, slot);
}

void alb_sim_heap_remove(struct alb_sim_heap *heap, uint32_t place)
{
    heap->slots[place].event->place = ALB_SIM_UNSCHEDULED;
    struct alb_sim_slot last = heap->slots[--heap->count];
    if (place == heap->count)
        return;
    if (place > 0 && alb_sim_slot_is_before(&last, &heap->slots[(place - 1) / ARITY], heap->by_node))
        sift_up(heap, place, last);
    else
        sift_down(heap, place, last);
}

struct alb_sim_slot alb_sim_heap_pop(struct alb_sim_heap *heap)
{
    struct alb_sim_slot first = heap->slots[0];
    alb_sim_heap_remove(heap, 0);
    return first;
}
