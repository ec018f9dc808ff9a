// SPDX-License-Identifier: BSD-2-Clause
// rclose(3), and the same for what a program leaves open when it ends: the kernel delivers for a socket after its
// process has gone, and programs rely on it; an rsocket has to be delivered before.
#include "plugins/rdmacm/rsocket.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    EXIT_MS = 3000,   // all of them together
    CLOSE_MS = 60000, // a peer that takes nothing for so long will not
};

// Says goodbye and unlocks it.
static void close_locked(struct rsocket *rs, alb_time until)
{
    if (rs->linger.l_onoff)
        until = ALB_MIN(until, alb_device_now() + (alb_time)ALB_MAX(rs->linger.l_linger, 0) * ALB_NS_PER_S);
    rs->ops->close(rs, until);
    rs->is_closed = true;
    rsocket_wake(rs);
    rsocket_unlock(rs);
}

// Takes the rsocket out of the table and says goodbye. EBADF.
static int close_one(int fd)
{
    struct rsocket *rs = rsocket_table_take(fd);
    if (!rs)
        return EBADF;
    rsocket_lock(rs);
    close_locked(rs, alb_device_now() + CLOSE_MS * ALB_NS_PER_MS);
    rsocket_epoll_forget(rs);
    rsocket_put(rs);
    return 0;
}

int rclose(int socket)
{
    rsocket_cancel_off();
    int error = close_one(socket);
    rsocket_cancel_back();
    return rdmacm_result(error);
}

// One that is in use stays so.
static void close_at_exit(int fd, alb_time until)
{
    struct rsocket *rs = rsocket_table_take(fd);
    if (!rs || !rsocket_lock_until(rs, until))
        return;
    close_locked(rs, until);
    rsocket_put(rs);
}

// The thread that ends the process may do so in a handler that has interrupted one of our calls (rsocket_signals.c
// looks for handlers now and then only): what that holds is not given back any more.
void rsocket_close_all(void)
{
    alb_time until = alb_device_now() + EXIT_MS * ALB_NS_PER_MS;
    struct rsocket *rs;
    if (!rsocket_table_can_be_had(until))
        return;
    for (int fd = 0; (rs = rsocket_table_next(fd)); fd++) {
        fd = rs->fd;
        if (!rsocket_is_epoll(rs)) // threads that wait by one go on doing so, as with a kernel
            close_at_exit(fd, until);
        rsocket_put(rs);
    }
}
