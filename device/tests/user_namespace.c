// SPDX-License-Identifier: BSD-2-Clause
#include "device/tests/user_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return is_written;
}

bool user_namespace_enter(int flags)
{
    char users[32], groups[32];
    snprintf(users, sizeof(users), "0 %u 1", (unsigned)geteuid());
    snprintf(groups, sizeof(groups), "0 %u 1", (unsigned)getegid());
    prctl(PR_SET_DUMPABLE, 1); // after a change of user /proc/self is root's without this
    return unshare(CLONE_NEWUSER | flags) == 0 && write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/uid_map", users) && write_text("/proc/self/gid_map", groups);
}
