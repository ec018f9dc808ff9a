// SPDX-License-Identifier: BSD-2-Clause
// Packets in: whose they are, which path they came by, and each frame to its stream. Everything here is hostile until
// an epoch or a queue pair's numbers have proved otherwise (csa_admit.c).
#include "engine/csa_loose.h"
#include "engine/impl.h"

// ---- frames of a queue pair -----------------------------------------------------------------------------------------

enum alb_drop alb_csa_find_qp(struct alb_csa_arrival *arrival, alb_qpn qpn, struct alb_csa **csa)
{
    struct alb_qp *qp = alb_engine_find_qp(arrival->engine, qpn);
    if (!qp)
        return ALB_DROP_UNKNOWN_QP;
    if (qp->delivery != &alb_csa_ops)
        return ALB_DROP_BAD_SERVICE;
    if (alb_qp_state_of(qp) < ALB_QPS_RTR)
        return ALB_DROP_WRONG_QP_STATE;
    *csa = arrival->engine->csa->heard_last = alb_csa_of(qp);
    return (*csa)->assoc == arrival->assoc ? ALB_DROP_NONE : ALB_DROP_WRONG_PEER;
}

static void note_established(struct alb_qp *qp)
{
    if (alb_unlikely(!qp->is_established)) {
        qp->is_established = true;
        alb_event_raise(qp->engine, &qp->event, ALB_EVENT_COMM_EST);
    }
}

// A queue pair in error repeats its NAK to a peer that may not have it. Before it may, what comes finds no room.
static enum alb_drop repeat_nak(struct alb_stream_in *in, alb_time now)
{
    if (in->csa->is_refusing)
        alb_csa_heard(in->csa, now); // it still wants the answers to the requests before
    if (alb_aeth_class(in->syndrome) == ALB_AETH_NAK) {
        in->is_full = true;
        alb_stream_in_owe_report(in);
    }
    return ALB_DROP_WRONG_QP_STATE;
}

// Answers are not wanted any more: what comes of them, or is asked about, counts as held with all before it, so that
// the peer need not ask.
static enum alb_drop decline_answers(struct alb_stream_in *in, alb_psn past)
{
    if (alb_psn_is_after(past, in->cumulative))
        in->cumulative = in->end = in->highest = past;
    alb_stream_in_owe_report(in);
    return ALB_DROP_WRONG_QP_STATE;
}

// One half of an XRC connection only asks, the other only answers.
static bool takes(enum alb_qp_type type, bool is_response)
{
    return type != (is_response ? ALB_QPT_XRC_RECV : ALB_QPT_XRC_SEND);
}

static bool fits_type(const struct alb_csa_segment *segment, enum alb_csa_type type, enum alb_qp_type qp_type)
{
    if (segment->op == ALB_CSA_ATOMIC_WRITE && qp_type == ALB_QPT_XRC_RECV)
        return false;
    if (segment->flags & ALB_CSA_UC || segment->op == ALB_CSA_PARTIAL_WRITE || segment->op == ALB_CSA_PARTIAL_WRITE_IMM)
        return false;
    return (type == ALB_CSA_RESPONSE) == (segment->op == ALB_CSA_READ_DATA || segment->op == ALB_CSA_RESULT);
}

// A shared receive queue is named where there are some to choose from, and there only.
static bool names_queue(const struct alb_csa_segment *segment, const struct alb_qp *qp, bool is_response)
{
    bool names = segment->flags & ALB_CSA_XRC;
    return is_response || names == (qp->type == ALB_QPT_XRC_RECV);
}

// What the stream may get next, or soon.
static bool is_ahead(const struct alb_stream_in *in, alb_psn psn)
{
    return alb_psn_is_within(psn, in->cumulative, in->csa->qp->engine->config.csa_window_segments + 1);
}

static enum alb_drop on_segment(struct alb_csa_arrival *arrival, const struct alb_csa_frame *frame, alb_time now)
{
    const struct alb_csa_segment *segment = &frame->segment;
    bool is_response = frame->type == ALB_CSA_RESPONSE;
    struct alb_csa *csa;
    enum alb_drop drop = alb_csa_find_qp(arrival, segment->dest_qpn, &csa);
    if (drop == ALB_DROP_BAD_SERVICE)
        return alb_csa_uc_rx(arrival, frame, now);
    if (drop != ALB_DROP_NONE)
        return drop;
    struct alb_qp *qp = csa->qp;
    struct alb_stream_in *in = is_response ? &csa->in_responses : &csa->in_requests;
    if (!takes(qp->type, is_response) || !fits_type(segment, frame->type, qp->type) ||
        !names_queue(segment, qp, is_response))
        return ALB_DROP_BAD_SERVICE;
    if (is_response && !alb_csa_has_begun_to_ask(csa))
        return ALB_DROP_WRONG_QP_STATE;
    drop = alb_csa_admit(arrival, csa, is_response ? NULL : segment, is_ahead(in, segment->psn));
    if (drop != ALB_DROP_NONE)
        return drop;
    alb_csa_count_received(qp, segment);
    alb_trace_add(arrival->engine, ALB_TRACE_receive, qp->number, segment->psn, ALB_TRACE_CSA_OP(segment->op),
                  segment->payload_bytes, now);
    if (alb_qp_state_of(qp) == ALB_QPS_ERR)
        return is_response ? decline_answers(in, alb_psn_next(segment->psn)) : repeat_nak(in, now);
    note_established(qp);
    alb_csa_heard(csa, now);
    if (is_response) // of what was asked for
        csa->requests.reported_at = now;
    drop = alb_stream_in_segment(in, segment, now);
    if (alb_qp_state_of(qp) != ALB_QPS_ERR)
        alb_stream_in_watch(in, now);
    return drop;
}

void alb_csa_count_received(struct alb_qp *qp, const struct alb_csa_segment *segment)
{
    qp->stats->stats.counter[ALB_STAT_rcvd_pkts]++;
    alb_qp_count(qp, ALB_STAT_rcvd_bytes, segment->payload_bytes);
}

static enum alb_drop on_report(struct alb_csa_arrival *arrival, const struct alb_csa_report *report, alb_time now)
{
    struct alb_csa *csa;
    enum alb_drop drop = alb_csa_find_qp(arrival, report->qpn, &csa);
    if (drop != ALB_DROP_NONE)
        return drop;
    if (!report->is_response && !alb_csa_has_begun_to_ask(csa))
        return ALB_DROP_WRONG_QP_STATE;
    struct alb_stream_out *out = report->is_response ? &csa->responses : &csa->requests;
    drop = alb_csa_admit(arrival, csa, NULL, alb_stream_out_can_be_acked(out, report->cumulative));
    if (drop != ALB_DROP_NONE)
        return drop;
    if (alb_qp_state_of(csa->qp) == ALB_QPS_ERR && !(report->is_response && csa->is_refusing))
        return ALB_DROP_WRONG_QP_STATE;
    alb_psn una = out->una;
    alb_trace_add(arrival->engine, ALB_TRACE_report, csa->qp->number, report->cumulative, report->syndrome,
                  report->page * ALB_CSA_BITMAP_WORDS + report->word_count, now);
    if (!alb_stream_out_report(out, report, now))
        return ALB_DROP_STALE_RESPONSE;
    alb_csa_heard(csa, now);
    if (alb_stream_out_fail_stuck(out, now))
        return ALB_DROP_NONE;
    if (report->is_response) {
        alb_csa_on_answers_acked(csa);
        return ALB_DROP_NONE;
    }
    if (out->una != una)
        alb_csa_on_acked(csa, now);
    if (report->page == 0 && alb_qp_state_of(csa->qp) != ALB_QPS_ERR)
        alb_csa_on_syndrome(csa, report->syndrome, now);
    return ALB_DROP_NONE;
}

static enum alb_drop on_probe(struct alb_csa_arrival *arrival, const struct alb_csa_probe *probe, alb_time now)
{
    struct alb_csa *csa;
    enum alb_drop drop = alb_csa_find_qp(arrival, probe->dest_qpn, &csa);
    if (drop != ALB_DROP_NONE)
        return drop;
    if (probe->is_response && !alb_csa_has_begun_to_ask(csa))
        return ALB_DROP_WRONG_QP_STATE;
    struct alb_stream_in *in = probe->is_response ? &csa->in_responses : &csa->in_requests;
    drop = alb_csa_admit(arrival, csa, NULL, is_ahead(in, probe->next));
    if (drop != ALB_DROP_NONE)
        return drop;
    if (alb_qp_state_of(csa->qp) == ALB_QPS_ERR)
        return probe->is_response ? decline_answers(in, probe->next) : repeat_nak(in, now);
    csa->qp->stats->stats.counter[ALB_STAT_rcvd_pkts]++;
    alb_csa_heard(csa, now);
    alb_stream_in_probed(in, probe->next, now);
    if (alb_qp_state_of(csa->qp) != ALB_QPS_ERR)
        alb_stream_in_watch(in, now);
    return ALB_DROP_NONE;
}

// ---- frames of the association --------------------------------------------------------------------------------------

static enum alb_drop on_paths(struct alb_csa_arrival *arrival, const struct alb_csa_paths *paths, alb_time now)
{
    struct alb_assoc_live *live = arrival->live;
    if (!arrival->is_proven)
        return ALB_DROP_NOT_PROVEN;
    uint32_t back_ns =
        alb_assoc_waited_ns(live, (uint32_t)now - arrival->header.timestamp, arrival->datagram->unread_ns, now);
    live->credit_bytes = paths->credit_bytes;
    live->share = paths->share;
    struct alb_path_scope scope = {.first = paths->first, .past = ALB_PATHS_MAX};
    alb_paths_fetch(live->paths, paths);
    if (paths->has_more)
        scope.past = paths->entries[paths->count - 1].path + 1u;
    for (uint32_t i = 0; i < paths->count; i++) {
        if (alb_path_is_repeated(live->paths, &paths->entries[i]))
            continue;
        struct alb_path_news news = alb_path_heard(live->paths, arrival->engine->path, &paths->entries[i], now);
        if (news.is_new)
            alb_path_scope_heard(&scope, &paths->entries[i], now);
        if (news.rtt_sample_ns)
            alb_assoc_on_rtt(live, news.rtt_sample_ns, back_ns);
        live->news_received += news.received;
        live->news_marked += news.marked;
        live->news_lost += news.lost;
    }
    alb_assoc_judge_paths(live, &scope, now);
    alb_assoc_release(live, 0); // the credit may have grown
    return ALB_DROP_NONE;
}

static enum alb_drop on_cnp(struct alb_csa_arrival *arrival, alb_time now)
{
    if (!arrival->is_proven)
        return ALB_DROP_NOT_PROVEN;
    arrival->engine->stats->sum.counter[ALB_STAT_rp_cnp_handled]++;
    alb_congestion_on_mark(arrival->engine->congestion, &arrival->live->congestion,
                           (uint32_t)arrival->live->inflight_bytes, now);
    return ALB_DROP_NONE;
}

static enum alb_drop on_ping(struct alb_csa_arrival *arrival)
{
    if (!arrival->is_proven)
        return ALB_DROP_NOT_PROVEN;
    uint32_t bytes = arrival->datagram->length + ALB_ICRC_BYTES;
    arrival->live->pong_bytes = (uint16_t)ALB_MAX(bytes, (uint32_t)arrival->live->pong_bytes); // it says the most
    arrival->live->paths_are_due = true;
    alb_csa_turn_tell(arrival->live);
    return ALB_DROP_NONE;
}

static enum alb_drop on_pong(struct alb_csa_arrival *arrival, uint16_t bytes, alb_time now)
{
    if (!arrival->is_proven)
        return ALB_DROP_NOT_PROVEN;
    alb_mtu_on_pong(arrival->live, bytes, now);
    return ALB_DROP_NONE;
}

static enum alb_drop on_frame(struct alb_csa_arrival *arrival, const struct alb_csa_frame *frame, alb_time now)
{
    if (alb_unlikely(!arrival->assoc) && frame->type != ALB_CSA_DATAGRAM)
        return ALB_DROP_NOT_PROVEN;
    switch (frame->type) {
    case ALB_CSA_DATAGRAM:
        return alb_csa_ud_rx(arrival, &frame->segment, now);
    case ALB_CSA_REQUEST:
    case ALB_CSA_RESPONSE:
        return on_segment(arrival, frame, now);
    case ALB_CSA_REPORT:
        return on_report(arrival, &frame->report, now);
    case ALB_CSA_PROBE:
        return on_probe(arrival, &frame->probe, now);
    case ALB_CSA_HOLDS:
        return alb_csa_uc_on_holds(arrival, &frame->holds);
    case ALB_CSA_PATHS:
        return on_paths(arrival, &frame->paths, now);
    case ALB_CSA_PING:
        return on_ping(arrival);
    case ALB_CSA_PONG:
        return on_pong(arrival, frame->pong_bytes, now);
    case ALB_CSA_CNP:
        return on_cnp(arrival, now);
    case ALB_CSA_TRIMMED:
        return alb_csa_on_trimmed(arrival, &frame->trimmed, now);
    case ALB_CSA_TXN:
        return alb_reflect_on_command(arrival, &frame->txn, now);
    case ALB_CSA_VERDICT:
        return alb_reflect_on_verdict(arrival, &frame->verdict, now);
    case ALB_CSA_HELLO:
        return alb_csa_on_hello(arrival, frame, now);
    default:
        return ALB_DROP_BAD_REQUEST;
    }
}

// The queue pair that a frame names; 0: none.
static uint32_t qpn_of(const struct alb_csa_frame *frame)
{
    switch (frame->type) {
    case ALB_CSA_DATAGRAM:
    case ALB_CSA_REQUEST:
    case ALB_CSA_RESPONSE:
        return frame->segment.dest_qpn;
    case ALB_CSA_REPORT:
        return frame->report.qpn;
    case ALB_CSA_PROBE:
        return frame->probe.dest_qpn;
    case ALB_CSA_HOLDS:
        return frame->holds.dest_qpn;
    case ALB_CSA_TXN:
        return frame->txn.dest_qpn;
    case ALB_CSA_VERDICT:
        return frame->verdict.dest_qpn;
    default:
        return 0;
    }
}

static void count_drop(struct alb_csa_arrival *arrival, const struct alb_csa_frame *frame, enum alb_drop drop,
                       alb_time now)
{
    bool is_segment = frame->type == ALB_CSA_REQUEST || frame->type == ALB_CSA_RESPONSE;
    struct alb_qp *qp = alb_engine_find_qp(arrival->engine, qpn_of(frame));
    alb_engine_count_drop(arrival->engine, drop);
    if (qp)
        qp->stats->dropped[drop]++;
    alb_trace_add(arrival->engine, ALB_TRACE_drop, qpn_of(frame),
                  is_segment ? frame->segment.psn : arrival->header.sequence, drop,
                  is_segment ? ALB_TRACE_CSA_OP(frame->segment.op) : ALB_TRACE_CSA_TYPE(frame->type), now);
}

enum part {
    ALL,
    NEWS,
    OTHERS,
};

// What acknowledges, what that is judged by, and what was trimmed, which would be lost by them.
static bool is_news_type(enum alb_csa_type type)
{
    return type == ALB_CSA_PATHS || type == ALB_CSA_REPORT || type == ALB_CSA_TRIMMED;
}

// Returns what is wrong with the frame that cannot be understood, which is the last one.
static enum alb_drop take_frames(struct alb_csa_arrival *arrival, struct alb_csa_cursor cursor, enum part part,
                                 alb_time now)
{
    struct alb_csa_frame frame;
    enum alb_drop rest = ALB_DROP_NONE;
    while (alb_csa_next(&cursor, &frame, &rest)) {
        if (part != ALL && is_news_type(frame.type) != (part == NEWS))
            continue;
        enum alb_drop drop = on_frame(arrival, &frame, now);
        arrival->was_unproven |= drop == ALB_DROP_NOT_PROVEN;
        if (drop != ALB_DROP_NONE)
            count_drop(arrival, &frame, drop, now);
    }
    return rest;
}

// What acknowledges stands behind the segments that left with it. A program should know that what it sent has arrived
// before it gets the answer: some count on this order, which a NIC's acknowledgements keep.
static bool may_bring_answer(const struct alb_csa_arrival *arrival, const struct alb_csa_cursor *cursor)
{
    return arrival->is_proven && arrival->live->inflight_bytes > 0 && cursor->at != cursor->end &&
           cursor->at[0] == ALB_CSA_REQUEST;
}

static void on_frames(struct alb_csa_arrival *arrival, struct alb_csa_cursor cursor, alb_time now)
{
    arrival->engine->csa->packet_number++;
    bool is_answer = may_bring_answer(arrival, &cursor);
    if (is_answer)
        (void)take_frames(arrival, cursor, NEWS, now);
    enum alb_drop rest = take_frames(arrival, cursor, is_answer ? OTHERS : ALL, now);
    if (arrival->was_unproven && !arrival->is_proven)
        alb_csa_challenge(arrival, now);
    if (rest == ALB_DROP_NONE)
        return;
    alb_engine_count_drop(arrival->engine, rest);
    alb_trace_add(arrival->engine, ALB_TRACE_drop, 0, arrival->header.sequence, rest, ALB_TRACE_CSA_TYPE(0), now);
}

// ---- a packet -------------------------------------------------------------------------------------------------------

static void note_mark(struct alb_assoc_live *live, alb_time now)
{
    struct alb_engine *engine = live->engine;
    engine->stats->sum.counter[ALB_STAT_ecn_marked_pkts]++;
    if (!engine->congestion->wants_cnp || !alb_dcqcn_np_on_mark(&live->np, &engine->config.dcqcn, now))
        return;
    live->cnp_is_due = true;
    alb_csa_turn_tell(live);
}

// The path's own sequence, also of a packet that is not proven: what left before its sender knew us would be counted as
// lost else. Only where the association is awake, since it takes memory.
static void note_path(struct alb_csa_arrival *arrival, alb_time now)
{
    struct alb_assoc_live *live = arrival->assoc->live;
    const struct alb_csa_header *header = &arrival->header;
    bool is_marked = alb_datagram_is_marked(arrival->datagram);
    struct alb_path_in *in = alb_assoc_path_in(live, header->path);
    uint32_t lost = 0;
    if (!in)
        return;
    if (header->rtt_code)
        live->peer_rtt_ns = (uint32_t)ALB_MIN(alb_csa_time_decode(header->rtt_code), (alb_time)UINT32_MAX);
    alb_path_in_packet(in, header->sequence, header->timestamp, is_marked, now, &lost);
    alb_assoc_note_path_in(live, header->path);
    if (is_marked)
        note_mark(live, now);
    if (lost > 0 && arrival->engine->csa->loss.ops->reports_settled)
        alb_assoc_report_losses(live);
    alb_assoc_arm_settle(live);
    alb_assoc_heard(live, now);
    alb_assoc_note_received(live, arrival->datagram->length, now);
}

enum alb_drop alb_csa_rx(struct alb_engine *engine, const struct alb_datagram *datagram, alb_time now)
{
    struct alb_csa_arrival arrival = {.engine = engine, .datagram = datagram};
    struct alb_csa_cursor cursor;
    bool ends = false;
    if (alb_addr_is_multicast(&datagram->local.addr))
        return ALB_DROP_WRONG_LOCAL;
    enum alb_drop drop = alb_csa_decode(datagram->bytes, datagram->length, &arrival.header, &cursor);
    if (drop == ALB_DROP_NONE)
        drop = alb_csa_admit_packet(&arrival, cursor, &ends, now);
    engine->stats->sum.counter[ALB_STAT_rcvd_pkts] += drop == ALB_DROP_NONE;
    if (drop != ALB_DROP_NONE || ends)
        return drop;
    on_frames(&arrival, cursor, now);
    if (arrival.assoc && arrival.assoc->live && arrival.header.source_epoch == arrival.assoc->peer_epoch)
        note_path(&arrival, now);
    return ALB_DROP_NONE;
}

enum alb_drop alb_csa_rx_foreign(struct alb_qp *qp, const struct alb_packet *packet, alb_time now)
{
    return ALB_DROP_BAD_SERVICE;
}
