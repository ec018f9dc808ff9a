// SPDX-License-Identifier: BSD-2-Clause
// Timers: a hierarchical timing wheel that is nevertheless exact to the nanosecond.
//
// A slot covers 2^10 ns at the lowest level and 32 times more at each level above, up to the whole of alb_time. The
// timers of a slot form a pairing heap, so that the earliest one is always at hand and those of equal time keep the
// order they were armed in. Most transport timers are taken back before they expire: they wait in a slot of their own,
// unsorted. Timers come down a level when the time enters their slot.
#pragma once

#include "base/types.h"

enum {
    ALB_WHEEL_LEVELS = 11,
    ALB_WHEEL_SLOTS = 32, // of each level
    ALB_TIMER_UNARMED = UINT16_MAX,
};

// Lies in the object that it belongs to (ALB_CONTAINER_OF leads back). All but at is private; at is meaningful while
// armed.
struct alb_timer {
    alb_time at;
    struct alb_timer *child;
    struct alb_timer *next;
    struct alb_timer *prev; // the previous sibling, or the parent for a first child
    uint64_t order;
    uint32_t slot;
};

struct alb_wheel {
    alb_time base;  // no timer is filed by a moment before this one
    uint64_t order; // of the next timer that is armed
    uint32_t levels;
    uint32_t slots[ALB_WHEEL_LEVELS]; // which slots of a level are occupied
    struct alb_timer *roots[ALB_WHEEL_LEVELS * ALB_WHEEL_SLOTS];
};

void alb_wheel_init(struct alb_wheel *wheel, alb_time now);

// Must come before any other call with this timer.
void alb_timer_init(struct alb_timer *timer);

static inline bool alb_timer_is_armed(const struct alb_timer *timer)
{
    return timer->slot != ALB_TIMER_UNARMED;
}

// Lets the timer be due at the given moment, which may have passed; an armed one moves there. ALB_TIME_NEVER disarms.
// O(1) for an unarmed timer.
void alb_wheel_arm(struct alb_wheel *wheel, struct alb_timer *timer, alb_time at);

// Harmless for an unarmed timer. O(1) unless the timer was the earliest of its slot, else O(log n) amortised.
void alb_wheel_disarm(struct alb_wheel *wheel, struct alb_timer *timer);

// Where the earliest armed timer is kept, NULL if none is armed.
struct alb_timer *const *alb_wheel_earliest(const struct alb_wheel *wheel);

// Exactly when the earliest armed timer is due, ALB_TIME_NEVER if none is armed. O(1), no search.
alb_time alb_wheel_next_due(const struct alb_wheel *wheel);

// Takes out and returns the timer with the smallest (at, order of arming) among those with at <= now; NULL if none is
// due. Call it until it returns NULL: that is also what moves the wheel on.
struct alb_timer *alb_wheel_pop_due(struct alb_wheel *wheel, alb_time now);
