// SPDX-License-Identifier: BSD-2-Clause
// albdv_txn(3): queue pairs that are extended, and the requests that ibv_wr_* gets by it. A transaction is gathered
// piece by piece and staged as one, with its digest, when it ends.
#include "plugins/verbs/builder.h"
#include "plugins/verbs/dv.h"
#include "plugins/verbs/race_detector.h"

#include <stdlib.h>

struct alb_door_txn {
    struct albdv_qp_ex dv;
    struct alb_door_qp *qp;
    uint32_t partial_newest; // UC: number of the newest message of partial completion
    struct alb_txn_wr wr;    // the transaction being built
    uint64_t number;         // of the one staged last
    struct alb_txn_write writes[ALB_TXN_WRITES_MAX];
    struct alb_txn_compare compares[ALB_TXN_COMPARES_MAX];
    struct alb_sge inline_sge[ALB_TXN_WRITES_MAX];
    uint8_t *inline_data; // inline_max_bytes for each write; behind sge
    struct alb_sge sge[]; // sge_max for each write
};

static struct alb_door_txn *txn_of(struct albdv_qp_ex *dv)
{
    return ALB_CONTAINER_OF(dv, struct alb_door_txn, dv);
}

struct alb_door_qp *alb_door_qp_of_dv(struct albdv_qp_ex *dv)
{
    return txn_of(dv)->qp;
}

static void refuse(struct albdv_qp_ex *dv, int error)
{
    alb_door_builder_refuse(txn_of(dv)->qp->builder, error);
}

// ---- transactions ---------------------------------------------------------------------------------------------------

static void wr_txn(struct albdv_qp_ex *dv, enum albdv_level level, uint32_t flags)
{
    struct alb_door_txn *txn = txn_of(dv);
    struct alb_door_qp *qp = txn->qp;
    alb_door_builder_stage(qp);
    if (qp->ex.qp_base.qp_type != IBV_QPT_RC)
        refuse(dv, EOPNOTSUPP);
    if ((level != ALBDV_REFLECTED && level != ALBDV_COMMITTED) ||
        flags & ~(uint32_t)(ALBDV_TXN_IN_PLACE | ALBDV_TXN_HOLD))
        refuse(dv, EINVAL);
    txn->wr = (struct alb_txn_wr){
        .wr_id = qp->ex.wr_id,
        .flags = alb_door_builder_flags(qp),
        .writes = txn->writes,
        .compares = txn->compares,
        .level = (enum alb_level)level,
        .in_place = flags & ALBDV_TXN_IN_PLACE,
        .hold = flags & ALBDV_TXN_HOLD,
    };
    txn->number = 0;
    qp->builder->building = ALB_DOOR_BUILDING_TXN;
}

// True while a transaction is being built; else what was called belongs to none.
static bool is_building(struct albdv_qp_ex *dv)
{
    if (txn_of(dv)->qp->builder->building == ALB_DOOR_BUILDING_TXN)
        return true;
    refuse(dv, EINVAL);
    return false;
}

static void wr_txn_write(struct albdv_qp_ex *dv, uint32_t rkey, uint64_t remote_addr)
{
    struct alb_door_txn *txn = txn_of(dv);
    if (!is_building(dv))
        return;
    if (txn->wr.write_count == ALB_TXN_WRITES_MAX) {
        refuse(dv, EINVAL);
        return;
    }
    txn->writes[txn->wr.write_count++] = (struct alb_txn_write){.remote_addr = remote_addr, .rkey = rkey};
}

// That begun last; NULL, and refused, if there is none.
static struct alb_txn_write *last_write(struct alb_door_qp *qp)
{
    struct alb_door_txn *txn = qp->txn;
    if (txn->wr.write_count > 0)
        return &txn->writes[txn->wr.write_count - 1];
    alb_door_builder_refuse(qp->builder, EINVAL);
    return NULL;
}

void alb_door_txn_set_sge_list(struct alb_door_qp *qp, size_t count, const struct ibv_sge *list)
{
    struct alb_door_txn *txn = qp->txn;
    struct alb_txn_write *write = last_write(qp);
    if (!write)
        return;
    struct alb_sge *sge = &txn->sge[(size_t)(write - txn->writes) * qp->builder->sge_max];
    if (count > 0)
        memcpy(sge, list, count * sizeof(*list));
    write->sge = sge;
    write->sge_count = (uint32_t)count;
    write->is_inline = false;
}

uint8_t *alb_door_txn_inline_room(struct alb_door_qp *qp)
{
    struct alb_txn_write *write = last_write(qp);
    return write ? qp->txn->inline_data + (size_t)(write - qp->txn->writes) * qp->builder->inline_max_bytes : NULL;
}

void alb_door_txn_set_inline(struct alb_door_qp *qp, uint32_t length)
{
    struct alb_txn_write *write = last_write(qp);
    struct alb_sge *sge = &qp->txn->inline_sge[write - qp->txn->writes];
    *sge = (struct alb_sge){.addr = (uintptr_t)alb_door_txn_inline_room(qp), .length = length};
    write->sge = sge;
    write->sge_count = 1;
    write->is_inline = true;
}

static void wr_txn_compare(struct albdv_qp_ex *dv, uint32_t rkey, uint64_t remote_addr, uint64_t expected,
                           uint64_t mask)
{
    struct alb_door_txn *txn = txn_of(dv);
    if (!is_building(dv))
        return;
    if (txn->wr.compare_count == ALB_TXN_COMPARES_MAX) {
        refuse(dv, EINVAL);
        return;
    }
    txn->compares[txn->wr.compare_count++] =
        (struct alb_txn_compare){.remote_addr = remote_addr, .rkey = rkey, .expected = expected, .mask = mask};
}

static void wr_txn_notify(struct albdv_qp_ex *dv, __be32 imm_data)
{
    if (!is_building(dv))
        return;
    txn_of(dv)->wr.notify = true;
    txn_of(dv)->wr.imm_data = imm_data;
}

static void wr_txn_lease(struct albdv_qp_ex *dv, uint64_t lease_ns)
{
    if (is_building(dv))
        txn_of(dv)->wr.lease_ns = lease_ns;
}

static void wr_txn_deadline(struct albdv_qp_ex *dv, uint64_t deadline_ns)
{
    if (is_building(dv))
        txn_of(dv)->wr.deadline_ns = deadline_ns;
}

int alb_door_txn_stage(struct alb_door_qp *qp)
{
    struct alb_door_txn *txn = qp->txn;
    txn->wr.submitted = alb_device_now();
    alb_race_detector_post(txn->wr.wr_id);
    return alb_qp_txn_stage(qp->engine_qp, &txn->wr, &txn->number);
}

static uint64_t wr_txn_end(struct albdv_qp_ex *dv)
{
    struct alb_door_txn *txn = txn_of(dv);
    if (!is_building(dv))
        return 0;
    alb_door_builder_stage(txn->qp);
    return txn->qp->builder->error ? 0 : txn->number;
}

static void wr_reconcile(struct albdv_qp_ex *dv, const struct albdv_token *token, enum albdv_decision decision)
{
    struct alb_door_qp *qp = txn_of(dv)->qp;
    alb_door_builder_stage(qp);
    uint32_t flags = alb_door_builder_flags(qp);
    if (qp->ex.qp_base.qp_type != IBV_QPT_RC)
        refuse(dv, EOPNOTSUPP);
    if (!token || (unsigned)decision > ALBDV_ABORT)
        refuse(dv, EINVAL);
    if (qp->builder->error)
        return;
    const struct alb_txn_token engine_token = {
        .id = {.initiator = token->initiator, .number = token->number},
        .keeper = token->keeper,
    };
    alb_race_detector_post(qp->ex.wr_id);
    qp->builder->error =
        alb_qp_txn_reconcile_stage(qp->engine_qp, qp->ex.wr_id, flags, &engine_token, (enum alb_txn_decision)decision);
}

// ---- requests of verbs that say more --------------------------------------------------------------------------------

// The WRITE or SEND being built, or NULL.
static struct alb_send_wr *message_of(struct albdv_qp_ex *dv, enum ibv_qp_type type)
{
    struct alb_door_qp *qp = txn_of(dv)->qp;
    struct alb_door_builder *builder = qp->builder;
    if (builder->building == ALB_DOOR_BUILDING_REQUEST && qp->ex.qp_base.qp_type == type) {
        switch (builder->wr.opcode) {
        case ALB_WR_SEND:
        case ALB_WR_SEND_WITH_IMM:
        case ALB_WR_SEND_WITH_INV:
        case ALB_WR_RDMA_WRITE:
        case ALB_WR_RDMA_WRITE_WITH_IMM:
            return &builder->wr;
        default:
            break;
        }
    }
    refuse(dv, EINVAL);
    return NULL;
}

static void wr_set_level(struct albdv_qp_ex *dv, enum albdv_level level)
{
    struct alb_send_wr *wr = message_of(dv, IBV_QPT_RC);
    if (!wr)
        return;
    if (level != ALBDV_DELIVERED && level != ALBDV_VISIBLE) {
        refuse(dv, EINVAL);
        return;
    }
    wr->level = (uint8_t)level;
    wr->submitted = alb_device_now();
}

static void wr_set_stages(struct albdv_qp_ex *dv)
{
    struct alb_send_wr *wr = message_of(dv, IBV_QPT_RC);
    if (!wr)
        return;
    wr->wants_stages = true;
    wr->submitted = alb_device_now();
}

static uint32_t wr_set_partial(struct albdv_qp_ex *dv)
{
    struct alb_door_txn *txn = txn_of(dv);
    struct alb_send_wr *wr = message_of(dv, IBV_QPT_UC);
    if (!wr)
        return 0;
    if (wr->opcode != ALB_WR_RDMA_WRITE && wr->opcode != ALB_WR_RDMA_WRITE_WITH_IMM) {
        refuse(dv, EINVAL);
        return 0;
    }
    if (++txn->partial_newest == 0)
        txn->partial_newest = 1;
    wr->partial = txn->partial_newest;
    return wr->partial;
}

static void wr_resend(struct albdv_qp_ex *dv, uint32_t number, uint32_t rkey, uint64_t remote_addr)
{
    struct alb_door_qp *qp = txn_of(dv)->qp;
    if (qp->ex.qp_base.qp_type != IBV_QPT_UC || number == 0) {
        refuse(dv, EINVAL);
        return;
    }
    struct alb_send_wr *wr = alb_door_builder_begin(qp, ALB_WR_RDMA_WRITE);
    wr->rkey = rkey;
    wr->remote_addr = remote_addr;
    wr->partial = number;
    wr->is_resend = true;
}

// ---- life -----------------------------------------------------------------------------------------------------------

static const struct albdv_qp_ex operations = {
    .wr_txn = wr_txn,
    .wr_txn_write = wr_txn_write,
    .wr_txn_compare = wr_txn_compare,
    .wr_txn_notify = wr_txn_notify,
    .wr_txn_lease = wr_txn_lease,
    .wr_txn_deadline = wr_txn_deadline,
    .wr_txn_end = wr_txn_end,
    .wr_reconcile = wr_reconcile,
    .wr_set_level = wr_set_level,
    .wr_set_stages = wr_set_stages,
    .wr_set_partial = wr_set_partial,
    .wr_resend = wr_resend,
};

// In the engine: the first call says how many, which may be that of albedo run's option.
static int enable(struct alb_door_qp *qp, uint32_t in_flight_max)
{
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    bool is_rc = qp->ex.qp_base.qp_type == IBV_QPT_RC;
    uint32_t most = is_rc ? context->limits->txn_out_max : ALB_PARTIAL_MESSAGES_MAX;
    if (qp->has_numbers)
        return in_flight_max > most ? EINVAL : 0;
    int error = alb_door_lock(context);
    if (error)
        return error;
    error =
        is_rc ? alb_qp_txn_enable(qp->engine_qp, in_flight_max) : alb_qp_partial_enable(qp->engine_qp, in_flight_max);
    alb_door_unlock(context);
    qp->has_numbers = !error;
    return error;
}

static uint32_t in_flight_of(const struct ibv_qp_cap *cap)
{
    enum { USUAL = 64 };
    return ALB_MAX(ALB_MIN(cap->max_send_wr, (uint32_t)USUAL), 1u);
}

// A device without reflection, or a queue pair of another type, stays as it is. Its program reckons with the places of
// the send queue, so that there are as many numbers, up to what the engine can have.
int alb_door_raise_level_of_qp(struct alb_door_qp *qp, const struct ibv_qp_cap *cap)
{
    const struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    uint32_t most = context->limits->txn_out_max;
    if (qp->ex.qp_base.qp_type != IBV_QPT_RC)
        return 0;
    int error = enable(qp, ALB_MIN(ALB_MAX(cap->max_send_wr, 1u), most));
    return error == EOPNOTSUPP ? 0 : error;
}

void alb_door_raise_level_of_wr(struct alb_send_wr *wr, enum alb_level level)
{
    switch (wr->opcode) {
    case ALB_WR_SEND:
    case ALB_WR_SEND_WITH_IMM:
    case ALB_WR_SEND_WITH_INV:
    case ALB_WR_RDMA_WRITE:
    case ALB_WR_RDMA_WRITE_WITH_IMM:
        wr->level = (uint8_t)level;
        wr->submitted = alb_device_now();
        break;
    default:
        break;
    }
}

static int create(struct alb_door_qp *qp, const struct ibv_qp_cap *cap)
{
    bool had_builder = qp->builder;
    int error = had_builder ? 0 : alb_door_builder_create(qp, alb_door_builder_ops(qp->ex.qp_base.qp_type), cap);
    if (error)
        return error;
    size_t sge_bytes = (size_t)ALB_TXN_WRITES_MAX * qp->builder->sge_max * sizeof(struct alb_sge);
    size_t inline_bytes = (size_t)ALB_TXN_WRITES_MAX * qp->builder->inline_max_bytes;
    struct alb_door_txn *txn = calloc(1, sizeof(*txn) + sge_bytes + inline_bytes);
    if (!txn) {
        if (!had_builder)
            alb_door_builder_destroy(qp);
        return ENOMEM;
    }
    txn->dv = operations;
    txn->dv.qp = &qp->ex;
    txn->qp = qp;
    txn->inline_data = (uint8_t *)txn->sge + sge_bytes;
    qp->txn = txn;
    return 0;
}

void alb_door_txn_destroy(struct alb_door_qp *qp)
{
    free(qp->txn);
    qp->txn = NULL;
}

static int extend(struct alb_door_qp *qp, const struct albdv_qp_attr *attr)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr queried;
    enum ibv_qp_type type = qp->ex.qp_base.qp_type;
    if (type != IBV_QPT_RC && type != IBV_QPT_UC)
        return EOPNOTSUPP;
    if (attr && (attr->comp_mask != 0 || attr->in_flight_max == 0))
        return EINVAL;
    if (qp->txn)
        return EALREADY;
    int error = ibv_query_qp(&qp->ex.qp_base, &queried, IBV_QP_CAP, &init);
    if (!error)
        error = enable(qp, attr ? attr->in_flight_max : in_flight_of(&init.cap));
    return error ? error : create(qp, &init.cap);
}

struct albdv_qp_ex *alb_door_extend_qp(struct ibv_qp *outer, const struct albdv_qp_attr *attr)
{
    struct alb_door_qp *qp = alb_door_qp(outer);
    int error = extend(qp, attr);
    alb_door_say_refused(alb_door_context(outer->context), "albdv_extend_qp", error);
    return error ? alb_door_fail(error) : &qp->txn->dv;
}

struct albdv_qp_ex *alb_door_qp_ex_from(struct ibv_qp_ex *ex)
{
    struct alb_door_qp *qp = ALB_CONTAINER_OF(ex, struct alb_door_qp, ex);
    if (alb_door_is_forked(alb_door_context(ex->qp_base.context)))
        return alb_door_fail(ENODEV);
    return qp->txn ? &qp->txn->dv : alb_door_fail(EINVAL);
}
