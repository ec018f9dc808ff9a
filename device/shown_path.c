// SPDX-License-Identifier: BSD-2-Clause
// Paths in messages.
#include "device/shown_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *alb_shown_path(const char *path, char text[ALB_SHOWN_PATH_MAX])
{
    char folder[PATH_MAX], found[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!slash || strncmp(path, "/proc/self/fd/", 14) != 0)
        return path;
    int length = snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    if (length >= (int)sizeof(folder) || !realpath(folder, found))
        return path;
    length = snprintf(text, ALB_SHOWN_PATH_MAX, "%s%s", found, slash);
    return length < ALB_SHOWN_PATH_MAX ? text : path;
}
