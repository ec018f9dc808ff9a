// SPDX-License-Identifier: BSD-2-Clause
// Threads of programs may be cancelled (pthread_cancel(3)) at calls of the C library that are cancellation points. Ours
// must not be: such a thread may hold the token, or a lock, which would then never be released. The data path makes its
// system calls by itself (device/syscalls.h), which is no such point and costs nothing; what is rare is put between
// these two, 30 to 70 ns a pair.
#pragma once

#include <pthread.h>

static inline int alb_cancel_off(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void alb_cancel_back(int before)
{
    pthread_setcancelstate(before, NULL);
}
