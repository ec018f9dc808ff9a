// SPDX-License-Identifier: BSD-2-Clause
// What will happen, ordered by (time, sequence): two events of one moment fire in the order they were scheduled in, so
// that a run depends on its inputs alone. A 4-ary heap whose keys lie side by side; events lie in the objects they
// belong to.
#pragma once

#include "sim/time.h"

#define ALB_SIM_UNSCHEDULED UINT32_MAX

struct alb_sim_event {
    void (*fire)(struct alb_sim_event *event, alb_sim_time now);
    uint32_t place; // in the heap; ALB_SIM_UNSCHEDULED: not in it
};

struct alb_sim_slot {
    alb_sim_time at;
    uint64_t sequence;
    struct alb_sim_event *event;
};

struct alb_sim_queue {
    struct alb_sim_slot *slots;
    uint32_t count, capacity;
    uint64_t sequence; // of the next event scheduled
    uint64_t fired;    // events so far
    alb_sim_time now;  // of the last event fired, or later (alb_sim_queue_advance)
};

void alb_sim_queue_init(struct alb_sim_queue *queue);
void alb_sim_queue_fini(struct alb_sim_queue *queue);

static inline void alb_sim_event_init(struct alb_sim_event *event, void (*fire)(struct alb_sim_event *, alb_sim_time))
{
    event->fire = fire;
    event->place = ALB_SIM_UNSCHEDULED;
}

static inline bool alb_sim_event_is_scheduled(const struct alb_sim_event *event)
{
    return event->place != ALB_SIM_UNSCHEDULED;
}

// Schedules the event; one that is scheduled moves, and then counts as scheduled last. Not before now. ALB_SIM_NEVER
// cancels.
void alb_sim_queue_schedule(struct alb_sim_queue *queue, struct alb_sim_event *event, alb_sim_time at);
// Harmless for an event that is not scheduled.
void alb_sim_queue_cancel(struct alb_sim_queue *queue, struct alb_sim_event *event);

// When the next event is due, or ALB_SIM_NEVER.
static inline alb_sim_time alb_sim_queue_next_at(const struct alb_sim_queue *queue)
{
    return queue->count ? queue->slots[0].at : ALB_SIM_NEVER;
}

// Fires the next event; false if there is none.
bool alb_sim_queue_step(struct alb_sim_queue *queue);
// Nothing happens until then: now moves on. No event is due before.
void alb_sim_queue_advance(struct alb_sim_queue *queue, alb_sim_time to);
