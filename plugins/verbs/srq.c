// SPDX-License-Identifier: BSD-2-Clause
// ibv_create_srq(3), ibv_create_srq_ex(3), ibv_get_srq_num(3), ibv_modify_srq(3), ibv_post_srq_recv(3).
#include "plugins/verbs/door.h"
#include "plugins/verbs/race_detector.h"

#include <stdlib.h>

static int create_engine_srq(struct alb_door_srq *srq, struct ibv_srq_init_attr_ex *init)
{
    struct ibv_srq_attr *attr = &init->attr;
    struct alb_pd *pd = alb_door_engine_pd(init->pd);
    // ibv_create_srq(3): the limit is not looked at here.
    int error = srq->xrcd ? alb_srq_create_xrc(pd, alb_door_engine_xrcd(init->xrcd), alb_door_cq(init->cq)->engine_cq,
                                               attr->max_wr, attr->max_sge, 0, srq, &srq->engine_srq)
                          : alb_srq_create(pd, attr->max_wr, attr->max_sge, 0, srq, &srq->engine_srq);
    if (!error)
        alb_srq_query(srq->engine_srq, &attr->max_wr, &attr->max_sge, &attr->srq_limit);
    return error;
}

static struct ibv_srq *create(struct ibv_srq_init_attr_ex *init)
{
    struct ibv_pd *pd = init->pd;
    struct alb_door_context *context = alb_door_context(pd->context);
    struct alb_door_srq *srq = calloc(1, sizeof(*srq));
    if (!srq)
        return alb_door_fail(ENOMEM);
    alb_door_srq_notices_init(srq);
    srq->srq.context = pd->context;
    srq->srq.srq_context = init->srq_context;
    srq->srq.pd = pd;
    if (init->srq_type == IBV_SRQT_XRC)
        srq->xrcd = alb_door_xrcd(init->xrcd);
    int error = alb_door_lock(context);
    if (!error) {
        error = create_engine_srq(srq, init);
        alb_door_unlock(context);
    }
    if (error) {
        free(srq);
        return alb_door_fail(error);
    }
    pthread_mutex_init(&srq->srq.mutex, NULL);
    pthread_cond_init(&srq->srq.cond, NULL);
    srq->srq.handle = alb_door_remember(context, ALB_DOOR_SRQ, &srq->link);
    alb_door_pd_get(pd);
    if (srq->xrcd)
        atomic_fetch_add(&srq->xrcd->refs, 1);
    return &srq->srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    if (!pd || !init)
        return alb_door_fail(EINVAL);
    struct ibv_srq_init_attr_ex extended = {
        .srq_context = init->srq_context, .attr = init->attr, .srq_type = IBV_SRQT_BASIC, .pd = pd};
    struct ibv_srq *srq = create(&extended);
    if (srq)
        init->attr = extended.attr;
    return srq;
}

// EOPNOTSUPP: tag matching, or what is not known.
static int check_extended(const struct ibv_context *context, const struct ibv_srq_init_attr_ex *init)
{
    const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    if (init->comp_mask & ~(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | xrc))
        return EOPNOTSUPP;
    if (init->srq_type != IBV_SRQT_BASIC && init->srq_type != IBV_SRQT_XRC)
        return EOPNOTSUPP;
    if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !init->pd || init->pd->context != context)
        return EINVAL;
    if (init->srq_type == IBV_SRQT_BASIC)
        return init->comp_mask & xrc ? EINVAL : 0;
    bool is_complete = (init->comp_mask & xrc) == xrc && init->xrcd && init->cq;
    return is_complete && init->xrcd->context == context && init->cq->context == context ? 0 : EINVAL;
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
    if (!init)
        return alb_door_fail(EINVAL);
    struct ibv_srq_init_attr_ex copy = *init;
    if (!(copy.comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
        copy.srq_type = IBV_SRQT_BASIC;
    int error = check_extended(context, &copy);
    if (error)
        return alb_door_fail(error);
    struct ibv_srq *srq = create(&copy);
    if (srq)
        init->attr = copy.attr;
    return srq;
}

// EINVAL: it has no number to be named by.
static int get_srq_num(struct ibv_srq *outer, uint32_t *number)
{
    struct alb_door_srq *srq = alb_door_srq(outer);
    if (!srq->xrcd || !number)
        return alb_door_refuse(EINVAL);
    *number = alb_srq_number(srq->engine_srq);
    return 0;
}

static int destroy_in_engine(struct alb_door_srq *srq)
{
    struct alb_door_context *context = alb_door_context(srq->srq.context);
    alb_device_lock(context->device);
    int error = alb_srq_destroy(srq->engine_srq);
    alb_door_unlock(context);
    return error;
}

// Not before the events that were handed out have been acknowledged: until then their handlers may use the queue. That
// none of them is left is seen with the token held, without which no event is raised: a queue of an XRC domain may be
// used until it ends.
static int destroy_once_handled(struct alb_door_srq *srq)
{
    struct ibv_srq *outer = &srq->srq;
    struct alb_door_context *context = alb_door_context(outer->context);
    int error = 0;
    for (bool is_handled = false; !is_handled && !error;) {
        alb_device_lock(context->device);
        if (alb_srq_is_used(srq->engine_srq)) {
            alb_door_unlock(context);
            return EBUSY;
        }
        uint32_t delivered = alb_door_notices_forget(outer->context, srq->notices, ALB_DOOR_SRQ_NOTICES);
        is_handled = alb_door_is_acknowledged(&outer->mutex, &outer->events_completed, delivered);
        if (is_handled)
            error = alb_srq_destroy(srq->engine_srq);
        alb_door_unlock(context);
        alb_door_wait_acknowledged(&outer->mutex, &outer->cond, &outer->events_completed, delivered);
    }
    return error;
}

static void free_srq(struct alb_door_srq *srq)
{
    alb_door_pd_put(srq->srq.pd);
    if (srq->xrcd)
        atomic_fetch_sub(&srq->xrcd->refs, 1);
    alb_door_forget(alb_door_context(srq->srq.context), &srq->link);
    pthread_mutex_destroy(&srq->srq.mutex);
    pthread_cond_destroy(&srq->srq.cond);
    free(srq);
}

int alb_door_srq_release(struct alb_door_srq *srq)
{
    int error = destroy_in_engine(srq);
    if (error)
        return error;
    alb_door_notices_forget(srq->srq.context, srq->notices, ALB_DOOR_SRQ_NOTICES);
    free_srq(srq);
    return 0;
}

int ibv_destroy_srq(struct ibv_srq *outer)
{
    if (!outer)
        return alb_door_refuse(EINVAL);
    struct alb_door_srq *srq = alb_door_srq(outer);
    if (alb_door_is_forked(alb_door_context(outer->context)))
        return 0;
    int error = destroy_once_handled(srq);
    if (!error)
        free_srq(srq);
    return alb_door_answer(error);
}

int ibv_modify_srq(struct ibv_srq *outer, struct ibv_srq_attr *attr, int mask)
{
    if (!outer || !attr || mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        return alb_door_refuse(EINVAL);
    if (mask & IBV_SRQ_MAX_WR && attr->max_wr == 0)
        return alb_door_refuse(EINVAL);
    if (mask & IBV_SRQ_LIMIT && attr->srq_limit == UINT32_MAX) // which says below that it stays
        return alb_door_refuse(EINVAL);
    struct alb_door_srq *srq = alb_door_srq(outer);
    struct alb_door_context *context = alb_door_context(outer->context);
    int error = alb_door_lock(context);
    if (error)
        return alb_door_refuse(error);
    alb_spinlock_take(&srq->post_lock);
    error = alb_srq_modify(srq->engine_srq, mask & IBV_SRQ_MAX_WR ? attr->max_wr : 0,
                           mask & IBV_SRQ_LIMIT ? attr->srq_limit : UINT32_MAX);
    alb_spinlock_give(&srq->post_lock);
    alb_door_unlock(context);
    return alb_door_answer(error);
}

int ibv_query_srq(struct ibv_srq *outer, struct ibv_srq_attr *attr)
{
    if (!outer || !attr)
        return alb_door_refuse(EINVAL);
    struct alb_door_context *context = alb_door_context(outer->context);
    int error = alb_door_lock(context);
    if (error)
        return alb_door_refuse(error);
    alb_srq_query(alb_door_srq(outer)->engine_srq, &attr->max_wr, &attr->max_sge, &attr->srq_limit);
    alb_door_unlock(context);
    return 0;
}

static int post_srq_recv(struct ibv_srq *outer, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct alb_door_srq *srq = alb_door_srq(outer);
    int error = 0;
    alb_spinlock_take(&srq->post_lock);
    for (; wr; wr = wr->next) {
        alb_race_detector_post(wr->wr_id);
        if (wr->num_sge < 0 || (wr->num_sge > 0 && !wr->sg_list))
            error = EINVAL;
        else
            error =
                alb_srq_post(srq->engine_srq, wr->wr_id, (const struct alb_sge *)wr->sg_list, (uint32_t)wr->num_sge);
        if (error)
            break;
    }
    alb_spinlock_give(&srq->post_lock);
    if (error && bad_wr)
        *bad_wr = wr;
    return error;
}

void alb_door_fill_srq(struct verbs_context *verbs)
{
    verbs->context.ops.post_srq_recv = post_srq_recv;
    verbs->create_srq_ex = create_srq_ex;
    verbs->get_srq_num = get_srq_num;
}
