// SPDX-License-Identifier: BSD-2-Clause
// How threads wait for an rsocket, several at once if they like. What one of them takes from the completion queue may
// be what another waits for: then it wakes them through the eventfd, which stays readable until the last of those that
// slept has left, so that none is missed. Each looks again at what it waits for, and may be back before another has
// left: one that comes after the wake is not waited for, else two that find nothing would keep each other awake.
#include "device/syscalls.h"
#include "plugins/rdmacm/rsocket.h"

#include <fcntl.h>

void rsocket_wake(struct rsocket *rs)
{
    if (rs->waiters == 0)
        return;
    if (rs->woken == 0) {
        ssize_t written = alb_sys_eventfd_add(rs->wake_fd);
        alb_assert(written == sizeof(uint64_t));
    }
    rs->woken = rs->waiters;
    rs->wakes++;
}

void rsocket_progress(struct rsocket *rs)
{
    if (rs->ops->progress(rs))
        rsocket_wake(rs);
}

bool rsocket_enter(struct rsocket *rs, uint64_t *entered)
{
    bool is_quiet = rs->ops->arm(rs);
    if (!is_quiet)
        rsocket_wake(rs); // the others
    rs->waiters++;
    *entered = rs->wakes;
    return is_quiet && !rs->is_closed;
}

void rsocket_leave(struct rsocket *rs, uint64_t entered)
{
    alb_assert(rs->waiters > 0);
    rs->waiters--;
    if (entered == rs->wakes || --rs->woken > 0)
        return;
    ssize_t taken = alb_sys_eventfd_take(rs->wake_fd);
    alb_assert(taken == sizeof(uint64_t));
}

static bool is_blocking(const struct rsocket *rs, int flags)
{
    return (flags & RSOCKET_WAIT) || (!(flags & MSG_DONTWAIT) && !(rs->status_flags & O_NONBLOCK));
}

// Polls for a while without sleeping: what is awaited is often a few microseconds away.
static bool spin(struct rsocket *rs, bool (*is_met)(struct rsocket *))
{
    if (rs->settings.polling_us <= 0)
        return false;
    alb_time end = alb_device_now() + (alb_time)rs->settings.polling_us * ALB_NS_PER_US;
    uint32_t rounds = 0;
    do {
        rsocket_unlock(rs);
        rsocket_between_spins(&rounds);
        rsocket_lock(rs);
        rsocket_progress(rs);
        if (is_met(rs) || rs->is_closed)
            return true;
    } while (alb_device_now() < end);
    return false;
}

struct sleeper {
    struct rsocket *rs;
    uint64_t entered;
};

// The thread that sleeps is cancelled.
static void leave_call(void *argument)
{
    const struct sleeper *sleeper = argument;
    rsocket_lock(sleeper->rs);
    rsocket_leave(sleeper->rs, sleeper->entered);
    rsocket_unlock(sleeper->rs);
    rsocket_put(sleeper->rs);
}

static int poll_number(struct sleeper *sleeper, const struct timespec *timeout, bool is_cancellable)
{
    struct pollfd poller = {.fd = sleeper->rs->fd, .events = POLLIN};
    if (is_cancellable)
        return rsocket_cancellable_poll(&poller, 1, timeout, leave_call, sleeper);
    return rsocket_plain_poll(&poller, 1, timeout);
}

static int sleep_until(struct rsocket *rs, alb_time until, bool is_cancellable)
{
    struct sleeper sleeper = {.rs = rs};
    struct timespec left, *timeout = NULL;
    int error = 0;
    if (until != ALB_TIME_NEVER) {
        alb_time now = alb_device_now(), ns = until > now ? until - now : 0;
        left = (struct timespec){.tv_sec = (time_t)(ns / ALB_NS_PER_S), .tv_nsec = (long)(ns % ALB_NS_PER_S)};
        timeout = &left;
    }
    if (rsocket_enter(rs, &sleeper.entered)) {
        rsocket_unlock(rs);
        int count = poll_number(&sleeper, timeout, is_cancellable);
        error = count < 0 ? -count : count == 0 ? ETIMEDOUT : 0;
        rsocket_lock(rs);
    }
    rsocket_leave(rs, sleeper.entered);
    return error;
}

int rsocket_wait(struct rsocket *rs, bool (*is_met)(struct rsocket *), int flags, alb_time until)
{
    bool has_spun = false;
    for (;;) {
        if (rs->is_closed)
            return EBADF;
        rsocket_progress(rs);
        if (is_met(rs))
            return 0;
        if (!is_blocking(rs, flags))
            return EAGAIN;
        if (!has_spun) {
            has_spun = true;
            if (spin(rs, is_met))
                continue;
        }
        int error = sleep_until(rs, until, !(flags & RSOCKET_WAIT));
        // ppoll(2) ends with any signal, and does not say with which: where handlers of both kinds are installed,
        // either ends a call.
        if (error == EINTR && !rsocket_signals_end_calls())
            continue;
        if (error) {
            rsocket_progress(rs);
            return is_met(rs) ? 0 : error;
        }
    }
}
