// SPDX-License-Identifier: BSD-2-Clause
// ibv_wr_post(3): work requests built call by call. Between ibv_wr_start and ibv_wr_complete or ibv_wr_abort the thread
// holds the send lock. A request is staged when the next one begins or the batch ends, because its setters come in any
// order. The first error is kept, and ibv_wr_complete then posts nothing and returns it.
#include "plugins/verbs/builder.h"
#include "plugins/verbs/race_detector.h"

#include <stdlib.h>

static struct alb_door_qp *door_qp(struct ibv_qp_ex *ex)
{
    return ALB_CONTAINER_OF(ex, struct alb_door_qp, ex);
}

static struct alb_door_builder *builder_of(struct ibv_qp_ex *ex)
{
    return door_qp(ex)->builder;
}

static void refuse(struct alb_door_builder *builder, int error)
{
    alb_door_builder_refuse(builder, error);
}

void alb_door_builder_stage(struct alb_door_qp *qp)
{
    struct alb_door_builder *builder = qp->builder;
    enum alb_door_building building = builder->building;
    builder->building = ALB_DOOR_BUILDING_NONE;
    if (building == ALB_DOOR_BUILDING_NONE || builder->error)
        return;
    if (building == ALB_DOOR_BUILDING_TXN) {
        builder->error = alb_door_txn_stage(qp);
        return;
    }
    alb_race_detector_post(builder->wr.wr_id);
    builder->error = alb_qp_send_stage(qp->engine_qp, &builder->wr);
}

uint32_t alb_door_builder_flags(struct alb_door_qp *qp)
{
    const unsigned int known = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;
    unsigned int flags = qp->ex.wr_flags;
    if (flags & ~known)
        refuse(qp->builder, EINVAL);
    return flags & ~(unsigned int)IBV_SEND_INLINE; // whether data is inline follows from the setter
}

struct alb_send_wr *alb_door_builder_begin(struct alb_door_qp *qp, enum alb_wr_opcode opcode)
{
    struct alb_door_builder *builder = qp->builder;
    alb_door_builder_stage(qp);
    builder->wr = (struct alb_send_wr){.wr_id = qp->ex.wr_id, .opcode = opcode, .flags = alb_door_builder_flags(qp)};
    alb_door_raise_level(qp, &builder->wr);
    builder->building = ALB_DOOR_BUILDING_REQUEST;
    return &builder->wr;
}

static struct alb_send_wr *begin(struct ibv_qp_ex *ex, enum alb_wr_opcode opcode)
{
    return alb_door_builder_begin(door_qp(ex), opcode);
}

static struct alb_send_wr *begin_remote(struct ibv_qp_ex *ex, enum alb_wr_opcode opcode, uint32_t rkey, uint64_t addr)
{
    struct alb_send_wr *wr = begin(ex, opcode);
    wr->rkey = rkey;
    wr->remote_addr = addr;
    return wr;
}

// ---- data -----------------------------------------------------------------------------------------------------------

// A setter belongs to the request before it: without one the batch is refused.
static bool is_building(struct alb_door_builder *builder)
{
    if (builder->building != ALB_DOOR_BUILDING_NONE)
        return true;
    refuse(builder, EINVAL);
    return false;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_sge *list)
{
    struct alb_door_builder *builder = builder_of(ex);
    if (!is_building(builder))
        return;
    if (count > builder->sge_max || (count > 0 && !list)) {
        refuse(builder, EINVAL);
        return;
    }
    if (builder->building == ALB_DOOR_BUILDING_TXN) {
        alb_door_txn_set_sge_list(door_qp(ex), count, list);
        return;
    }
    if (count > 0)
        memcpy(builder->sge, list, count * sizeof(*list));
    builder->wr.sge = builder->sge;
    builder->wr.sge_count = (uint32_t)count;
}

// As providers do it, a single empty buffer is no buffer: its key need not be valid.
static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    const struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
    wr_set_sge_list(ex, length > 0 ? 1 : 0, &sge);
}

// False: it is more than the queue pair takes.
static bool gather(const struct alb_door_builder *builder, size_t count, const struct ibv_data_buf *list, uint8_t *to,
                   uint32_t *length)
{
    *length = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].length > builder->inline_max_bytes - *length)
            return false;
        if (list[i].length > 0)
            memcpy(to + *length, list[i].addr, list[i].length);
        *length += (uint32_t)list[i].length;
    }
    return true;
}

// Copies at once: the program may use its buffers again when a setter has returned.
static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_data_buf *list)
{
    struct alb_door_builder *builder = builder_of(ex);
    if (!is_building(builder))
        return;
    bool is_txn = builder->building == ALB_DOOR_BUILDING_TXN;
    uint8_t *to = is_txn ? alb_door_txn_inline_room(door_qp(ex)) : builder->inline_data;
    uint32_t length;
    if (!to)
        return;
    if (!gather(builder, count, list, to, &length)) {
        refuse(builder, EINVAL);
        return;
    }
    if (is_txn) {
        alb_door_txn_set_inline(door_qp(ex), length);
        return;
    }
    builder->inline_sge = (struct alb_sge){.addr = (uintptr_t)builder->inline_data, .length = length};
    builder->wr.sge = &builder->inline_sge;
    builder->wr.sge_count = 1;
    builder->wr.flags |= ALB_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    const struct ibv_data_buf buf = {.addr = addr, .length = length};
    wr_set_inline_data_list(ex, 1, &buf);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
    struct alb_send_wr *wr = &builder_of(ex)->wr;
    if (!is_building(builder_of(ex)))
        return;
    wr->ah = ah ? alb_door_ah(ah)->engine_ah : NULL;
    wr->remote_qpn = remote_qpn;
    wr->remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
    if (is_building(builder_of(ex)))
        builder_of(ex)->wr.remote_srqn = remote_srqn;
}

// ---- operations -----------------------------------------------------------------------------------------------------

static void wr_send(struct ibv_qp_ex *ex)
{
    begin(ex, ALB_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
    begin(ex, ALB_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
    begin(ex, ALB_WR_SEND_WITH_INV)->invalidate_rkey = invalidate_rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
    begin(ex, ALB_WR_LOCAL_INV)->invalidate_rkey = invalidate_rkey;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
    begin_remote(ex, ALB_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
    begin_remote(ex, ALB_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
    begin_remote(ex, ALB_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr)->imm_data = imm_data;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
                              uint64_t swap)
{
    struct alb_send_wr *wr = begin_remote(ex, ALB_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);
    wr->compare_add = compare;
    wr->swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
    begin_remote(ex, ALB_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr)->compare_add = add;
}

// The eight bytes are taken now; this operation has no setter for data.
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *value)
{
    const struct ibv_data_buf buf = {.addr = (void *)value, .length = sizeof(uint64_t)};
    begin_remote(ex, ALB_WR_ATOMIC_WRITE, rkey, remote_addr);
    wr_set_inline_data_list(ex, 1, &buf);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
    struct alb_send_wr *wr = begin(ex, ALB_WR_BIND_MW);
    if (!mw || !info || mw->type != IBV_MW_TYPE_2) {
        refuse(builder_of(ex), EINVAL);
        return;
    }
    wr->bind = alb_door_bind(mw, info, rkey);
}

// ---- batches --------------------------------------------------------------------------------------------------------

// In a forked child a thread that is not there may hold the lock: nothing is waited for, and the batch is refused.
static void wr_start(struct ibv_qp_ex *ex)
{
    struct alb_door_qp *qp = door_qp(ex);
    bool is_forked = alb_door_is_forked(alb_door_context(ex->qp_base.context));
    if (alb_likely(!is_forked))
        alb_spinlock_take(&qp->send_lock);
    qp->builder->error = is_forked ? ENODEV : 0;
    qp->builder->building = ALB_DOOR_BUILDING_NONE;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    struct alb_door_qp *qp = door_qp(ex);
    alb_door_builder_stage(qp);
    int error = qp->builder->error;
    if (error)
        alb_qp_send_abort(qp->engine_qp);
    else
        alb_qp_send_commit(qp->engine_qp);
    alb_spinlock_give(&qp->send_lock);
    if (!error)
        alb_device_kick(alb_door_context(ex->qp_base.context)->device, qp->engine_qp);
    return error;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    struct alb_door_qp *qp = door_qp(ex);
    qp->builder->building = ALB_DOOR_BUILDING_NONE;
    alb_qp_send_abort(qp->engine_qp);
    alb_spinlock_give(&qp->send_lock);
}

// ---- creation -------------------------------------------------------------------------------------------------------

// The table of operations and types in ibv_wr_post(3).
uint64_t alb_door_builder_ops(enum ibv_qp_type type)
{
    const uint64_t ud = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    const uint64_t uc = ud | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
                        IBV_QP_EX_WITH_BIND_MW;
    const uint64_t xrc = uc | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                         IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV;
    const uint64_t rc = xrc | IBV_QP_EX_WITH_ATOMIC_WRITE;
    switch (type) {
    case IBV_QPT_RC:
        return rc;
    case IBV_QPT_XRC_SEND:
        return xrc;
    case IBV_QPT_UC:
        return uc;
    case IBV_QPT_UD:
        return ud;
    default:
        return 0;
    }
}

static void fill_operations(struct ibv_qp_ex *ex, uint64_t flags)
{
    if (flags & IBV_QP_EX_WITH_SEND)
        ex->wr_send = wr_send;
    if (flags & IBV_QP_EX_WITH_SEND_WITH_IMM)
        ex->wr_send_imm = wr_send_imm;
    if (flags & IBV_QP_EX_WITH_SEND_WITH_INV)
        ex->wr_send_inv = wr_send_inv;
    if (flags & IBV_QP_EX_WITH_RDMA_WRITE)
        ex->wr_rdma_write = wr_rdma_write;
    if (flags & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
        ex->wr_rdma_write_imm = wr_rdma_write_imm;
    if (flags & IBV_QP_EX_WITH_RDMA_READ)
        ex->wr_rdma_read = wr_rdma_read;
    if (flags & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
        ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    if (flags & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
        ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
    if (flags & IBV_QP_EX_WITH_ATOMIC_WRITE)
        ex->wr_atomic_write = wr_atomic_write;
    if (flags & IBV_QP_EX_WITH_LOCAL_INV)
        ex->wr_local_inv = wr_local_inv;
    if (flags & IBV_QP_EX_WITH_BIND_MW)
        ex->wr_bind_mw = wr_bind_mw;
}

static void fill_setters(struct ibv_qp_ex *ex)
{
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    if (ex->qp_base.qp_type == IBV_QPT_UD)
        ex->wr_set_ud_addr = wr_set_ud_addr;
    if (ex->qp_base.qp_type == IBV_QPT_XRC_SEND)
        ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
}

int alb_door_builder_create(struct alb_door_qp *qp, uint64_t send_ops_flags, const struct ibv_qp_cap *cap)
{
    size_t sge_bytes = cap->max_send_sge * sizeof(struct alb_sge);
    struct alb_door_builder *builder = calloc(1, sizeof(*builder) + sge_bytes + cap->max_inline_data);
    if (!builder)
        return ENOMEM;
    builder->sge_max = cap->max_send_sge;
    builder->inline_max_bytes = cap->max_inline_data;
    builder->sge = (struct alb_sge *)(builder + 1);
    builder->inline_data = (uint8_t *)builder->sge + sge_bytes;
    qp->builder = builder;
    fill_operations(&qp->ex, send_ops_flags);
    fill_setters(&qp->ex);
    return 0;
}

void alb_door_builder_destroy(struct alb_door_qp *qp)
{
    free(qp->builder);
    qp->builder = NULL;
}
