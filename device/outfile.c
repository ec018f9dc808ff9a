// SPDX-License-Identifier: BSD-2-Clause
// Buffered output files.
#include "device/outfile.h"

#include "device/cancel.h"
#include "device/descriptor.h"
#include "device/file_limit.h"
#include "device/write_signals.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

size_t alb_outfile_folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

bool alb_outfile_expand(const char *path, char *out, size_t size)
{
    const char *name = path + alb_outfile_folder_bytes(path);
    size_t used = 0;
    while (*path) {
        bool is_pid = path >= name && path[0] == '%' && path[1] == 'p';
        int wrote = is_pid ? snprintf(out + used, size - used, "%d", (int)getpid())
                           : snprintf(out + used, size - used, "%c", *path);
        used += (size_t)wrote;
        if (used >= size)
            return false;
        path += is_pid ? 2 : 1;
    }
    out[used] = 0;
    return true;
}

// Files that this process has had open. A forked child has none of them: it opens what its parent wrote as another
// process does.
static struct {
    pid_t pid;
    uint32_t count;
    struct {
        dev_t device;
        ino_t inode;
    } file[16]; // a name, and one with ".<pid>", for two kinds of files of each device, and then some
} seen;

// Whether this process had the file open before; from now on it had.
static bool was_seen(const struct stat *status)
{
    if (seen.pid != getpid())
        seen.count = 0;
    seen.pid = getpid();
    for (uint32_t i = 0; i < seen.count; i++) {
        if (seen.file[i].device == status->st_dev && seen.file[i].inode == status->st_ino)
            return true;
    }
    if (seen.count < ALB_COUNT(seen.file)) {
        seen.file[seen.count].device = status->st_dev;
        seen.file[seen.count++].inode = status->st_ino;
    }
    return false;
}

// Empties a file, or finds the end of what an earlier device of this process has written.
static bool begin(int fd, const struct stat *status)
{
    bool continues = was_seen(status) && status->st_size > 0;
    if (continues ? lseek(fd, 0, SEEK_END) < 0 : ftruncate(fd, 0) != 0)
        errno = 0; // what it had stays in front
    return continues;
}

// A pipe is waited for until it has a reader, whatever signals the program takes meanwhile.
static int open_to_write(const char *path)
{
    int fd;
    do
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    return fd;
}

// Opens and locks a file; EWOULDBLOCK if another process has it. It is emptied only when it is ours. What is no plain
// file has room for many writers: a second one of /dev/null must not make a file beside it.
static int open_locked(const char *path, int *fd, bool *continues)
{
    struct stat status;
    *continues = false;
    *fd = alb_descriptor_aside(open_to_write(path));
    if (*fd < 0)
        return errno;
    bool is_known = fstat(*fd, &status) == 0;
    if (is_known && !S_ISREG(status.st_mode))
        return 0;
    bool is_locked = flock(*fd, LOCK_EX | LOCK_NB) == 0;
    if (!is_locked && errno == EWOULDBLOCK) {
        close(*fd);
        *fd = -1;
        return EWOULDBLOCK;
    }
    if (is_known)
        *continues = begin(*fd, &status);
    return 0;
}

int alb_outfile_open(struct alb_outfile *file, const char *path)
{
    *file = (struct alb_outfile){.fd = -1};
    if (!alb_outfile_expand(path, file->path, sizeof(file->path) - 16))
        return ENAMETOOLONG;
    int error = open_locked(file->path, &file->fd, &file->continues);
    if (error == EWOULDBLOCK) {
        size_t length = strlen(file->path);
        snprintf(file->path + length, sizeof(file->path) - length, ".%d", (int)getpid());
        error = open_locked(file->path, &file->fd, &file->continues);
    }
    if (error)
        return error;
    file->buffer = malloc(ALB_OUTFILE_BUFFER_BYTES);
    if (!file->buffer) {
        alb_outfile_close(file);
        return ENOMEM;
    }
    return 0;
}

void alb_outfile_close(struct alb_outfile *file)
{
    alb_outfile_flush(file);
    if (file->fd >= 0)
        close(file->fd);
    free(file->buffer);
    file->fd = -1;
    file->buffer = NULL;
    file->used = 0;
}

static void give_up(struct alb_outfile *file)
{
    alb_log(ALB_LOG_WARNING, "%s: %s; nothing more is written to it", file->path, strerror(errno));
    close(file->fd);
    file->fd = -1;
}

void alb_outfile_flush(struct alb_outfile *file)
{
    uint32_t done = 0;
    sigset_t signals;
    int cancel = alb_cancel_off();
    alb_write_signals_hold(&signals);
    if (file->fd >= 0 && !alb_file_limit_allows(file->fd, file->used))
        give_up(file);
    while (file->fd >= 0 && done < file->used) {
        ssize_t wrote = write(file->fd, file->buffer + done, file->used - done);
        if (wrote > 0)
            done += (uint32_t)wrote;
        else if (errno != EINTR)
            give_up(file);
    }
    alb_write_signals_release(&signals);
    alb_cancel_back(cancel);
    file->used = 0;
}

void alb_outfile_reserve(struct alb_outfile *file, uint32_t length)
{
    if (file->used + length > ALB_OUTFILE_BUFFER_BYTES)
        alb_outfile_flush(file);
}

void alb_outfile_add(struct alb_outfile *file, const void *bytes, uint32_t length)
{
    const uint8_t *next = bytes;
    while (file->fd >= 0 && length > 0) {
        uint32_t part = ALB_MIN(length, ALB_OUTFILE_BUFFER_BYTES - file->used);
        memcpy(file->buffer + file->used, next, part);
        file->used += part;
        next += part;
        length -= part;
        if (file->used == ALB_OUTFILE_BUFFER_BYTES)
            alb_outfile_flush(file);
    }
}
