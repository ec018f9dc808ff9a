// SPDX-License-Identifier: BSD-2-Clause
// ibv_create_qp(3), ibv_create_qp_ex(3), ibv_modify_qp(3), ibv_query_qp(3), ibv_destroy_qp(3).
#include "plugins/verbs/builder.h"

#include <stdlib.h>
#include <time.h>

// ---- create -----------------------------------------------------------------------------------------------

static bool is_own_cq(const struct ibv_context *context, const struct ibv_cq *cq)
{
    return cq && cq->context == context;
}

// What the type needs is there and of this context. What it has not is not looked at.
static int check_objects(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *init)
{
    if (init->qp_type == IBV_QPT_XRC_RECV) {
        bool is_given = init->comp_mask & IBV_QP_INIT_ATTR_XRCD && init->xrcd;
        return is_given && init->xrcd->context == context ? 0 : EINVAL;
    }
    if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD) || !init->pd || init->pd->context != context ||
        init->comp_mask & IBV_QP_INIT_ATTR_XRCD || !is_own_cq(context, init->send_cq))
        return EINVAL;
    if (init->qp_type == IBV_QPT_XRC_SEND)
        return 0;
    return is_own_cq(context, init->recv_cq) && (!init->srq || init->srq->context == context) ? 0 : EINVAL;
}

// What an extension of the structure asks for and this device has not: EOPNOTSUPP.
static int check_extensions(const struct ibv_qp_init_attr_ex *init)
{
    const uint32_t known =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if (init->comp_mask & ~known)
        return EOPNOTSUPP;
    if (init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && init->create_flags)
        return EOPNOTSUPP;
    if (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
        init->send_ops_flags & ~alb_door_builder_ops(init->qp_type))
        return EOPNOTSUPP;
    return 0;
}

static int check_type(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return 0;
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_DRIVER:
        return EOPNOTSUPP;
    }
    return EINVAL;
}

static struct alb_qp_init engine_init(struct alb_door_qp *qp, const struct ibv_qp_init_attr_ex *init)
{
    const struct ibv_qp *outer = &qp->ex.qp_base;
    struct alb_qp_init engine = {
        .type = (enum alb_qp_type)init->qp_type,
        .send_cq = outer->send_cq ? alb_door_cq(outer->send_cq)->engine_cq : NULL,
        .recv_cq = outer->recv_cq ? alb_door_cq(outer->recv_cq)->engine_cq : NULL,
        .srq = outer->srq ? alb_door_srq(outer->srq)->engine_srq : NULL,
        .cap =
            {
                .send_wr_max = init->cap.max_send_wr,
                .recv_wr_max = init->cap.max_recv_wr,
                .send_sge_max = init->cap.max_send_sge,
                .recv_sge_max = init->cap.max_recv_sge,
                .inline_max_bytes = init->cap.max_inline_data,
            },
        .sq_sig_all = init->sq_sig_all != 0,
        .user = qp,
    };
    // ibv_wr_atomic_write takes its eight bytes inline.
    if (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && init->send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE &&
        engine.cap.inline_max_bytes < sizeof(uint64_t))
        engine.cap.inline_max_bytes = sizeof(uint64_t);
    return engine;
}

static struct ibv_qp_cap cap_from(const struct alb_qp_cap *cap)
{
    return (struct ibv_qp_cap){
        .max_send_wr = cap->send_wr_max,
        .max_recv_wr = cap->recv_wr_max,
        .max_send_sge = cap->send_sge_max,
        .max_recv_sge = cap->recv_sge_max,
        .max_inline_data = cap->inline_max_bytes,
    };
}

static int create_engine_qp(struct alb_door_qp *qp, struct ibv_qp_init_attr_ex *init)
{
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    struct alb_qp_init engine = engine_init(qp, init);
    int error = alb_door_lock(context);
    if (error)
        return error;
    error = qp->xrcd ? alb_door_target_create(qp, &engine)
                     : alb_qp_create(alb_door_engine_pd(init->pd), &engine, &qp->engine_qp);
    alb_door_unlock(context);
    if (!error)
        init->cap = cap_from(&engine.cap);
    return error;
}

// The completion queues of a queue pair, each once, in the order of their addresses.
static void lock_queues(const struct ibv_qp *qp)
{
    struct alb_door_cq *a = qp->send_cq ? alb_door_cq(qp->send_cq) : NULL;
    struct alb_door_cq *b = qp->recv_cq ? alb_door_cq(qp->recv_cq) : NULL;
    struct alb_door_cq *first = a < b ? a : b, *second = a < b ? b : a;
    if (first)
        alb_spinlock_take(&first->poll_lock);
    if (second && second != first)
        alb_spinlock_take(&second->poll_lock);
}

static void unlock_queues(const struct ibv_qp *qp)
{
    if (qp->send_cq)
        alb_spinlock_give(&alb_door_cq(qp->send_cq)->poll_lock);
    if (qp->recv_cq && qp->recv_cq != qp->send_cq)
        alb_spinlock_give(&alb_door_cq(qp->recv_cq)->poll_lock);
}

// Its completions go with it, so polling must be kept out meanwhile.
static void destroy_engine_qp(struct alb_door_qp *qp)
{
    struct ibv_qp *outer = &qp->ex.qp_base;
    struct alb_door_context *context = alb_door_context(outer->context);
    alb_device_lock(context->device);
    lock_queues(outer);
    if (qp->target) {
        alb_door_target_leave(qp);
    } else {
        int error = alb_qp_destroy(qp->engine_qp);
        alb_assert(error == 0);
    }
    unlock_queues(outer);
    alb_door_unlock(context);
}

static void init_public(struct alb_door_qp *qp, struct ibv_context *context, const struct ibv_qp_init_attr_ex *init)
{
    struct ibv_qp *outer = &qp->ex.qp_base;
    outer->context = context;
    outer->qp_context = init->qp_context;
    outer->state = IBV_QPS_RESET;
    outer->qp_type = init->qp_type;
    if (init->qp_type == IBV_QPT_XRC_RECV) {
        qp->xrcd = init->xrcd;
        return;
    }
    outer->pd = init->pd;
    outer->send_cq = init->send_cq;
    if (init->qp_type != IBV_QPT_XRC_SEND) {
        outer->recv_cq = init->recv_cq;
        outer->srq = init->srq;
    }
}

// The engine has it: it is the program's from now on.
static struct ibv_qp *publish(struct alb_door_qp *qp)
{
    struct ibv_qp *outer = &qp->ex.qp_base;
    outer->qp_num = alb_qp_number(qp->engine_qp);
    pthread_mutex_init(&outer->mutex, NULL);
    pthread_cond_init(&outer->cond, NULL);
    outer->handle = alb_door_remember(alb_door_context(outer->context), ALB_DOOR_QP, &qp->link);
    if (outer->pd)
        alb_door_pd_get(outer->pd);
    return outer;
}

static struct ibv_qp *create(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
    struct alb_door_qp *qp = calloc(1, sizeof(*qp));
    if (!qp)
        return alb_door_fail(ENOMEM);
    init_public(qp, context, init);
    alb_door_qp_notices_init(qp);
    int error = create_engine_qp(qp, init);
    if (error) {
        free(qp);
        return alb_door_fail(error);
    }
    if (alb_door_context(context)->level != ALB_LEVEL_DELIVERED)
        error = alb_door_raise_level_of_qp(qp, &init->cap);
    if (!error && init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
        error = alb_door_builder_create(qp, init->send_ops_flags, &init->cap);
    if (error) {
        destroy_engine_qp(qp);
        free(qp);
        return alb_door_fail(error);
    }
    return publish(qp);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
    int error = init ? check_type(init->qp_type) : EINVAL;
    if (!error)
        error = check_extensions(init);
    if (!error)
        error = check_objects(context, init);
    return error ? alb_door_fail(error) : create(context, init);
}

static struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
    const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    if (!attr || (attr->comp_mask & needed) != needed || attr->qp_type != IBV_QPT_XRC_RECV || !attr->xrcd ||
        attr->xrcd->context != context)
        return alb_door_fail(EINVAL);
    if (attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT))
        return alb_door_fail(EOPNOTSUPP);
    struct alb_door_qp *qp = calloc(1, sizeof(*qp));
    if (!qp)
        return alb_door_fail(ENOMEM);
    const struct ibv_qp_init_attr_ex init = {
        .qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL,
        .qp_type = attr->qp_type,
        .xrcd = attr->xrcd,
    };
    init_public(qp, context, &init);
    alb_door_qp_notices_init(qp);
    int error = alb_door_lock(alb_door_context(context));
    if (!error) {
        error = alb_door_target_open(qp, attr->qp_num);
        if (!error)
            qp->ex.qp_base.state = (enum ibv_qp_state)alb_qp_current_state(qp->engine_qp);
        alb_door_unlock(alb_door_context(context));
    }
    if (error) {
        free(qp);
        return alb_door_fail(error);
    }
    return publish(qp);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    if (!pd || !init)
        return alb_door_fail(EINVAL);
    struct ibv_qp_init_attr_ex extended = {
        .qp_context = init->qp_context,
        .send_cq = init->send_cq,
        .recv_cq = init->recv_cq,
        .srq = init->srq,
        .cap = init->cap,
        .qp_type = init->qp_type,
        .sq_sig_all = init->sq_sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = pd,
    };
    struct ibv_qp *qp = create_qp_ex(pd->context, &extended);
    if (qp)
        init->cap = extended.cap;
    return qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *outer)
{
    struct alb_door_qp *qp = outer ? alb_door_qp(outer) : NULL;
    return qp && qp->builder ? &qp->ex : NULL;
}

// ---- destroy ----------------------------------------------------------------------------------------------

// Programs destroy their queue pairs right after their last completion, while the peer may still wait for its
// acknowledgement: what is owed is sent first. Bounded, since a peer that has gone away answers nothing; and once
// waiting was in vain the next ones are not waited for, since a program that lost a peer may have thousands to destroy.
static const alb_time quiet_wait_ns = 100 * ALB_NS_PER_MS;
static const alb_time no_wait_ns = ALB_NS_PER_S;

static bool is_quiet(struct alb_door_qp *qp)
{
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    alb_device_lock(context->device);
    enum alb_qp_state state = alb_qp_current_state(qp->engine_qp);
    bool is_quiet = state == ALB_QPS_RESET || state == ALB_QPS_INIT || alb_door_target_is_shared(qp) ||
                    alb_qp_is_quiet(qp->engine_qp);
    alb_door_unlock(context);
    return is_quiet;
}

static void announce_end(struct alb_door_qp *qp)
{
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    alb_device_lock(context->device);
    if (!alb_door_target_is_shared(qp))
        alb_qp_farewell(qp->engine_qp);
    alb_door_unlock(context);
}

static void wait_quiet(struct alb_door_qp *qp)
{
    static const struct timespec pause = {.tv_nsec = 50 * 1000};
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    alb_time start = alb_device_now();
    while (!is_quiet(qp)) {
        alb_time now = alb_device_now();
        if (now < atomic_load(&context->no_wait_until))
            return;
        if (now - start >= quiet_wait_ns) {
            atomic_store(&context->no_wait_until, now + no_wait_ns);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

static uint32_t detach(struct alb_door_qp *qp)
{
    destroy_engine_qp(qp);
    return alb_door_notices_forget(qp->ex.qp_base.context, qp->notices, ALB_DOOR_QP_NOTICES);
}

static void free_qp(struct alb_door_qp *qp)
{
    struct ibv_qp *outer = &qp->ex.qp_base;
    alb_door_txn_destroy(qp);
    alb_door_builder_destroy(qp);
    if (outer->pd)
        alb_door_pd_put(outer->pd);
    alb_door_forget(alb_door_context(outer->context), &qp->link);
    pthread_mutex_destroy(&outer->mutex);
    pthread_cond_destroy(&outer->cond);
    free(qp);
}

int alb_door_qp_release(struct alb_door_qp *qp)
{
    alb_device_detach_all(alb_door_context(qp->ex.qp_base.context)->device, qp->engine_qp);
    announce_end(qp);
    wait_quiet(qp);
    detach(qp);
    free_qp(qp);
    return 0;
}

static bool is_in_a_group(struct alb_door_qp *qp)
{
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    struct alb_addr group;
    alb_device_lock(context->device);
    bool is_in = alb_qp_group(qp->engine_qp, &group);
    alb_door_unlock(context);
    return is_in;
}

// EBUSY while it is attached to a multicast group.
int ibv_destroy_qp(struct ibv_qp *outer)
{
    if (!outer)
        return EINVAL;
    struct alb_door_qp *qp = alb_door_qp(outer);
    if (alb_door_is_forked(alb_door_context(outer->context)))
        return 0;
    if (outer->qp_type == IBV_QPT_UD && is_in_a_group(qp))
        return EBUSY;
    announce_end(qp);
    wait_quiet(qp);
    uint32_t delivered = detach(qp);
    alb_door_wait_acknowledged(&outer->mutex, &outer->cond, &outer->events_completed, delivered);
    free_qp(qp);
    return 0;
}

// ---- modify and query -------------------------------------------------------------------------------------

// The move to RESET empties the queues, so posting and polling must be kept out meanwhile.
static int modify_to_reset(struct alb_door_qp *qp, const struct alb_qp_attr *attr, int mask)
{
    struct ibv_qp *outer = &qp->ex.qp_base;
    alb_spinlock_take(&qp->send_lock);
    alb_spinlock_take(&qp->recv_lock);
    lock_queues(outer);
    int error = alb_qp_modify(qp->engine_qp, attr, (uint32_t)mask, alb_device_now());
    unlock_queues(outer);
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
    attr->cap = cap_from(&engine_init.cap);
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

void alb_door_fill_qp(struct verbs_context *verbs)
{
    verbs->create_qp_ex = create_qp_ex;
    verbs->open_qp = open_qp;
}
