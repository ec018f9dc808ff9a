// SPDX-License-Identifier: BSD-2-Clause
// ibv_modify_qp(3), ibv_query_qp(3).
#include "plugins/verbs/door.h"

struct alb_door_locks alb_door_qp_poll_locks(const struct ibv_qp *qp)
{
    struct alb_door_locks locks = {.count = 0};
    if (qp->send_cq)
        alb_door_locks_add(&locks, &alb_door_cq(qp->send_cq)->poll_lock);
    if (qp->recv_cq && qp->recv_cq != qp->send_cq)
        alb_door_locks_add(&locks, &alb_door_cq(qp->recv_cq)->poll_lock);
    return locks;
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

// The move to RESET empties the queues, so posting and polling must be kept out meanwhile. It also forgets what is owed
// to the peer, which would wait in vain for the acknowledgement of what the program has seen: that leaves first.
static int modify_to_reset(struct alb_door_qp *qp, const struct alb_qp_attr *attr, int mask)
{
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    struct alb_door_locks locks = alb_door_qp_poll_locks(&qp->ex.qp_base);
    if (alb_door_is_forked(context))
        return ENODEV;
    alb_door_locks_add(&locks, &qp->send_lock);
    alb_door_locks_add(&locks, &qp->recv_lock);
    alb_door_lock_with(context, &locks);
    alb_qp_farewell(qp->engine_qp);
    alb_device_catch_up(context->device);
    int error = alb_qp_modify(qp->engine_qp, attr, (uint32_t)mask, alb_device_now());
    alb_door_unlock_with(context, &locks);
    return error;
}

static int modify(struct alb_door_qp *qp, const struct alb_qp_attr *attr, int mask)
{
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    bool moves = mask & IBV_QP_STATE;
    if (moves && attr->state == ALB_QPS_RESET)
        return modify_to_reset(qp, attr, mask);
    int error = alb_door_lock(context);
    if (error)
        return error;
    if (moves && attr->state == ALB_QPS_ERR)
        alb_qp_farewell(qp->engine_qp);
    error = alb_qp_modify(qp->engine_qp, attr, (uint32_t)mask, alb_device_now());
    alb_door_unlock(context);
    return error;
}

int ibv_modify_qp(struct ibv_qp *outer, struct ibv_qp_attr *attr, int mask)
{
    struct alb_qp_attr engine;
    if (!outer || !attr)
        return alb_door_refuse(EINVAL);
    int error = alb_door_qp_attr_from(alb_door_context(outer->context), attr, mask, &engine);
    if (!error)
        error = modify(alb_door_qp(outer), &engine, mask);
    if (!error && mask & IBV_QP_STATE)
        __atomic_store_n(&outer->state, attr->qp_state, __ATOMIC_RELAXED); // other threads may do the same
    return alb_door_answer(error);
}

int ibv_query_qp(struct ibv_qp *outer, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    struct alb_qp_attr engine;
    struct alb_qp_init engine_init;
    if (!outer || !attr || !init)
        return alb_door_refuse(EINVAL);
    (void)mask; // a hint: everything is filled in
    struct alb_door_qp *qp = alb_door_qp(outer);
    struct alb_door_context *context = alb_door_context(outer->context);
    int error = alb_door_lock(context);
    if (error)
        return alb_door_refuse(error);
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
    __atomic_store_n(&outer->state, attr->qp_state, __ATOMIC_RELAXED);
    return 0;
}
