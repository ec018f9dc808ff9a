// SPDX-License-Identifier: BSD-2-Clause
// Paths within a folder.
#include "tools/files_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_plain(const char *part, size_t length)
{
    bool is_dots = (length == 1 || length == 2) && strncmp(part, "..", length) == 0;
    return length > 0 && length <= NAME_MAX && !is_dots;
}

// Closes folder.
static int descend(int folder, const char *name, bool makes_folders)
{
    int next = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && errno == ENOENT && makes_folders && (mkdirat(folder, name, 0777) == 0 || errno == EEXIST))
        next = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int error = errno == ELOOP || errno == ENOTDIR ? EACCES : errno;
    close(folder);
    errno = error;
    return next;
}

int files_path_open_folder(int root, const char *path, bool makes_folders, char name[NAME_MAX + 1])
{
    int folder = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (folder >= 0) {
        const char *slash = strchr(path, '/');
        size_t length = slash ? (size_t)(slash - path) : strlen(path);
        if (!is_plain(path, length)) {
            close(folder);
            errno = length > NAME_MAX ? ENAMETOOLONG : EACCES;
            return -1;
        }
        snprintf(name, NAME_MAX + 1, "%.*s", (int)length, path);
        if (!slash)
            break;
        folder = descend(folder, name, makes_folders);
        path = slash + 1;
    }
    return folder;
}
