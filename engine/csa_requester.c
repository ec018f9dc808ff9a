// SPDX-License-Identifier: BSD-2-Clause
// csa, the requester: which request is next, whether it may leave, and its segments.
#include "engine/csa_cut.h"
#include "engine/csa_message.h"
#include "engine/csa_packet.h"
#include "engine/impl.h"
#include "engine/outbound.h"
#include "engine/segmenter.h"

// ---- which request --------------------------------------------------------------------------------------------------

static uint32_t tail_of(const struct alb_csa *csa)
{
    return atomic_load_explicit(&csa->qp->sq.tail, memory_order_acquire);
}

// A request that ends here: executed, or failed before it was sent. What was sent before it completes first.
static void finish_unsent(struct alb_csa *csa, struct alb_send_wqe *wqe, enum alb_wc_status status)
{
    wqe->status = (uint8_t)status;
    wqe->is_done = true;
    csa->is_blocked = status != ALB_WC_SUCCESS;
}

static uint8_t op_of(const struct alb_send_wqe *wqe)
{
    switch (wqe->opcode) {
    case ALB_WR_RDMA_WRITE:
        return ALB_CSA_WRITE;
    case ALB_WR_RDMA_WRITE_WITH_IMM:
        return ALB_CSA_WRITE_IMM;
    case ALB_WR_SEND_WITH_IMM:
        return ALB_CSA_SEND_IMM;
    case ALB_WR_SEND_WITH_INV:
        return ALB_CSA_SEND_INV;
    case ALB_WR_RDMA_READ:
        return ALB_CSA_READ;
    case ALB_WR_ATOMIC_CMP_AND_SWP:
        return ALB_CSA_CMP_SWAP;
    case ALB_WR_ATOMIC_FETCH_AND_ADD:
        return ALB_CSA_FETCH_ADD;
    case ALB_WR_ATOMIC_WRITE:
        return ALB_CSA_ATOMIC_WRITE;
    case ALB_WR_TXN_WRITE:
        return ALB_CSA_TXN_WRITE;
    case ALB_WR_TXN_END:
        return ALB_CSA_TXN_END;
    default:
        return ALB_CSA_SEND;
    }
}

static uint8_t flags_of(const struct alb_csa *csa)
{
    return csa->qp->type == ALB_QPT_XRC_SEND ? ALB_CSA_XRC : 0;
}

// What the frames of a request say, but for where in it they are.
static void describe(const struct alb_csa *csa, const struct alb_send_wqe *wqe, struct alb_csa_segment *segment)
{
    *segment = (struct alb_csa_segment){
        .op = op_of(wqe),
        .flags = flags_of(csa),
        .dest_qpn = csa->qp->attr.dest_qpn,
        .total_bytes = wqe->length,
        .xrc_srqn = wqe->xrc_srqn,
        .recv_number = wqe->recv_number,
        .imm_be = wqe->imm_data,
        .invalidate_rkey = wqe->invalidate_rkey,
        .va = wqe->remote_addr,
        .rkey = wqe->rkey,
        .acked = csa->in_responses.cumulative,
    };
    if (wqe->opcode == ALB_WR_ATOMIC_CMP_AND_SWP) {
        segment->compare = wqe->compare_add;
        segment->operand = wqe->swap;
    } else if (wqe->opcode == ALB_WR_ATOMIC_FETCH_AND_ADD) {
        segment->operand = wqe->compare_add;
    } else if (wqe->opcode == ALB_WR_TXN_WRITE) {
        segment->txn.number = wqe->compare_add;
        segment->txn_mode = (uint32_t)wqe->swap;
    }
}

// An ordinary message that waits for a verdict says so in its last segment.
static bool wants_verdict(const struct alb_send_wqe *wqe)
{
    return wqe->txn_number != 0 && wqe->opcode != ALB_WR_TXN_END;
}

static void ask_for_verdict(const struct alb_csa *csa, const struct alb_send_wqe *wqe, struct alb_csa_segment *segment)
{
    const struct alb_txn_out *txn = alb_txn_out_at(csa->reflect_out, wqe->txn_number);
    segment->flags |= ALB_CSA_REFLECT;
    segment->txn = (struct alb_csa_txn_id){.initiator = csa->reflect_out->initiator, .number = wqe->txn_number};
    segment->digest = alb_digest_to_wire(txn->digest);
    segment->txn_low_water = atomic_load_explicit(&csa->reflect_out->ended, memory_order_relaxed);
}

static enum alb_wc_status check(const struct alb_csa *csa, const struct alb_send_wqe *wqe)
{
    if (alb_outbound_wants_answer(wqe) && csa->qp->attr.max_rd_atomic == 0)
        return ALB_WC_LOC_QP_OP_ERR;
    return alb_outbound_check(csa->qp, wqe);
}

static bool carries_data(const struct alb_send_wqe *wqe)
{
    return wqe->opcode != ALB_WR_RDMA_READ && wqe->opcode != ALB_WR_ATOMIC_CMP_AND_SWP &&
           wqe->opcode != ALB_WR_ATOMIC_FETCH_AND_ADD;
}

// Half the PSN space at the most is in use from the oldest request that has not completed on, or old and new could not
// be distinguished. What is unacknowledged lies behind its first PSN, and so does all that was executed while its
// answer or verdict did not come.
static bool has_psns(const struct alb_csa *csa, uint32_t packets)
{
    uint32_t head = atomic_load_explicit(&csa->qp->sq.head, memory_order_relaxed);
    alb_psn oldest = head == csa->started ? csa->started_psn : alb_csa_wqe(csa, head)->first_psn;
    return alb_psn_diff(csa->started_psn, oldest) + (int64_t)packets <= ALB_PSN_MASK / 2;
}

// Of each segment but the last, which may have a longer header.
static uint32_t segment_bytes_of(const struct alb_csa *csa, const struct alb_send_wqe *wqe)
{
    uint8_t op = op_of(wqe), flags = flags_of(csa);
    uint8_t last = alb_unlikely(wants_verdict(wqe)) ? flags | ALB_CSA_REFLECT : flags;
    uint32_t longer_by = alb_csa_segment_header_bytes(ALB_CSA_REQUEST, op, last) -
                         alb_csa_segment_header_bytes(ALB_CSA_REQUEST, op, flags);
    uint32_t room = alb_csa_segment_payload(csa->assoc, ALB_CSA_REQUEST, op, last);
    return alb_csa_cut(csa->qp->engine, wqe->length, room, longer_by);
}

// Cuts the request into segments and gives it its PSNs. False: not now.
static bool cut(struct alb_csa *csa, struct alb_send_wqe *wqe)
{
    wqe->recv_number = csa->recv_number;
    uint32_t segment_bytes = segment_bytes_of(csa, wqe);
    uint32_t packets = carries_data(wqe) ? alb_segmenter_packets(wqe->length, segment_bytes) : 1;
    if (packets > ALB_CSA_MESSAGE_PACKETS_MAX) { // in segments as short as the way wants them
        finish_unsent(csa, wqe, ALB_WC_LOC_LEN_ERR);
        return true;
    }
    if (!has_psns(csa, packets))
        return false;
    wqe->first_psn = csa->started_psn;
    wqe->packets = packets;
    wqe->segment_bytes = segment_bytes;
    wqe->is_answered = false;
    csa->started_psn = alb_psn_add(csa->started_psn, (int32_t)packets);
    csa->answered_open += alb_outbound_wants_answer(wqe) || wqe->txn_number;
    csa->recv_number += alb_wqe_takes_receive(wqe);
    return true;
}

// Starts the next posted request; local operations are executed. False if none may start now.
static bool start_next(struct alb_csa *csa)
{
    struct alb_qp *qp = csa->qp;
    if (csa->started == tail_of(csa) || csa->is_blocked || alb_qp_state_of(qp) != ALB_QPS_RTS)
        return false;
    struct alb_send_wqe *wqe = alb_csa_wqe(csa, csa->started);
    if (wqe->flags & ALB_SEND_FENCE && csa->answered_open > 0)
        return false;
    wqe->first_psn = csa->started_psn;
    wqe->packets = 0;
    if (wqe->opcode == ALB_WR_TXN_ASK) {
        wqe->is_answered = false;
        csa->answered_open++;
    } else if (alb_outbound_is_local(wqe)) {
        finish_unsent(csa, wqe, alb_outbound_execute(qp, wqe));
    } else {
        enum alb_wc_status status = check(csa, wqe);
        if (status != ALB_WC_SUCCESS)
            finish_unsent(csa, wqe, status);
        else if (!cut(csa, wqe))
            return false;
        else
            alb_outbound_change_source(qp, wqe);
    }
    csa->started++;
    if (alb_unlikely(wqe->txn_number) && !wqe->is_done)
        alb_reflect_out_begin(csa->reflect_out, wqe, csa->qp->engine->now);
    return true;
}

// The request that the next new segment belongs to, or NULL if there is nothing to send.
static struct alb_send_wqe *current(struct alb_csa *csa, alb_time now)
{
    for (;;) {
        if (csa->cursor == csa->started) {
            if (!start_next(csa))
                return NULL;
            if (alb_csa_wqe(csa, csa->cursor)->is_done) {
                alb_csa_retire(csa, now);
                if (alb_qp_state_of(csa->qp) != ALB_QPS_RTS)
                    return NULL;
                csa->cursor += csa->cursor != csa->started;
                continue;
            }
        }
        struct alb_send_wqe *wqe = alb_csa_wqe(csa, csa->cursor);
        if (wqe->is_done && wqe->status != ALB_WC_SUCCESS)
            return NULL;
        if (!wqe->is_done && alb_psn_diff(csa->requests.next, alb_psn_add(wqe->first_psn, (int32_t)wqe->packets)) < 0)
            return wqe;
        csa->cursor++;
    }
}

// First PSNs rise with the index.
struct alb_send_wqe *alb_csa_find_request(const struct alb_csa *csa, alb_psn psn)
{
    uint32_t low = atomic_load_explicit(&csa->qp->sq.head, memory_order_relaxed), high = csa->started;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (alb_psn_is_after(alb_csa_wqe(csa, middle)->first_psn, psn))
            high = middle;
        else
            low = middle;
    }
    return alb_csa_wqe(csa, low);
}

// ---- its segments ---------------------------------------------------------------------------------------------------

// True if a segment of the next request surely follows.
static bool is_followed(const struct alb_csa *csa)
{
    uint32_t index = csa->cursor + 1;
    if (index == tail_of(csa))
        return false;
    const struct alb_send_wqe *next = alb_csa_wqe(csa, index);
    if (next->opcode == ALB_WR_TXN_ASK)
        return false; // it is a command, and has no segment
    if (index != csa->started)
        return !next->is_done;
    return alb_qp_state_of(csa->qp) == ALB_QPS_RTS && !csa->is_blocked && !alb_outbound_is_local(next) &&
           !(next->flags & ALB_SEND_FENCE && csa->answered_open > 0) && has_psns(csa, ALB_CSA_MESSAGE_PACKETS_MAX) &&
           check(csa, next) == ALB_WC_SUCCESS;
}

bool alb_csa_ends_within(const struct alb_csa *csa, uint64_t bytes)
{
    if (csa->cursor == csa->started)
        return false;
    const struct alb_send_wqe *wqe = alb_csa_wqe(csa, csa->cursor);
    uint32_t sent = (uint32_t)alb_psn_diff(csa->requests.next, wqe->first_psn);
    uint64_t cost_bytes = wqe->segment_bytes + ALB_CSA_SEGMENT_OVERHEAD;
    return (wqe->packets - ALB_MIN(sent, wqe->packets)) * cost_bytes <= bytes && !is_followed(csa);
}

// A report is asked for at the end of what there is to send, where a completion waits for it, and so often that the
// window does not close for want of one, and the choice of paths is not blind.
bool alb_csa_asks_for_report(struct alb_csa *csa, const struct alb_send_wqe *wqe, bool is_last, bool is_again,
                             uint32_t cost_bytes)
{
    struct alb_stream_out *out = &csa->requests;
    const struct alb_assoc_live *live = csa->assoc->live;
    out->unasked_bytes += cost_bytes;
    bool closes = alb_assoc_closes(live, cost_bytes) ||
                  ((alb_stream_out_count(out) + 1) & (live->engine->config.csa_window_segments / 4 - 1)) == 0;
    // Behind the cursor of one that goes again there may be what is just being posted.
    bool ends = is_again || (is_last && (wqe->flags & ALB_SEND_SIGNALED || !is_followed(csa)));
    if (!ends && !closes && !alb_assoc_report_is_due(live, out->unasked_bytes))
        return false;
    out->unasked_bytes = 0;
    return true;
}

static uint32_t payload_of(const struct alb_send_wqe *wqe, uint32_t k)
{
    return carries_data(wqe) ? alb_segmenter_bytes(wqe->length, wqe->segment_bytes, k, 1) : 0;
}

static bool joins_class(struct alb_csa_packet *packet, const struct alb_qp *qp)
{
    uint8_t class = (uint8_t)((qp->flow.traffic_class & ~ALB_ECN_MASK) | ALB_ECN_ECT0);
    if (packet->has_class && (packet->flow.traffic_class != class || packet->flow.hop_limit != qp->flow.hop_limit))
        return false;
    packet->has_class = true;
    packet->flow.traffic_class = class;
    packet->flow.hop_limit = qp->flow.hop_limit;
    return true;
}

enum alb_csa_fill alb_csa_add_segment(struct alb_csa *csa, struct alb_csa_packet *packet, enum alb_csa_type type,
                                      const struct alb_csa_segment *segment, uint32_t refs, bool is_probe)
{
    uint32_t header_bytes = alb_csa_segment_bytes(type, segment);
    if (!is_probe && !alb_assoc_permits(packet->live, segment->payload_bytes + ALB_CSA_SEGMENT_OVERHEAD))
        return ALB_CSA_FILL_WINDOW;
    if (!alb_csa_packet_fits(packet, header_bytes + segment->payload_bytes) || !joins_class(packet, csa->qp))
        return ALB_CSA_FILL_PACKET;
    uint8_t *frame = alb_csa_packet_frame(packet, header_bytes, segment->payload_bytes, refs);
    if (!frame)
        return packet->frames > 0 ? ALB_CSA_FILL_PACKET : ALB_CSA_FILL_BATCH;
    alb_csa_encode_segment(type, segment, frame);
    return ALB_CSA_FILL_DONE;
}

static void note_sent(struct alb_csa *csa, struct alb_csa_packet *packet, const struct alb_csa_segment *segment,
                      uint8_t opcode)
{
    struct alb_stream_out *out = &csa->requests;
    bool is_again = segment->psn != out->next;
    alb_trace_add(csa->qp->engine, is_again ? ALB_TRACE_resend : ALB_TRACE_send, csa->qp->number, segment->psn, opcode,
                  segment->payload_bytes, packet->now);
    if (is_again)
        alb_qp_count(csa->qp, ALB_STAT_retransmitted_pkts, 1);
    else if (out->una == out->next && csa->asked_open == 0)
        csa->heard = packet->now; // until now there was nothing to wait for
    alb_csa_packet_charge(packet, out, segment);
    alb_csa_watch_life(csa, packet->now);
}

static enum alb_csa_fill send_segment(struct alb_csa *csa, struct alb_send_wqe *wqe, alb_psn psn, bool is_probe,
                                      struct alb_csa_packet *packet)
{
    struct alb_csa_segment segment;
    uint32_t unasked_bytes = csa->requests.unasked_bytes;
    uint32_t k = (uint32_t)alb_psn_diff(psn, wqe->first_psn);
    bool is_last = k == wqe->packets - 1, is_again = psn != csa->requests.next;
    describe(csa, wqe, &segment);
    segment.psn = psn;
    segment.index = k;
    segment.payload_bytes = payload_of(wqe, k);
    if (is_last && alb_unlikely(wants_verdict(wqe)))
        ask_for_verdict(csa, wqe, &segment);
    if (is_last)
        segment.flags |=
            ALB_CSA_LAST | (wqe->flags & ALB_SEND_SOLICITED && alb_wqe_takes_receive(wqe) ? ALB_CSA_SOLICITED : 0);
    if (is_probe)
        segment.flags |= ALB_CSA_PROBING | ALB_CSA_REPORT_NOW;
    if (alb_csa_asks_for_report(csa, wqe, is_last, is_again, segment.payload_bytes + ALB_CSA_SEGMENT_OVERHEAD))
        segment.flags |= ALB_CSA_REPORT_NOW;
    enum alb_csa_fill fill =
        alb_csa_add_segment(csa, packet, ALB_CSA_REQUEST, &segment, alb_outbound_refs(wqe), is_probe);
    if (fill != ALB_CSA_FILL_DONE) {
        csa->requests.unasked_bytes = unasked_bytes;
        return fill;
    }
    if (segment.payload_bytes &&
        !alb_outbound_gather(csa->qp, wqe, packet->builder, (uint64_t)k * wqe->segment_bytes, segment.payload_bytes)) {
        alb_csa_packet_undo(packet);
        finish_unsent(csa, wqe, ALB_WC_LOC_PROT_ERR);
        alb_csa_retire(csa, packet->now);
        return ALB_CSA_FILL_NONE;
    }
    note_sent(csa, packet, &segment, wqe->opcode);
    if (!is_again && alb_outbound_wants_answer(wqe))
        csa->asked_open++;
    if (!is_again && alb_unlikely(wqe->txn_number))
        alb_reflect_out_sent(csa->reflect_out, wqe, is_last, packet->now);
    return ALB_CSA_FILL_DONE;
}

static bool may_send(const struct alb_csa *csa)
{
    enum alb_qp_state state = alb_qp_state_of(csa->qp);
    return (state == ALB_QPS_RTS || state == ALB_QPS_SQD) && !csa->is_waiting_rnr;
}

enum alb_csa_fill alb_csa_send_probe(struct alb_stream_out *out, struct alb_csa_packet *packet)
{
    const struct alb_csa_probe probe = {
        .is_response = out->is_response, .dest_qpn = out->csa->qp->attr.dest_qpn, .next = out->next};
    uint8_t frame_room[ALB_CSA_FRAME_MAX];
    uint32_t bytes = alb_csa_encode_probe(&probe, frame_room);
    if (!alb_csa_packet_fits(packet, bytes))
        return ALB_CSA_FILL_PACKET;
    uint8_t *frame = alb_csa_packet_frame(packet, bytes, 0, 0);
    if (!frame)
        return packet->frames > 0 ? ALB_CSA_FILL_PACKET : ALB_CSA_FILL_BATCH;
    memcpy(frame, frame_room, bytes);
    out->probe_is_due = false;
    return ALB_CSA_FILL_DONE;
}

enum alb_csa_fill alb_csa_ask_for_room(struct alb_stream_out *out, struct alb_csa_packet *packet)
{
    if (out->unasked_bytes == 0)
        return ALB_CSA_FILL_NONE;
    out->unasked_bytes = 0;
    out->probe_is_due = true;
    return alb_csa_send_probe(out, packet);
}

// A segment that the peer said it lacks, or that probes. A request whose key is gone since has failed.
static enum alb_csa_fill send_again(struct alb_csa *csa, alb_psn psn, bool is_probe, struct alb_csa_packet *packet)
{
    struct alb_send_wqe *wqe = alb_csa_find_request(csa, psn);
    if (wqe->is_done && wqe->status != ALB_WC_SUCCESS) {
        alb_stream_out_leave(&csa->requests, psn);
        csa->requests.probe_is_due |= is_probe; // those before it may still be waiting for a word
        return ALB_CSA_FILL_DONE;
    }
    return send_segment(csa, wqe, psn, is_probe, packet);
}

enum alb_csa_fill alb_csa_fill_request(struct alb_csa *csa, struct alb_csa_packet *packet, alb_time now)
{
    struct alb_stream_out *out = &csa->requests;
    alb_psn psn;
    if (!may_send(csa))
        return ALB_CSA_FILL_NONE;
    if (out->probe_is_due)
        return alb_csa_send_probe(out, packet);
    if (alb_stream_out_take_probe(out, &psn)) {
        enum alb_csa_fill fill = send_again(csa, psn, true, packet);
        out->has_probe_psn = fill != ALB_CSA_FILL_DONE && fill != ALB_CSA_FILL_NONE;
        return fill;
    }
    if (alb_stream_out_is_silent(out))
        return ALB_CSA_FILL_NONE;
    if (alb_stream_out_next_lost(out, &psn))
        return send_again(csa, psn, false, packet);
    struct alb_send_wqe *wqe = current(csa, now);
    if (!wqe || (alb_outbound_wants_answer(wqe) && csa->asked_open >= csa->qp->attr.max_rd_atomic))
        return ALB_CSA_FILL_NONE;
    if (!alb_stream_out_has_room(out))
        return alb_csa_ask_for_room(out, packet);
    enum alb_csa_fill fill = send_segment(csa, wqe, out->next, false, packet);
    if (fill != ALB_CSA_FILL_DONE || !alb_stream_out_is_at_end(out))
        return fill;
    csa->cursor = csa->started;
    return ALB_CSA_FILL_LAST;
}

void alb_csa_requester_drain(struct alb_csa *csa)
{
    if (csa->requests.unasked_bytes == 0 || csa->requests.una == csa->requests.next)
        return;
    csa->requests.unasked_bytes = 0;
    csa->requests.probe_is_due = true;
    alb_stream_out_wake(&csa->requests);
}
