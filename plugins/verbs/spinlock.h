// SPDX-License-Identifier: BSD-2-Clause
// The lock of what a program posts to or polls: held for some dozen nanoseconds and mostly by one thread, so it is
// given back by a plain store, which a mutex (that has to look for sleepers) cannot do. A thread that finds it taken
// yields its core. A program may hold it for longer, between ibv_start_poll and ibv_end_poll or ibv_wr_start and
// ibv_wr_complete. Of the former the lock knows whose it is, so that what the thread calls meanwhile does not wait for
// the thread itself. All zero: free.
#pragma once

#include "plugins/verbs/race_detector.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct alb_spinlock {
    atomic_bool is_held;
    _Atomic uintptr_t owner; // the thread that keeps it from one call to a later one; 0: none does
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

// No two threads are the same at the same time, and none is 0.
static inline uintptr_t alb_spinlock_self(void)
{
    return (uintptr_t)pthread_self();
}

// The caller has it, and keeps it when its call returns.
static inline void alb_spinlock_keep(struct alb_spinlock *lock)
{
    atomic_store_explicit(&lock->owner, alb_spinlock_self(), memory_order_relaxed);
}

// Gives back one that was kept.
static inline void alb_spinlock_give_kept(struct alb_spinlock *lock)
{
    atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
    alb_spinlock_give(lock);
}

// Whether the caller keeps it. No order is needed: nobody but the caller writes its own name there, and others only
// need to see that it is not theirs.
static inline bool alb_spinlock_is_kept(const struct alb_spinlock *lock)
{
    return atomic_load_explicit(&lock->owner, memory_order_relaxed) == alb_spinlock_self();
}
