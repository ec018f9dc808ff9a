// SPDX-License-Identifier: BSD-2-Clause
// ibv_create_cq(3), ibv_poll_cq(3), ibv_req_notify_cq(3), ibv_resize_cq(3).
#include "plugins/verbs/door.h"
#include "plugins/verbs/race_detector.h"

#include <stdlib.h>

static int check_create(const struct ibv_context *context, int entries, const struct ibv_comp_channel *channel,
                        int vector)
{
    const struct alb_door_context *door = alb_door_context((struct ibv_context *)context);
    if (entries <= 0 || (uint32_t)entries > door->limits->cqe_max)
        return EINVAL;
    if (vector < 0 || vector >= context->num_comp_vectors)
        return EINVAL;
    return channel && channel->context != context ? EINVAL : 0;
}

static void init_public(struct ibv_cq *cq, struct ibv_context *context, void *cq_context,
                        struct ibv_comp_channel *channel)
{
    cq->context = context;
    cq->channel = channel;
    cq->cq_context = cq_context;
    pthread_mutex_init(&cq->mutex, NULL);
    pthread_cond_init(&cq->cond, NULL);
    if (channel) {
        pthread_mutex_lock(&context->mutex);
        channel->refcnt++;
        pthread_mutex_unlock(&context->mutex);
    }
}

struct alb_door_cq *alb_door_cq_create(struct ibv_context *outer, int entries, void *cq_context,
                                       struct ibv_comp_channel *channel, int vector)
{
    struct alb_door_context *context = alb_door_context(outer);
    int error = check_create(outer, entries, channel, vector);
    if (error)
        return alb_door_fail(error);
    struct alb_door_cq *cq = calloc(1, sizeof(*cq));
    if (!cq)
        return alb_door_fail(ENOMEM);
    alb_notice_init(&cq->completion, cq, 0);
    alb_notice_init(&cq->overrun, cq, IBV_EVENT_CQ_ERR);
    error = alb_door_lock(context);
    if (!error) {
        error = alb_cq_create(context->engine, (uint32_t)entries, cq, &cq->engine_cq);
        if (!error && !channel)
            alb_cq_set_silent(cq->engine_cq);
        alb_door_unlock(context);
    }
    if (error) {
        free(cq);
        return alb_door_fail(error);
    }
    init_public(&cq->cq, outer, cq_context, channel);
    cq->cq.cqe = (int)alb_cq_entries(cq->engine_cq);
    cq->cq.handle = alb_door_remember(context, ALB_DOOR_CQ, &cq->link);
    return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
    if (!context)
        return alb_door_fail(EINVAL);
    struct alb_door_cq *cq = alb_door_cq_create(context, entries, cq_context, channel, vector);
    return cq ? &cq->cq : NULL;
}

static bool is_used(struct alb_door_cq *cq)
{
    struct alb_door_context *context = alb_door_context(cq->cq.context);
    alb_device_lock(context->device);
    bool is_used = alb_cq_is_used(cq->engine_cq);
    alb_door_unlock(context);
    return is_used;
}

// Takes the queue from the engine, so that it raises nothing more. EBUSY.
static int destroy_in_engine(struct alb_door_cq *cq)
{
    struct alb_door_context *context = alb_door_context(cq->cq.context);
    alb_device_lock(context->device);
    int error = alb_cq_destroy(cq->engine_cq);
    alb_door_unlock(context);
    return error;
}

// The events that were not taken yet.
static void forget_events(struct alb_door_cq *cq)
{
    if (cq->cq.channel)
        alb_notices_forget(&alb_door_channel(cq->cq.channel)->notices, &cq->completion);
    alb_notices_forget(&alb_door_context(cq->cq.context)->async, &cq->overrun);
}

static void free_cq(struct alb_door_cq *cq)
{
    struct ibv_context *context = cq->cq.context;
    if (cq->cq.channel) {
        pthread_mutex_lock(&context->mutex);
        cq->cq.channel->refcnt--;
        pthread_mutex_unlock(&context->mutex);
    }
    if (cq->parent_domain)
        alb_door_pd_put(&cq->parent_domain->pd);
    alb_door_forget(alb_door_context(context), &cq->link);
    pthread_mutex_destroy(&cq->cq.mutex);
    pthread_cond_destroy(&cq->cq.cond);
    free(cq);
}

int alb_door_cq_release(struct alb_door_cq *cq)
{
    int error = destroy_in_engine(cq);
    if (error)
        return error;
    forget_events(cq);
    free_cq(cq);
    return 0;
}

// For the acknowledgement of events that were handed out, and only of those. Until then their handlers may use the
// queue: a queue that no queue pair has raises no more.
static void wait_for_handlers(struct alb_door_cq *cq)
{
    struct ibv_cq *outer = &cq->cq;
    forget_events(cq);
    alb_door_wait_acknowledged(&outer->mutex, &outer->cond, &outer->comp_events_completed, cq->completion.delivered);
    alb_door_wait_acknowledged(&outer->mutex, &outer->cond, &outer->async_events_completed, cq->overrun.delivered);
}

int ibv_destroy_cq(struct ibv_cq *outer)
{
    if (!outer)
        return alb_door_refuse(EINVAL);
    struct alb_door_cq *cq = alb_door_cq(outer);
    if (alb_door_is_forked(alb_door_context(outer->context)))
        return 0;
    if (is_used(cq))
        return alb_door_refuse(EBUSY);
    wait_for_handlers(cq);
    return alb_door_answer(alb_door_cq_release(cq));
}

int ibv_resize_cq(struct ibv_cq *outer, int entries)
{
    if (!outer || entries <= 0)
        return alb_door_refuse(EINVAL);
    struct alb_door_cq *cq = alb_door_cq(outer);
    struct alb_door_context *context = alb_door_context(outer->context);
    const struct alb_door_locks locks = {.of = {&cq->poll_lock}, .count = 1};
    if (alb_door_is_forked(context))
        return alb_door_refuse(ENODEV);
    alb_door_lock_with(context, &locks);
    alb_device_catch_up(context->device); // what was posted before counts: it may need the room that is given up
    int error = alb_cq_resize(cq->engine_cq, (uint32_t)entries);
    if (!error)
        outer->cqe = (int)alb_cq_entries(cq->engine_cq);
    alb_door_unlock_with(context, &locks);
    return alb_door_answer(error);
}

static void copy_wc(struct ibv_wc *to, const struct alb_wc *from)
{
    alb_race_detector_complete(from->wr_id);
    to->wr_id = from->wr_id;
    to->status = (enum ibv_wc_status)from->status;
    to->opcode = (enum ibv_wc_opcode)from->opcode;
    to->vendor_err = from->vendor_err;
    to->byte_len = from->byte_len;
    to->imm_data = from->imm_data;
    to->qp_num = from->qpn;
    to->src_qp = from->src_qpn;
    to->wc_flags = from->flags;
    to->pkey_index = 0;
    to->slid = 0;
    to->sl = from->sl;
    to->dlid_path_bits = from->dlid_path_bits;
}

// Whether there is anything is seen without the lock: most polls find nothing.
static int drain(struct alb_door_cq *cq, int count, struct ibv_wc *wc)
{
    int taken = 0;
    const struct alb_wc *entry;
    if (alb_cq_is_empty(cq->engine_cq))
        return 0;
    alb_spinlock_take(&cq->poll_lock);
    while (taken < count && (entry = alb_cq_peek(cq->engine_cq))) {
        copy_wc(&wc[taken++], entry);
        alb_cq_pop(cq->engine_cq);
    }
    alb_spinlock_give(&cq->poll_lock);
    return taken;
}

// Its program is one that the sockets rouse.
static bool is_roused(const struct alb_door_cq *cq)
{
    struct ibv_comp_channel *channel = cq->cq.channel;
    return channel && atomic_load_explicit(&alb_door_channel(channel)->notices.is_roused, memory_order_relaxed);
}

void alb_door_drive(const struct alb_door_cq *cq)
{
    struct alb_device *device = alb_door_context(cq->cq.context)->device;
    if (alb_cq_is_armed(cq->engine_cq))
        alb_device_poll_once(device, is_roused(cq));
    else
        alb_device_poll(device);
}

// A poller that finds nothing drives the device once, outside the queue's lock.
static int poll_cq(struct ibv_cq *outer, int count, struct ibv_wc *wc)
{
    struct alb_door_cq *cq = alb_door_cq(outer);
    if (alb_unlikely(count <= 0 || !wc))
        return count == 0 ? 0 : -EINVAL;
    alb_door_note_poll(outer->channel);
    int taken = drain(cq, count, wc);
    if (taken > 0)
        return taken;
    alb_door_drive(cq);
    return drain(cq, count, wc);
}

// By the specification only later completions raise an event. But hardware that is told how far the program has polled
// can tell of earlier ones, too, and programs that poll, arm and sleep count on it (UCX; docs/COMPATIBILITY.md, 15).
// Those that take an event, arm and then poll find them by themselves: for them it would be an event about nothing.
static bool would_miss(const struct alb_door_cq *cq)
{
    return cq->cq.channel && !atomic_load_explicit(&alb_door_channel(cq->cq.channel)->will_poll, memory_order_relaxed);
}

static int req_notify_cq(struct ibv_cq *outer, int solicited_only)
{
    struct alb_door_cq *cq = alb_door_cq(outer);
    struct alb_device *device = alb_door_context(outer->context)->device;
    bool has_some = alb_cq_arm(cq->engine_cq, solicited_only ? ALB_CQ_ARM_SOLICITED : ALB_CQ_ARM_NEXT);
    if (outer->channel)
        alb_notices_expect(&alb_door_channel(outer->channel)->notices, &cq->completion);
    alb_device_note_armed(device, is_roused(cq));
    if (has_some && would_miss(cq)) {
        alb_device_lock(device);
        alb_cq_tell(cq->engine_cq);
        alb_device_unlock(device);
    }
    return 0;
}

void alb_door_fill_cq(struct verbs_context *verbs)
{
    verbs->context.ops.poll_cq = poll_cq;
    verbs->context.ops.req_notify_cq = req_notify_cq;
}
