// SPDX-License-Identifier: BSD-2-Clause
// Threads of programs that are cancelled within a call (pthread_cancel(3)), asynchronously too: iperf3 ends the threads
// that carry its streams like that. A call holds locks and moves bytes, so it is cancelled where it sleeps only, and
// gives back then what it has.
#include "device/cancel.h"
#include "plugins/rdmacm/rsocket.h"

// Of the calling thread: calls that are under way, one in another, and what the program had set before.
static _Thread_local struct {
    uint32_t depth;
    int state, type;
} calls;

// The type, too: the C library (2.36) cancels a thread asynchronously that has just forbidden it, if the other thread
// looked before.
void rsocket_cancel_off(void)
{
    if (calls.depth++ > 0)
        return;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &calls.type);
    calls.state = alb_cancel_off();
}

void rsocket_cancel_back(void)
{
    alb_assert(calls.depth > 0);
    if (--calls.depth > 0)
        return;
    alb_cancel_back(calls.state);
    pthread_setcanceltype(calls.type, NULL);
}

static int poll_as_before(struct pollfd *fds, nfds_t count, const struct timespec *timeout)
{
    alb_cancel_back(calls.state);
    int ready = ppoll(fds, count, timeout, NULL);
    int error = errno;
    alb_cancel_off();
    return ready < 0 ? -error : ready;
}

int rsocket_cancellable_poll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                             void (*clean_up)(void *argument), void *argument)
{
    int ready;
    alb_assert(calls.depth > 0);
    pthread_cleanup_push(clean_up, argument);
    ready = poll_as_before(fds, count, timeout);
    pthread_cleanup_pop(0);
    return ready;
}
