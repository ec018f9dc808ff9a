// SPDX-License-Identifier: BSD-2-Clause
// ibv_modify_qp(3), ibv_query_qp(3).
#include "plugins/verbs/door.h"

void alb_door_qp_lock_queues(const struct ibv_qp *qp)
{
    struct alb_door_cq *a = qp->send_cq ? alb_door_cq(qp->send_cq) : NULL;
    struct alb_door_cq *b = qp->recv_cq ? alb_door_cq(qp->recv_cq) : NULL;
    struct alb_door_cq *first = a < b ? a : b, *second = a < b ? b : a;
    if (first)
        alb_spinlock_take(&first->poll_lock);
    if (second && second != first)
        alb_spinlock_take(&second->poll_lock);
}

void alb_door_qp_unlock_queues(const struct ibv_qp *qp)
{
    if (qp->send_cq)
        alb_spinlock_give(&alb_door_cq(qp->send_cq)->poll_lock);
    if (qp->recv_cq && qp->recv_cq != qp->send_cq)
        alb_spinlock_give(&alb_door_cq(qp->recv_cq)->poll_lock);
}

struct ibv_qp_cap alb_door_qp_cap_from(const struct alb_qp_cap *cap)
{
    return (struct ibv_qp_cap){
        .max_send_wr = cap->send_wr_max,
        .max_recv_wr = cap->recv_wr_max,
        .max_send_sge = cap->send_sge_max,
        .max_recv_sge = cap->recv_sge_max,
        .max_inline_data = cap->inline_max_bytes,
    };
}

// The move to RESET empties the queues, so posting and polling must be kept out meanwhile.
static int modify_to_reset(struct alb_door_qp *qp, const struct alb_qp_attr *attr, int mask)
{
    struct ibv_qp *outer = &qp->ex.qp_base;
    alb_spinlock_take(&qp->send_lock);
    alb_spinlock_take(&qp->recv_lock);
    alb_door_qp_lock_queues(outer);
    int error = alb_qp_modify(qp->engine_qp, attr, (uint32_t)mask, alb_device_now());
    alb_door_qp_unlock_queues(outer);
    alb_spinlock_give(&qp->recv_lock);
    alb_spinlock_give(&qp->send_lock);
    return error;
}

static int modify(struct alb_door_qp *qp, const struct alb_qp_attr *attr, int mask)
{
    bool moves = mask & IBV_QP_STATE;
    if (moves && attr->state == ALB_QPS_RESET)
        return modify_to_reset(qp, attr, mask);
    if (moves && attr->state == ALB_QPS_ERR)
        alb_qp_farewell(qp->engine_qp);
    return alb_qp_modify(qp->engine_qp, attr, (uint32_t)mask, alb_device_now());
}

int ibv_modify_qp(struct ibv_qp *outer, struct ibv_qp_attr *attr, int mask)
{
    struct alb_qp_attr engine;
    if (!outer || !attr)
        return EINVAL;
    struct alb_door_qp *qp = alb_door_qp(outer);
    struct alb_door_context *context = alb_door_context(outer->context);
    int error = alb_door_qp_attr_from(context, attr, mask, &engine);
    if (!error)
        error = alb_door_lock(context);
    if (error)
        return error;
    error = modify(qp, &engine, mask);
    alb_door_unlock(context);
    if (!error && mask & IBV_QP_STATE)
        outer->state = attr->qp_state;
    return error;
}

int ibv_query_qp(struct ibv_qp *outer, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    struct alb_qp_attr engine;
    struct alb_qp_init engine_init;
    if (!outer || !attr || !init)
        return EINVAL;
    (void)mask; // a hint: everything is filled in
    struct alb_door_qp *qp = alb_door_qp(outer);
    struct alb_door_context *context = alb_door_context(outer->context);
    int error = alb_door_lock(context);
    if (error)
        return error;
    alb_qp_query(qp->engine_qp, &engine, &engine_init);
    alb_door_unlock(context);

    alb_door_qp_attr_to(&engine, attr);
    attr->cap = alb_door_qp_cap_from(&engine_init.cap);
    *init = (struct ibv_qp_init_attr){
        .qp_context = outer->qp_context,
        .send_cq = outer->send_cq,
        .recv_cq = outer->recv_cq,
        .srq = outer->srq,
        .cap = attr->cap,
        .qp_type = outer->qp_type,
        .sq_sig_all = engine_init.sq_sig_all,
    };
    outer->state = attr->qp_state;
    return 0;
}
