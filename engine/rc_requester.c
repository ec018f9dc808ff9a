// SPDX-License-Identifier: BSD-2-Clause
// rc, the requester: which request is next, whether it may leave, and its packets (9.4, 9.7.2 and 9.7.3).
#include "engine/impl.h"
#include "engine/outbound.h"
#include "engine/rc.h"
#include "engine/segmenter.h"

// One READ request asks for this much of the window at the most, so that answers do not overrun our own receive buffer
// (LESSONS 9), and never for more than so much.
#define READ_PIECES_PER_WINDOW 4
#define READ_PIECE_BYTES       (256u * 1024)

uint32_t alb_rc_cost_bytes(const struct alb_rc *rc, const struct alb_send_wqe *wqe, uint32_t k, uint32_t count)
{
    return alb_segmenter_bytes(wqe->length, rc->qp->attr.path_mtu_bytes, k, count) + count * ALB_RC_PACKET_OVERHEAD;
}

// ---- which request --------------------------------------------------------------------------------------------------

// A request that ends here: executed, or failed before its first packet. What was sent before it completes first.
static void finish_unsent(struct alb_rc *rc, struct alb_send_wqe *wqe, enum alb_wc_status status)
{
    wqe->status = (uint8_t)status;
    wqe->is_done = true;
    wqe->packets = 0;
    rc->is_blocked = status != ALB_WC_SUCCESS;
}

// Whether a request can be sent at all.
static enum alb_wc_status check(const struct alb_rc *rc, const struct alb_send_wqe *wqe)
{
    struct alb_qp *qp = rc->qp;
    if (alb_segmenter_packets(wqe->length, qp->attr.path_mtu_bytes) > ALB_PSN_MASK / 2)
        return ALB_WC_LOC_LEN_ERR;
    if (alb_outbound_wants_answer(wqe) && qp->attr.max_rd_atomic == 0)
        return ALB_WC_LOC_QP_OP_ERR;
    return alb_outbound_check(qp, wqe);
}

// Half the PSN space at the most is unacknowledged, or old and new could not be distinguished.
static bool has_psns(const struct alb_rc *rc, uint32_t packets)
{
    return alb_psn_diff(rc->next, rc->una) + (int64_t)packets <= ALB_PSN_MASK / 2;
}

// Gives the next posted request its PSNs; local operations are executed. False if none may start now.
static bool start_next(struct alb_rc *rc)
{
    struct alb_qp *qp = rc->qp;
    if (rc->started == alb_rc_tail(rc) || rc->is_blocked || alb_qp_state_of(qp) != ALB_QPS_RTS)
        return false;
    struct alb_send_wqe *wqe = alb_rc_wqe(rc, rc->started);
    if (wqe->flags & ALB_SEND_FENCE && rc->answered_open > 0)
        return false;
    wqe->first_psn = rc->next;
    if (alb_outbound_is_local(wqe)) {
        finish_unsent(rc, wqe, alb_outbound_execute(qp, wqe));
        rc->started++;
        return true;
    }
    enum alb_wc_status status = check(rc, wqe);
    uint32_t packets = alb_segmenter_packets(wqe->length, qp->attr.path_mtu_bytes);
    if (status != ALB_WC_SUCCESS) {
        finish_unsent(rc, wqe, status);
        rc->started++;
        return true;
    }
    if (!has_psns(rc, packets))
        return false;
    alb_outbound_change_source(qp, wqe);
    wqe->packets = packets;
    rc->answered_open += alb_outbound_wants_answer(wqe);
    rc->started++;
    return true;
}

// The request that the next PSN belongs to, or NULL if there is nothing to send.
static struct alb_send_wqe *current(struct alb_rc *rc, alb_time now)
{
    for (;;) {
        if (rc->cursor == rc->started) {
            if (!start_next(rc))
                return NULL;
            if (alb_rc_wqe(rc, rc->cursor)->is_done) {
                alb_rc_retire(rc, now);
                if (alb_qp_state_of(rc->qp) != ALB_QPS_RTS)
                    return NULL;
                if (rc->is_blocked && rc->unasked_bytes > 0) {
                    alb_rc_go_back(rc, rc->una, ALB_LOSS_TIMEOUT, now); // nothing behind it asks for what has left
                    continue;
                }
                rc->cursor += rc->cursor != rc->started;
                continue;
            }
        }
        struct alb_send_wqe *wqe = alb_rc_wqe(rc, rc->cursor);
        if (wqe->is_done && wqe->status != ALB_WC_SUCCESS)
            return NULL; // it failed when it was to be sent again: nothing behind it goes
        if (!wqe->is_done && alb_psn_diff(rc->next, alb_psn_add(wqe->first_psn, (int32_t)wqe->packets)) < 0)
            return wqe;
        rc->cursor++;
    }
}

// ---- whether it may leave -------------------------------------------------------------------------------------------

// Its time runs all the same: the peer may be gone.
static void note_held(struct alb_rc *rc, alb_time now)
{
    if (rc->inflight_bytes > 0)
        return;
    if (!rc->is_held)
        rc->heard = now;
    rc->is_held = true;
    if (!alb_timer_is_armed(&rc->ack_timer.timer))
        alb_rc_watch(rc);
}

// Those that share a window may have filled it with packets that nobody asks for, in particular one that has just
// shrunk: then one of them goes on, and asks with the packet that it sends. Or the peer has long been silent.
static bool may_exceed_window(const struct alb_rc *rc)
{
    const struct alb_peer *peer = rc->qp->peer;
    return (rc->unasked_bytes > 0 && alb_peer_is_unasked(peer)) ||
           (rc->exceeds_window && rc->inflight_bytes == 0 && peer->heard <= rc->heard);
}

static bool is_permitted(struct alb_rc *rc, uint32_t cost_bytes, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    if (alb_peer_permits(qp->peer, cost_bytes) || may_exceed_window(rc))
        return true;
    alb_peer_wait(qp->peer, &qp->source);
    note_held(rc, now);
    rc->window_limited = true;
    alb_qp_count(qp, ALB_STAT_window_stalls, 1);
    return false;
}

// Room for another READ piece or atomic (max_rd_atomic); one that is asked for again has its place.
static bool may_request_answer(const struct alb_rc *rc)
{
    return rc->requested_again > 0 || rc->requested_count < rc->requested_capacity;
}

// ---- its packets ----------------------------------------------------------------------------------------------------

// Notes a packet that leaves with so many bytes of payload: packets PSNs, cost_bytes of the window. A READ request has
// no payload, and its answer's packets are what it costs.
static void note_sent(struct alb_rc *rc, const struct alb_send_wqe *wqe, uint32_t bytes, uint32_t packets,
                      uint32_t cost_bytes, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    bool is_again = alb_psn_diff(rc->next, rc->high) < 0;
    alb_trace_add(qp->engine, is_again ? ALB_TRACE_resend : ALB_TRACE_send, qp->number, rc->next, wqe->opcode, bytes,
                  now);
    if (is_again)
        alb_qp_count(qp, ALB_STAT_retransmitted_pkts, 1);
    if (rc->is_held && rc->held_timeouts > 0 && alb_rc_forgive_if_heard(rc))
        alb_wheel_disarm(&qp->engine->wheel, &rc->ack_timer.timer);
    if (rc->inflight_bytes == 0)
        rc->heard = now;
    rc->is_held = false;
    rc->inflight_bytes += cost_bytes;
    alb_peer_charge(qp->peer, cost_bytes);
    rc->next = alb_psn_add(rc->next, (int32_t)packets);
    if (alb_psn_diff(rc->next, rc->high) > 0)
        rc->high = rc->next;
    if (!alb_timer_is_armed(&rc->ack_timer.timer))
        alb_rc_watch(rc);
}

static void set_unasked(struct alb_rc *rc, uint32_t bytes)
{
    struct alb_peer *peer = rc->qp->peer;
    if (peer) {
        peer->unasked_bytes = peer->unasked_bytes - rc->unasked_bytes + bytes;
        peer->unasked_qps = peer->unasked_qps - (rc->unasked_bytes > 0) + (bytes > 0);
    }
    rc->unasked_bytes = bytes;
}

void alb_rc_note_asked(struct alb_rc *rc)
{
    set_unasked(rc, 0);
}

void alb_rc_trim_unasked(struct alb_rc *rc)
{
    if (rc->unasked_bytes > rc->inflight_bytes)
        set_unasked(rc, rc->inflight_bytes);
}

// True if a packet of the next request surely follows: then the end of this one need not ask for an acknowledgement,
// since that one will.
static bool is_followed(const struct alb_rc *rc)
{
    struct alb_qp *qp = rc->qp;
    uint32_t index = rc->cursor + 1;
    if (index == alb_rc_tail(rc))
        return false;
    const struct alb_send_wqe *next = alb_rc_wqe(rc, index);
    if (index != rc->started)
        return !next->is_done;
    return alb_qp_state_of(qp) == ALB_QPS_RTS && !alb_outbound_is_local(next) &&
           !(next->flags & ALB_SEND_FENCE && rc->answered_open > 0) && check(rc, next) == ALB_WC_SUCCESS &&
           has_psns(rc, 1 + alb_segmenter_packets(next->length, qp->attr.path_mtu_bytes));
}

// Once this packet has left, the largest that any queue pair may send to that peer has no room.
static bool closes_window(const struct alb_peer *peer, uint32_t cost_bytes)
{
    return peer->inflight_bytes + cost_bytes + ALB_ROCE_PAYLOAD_MAX + ALB_RC_PACKET_OVERHEAD >
           peer->congestion.window_bytes;
}

// Those that share a window share the quarter of it, too, that may be in flight without a question: what none asks
// about leaves no room for what is acknowledged.
static bool has_its_share_unasked(const struct alb_rc *rc)
{
    const struct alb_peer *peer = rc->qp->peer;
    return (uint64_t)rc->unasked_bytes * peer->unasked_qps >= peer->congestion.window_bytes / 4;
}

// An acknowledgement is asked for at the end of what there is to send, four times a window, and when the window closes.
// Who has had his share asks when his turn ends: until then he goes on, and an acknowledgement costs as much as data
// (LESSONS 5).
static bool asks_for_ack(struct alb_rc *rc, const struct alb_send_wqe *wqe, bool is_last, bool ends_turn,
                         uint32_t cost_bytes)
{
    struct alb_peer *peer = rc->qp->peer;
    set_unasked(rc, rc->unasked_bytes + cost_bytes);
    if (rc->unasked_bytes < peer->congestion.window_bytes / 4 && !(ends_turn && has_its_share_unasked(rc)) &&
        !closes_window(peer, cost_bytes) && !(is_last && (wqe->flags & ALB_SEND_SIGNALED || !is_followed(rc))))
        return false;
    alb_rc_note_asked(rc);
    return true;
}

// Its memory is gone since it was looked at. It waits for those before it, unless they have completed; they go again,
// and ask, since it may be what was to ask for them.
static void fail_begun(struct alb_rc *rc, struct alb_send_wqe *wqe, alb_time now)
{
    finish_unsent(rc, wqe, ALB_WC_LOC_PROT_ERR);
    alb_rc_retire(rc, now);
    if (alb_qp_state_of(rc->qp) != ALB_QPS_ERR)
        alb_rc_go_back(rc, rc->una, ALB_LOSS_TIMEOUT, now);
}

static enum alb_build_result send_data(struct alb_rc *rc, struct alb_send_wqe *wqe, struct alb_tx_builder *builder,
                                       bool ends_turn, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    uint32_t mtu = qp->attr.path_mtu_bytes;
    uint32_t k = (uint32_t)alb_psn_diff(rc->next, wqe->first_psn);
    uint32_t bytes = alb_segmenter_bytes(wqe->length, mtu, k, 1);
    uint32_t cost = bytes + ALB_RC_PACKET_OVERHEAD;
    if (!is_permitted(rc, cost, now))
        return ALB_BUILD_IDLE;
    if (!alb_tx_has_room(builder, alb_outbound_refs(wqe)))
        return ALB_BUILD_FULL;
    bool ackreq = asks_for_ack(rc, wqe, k == wqe->packets - 1, ends_turn, cost);
    if (!alb_rc_begin_usual(rc, wqe, builder, ackreq)) {
        struct alb_roce roce;
        alb_segmenter_header(qp, wqe, rc->opcode_base, k, &roce);
        roce.psn = rc->next;
        roce.ackreq = ackreq;
        alb_tx_begin(builder, &qp->flow, &roce, bytes);
    }
    if (!alb_outbound_gather(qp, wqe, builder, (uint64_t)k * mtu, bytes)) {
        alb_tx_cancel(builder);
        fail_begun(rc, wqe, now);
        return ALB_BUILD_MORE;
    }
    alb_tx_end(builder);
    note_sent(rc, wqe, bytes, 1, cost, now);
    return ALB_BUILD_MORE;
}

// The packets of a message's middle differ in nothing but the PSN, so those behind one are made from it. Returns how
// many, at most so many. What does not go on like this is left to send_data, the window that closes for instance.
static uint32_t repeat_middle(struct alb_rc *rc, const struct alb_send_wqe *wqe, struct alb_tx_builder *builder,
                              uint32_t packets_max, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    uint32_t mtu = qp->attr.path_mtu_bytes, cost = mtu + ALB_RC_PACKET_OVERHEAD, count = 0;
    uint32_t k = (uint32_t)alb_psn_diff(rc->next, wqe->first_psn);
    bool is_behind_middle = k >= 2 && k + 1 < wqe->packets;
    const uint8_t *bytes;
    if (!is_behind_middle || wqe->flags & ALB_SEND_INLINE || qp->engine->config.corruption ||
        !alb_tx_can_repeat(builder, mtu))
        return 0;
    uint32_t in_one_piece = alb_outbound_stretch(qp, wqe, (uint64_t)k * mtu, &bytes) / mtu;
    uint32_t middle = ALB_MIN(in_one_piece, wqe->packets - 1 - k);
    for (; count < ALB_MIN(middle, packets_max) && alb_peer_permits(qp->peer, cost); count++) {
        uint8_t *header = alb_tx_repeat(builder, bytes + (size_t)count * mtu);
        if (!header)
            break;
        alb_bth_number(header, rc->next, asks_for_ack(rc, wqe, false, count + 1 == packets_max, cost));
        note_sent(rc, wqe, mtu, 1, cost, now);
    }
    return count;
}

static alb_psn *requested_at(const struct alb_rc *rc, uint32_t i)
{
    return &rc->requested_ends[(rc->requested_first + i) % rc->requested_capacity];
}

static void note_requested(struct alb_rc *rc, alb_psn end)
{
    if (rc->requested_again > 0) {
        alb_assert(*requested_at(rc, rc->requested_count - rc->requested_again) == end);
        rc->requested_again--;
        return;
    }
    *requested_at(rc, rc->requested_count++) = end;
}

// The packets of the next piece of a READ. Room for all of it is waited for, since small pieces make small bursts of
// the answer (LESSONS 21). A piece that was asked for before ends where it ended then: the responder may have executed
// it and not the next one, and refuses a duplicate that goes beyond.
static uint32_t piece_packets(const struct alb_rc *rc, const struct alb_send_wqe *wqe, uint32_t k)
{
    uint32_t mtu = rc->qp->attr.path_mtu_bytes;
    const struct alb_peer *peer = rc->qp->peer;
    if (rc->requested_again > 0)
        return (uint32_t)alb_psn_diff(*requested_at(rc, rc->requested_count - rc->requested_again), rc->next);
    uint32_t bytes = ALB_MIN(peer->congestion.window_bytes / READ_PIECES_PER_WINDOW, READ_PIECE_BYTES);
    return ALB_MIN(wqe->packets - k, ALB_MAX(bytes / (mtu + ALB_RC_PACKET_OVERHEAD), 1u));
}

static enum alb_build_result send_read(struct alb_rc *rc, struct alb_send_wqe *wqe, struct alb_tx_builder *builder,
                                       alb_time now)
{
    struct alb_qp *qp = rc->qp;
    uint32_t mtu = qp->attr.path_mtu_bytes;
    uint32_t k = (uint32_t)alb_psn_diff(rc->next, wqe->first_psn);
    if (!may_request_answer(rc))
        return ALB_BUILD_IDLE;
    uint32_t packets = piece_packets(rc, wqe, k);
    uint32_t cost = alb_rc_cost_bytes(rc, wqe, k, packets);
    // The window may have shrunk below a piece that can't be cut any more, and others may take each packet's room that
    // is freed: room for a packet is then enough.
    bool is_modest = rc->requested_again > 0 || rc->read_has_waited;
    rc->read_has_waited = !is_permitted(rc, is_modest ? alb_rc_cost_bytes(rc, wqe, k, 1) : cost, now);
    if (rc->read_has_waited)
        return ALB_BUILD_IDLE;
    if (!alb_tx_has_room(builder, 0))
        return ALB_BUILD_FULL;
    struct alb_roce roce = {
        .opcode = (uint8_t)(rc->opcode_base + ALB_RC_READ_REQUEST),
        .migreq = true,
        .pkey = ALB_PKEY_DEFAULT,
        .dest_qpn = qp->attr.dest_qpn,
        .psn = rc->next,
        .va = wqe->remote_addr + (uint64_t)k * mtu,
        .rkey = wqe->rkey,
        .xrc_srqn = wqe->xrc_srqn,
        .length = alb_segmenter_bytes(wqe->length, mtu, k, packets),
        .ackreq = true,
    };
    alb_tx_begin(builder, &qp->flow, &roce, 0);
    alb_tx_end(builder);
    alb_rc_note_asked(rc); // the answer acknowledges all before it
    note_requested(rc, alb_psn_add(rc->next, (int32_t)packets));
    note_sent(rc, wqe, 0, packets, cost, now);
    return ALB_BUILD_MORE;
}

static void atomic_header(const struct alb_rc *rc, const struct alb_send_wqe *wqe, struct alb_roce *roce)
{
    *roce = (struct alb_roce){
        .migreq = true,
        .pkey = ALB_PKEY_DEFAULT,
        .dest_qpn = rc->qp->attr.dest_qpn,
        .va = wqe->remote_addr,
        .rkey = wqe->rkey,
        .xrc_srqn = wqe->xrc_srqn,
        .ackreq = true,
    };
    switch (wqe->opcode) {
    case ALB_WR_ATOMIC_CMP_AND_SWP:
        roce->opcode = ALB_RC_CMP_SWAP;
        roce->compare = wqe->compare_add;
        roce->swap_add = wqe->swap;
        break;
    case ALB_WR_ATOMIC_FETCH_AND_ADD:
        roce->opcode = ALB_RC_FETCH_ADD;
        roce->swap_add = wqe->compare_add;
        break;
    default:
        roce->opcode = ALB_RC_ATOMIC_WRITE;
        roce->length = wqe->length;
        break;
    }
    roce->opcode = (uint8_t)(rc->opcode_base + roce->opcode);
}

static enum alb_build_result send_atomic(struct alb_rc *rc, struct alb_send_wqe *wqe, struct alb_tx_builder *builder,
                                         alb_time now)
{
    struct alb_qp *qp = rc->qp;
    uint32_t bytes = wqe->opcode == ALB_WR_ATOMIC_WRITE ? wqe->length : 0;
    uint32_t cost = alb_rc_cost_bytes(rc, wqe, 0, 1);
    if (!may_request_answer(rc) || !is_permitted(rc, cost, now))
        return ALB_BUILD_IDLE;
    if (!alb_tx_has_room(builder, alb_outbound_refs(wqe)))
        return ALB_BUILD_FULL;
    struct alb_roce roce;
    atomic_header(rc, wqe, &roce);
    roce.psn = rc->next;
    alb_tx_begin(builder, &qp->flow, &roce, bytes);
    if (bytes && !alb_outbound_gather(qp, wqe, builder, 0, bytes)) {
        alb_tx_cancel(builder);
        fail_begun(rc, wqe, now);
        return ALB_BUILD_MORE;
    }
    alb_tx_end(builder);
    alb_rc_note_asked(rc);
    note_requested(rc, alb_psn_next(rc->next));
    note_sent(rc, wqe, bytes, 1, cost, now);
    return ALB_BUILD_MORE;
}

// Of a request, the next packet, or more of them, at most so many: what has been sent is counted in *count.
static enum alb_build_result send_some(struct alb_rc *rc, struct alb_tx_builder *builder, uint32_t packets_max,
                                       uint32_t *count, alb_time now)
{
    struct alb_send_wqe *wqe = current(rc, now);
    if (!wqe)
        return ALB_BUILD_IDLE;
    *count += 1;
    switch (wqe->opcode) {
    case ALB_WR_RDMA_READ:
        return send_read(rc, wqe, builder, now);
    case ALB_WR_ATOMIC_CMP_AND_SWP:
    case ALB_WR_ATOMIC_FETCH_AND_ADD:
    case ALB_WR_ATOMIC_WRITE:
        return send_atomic(rc, wqe, builder, now);
    default:
        break;
    }
    enum alb_build_result result = send_data(rc, wqe, builder, packets_max == 1, now);
    if (result == ALB_BUILD_MORE)
        *count += repeat_middle(rc, wqe, builder, packets_max - 1, now);
    return result;
}

static bool may_send(const struct alb_rc *rc)
{
    enum alb_qp_state state = alb_qp_state_of(rc->qp);
    return (state == ALB_QPS_RTS || state == ALB_QPS_SQD) && !rc->is_waiting_rnr;
}

enum alb_build_result alb_rc_build_requests(struct alb_rc *rc, struct alb_tx_builder *builder, alb_time now)
{
    uint32_t turn = builder->tx->burst_segments_max;
    for (uint32_t count = 0; count < turn && may_send(rc);) {
        enum alb_build_result result = send_some(rc, builder, turn - count, &count, now);
        if (result != ALB_BUILD_MORE)
            return result;
    }
    return may_send(rc) ? ALB_BUILD_MORE : ALB_BUILD_IDLE;
}

// ---- and back -------------------------------------------------------------------------------------------------------

static void take_out_of_flight(struct alb_rc *rc)
{
    uint32_t bytes = rc->inflight_bytes;
    rc->inflight_bytes = 0;
    alb_rc_note_asked(rc);
    if (rc->qp->peer)
        alb_peer_release(rc->qp->engine, rc->qp->peer, bytes);
}

void alb_rc_go_back(struct alb_rc *rc, alb_psn psn, enum alb_loss_cause cause, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    alb_trace_add(qp->engine, ALB_TRACE_go_back, qp->number, psn, cause, (uint64_t)alb_psn_diff(rc->next, psn), now);
    alb_assert(psn == rc->una); // go-back-N: all that is unacknowledged goes again
    take_out_of_flight(rc);
    rc->next = psn;
    rc->is_held = false;
    rc->requested_again = rc->requested_count;
    rc->cursor = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
    alb_scheduler_wake(&qp->engine->scheduler, &qp->source);
}

void alb_rc_requester_drain(struct alb_rc *rc, alb_time now)
{
    if (rc->unasked_bytes == 0 || rc->next != rc->high)
        return;
    const struct alb_send_wqe *last = alb_rc_wqe(rc, rc->started - 1);
    if (!last->is_done && rc->next == alb_psn_add(last->first_psn, (int32_t)last->packets))
        alb_rc_go_back(rc, rc->una, ALB_LOSS_TIMEOUT, now);
}

void alb_rc_requester_stop(struct alb_rc *rc)
{
    struct alb_wheel *wheel = &rc->qp->engine->wheel;
    take_out_of_flight(rc);
    alb_wheel_disarm(wheel, &rc->ack_timer.timer);
    alb_wheel_disarm(wheel, &rc->rnr_timer.timer);
    rc->is_waiting_rnr = rc->is_held = false;
    rc->requested_count = rc->requested_again = 0;
    rc->una = rc->next = rc->high;
    rc->started = rc->cursor = atomic_load_explicit(&rc->qp->sq.tail, memory_order_relaxed);
}
