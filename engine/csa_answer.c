// SPDX-License-Identifier: BSD-2-Clause
// csa, what the responder sends: answers to READs and atomics, as segments of the response stream. An answer is kept
// until the requester is known to hold it, so that nothing is executed twice to answer twice.
#include "engine/csa_cut.h"
#include "engine/csa_message.h"
#include "engine/csa_packet.h"
#include "engine/csa_run.h"
#include "engine/csa_snapshot.h"
#include "engine/impl.h"
#include "engine/inbound.h"
#include "engine/outbound.h"
#include "engine/segmenter.h"
#include "engine/xrc.h"

static struct alb_csa_answer *answer_at(const struct alb_csa *csa, uint32_t i)
{
    return &csa->answers[(csa->answer_first + i) % csa->answer_capacity];
}

static uint8_t op_of(const struct alb_csa_answer *answer)
{
    return answer->op == ALB_CSA_READ ? ALB_CSA_READ_DATA : ALB_CSA_RESULT;
}

static enum alb_wr_opcode request_of(const struct alb_csa_answer *answer)
{
    switch (answer->op) {
    case ALB_CSA_CMP_SWAP:
        return ALB_WR_ATOMIC_CMP_AND_SWP;
    case ALB_CSA_FETCH_ADD:
        return ALB_WR_ATOMIC_FETCH_AND_ADD;
    case ALB_CSA_READ:
        return ALB_WR_RDMA_READ;
    default:
        return ALB_WR_ATOMIC_WRITE;
    }
}

static void describe(const struct alb_csa *csa, const struct alb_csa_answer *answer, struct alb_csa_segment *segment)
{
    *segment = (struct alb_csa_segment){
        .op = op_of(answer),
        .dest_qpn = csa->qp->attr.dest_qpn,
        .total_bytes = answer->length,
        .request_psn = answer->request_psn,
        .original = answer->op == ALB_CSA_READ ? 0 : answer->original,
    };
}

// ---- what is owed ---------------------------------------------------------------------------------------------------

static void drop_oldest(struct alb_csa *csa)
{
    alb_csa_snapshot_put(csa, answer_at(csa, 0));
    csa->answer_first = (csa->answer_first + 1) % csa->answer_capacity;
    csa->answer_count--;
}

// Answers whose every segment is before psn are done with.
static void forget_until(struct alb_csa *csa, alb_psn psn)
{
    while (csa->answer_count > 0) {
        const struct alb_csa_answer *oldest = answer_at(csa, 0);
        if (alb_psn_diff(psn, alb_psn_add(oldest->first, (int32_t)oldest->packets)) < 0)
            break;
        drop_oldest(csa);
        if (csa->responses.next != csa->answer_psn) // the next one may have waited for that (refuse)
            alb_stream_out_wake(&csa->responses);
    }
}

void alb_csa_forget_all_answers(struct alb_csa *csa)
{
    while (csa->answer_count > 0)
        drop_oldest(csa);
}

void alb_csa_forget_snapshots(struct alb_csa *csa)
{
    for (uint32_t i = 0; i < csa->answer_count; i++) {
        struct alb_csa_answer *answer = answer_at(csa, i);
        answer->is_forgotten |= answer->op == ALB_CSA_READ && answer->snapshot;
        alb_csa_snapshot_put(csa, answer);
    }
}

void alb_csa_on_answers_acked(struct alb_csa *csa)
{
    forget_until(csa, csa->responses.una);
    if (csa->is_refusing && csa->responses.una == csa->answer_psn)
        alb_stream_in_owe_report(&csa->in_requests);
}

// The requester says in its next request what it holds: that comes with it, a report may be late.
void alb_csa_forget_answers(struct alb_csa *csa, alb_psn acked)
{
    if (alb_psn_is_within(acked, csa->responses.una, alb_stream_out_count(&csa->responses) + 1)) {
        alb_stream_out_acked(&csa->responses, acked, csa->qp->engine->now);
        forget_until(csa, acked);
        if (csa->responses.lost_count > 0 || csa->responses.next != csa->answer_psn)
            alb_stream_out_wake(&csa->responses);
    }
}

enum alb_outcome alb_csa_cut_answer(const struct alb_csa *csa, struct alb_csa_answer *answer)
{
    if (csa->answer_count == csa->answer_capacity)
        return ALB_OUTCOME_INVALID_REQUEST;
    uint32_t payload_max = alb_csa_segment_payload(csa->assoc, ALB_CSA_RESPONSE, op_of(answer), 0);
    answer->segment_bytes = alb_csa_cut(csa->qp->engine, answer->length, payload_max, 0);
    answer->packets = alb_segmenter_packets(answer->length, answer->segment_bytes);
    if (answer->packets > ALB_CSA_MESSAGE_PACKETS_MAX)
        return ALB_OUTCOME_INVALID_REQUEST;
    bool has_room = alb_psn_diff(csa->answer_psn, csa->responses.una) + (int64_t)answer->packets <= ALB_PSN_MASK / 2;
    return has_room ? ALB_OUTCOME_OK : ALB_OUTCOME_RNR;
}

void alb_csa_owe_answer(struct alb_csa *csa, const struct alb_csa_answer *owed)
{
    struct alb_csa_answer *answer = answer_at(csa, csa->answer_count++);
    *answer = *owed;
    answer->first = csa->answer_psn;
    csa->answer_psn = alb_psn_add(csa->answer_psn, (int32_t)answer->packets);
    alb_stream_out_wake(&csa->responses);
}

// ---- its segments ---------------------------------------------------------------------------------------------------

const struct alb_csa_answer *alb_csa_find_answer(const struct alb_csa *csa, alb_psn psn)
{
    for (uint32_t i = 0; i < csa->answer_count; i++) {
        const struct alb_csa_answer *answer = answer_at(csa, i);
        if (alb_psn_is_within(psn, answer->first, answer->packets))
            return answer;
    }
    return NULL;
}

static enum alb_outcome read_memory(struct alb_qp *qp, const struct alb_csa_answer *answer, uint32_t offset,
                                    uint32_t bytes, const uint8_t **source)
{
    if (answer->is_forgotten)
        return ALB_OUTCOME_FORGOTTEN;
    if (answer->snapshot) {
        *source = answer->snapshot + offset;
        return ALB_OUTCOME_OK;
    }
    if (qp->xrcd && alb_xrc_name_keys(qp, answer->xrc_srqn) != ALB_OUTCOME_OK)
        return ALB_OUTCOME_ACCESS;
    return alb_inbound_read(qp, answer->rkey, answer->va + offset, bytes, source);
}

bool alb_csa_answer_rest(const struct alb_csa *csa, alb_psn psn, struct alb_csa_rest_out *rest)
{
    const struct alb_csa_answer *answer = alb_csa_find_answer(csa, psn);
    if (!answer || answer->op != ALB_CSA_READ)
        return false;
    uint32_t k = (uint32_t)alb_psn_diff(psn, answer->first), offset = k * answer->segment_bytes;
    if (k < 1 || k + 1 >= answer->packets)
        return false;
    *rest = (struct alb_csa_rest_out){
        .k = k,
        .packets = answer->packets,
        .segment_bytes = answer->segment_bytes,
        .bytes_count = answer->length - offset,
    };
    return read_memory(csa->qp, answer, offset, answer->length - offset, &rest->bytes) == ALB_OUTCOME_OK;
}

// The oldest answer cannot be given any more, nor those behind it.
static void refuse_oldest(struct alb_csa *csa, enum alb_outcome outcome, alb_time now)
{
    alb_psn request_psn = answer_at(csa, 0)->request_psn;
    alb_csa_stop_answering(csa);
    if (!csa->is_refusing) {
        alb_csa_refuse(csa, outcome, request_psn, now);
        return;
    }
    csa->in_requests.syndrome = ALB_AETH_SYNDROME_NAK(alb_inbound_refusal(outcome)->nak); // not a later request's
    alb_stream_in_owe_report(&csa->in_requests);
}

void alb_csa_refuse_stuck_answer(struct alb_csa *csa, alb_time now)
{
    refuse_oldest(csa, ALB_OUTCOME_TOO_NARROW, now);
}

// The segment's memory is gone, or its copy. That is said when those before it have been answered, since the peer takes
// the oldest one without an answer for what is refused. The peer may hold the segment although no report of it has
// come: then it is asked.
static enum alb_csa_fill refuse(struct alb_csa *csa, const struct alb_csa_answer *answer, enum alb_outcome outcome,
                                alb_psn psn, bool is_probe, alb_time now)
{
    struct alb_stream_out *out = &csa->responses;
    if (psn != out->next && !alb_stream_out_is_surely_missing(out, psn, now)) {
        alb_stream_out_leave(out, psn);
        out->probe_is_due |= is_probe; // else the next one will be
        alb_stream_out_watch(out, now);
        return ALB_CSA_FILL_DONE;
    }
    if (answer == answer_at(csa, 0))
        refuse_oldest(csa, outcome, now);
    return ALB_CSA_FILL_NONE;
}

bool alb_csa_answer_asks_for_report(struct alb_csa *csa, bool is_last, uint32_t cost_bytes)
{
    struct alb_stream_out *out = &csa->responses;
    const struct alb_assoc_live *live = csa->assoc->live;
    out->unasked_bytes += cost_bytes;
    bool is_latest = is_last && alb_psn_next(out->next) == csa->answer_psn;
    if (!alb_assoc_report_is_due(live, out->unasked_bytes) && !alb_assoc_closes(live, cost_bytes) && !is_latest)
        return false;
    out->unasked_bytes = 0;
    return true;
}

static enum alb_csa_fill send_segment(struct alb_csa *csa, alb_psn psn, bool is_probe, struct alb_csa_packet *packet)
{
    struct alb_stream_out *out = &csa->responses;
    const struct alb_csa_answer *answer = alb_csa_find_answer(csa, psn);
    struct alb_csa_segment segment;
    const uint8_t *source = NULL;
    if (!answer)
        return ALB_CSA_FILL_NONE;
    uint32_t k = (uint32_t)alb_psn_diff(psn, answer->first);
    bool is_last = k == answer->packets - 1, is_again = psn != out->next;
    describe(csa, answer, &segment);
    segment.psn = psn;
    segment.index = k;
    segment.payload_bytes = alb_segmenter_bytes(answer->length, answer->segment_bytes, k, 1);
    enum alb_outcome outcome = ALB_OUTCOME_OK;
    if (answer->op == ALB_CSA_READ)
        outcome = read_memory(csa->qp, answer, k * answer->segment_bytes, segment.payload_bytes, &source);
    if (outcome != ALB_OUTCOME_OK)
        return refuse(csa, answer, outcome, psn, is_probe, packet->now);
    uint32_t unasked_bytes = out->unasked_bytes;
    if (is_last)
        segment.flags |= ALB_CSA_LAST;
    if (is_probe)
        segment.flags |= ALB_CSA_PROBING | ALB_CSA_REPORT_NOW;
    if (alb_csa_answer_asks_for_report(csa, is_last, segment.payload_bytes + ALB_CSA_SEGMENT_OVERHEAD))
        segment.flags |= ALB_CSA_REPORT_NOW;
    enum alb_csa_fill fill = alb_csa_add_segment(csa, packet, ALB_CSA_RESPONSE, &segment, 1, is_probe);
    if (fill != ALB_CSA_FILL_DONE) {
        out->unasked_bytes = unasked_bytes;
        return fill;
    }
    alb_outbound_add_answer(csa->qp->engine, packet->builder, source, segment.payload_bytes);
    alb_trace_add(csa->qp->engine, is_again ? ALB_TRACE_resend : ALB_TRACE_send, csa->qp->number, psn,
                  request_of(answer), segment.payload_bytes, packet->now);
    if (is_again)
        alb_qp_count(csa->qp, ALB_STAT_retransmitted_pkts, 1);
    alb_csa_packet_charge(packet, out, &segment);
    return ALB_CSA_FILL_DONE;
}

enum alb_csa_fill alb_csa_fill_response(struct alb_csa *csa, struct alb_csa_packet *packet)
{
    struct alb_stream_out *out = &csa->responses;
    alb_psn psn;
    if (alb_qp_state_of(csa->qp) == ALB_QPS_ERR && !csa->is_refusing)
        return ALB_CSA_FILL_NONE;
    if (out->probe_is_due)
        return alb_csa_send_probe(out, packet);
    if (alb_stream_out_take_probe(out, &psn)) {
        enum alb_csa_fill fill = send_segment(csa, psn, true, packet);
        out->has_probe_psn = fill == ALB_CSA_FILL_PACKET || fill == ALB_CSA_FILL_BATCH;
        return fill;
    }
    if (alb_stream_out_is_silent(out) || alb_csa_has_given_up_answers(csa))
        return ALB_CSA_FILL_NONE;
    if (alb_stream_out_next_lost(out, &psn))
        return send_segment(csa, psn, false, packet);
    if (out->next == csa->answer_psn)
        return ALB_CSA_FILL_NONE;
    if (!alb_stream_out_has_room(out))
        return alb_csa_ask_for_room(out, packet);
    return send_segment(csa, out->next, false, packet);
}
