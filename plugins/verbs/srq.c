// SPDX-License-Identifier: BSD-2-Clause
// ibv_create_srq(3), ibv_modify_srq(3), ibv_post_srq_recv(3).
#include "plugins/verbs/door.h"

#include <stdlib.h>

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    if (!pd || !init)
        return alb_door_fail(EINVAL);
    struct alb_door_context *context = alb_door_context(pd->context);
    struct ibv_srq_attr *attr = &init->attr;
    struct alb_door_srq *srq = calloc(1, sizeof(*srq));
    if (!srq)
        return alb_door_fail(ENOMEM);
    alb_door_srq_notices_init(srq);
    srq->srq.context = pd->context;
    srq->srq.srq_context = init->srq_context;
    srq->srq.pd = pd;
    int error = alb_door_lock(context);
    if (!error) {
        // ibv_create_srq(3): the limit is not looked at here.
        error = alb_srq_create(alb_door_engine_pd(pd), attr->max_wr, attr->max_sge, 0, srq, &srq->engine_srq);
        if (!error)
            alb_srq_query(srq->engine_srq, &attr->max_wr, &attr->max_sge, &attr->srq_limit);
        alb_door_unlock(context);
    }
    if (error) {
        free(srq);
        return alb_door_fail(error);
    }
    pthread_mutex_init(&srq->post_lock, NULL);
    pthread_mutex_init(&srq->srq.mutex, NULL);
    pthread_cond_init(&srq->srq.cond, NULL);
    srq->srq.handle = alb_door_remember(context, ALB_DOOR_SRQ, &srq->link);
    alb_door_pd_get(pd);
    return &srq->srq;
}

// Takes the queue from the engine; *delivered is how many events are owed an acknowledgement.
static int detach(struct alb_door_srq *srq, uint32_t *delivered)
{
    struct alb_door_context *context = alb_door_context(srq->srq.context);
    alb_device_lock(context->device);
    int error = alb_srq_destroy(srq->engine_srq);
    alb_door_unlock(context);
    if (!error)
        *delivered = alb_door_notices_forget(srq->srq.context, srq->notices, ALB_DOOR_SRQ_NOTICES);
    return error;
}

static void free_srq(struct alb_door_srq *srq)
{
    alb_door_pd_put(srq->srq.pd);
    alb_door_forget(alb_door_context(srq->srq.context), &srq->link);
    pthread_mutex_destroy(&srq->post_lock);
    pthread_mutex_destroy(&srq->srq.mutex);
    pthread_cond_destroy(&srq->srq.cond);
    free(srq);
}

int alb_door_srq_release(struct alb_door_srq *srq)
{
    uint32_t delivered;
    int error = detach(srq, &delivered);
    if (!error)
        free_srq(srq);
    return error;
}

int ibv_destroy_srq(struct ibv_srq *outer)
{
    if (!outer)
        return EINVAL;
    struct alb_door_srq *srq = alb_door_srq(outer);
    uint32_t delivered;
    if (alb_door_is_forked(alb_door_context(outer->context)))
        return 0;
    int error = detach(srq, &delivered);
    if (error)
        return error;
    alb_door_wait_acknowledged(&outer->mutex, &outer->cond, &outer->events_completed, delivered);
    free_srq(srq);
    return 0;
}

int ibv_modify_srq(struct ibv_srq *outer, struct ibv_srq_attr *attr, int mask)
{
    if (!outer || !attr || mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        return EINVAL;
    if (mask & IBV_SRQ_MAX_WR && attr->max_wr == 0)
        return EINVAL;
    struct alb_door_srq *srq = alb_door_srq(outer);
    struct alb_door_context *context = alb_door_context(outer->context);
    int error = alb_door_lock(context);
    if (error)
        return error;
    pthread_mutex_lock(&srq->post_lock);
    error = alb_srq_modify(srq->engine_srq, mask & IBV_SRQ_MAX_WR ? attr->max_wr : 0,
                           mask & IBV_SRQ_LIMIT ? attr->srq_limit : UINT32_MAX);
    pthread_mutex_unlock(&srq->post_lock);
    alb_door_unlock(context);
    return error;
}

int ibv_query_srq(struct ibv_srq *outer, struct ibv_srq_attr *attr)
{
    if (!outer || !attr)
        return EINVAL;
    struct alb_door_context *context = alb_door_context(outer->context);
    int error = alb_door_lock(context);
    if (error)
        return error;
    alb_srq_query(alb_door_srq(outer)->engine_srq, &attr->max_wr, &attr->max_sge, &attr->srq_limit);
    alb_door_unlock(context);
    return 0;
}

static int post_srq_recv(struct ibv_srq *outer, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct alb_door_srq *srq = alb_door_srq(outer);
    int error = 0;
    pthread_mutex_lock(&srq->post_lock);
    for (; wr; wr = wr->next) {
        if (wr->num_sge < 0 || (wr->num_sge > 0 && !wr->sg_list))
            error = EINVAL;
        else
            error =
                alb_srq_post(srq->engine_srq, wr->wr_id, (const struct alb_sge *)wr->sg_list, (uint32_t)wr->num_sge);
        if (error)
            break;
    }
    pthread_mutex_unlock(&srq->post_lock);
    if (error && bad_wr)
        *bad_wr = wr;
    return error;
}

void alb_door_fill_srq(struct verbs_context *verbs)
{
    verbs->context.ops.post_srq_recv = post_srq_recv;
}
