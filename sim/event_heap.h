// SPDX-License-Identifier: BSD-2-Clause
// A 4-ary heap of events whose keys lie side by side, ordered by (time, tie) or by (node, time, tie): a part of the
// event queue.
#pragma once

#include "sim/time.h"

#define ALB_SIM_UNSCHEDULED UINT32_MAX
#define ALB_SIM_STAGES      3

struct alb_sim_event {
    void (*fire)(struct alb_sim_event *event, alb_sim_time now);
    // Asks the caches for what it will look at, and changes nothing. Called in stages, some events apart: 0 for what
    // the event itself names, then up to ALB_SIM_STAGES - 1 for what can be found through what was asked for before.
    // May be NULL, and may not be called.
    void (*soon)(const struct alb_sim_event *event, uint32_t stage);
    uint32_t place;  // where it stands in its heap, page or the run; ALB_SIM_UNSCHEDULED: in none
    uint32_t keeper; // which of them that is: the event queue's to know
};

struct alb_sim_slot {
    alb_sim_time at;
    uint64_t tie; // the order of events of one moment
    struct alb_sim_event *event;
    uint32_t node; // that the event belongs to
};

struct alb_sim_heap {
    struct alb_sim_slot *slots; // the first is the root
    uint32_t count, capacity;
    uint32_t keeper; // of its events
    bool by_node;
};

static inline void alb_sim_event_init(struct alb_sim_event *event, void (*fire)(struct alb_sim_event *, alb_sim_time))
{
    event->fire = fire;
    event->place = ALB_SIM_UNSCHEDULED;
    event->soon = NULL;
}

// The order in which events fire: by time, or those of one node after those of another.
static inline bool alb_sim_slot_is_before(const struct alb_sim_slot *a, const struct alb_sim_slot *b, bool by_node)
{
    if (by_node && a->node != b->node)
        return a->node < b->node;
    return a->at != b->at ? a->at < b->at : a->tie < b->tie;
}

static inline bool alb_sim_event_is_scheduled(const struct alb_sim_event *event)
{
    return event->place != ALB_SIM_UNSCHEDULED;
}

void alb_sim_heap_init(struct alb_sim_heap *heap, uint32_t keeper);
void alb_sim_heap_fini(struct alb_sim_heap *heap);
void alb_sim_heap_push(struct alb_sim_heap *heap, struct alb_sim_slot slot);
// The heap is not empty.
struct alb_sim_slot alb_sim_heap_pop(struct alb_sim_heap *heap);
void alb_sim_heap_remove(struct alb_sim_heap *heap, uint32_t place);
