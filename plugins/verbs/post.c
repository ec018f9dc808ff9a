// SPDX-License-Identifier: BSD-2-Clause
// ibv_post_send(3), ibv_post_recv(3): lists of work requests into the engine's rings.
#include "plugins/verbs/door.h"
#include "plugins/verbs/race_detector.h"

static bool has_sane_list(int count, const struct ibv_sge *list)
{
    return count == 0 || (count > 0 && list);
}

static int translate_bind(const struct ibv_send_wr *wr, struct alb_send_wr *to)
{
    if (!wr->bind_mw.mw || wr->bind_mw.mw->type != IBV_MW_TYPE_2)
        return EINVAL; // type 1 is bound by ibv_bind_mw
    to->bind = alb_door_bind(wr->bind_mw.mw, &wr->bind_mw.bind_info, wr->bind_mw.rkey);
    return 0;
}

// As irdma does it; with other drivers the window keeps its old key until the program gives it the new one. Two queue
// pairs may want one window: one of the keys is its own then.
static void note_bound(struct ibv_mw *mw, uint32_t rkey)
{
    uint32_t index = __atomic_load_n(&mw->rkey, __ATOMIC_RELAXED) & ~0xffu;
    __atomic_store_n(&mw->rkey, index | (rkey & 0xff), __ATOMIC_RELAXED);
}

// The engine's form of a work request. EINVAL: what the engine would not see.
static int translate(const struct alb_door_qp *qp, const struct ibv_send_wr *wr, struct alb_send_wr *to)
{
    const unsigned int known_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;
    if (!has_sane_list(wr->num_sge, wr->sg_list) || wr->send_flags & ~known_flags)
        return EINVAL;
    *to = (struct alb_send_wr){
        .wr_id = wr->wr_id,
        .opcode = (enum alb_wr_opcode)wr->opcode,
        .flags = wr->send_flags,
        .sge = (const struct alb_sge *)wr->sg_list,
        .sge_count = (uint32_t)wr->num_sge,
        .imm_data = wr->imm_data,
        .invalidate_rkey = wr->invalidate_rkey,
    };
    alb_door_raise_level(qp, to);
    if (qp->ex.qp_base.qp_type == IBV_QPT_XRC_SEND)
        to->remote_srqn = wr->qp_type.xrc.remote_srqn;
    if (qp->ex.qp_base.qp_type == IBV_QPT_UD) {
        // Of another operation something else lies where the address handle would be.
        if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
            return EINVAL;
        to->ah = wr->wr.ud.ah ? alb_door_ah(wr->wr.ud.ah)->engine_ah : NULL;
        to->remote_qpn = wr->wr.ud.remote_qpn;
        to->remote_qkey = wr->wr.ud.remote_qkey;
        return 0;
    }
    switch (wr->opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        to->remote_addr = wr->wr.atomic.remote_addr;
        to->rkey = wr->wr.atomic.rkey;
        to->compare_add = wr->wr.atomic.compare_add;
        to->swap = wr->wr.atomic.swap;
        return 0;
    case IBV_WR_BIND_MW:
        to->sge_count = 0;
        return translate_bind(wr, to);
    case IBV_WR_LOCAL_INV:
        to->sge_count = 0;
        return 0;
    default:
        to->remote_addr = wr->wr.rdma.remote_addr;
        to->rkey = wr->wr.rdma.rkey;
        return 0;
    }
}

// Requests before the one that fails are posted; *bad_wr is the one that fails.
static int post_send(struct ibv_qp *outer, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct alb_door_qp *qp = alb_door_qp(outer);
    struct alb_send_wr engine_wr;
    bool any = false;
    int error = 0;
    alb_spinlock_take(&qp->send_lock);
    for (; wr; wr = wr->next) {
        alb_race_detector_post(wr->wr_id);
        error = translate(qp, wr, &engine_wr);
        if (!error)
            error = alb_qp_send_stage(qp->engine_qp, &engine_wr);
        if (error)
            break;
        if (alb_unlikely(wr->opcode == IBV_WR_BIND_MW))
            note_bound(wr->bind_mw.mw, wr->bind_mw.rkey);
        any = true;
    }
    if (any)
        alb_qp_send_commit(qp->engine_qp);
    alb_spinlock_give(&qp->send_lock);
    if (any)
        alb_device_kick(alb_door_context(outer->context)->device, qp->engine_qp);
    if (error && bad_wr)
        *bad_wr = wr;
    return error;
}

static int post_recv(struct ibv_qp *outer, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct alb_door_qp *qp = alb_door_qp(outer);
    bool kick = false;
    int error = 0;
    alb_spinlock_take(&qp->recv_lock);
    for (; wr; wr = wr->next) {
        bool bell = false;
        alb_race_detector_post(wr->wr_id);
        if (has_sane_list(wr->num_sge, wr->sg_list))
            error = alb_qp_recv_post(qp->engine_qp, wr->wr_id, (const struct alb_sge *)wr->sg_list,
                                     (uint32_t)wr->num_sge, &bell);
        else
            error = EINVAL;
        if (error)
            break;
        kick |= bell;
    }
    alb_spinlock_give(&qp->recv_lock);
    if (kick)
        alb_device_kick(alb_door_context(outer->context)->device, qp->engine_qp);
    if (error && bad_wr)
        *bad_wr = wr;
    return error;
}

void alb_door_fill_post(struct verbs_context *verbs)
{
    verbs->context.ops.post_send = post_send;
    verbs->context.ops.post_recv = post_recv;
}
