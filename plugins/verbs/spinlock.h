// SPDX-License-Identifier: BSD-2-Clause
// The lock of what a program posts to or polls: held for some dozen nanoseconds and mostly by one thread, so it is
// given back by a plain store, which a mutex (that has to look for sleepers) cannot do. A thread that finds it taken
// yields its core. A program may hold it for longer, between ibv_start_poll and ibv_end_poll or ibv_wr_start and
// ibv_wr_complete. All zero: free.
#pragma once

#include "plugins/verbs/race_detector.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct alb_spinlock {
    atomic_bool is_held;
};

static inline void alb_spinlock_take(struct alb_spinlock *lock)
{
    while (atomic_exchange_explicit(&lock->is_held, true, memory_order_acquire))
        sched_yield();
    alb_race_detector_acquire(lock);
}

// False: somebody has it.
static inline bool alb_spinlock_try(struct alb_spinlock *lock)
{
    if (atomic_exchange_explicit(&lock->is_held, true, memory_order_acquire))
        return false;
    alb_race_detector_acquire(lock);
    return true;
}

// Until it was free for a moment.
static inline void alb_spinlock_wait(const struct alb_spinlock *lock)
{
    while (atomic_load_explicit(&lock->is_held, memory_order_relaxed))
        sched_yield();
}

static inline void alb_spinlock_give(struct alb_spinlock *lock)
{
    alb_race_detector_release(lock);
    atomic_store_explicit(&lock->is_held, false, memory_order_release);
}
