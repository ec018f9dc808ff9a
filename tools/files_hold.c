// SPDX-License-Identifier: BSD-2-Clause
// Holding a file in the making.
#include "tools/files_hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

// A durable region has the bytes before this one locked (albdv_reg_durable(3)). No flock(2): where a file system makes
// a lock of bytes of it, as NFS does, that would keep the region of ours out.
#define LOCKED_BYTE (1ll << 62)
#define TRIES_MAX   100

static int lock(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCKED_BYTE, .l_len = 1};
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES ? EBUSY : errno;
}

static bool is_in_place(int folder, const char *name, int fd)
{
    struct stat status, named;
    return fstat(fd, &status) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_dev == named.st_dev && status.st_ino == named.st_ino;
}

int files_hold(int folder, const char *name)
{
    // Who had it may have renamed or removed it between open(2) and the lock.
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        int fd = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (fd < 0)
            return -1;
        int error = lock(fd);
        if (!error && is_in_place(folder, name, fd))
            return fd;
        close(fd);
        if (error) {
            errno = error;
            return -1;
        }
    }
    errno = EBUSY;
    return -1;
}
