// SPDX-License-Identifier: BSD-2-Clause
// rpoll(3), rselect(3): waiting for rsockets and ordinary descriptors together. An rsocket's number is a descriptor
// that becomes readable when something may have happened; so one poll(2) waits for all of them, and then each is looked
// at.
#include "plugins/rdmacm/rsocket.h"

#include <stdlib.h>
#include <string.h>

#define ALWAYS_REPORTED (POLLERR | POLLHUP | POLLNVAL)

// One call's descriptors: the program's, what the kernel is asked, and the rsockets among them.
struct set {
    struct pollfd *fds;
    nfds_t count;
    struct pollfd *kernel;
    struct rsocket **rsockets; // NULL: an ordinary descriptor
    uint64_t *entered;         // of rsocket_enter
    nfds_t rsocket_count;
    int polling_us;
    bool is_allocated; // kernel, rsockets and entered
};

enum { FEW = 32 };

#define SECONDS_MAX (INT64_C(1) << 32) // more is for ever

// ---- looking

short rsocket_look(struct rsocket *rs, short asked)
{
    rsocket_lock(rs);
    rsocket_progress(rs);
    short events = POLLNVAL;
    if (!rs->is_closed)
        events = rs->ops->events(rs);
    rsocket_unlock(rs);
    return (short)(events & (asked | ALWAYS_REPORTED));
}

static int look_at_rsockets(struct set *set)
{
    int ready = 0;
    for (nfds_t i = 0; i < set->count; i++) {
        if (!set->rsockets[i])
            continue;
        set->fds[i].revents = rsocket_look(set->rsockets[i], set->fds[i].events);
        ready += set->fds[i].revents != 0;
    }
    return ready;
}

// What the kernel is asked: about ordinary descriptors only, or about all.
static void make_question(struct set *set, bool asks_all)
{
    for (nfds_t i = 0; i < set->count; i++) {
        bool is_ordinary = !set->rsockets[i];
        short asked = POLLIN;
        if (is_ordinary)
            asked = set->fds[i].events;
        set->kernel[i] = (struct pollfd){
            .fd = is_ordinary || asks_all ? set->fds[i].fd : -1,
            .events = asked,
        };
    }
}

// The ordinary ones' answers are given to the program.
static int give_answers(struct set *set)
{
    int ready = 0;
    for (nfds_t i = 0; i < set->count; i++) {
        if (set->rsockets[i])
            continue;
        set->fds[i].revents = set->kernel[i].revents;
        ready += set->fds[i].revents != 0;
    }
    return ready;
}

static int look(struct set *set)
{
    static const struct timespec none = {0};
    int ready = look_at_rsockets(set);
    if (set->rsocket_count == set->count)
        return ready;
    make_question(set, false);
    if (ppoll(set->kernel, set->count, &none, NULL) < 0)
        return -errno;
    return ready + give_answers(set);
}

// ---- sleeping

// What has come since the last look woke no one, since no thread slept: looks once more.
static bool prepare(struct rsocket *rs, short asked, uint64_t *entered)
{
    rsocket_lock(rs);
    bool is_quiet = rsocket_enter(rs, entered);
    is_quiet &= !(rs->ops->events(rs) & (asked | ALWAYS_REPORTED));
    rsocket_unlock(rs);
    return is_quiet;
}

static void leave_all(const struct set *set)
{
    for (nfds_t i = 0; i < set->count; i++) {
        struct rsocket *rs = set->rsockets[i];
        if (!rs)
            continue;
        rsocket_lock(rs);
        rsocket_leave(rs, set->entered[i]);
        rsocket_unlock(rs);
    }
}

static void free_arrays(const struct set *set)
{
    free(set->kernel);
    free(set->rsockets);
    free(set->entered);
}

static void give_back(const struct set *set)
{
    for (nfds_t i = 0; i < set->count; i++)
        if (set->rsockets[i])
            rsocket_put(set->rsockets[i]);
    if (set->is_allocated)
        free_arrays(set);
}

// The thread that sleeps is cancelled.
static void leave_call(void *argument)
{
    const struct set *set = argument;
    leave_all(set);
    give_back(set);
}

// What the kernel answers is asked again by the look that follows.
static int sleep_now(struct set *set, const struct timespec *timeout)
{
    bool is_quiet = true;
    int result = 0;
    for (nfds_t i = 0; i < set->count; i++)
        if (set->rsockets[i])
            is_quiet &= prepare(set->rsockets[i], set->fds[i].events, &set->entered[i]);
    make_question(set, true);
    if (is_quiet)
        result = rsocket_cancellable_poll(set->kernel, set->count, timeout, leave_call, set);
    leave_all(set);
    return result < 0 ? result : 0;
}

static alb_time sooner(alb_time a, alb_time b)
{
    return ALB_MIN(a, b);
}

static int poll_set(struct set *set, alb_time until)
{
    alb_time now = alb_device_now();
    alb_time spin_until = sooner(until, now + (alb_time)set->polling_us * ALB_NS_PER_US);
    uint32_t rounds = 0;
    int ready;
    while ((ready = look(set)) == 0) {
        now = alb_device_now();
        if (now >= until)
            return 0;
        if (now < spin_until) {
            rsocket_between_spins(&rounds);
            continue;
        }
        alb_time ns = until - now;
        struct timespec left = {.tv_sec = (time_t)(ns / ALB_NS_PER_S), .tv_nsec = (long)(ns % ALB_NS_PER_S)};
        int error = sleep_now(set, until == ALB_TIME_NEVER ? NULL : &left);
        if (error < 0)
            return error;
    }
    return ready;
}

// ---- rpoll

static void find_rsockets(struct set *set)
{
    for (nfds_t i = 0; i < set->count; i++) {
        set->rsockets[i] = rsocket_get(set->fds[i].fd);
        if (!set->rsockets[i])
            continue;
        set->rsocket_count++;
        set->polling_us = ALB_MAX(set->polling_us, set->rsockets[i]->settings.polling_us);
    }
}

static int poll_both(struct set *set, alb_time until)
{
    find_rsockets(set);
    int result = poll_set(set, until);
    give_back(set);
    return result;
}

int rsocket_poll_until(struct pollfd *fds, nfds_t count, alb_time until)
{
    struct pollfd few_fds[FEW];
    struct rsocket *few_rsockets[FEW];
    uint64_t few_entered[FEW];
    struct set set = {.fds = fds, .count = count, .kernel = few_fds, .rsockets = few_rsockets, .entered = few_entered};
    if (count <= FEW)
        return poll_both(&set, until);
    set.is_allocated = true;
    set.kernel = calloc(count, sizeof(*set.kernel));
    set.rsockets = calloc(count, sizeof(struct rsocket *));
    set.entered = calloc(count, sizeof(*set.entered));
    if (set.kernel && set.rsockets && set.entered)
        return poll_both(&set, until);
    free_arrays(&set);
    return -ENOMEM;
}

static int poll_until(struct pollfd *fds, nfds_t count, alb_time until)
{
    rsocket_cancel_off();
    int result = rsocket_poll_until(fds, count, until);
    rsocket_cancel_back();
    return result < 0 ? rdmacm_fail(-result) : result;
}

int rpoll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (count > 0 && !fds)
        return rdmacm_fail(EFAULT);
    return poll_until(fds, count,
                      timeout_ms < 0 ? ALB_TIME_NEVER : alb_device_now() + (alb_time)timeout_ms * ALB_NS_PER_MS);
}

// ---- rselect

static bool is_in(int fd, const fd_set *set)
{
    return set && FD_ISSET(fd, set);
}

static nfds_t from_sets(struct pollfd *fds, int count, const fd_set *reads, const fd_set *writes,
                        const fd_set *exceptions)
{
    nfds_t used = 0;
    for (int fd = 0; fd < count; fd++) {
        short events = (short)((is_in(fd, reads) ? POLLIN : 0) | (is_in(fd, writes) ? POLLOUT : 0) |
                               (is_in(fd, exceptions) ? POLLPRI : 0));
        if (events)
            fds[used++] = (struct pollfd){.fd = fd, .events = events};
    }
    return used;
}

// As select(2) understands what poll(2) says.
static int mark(const struct pollfd *fd, short asked, short reported, fd_set *set)
{
    if (!(fd->events & asked))
        return 0;
    bool holds = fd->revents & reported;
    if (!holds)
        FD_CLR(fd->fd, set);
    return holds;
}

int rselect(int count, fd_set *reads, fd_set *writes, fd_set *exceptions, struct timeval *timeout)
{
    struct pollfd fds[FD_SETSIZE];
    alb_time until = ALB_TIME_NEVER;
    if (count < 0 || count > FD_SETSIZE)
        return rdmacm_fail(EINVAL);
    if (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0 || timeout->tv_usec >= 1000000))
        return rdmacm_fail(EINVAL);
    if (timeout && timeout->tv_sec < SECONDS_MAX)
        until =
            alb_device_now() + (alb_time)timeout->tv_sec * ALB_NS_PER_S + (alb_time)timeout->tv_usec * ALB_NS_PER_US;
    nfds_t used = from_sets(fds, count, reads, writes, exceptions);
    int ready = poll_until(fds, used, until), marked = 0;
    if (ready < 0)
        return -1;
    for (nfds_t i = 0; i < used; i++) {
        if (fds[i].revents & POLLNVAL)
            return rdmacm_fail(EBADF);
        marked += mark(&fds[i], POLLIN, POLLIN | POLLHUP | POLLERR, reads);
        marked += mark(&fds[i], POLLOUT, POLLOUT | POLLERR, writes);
        marked += mark(&fds[i], POLLPRI, POLLPRI, exceptions);
    }
    return marked;
}
