// SPDX-License-Identifier: BSD-2-Clause
// csa, the responder: executes the messages of the request stream, in order and once, and says what is wrong with them.
#include "engine/csa_message.h"
#include "engine/csa_snapshot.h"
#include "engine/impl.h"
#include "engine/xrc.h"

// ---- refusals -------------------------------------------------------------------------------------------------------

void alb_csa_refuse(struct alb_csa *csa, enum alb_outcome outcome, alb_psn psn, alb_time now)
{
    struct alb_qp *qp = csa->qp;
    const struct alb_refusal *refusal = alb_inbound_refusal(outcome);
    csa->in_requests.syndrome = ALB_AETH_SYNDROME_NAK(refusal->nak);
    alb_qp_count(qp, refusal->stat, 1);
    alb_stream_in_owe_report(&csa->in_requests);
    alb_event_raise(qp->engine, &qp->event, refusal->event);
    struct alb_qp_failure failure = {
        .status = refusal->status,
        .syndrome = csa->in_requests.syndrome,
        .at_responder = true,
        .last_psn = psn,
        .awaited_psn = csa->in_requests.cumulative,
        .reason = refusal->reason,
    };
    csa->is_refusing = true;
    if (alb_qp_state_of(qp) != ALB_QPS_ERR)
        alb_qp_fail(qp, NULL, &failure, now);
}

// The message that came in is what is wrong: so the receive that it has taken ends with it.
static void refuse(struct alb_csa *csa, enum alb_outcome outcome, alb_psn psn, alb_time now)
{
    alb_inbound_fail(csa->qp, outcome, now);
    alb_csa_refuse(csa, outcome, psn, now);
}

// ---- a message begins -----------------------------------------------------------------------------------------------

static enum alb_outcome begin_send(struct alb_qp *qp, const struct alb_csa_segment *segment, struct alb_target *target)
{
    enum alb_outcome outcome = alb_inbound_send(qp, target);
    if (outcome != ALB_OUTCOME_OK)
        return outcome;
    return segment->total_bytes <= qp->recv->length ? ALB_OUTCOME_OK : ALB_OUTCOME_TOO_LONG;
}

enum alb_outcome alb_csa_message_begin(struct alb_qp *qp, const struct alb_csa_segment *segment,
                                       struct alb_target *target)
{
    if (segment->total_bytes > ALB_MAX_MESSAGE)
        return ALB_OUTCOME_INVALID_REQUEST;
    if (segment->op == ALB_CSA_WRITE || segment->op == ALB_CSA_WRITE_IMM)
        return alb_inbound_write(qp, segment->rkey, segment->va, segment->total_bytes, target);
    return begin_send(qp, segment, target);
}

// The peer counts receives as we do, or one of us is wrong about which message takes which.
static bool is_miscounted(const struct alb_csa *csa, const struct alb_csa_segment *segment)
{
    return alb_csa_uses_receive(segment->op) && segment->recv_number != csa->received;
}

// What a segment names beside memory: its receive and, of XRC, its shared receive queue.
static enum alb_outcome admit(struct alb_csa *csa, const struct alb_csa_segment *segment, bool is_in_progress)
{
    if (is_miscounted(csa, segment))
        return ALB_OUTCOME_INVALID_REQUEST;
    return alb_unlikely(csa->qp->xrcd) ? alb_xrc_name(csa->qp, segment->xrc_srqn, is_in_progress) : ALB_OUTCOME_OK;
}

static enum alb_outcome begin_message(struct alb_csa *csa, const struct alb_csa_segment *segment)
{
    struct alb_qp *qp = csa->qp;
    enum alb_outcome outcome = alb_csa_message_begin(qp, segment, &csa->target);
    // As with rc, where such a packet takes its receive before its memory is looked at.
    if (alb_unlikely(outcome != ALB_OUTCOME_OK && outcome != ALB_OUTCOME_RNR) && segment->op == ALB_CSA_WRITE_IMM &&
        segment->flags & ALB_CSA_LAST)
        alb_qp_take_receive(qp);
    return outcome;
}

static enum alb_outcome begin(struct alb_csa *csa, const struct alb_csa_segment *segment, alb_time now)
{
    struct alb_qp *qp = csa->qp;
    enum alb_outcome outcome = admit(csa, segment, false);
    if (outcome != ALB_OUTCOME_OK)
        return outcome;
    if (alb_csa_is_message(segment->op))
        return begin_message(csa, segment);
    if (alb_csa_is_transaction(segment->op))
        return alb_reflect_in_begin(csa, segment, &csa->target, now);
    return segment->total_bytes <= ALB_MAX_MESSAGE && qp->attr.max_dest_rd_atomic > 0 ? ALB_OUTCOME_OK
                                                                                      : ALB_OUTCOME_INVALID_REQUEST;
}

// ---- its segments ---------------------------------------------------------------------------------------------------

enum alb_outcome alb_csa_message_place(struct alb_qp *qp, const struct alb_csa_segment *segment, uint32_t offset,
                                       const struct alb_target *target)
{
    // The receive is there before the last bytes are.
    if (segment->op == ALB_CSA_WRITE_IMM && segment->flags & ALB_CSA_LAST && !alb_qp_take_receive(qp))
        return ALB_OUTCOME_RNR;
    return alb_place(qp, target, offset, segment->payload, segment->payload_bytes);
}

static enum alb_outcome place(struct alb_csa *csa, const struct alb_csa_segment *segment, uint32_t offset, alb_time now)
{
    struct alb_qp *qp = csa->qp;
    enum alb_outcome outcome = admit(csa, segment, true);
    if (outcome != ALB_OUTCOME_OK)
        return outcome;
    if (alb_csa_is_message(segment->op))
        return alb_csa_message_place(qp, segment, offset, &csa->target);
    if (alb_csa_is_transaction(segment->op))
        return alb_place(qp, &csa->target, offset, segment->payload, segment->payload_bytes);
    return ALB_OUTCOME_OK;
}

static bool place_begin(struct alb_csa *csa, const struct alb_csa_segment *segment, uint32_t offset,
                        struct alb_room *room)
{
    return admit(csa, segment, true) == ALB_OUTCOME_OK && alb_place_begin(csa->qp, &csa->target, offset, room);
}

static bool place_early(struct alb_csa *csa, const struct alb_csa_segment *segment, uint32_t offset)
{
    const struct alb_target target = {
        .kind = ALB_TARGET_REGION, .rkey = segment->rkey, .va = segment->va, .length = segment->total_bytes};
    switch (segment->op) {
    case ALB_CSA_WRITE:
    case ALB_CSA_WRITE_IMM:
        return alb_place_early_in_region(csa->qp, &target, offset, segment->payload, segment->payload_bytes);
    case ALB_CSA_SEND:
    case ALB_CSA_SEND_IMM:
    case ALB_CSA_SEND_INV:
        return alb_place_early_in_receive(csa->qp, segment->recv_number - csa->received, segment->total_bytes, offset,
                                          segment->payload, segment->payload_bytes);
    default:
        return false;
    }
}

// ---- and its end ----------------------------------------------------------------------------------------------------

enum alb_outcome alb_csa_message_end(struct alb_qp *qp, const struct alb_csa_segment *last, alb_time now)
{
    if (last->op == ALB_CSA_WRITE)
        return ALB_OUTCOME_OK;
    struct alb_inbound_end end = {
        .opcode = last->op == ALB_CSA_WRITE_IMM ? ALB_WC_RECV_RDMA_WITH_IMM : ALB_WC_RECV,
        .byte_len = last->total_bytes,
        .solicited = last->flags & ALB_CSA_SOLICITED,
        .src_qpn = qp->attr.dest_qpn,
        .sl = qp->attr.av.sl,
    };
    if (last->op == ALB_CSA_SEND_IMM || last->op == ALB_CSA_WRITE_IMM) {
        end.wc_flags |= ALB_WC_WITH_IMM;
        end.imm_data = last->imm_be;
    }
    if (last->op == ALB_CSA_SEND_INV) {
        end.wc_flags |= ALB_WC_WITH_INV;
        end.invalidate_rkey = last->invalidate_rkey;
    }
    return alb_inbound_complete(qp, &end, now);
}

static enum alb_outcome read(struct alb_csa *csa, const struct alb_csa_segment *segment)
{
    struct alb_csa_answer answer = {
        .request_psn = segment->psn,
        .op = segment->op,
        .rkey = segment->rkey,
        .va = segment->va,
        .length = segment->total_bytes,
        .xrc_srqn = segment->xrc_srqn,
    };
    enum alb_outcome outcome = alb_csa_cut_answer(csa, &answer);
    if (outcome == ALB_OUTCOME_OK)
        outcome = alb_csa_snapshot_take(csa, &answer);
    if (outcome == ALB_OUTCOME_OK)
        alb_csa_owe_answer(csa, &answer);
    return outcome;
}

static enum alb_outcome run_atomic(struct alb_csa *csa, const struct alb_csa_segment *segment, uint64_t *original)
{
    struct alb_qp *qp = csa->qp;
    uint64_t operand;
    switch (segment->op) {
    case ALB_CSA_CMP_SWAP:
        return alb_inbound_atomic(qp, ALB_ATOMIC_CMP_SWAP, segment->rkey, segment->va, segment->operand,
                                  segment->compare, original);
    case ALB_CSA_FETCH_ADD:
        return alb_inbound_atomic(qp, ALB_ATOMIC_FETCH_ADD, segment->rkey, segment->va, segment->operand, 0, original);
    default:
        if (segment->payload_bytes != sizeof(operand))
            return ALB_OUTCOME_INVALID_REQUEST;
        memcpy(&operand, segment->payload, sizeof(operand)); // its bytes are placed as they come
        return alb_inbound_atomic(qp, ALB_ATOMIC_WRITE, segment->rkey, segment->va, operand, 0, original);
    }
}

static enum alb_outcome execute_atomic(struct alb_csa *csa, const struct alb_csa_segment *segment)
{
    struct alb_csa_answer answer = {.request_psn = segment->psn, .op = segment->op};
    alb_csa_forget_answers(csa, segment->acked);
    enum alb_outcome outcome = alb_csa_cut_answer(csa, &answer);
    if (outcome == ALB_OUTCOME_OK)
        outcome = run_atomic(csa, segment, &answer.original);
    if (outcome == ALB_OUTCOME_OK)
        alb_csa_owe_answer(csa, &answer);
    return outcome;
}

// Its completion may find no room. Then the queue pair is in error: what is owed for the requests before it is still
// answered, and then a NAK is sent.
static enum alb_outcome end_message(struct alb_csa *csa, const struct alb_csa_segment *last, alb_time now)
{
    if (alb_unlikely(last->flags & ALB_CSA_REFLECT))
        alb_reflect_in_message(csa, last, now);
    csa->is_refusing = true;
    enum alb_outcome outcome = alb_csa_message_end(csa->qp, last, now);
    csa->is_refusing = alb_qp_state_of(csa->qp) == ALB_QPS_ERR;
    csa->received += alb_csa_uses_receive(last->op);
    if (alb_unlikely(csa->is_refusing)) {
        csa->in_requests.syndrome = ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_OPERATIONAL_ERROR);
        alb_stream_in_owe_report(&csa->in_requests);
    }
    if (alb_unlikely(csa->reflect_in && csa->reflect_in->notice_count))
        alb_reflect_in_notify(csa, now); // the message has left its receive's place
    return outcome;
}

static enum alb_outcome end(struct alb_csa *csa, const struct alb_csa_segment *last, alb_time now)
{
    if (alb_csa_is_message(last->op))
        return end_message(csa, last, now);
    if (alb_csa_is_transaction(last->op))
        return alb_reflect_in_end(csa, last, now);
    if (last->op != ALB_CSA_READ)
        return execute_atomic(csa, last);
    alb_csa_forget_answers(csa, last->acked);
    return read(csa, last);
}

const struct alb_stream_in_ops alb_csa_responder_ops = {
    .begin = begin,
    .place = place,
    .place_begin = place_begin,
    .place_early = place_early,
    .end = end,
    .refuse = refuse,
};
