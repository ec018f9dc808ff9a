// SPDX-License-Identifier: BSD-2-Clause
#include "device/event_file.h"

#include "device/cancel.h"
#include "device/descriptor.h"
#include "device/syscalls.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int open_both(struct alb_event_file *file)
{
    struct epoll_event readable = {.events = EPOLLIN};
    file->count_fd = alb_descriptor_aside(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC));
    if (file->count_fd < 0)
        return errno;
    file->fd = alb_sys_epoll_create();
    if (file->fd >= 0 && alb_sys_epoll_control(file->fd, EPOLL_CTL_ADD, file->count_fd, &readable) == 0)
        return 0;
    int error = errno;
    if (file->fd >= 0)
        close(file->fd);
    close(file->count_fd);
    return error;
}

int alb_event_file_open(struct alb_event_file *file)
{
    int cancel = alb_cancel_off(), error = open_both(file);
    alb_cancel_back(cancel);
    return error;
}

void alb_event_file_close(const struct alb_event_file *file)
{
    int cancel = alb_cancel_off();
    close(file->fd);
    close(file->count_fd);
    alb_cancel_back(cancel);
}

void alb_event_file_add(const struct alb_event_file *file)
{
    ssize_t written = alb_sys_eventfd_add(file->count_fd);
    (void)written;
}

// Kernels before 5.9, and those that filter calls, know no other way to ask without waiting. A thread that begins to
// wait just then is told EAGAIN, and begins again.
static bool try_by_flag(int count_fd)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // the flag is the descriptor's, not the thread's
    pthread_mutex_lock(&mutex);
    fcntl(count_fd, F_SETFL, O_NONBLOCK);
    bool is_taken = alb_sys_eventfd_take(count_fd) >= 0;
    fcntl(count_fd, F_SETFL, 0);
    pthread_mutex_unlock(&mutex);
    return is_taken;
}

bool alb_event_file_drop(const struct alb_event_file *file)
{
    if (alb_sys_eventfd_try(file->count_fd) >= 0)
        return true;
    return errno != EAGAIN && errno != EBADF && try_by_flag(file->count_fd);
}

enum alb_event_file_mode alb_event_file_mode(const struct alb_event_file *file)
{
    int flags = alb_sys_flags(file->fd);
    if (flags < 0)
        return ALB_EVENT_FILE_IS_CLOSED;
    return flags & O_NONBLOCK ? ALB_EVENT_FILE_DOES_NOT_BLOCK : ALB_EVENT_FILE_BLOCKS;
}

// Takes one if it is there. 0, an errno, or EINPROGRESS: it is to be waited for.
static __attribute__((noinline)) int take_without_waiting(const struct alb_event_file *file)
{
    if (alb_event_file_drop(file))
        return 0;
    if (errno == EBADF)
        return EBADF;
    int flags = alb_sys_flags(file->fd);
    if (flags < 0)
        return errno;
    return flags & O_NONBLOCK ? EAGAIN : EINPROGRESS;
}

// What waits has no variables on the stack: AddressSanitizer does not see a thread that is cancelled leave a function.
int alb_event_file_take(const struct alb_event_file *file)
{
    static _Thread_local uint64_t count;
    int error = take_without_waiting(file);
    if (error != EINPROGRESS)
        return error;
    while ((error = read(file->count_fd, &count, sizeof(count)) == sizeof(count) ? 0 : errno) == EAGAIN)
        ;
    return error;
}
