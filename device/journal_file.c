// SPDX-License-Identifier: BSD-2-Clause
// Names, locks, and whole reads and writes.
#include "device/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Of any file, and not those behind, so that a program can have a lock of its own that outlives the region
// (albdv_reg_durable(3), tools/files_hold.c).
#define LOCKED_BYTES (1ll << 62)

const char *alb_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? path : slash[1] ? slash + 1 : ".";
}

int alb_file_identify(int fd, struct alb_file_id *id)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return errno;
    *id = (struct alb_file_id){.device = status.st_dev, .inode = status.st_ino};
    return 0;
}

int alb_file_check_name(int folder_fd, const char *name, const struct alb_file_id *id)
{
    struct stat named;
    if (fstatat(folder_fd, name, &named, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    return named.st_dev == id->device && named.st_ino == id->inode ? 0 : ESTALE;
}

// Drops what was written from the front of the vectors.
static void advance(struct iovec **vectors, uint32_t *count, size_t wrote)
{
    while (*count > 0 && wrote >= (*vectors)->iov_len) {
        wrote -= (*vectors)->iov_len;
        ++*vectors;
        --*count;
    }
    if (*count > 0) {
        (*vectors)->iov_base = (uint8_t *)(*vectors)->iov_base + wrote;
        (*vectors)->iov_len -= wrote;
    }
}

int alb_file_lock(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = LOCKED_BYTES};
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES ? EBUSY : errno;
}

int alb_file_write(int fd, struct iovec *vectors, uint32_t count, uint64_t at)
{
    advance(&vectors, &count, 0);
    while (count > 0) {
        ssize_t wrote = pwritev(fd, vectors, (int)count, (off_t)at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return wrote < 0 ? errno : EIO;
        at += (uint64_t)wrote;
        advance(&vectors, &count, (size_t)wrote);
    }
    return 0;
}

int alb_file_read(int fd, void *bytes, uint64_t length, uint64_t at)
{
    uint8_t *next = bytes;
    while (length > 0) {
        ssize_t got = pread(fd, next, length, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        next += got;
        at += (uint64_t)got;
        length -= (uint64_t)got;
    }
    return 0;
}
