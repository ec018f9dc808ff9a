// SPDX-License-Identifier: BSD-2-Clause
#include "device/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

// Half of what a process may usually have, and little enough for select(2).
#define FIRST_NUMBER 512

int alb_descriptor_aside(int fd)
{
    int before = errno;
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_NUMBER);
    if (high >= 0)
        close(fd);
    errno = before;
    return high >= 0 ? high : fd;
}
