// SPDX-License-Identifier: BSD-2-Clause
// The service thread: connections are made and accepted, their end is noticed, and datagrams that come through UDP are
// taken while the program does something else. There is one for the process, from its first rsocket on.
#include "plugins/rdmacm/rsocket.h"

#include "device/descriptor.h"
#include "device/spawn.h"
#include "device/syscalls.h"

#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    int epoll_fd; // valid once it runs
    bool is_running;
} service = {.lock = PTHREAD_MUTEX_INITIALIZER, .epoll_fd = -1};

static int watch(struct rsocket *rs, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = rs->fd};
    return alb_sys_epoll_control(service.epoll_fd, operation, rs->service_fd, &event) ? errno : 0;
}

static void serve(int fd)
{
    struct rsocket *rs = rsocket_get(fd);
    if (!rs)
        return; // it was closed meanwhile
    rsocket_lock(rs);
    if (!rs->is_closed && rs->ops->serve(rs))
        rsocket_service_again(rs);
    rsocket_unlock(rs);
    rsocket_put(rs);
}

// A killed process sends nothing, and no kernel does it in its place: a side that only receives would wait for ever.
static void probe_all(void)
{
    struct rsocket *rs;
    for (int fd = 0; (rs = rsocket_table_next(fd)); fd++) {
        rsocket_lock(rs);
        fd = rs->fd;
        if (!rs->is_closed && rs->ops->probe)
            rs->ops->probe(rs);
        rsocket_unlock(rs);
        rsocket_put(rs);
    }
}

static void *run(void *unused)
{
    enum { EVENTS = 16, PROBE_MS = 5000 };
    struct epoll_event events[EVENTS];
    alb_time probed = alb_device_now();
    for (;;) {
        int count = alb_sys_epoll_wait(service.epoll_fd, events, EVENTS, PROBE_MS);
        for (int i = 0; i < count; i++)
            serve(events[i].data.fd);
        if (alb_device_now() - probed < PROBE_MS * ALB_NS_PER_MS)
            continue;
        probe_all();
        probed = alb_device_now();
    }
    return NULL;
}

static int start_thread(void)
{
    pthread_t thread;
    int error = alb_spawn(&thread, "albedo/rsockets", run, NULL);
    if (!error)
        pthread_detach(thread);
    return error;
}

static int start(void)
{
    int error = 0;
    pthread_mutex_lock(&service.lock);
    if (!service.is_running) {
        service.epoll_fd = alb_descriptor_aside(alb_sys_epoll_create());
        error = service.epoll_fd < 0 ? errno : start_thread();
        service.is_running = !error;
        if (error && service.epoll_fd >= 0)
            close(service.epoll_fd);
    }
    pthread_mutex_unlock(&service.lock);
    return error;
}

int rsocket_service_watch(struct rsocket *rs)
{
    int error = start();
    return error ? error : watch(rs, EPOLL_CTL_ADD);
}

// It cannot fail: the descriptor is there, and so is its entry.
void rsocket_service_again(struct rsocket *rs)
{
    if (rs->service_fd >= 0)
        watch(rs, EPOLL_CTL_MOD);
}

void rsocket_service_after_fork(void)
{
    if (service.is_running)
        close(service.epoll_fd);
    service.is_running = false;
    pthread_mutex_init(&service.lock, NULL);
}
