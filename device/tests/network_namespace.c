// SPDX-License-Identifier: BSD-2-Clause
#include "device/tests/network_namespace.h"

#include "base/tests/test.h"
#include "device/tests/user_namespace.h"

#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT = 77 };

bool network_namespace_run(bool (*body)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(!user_namespace_enter(CLONE_NEWNET) ? CANNOT : !body());
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
        skip();
    return status == 0;
}

void network_namespace_set_link(const char *name, bool is_up)
{
    struct ifreq request = {.ifr_flags = 0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) != 0)
        abort();
    request.ifr_flags = (short)(is_up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    if (ioctl(fd, SIOCSIFFLAGS, &request) != 0)
        abort();
    close(fd);
}

void network_namespace_shell(const char *commands)
{
    if (system(commands) != 0)
        _exit(CANNOT);
}
