// SPDX-License-Identifier: BSD-2-Clause
#define _GNU_SOURCE // fopencookie
#include "sim/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct file {
    int fd;
    int error; // the first of writing
};

// Less than length: an error, to stdio.
static ssize_t write_all(void *cookie, const char *bytes, size_t length)
{
    struct file *file = cookie;
    size_t done = 0;
    while (done < length && !file->error) {
        ssize_t wrote = write(file->fd, bytes + done, length - done);
        if (wrote >= 0)
            done += (size_t)wrote;
        else if (errno != EINTR)
            file->error = errno;
    }
    if (file->error)
        errno = file->error;
    return (ssize_t)done;
}

static int close_file(void *cookie)
{
    struct file *file = cookie;
    int error = file->error;
    if (close(file->fd) != 0 && !error)
        error = errno;
    free(file);
    errno = error ? error : errno;
    return error ? -1 : 0;
}

FILE *alb_sim_file_of(int fd)
{
    struct file *file = malloc(sizeof(*file));
    FILE *stream =
        file ? fopencookie(file, "w", (cookie_io_functions_t){.write = write_all, .close = close_file}) : NULL;
    if (stream) {
        *file = (struct file){.fd = fd};
        return stream;
    }
    int error = errno;
    free(file);
    close(fd);
    errno = error;
    return NULL;
}

FILE *alb_sim_file_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return fd < 0 ? NULL : alb_sim_file_of(fd);
}
