// SPDX-License-Identifier: BSD-2-Clause
// rpoll(3): waiting for descriptors.
#include "plugins/rdmacm/door.h"

#include <poll.h>
#include <rdma/rsocket.h>

// A number that belongs to no rsocket is an ordinary descriptor, and so are all while rsockets cannot be made.
int rpoll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return poll(fds, count, timeout_ms);
}
