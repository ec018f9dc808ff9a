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

// Takes the rsocket out of the table and says goodbye. EBADF.
static int close_one(int fd, alb_time until)
{
    struct rsocket *rs = rsocket_table_take(fd);
    if (!rs)
        return EBADF;
    rsocket_lock(rs);
    if (rs->linger.l_onoff)
        until = ALB_MIN(until, alb_device_now() + (alb_time)ALB_MAX(rs->linger.l_linger, 0) * ALB_NS_PER_S);
    rs->ops->close(rs, until);
    rs->is_closed = true;
    rsocket_wake(rs);
    rsocket_unlock(rs);
    rsocket_put(rs);
    return 0;
}

int rclose(int socket)
{
    rsocket_cancel_off();
    int error = close_one(socket, alb_device_now() + CLOSE_MS * ALB_NS_PER_MS);
    rsocket_cancel_back();
    return rdmacm_result(error);
}

void rsocket_close_all(void)
{
    alb_time until = alb_device_now() + EXIT_MS * ALB_NS_PER_MS;
    struct rsocket *rs;
    for (int fd = 0; (rs = rsocket_table_next(fd)); fd++) {
        fd = rs->fd;
        close_one(fd, until);
        rsocket_put(rs);
    }
}
