// SPDX-License-Identifier: BSD-2-Clause
// Signals that a program handles. A handler may end the process by exit(3), or leave the call by a jump (iperf3 does
// both), as it may with send(2). A call of ours holds locks and has moved half of something, so no handler runs in its
// thread but where it sleeps. To hold signals back and to let them go takes two system calls, a microsecond: programs
// that handle none do not pay for it.
#include "plugins/rdmacm/rsocket.h"

#include <signal.h>
#include <time.h>

#define LOOK_NS (20 * ALB_NS_PER_MS) // a look takes some 25 us

// What a thread does to itself, and not while it sleeps. Programs handle these to say how they crashed.
static bool is_of_a_crash(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP ||
           number == SIGABRT || number == SIGSYS;
}

// True if the process has a handler that any of the signals may start: one without any of those flags.
static bool has_handler_without(int flags)
{
    struct sigaction action;
    for (int number = 1; number <= SIGRTMAX; number++) {
        if (is_of_a_crash(number) || sigaction(number, NULL, &action) != 0 || action.sa_flags & flags)
            continue;
        if (action.sa_flags & SA_SIGINFO || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN))
            return true;
    }
    return false;
}

bool rsocket_signals_end_calls(void)
{
    return has_handler_without(SA_RESTART);
}

// In steps of some milliseconds, and costs nothing.
static alb_time coarse_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (alb_time)now.tv_sec * ALB_NS_PER_S + (alb_time)now.tv_nsec;
}

static bool are_handled(void)
{
    static _Atomic alb_time looked_at; // 0: never
    static atomic_bool are;
    alb_time now = coarse_now(), last = atomic_load_explicit(&looked_at, memory_order_relaxed);
    if (last == 0 || now - ALB_MIN(last, now) >= LOOK_NS) {
        atomic_store_explicit(&are, has_handler_without(0), memory_order_relaxed);
        atomic_store_explicit(&looked_at, now, memory_order_relaxed);
    }
    return atomic_load_explicit(&are, memory_order_relaxed);
}

bool rsocket_signals_hold(sigset_t *before)
{
    sigset_t held;
    if (!are_handled())
        return false;
    sigfillset(&held);
    for (int number = 1; number < SIGRTMIN; number++)
        if (is_of_a_crash(number))
            sigdelset(&held, number);
    return pthread_sigmask(SIG_BLOCK, &held, before) == 0;
}
