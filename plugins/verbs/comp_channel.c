// SPDX-License-Identifier: BSD-2-Clause
// ibv_create_comp_channel(3), ibv_get_cq_event(3), ibv_ack_cq_events.
#include "plugins/verbs/door.h"

#include <stdlib.h>

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    if (!context)
        return alb_door_fail(EINVAL);
    if (alb_door_is_forked(alb_door_context(context)))
        return alb_door_fail(ENODEV);
    struct alb_door_channel *channel = calloc(1, sizeof(*channel));
    if (!channel)
        return alb_door_fail(ENOMEM);
    int error = alb_notices_init(&channel->notices);
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
        return EINVAL;
    struct ibv_context *context = outer->context;
    if (alb_door_is_forked(alb_door_context(context)))
        return 0;
    pthread_mutex_lock(&context->mutex);
    bool is_used = outer->refcnt > 0;
    pthread_mutex_unlock(&context->mutex);
    return is_used ? alb_door_refuse(EBUSY) : alb_door_channel_release(alb_door_channel(outer));
}

static bool is_found(void *notices)
{
    return alb_notices_found(notices);
}

// As the thread will wait, it can as well drive the device meanwhile: to be woken by the device's thread takes longer
// than most round trips.
static struct alb_notice *look(struct alb_door_channel *channel)
{
    if (!alb_notices_look(&channel->notices))
        return NULL;
    alb_device_await(alb_door_context(channel->channel.context)->device, is_found, &channel->notices);
    return alb_notices_end_look(&channel->notices);
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
    struct alb_notice *notice = look(channel);
    if (!notice)
        notice = alb_notices_take(&channel->notices);
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
