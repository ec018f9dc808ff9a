// SPDX-License-Identifier: BSD-2-Clause
// The system calls of the data path, made without the C library's wrappers: in a program with threads these switch
// cancellation on and off around each call, which cost a twentieth of a round trip, and a thread that was cancelled
// there would take the token along (device/cancel.h). Results and errno are the wrappers'. Those of epoll are here,
// too, since librspreload (from rdma-core 65 on) stands in front of the wrappers and makes rsockets of what they are
// given.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
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

// One piece to one peer (NULL: the one that the socket is connected to), and nothing else: less still.
static inline ssize_t alb_sys_sendto(int fd, const struct iovec *piece, const struct sockaddr *peer, socklen_t length)
{
    return (ssize_t)syscall(SYS_sendto, fd, piece->iov_base, piece->iov_len, MSG_DONTWAIT, peer, length);
}

static inline int alb_sys_connect(int fd, const struct sockaddr *peer, socklen_t length)
{
    return (int)syscall(SYS_connect, fd, peer, length);
}

static inline int alb_sys_epoll_create(void)
{
    return (int)syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
}

static inline int alb_sys_epoll_control(int fd, int operation, int target, struct epoll_event *event)
{
    return (int)syscall(SYS_epoll_ctl, fd, operation, target, event);
}

static inline int alb_sys_epoll_wait(int fd, struct epoll_event *events, int capacity, int timeout_ms)
{
    return (int)syscall(SYS_epoll_pwait, fd, events, capacity, timeout_ms, NULL, _NSIG / 8);
}

// Looks, and does not wait.
static inline int alb_sys_epoll_look(int fd, struct epoll_event *events, int capacity)
{
    return alb_sys_epoll_wait(fd, events, capacity, 0);
}

// Adds one to an eventfd.
static inline ssize_t alb_sys_eventfd_add(int fd)
{
    const uint64_t one = 1;
    return (ssize_t)syscall(SYS_write, fd, &one, sizeof(one));
}

// Takes what is in it, if it is not a semaphore.
static inline ssize_t alb_sys_eventfd_take(int fd)
{
    uint64_t count;
    return (ssize_t)syscall(SYS_read, fd, &count, sizeof(count));
}

// Takes one from an eventfd that is a semaphore, if one is there; does not wait, even if the descriptor blocks. Returns
// what preadv2(2) does. Kernels before 5.9 refuse it (EOPNOTSUPP).
static inline ssize_t alb_sys_eventfd_try(int fd)
{
    uint64_t count;
    struct iovec iov = {.iov_base = &count, .iov_len = sizeof(count)};
    return (ssize_t)syscall(SYS_preadv2, fd, &iov, 1, -1L, -1L, RWF_NOWAIT);
}

// A descriptor's status flags, or -1.
static inline int alb_sys_flags(int fd)
{
    return (int)syscall(SYS_fcntl, fd, F_GETFL);
}

static inline int alb_sys_poll(struct pollfd *file, int timeout_ms)
{
    struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    return (int)syscall(SYS_ppoll, file, 1, &timeout, NULL, _NSIG / 8);
}
