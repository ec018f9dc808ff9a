// SPDX-License-Identifier: BSD-2-Clause
// Calls in a thread that has been cancelled: it ends at the first cancellation point (device/cancel.h).
#pragma once

#include "base/tests/test.h"

#include <pthread.h>

struct cancelled {
    void (*call)(void *argument);
    void *argument;
};

static void *cancelled_run(void *argument)
{
    const struct cancelled *cancelled = argument;
    pthread_cancel(pthread_self());
    cancelled->call(cancelled->argument);
    return NULL;
}

// The call comes to its end all the same.
static inline void cancelled_call(void (*call)(void *argument), void *argument)
{
    struct cancelled cancelled = {.call = call, .argument = argument};
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, cancelled_run, &cancelled), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
}
