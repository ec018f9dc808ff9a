// SPDX-License-Identifier: BSD-2-Clause
#include "device/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

// Half of what a process may usually have, and little enough for select(2).
#define FIRST_NUMBER 512

// Left to the program: so many, or half of what it may have, if that is less.
#define RESERVE 32

int alb_descriptor_aside(int fd)
{
    int before = errno;
    int aside = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_NUMBER);
    if (aside < 0 && fd >= 0 && fd <= STDERR_FILENO)
        aside = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (aside >= 0)
        close(fd);
    errno = before;
    return aside >= 0 ? aside : fd;
}

bool alb_descriptor_is_scarce(int fd)
{
    struct rlimit limit;
    if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return false;
    rlim_t reserve = limit.rlim_cur / 2 < RESERVE ? limit.rlim_cur / 2 : RESERVE;
    return (rlim_t)fd >= limit.rlim_cur - reserve;
}
