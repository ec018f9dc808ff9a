// SPDX-License-Identifier: BSD-2-Clause
// Holding a file in the making.
#include "tools/files_hold.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

// A durable region has the bytes before this one locked (albdv_reg_durable(3)). No flock(2): where a file system makes
// a lock of bytes of it, as NFS does, that would keep the region of ours out.
#define LOCKED_BYTE (1ll << 62)
#define TRIES_MAX   100

static int lock(int fd, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = LOCKED_BYTE, .l_len = 1};
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES ? EBUSY : errno;
}

bool files_hold_is_in_place(int folder, const char *name, int fd)
{
    struct stat status, named;
    return fstat(fd, &status) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_dev == named.st_dev && status.st_ino == named.st_ino;
}

// Whoever else made it, or has another name for it, can read and write it for ever.
static int check_owner(int fd, struct stat *status)
{
    if (fstat(fd, status) != 0)
        return errno;
    return S_ISREG(status->st_mode) && status->st_uid == geteuid() && status->st_nlink == 1 ? 0 : EPERM;
}

// One that was begun before, by us alone. One that others may open now is one whose copy was about to get its name.
static int check_found(int folder, const char *name, int fd)
{
    struct stat status;
    int error = check_owner(fd, &status);
    if (error || (status.st_mode & 077) == 0)
        return error;
    return unlinkat(folder, name, 0) == 0 ? ESTALE : errno;
}

// One that we may not write any more has got the rights of its file, and was about to get its name: another try can
// open it. EACCES: it cannot be read either.
static int make_writable(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? ESTALE : errno;
    struct stat status;
    int error = lock(fd, F_RDLCK);                           // EBUSY: its receiver lives
    if (!error && !files_hold_is_in_place(folder, name, fd)) // it has got its name
        error = ESTALE;
    if (!error)
        error = check_owner(fd, &status);
    if (!error && fchmod(fd, 0600) != 0)
        error = errno;
    close(fd);
    return error ? error : ESTALE;
}

// ESTALE: another try.
static int open_and_lock(int folder, const char *name, int *fd)
{
    int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    *fd = openat(folder, name, flags | O_CREAT | O_EXCL, 0600);
    bool is_found = *fd < 0 && errno == EEXIST;
    if (is_found)
        *fd = openat(folder, name, flags);
    if (*fd < 0 && is_found && errno == EACCES)
        return make_writable(folder, name);
    if (*fd < 0)
        return is_found && errno == ENOENT ? ESTALE : errno;
    int error = lock(*fd, F_WRLCK);
    if (!error && !files_hold_is_in_place(folder, name, *fd)) // who had it has renamed or removed it before the lock
        error = ESTALE;
    if (!error && is_found)
        error = check_found(folder, name, *fd);
    if (error)
        close(*fd);
    return error;
}

int files_hold(int folder, const char *name)
{
    int fd, error = ESTALE;
    for (int tries = 0; tries < TRIES_MAX && error == ESTALE; tries++)
        error = open_and_lock(folder, name, &fd);
    if (!error)
        return fd;
    errno = error == ESTALE ? EBUSY : error;
    return -1;
}

bool files_hold_is_region(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
