// SPDX-License-Identifier: BSD-2-Clause
// ibv_create_comp_channel(3), ibv_get_cq_event(3), ibv_ack_cq_events.
#include "plugins/verbs/door.h"

#include <stdlib.h>

static void await(void *device, bool (*is_raised)(void *notices), void *notices)
{
    alb_device_await(device, is_raised, notices);
}

static void leave(void *device)
{
    alb_device_leave(device);
}

static enum alb_roused ask(void *device, int fd, bool had_one)
{
    return alb_device_ask(device, fd, had_one);
}

static void forget(void *device, int fd)
{
    alb_device_forget_file(device, fd);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    if (!context)
        return alb_door_fail(EINVAL);
    if (alb_door_is_forked(alb_door_context(context)))
        return alb_door_fail(ENODEV);
    struct alb_door_channel *channel = calloc(1, sizeof(*channel));
    if (!channel)
        return alb_door_fail(ENOMEM);
    // A thread that waits can as well drive the device: to be woken by the device's takes longer than most round trips.
    const struct alb_notices_driver driver = {
        .context = alb_door_context(context)->device,
        .await = await,
        .leave = leave,
        .ask = ask,
        .forget = forget,
    };
    int error = alb_notices_init(&channel->notices, &driver);
    if (error) {
        free(channel);
        return alb_door_fail(error);
    }
    channel->channel.context = context;
    channel->channel.fd = channel->notices.file.fd;
    alb_door_remember(alb_door_context(context), ALB_DOOR_CHANNEL, &channel->link);
    return &channel->channel;
}

int alb_door_channel_release(struct alb_door_channel *channel)
{
    alb_door_forget(alb_door_context(channel->channel.context), &channel->link);
    if (alb_notices_fini(&channel->notices))
        free(channel);
    return 0;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *outer)
{
    if (!outer)
        return alb_door_refuse(EINVAL);
    struct ibv_context *context = outer->context;
    if (alb_door_is_forked(alb_door_context(context)))
        return 0;
    pthread_mutex_lock(&context->mutex);
    bool is_used = outer->refcnt > 0;
    pthread_mutex_unlock(&context->mutex);
    return is_used ? alb_door_refuse(EBUSY) : alb_door_channel_release(alb_door_channel(outer));
}

int ibv_get_cq_event(struct ibv_comp_channel *outer, struct ibv_cq **cq, void **cq_context)
{
    if (!outer || !cq || !cq_context) {
        errno = EINVAL;
        return -1;
    }
    if (alb_door_is_forked(alb_door_context(outer->context))) { // the descriptor is the parent's, too
        errno = ENODEV;
        return -1;
    }
    struct alb_door_channel *channel = alb_door_channel(outer);
    struct alb_notice *notice = alb_notices_take(&channel->notices);
    if (!notice)
        return -1;
    atomic_store_explicit(&channel->will_poll, true, memory_order_relaxed);
    struct alb_door_cq *of = notice->owner;
    *cq = &of->cq;
    *cq_context = of->cq.cq_context;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    if (!cq || alb_door_is_forked(alb_door_context(cq->context)))
        return;
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += nevents;
    pthread_cond_broadcast(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}
