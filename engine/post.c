// SPDX-License-Identifier: BSD-2-Clause
// Post: copies work requests into a queue pair's rings. Runs beside the engine, so it only reads what does not change
// while the queue pair lives, its state, and its own ring.
#include "engine/post.h"

#include "engine/csa_loose.h"
#include "engine/impl.h"

#include <errno.h>

#define SERVICES(type) (1u << (type))
#define RC             SERVICES(ALB_QPT_RC)
#define UC             SERVICES(ALB_QPT_UC)
#define UD             SERVICES(ALB_QPT_UD)
#define XRC            SERVICES(ALB_QPT_XRC_SEND)

// Which services know an operation, and whether its data may be inline.
static const struct {
    uint32_t services;
    bool may_inline;
} operations[] = {
    [ALB_WR_RDMA_WRITE] = {RC | UC | XRC, true},
    [ALB_WR_RDMA_WRITE_WITH_IMM] = {RC | UC | XRC, true},
    [ALB_WR_SEND] = {RC | UC | UD | XRC, true},
    [ALB_WR_SEND_WITH_IMM] = {RC | UC | UD | XRC, true},
    [ALB_WR_RDMA_READ] = {RC | XRC, false},
    [ALB_WR_ATOMIC_CMP_AND_SWP] = {RC | XRC, false},
    [ALB_WR_ATOMIC_FETCH_AND_ADD] = {RC | XRC, false},
    [ALB_WR_LOCAL_INV] = {RC | UC | XRC, false},
    [ALB_WR_BIND_MW] = {RC | UC | XRC, false},
    [ALB_WR_SEND_WITH_INV] = {RC | XRC, true},
    [ALB_WR_ATOMIC_WRITE] = {RC, true},
};

static bool state_takes_sends(enum alb_qp_state state)
{
    return state >= ALB_QPS_RTS;
}

static bool may_be_partial(const struct alb_qp *qp, const struct alb_send_wr *wr)
{
    bool is_write = wr->opcode == ALB_WR_RDMA_WRITE || wr->opcode == ALB_WR_RDMA_WRITE_WITH_IMM;
    return is_write && qp->delivery == &alb_csa_uc_ops && alb_csa_uc_of(qp)->partials;
}

// The length of the message in *length, or the errno of a request that this queue pair can't take.
static int check(const struct alb_qp *qp, const struct alb_send_wr *wr, uint64_t *length)
{
    if ((unsigned)wr->opcode >= ALB_COUNT(operations) || !(operations[wr->opcode].services & SERVICES(qp->type)))
        return EINVAL;
    bool is_inline = wr->flags & ALB_SEND_INLINE;
    if (is_inline && !operations[wr->opcode].may_inline)
        return EINVAL;
    // Inline data is copied, so its pieces need no slots: any number may come (ibv_wr_set_inline_data_list).
    if (!is_inline && wr->sge_count > qp->sq.sge_max)
        return EINVAL;
    *length = 0;
    for (uint32_t i = 0; i < wr->sge_count; i++)
        *length += wr->sge[i].length;
    if (*length > ALB_MAX_MESSAGE || (is_inline && *length > qp->sq.inline_max_bytes))
        return EINVAL;
    if (wr->partial && !may_be_partial(qp, wr))
        return EINVAL;
    switch (wr->opcode) {
    case ALB_WR_ATOMIC_CMP_AND_SWP:
    case ALB_WR_ATOMIC_FETCH_AND_ADD:
    case ALB_WR_ATOMIC_WRITE:
        return *length == sizeof(uint64_t) ? 0 : EINVAL;
    case ALB_WR_BIND_MW:
        return wr->bind.mw && (wr->bind.mr || wr->bind.length == 0) ? 0 : EINVAL;
    default:
        return qp->type == ALB_QPT_UD && (!wr->ah || wr->ah->pd != qp->pd) ? EINVAL : 0;
    }
}

static void copy_inline(struct alb_send_wqe *wqe, const struct alb_send_wr *wr)
{
    uint8_t *to = wqe->inline_data;
    for (uint32_t i = 0; i < wr->sge_count; i++) {
        memcpy(to, (const void *)(uintptr_t)wr->sge[i].addr, wr->sge[i].length);
        to += wr->sge[i].length;
    }
}

static void fill(const struct alb_qp *qp, struct alb_send_wqe *wqe, const struct alb_send_wr *wr, uint64_t length)
{
    wqe->wr_id = wr->wr_id;
    wqe->opcode = (uint8_t)wr->opcode;
    wqe->flags = (uint8_t)(wr->flags | (qp->sq_sig_all ? ALB_SEND_SIGNALED : 0));
    wqe->status = ALB_WC_SUCCESS;
    wqe->is_done = wqe->is_answered = false;
    wqe->vendor_err = 0;
    wqe->txn_number = 0;
    wqe->length = (uint32_t)length;
    wqe->imm_data = wr->imm_data;
    wqe->invalidate_rkey = wr->invalidate_rkey;
    wqe->partial = wr->partial;
    wqe->is_resend = wr->is_resend;
    wqe->xrc_srqn = wr->remote_srqn & ALB_QPN_MASK;
    if (wr->opcode == ALB_WR_BIND_MW) {
        wqe->bind = (struct alb_queued_bind){
            .mw_key = alb_region_key(wr->bind.mw),
            .mr_key = wr->bind.mr ? alb_region_key(wr->bind.mr) : 0,
            .access = wr->bind.access,
            .rkey = wr->bind.rkey,
            .addr = wr->bind.addr,
            .length = wr->bind.length,
        };
    } else if (qp->type == ALB_QPT_UD) {
        wqe->av = *alb_ah_av(wr->ah);
        wqe->remote_qpn = wr->remote_qpn & ALB_QPN_MASK;
        wqe->remote_qkey = wr->remote_qkey;
    } else {
        wqe->remote_addr = wr->remote_addr;
        wqe->rkey = wr->rkey;
        wqe->compare_add = wr->compare_add;
        wqe->swap = wr->swap;
    }
    if (wr->flags & ALB_SEND_INLINE) {
        wqe->sge_count = 0;
        copy_inline(wqe, wr);
    } else {
        wqe->sge_count = (uint16_t)wr->sge_count;
        if (wr->sge_count)
            memcpy(wqe->sge, wr->sge, wr->sge_count * sizeof(*wr->sge));
    }
}

int alb_post_may_stage(const struct alb_qp *qp, uint32_t count)
{
    const struct alb_send_queue *sq = &qp->sq;
    if (!state_takes_sends(atomic_load_explicit(&qp->state, memory_order_acquire)))
        return EINVAL;
    return count <= alb_send_queue_room(sq) ? 0 : ENOMEM;
}

struct alb_send_wqe *alb_post_fill(struct alb_qp *qp, const struct alb_send_wr *wr, uint64_t length)
{
    struct alb_send_wqe *wqe = alb_send_queue_at(&qp->sq, qp->sq.staged++);
    fill(qp, wqe, wr, length);
    return wqe;
}

int alb_qp_send_stage(struct alb_qp *qp, const struct alb_send_wr *wr)
{
    uint64_t length;
    int error = check(qp, wr, &length);
    if (!error)
        error = alb_post_may_stage(qp, 1);
    if (!error && alb_unlikely(wr->level || wr->wants_stages))
        return alb_reflect_stage_message(qp, wr, length);
    if (!error)
        alb_post_fill(qp, wr, length);
    return error;
}

void alb_qp_send_commit(struct alb_qp *qp)
{
    alb_reflect_commit(qp);
    atomic_store_explicit(&qp->sq.tail, qp->sq.staged, memory_order_release);
}

void alb_qp_send_abort(struct alb_qp *qp)
{
    qp->sq.staged = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed);
    alb_reflect_abort(qp);
}

int alb_qp_recv_post(struct alb_qp *qp, uint64_t wr_id, const struct alb_sge *sge, uint32_t sge_count, bool *bell)
{
    *bell = false;
    bool has_queue = !qp->srq && qp->recv_cq;
    if (!has_queue || atomic_load_explicit(&qp->state, memory_order_acquire) == ALB_QPS_RESET)
        return EINVAL;
    int error = alb_recv_queue_post(&qp->rq, wr_id, sge, sge_count);
    if (error)
        return error;
    // The second of the two, this post or the move to ERR, sees the other and has the receive flushed.
    atomic_thread_fence(memory_order_seq_cst);
    *bell = atomic_load_explicit(&qp->state, memory_order_relaxed) == ALB_QPS_ERR ||
            atomic_load_explicit(&qp->wants_receive, memory_order_relaxed);
    return 0;
}
