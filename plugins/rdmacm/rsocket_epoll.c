// SPDX-License-Identifier: BSD-2-Clause
// repoll_create, repoll_ctl, repoll_wait: epoll(7) of rsockets and ordinary descriptors together. An instance is an
// rsocket of a type of its own, which has a number, a lock and a way to be woken, and is closed by rclose. Ordinary
// descriptors are in a true epoll instance behind it; rsockets are in a list, and one call of rpoll's machinery waits
// for both. Errors are in errno, as epoll's: librspreload hands them on.
#include "device/descriptor.h"
#include "device/syscalls.h"
#include "plugins/rdmacm/rsocket.h"

#include <stdlib.h>
#include <unistd.h>

_Static_assert(POLLIN == EPOLLIN && POLLPRI == EPOLLPRI && POLLOUT == EPOLLOUT && POLLERR == EPOLLERR &&
                   POLLHUP == EPOLLHUP && POLLRDHUP == EPOLLRDHUP && POLLRDNORM == EPOLLRDNORM,
               "what poll(2) says is what epoll(7) says");

// Beside the rsockets, in a call's question.
enum { WAKE, PLAIN, OTHERS };

enum {
    FEW = 32,
    EVENTS_OF_POLL = 0x3fff, // the others are options
    LOOK_AGAIN = -EINPROGRESS,
};

struct watched {
    struct rsocket *rs; // with a reference, so that its number is no other's
    struct epoll_event event;
    bool is_off; // EPOLLONESHOT: it has been told of
};

struct instance {
    struct rsocket rs;
    int plain_fd;
    struct watched *watched;
    uint32_t count, capacity;
    uint32_t turn; // who is told of first, where there is no room for all
};

static struct instance *instance_of(struct rsocket *rs)
{
    return ALB_CONTAINER_OF(rs, struct instance, rs);
}

// ---- the list of rsockets

static struct watched *find(struct instance *instance, const struct rsocket *rs)
{
    for (uint32_t i = 0; i < instance->count; i++)
        if (instance->watched[i].rs == rs)
            return &instance->watched[i];
    return NULL;
}

static bool make_room(struct instance *instance)
{
    if (instance->count < instance->capacity)
        return true;
    uint32_t capacity = instance->capacity ? 2 * instance->capacity : 8;
    struct watched *watched = realloc(instance->watched, capacity * sizeof(*watched));
    if (!watched)
        return false;
    instance->watched = watched;
    instance->capacity = capacity;
    return true;
}

static int add(struct instance *instance, struct rsocket *rs, const struct epoll_event *event)
{
    if (!make_room(instance))
        return ENOMEM;
    rsocket_lock(rs);
    bool is_closed = rs->is_closed;
    if (!is_closed)
        atomic_fetch_add(&rs->watchers, 1); // who closes it looks for us from now on
    rsocket_unlock(rs);
    if (is_closed)
        return EBADF;
    instance->watched[instance->count++] = (struct watched){.rs = rsocket_ref(rs), .event = *event};
    return 0;
}

static void drop(struct instance *instance, struct watched *watched)
{
    struct rsocket *rs = watched->rs;
    *watched = instance->watched[--instance->count];
    atomic_fetch_sub(&rs->watchers, 1);
    rsocket_put(rs);
}

static int change_rsocket(struct instance *instance, int operation, struct rsocket *rs, const struct epoll_event *event)
{
    struct watched *watched = find(instance, rs);
    if (operation == EPOLL_CTL_ADD)
        return watched ? EEXIST : add(instance, rs, event);
    if (operation != EPOLL_CTL_MOD && operation != EPOLL_CTL_DEL)
        return EINVAL;
    if (!watched)
        return ENOENT;
    if (operation == EPOLL_CTL_DEL)
        drop(instance, watched);
    else
        *watched = (struct watched){.rs = rs, .event = *event};
    return 0;
}

// ---- as an rsocket

static int refuse_name(struct rsocket *rs, const struct sockaddr *address, socklen_t length)
{
    return ENOTSOCK;
}

static ssize_t refuse_send(struct rsocket *rs, struct rsocket_cursor *from, int flags, const struct sockaddr *to,
                           socklen_t length)
{
    return -EINVAL;
}

static ssize_t refuse_receive(struct rsocket *rs, struct rsocket_cursor *to, int flags, struct sockaddr_storage *from)
{
    return -EINVAL;
}

static int refuse_shutdown(struct rsocket *rs, int how)
{
    return ENOTSOCK;
}

static int refuse_address(struct rsocket *rs, bool is_peer, struct sockaddr_storage *out)
{
    return ENOTSOCK;
}

static int refuse_set(struct rsocket *rs, int level, int name, const void *value, socklen_t length)
{
    return ENOTSOCK;
}

static int refuse_get(struct rsocket *rs, int level, int name, void *value, socklen_t *length)
{
    return ENOTSOCK;
}

static bool progress(struct rsocket *rs)
{
    return false;
}

static bool arm(struct rsocket *rs)
{
    return true;
}

static bool serve(struct rsocket *rs)
{
    return false;
}

static short asked_of(const struct watched *watched)
{
    return (short)(watched->event.events & EVENTS_OF_POLL);
}

// Of rpoll, which is woken by ordinary descriptors only.
static short events(struct rsocket *rs)
{
    struct instance *instance = instance_of(rs);
    struct pollfd plain = {.fd = instance->plain_fd, .events = POLLIN};
    bool is_ready = alb_sys_poll(&plain, 0) > 0;
    for (uint32_t i = 0; i < instance->count && !is_ready; i++) {
        const struct watched *watched = &instance->watched[i];
        is_ready = !watched->is_off && rsocket_look(watched->rs, asked_of(watched)) != 0;
    }
    return is_ready ? POLLIN | POLLRDNORM : 0;
}

static void close_instance(struct rsocket *rs, alb_time until)
{
    struct instance *instance = instance_of(rs);
    while (instance->count > 0)
        drop(instance, instance->watched);
}

static void free_instance(struct rsocket *rs)
{
    struct instance *instance = instance_of(rs);
    rsocket_fini(rs);
    close(instance->plain_fd);
    free(instance->watched);
    free(instance);
}

static const struct rsocket_ops ops = {
    .bind = refuse_name,
    .connect = refuse_name,
    .send = refuse_send,
    .receive = refuse_receive,
    .shutdown = refuse_shutdown,
    .progress = progress,
    .arm = arm,
    .events = events,
    .serve = serve,
    .close = close_instance,
    .address = refuse_address,
    .set_option = refuse_set,
    .get_option = refuse_get,
    .free = free_instance,
};

bool rsocket_is_epoll(const struct rsocket *rs)
{
    return rs->ops == &ops;
}

void rsocket_epoll_forget(const struct rsocket *rs)
{
    struct rsocket *other;
    for (int fd = 0; atomic_load(&rs->watchers) > 0 && (other = rsocket_table_next(fd)); fd++) {
        fd = other->fd;
        if (rsocket_is_epoll(other)) {
            rsocket_lock(other);
            struct watched *watched = find(instance_of(other), rs);
            if (watched)
                drop(instance_of(other), watched);
            rsocket_wake(other);
            rsocket_unlock(other);
        }
        rsocket_put(other);
    }
}

// ---- the calls

static int create(struct instance *instance)
{
    int error = rsocket_init(&instance->rs, &ops, AF_UNSPEC, 0);
    if (error)
        return error;
    error = rsocket_listen_to(&instance->rs, instance->plain_fd);
    if (error) {
        rsocket_table_take(instance->rs.fd);
        rsocket_fini(&instance->rs);
    }
    return error;
}

// EPOLL_CLOEXEC goes without saying.
int repoll_create(int flags)
{
    if (flags & ~EPOLL_CLOEXEC)
        return rdmacm_fail(EINVAL);
    struct instance *instance = calloc(1, sizeof(*instance));
    if (!instance)
        return rdmacm_fail(ENOMEM);
    instance->plain_fd = alb_descriptor_aside(alb_sys_epoll_create());
    int error = instance->plain_fd < 0 ? errno : create(instance);
    if (!error)
        return instance->rs.fd;
    if (instance->plain_fd >= 0)
        close(instance->plain_fd);
    free(instance);
    return rdmacm_fail(error);
}

static int change(struct instance *instance, int operation, int fd, struct epoll_event *event)
{
    struct rsocket *rs = rsocket_get(fd);
    if (!rs)
        return alb_sys_epoll_control(instance->plain_fd, operation, fd, event) ? errno : 0;
    int error = 0;
    if (rsocket_is_epoll(rs)) // one within another could not be woken by what is in it
        error = rs == &instance->rs ? EINVAL : ELOOP;
    else
        error = change_rsocket(instance, operation, rs, event);
    rsocket_put(rs);
    if (!error)
        rsocket_wake(&instance->rs); // with another question
    return error;
}

int repoll_ctl(int number, int operation, int fd, struct epoll_event *event)
{
    if (!event && operation != EPOLL_CTL_DEL)
        return rdmacm_fail(EFAULT);
    struct rsocket *rs = rsocket_take(number);
    if (!rs)
        return -1;
    int error = rsocket_is_epoll(rs) ? change(instance_of(rs), operation, fd, event) : EINVAL;
    rsocket_give(rs);
    return rdmacm_result(error);
}

// ---- waiting

// One look, or sleep. The list may be another meanwhile; then the instance was woken.
struct call {
    struct instance *instance;
    struct pollfd *fds;
    struct pollfd few[FEW];
    uint32_t count; // of the rsockets behind the others
    uint64_t entered;
};

static bool ask(struct call *call)
{
    struct instance *instance = call->instance;
    call->count = instance->count;
    call->fds = call->few;
    if (OTHERS + call->count > FEW)
        call->fds = calloc(OTHERS + call->count, sizeof(*call->fds));
    if (!call->fds)
        return false;
    call->fds[WAKE] = (struct pollfd){.fd = instance->rs.wake_fd, .events = POLLIN};
    call->fds[PLAIN] = (struct pollfd){.fd = instance->plain_fd, .events = POLLIN};
    for (uint32_t i = 0; i < call->count; i++) {
        const struct watched *watched = &instance->watched[i];
        call->fds[OTHERS + i] =
            (struct pollfd){.fd = watched->is_off ? -1 : watched->rs->fd, .events = asked_of(watched)};
    }
    rsocket_enter(&instance->rs, &call->entered);
    return true;
}

static void leave(const struct call *call)
{
    rsocket_leave(&call->instance->rs, call->entered);
    if (call->fds != call->few)
        free(call->fds);
}

// The thread that sleeps is cancelled.
static void leave_call(void *argument)
{
    const struct call *call = argument;
    struct rsocket *rs = &call->instance->rs;
    rsocket_lock(rs);
    leave(call);
    rsocket_unlock(rs);
    rsocket_put(rs);
}

static int tell_of_plain(const struct instance *instance, struct epoll_event *to, int capacity)
{
    int count = capacity > 0 ? alb_sys_epoll_look(instance->plain_fd, to, capacity) : 0;
    return ALB_MAX(count, 0);
}

static int tell_of_rsockets(const struct call *call, struct epoll_event *to, int capacity)
{
    struct instance *instance = call->instance;
    int told = 0;
    for (uint32_t i = 0; i < call->count && told < capacity; i++) {
        uint32_t at = (instance->turn / 2 + i) % call->count;
        struct watched *watched = &instance->watched[at];
        short found = (short)(call->fds[OTHERS + at].revents & ~POLLNVAL);
        if (!found || watched->is_off) // by another thread
            continue;
        to[told++] = (struct epoll_event){.events = (uint16_t)found, .data = watched->event.data};
        watched->is_off = watched->event.events & EPOLLONESHOT;
    }
    return told;
}

static int tell(const struct call *call, struct epoll_event *to, int capacity)
{
    struct instance *instance = call->instance;
    bool is_plain_first = instance->turn++ & 1;
    int told = is_plain_first ? tell_of_plain(instance, to, capacity) : 0;
    told += tell_of_rsockets(call, to + told, capacity - told);
    if (!is_plain_first)
        told += tell_of_plain(instance, to + told, capacity - told);
    return told;
}

static int poll_unlocked(struct call *call, alb_time until)
{
    struct rsocket *rs = &call->instance->rs;
    int ready;
    rsocket_unlock(rs);
    pthread_cleanup_push(leave_call, call);
    ready = rsocket_poll_until(call->fds, OTHERS + call->count, until);
    pthread_cleanup_pop(0);
    rsocket_lock(rs);
    return ready;
}

// How many events, or an error, which is negative; LOOK_AGAIN.
static int wait_once(struct instance *instance, struct epoll_event *to, int capacity, alb_time until)
{
    struct call call = {.instance = instance};
    if (!ask(&call))
        return -ENOMEM;
    int ready = poll_unlocked(&call, until);
    bool is_same = call.entered == instance->rs.wakes;
    int told = ready > 0 && is_same ? tell(&call, to, capacity) : 0;
    leave(&call);
    if (instance->rs.is_closed)
        return -EBADF;
    return ready > 0 && told == 0 ? LOOK_AGAIN : ready > 0 ? told : ready;
}

int repoll_wait(int number, struct epoll_event *to, int capacity, int timeout_ms)
{
    alb_time until = timeout_ms < 0 ? ALB_TIME_NEVER : alb_device_now() + (alb_time)timeout_ms * ALB_NS_PER_MS;
    struct rsocket *rs = rsocket_take(number);
    if (!rs)
        return -1;
    int told = capacity > 0 && rsocket_is_epoll(rs) ? LOOK_AGAIN : -EINVAL;
    while (told == LOOK_AGAIN)
        told = wait_once(instance_of(rs), to, capacity, until);
    rsocket_give(rs);
    return told < 0 ? rdmacm_fail(-told) : told;
}
