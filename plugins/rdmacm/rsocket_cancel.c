// SPDX-License-Identifier: BSD-2-Clause
// Threads of programs that are cancelled within a call (pthread_cancel(3)), asynchronously too: iperf3 ends the threads
// that carry its streams like that. A call holds locks and moves bytes, so it is cancelled where it sleeps only, and
// gives back then what it has. Handlers of signals run there only, too (plugins/rdmacm/rsocket_signals.c).
#include "device/cancel.h"
#include "plugins/rdmacm/rsocket.h"

// Of the calling thread: calls that are under way, one in another, and what the program had set before.
static _Thread_local struct calls {
    uint32_t depth;
    int state, type;
    bool holds_signals;
    sigset_t signals;
} calls;

// The type, too: the C library (2.36) cancels a thread asynchronously that has just forbidden it, if the other thread
// looked before.
void rsocket_cancel_off(void)
{
    if (calls.depth > 0) {
        calls.depth++;
        return;
    }
    sigset_t before;
    bool holds_signals = rsocket_signals_hold(&before);
    atomic_signal_fence(memory_order_seq_cst); // until here a handler may jump away
    calls.depth = 1;
    calls.holds_signals = holds_signals;
    if (holds_signals)
        calls.signals = before;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &calls.type);
    calls.state = alb_cancel_off();
}

void rsocket_cancel_back(void)
{
    alb_assert(calls.depth > 0);
    if (--calls.depth > 0)
        return;
    bool held_signals = calls.holds_signals;
    calls.holds_signals = false;
    alb_cancel_back(calls.state);
    pthread_setcanceltype(calls.type, NULL);
    atomic_signal_fence(memory_order_seq_cst); // a handler may run at once, which looks at calls, or jumps
    if (held_signals)
        pthread_sigmask(SIG_SETMASK, &calls.signals, NULL);
}

// For its time no call is under way: a handler may make calls of its own, and what it jumps to is in none. A thread
// that is cancelled does not return from here, and what AddressSanitizer lays around variables would stay on its stack.
__attribute__((no_sanitize_address)) static int poll_as_before(struct pollfd *fds, nfds_t count,
                                                               const struct timespec *timeout, bool is_cancellable)
{
    struct calls asleep = calls;
    calls.depth = 0;
    calls.holds_signals = false;
    if (is_cancellable)
        alb_cancel_back(asleep.state);
    atomic_signal_fence(memory_order_seq_cst);
    int ready = ppoll(fds, count, timeout, asleep.holds_signals ? &asleep.signals : NULL);
    int error = errno;
    if (is_cancellable)
        alb_cancel_off();
    calls = asleep;
    return ready < 0 ? -error : ready;
}

int rsocket_plain_poll(struct pollfd *fds, nfds_t count, const struct timespec *timeout)
{
    return poll_as_before(fds, count, timeout, false);
}

int rsocket_cancellable_poll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                             void (*clean_up)(void *argument), void *argument)
{
    int ready;
    alb_assert(calls.depth > 0);
    pthread_cleanup_push(clean_up, argument);
    ready = poll_as_before(fds, count, timeout, true);
    pthread_cleanup_pop(0);
    return ready;
}

void rsocket_between_spins(uint32_t *rounds)
{
    enum { ROUNDS = 64 };
    static const struct timespec none = {0};
    if (++*rounds % ROUNDS == 0 && calls.holds_signals)
        rsocket_plain_poll(NULL, 0, &none);
}
