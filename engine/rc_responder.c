// SPDX-License-Identifier: BSD-2-Clause
// rc, the responder: takes requests in PSN order, executes them, and notes what is owed to the peer (9.7.4
// and 9.7.5.1).
#include "engine/impl.h"
#include "engine/rc.h"
#include "engine/segmenter.h"
#include "engine/xrc.h"

#define ANSWERED (ALB_OPCODE_READ | ALB_OPCODE_ATOMIC | ALB_OPCODE_ATOMIC_WRITE)

// ---- refusals -------------------------------------------------------------------------------------------------------

// The request at the expected PSN can't be executed: a NAK is sent, and the queue pair is in error (9.9.3).
static enum alb_drop refuse(struct alb_rc *rc, const struct alb_packet *packet, enum alb_outcome outcome, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    const struct alb_refusal *refusal = alb_inbound_refusal(outcome);
    uint8_t syndrome = ALB_AETH_SYNDROME_NAK(refusal->nak);
    alb_qp_count(qp, refusal->stat, 1);
    alb_rc_owe_nak(rc, syndrome, packet->roce.psn);
    alb_inbound_fail(qp, outcome, now);
    alb_event_raise(qp->engine, &qp->event, refusal->event);
    struct alb_qp_failure failure = {
        .status = refusal->status,
        .syndrome = syndrome,
        .at_responder = true,
        .last_psn = packet->roce.psn,
        .awaited_psn = rc->expected,
        .reason = refusal->reason,
    };
    if (alb_qp_state_of(qp) != ALB_QPS_ERR)
        alb_qp_fail(qp, NULL, &failure, now);
    return refusal->drop;
}

// No receive is posted: the peer shall come again later. What it sent behind this packet is dropped until then.
static enum alb_drop not_ready(struct alb_rc *rc, alb_psn psn)
{
    alb_qp_count(rc->qp, ALB_STAT_send_rnr_err, 1);
    rc->loss_receiver.is_reported = true;
    alb_rc_owe_nak(rc, ALB_AETH_SYNDROME_RNR(rc->qp->attr.min_rnr_timer), psn);
    return ALB_DROP_NO_RECEIVE;
}

// ---- execution ------------------------------------------------------------------------------------------------------

// The answer to a READ, if it may be answered.
static enum alb_outcome check_read(struct alb_rc *rc, const struct alb_roce *roce, struct alb_rc_answer *answer)
{
    struct alb_qp *qp = rc->qp;
    const uint8_t *bytes;
    if (roce->length > ALB_MAX_MESSAGE)
        return ALB_OUTCOME_INVALID_REQUEST;
    if (qp->attr.max_dest_rd_atomic == 0)
        return ALB_OUTCOME_INVALID_REQUEST;
    *answer = (struct alb_rc_answer){
        .psn = roce->psn,
        .packets = alb_segmenter_packets(roce->length, qp->attr.path_mtu_bytes),
        .opcode = alb_rc_opcode(rc, roce->opcode),
        .rkey = roce->rkey,
        .va = roce->va,
        .length = roce->length,
        .xrc_srqn = roce->xrc_srqn,
    };
    return alb_inbound_read(qp, roce->rkey, roce->va, roce->length, &bytes);
}

static enum alb_outcome execute_read(struct alb_rc *rc, const struct alb_roce *roce)
{
    struct alb_rc_answer answer;
    enum alb_outcome outcome = check_read(rc, roce, &answer);
    if (outcome != ALB_OUTCOME_OK)
        return outcome;
    return alb_rc_owe_answer(rc, &answer) ? ALB_OUTCOME_OK : ALB_OUTCOME_INVALID_REQUEST;
}

static enum alb_outcome run_atomic(struct alb_rc *rc, const struct alb_packet *packet, uint64_t *original)
{
    struct alb_qp *qp = rc->qp;
    const struct alb_roce *roce = &packet->roce;
    uint64_t operand;
    switch (alb_rc_opcode(rc, roce->opcode)) {
    case ALB_RC_CMP_SWAP:
        return alb_inbound_atomic(qp, ALB_ATOMIC_CMP_SWAP, roce->rkey, roce->va, roce->swap_add, roce->compare,
                                  original);
    case ALB_RC_FETCH_ADD:
        return alb_inbound_atomic(qp, ALB_ATOMIC_FETCH_ADD, roce->rkey, roce->va, roce->swap_add, 0, original);
    default:
        if (packet->payload_bytes != sizeof(operand) || roce->length != sizeof(operand))
            return ALB_OUTCOME_INVALID_REQUEST;
        memcpy(&operand, packet->payload, sizeof(operand)); // its bytes are placed as they come
        return alb_inbound_atomic(qp, ALB_ATOMIC_WRITE, roce->rkey, roce->va, operand, 0, original);
    }
}

static enum alb_outcome execute_atomic(struct alb_rc *rc, const struct alb_packet *packet)
{
    struct alb_qp *qp = rc->qp;
    if (qp->attr.max_dest_rd_atomic == 0 || !alb_rc_make_room(rc))
        return ALB_OUTCOME_INVALID_REQUEST;
    struct alb_rc_answer answer = {
        .psn = packet->roce.psn, .packets = 1, .opcode = alb_rc_opcode(rc, packet->roce.opcode)};
    enum alb_outcome outcome = run_atomic(rc, packet, &answer.original);
    if (outcome != ALB_OUTCOME_OK)
        return outcome;
    rc->replays[rc->replay_next] = (struct alb_rc_replay){true, answer.psn, answer.original};
    rc->replay_next = (rc->replay_next + 1) % rc->answer_capacity;
    alb_rc_owe_answer(rc, &answer);
    return ALB_OUTCOME_OK;
}

static enum alb_outcome execute(struct alb_rc *rc, const struct alb_packet *packet, alb_time now)
{
    uint32_t flags = packet->info->flags;
    if (alb_unlikely(rc->qp->xrcd)) {
        enum alb_outcome outcome = alb_xrc_name(rc->qp, packet->roce.xrc_srqn, rc->assembly.is_open);
        if (outcome != ALB_OUTCOME_OK)
            return outcome;
    }
    if (!(flags & ANSWERED))
        return alb_assembly_add(rc->qp, &rc->assembly, packet, now);
    if (rc->assembly.is_open) // a message in progress comes to its end first
        return ALB_OUTCOME_INVALID_REQUEST;
    return flags & ALB_OPCODE_READ ? execute_read(rc, &packet->roce) : execute_atomic(rc, packet);
}

// PSNs that a request takes: one, or as many as a READ has answers.
static uint32_t psns_of(const struct alb_rc *rc, const struct alb_packet *packet)
{
    if (!(packet->info->flags & ALB_OPCODE_READ))
        return 1;
    return alb_segmenter_packets(packet->roce.length, rc->qp->attr.path_mtu_bytes);
}

static void owe_ack(struct alb_rc *rc)
{
    if (rc->behind_ack == ALB_RC_ACK_REACH)
        return;
    if (rc->ack_is_due)
        alb_qp_count(rc->qp, ALB_STAT_ack_deferred, 1);
    rc->ack_is_due = true;
    alb_scheduler_wake(&rc->qp->engine->scheduler, &rc->qp->source);
}

static void advance(struct alb_rc *rc, uint32_t psns, bool ends_message)
{
    rc->expected = alb_psn_add(rc->expected, (int32_t)psns);
    if (ends_message)
        rc->msn = (rc->msn + 1) & ALB_PSN_MASK;
}

void alb_rc_note_executed(struct alb_rc *rc, uint32_t psns, bool ends_message, bool wants_ack)
{
    // The completion queue has overrun, so that the program won't know.
    if (alb_unlikely(alb_qp_state_of(rc->qp) == ALB_QPS_ERR)) {
        rc->ack_is_due = false;
        alb_rc_owe_nak(rc, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_OPERATIONAL_ERROR), rc->expected);
        return;
    }
    advance(rc, psns, ends_message);
    rc->behind_ack = 0;
    if (wants_ack)
        owe_ack(rc);
}

// A READ or an atomic: its answer, which is owed, is its acknowledgement.
static void note_answered(struct alb_rc *rc, uint32_t psns)
{
    advance(rc, psns, true);
    rc->behind_ack = ALB_MIN(rc->behind_ack + psns, ALB_RC_ACK_REACH);
}

static enum alb_drop accept(struct alb_rc *rc, const struct alb_packet *packet, alb_time now)
{
    rc->is_completing = true;
    enum alb_outcome outcome = execute(rc, packet, now);
    rc->is_completing = false;
    if (outcome == ALB_OUTCOME_RNR)
        return not_ready(rc, packet->roce.psn);
    if (alb_unlikely(outcome != ALB_OUTCOME_OK))
        return refuse(rc, packet, outcome, now);
    if (packet->info->flags & ANSWERED)
        note_answered(rc, psns_of(rc, packet));
    else
        alb_rc_note_executed(rc, 1, packet->info->flags & ALB_OPCODE_LAST, packet->roce.ackreq);
    return ALB_DROP_NONE;
}

// ---- duplicates -----------------------------------------------------------------------------------------------------

// A READ that comes again is executed again; the memory may have changed, as the specification allows (9.7.5.1.5).
static enum alb_drop repeat_read(struct alb_rc *rc, const struct alb_packet *packet)
{
    uint32_t packets = psns_of(rc, packet);
    if (alb_psn_diff(alb_psn_add(packet->roce.psn, (int32_t)packets), rc->expected) > 0)
        return ALB_DROP_DUPLICATE; // asks for more than was ever granted
    bool is_named = !rc->qp->xrcd || alb_xrc_name_keys(rc->qp, packet->roce.xrc_srqn) == ALB_OUTCOME_OK;
    struct alb_rc_answer answer;
    if (is_named && check_read(rc, &packet->roce, &answer) == ALB_OUTCOME_OK) {
        alb_rc_owe_again(rc, &answer);
        return ALB_DROP_NONE;
    }
    // In place of one that is owed it might say nothing, the peer having its answer long since, and that one would
    // never be sent again. A peer that does wait for the answer asks once more.
    if (!rc->nak_is_due)
        alb_rc_owe_nak(rc, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR), packet->roce.psn);
    return ALB_DROP_DUPLICATE;
}

// The result of an atomic that was executed under that PSN, or NULL. The latest comes first: PSNs come round.
static const struct alb_rc_replay *find_replay(const struct alb_rc *rc, alb_psn psn)
{
    for (uint32_t i = 1; i <= rc->answer_capacity; i++) {
        const struct alb_rc_replay *replay =
            &rc->replays[(rc->replay_next + rc->answer_capacity - i) % rc->answer_capacity];
        if (replay->is_valid && replay->psn == psn)
            return replay;
    }
    return NULL;
}

static enum alb_drop repeat_atomic(struct alb_rc *rc, const struct alb_packet *packet)
{
    const struct alb_rc_replay *replay = find_replay(rc, packet->roce.psn);
    if (!replay)
        return ALB_DROP_DUPLICATE;
    struct alb_rc_answer answer = {
        .psn = replay->psn,
        .packets = 1,
        .opcode = alb_rc_opcode(rc, packet->roce.opcode),
        .original = replay->original,
    };
    alb_rc_owe_again(rc, &answer);
    return ALB_DROP_NONE;
}

static enum alb_drop repeat(struct alb_rc *rc, const struct alb_packet *packet)
{
    alb_qp_count(rc->qp, ALB_STAT_duplicate_request, 1);
    if (packet->info->flags & ALB_OPCODE_READ)
        return repeat_read(rc, packet);
    if (packet->info->flags & (ALB_OPCODE_ATOMIC | ALB_OPCODE_ATOMIC_WRITE))
        return repeat_atomic(rc, packet);
    owe_ack(rc); // the acknowledgement was lost, or is late
    return ALB_DROP_DUPLICATE;
}

static enum alb_drop report_gap(struct alb_rc *rc)
{
    alb_qp_count(rc->qp, ALB_STAT_out_of_seq_request, 1);
    alb_qp_count(rc->qp, ALB_STAT_sent_seq_err, 1);
    alb_rc_owe_nak(rc, ALB_AETH_SYNDROME_NAK(ALB_NAK_PSN_SEQUENCE_ERROR), rc->expected);
    return ALB_DROP_OUT_OF_SEQUENCE;
}

enum alb_drop alb_rc_on_request(struct alb_rc *rc, const struct alb_packet *packet, alb_time now)
{
    enum alb_qp_state state = alb_qp_state_of(rc->qp);
    if (state < ALB_QPS_RTR || state == ALB_QPS_ERR)
        return ALB_DROP_WRONG_QP_STATE;
    int32_t distance = alb_psn_diff(packet->roce.psn, rc->expected);
    switch (rc->qp->engine->loss->on_segment(&rc->loss_receiver, distance)) {
    case ALB_LOSS_ACCEPT:
        return accept(rc, packet, now);
    case ALB_LOSS_DUPLICATE:
        return repeat(rc, packet);
    case ALB_LOSS_REPORT:
        return report_gap(rc);
    case ALB_LOSS_DROP:
        alb_qp_count(rc->qp, ALB_STAT_out_of_seq_request, 1);
        break;
    }
    return ALB_DROP_OUT_OF_SEQUENCE;
}
