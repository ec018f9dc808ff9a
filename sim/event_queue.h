// SPDX-License-Identifier: BSD-2-Clause
// What will happen, ordered by (time, sequence): two events of one moment fire in the order they were scheduled in, so
// that a run depends on its inputs alone. Events lie in the objects they belong to.
//
// A calendar (R. Brown, Calendar queues, 1988): events of the next days lie unsorted in a page for each day, those
// beyond the calendar in a heap. A day is opened shortly before it begins: its events are sorted into the run, which
// fires them from its front; what is scheduled for an open day after that goes into another heap, which is mostly
// empty. A day's length follows from how many events it has, so that the cost of an event hardly depends on how many
// there are.
//
// Since the run shows what fires next, its events and what they will look at are asked for in time: nearly all of it is
// in no cache.
#pragma once

#include "sim/event_pages.h"

enum {
    ALB_SIM_NO_NODE = 0, // not a node: the caller, and events that belong to no node
};

// A ring. Slots whose event has been cancelled have none.
struct alb_sim_run {
    struct alb_sim_slot *slots;
    uint32_t mask; // capacity - 1
    uint32_t first, end;
    uint32_t last_day; // where the day that was opened last begins
    uint32_t count;    // of events
};

struct alb_sim_windows {
    alb_sim_time length;  // 0: none
    alb_sim_time ends[2]; // of each side, or only the first: what is due before has been taken into the run
    alb_sim_time latest;  // of what has fired
    bool by_node;
    bool has_sides;               // which take turns if it goes by node,
    uint8_t *side;                // and then of each node; else NULL
    uint32_t node_count;          // and one for no node
    uint64_t *ties;               // of each: how much it has scheduled
    uint32_t *firsts;             // of each: where its events go in the run
    struct alb_sim_heap nodeless; // what fires between windows
};

struct alb_sim_queue {
    struct alb_sim_run run;
    struct alb_sim_heap late;    // scheduled for a day when it was open
    uint64_t day;                // the last open one: its number since the beginning of time
    uint32_t day_shift;          // a day is 2^shift ps long
    struct alb_sim_slot *sorted; // where a day is sorted
    uint32_t sorted_capacity;
    struct alb_sim_heap far; // beyond the calendar
    uint64_t sequence;       // of the next event scheduled, without windows
    uint64_t fired;          // events so far
    uint64_t looks;          // of them: those that only look on, and count for nothing
    alb_sim_time now;        // of the last event fired, or later (alb_sim_queue_advance)
    uint32_t node;           // whose event fires
    bool is_stopped;         // set by an event: alb_sim_queue_run returns behind it, or its window
    struct alb_sim_windows windows;
    struct {
        uint32_t days, events, far; // since the length of a day was last thought over: days opened, their events, and
                                    // those scheduled beyond the calendar
    } watch;
    struct alb_sim_pages pages;
};

void alb_sim_queue_init(struct alb_sim_queue *queue);
void alb_sim_queue_fini(struct alb_sim_queue *queue);

// From now on windows of that length, for nodes 1 to node_count. by_node: false to fire by time, with the same result.
// Nothing may be scheduled yet. sides: 0 or 1 for each, the first for node 1, if none schedules for another one of its
// own side, and only those of side 0 stop a run; they take turns then (sim/event_windows.c). NULL: there are none.
void alb_sim_queue_set_windows(struct alb_sim_queue *queue, alb_sim_time length, uint32_t node_count, bool by_node,
                               const uint8_t *sides);

// Schedules the event; one that is scheduled moves, and then counts as scheduled last. Not before now. ALB_SIM_NEVER
// cancels. With windows it belongs to the node whose event fires, which alone may then move or cancel it.
void alb_sim_queue_schedule(struct alb_sim_queue *queue, struct alb_sim_event *event, alb_sim_time at);
// The same for another node's event: not before the window's end.
void alb_sim_queue_schedule_for(struct alb_sim_queue *queue, struct alb_sim_event *event, alb_sim_time at,
                                uint32_t node);
// Harmless for an event that is not scheduled.
void alb_sim_queue_cancel(struct alb_sim_queue *queue, struct alb_sim_event *event);

// Events scheduled.
static inline uint64_t alb_sim_queue_count(const struct alb_sim_queue *queue)
{
    return queue->run.count + queue->late.count + queue->pages.count + queue->far.count + queue->windows.nodeless.count;
}

// Events so far that a run has.
static inline uint64_t alb_sim_queue_done(const struct alb_sim_queue *queue)
{
    return queue->fired - queue->looks;
}

// When the next event is due, or ALB_SIM_NEVER. Takes a search; to go on to a moment, use alb_sim_queue_run.
alb_sim_time alb_sim_queue_next_at(const struct alb_sim_queue *queue);

// Fires the next event; false if there is none.
bool alb_sim_queue_step(struct alb_sim_queue *queue);
// Fires what is due until then, at most so many events, or until is_stopped (cleared at first). False: none is left
// that is due until then. With windows it fires whole ones, and until is before ALB_SIM_NEVER.
bool alb_sim_queue_run(struct alb_sim_queue *queue, alb_sim_time until, uint64_t events_max);
// Nothing happens until then: now moves on. No event is due before.
void alb_sim_queue_advance(struct alb_sim_queue *queue, alb_sim_time to);
