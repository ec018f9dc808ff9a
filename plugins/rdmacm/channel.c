// SPDX-License-Identifier: BSD-2-Clause
// Event channels: a queue, and a descriptor that is readable while the queue holds something. The program may make the
// descriptor non-blocking and poll it. The descriptor's count and the readers between read and lock are together never
// fewer than the events: a reader that has read a count finds an event, or finds that it was taken back and reads
// again.
#include "plugins/rdmacm/door.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

// Channels that have not been destroyed. Programs (rping) have threads that ask for one event after another until the
// process ends, and destroy the channel before: such a call may come with one that is gone, and must not look at it.
static struct {
    pthread_mutex_t mutex; // taken before a channel's lock
    struct alb_list list;
} living = {.mutex = PTHREAD_MUTEX_INITIALIZER, .list = {&living.list, &living.list}};

static void before_fork(void)
{
    pthread_mutex_lock(&living.mutex);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&living.mutex);
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&living.mutex, NULL);
}

__attribute__((constructor)) static void install_hooks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

// The process has begun to exit, which takes as long as peers need answers.
static atomic_bool is_ending;

void rdmacm_begin_to_end(void)
{
    atomic_store(&is_ending, true);
}

// With the mutex held.
static bool lives(const struct rdmacm_channel *channel)
{
    ALB_LIST_FOR_EACH (&living.list, node) {
        if (ALB_LIST_ENTRY(node, struct rdmacm_channel, link) == channel)
            return true;
    }
    return false;
}

struct rdmacm_channel *rdmacm_channel_create(void)
{
    struct rdmacm_channel *channel = calloc(1, sizeof(*channel));
    if (!channel)
        return NULL;
    int error = alb_event_file_open(&channel->file);
    if (error) {
        free(channel);
        errno = error;
        return NULL;
    }
    channel->channel.fd = channel->file.fd;
    channel->device = rdmacm_device();
    pthread_mutex_init(&channel->lock, NULL);
    alb_list_init(&channel->events);
    alb_list_init(&channel->ids);
    pthread_mutex_lock(&living.mutex);
    alb_list_push_back(&living.list, &channel->link);
    pthread_mutex_unlock(&living.mutex);
    return channel;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    if (!rdmacm_context())
        return NULL;
    struct rdmacm_channel *channel = rdmacm_channel_create();
    return channel ? &channel->channel : NULL;
}

void rdmacm_channel_join(struct rdmacm_channel *channel, struct rdmacm_id *id)
{
    pthread_mutex_lock(&channel->lock);
    id->id.channel = &channel->channel;
    alb_list_push_back(&channel->ids, &id->link);
    pthread_mutex_unlock(&channel->lock);
}

static void free_channel(struct rdmacm_channel *channel)
{
    pthread_mutex_destroy(&channel->lock);
    free(channel);
}

// With the lock held. Programs (rping) end while a thread of theirs still waits for an event: that thread keeps what it
// looks at.
static bool is_over(const struct rdmacm_channel *channel)
{
    return channel->is_destroyed && channel->waiting == 0 && alb_list_is_empty(&channel->ids);
}

void rdmacm_channel_leave(struct rdmacm_id *id)
{
    struct rdmacm_channel *channel = rdmacm_channel(id->id.channel);
    pthread_mutex_lock(&channel->lock);
    alb_list_remove(&id->link);
    bool was_last = is_over(channel);
    pthread_mutex_unlock(&channel->lock);
    if (was_last)
        free_channel(channel);
}

// With the token held.
static int channel_error(struct rdmacm_id *id)
{
    struct rdmacm_channel *channel = rdmacm_channel(id->id.channel);
    pthread_mutex_lock(&channel->lock);
    int error = channel->is_destroyed ? EBADF : 0;
    pthread_mutex_unlock(&channel->lock);
    return error;
}

int rdmacm_channel_error(struct rdmacm_id *id)
{
    rdmacm_lock();
    int error = channel_error(id);
    rdmacm_unlock();
    return error;
}

// Frees an event that nobody takes.
static void drop(struct rdmacm_event *event)
{
    if (event->multicast)
        rdmacm_on_join_unheard(event->multicast);
    free(event);
}

static void forget(struct alb_list *events)
{
    struct alb_list *node;
    while ((node = alb_list_pop(events))) {
        struct rdmacm_event *event = ALB_LIST_ENTRY(node, struct rdmacm_event, link);
        if (event->fresh)
            rdma_destroy_id(&event->fresh->id);
        drop(event);
    }
}

// With the token and the lock held: the ids neither listen nor are connected any more.
static void end_ids(struct rdmacm_channel *channel)
{
    ALB_LIST_FOR_EACH (&channel->ids, node) {
        struct rdmacm_id *id = ALB_LIST_ENTRY(node, struct rdmacm_id, link);
        if (id->cm)
            alb_cm_id_destroy(id->cm, alb_device_now());
        id->cm = NULL;
    }
}

// Programs (qperf) destroy a channel whose ids they have left alone. A kernel ends such ids with the descriptor, and
// what the program holds of them stays valid until it destroys them.
void rdma_destroy_event_channel(struct rdma_event_channel *outer)
{
    struct rdmacm_channel *channel = rdmacm_channel(outer);
    struct alb_list forgotten;
    pthread_mutex_lock(&living.mutex);
    bool is_ours = lives(channel) && !rdmacm_channel_is_forked(channel);
    if (is_ours)
        alb_list_remove(&channel->link);
    pthread_mutex_unlock(&living.mutex);
    if (!is_ours)
        return;
    alb_list_init(&forgotten);
    rdmacm_lock();
    pthread_mutex_lock(&channel->lock);
    end_ids(channel);
    for (struct alb_list *node; (node = alb_list_pop(&channel->events));)
        alb_list_push_back(&forgotten, node);
    if (channel->waiting == 0) // else they read it, or are about to, and another file must not get its number
        alb_event_file_close(&channel->file);
    channel->is_destroyed = true;
    bool is_unused = is_over(channel);
    pthread_mutex_unlock(&channel->lock);
    rdmacm_unlock();
    if (is_unused)
        free_channel(channel);
    forget(&forgotten); // the last of their ids may take the channel along
}

void rdmacm_event_unreserve(struct rdmacm_id *id)
{
    for (struct alb_list *kept; (kept = alb_list_pop(&id->reserve));)
        free(ALB_LIST_ENTRY(kept, struct rdmacm_event, link));
}

int rdmacm_event_reserve(struct rdmacm_id *id)
{
    enum { EVENTS = 3 };
    if (!alb_list_is_empty(&id->reserve)) // of an attempt that came to nothing
        return 0;
    for (int i = 0; i < EVENTS; i++) {
        struct rdmacm_event *event = calloc(1, sizeof(*event));
        if (!event) {
            rdmacm_event_unreserve(id);
            return ENOMEM;
        }
        alb_list_push_back(&id->reserve, &event->link);
    }
    return 0;
}

struct rdmacm_event *rdmacm_event_new(struct rdmacm_id *id, enum rdma_cm_event_type type, int status)
{
    struct alb_list *kept = alb_list_pop(&id->reserve);
    struct rdmacm_event *event = kept ? ALB_LIST_ENTRY(kept, struct rdmacm_event, link) : calloc(1, sizeof(*event));
    if (event)
        event->event = (struct rdma_cm_event){.id = &id->id, .event = type, .status = status};
    return event;
}

void rdmacm_post(struct rdmacm_id *id, struct rdmacm_event *event)
{
    struct rdmacm_channel *channel = rdmacm_channel(id->id.channel);
    event->id = id;
    pthread_mutex_lock(&channel->lock);
    bool is_heard = !channel->is_destroyed;
    if (is_heard) {
        alb_list_push_back(&channel->events, &event->link);
        alb_event_file_add(&channel->file);
    }
    pthread_mutex_unlock(&channel->lock);
    if (!is_heard)
        drop(event);
}

int rdmacm_post_plain(struct rdmacm_id *id, enum rdma_cm_event_type type, int status)
{
    int error = channel_error(id);
    struct rdmacm_event *event = error ? NULL : rdmacm_event_new(id, type, status);
    if (!event)
        return error ? error : ENOMEM;
    rdmacm_post(id, event);
    return 0;
}

void rdmacm_take_events(struct rdmacm_id *id, const struct rdmacm_multicast *multicast, struct alb_list *taken)
{
    struct rdmacm_channel *channel = rdmacm_channel(id->id.channel);
    pthread_mutex_lock(&channel->lock);
    ALB_LIST_FOR_EACH (&channel->events, node) {
        const struct rdmacm_event *event = ALB_LIST_ENTRY(node, struct rdmacm_event, link);
        if (event->id != id || (multicast && event->multicast != multicast))
            continue;
        alb_list_remove(node);
        alb_list_push_back(taken, node);
        alb_event_file_drop(&channel->file);
    }
    pthread_mutex_unlock(&channel->lock);
}

void rdmacm_forget_events(struct rdmacm_id *id)
{
    struct alb_list forgotten;
    alb_list_init(&forgotten);
    rdmacm_take_events(id, NULL, &forgotten);
    forget(&forgotten);
}

// With the lock held.
static struct rdmacm_event *pop(struct rdmacm_channel *channel)
{
    struct alb_list *node = alb_list_pop(&channel->events);
    struct rdmacm_event *event = node ? ALB_LIST_ENTRY(node, struct rdmacm_event, link) : NULL;
    if (event) {
        pthread_mutex_lock(&event->id->lock);
        event->id->taken++;
        pthread_mutex_unlock(&event->id->lock);
    }
    return event;
}

// As with a kernel's channel, whose reader is not woken when its descriptor is closed. A thread that waits already does
// so until the process ends.
static void wait_for_the_end(void)
{
    for (;;)
        pause();
}

// Keeps a channel that is there, and its descriptor, until the thread stops waiting. 0, or an errno.
static int begin_to_wait(struct rdmacm_channel *channel)
{
    pthread_mutex_lock(&living.mutex);
    int error = !lives(channel) ? EBADF : rdmacm_channel_is_forked(channel) ? ENODEV : 0;
    if (!error) {
        pthread_mutex_lock(&channel->lock);
        channel->waiting++;
        pthread_mutex_unlock(&channel->lock);
    }
    pthread_mutex_unlock(&living.mutex);
    return error;
}

static void stop_waiting(void *argument)
{
    struct rdmacm_channel *channel = argument;
    pthread_mutex_lock(&channel->lock);
    channel->waiting--;
    if (channel->is_destroyed && channel->waiting == 0)
        alb_event_file_close(&channel->file);
    bool was_last = is_over(channel);
    pthread_mutex_unlock(&channel->lock);
    if (was_last)
        free_channel(channel);
}

static struct rdmacm_event *await_event(struct rdmacm_channel *channel, int *error)
{
    struct rdmacm_event *event = NULL;
    *error = 0;
    while (!event && !*error) {
        *error = alb_event_file_take(&channel->file);
        pthread_mutex_lock(&channel->lock);
        bool is_destroyed = channel->is_destroyed;
        if (!is_destroyed && !*error)
            event = pop(channel);
        pthread_mutex_unlock(&channel->lock);
        if (is_destroyed && *error != EAGAIN)
            wait_for_the_end();
    }
    return event;
}

// The next event, waited for unless the descriptor is non-blocking: NULL with an errno. Programs cancel threads that
// wait here.
static struct rdmacm_event *next(struct rdmacm_channel *channel)
{
    struct rdmacm_event *event;
    int error = begin_to_wait(channel);
    if (error) {
        if (error == EBADF && atomic_load(&is_ending)) // what the program made of an error would be its exit status
            wait_for_the_end();
        errno = error;
        return NULL;
    }
    pthread_cleanup_push(stop_waiting, channel);
    event = await_event(channel, &error);
    pthread_cleanup_pop(1);
    errno = error;
    return event;
}

// Another request may come in its place.
static void take_request(struct rdmacm_id *listener)
{
    rdmacm_lock();
    if (listener->cm)
        alb_cm_request_taken(listener->cm);
    rdmacm_unlock();
}

// CONNECT_ERROR is the last that the program hears of it.
static void fail(struct rdmacm_id *id)
{
    rdmacm_qp_error(id);
    pthread_mutex_lock(&id->lock);
    id->has_failed = true;
    pthread_mutex_unlock(&id->lock);
}

static bool is_after_failure(const struct rdmacm_event *event)
{
    struct rdmacm_id *id = event->id;
    if (event->event.event != RDMA_CM_EVENT_REJECTED && event->event.event != RDMA_CM_EVENT_DISCONNECTED)
        return false;
    pthread_mutex_lock(&id->lock);
    bool is = id->has_failed;
    pthread_mutex_unlock(&id->lock);
    return is;
}

// What taking an event means for its id, before the program sees it.
static void act_on(struct rdmacm_event *event)
{
    struct rdmacm_id *id = event->id;
    if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
        take_request(id);
    if (event->event.event == RDMA_CM_EVENT_REJECTED)
        rdmacm_qp_error(id);
    if (event->multicast)
        rdmacm_on_join(event);
    if (!event->is_response)
        return;
    int cancel = rdmacm_qp_lock(id);
    bool is_ours = id->id.qp; // otherwise the program answers
    int error = is_ours ? rdmacm_on_response(id) : 0;
    rdmacm_qp_unlock(id, cancel);
    if (!is_ours)
        return;
    event->event.event = error ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
    event->event.status = -error;
    if (error)
        fail(id);
}

int rdma_get_cm_event(struct rdma_event_channel *outer, struct rdma_cm_event **out)
{
    if (!outer || !out)
        return rdmacm_fail(EINVAL);
    struct rdmacm_event *event;
    while ((event = next(rdmacm_channel(outer))) && is_after_failure(event))
        rdma_ack_cm_event(&event->event);
    if (!event)
        return -1;
    act_on(event);
    *out = &event->event;
    return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *outer)
{
    if (!outer)
        return rdmacm_fail(EINVAL);
    struct rdmacm_event *event = ALB_CONTAINER_OF(outer, struct rdmacm_event, event);
    struct rdmacm_id *id = event->id;
    if (rdmacm_is_forked(id))
        return 0;
    pthread_mutex_lock(&id->lock);
    id->completed++;
    pthread_cond_broadcast(&id->acknowledged);
    pthread_mutex_unlock(&id->lock);
    free(event);
    return 0;
}

void rdmacm_keep(struct rdmacm_id *id, struct rdma_cm_event *outer)
{
    struct rdmacm_event *event = ALB_CONTAINER_OF(outer, struct rdmacm_event, event);
    struct rdmacm_id *from = event->id;
    pthread_mutex_lock(&from->lock);
    from->completed++;
    pthread_cond_broadcast(&from->acknowledged);
    pthread_mutex_unlock(&from->lock);
    pthread_mutex_lock(&id->lock);
    id->taken++;
    pthread_mutex_unlock(&id->lock);
    event->id = id;
    id->id.event = outer;
}

void rdmacm_drop_kept(struct rdmacm_id *id)
{
    if (id->id.event)
        rdma_ack_cm_event(id->id.event);
    id->id.event = NULL;
}

int rdmacm_complete(struct rdmacm_id *id)
{
    rdmacm_lock();
    struct rdma_event_channel *channel = id->is_sync ? id->id.channel : NULL;
    rdmacm_unlock();
    if (!channel)
        return 0;
    rdmacm_drop_kept(id);
    if (rdma_get_cm_event(channel, &id->id.event))
        return errno;
    int status = id->id.event->status;
    if (id->id.event->event == RDMA_CM_EVENT_REJECTED)
        return ECONNREFUSED;
    return status < 0 ? -status : status;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
    static const char *const names[] = {
        [RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
        [RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
        [RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
        [RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
        [RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
        [RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
        [RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
        [RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
        [RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
        [RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
        [RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
        [RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
        [RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
        [RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
        [RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
        [RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
    };
    return (unsigned)event < ALB_COUNT(names) ? names[event] : "UNKNOWN EVENT";
}
