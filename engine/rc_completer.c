// SPDX-License-Identifier: BSD-2-Clause
// rc, the completer: what acknowledgements and answers do to the requests in flight, and what silence does
// (9.7.5, 9.7.6).
#include "engine/impl.h"
#include "engine/outbound.h"
#include "engine/rc.h"
#include "engine/segmenter.h"

// ---- the end of requests --------------------------------------------------------------------------------------------

static void fail(struct alb_rc *rc, enum alb_wc_status status, uint8_t syndrome, uint32_t retries, uint32_t limit,
                 const char *reason, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
    struct alb_qp_failure failure = {
        .status = status,
        .syndrome = syndrome,
        .last_psn = alb_psn_add(rc->high, -1),
        .awaited_psn = rc->una,
        .retries = retries,
        .retry_limit = limit,
        .reason = reason,
    };
    alb_qp_fail(qp, head == rc->started ? NULL : alb_rc_wqe(rc, head), &failure, now);
}

void alb_rc_retire(struct alb_rc *rc, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    uint32_t head;
    while ((head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed)) != rc->started) {
        const struct alb_send_wqe *wqe = alb_rc_wqe(rc, head);
        if (wqe->is_done && wqe->status != ALB_WC_SUCCESS) {
            fail(rc, wqe->status, 0, 0, 0, alb_outbound_failure_text(wqe->status), now);
            return;
        }
        if (!wqe->is_done && alb_psn_diff(rc->una, alb_psn_add(wqe->first_psn, (int32_t)wqe->packets)) < 0)
            break;
        if (!wqe->is_done && alb_outbound_wants_answer(wqe))
            rc->answered_open--;
        if (rc->cursor == head)
            rc->cursor++;
        alb_qp_complete_send(qp, ALB_WC_SUCCESS, now);
        if (alb_qp_state_of(qp) == ALB_QPS_ERR) // the completion queue overran
            return;
    }
    alb_qp_note_drained(qp, rc->started);
}

// ---- progress -------------------------------------------------------------------------------------------------------

// The window that PSNs una ... end - 1 take.
static uint32_t cost_until(const struct alb_rc *rc, alb_psn end)
{
    uint32_t cost = 0;
    uint32_t index = atomic_load_explicit(&rc->qp->sq.head, memory_order_relaxed);
    for (alb_psn psn = rc->una; psn != end && index != rc->started; index++) {
        const struct alb_send_wqe *wqe = alb_rc_wqe(rc, index);
        uint32_t k = (uint32_t)alb_psn_diff(psn, wqe->first_psn);
        if (wqe->is_done || k >= wqe->packets)
            continue;
        uint32_t count = ALB_MIN(wqe->packets - k, (uint32_t)alb_psn_diff(end, psn));
        cost += alb_rc_cost_bytes(rc, wqe, k, count);
        psn = alb_psn_add(psn, (int32_t)count);
    }
    return cost;
}

static void forget_requested(struct alb_rc *rc)
{
    while (rc->requested_count > 0 && alb_psn_diff(rc->requested_ends[rc->requested_first], rc->una) <= 0) {
        rc->requested_first = (rc->requested_first + 1) % rc->requested_capacity;
        rc->requested_count--;
    }
    rc->requested_again = ALB_MIN(rc->requested_again, rc->requested_count);
}

// What the peer's silence has cost while nothing of ours was under way to it is given back.
static void forgive_held(struct alb_rc *rc)
{
    rc->timeouts -= rc->held_timeouts;
    rc->retries_left += rc->held_timeouts;
    rc->held_timeouts = 0;
    rc->exceeds_window = false;
}

bool alb_rc_forgive_if_heard(struct alb_rc *rc)
{
    if (rc->qp->peer->heard <= rc->heard)
        return false;
    forgive_held(rc);
    return true;
}

// The peer is there: what is missing now is a packet.
static void hear(struct alb_rc *rc, alb_time now)
{
    rc->heard = now;
    rc->is_held = false;
    bool was_silent = rc->timeouts > 0; // the timer is as long as that says
    forgive_held(rc);
    if (!was_silent)
        return;
    rc->timeouts = 0;
    alb_rc_watch(rc);
}

void alb_rc_acknowledge(struct alb_rc *rc, alb_psn end, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    if (alb_psn_diff(end, rc->una) <= 0)
        return;
    // What was taken out of flight to be sent again, and not sent since, is not charged.
    uint32_t cost = ALB_MIN(cost_until(rc, end), rc->inflight_bytes);
    rc->una = end;
    if (alb_psn_diff(rc->next, end) < 0)
        rc->next = end;
    hear(rc, now);
    rc->retries_left = qp->attr.retry_cnt;
    rc->rnr_retries_left = qp->attr.rnr_retry;
    qp->engine->loss->on_progress(&rc->loss_sender);
    forget_requested(rc);
    if (rc->una == rc->high)
        cost = rc->inflight_bytes;
    rc->inflight_bytes -= cost;
    alb_rc_trim_unasked(rc);
    struct alb_ack ack = {.bytes = cost, .limited = rc->window_limited};
    alb_congestion_on_ack(qp->engine->congestion, &qp->peer->congestion, &ack, now);
    rc->window_limited = false;
    alb_peer_release(qp->engine, qp->peer, cost);
    alb_rc_retire(rc, now);
    if (atomic_load_explicit(&qp->sq.tail, memory_order_acquire) != rc->cursor || rc->next != rc->high)
        alb_scheduler_wake(&qp->engine->scheduler, &qp->source);
}

// The first READ or atomic among PSNs una ... end - 1 whose answer has not come, as the PSN awaited; end if there is
// none.
static alb_psn first_unanswered(const struct alb_rc *rc, alb_psn end)
{
    if (rc->answered_open == 0)
        return end;
    uint32_t index = atomic_load_explicit(&rc->qp->sq.head, memory_order_relaxed);
    for (; index != rc->started; index++) {
        const struct alb_send_wqe *wqe = alb_rc_wqe(rc, index);
        if (alb_psn_diff(wqe->first_psn, end) >= 0)
            break;
        if (!wqe->is_done && alb_outbound_wants_answer(wqe))
            return alb_psn_is_before(wqe->first_psn, rc->una) ? rc->una : wqe->first_psn;
    }
    return end;
}

// ---- loss -----------------------------------------------------------------------------------------------------------

// Something in flight must be sent again. Each time without progress costs a retry. Where nothing is in flight all that
// may be missing goes again already: a peer that misses what stood behind the packet that it was not ready for gets it
// when the wait is over, and a NAK that comes twice says nothing new.
static void recover(struct alb_rc *rc, enum alb_loss_cause cause, const char *reason, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    if (rc->is_waiting_rnr || rc->next == rc->una)
        return;
    int32_t from = qp->engine->loss->on_loss(&rc->loss_sender, cause);
    if (from < 0)
        return;
    if (cause != ALB_LOSS_TIMEOUT)
        hear(rc, now);
    if (rc->retries_left == 0) {
        alb_qp_count(qp, ALB_STAT_retry_exceeded_err, 1);
        fail(rc, ALB_WC_RETRY_EXC_ERR, 0, qp->attr.retry_cnt, qp->attr.retry_cnt, reason, now);
        return;
    }
    rc->retries_left--;
    if (cause == ALB_LOSS_TIMEOUT) {
        rc->timeouts++;
        rc->heard = now;
    }
    alb_congestion_on_loss(qp->engine->congestion, &qp->peer->congestion, rc->inflight_bytes, rc->inflight_bytes, cause,
                           now);
    alb_rc_go_back(rc, alb_psn_add(rc->una, from), cause, now);
}

// An answer or acknowledgement shows that an earlier answer was lost.
static void miss_answer(struct alb_rc *rc, alb_time now)
{
    alb_qp_count(rc->qp, ALB_STAT_implied_nak_seq_err, 1);
    recover(rc, ALB_LOSS_GAP, "answers were lost", now);
}

// The first one is as short as may be, for it is most often a packet that is missing. Of several in a row each lasts
// twice as long as the one before: the peer may be off its processor. A timer that runs is left alone by what leaves
// and by what is acknowledged: when it fires it looks at what is under way then.
void alb_rc_watch(struct alb_rc *rc)
{
    struct alb_qp *qp = rc->qp;
    alb_time timeout_ns = alb_qp_ack_timeout_ns(qp, ALB_MIN(1u << rc->timeouts, ALB_ACK_TIMEOUT_STRETCH_MAX));
    alb_time at = timeout_ns == ALB_TIME_NEVER ? ALB_TIME_NEVER : rc->heard + timeout_ns;
    alb_wheel_arm(&qp->engine->wheel, &rc->ack_timer.timer, at);
}

// The window held it back, and for a whole timeout nothing has come from the peer, whoever asked: what it would have
// sent would not have been answered either. So its retries are spent like those of the others, and it does not take the
// longer to notice that a peer is gone, the more queue pairs that one has. But the others may wait longer for their
// timeouts than it does: half of its retries are packets, whether the window has room or not.
static void hold_out(struct alb_rc *rc, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    rc->heard = now;
    if (rc->retries_left > qp->attr.retry_cnt / 2) {
        rc->retries_left--;
        rc->timeouts++;
        rc->held_timeouts++;
        return;
    }
    rc->exceeds_window = true;
    alb_scheduler_wake(&qp->engine->scheduler, &qp->source);
}

static void lose_patience(struct alb_rc *rc, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    alb_trace_add(qp->engine, ALB_TRACE_timeout, qp->number, rc->una, (uint64_t)(qp->attr.retry_cnt - rc->retries_left),
                  qp->attr.retry_cnt, now);
    alb_qp_count(qp, ALB_STAT_local_ack_timeout_err, 1);
    recover(rc, ALB_LOSS_TIMEOUT, "no acknowledgement", now);
}

void alb_rc_on_ack_timeout(struct alb_deadline *deadline, alb_time now)
{
    struct alb_rc *rc = ALB_CONTAINER_OF(deadline, struct alb_rc, ack_timer);
    struct alb_qp *qp = rc->qp;
    if (rc->is_waiting_rnr || (rc->una == rc->next && !rc->is_held))
        return; // nothing is under way; the next packet arms the timer again
    if (alb_rc_forgive_if_heard(rc) && rc->is_held)
        rc->heard = qp->peer->heard;
    alb_rc_watch(rc);
    if (!alb_timer_is_armed(&deadline->timer) || deadline->timer.at > now)
        return; // something was received meanwhile, or there is no timeout
    if (rc->is_held)
        hold_out(rc, now);
    else
        lose_patience(rc, now);
    if (alb_qp_state_of(qp) != ALB_QPS_ERR)
        alb_rc_watch(rc);
}

void alb_rc_on_rnr_timeout(struct alb_deadline *deadline, alb_time now)
{
    struct alb_rc *rc = ALB_CONTAINER_OF(deadline, struct alb_rc, rnr_timer);
    rc->is_waiting_rnr = false;
    alb_scheduler_wake(&rc->qp->engine->scheduler, &rc->qp->source);
}

static void wait_rnr(struct alb_rc *rc, uint8_t syndrome, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    alb_time wait_ns = alb_rnr_timer_ns(alb_aeth_value(syndrome));
    alb_qp_count(qp, ALB_STAT_rcvd_rnr_err, 1);
    alb_trace_add(qp->engine, ALB_TRACE_rnr_wait, qp->number, rc->una, wait_ns, rc->rnr_retries_left, now);
    if (rc->is_waiting_rnr)
        return; // an older packet's; this one was already taken out of flight
    if (qp->attr.rnr_retry != 7) {
        if (rc->rnr_retries_left == 0) {
            alb_qp_count(qp, ALB_STAT_retry_rnr_exceeded_err, 1);
            fail(rc, ALB_WC_RNR_RETRY_EXC_ERR, syndrome, qp->attr.rnr_retry, qp->attr.rnr_retry, "receiver not ready",
                 now);
            return;
        }
        rc->rnr_retries_left--;
    }
    rc->is_waiting_rnr = true;
    // The peer is there, and how long to wait for it is what rnr_retry says.
    forgive_held(rc);
    rc->timeouts = 0;
    rc->retries_left = qp->attr.retry_cnt;
    alb_rc_go_back(rc, rc->una, ALB_LOSS_RNR, now);
    alb_wheel_disarm(&qp->engine->wheel, &rc->ack_timer.timer);
    alb_wheel_arm(&qp->engine->wheel, &rc->rnr_timer.timer, now + wait_ns);
}

// ---- what comes in --------------------------------------------------------------------------------------------------

static void on_nak(struct alb_rc *rc, uint8_t syndrome, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    switch (alb_aeth_value(syndrome)) {
    case ALB_NAK_PSN_SEQUENCE_ERROR:
        alb_qp_count(qp, ALB_STAT_packet_seq_err, 1);
        recover(rc, ALB_LOSS_NAK, "the peer misses packets", now);
        break;
    case ALB_NAK_INVALID_REQUEST:
        alb_qp_count(qp, ALB_STAT_req_remote_invalid_request, 1);
        fail(rc, ALB_WC_REM_INV_REQ_ERR, syndrome, 0, 0, "the peer refused the request as invalid", now);
        break;
    case ALB_NAK_REMOTE_ACCESS_ERROR:
        alb_qp_count(qp, ALB_STAT_req_remote_access_errors, 1);
        fail(rc, ALB_WC_REM_ACCESS_ERR, syndrome, 0, 0, "the peer's memory does not allow the access", now);
        break;
    case ALB_NAK_REMOTE_OPERATIONAL_ERROR:
        alb_qp_count(qp, ALB_STAT_req_remote_op_errors, 1);
        fail(rc, ALB_WC_REM_OP_ERR, syndrome, 0, 0, "the peer could not complete the request", now);
        break;
    default:
        fail(rc, ALB_WC_BAD_RESP_ERR, syndrome, 0, 0, "a NAK of unknown code", now);
        break;
    }
}

// A plain acknowledgement of psn: everything before it has arrived; psn itself has too, or the syndrome says what is
// wrong with it.
static enum alb_drop on_ack(struct alb_rc *rc, const struct alb_roce *roce, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    enum alb_aeth_class class = alb_aeth_class(roce->syndrome);
    if (class == ALB_AETH_RESERVED)
        return ALB_DROP_BAD_RESPONSE;
    alb_trace_add(qp->engine, ALB_TRACE_ack, qp->number, roce->psn, roce->syndrome, roce->msn, now);
    alb_psn end = class == ALB_AETH_ACK ? alb_psn_next(roce->psn) : roce->psn;
    alb_psn unanswered = first_unanswered(rc, end);
    alb_rc_acknowledge(rc, unanswered, now);
    if (alb_qp_state_of(qp) == ALB_QPS_ERR)
        return ALB_DROP_NONE;
    if (unanswered != end)
        miss_answer(rc, now);
    else if (class == ALB_AETH_RNR)
        wait_rnr(rc, roce->syndrome, now);
    else if (class == ALB_AETH_NAK)
        on_nak(rc, roce->syndrome, now);
    return ALB_DROP_NONE;
}

// The request whose answer a PSN is part of, or NULL.
static struct alb_send_wqe *find_answered(const struct alb_rc *rc, alb_psn psn)
{
    uint32_t index = atomic_load_explicit(&rc->qp->sq.head, memory_order_relaxed);
    for (; index != rc->started; index++) {
        struct alb_send_wqe *wqe = alb_rc_wqe(rc, index);
        if (!wqe->is_done && alb_psn_is_within(psn, wqe->first_psn, wqe->packets))
            return alb_outbound_wants_answer(wqe) ? wqe : NULL;
        if (alb_psn_is_after(wqe->first_psn, psn))
            return NULL;
    }
    return NULL;
}

// The bytes that answer packet k of a request must carry, and whether this kind of packet answers it at all.
static bool fits_request(const struct alb_rc *rc, const struct alb_send_wqe *wqe, uint32_t k,
                         const struct alb_packet *packet)
{
    switch (wqe->opcode) {
    case ALB_WR_RDMA_READ:
        return packet->info->flags & ALB_OPCODE_READ &&
               packet->payload_bytes == alb_segmenter_bytes(wqe->length, rc->qp->attr.path_mtu_bytes, k, 1);
    case ALB_WR_ATOMIC_WRITE:
        return alb_rc_opcode(rc, packet->roce.opcode) == ALB_RC_READ_RESPONSE_ONLY && packet->payload_bytes == 0;
    default:
        return alb_rc_opcode(rc, packet->roce.opcode) == ALB_RC_ATOMIC_ACK;
    }
}

static enum alb_wc_status take_answer(struct alb_rc *rc, const struct alb_send_wqe *wqe, uint32_t k,
                                      const struct alb_packet *packet)
{
    struct alb_qp *qp = rc->qp;
    switch (wqe->opcode) {
    case ALB_WR_RDMA_READ:
        return alb_outbound_scatter(qp, wqe, (uint64_t)k * qp->attr.path_mtu_bytes, packet->payload,
                                    packet->payload_bytes);
    case ALB_WR_ATOMIC_WRITE:
        return ALB_WC_SUCCESS;
    default:
        return alb_outbound_scatter(qp, wqe, 0, (const uint8_t *)&packet->roce.atomic_original, sizeof(uint64_t));
    }
}

static enum alb_drop on_answer(struct alb_rc *rc, const struct alb_packet *packet, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    alb_psn psn = packet->roce.psn;
    struct alb_send_wqe *wqe = find_answered(rc, psn);
    if (!wqe)
        return ALB_DROP_BAD_RESPONSE;
    uint32_t k = (uint32_t)alb_psn_diff(psn, wqe->first_psn);
    if (!fits_request(rc, wqe, k, packet))
        return ALB_DROP_BAD_RESPONSE;
    // It also acknowledges everything before its request, unless an answer owed to an earlier one is missing.
    alb_psn awaited = first_unanswered(rc, alb_psn_next(psn));
    alb_rc_acknowledge(rc, awaited, now);
    if (alb_qp_state_of(qp) == ALB_QPS_ERR)
        return ALB_DROP_NONE;
    if (awaited != psn) {
        miss_answer(rc, now);
        return ALB_DROP_OUT_OF_SEQUENCE;
    }
    enum alb_wc_status status = take_answer(rc, wqe, k, packet);
    if (status != ALB_WC_SUCCESS) {
        fail(rc, status, 0, 0, 0, "a local key does not cover the request's memory", now);
        return ALB_DROP_NONE;
    }
    alb_rc_acknowledge(rc, alb_psn_next(psn), now);
    return ALB_DROP_NONE;
}

enum alb_drop alb_rc_on_response(struct alb_rc *rc, const struct alb_packet *packet, alb_time now)
{
    enum alb_qp_state state = alb_qp_state_of(rc->qp);
    if (state != ALB_QPS_RTS && state != ALB_QPS_SQD)
        return ALB_DROP_WRONG_QP_STATE;
    alb_psn psn = packet->roce.psn;
    if (!alb_psn_is_within(psn, rc->una, (uint32_t)alb_psn_diff(rc->high, rc->una)))
        return ALB_DROP_STALE_RESPONSE;
    if (packet->info->flags & ALB_OPCODE_ACK)
        return on_ack(rc, &packet->roce, now);
    return on_answer(rc, packet, now);
}
