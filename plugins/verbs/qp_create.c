// SPDX-License-Identifier: BSD-2-Clause
// ibv_create_qp(3), ibv_create_qp_ex(3), ibv_open_qp(3).
#include "plugins/verbs/builder.h"

#include <stdlib.h>

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
        init->cap = alb_door_qp_cap_from(&engine.cap);
    return error;
}

// What the program looks at. An event may come as soon as the engine knows it: one that is opened is at work.
static void init_public(struct alb_door_qp *qp, struct ibv_context *context, const struct ibv_qp_init_attr_ex *init)
{
    struct ibv_qp *outer = &qp->ex.qp_base;
    pthread_mutex_init(&outer->mutex, NULL);
    pthread_cond_init(&outer->cond, NULL);
    alb_door_qp_notices_init(qp);
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

// The engine does not know it, or no more. Sets errno and returns NULL.
static struct ibv_qp *discard(struct alb_door_qp *qp, int error)
{
    pthread_mutex_destroy(&qp->ex.qp_base.mutex);
    pthread_cond_destroy(&qp->ex.qp_base.cond);
    free(qp);
    return alb_door_fail(error);
}

// The engine has it: it is the program's from now on.
static struct ibv_qp *publish(struct alb_door_qp *qp)
{
    struct ibv_qp *outer = &qp->ex.qp_base;
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
    int error = create_engine_qp(qp, init);
    if (error)
        return discard(qp, error);
    if (alb_door_context(context)->level != ALB_LEVEL_DELIVERED)
        error = alb_door_raise_level_of_qp(qp, &init->cap);
    if (!error && init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
        error = alb_door_builder_create(qp, init->send_ops_flags, &init->cap);
    if (error) {
        alb_door_qp_destroy_engine(qp);
        return discard(qp, error);
    }
    qp->ex.qp_base.qp_num = alb_qp_number(qp->engine_qp);
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
    qp->ex.qp_base.qp_num = attr->qp_num;
    int error = alb_door_lock(alb_door_context(context));
    if (!error) {
        error = alb_door_target_open(qp, attr->qp_num);
        if (!error)
            qp->ex.qp_base.state = (enum ibv_qp_state)alb_qp_current_state(qp->engine_qp);
        alb_door_unlock(alb_door_context(context));
    }
    return error ? discard(qp, error) : publish(qp);
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

void alb_door_fill_qp(struct verbs_context *verbs)
{
    verbs->create_qp_ex = create_qp_ex;
    verbs->open_qp = open_qp;
}
