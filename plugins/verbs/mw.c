// SPDX-License-Identifier: BSD-2-Clause
// ibv_alloc_mw(3), ibv_bind_mw(3). Windows of type 2 are bound by work requests (post.c, qp_ex.c).
#include "plugins/verbs/door.h"
#include "plugins/verbs/race_detector.h"

#include <stdlib.h>

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct alb_door_context *context = alb_door_context(pd->context);
    if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
        return alb_door_fail(EINVAL);
    struct alb_door_mw *mw = calloc(1, sizeof(*mw));
    if (!mw)
        return alb_door_fail(ENOMEM);
    int error = alb_door_lock(context);
    if (!error) {
        error = alb_mw_create(alb_door_engine_pd(pd), (enum alb_mw_type)type, &mw->region);
        alb_door_unlock(context);
    }
    if (error) {
        free(mw);
        return alb_door_fail(error);
    }
    mw->mw = (struct ibv_mw){.context = pd->context, .pd = pd, .rkey = alb_region_key(mw->region), .type = type};
    mw->mw.handle = alb_door_remember(context, ALB_DOOR_MW, &mw->link);
    alb_door_pd_get(pd);
    return &mw->mw;
}

int alb_door_mw_release(struct alb_door_mw *mw)
{
    struct alb_door_context *context = alb_door_context(mw->mw.context);
    if (alb_door_is_forked(context))
        return 0;
    alb_device_lock(context->device);
    int error = alb_mw_destroy(mw->region);
    alb_door_unlock(context);
    if (error)
        return error;
    alb_door_pd_put(mw->mw.pd);
    alb_door_forget(context, &mw->link);
    free(mw);
    return 0;
}

static int dealloc_mw(struct ibv_mw *mw)
{
    return alb_door_answer(alb_door_mw_release(alb_door_mw(mw)));
}

struct alb_mw_bind alb_door_bind(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info, uint32_t rkey)
{
    return (struct alb_mw_bind){
        .mw = alb_door_mw((struct ibv_mw *)mw)->region,
        .mr = info->mr ? alb_door_mr(info->mr)->region : NULL,
        .addr = info->addr,
        .length = info->length,
        .access = info->mw_access_flags & ~(unsigned int)IBV_ACCESS_LOCAL_WRITE,
        .rkey = rkey,
    };
}

static int post_bind(struct alb_door_qp *qp, const struct alb_send_wr *wr)
{
    alb_race_detector_post(wr->wr_id);
    alb_spinlock_take(&qp->send_lock);
    int error = alb_qp_send_stage(qp->engine_qp, wr);
    if (!error)
        alb_qp_send_commit(qp->engine_qp);
    alb_spinlock_give(&qp->send_lock);
    return error;
}

// Binds a window of type 1. Its next key is known as soon as the request is posted: the index stays, the low byte goes
// up by one. Of binds on two queue pairs at once the one that is carried out last stays, as queue pairs are not ordered
// among each other.
static int bind_mw(struct ibv_qp *outer, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct alb_door_qp *qp = alb_door_qp(outer);
    struct alb_spinlock *lock = &alb_door_mw(mw)->bind_lock;
    if (bind->send_flags & ~(unsigned int)(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED))
        return EINVAL;
    alb_spinlock_take(lock);
    const struct alb_send_wr wr = {
        .wr_id = bind->wr_id,
        .opcode = ALB_WR_BIND_MW,
        .flags = bind->send_flags,
        .bind = alb_door_bind(mw, &bind->bind_info, ibv_inc_rkey(mw->rkey)),
    };
    int error = post_bind(qp, &wr);
    if (!error)
        mw->rkey = wr.bind.rkey;
    alb_spinlock_give(lock);
    if (!error)
        alb_device_kick(alb_door_context(outer->context)->device, qp->engine_qp);
    return error;
}

void alb_door_fill_mw(struct verbs_context *verbs)
{
    verbs->context.ops.alloc_mw = alloc_mw;
    verbs->context.ops.dealloc_mw = dealloc_mw;
    verbs->context.ops.bind_mw = bind_mw;
}
