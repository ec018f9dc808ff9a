// SPDX-License-Identifier: BSD-2-Clause
// A flock that is refused, for a test that is linked with --wrap=flock: some file systems and sandboxes have no such
// locks.
#pragma once

#include <errno.h>

static int flock_error; // 0: as usual

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

int __wrap_flock(int fd, int operation)
{
    if (!flock_error)
        return __real_flock(fd, operation);
    errno = flock_error;
    return -1;
}
