// SPDX-License-Identifier: BSD-2-Clause
// The model's receives: which message may have come to one, and with what it may complete.
#include "sim/model.h"

#include <stdlib.h>
#include <string.h>

static bool fits_message(const struct alb_model_op *op, const struct alb_wc *wc, const uint8_t *got, uint32_t got_bytes)
{
    bool has_imm = op->opcode == ALB_WR_SEND_WITH_IMM || op->opcode == ALB_WR_RDMA_WRITE_WITH_IMM;
    bool is_write = op->opcode == ALB_WR_RDMA_WRITE_WITH_IMM;
    if (op->fate != ALB_WC_SUCCESS || op->is_undeliverable)
        return false;
    if (wc->opcode != (uint32_t)(is_write ? ALB_WC_RECV_RDMA_WITH_IMM : ALB_WC_RECV))
        return false;
    bool has_inv = op->opcode == ALB_WR_SEND_WITH_INV;
    if (has_imm != !!(wc->flags & ALB_WC_WITH_IMM) || (has_imm && wc->imm_data != op->imm))
        return false;
    if (has_inv != !!(wc->flags & ALB_WC_WITH_INV) || (has_inv && wc->invalidated_rkey != op->invalidate))
        return false;
    return op->length == got_bytes && (is_write || memcmp(op->content, got, got_bytes) == 0);
}

// RC: the next message in order, and no other.
static struct alb_model_op *next_message(struct alb_model_qp *from)
{
    for (; from->next_delivery < from->count; from->next_delivery++)
        if (alb_model_takes_receive(from->ops[from->next_delivery].opcode))
            return &from->ops[from->next_delivery++];
    return NULL;
}

// A message that has come says that all before it is done, too.
static void mark_executed(struct alb_model *model, struct alb_model_qp *from, const struct alb_model_op *until)
{
    for (struct alb_model_op *op = from->ops; op <= until; op++)
        if (op->life == until->life && !op->is_executed) {
            op->is_executed = true;
            alb_model_check_stored(model, from, (uint32_t)(op - from->ops));
        }
}

static struct alb_model_op *find_unreliable(struct alb_model *model, struct alb_model_qp *from,
                                            const struct alb_model_qp *to, const struct alb_wc *wc, const uint8_t *got,
                                            uint32_t got_bytes)
{
    bool keeps_order = from->type == ALB_QPT_UC && !model->may_duplicate;
    for (uint32_t i = keeps_order ? from->next_delivery : 0; i < from->count; i++) {
        struct alb_model_op *op = &from->ops[i];
        bool is_target = from->type != ALB_QPT_UD || op->target == to->index || model->has_restarted;
        if (!alb_model_takes_receive(op->opcode) || !is_target || (op->deliveries > 0 && !model->may_duplicate) ||
            !fits_message(op, wc, got, got_bytes))
            continue;
        if (keeps_order)
            from->next_delivery = i + 1;
        return op;
    }
    return NULL;
}

// What an unreliable queue pair sent before its side began anew may still arrive.
static bool has_number(const struct alb_model_qp *qp, alb_qpn number)
{
    for (uint32_t i = 0; i < ALB_MIN(qp->former_count, (uint32_t)ALB_MODEL_FORMER); i++)
        if (qp->former_numbers[i] == number)
            return true;
    return qp->number == number;
}

// Of two queue pairs that have had the sender's number either may be it.
static struct alb_model_op *find_datagram(struct alb_model *model, const struct alb_model_qp *to,
                                          const struct alb_wc *wc, const uint8_t *got, uint32_t got_bytes)
{
    struct alb_model_op *op = NULL;
    for (uint32_t i = 0; i < model->qp_count && !op; i++) {
        struct alb_model_qp *from = &model->qps[1 - to->side][i];
        if (from->type == ALB_QPT_UD && has_number(from, wc->src_qpn))
            op = find_unreliable(model, from, to, wc, got, got_bytes);
    }
    return op;
}

// What is behind a message is as it was: all of the receive, where a WRITE with immediate took it. Of UC a message that
// was never whole may have been there before.
static void check_behind(struct alb_model *model, const struct alb_model_qp *qp, const struct alb_model_recv *recv,
                         uint32_t number, uint32_t from)
{
    const struct alb_model_memory *memory = &model->memory[qp->side];
    uint8_t *is = alb_model_get(recv->length), *was = alb_model_get(recv->length);
    alb_model_gather(memory->actual, recv->local, recv->local_count, is, recv->length);
    alb_model_gather(memory->expected, recv->local, recv->local_count, was, recv->length);
    if (qp->type != ALB_QPT_UC && from < recv->length && memcmp(is + from, was + from, recv->length - from) != 0)
        alb_model_fail(model, "receive %u of queue pair %u/%u: what is behind byte %u has changed", number, qp->side,
                       qp->index, from);
    free(is);
    free(was);
}

static void deliver(struct alb_model *model, struct alb_model_qp *qp, const struct alb_model_recv *recv,
                    uint32_t number, const struct alb_wc *wc)
{
    struct alb_model_qp *from = alb_model_peer(model, qp);
    bool is_write = wc->opcode == ALB_WC_RECV_RDMA_WITH_IMM;
    uint32_t header = qp->type == ALB_QPT_UD ? ALB_GRH_BYTES : 0;
    uint8_t *got = alb_model_get(recv->length);
    if (!is_write && (wc->byte_len > recv->length || wc->byte_len < header)) {
        alb_model_fail(model, "receive %u of queue pair %u/%u: %u bytes in %u", number, qp->side, qp->index,
                       wc->byte_len, recv->length);
        free(got);
        return;
    }
    alb_model_gather(model->memory[qp->side].actual, recv->local, recv->local_count, got, recv->length);
    check_behind(model, qp, recv, number, is_write ? 0 : wc->byte_len);
    struct alb_model_op *op = NULL;
    if (alb_model_is_reliable(qp->type)) {
        op = next_message(from);
        if (op && !fits_message(op, wc, got, wc->byte_len))
            op = NULL;
        if (op)
            mark_executed(model, from, op);
    } else if (qp->type == ALB_QPT_UD) {
        op = find_datagram(model, qp, wc, got + header, wc->byte_len - header);
    } else {
        op = find_unreliable(model, from, qp, wc, got, wc->byte_len);
        if (op)
            alb_model_check_stored(model, from, (uint32_t)(op - from->ops));
    }
    free(got);
    if (op && alb_model_is_reliable(qp->type) && (uint32_t)(op - from->ops) >= from->held_from)
        alb_model_fail(model, "message %u of queue pair %u/%u came while the send queue was drained",
                       (uint32_t)(op - from->ops), from->side, from->index);
    if (op)
        op->deliveries++;
    else
        alb_model_fail(model, "receive %u of queue pair %u/%u: %u bytes that were not sent, or not now", number,
                       qp->side, qp->index, wc->byte_len);
}

void alb_model_on_recv(struct alb_model *model, struct alb_model_qp *qp, uint32_t number, const struct alb_wc *wc,
                       bool is_error)
{
    struct alb_model_recvs *recvs = qp->used;
    if (number >= recvs->count || recvs->all[number].state != ALB_MODEL_OPEN) {
        alb_model_fail(model, "receive %u of queue pair %u/%u completed twice, or was never posted", number, qp->side,
                       qp->index);
        return;
    }
    struct alb_model_recv *recv = &recvs->all[number];
    for (uint32_t i = 0; recvs == &qp->recvs && i < number; i++)
        if (recvs->all[i].state == ALB_MODEL_OPEN)
            alb_model_fail(model, "receive %u of queue pair %u/%u completed before receive %u", number, qp->side,
                           qp->index, i);
    struct alb_model_op *next = NULL;
    switch (wc->status) {
    case ALB_WC_SUCCESS:
        deliver(model, qp, recv, number, wc);
        break;
    case ALB_WC_WR_FLUSH_ERR:
        if (!is_error || !alb_model_has_cause(model, qp))
            alb_model_fail(model, "receive %u of queue pair %u/%u flushed for nothing", number, qp->side, qp->index);
        break;
    case ALB_WC_LOC_LEN_ERR:
        next = alb_model_is_reliable(qp->type) ? next_message(alb_model_peer(model, qp)) : NULL;
        if (!next || next->length <= recv->length)
            alb_model_fail(model, "receive %u of queue pair %u/%u: too short for nothing", number, qp->side, qp->index);
        break;
    case ALB_WC_LOC_ACCESS_ERR: // a WRITE with immediate took it and was refused
        next = alb_model_is_reliable(qp->type) ? next_message(alb_model_peer(model, qp)) : NULL;
        if (!next || (next->fate != ALB_WC_REM_ACCESS_ERR && next->may_end != ALB_WC_REM_ACCESS_ERR))
            alb_model_fail(model, "receive %u of queue pair %u/%u: refused for nothing", number, qp->side, qp->index);
        break;
    case ALB_WC_REM_INV_REQ_ERR: // or its queue pair allows none
        next = alb_model_is_reliable(qp->type) ? next_message(alb_model_peer(model, qp)) : NULL;
        if (!next || next->fate != ALB_WC_REM_INV_REQ_ERR)
            alb_model_fail(model, "receive %u of queue pair %u/%u: refused for nothing", number, qp->side, qp->index);
        break;
    default:
        alb_model_fail(model, "receive %u of queue pair %u/%u: status %u", number, qp->side, qp->index, wc->status);
    }
    if (wc->status != ALB_WC_SUCCESS)
        qp->may_break = alb_model_peer(model, qp)->may_fail = true;
    recv->state = wc->status == ALB_WC_SUCCESS ? ALB_MODEL_DONE : ALB_MODEL_FAILED;
    recvs->open--;
    alb_model_loosen(&model->memory[qp->side], recv->local, recv->local_count, -1);
    alb_model_adopt(&model->memory[qp->side], recv->local, recv->local_count);
}
