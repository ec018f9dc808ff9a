// SPDX-License-Identifier: BSD-2-Clause
#include "device/write_signals.h"

#include <pthread.h>
#include <time.h>

static const int signals[] = {SIGXFSZ, SIGPIPE};

enum { COUNT = sizeof(signals) / sizeof(signals[0]) };

void alb_write_signals_hold(sigset_t *before)
{
    sigset_t held;
    sigemptyset(&held);
    for (int i = 0; i < COUNT; i++)
        sigaddset(&held, signals[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

void alb_write_signals_release(const sigset_t *before)
{
    const struct timespec at_once = {0};
    sigset_t ours;
    sigemptyset(&ours);
    for (int i = 0; i < COUNT; i++) {
        if (!sigismember(before, signals[i]))
            sigaddset(&ours, signals[i]);
    }
    while (sigtimedwait(&ours, NULL, &at_once) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
