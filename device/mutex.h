// SPDX-License-Identifier: BSD-2-Clause
// A mutex that is waited for until a time, when the process ends: who holds it may be the thread itself, in a call that
// a handler of a signal has interrupted to exit. (ThreadSanitizer does not know pthread_mutex_clocklock(3).)
#pragma once

#include "device/clock.h"

#include <pthread.h>
#include <time.h>

// False: it could not be had.
static inline bool alb_mutex_lock_until(pthread_mutex_t *mutex, alb_time until)
{
    const struct timespec pause = {.tv_nsec = 100000};
    while (pthread_mutex_trylock(mutex) != 0) {
        if (alb_clock_now() >= until)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}
