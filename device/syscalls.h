// SPDX-License-Identifier: BSD-2-Clause
// The system calls of the data path, made without the C library's wrappers: in a program with threads these switch
// cancellation on and off around each call, which cost a twentieth of a round trip. Results and errno are the
// wrappers'.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int alb_sys_recvmmsg(int fd, struct mmsghdr *messages, unsigned count)
{
    return (int)syscall(SYS_recvmmsg, fd, messages, count, MSG_DONTWAIT, NULL);
}

static inline int alb_sys_sendmmsg(int fd, struct mmsghdr *messages, unsigned count)
{
    return (int)syscall(SYS_sendmmsg, fd, messages, count, MSG_DONTWAIT);
}

// One message costs less this way.
static inline ssize_t alb_sys_recvmsg(int fd, struct msghdr *message)
{
    return (ssize_t)syscall(SYS_recvmsg, fd, message, MSG_DONTWAIT);
}

static inline ssize_t alb_sys_sendmsg(int fd, const struct msghdr *message)
{
    return (ssize_t)syscall(SYS_sendmsg, fd, message, MSG_DONTWAIT);
}
