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

bool files_path_is_plain(const char *name)
{
    return strchr(name, '/') == NULL && is_plain(name, strlen(name));
}

const char *files_path_trouble(int error)
{
    switch (error) {
    case EINVAL:
        return "not a path within the served folder: it takes plain names with one \"/\" between them, none of them "
               "\".\", \"..\" or empty";
    case ELOOP:
        return "a symbolic link, which is not followed";
    case ENOTDIR:
        return "a part of the path is not a folder";
    case EACCES:
        return "the user that serves has no right to it: Permission denied";
    case ENXIO:
        return "not a file: a pipe, a socket or a device";
    default:
        return strerror(error);
    }
}

static bool is_link(int folder, const char *name)
{
    struct stat status;
    return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

// What is made safe in a folder is not so before the folder's own name is.
static bool make_folder(int parent, const char *name)
{
    return (mkdirat(parent, name, 0777) == 0 || errno == EEXIST) && fsync(parent) == 0;
}

// Closes folder.
static int descend(int folder, const char *name, bool makes_folders)
{
    int next = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && errno == ENOENT && makes_folders && make_folder(folder, name))
        next = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int error = errno;
    if (next < 0 && error == ENOTDIR && is_link(folder, name)) // open(2) says the same of both
        error = ELOOP;
    close(folder);
    errno = error;
    return next;
}

// Says before a folder is made whether each part is a plain name. 0, or an errno.
static int check(const char *path)
{
    for (;;) {
        size_t length = strcspn(path, "/");
        if (!is_plain(path, length))
            return length > NAME_MAX ? ENAMETOOLONG : EINVAL;
        if (!path[length])
            return 0;
        path += length + 1;
    }
}

int files_path_open_folder(int root, const char *path, bool makes_folders, char name[NAME_MAX + 1])
{
    int error = check(path);
    if (error) {
        errno = error;
        return -1;
    }
    int folder = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (folder >= 0) {
        size_t length = strcspn(path, "/");
        snprintf(name, NAME_MAX + 1, "%.*s", (int)length, path);
        if (!path[length])
            break;
        folder = descend(folder, name, makes_folders);
        path += length + 1;
    }
    return folder;
}
