// SPDX-License-Identifier: BSD-2-Clause
// Slot, sockets and epoll of a process.
#include "device/port.h"

#include "base/log.h"
#include "device/carrier.h"
#include "device/clock.h"
#include "device/descriptor.h"
#include "device/slot_mark.h"
#include "device/syscalls.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// A socket that had something so often in a row is looked at by itself: each datagram for one that an epoll instance
// watches costs its sender 0.15 us (LESSONS 84).
#define TIMES_TO_UNWATCH 64

static int watch_one(struct alb_port *port, struct alb_socket *sock)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = sock};
    return alb_sys_epoll_control(port->epoll_fd, EPOLL_CTL_ADD, sock->fd, &event) == 0 ? 0 : errno;
}

static int watch(struct alb_port *port, struct alb_socket *sockets)
{
    int error = 0;
    for (uint32_t i = 0; i < port->address_count && !error; i++)
        error = watch_one(port, &sockets[i]);
    return error;
}

static void close_all(struct alb_port *port, struct alb_socket *sockets)
{
    for (uint32_t i = 0; i < port->address_count; i++)
        alb_socket_close(&sockets[i]);
}

static int open_files(struct alb_port *port)
{
    port->epoll_fd = alb_descriptor_aside(alb_sys_epoll_create());
    if (port->epoll_fd < 0)
        return errno;
    port->wake_fd = alb_descriptor_aside(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return port->wake_fd < 0 ? errno : 0;
}

static void close_files(struct alb_port *port)
{
    if (port->epoll_fd >= 0)
        close(port->epoll_fd);
    if (port->wake_fd >= 0)
        close(port->wake_fd);
    port->epoll_fd = port->wake_fd = -1;
}

// Without marks nothing is passed on to this process, and everything else works.
static void open_marks(struct alb_port *port)
{
    char text[ALB_ADDR_TEXT_MAX];
    for (uint32_t i = 0; i < port->address_count; i++) {
        port->marks[i] = alb_slot_mark_open(&port->addresses[i], port->slot);
        if (port->marks[i] < 0 && errno != EADDRINUSE)
            alb_log(ALB_LOG_WARNING, "no Unix socket (%s): what comes to UDP port %u of %s is not passed on to us",
                    strerror(errno), ALB_ROCE_PORT, alb_addr_format(&port->addresses[i], text));
    }
}

static void close_marks(struct alb_port *port)
{
    for (uint32_t i = 0; i < port->address_count; i++) {
        if (port->marks[i] >= 0)
            close(port->marks[i]);
        port->marks[i] = -1;
    }
}

static struct alb_port_file identify(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return (struct alb_port_file){0};
    return (struct alb_port_file){.device = status.st_dev, .inode = status.st_ino};
}

int alb_port_open(struct alb_port *port, const struct alb_addr *addresses, uint32_t count)
{
    alb_assert(count >= 1 && count <= ALB_DEVICE_ADDRESSES_MAX);
    *port = (struct alb_port){
        .address_count = count, .epoll_fd = -1, .rouses_fd = -1, .wake_fd = -1, .carrier.fd = -1, .links.fd = -1};
    for (uint32_t i = 0; i < count; i++)
        port->marks[i] = -1;
    memcpy(port->addresses, addresses, count * sizeof(*addresses));
    int error = alb_slot_claim(addresses, count, port->own, &port->slot);
    if (error)
        return error;
    error = open_files(port);
    if (!error)
        error = watch(port, port->own);
    if (error) {
        close_files(port);
        close_all(port, port->own);
        return error;
    }
    if (port->slot != 0)
        open_marks(port);
    port->hot = &port->own[0];
    port->wake_file = identify(port->wake_fd);
    port->own_file = identify(port->own[0].fd);
    alb_links_open(&port->links);
    return 0;
}

void alb_port_close(struct alb_port *port)
{
    // The epoll instance before what it watches: in a forked child it is the parent's too, and goes on watching.
    close_files(port);
    alb_groups_leave_all(&port->groups, port->epoll_fd);
    alb_path_sockets_close(&port->paths);
    close_marks(port);
    close_all(port, port->own);
    alb_links_close(&port->links);
    alb_socket_close(&port->carrier);
    if (port->has_front)
        close_all(port, port->front);
    port->has_front = false;
}

static void mark_empty(struct alb_socket *sock, alb_time at)
{
    sock->rx_was_full = false;
    sock->empty_at = ALB_MAX(sock->empty_at, at);
}

uint32_t alb_port_ready(struct alb_port *port, const struct alb_port_news *news, struct alb_socket *ready[],
                        uint32_t capacity)
{
    struct epoll_event events[2 * ALB_DEVICE_ADDRESSES_MAX];
    struct alb_socket *unwatched = atomic_load_explicit(&port->unwatched, memory_order_relaxed);
    bool is_told = news && news->is_known && news->unwatched == unwatched;
    uint32_t ready_count = 0;
    if (unwatched && is_told && !news->of_unwatched)
        mark_empty(unwatched, news->looked_at);
    else if (unwatched)
        ready[ready_count++] = unwatched;
    if (is_told && !news->of_watched)
        return ready_count;
    uint32_t room = ALB_MIN(capacity - ready_count, (uint32_t)ALB_COUNT(events));
    int count = alb_sys_epoll_look(port->epoll_fd, events, (int)room);
    for (int i = 0; i < count; i++)
        ready[ready_count++] = events[i].data.ptr;
    return ready_count;
}

// In place of the one so far. Who sleeps may do so without the new one, and is woken.
static void unwatch(struct alb_port *port, struct alb_socket *sock)
{
    struct alb_socket *before = atomic_load_explicit(&port->unwatched, memory_order_relaxed);
    if (before && watch_one(port, before) != 0)
        return;
    atomic_store(&port->unwatched, sock);
    alb_sys_epoll_control(port->epoll_fd, EPOLL_CTL_DEL, sock->fd, NULL);
    alb_port_wake(port);
}

void alb_port_note_found(struct alb_port *port, struct alb_socket *sock)
{
    if (sock != port->hot)
        port->hot_times = 0;
    port->hot = sock;
    // Sockets of groups come and go, and are left where they are.
    if (port->rouses_fd < 0 && ++port->hot_times == TIMES_TO_UNWATCH && !sock->is_group &&
        sock != atomic_load_explicit(&port->unwatched, memory_order_relaxed))
        unwatch(port, sock);
}

int alb_port_rouse(struct alb_port *port, int fd)
{
    struct alb_socket *unwatched = atomic_load_explicit(&port->unwatched, memory_order_relaxed);
    struct epoll_event event = {.events = EPOLLIN};
    if (port->rouses_fd >= 0)
        return EBUSY;
    int error = unwatched ? watch_one(port, unwatched) : 0;
    if (error)
        return error;
    atomic_store(&port->unwatched, NULL);
    port->hot_times = 0;
    if (alb_sys_epoll_control(fd, EPOLL_CTL_ADD, port->epoll_fd, &event) != 0)
        return errno;
    port->rouses_fd = fd;
    return 0;
}

void alb_port_rouse_end(struct alb_port *port)
{
    if (port->rouses_fd >= 0)
        alb_sys_epoll_control(port->rouses_fd, EPOLL_CTL_DEL, port->epoll_fd, NULL);
    port->rouses_fd = -1;
}

// A daemon that closes all descriptors it has, say. Nothing is sent or received any more.
static void note_closed(struct alb_port *port)
{
    if (!atomic_exchange(&port->is_closed, true))
        alb_log(ALB_LOG_ERROR, "the program has closed descriptors that the device had open, which can do nothing any "
                               "more: close descriptors before devices are opened");
}

// It would return at once each time that something is waited for.
static void pause_closed(struct alb_port *port)
{
    const struct timespec pause = alb_timespec(10 * ALB_NS_PER_MS);
    note_closed(port);
    nanosleep(&pause, NULL);
}

static bool is_still(int fd, const struct alb_port_file *file)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return errno != EBADF;
    return !file->inode || (status.st_dev == file->device && status.st_ino == file->inode);
}

// All eventfds may be one inode; a socket is one of its own.
bool alb_port_is_open(const struct alb_port *port)
{
    return is_still(port->wake_fd, &port->wake_file) && is_still(port->own[0].fd, &port->own_file);
}

static struct timespec span_until(alb_time now, alb_time until)
{
    return alb_timespec(until > now ? until - now : 0);
}

// Waits for one of the files, of which one is wake_fd. Returns how many have something.
static int wait_for(struct alb_port *port, struct pollfd *files, nfds_t count, const struct timespec *span)
{
    int found = ppoll(files, count, span, NULL);
    short events = 0;
    for (nfds_t i = 0; found > 0 && i < count; i++)
        events |= files[i].revents;
    if (events & POLLNVAL)
        pause_closed(port);
    return found;
}

// What has something and gives nothing is another file by now: /dev/null, or a pipe without a writer.
static void take_wakes(struct alb_port *port, const struct pollfd *file)
{
    if (file->revents == 0 || file->revents & POLLNVAL)
        return;
    ssize_t took = file->revents & POLLIN ? alb_sys_eventfd_take(port->wake_fd) : 0;
    if (took == 0 || (took < 0 && errno != EAGAIN && errno != EINTR))
        pause_closed(port);
}

struct alb_port_news alb_port_sleep(struct alb_port *port, alb_time until, bool for_links)
{
    const struct alb_socket *unwatched = atomic_load(&port->unwatched);
    struct pollfd files[] = {
        {.fd = port->epoll_fd, .events = POLLIN},
        {.fd = port->wake_fd, .events = POLLIN},
        {.fd = unwatched ? unwatched->fd : -1, .events = POLLIN},
        {.fd = for_links ? port->links.fd : -1, .events = POLLIN},
    };
    alb_time now = alb_clock_now();
    struct timespec span = span_until(now, until);
    int count = wait_for(port, files, ALB_COUNT(files), until == ALB_TIME_NEVER ? NULL : &span);
    if (count > 0)
        take_wakes(port, &files[1]);
    return (struct alb_port_news){
        .is_known = count >= 0,
        .looked_at = count == 0 ? until : now,
        .of_links = count > 0 && files[3].revents & (POLLIN | POLLERR),
        .of_watched = count > 0 && files[0].revents,
        .of_unwatched = count > 0 && files[2].revents,
        .unwatched = unwatched,
    };
}

void alb_port_nap(struct alb_port *port, alb_time until)
{
    struct pollfd file = {.fd = port->wake_fd, .events = POLLIN};
    struct timespec span = span_until(alb_clock_now(), until);
    if (wait_for(port, &file, 1, &span) > 0)
        take_wakes(port, &file);
}

void alb_port_wake(struct alb_port *port)
{
    if (port->wake_fd < 0) // in a forked child, where no thread sleeps
        return;
    if (alb_sys_eventfd_add(port->wake_fd) < 0 && errno == EBADF)
        note_closed(port);
}

// The socket of our slot, path 0.
static struct alb_socket *own_socket(struct alb_port *port, const struct alb_addr *local)
{
    for (uint32_t i = 0; i < port->address_count; i++) {
        if (alb_addr_equals(&port->addresses[i], local))
            return &port->own[i];
    }
    return NULL;
}

struct alb_socket *alb_port_path_socket(struct alb_port *port, const struct alb_addr *local, uint16_t path,
                                        bool *is_own_path, alb_time now)
{
    struct alb_socket *own = own_socket(port, local);
    *is_own_path = true;
    if (!own || path == 0)
        return own;
    struct alb_socket *sender = alb_path_sockets_get(&port->paths, (uint32_t)(own - port->own), local, path, now);
    *is_own_path = sender != NULL;
    return sender ? sender : own;
}

// Held while sockets are opened beside the registry's mutex: a forked child closes those that its parent has in front.
static pthread_mutex_t front_mutex = PTHREAD_MUTEX_INITIALIZER;

static bool take_front(struct alb_port *port)
{
    if (alb_port_is_front(port) || alb_slot_bind_front(port->addresses, port->address_count, port->front) != 0)
        return false;
    if (watch(port, port->front) != 0) {
        close_all(port, port->front);
        return false;
    }
    port->has_front = true;
    return true;
}

bool alb_port_take_front(struct alb_port *port)
{
    pthread_mutex_lock(&front_mutex);
    bool is_taken = take_front(port);
    pthread_mutex_unlock(&front_mutex);
    return is_taken;
}

void alb_ports_before_fork(void)
{
    pthread_mutex_lock(&front_mutex);
}

void alb_ports_after_fork(void)
{
    pthread_mutex_unlock(&front_mutex);
}

// A host without 127.0.0.1 has no carrier, so that ::1 has no multicast there, and everything else.
static int open_carrier(struct alb_port *port)
{
    int error = alb_carrier_open(&port->carrier, port->groups.carrier_interface);
    if (!error)
        return 0;
    port->carrier.fd = -1;
    port->groups.carrier_interface = 0;
    return error == EADDRNOTAVAIL ? 0 : error;
}

static void add_interfaces(struct alb_port *port, const uint32_t *ifindexes)
{
    for (uint32_t i = 0; i < port->address_count; i++) {
        alb_groups_add_interface(&port->groups, &port->addresses[i], ifindexes[i]);
        alb_socket_set_multicast_interface(&port->own[i], ifindexes[i]);
    }
}

int alb_port_set_interfaces(struct alb_port *port, const uint32_t *ifindexes)
{
    add_interfaces(port, ifindexes);
    return port->groups.carrier_interface ? open_carrier(port) : 0;
}

// Perhaps it is one of those that go.
static void leave_hot_group(struct alb_port *port)
{
    if (port->hot->is_group)
        port->hot = &port->own[0];
}

int alb_port_change_interfaces(struct alb_port *port, const uint32_t *ifindexes)
{
    leave_hot_group(port);
    alb_groups_forget_interfaces(&port->groups);
    add_interfaces(port, ifindexes);
    return alb_groups_join_again(&port->groups, port->epoll_fd);
}

void alb_port_leave_group(struct alb_port *port, const struct alb_addr *group)
{
    leave_hot_group(port);
    alb_groups_leave(&port->groups, group, port->epoll_fd);
}
