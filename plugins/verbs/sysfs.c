// SPDX-License-Identifier: BSD-2-Clause
// The two helpers for reading sysfs that rdma-core's libraries import. They serve other devices: this one has no
// directory there.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buffer, size_t size);

const char *ibv_get_sysfs_path(void)
{
    return "/sys";
}

// Reads a file of one line without its newline; the length, or -1 with errno. ERANGE: there is no room for its end.
int ibv_read_sysfs_file(const char *dir, const char *file, char *buffer, size_t size)
{
    char path[PATH_MAX];
    if (!dir || !file || !buffer || size == 0 || size > INT_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t length = read(fd, buffer, size);
    close(fd);
    if (length > 0 && buffer[length - 1] == '\n')
        buffer[--length] = '\0';
    else if (length >= 0 && (size_t)length < size)
        buffer[length] = '\0';
    else if (length >= 0) {
        errno = ERANGE;
        return -1;
    }
    return (int)length;
}
