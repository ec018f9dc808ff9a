// SPDX-License-Identifier: BSD-2-Clause
// Events: from the engine to the completion channels and to ibv_get_async_event(3).
#include "plugins/verbs/door.h"

static const enum ibv_event_type qp_event_types[ALB_DOOR_QP_NOTICES] = {
    IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
    IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_QP_LAST_WQE_REACHED,
};

static const enum ibv_event_type srq_event_types[ALB_DOOR_SRQ_NOTICES] = {
    IBV_EVENT_SRQ_LIMIT_REACHED,
    IBV_EVENT_SRQ_ERR,
};

static const enum ibv_event_type port_event_types[ALB_DOOR_PORT_NOTICES] = {
    IBV_EVENT_PORT_ACTIVE,
    IBV_EVENT_PORT_ERR,
};

void alb_door_port_notices_init(struct alb_door_context *context)
{
    for (int i = 0; i < ALB_DOOR_PORT_NOTICES; i++)
        alb_notice_init(&context->notices[i], context, port_event_types[i]);
}

void alb_door_qp_notices_init(struct alb_door_qp *qp)
{
    for (int i = 0; i < ALB_DOOR_QP_NOTICES; i++)
        alb_notice_init(&qp->notices[i], qp, qp_event_types[i]);
}

void alb_door_srq_notices_init(struct alb_door_srq *srq)
{
    for (int i = 0; i < ALB_DOOR_SRQ_NOTICES; i++)
        alb_notice_init(&srq->notices[i], srq, srq_event_types[i]);
}

uint32_t alb_door_notices_forget(struct ibv_context *context, struct alb_notice *notices, int count)
{
    uint32_t delivered = 0;
    for (int i = 0; i < count; i++) {
        alb_notices_forget(&alb_door_context(context)->async, &notices[i]);
        delivered += notices[i].delivered;
    }
    return delivered;
}

static void raise_async(struct ibv_context *context, struct alb_notice *notices, int count, enum ibv_event_type type)
{
    for (int i = 0; i < count; i++)
        if (notices[i].kind == (int)type)
            alb_notices_raise(&alb_door_context(context)->async, &notices[i]);
}

static void raise_handle(struct alb_door_qp *qp, enum ibv_event_type type)
{
    raise_async(qp->ex.qp_base.context, qp->notices, ALB_DOOR_QP_NOTICES, type);
}

static void raise_qp(const struct alb_event *event, enum ibv_event_type type)
{
    if (alb_qp_kind(event->qp) == ALB_QPT_XRC_RECV)
        alb_door_target_raise(event->user, raise_handle, type);
    else
        raise_handle(event->user, type);
}

static void raise_srq(struct alb_door_srq *srq, enum ibv_event_type type)
{
    raise_async(srq->srq.context, srq->notices, ALB_DOOR_SRQ_NOTICES, type);
}

static void raise_completion(struct alb_door_cq *cq)
{
    if (cq->cq.channel)
        alb_notices_raise(&alb_door_channel(cq->cq.channel)->notices, &cq->completion);
}

struct port_change {
    const struct alb_device *device;
    enum ibv_event_type type;
};

static void raise_port(struct alb_door_context *context, void *argument)
{
    const struct port_change *change = argument;
    if (context->device == change->device)
        raise_async(&context->verbs.context, context->notices, ALB_DOOR_PORT_NOTICES, change->type);
}

void alb_door_on_port(void *device, bool is_up)
{
    struct port_change change = {.device = device, .type = is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR};
    alb_door_for_each_context(raise_port, &change);
}

void alb_door_on_event(void *device, const struct alb_event *event)
{
    switch (event->type) {
    case ALB_EVENT_CQ_NOTIFY:
        raise_completion(event->user);
        break;
    case ALB_EVENT_CQ_ERR: {
        struct alb_door_cq *cq = event->user;
        alb_notices_raise(&alb_door_context(cq->cq.context)->async, &cq->overrun);
        break;
    }
    case ALB_EVENT_QP_FATAL:
        raise_qp(event, IBV_EVENT_QP_FATAL);
        break;
    case ALB_EVENT_QP_REQ_ERR:
        raise_qp(event, IBV_EVENT_QP_REQ_ERR);
        break;
    case ALB_EVENT_QP_ACCESS_ERR:
        raise_qp(event, IBV_EVENT_QP_ACCESS_ERR);
        break;
    case ALB_EVENT_COMM_EST:
        raise_qp(event, IBV_EVENT_COMM_EST);
        break;
    case ALB_EVENT_SQ_DRAINED:
        raise_qp(event, IBV_EVENT_SQ_DRAINED);
        break;
    case ALB_EVENT_QP_LAST_WQE_REACHED:
        raise_qp(event, IBV_EVENT_QP_LAST_WQE_REACHED);
        break;
    case ALB_EVENT_SRQ_LIMIT_REACHED:
        raise_srq(event->user, IBV_EVENT_SRQ_LIMIT_REACHED);
        break;
    case ALB_EVENT_SRQ_ERR:
        raise_srq(event->user, IBV_EVENT_SRQ_ERR);
        break;
    case ALB_EVENT_CM:
        alb_door_on_cm(event->user);
        break;
    case ALB_EVENT_PROPOSAL:
        alb_door_on_proposal(device);
        break;
    case ALB_EVENT_JOURNAL:   // the device's own
    case ALB_EVENT_QP_FAILED: // the device has logged it; programs learn of it by completions
        break;
    }
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    if (!context || !event) {
        errno = EINVAL;
        return -1;
    }
    if (alb_door_is_forked(alb_door_context(context))) { // the descriptor is the parent's, too
        errno = ENODEV;
        return -1;
    }
    struct alb_notice *notice = alb_notices_take(&alb_door_context(context)->async);
    if (!notice)
        return -1;
    event->event_type = (enum ibv_event_type)notice->kind;
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        event->element.cq = &((struct alb_door_cq *)notice->owner)->cq;
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        event->element.srq = &((struct alb_door_srq *)notice->owner)->srq;
        break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
        event->element.port_num = ALB_DOOR_PORT;
        break;
    default:
        event->element.qp = &((struct alb_door_qp *)notice->owner)->ex.qp_base;
        break;
    }
    return 0;
}

static void acknowledge(struct ibv_context *context, pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
    if (alb_door_is_forked(alb_door_context(context)))
        return;
    pthread_mutex_lock(mutex);
    ++*completed;
    pthread_cond_broadcast(cond);
    pthread_mutex_unlock(mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    if (!event)
        return;
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR: {
        struct ibv_cq *cq = event->element.cq;
        acknowledge(cq->context, &cq->mutex, &cq->cond, &cq->async_events_completed);
        break;
    }
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: {
        struct ibv_qp *qp = event->element.qp;
        acknowledge(qp->context, &qp->mutex, &qp->cond, &qp->events_completed);
        break;
    }
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
        struct ibv_srq *srq = event->element.srq;
        acknowledge(srq->context, &srq->mutex, &srq->cond, &srq->events_completed);
        break;
    }
    default: // events of a port or of the device need none
        break;
    }
}

bool alb_door_is_acknowledged(pthread_mutex_t *mutex, const uint32_t *completed, uint32_t delivered)
{
    pthread_mutex_lock(mutex);
    bool is_acknowledged = (int32_t)(delivered - *completed) <= 0;
    pthread_mutex_unlock(mutex);
    return is_acknowledged;
}

void alb_door_wait_acknowledged(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
                                uint32_t delivered)
{
    pthread_mutex_lock(mutex);
    while ((int32_t)(delivered - *completed) > 0)
        pthread_cond_wait(cond, mutex);
    pthread_mutex_unlock(mutex);
}
