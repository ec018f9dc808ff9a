// SPDX-License-Identifier: BSD-2-Clause
// What rsockets of all types begin and end with.
#include "plugins/rdmacm/rsocket.h"

#include "device/descriptor.h"
#include "device/mutex.h"
#include "device/syscalls.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

int rsocket_listen_to(struct rsocket *rs, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return alb_sys_epoll_control(rs->fd, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

void rsocket_set_blocking(int fd, bool is_blocking)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, is_blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

static int open_descriptors(struct rsocket *rs)
{
    rs->fd = rsocket_number(alb_sys_epoll_create());
    if (rs->fd < 0)
        return errno;
    rs->wake_fd = alb_descriptor_aside(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (rs->wake_fd < 0)
        return errno;
    return rsocket_listen_to(rs, rs->wake_fd);
}

int rsocket_init(struct rsocket *rs, const struct rsocket_ops *ops, int domain, int type)
{
    rs->ops = ops;
    rs->domain = domain;
    rs->type = type;
    rs->fd = rs->wake_fd = rs->service_fd = -1;
    rs->settings = rsocket_settings_default();
    atomic_init(&rs->references, 1);
    pthread_mutex_init(&rs->lock, NULL);
    int error = open_descriptors(rs);
    if (!error)
        error = rsocket_table_add(rs);
    if (error)
        rsocket_fini(rs);
    return error;
}

void rsocket_fini(struct rsocket *rs)
{
    if (rs->wake_fd >= 0)
        close(rs->wake_fd);
    if (rs->fd >= 0)
        close(rs->fd);
    pthread_mutex_destroy(&rs->lock);
}

void rsocket_lock(struct rsocket *rs)
{
    pthread_mutex_lock(&rs->lock);
}

bool rsocket_lock_until(struct rsocket *rs, alb_time until)
{
    return alb_mutex_lock_until(&rs->lock, until);
}

void rsocket_unlock(struct rsocket *rs)
{
    pthread_mutex_unlock(&rs->lock);
}

struct rsocket *rsocket_take(int fd)
{
    rsocket_cancel_off();
    struct rsocket *rs = rsocket_get(fd);
    if (rs) {
        rsocket_lock(rs);
        if (!rs->is_closed)
            return rs;
        rsocket_unlock(rs); // another thread has closed it meanwhile: what it works with may be gone
        rsocket_put(rs);
    }
    rsocket_cancel_back();
    errno = EBADF;
    return NULL;
}

void rsocket_give(struct rsocket *rs)
{
    rsocket_unlock(rs);
    rsocket_put(rs);
    rsocket_cancel_back();
}
