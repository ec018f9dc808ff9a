// SPDX-License-Identifier: BSD-2-Clause
// csa, the completer: what reports and answers do to requests, and what silence does in the end.
#include "engine/impl.h"
#include "engine/inbound.h"
#include "engine/outbound.h"

// ---- the end of requests --------------------------------------------------------------------------------------------

static void fail(struct alb_csa *csa, enum alb_wc_status status, uint8_t syndrome, const char *reason,
                 alb_time silence_ns, alb_time now)
{
    struct alb_qp *qp = csa->qp;
    uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
    bool is_rnr = status == ALB_WC_RNR_RETRY_EXC_ERR;
    if (csa->reflect_out)
        alb_reflect_out_stop(csa->reflect_out, now); // the oldest request may be one of its
    struct alb_qp_failure failure = {
        .status = status,
        .syndrome = syndrome,
        .last_psn = alb_psn_add(csa->requests.next, -1),
        .awaited_psn = csa->requests.una,
        .retries = is_rnr ? qp->attr.rnr_retry : csa->requests.probes,
        .retry_limit = is_rnr ? qp->attr.rnr_retry : 0,
        .silence_ns = silence_ns,
        .reason = reason,
    };
    alb_qp_fail(qp, head == csa->started ? NULL : alb_csa_wqe(csa, head), &failure, now);
}

void alb_csa_fail(struct alb_csa *csa, enum alb_wc_status status, uint8_t syndrome, const char *reason, alb_time now)
{
    fail(csa, status, syndrome, reason, 0, now);
}

static bool has_ended(const struct alb_csa *csa, const struct alb_send_wqe *wqe)
{
    if (wqe->is_done)
        return true;
    bool is_acked = alb_psn_diff(csa->requests.una, alb_psn_add(wqe->first_psn, (int32_t)wqe->packets)) >= 0;
    return is_acked && ((!alb_outbound_wants_answer(wqe) && !wqe->txn_number) || wqe->is_answered);
}

static bool is_message(const struct alb_send_wqe *wqe)
{
    return wqe->opcode != ALB_WR_TXN_END && wqe->opcode != ALB_WR_TXN_ASK;
}

// What has a number and did not do what was asked ends with a status of its own; the queue pair goes on.
static enum alb_wc_status status_of(const struct alb_send_wqe *wqe)
{
    switch (wqe->vendor_err) {
    case ALB_TXN_OK:
        return ALB_WC_SUCCESS;
    case ALB_TXN_COPY:
        return ALB_WC_REM_OP_ERR;
    case ALB_TXN_DIGEST: // a message's bytes are in the memory that they belong to, a transaction's are not
        return is_message(wqe) ? ALB_WC_REM_OP_ERR : ALB_WC_REM_ABORT_ERR;
    case ALB_TXN_LOST:
        return ALB_WC_RESP_TIMEOUT_ERR;
    default:
        return ALB_WC_REM_ABORT_ERR;
    }
}

// Tells those that have a number that the peer has executed them.
static void note_executed(struct alb_csa *csa, alb_time now)
{
    uint32_t head = atomic_load_explicit(&csa->qp->sq.head, memory_order_relaxed);
    if (!csa->reflect_out)
        return;
    if ((int32_t)(csa->acked_cursor - head) < 0)
        csa->acked_cursor = head;
    for (; csa->acked_cursor != csa->started; csa->acked_cursor++) {
        const struct alb_send_wqe *wqe = alb_csa_wqe(csa, csa->acked_cursor);
        if (alb_psn_diff(csa->requests.una, alb_psn_add(wqe->first_psn, (int32_t)wqe->packets)) < 0)
            return;
        if (wqe->txn_number)
            alb_reflect_out_delivered(csa->reflect_out, wqe, now);
    }
}

bool alb_csa_is_sent(const struct alb_csa *csa, uint32_t index)
{
    uint32_t head = atomic_load_explicit(&csa->qp->sq.head, memory_order_relaxed);
    const struct alb_send_wqe *wqe = alb_csa_wqe(csa, index);
    return (int32_t)(index - head) >= 0 && (int32_t)(csa->started - index) > 0 &&
           alb_psn_diff(csa->requests.next, alb_psn_add(wqe->first_psn, (int32_t)wqe->packets)) >= 0;
}

void alb_csa_on_executed(struct alb_csa *csa, uint32_t index, alb_time now)
{
    const struct alb_send_wqe *wqe = alb_csa_wqe(csa, index);
    alb_psn past = alb_psn_add(wqe->first_psn, (int32_t)wqe->packets);
    if (alb_psn_is_after(past, csa->requests.una))
        alb_stream_out_acked(&csa->requests, past, now);
    alb_csa_on_acked(csa, now);
}

void alb_csa_retire(struct alb_csa *csa, alb_time now)
{
    struct alb_qp *qp = csa->qp;
    uint32_t head;
    while ((head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed)) != csa->started) {
        const struct alb_send_wqe *wqe = alb_csa_wqe(csa, head);
        if (!has_ended(csa, wqe))
            break;
        if (wqe->status != ALB_WC_SUCCESS) {
            alb_csa_fail(csa, wqe->status, 0, alb_outbound_failure_text(wqe->status), now);
            return;
        }
        if (!wqe->is_done && (alb_outbound_wants_answer(wqe) || wqe->txn_number))
            csa->answered_open--;
        if (csa->cursor == head)
            csa->cursor++;
        if (csa->answer_cursor == head)
            csa->answer_cursor++;
        alb_qp_complete_send(qp, status_of(wqe), now);
        if (alb_qp_state_of(qp) == ALB_QPS_ERR) // the completion queue overran
            return;
    }
    alb_qp_note_drained(qp, csa->started);
}

// What it waited for has come sooner than the peer thought.
static void end_rnr_wait(struct alb_csa *csa, alb_time now)
{
    csa->is_waiting_rnr = false;
    alb_wheel_disarm(&csa->qp->engine->wheel, &csa->rnr_timer.timer);
    alb_stream_out_watch(&csa->requests, now);
    alb_csa_watch_life(csa, now);
}

void alb_csa_on_acked(struct alb_csa *csa, alb_time now)
{
    if (csa->is_waiting_rnr)
        end_rnr_wait(csa, now);
    csa->rnr_retries_left = csa->qp->attr.rnr_retry;
    csa->rnr_asked_at = 0;
    note_executed(csa, now);
    alb_csa_retire(csa, now);
    if (alb_qp_state_of(csa->qp) != ALB_QPS_ERR)
        alb_stream_out_wake(&csa->requests);
}

// ---- answers --------------------------------------------------------------------------------------------------------

// A request may fail when it is to leave again, and be answered all the same.
static bool has_left(const struct alb_csa *csa, const struct alb_send_wqe *wqe)
{
    return wqe->packets > 0 && alb_psn_is_before(wqe->first_psn, csa->requests.next);
}

// The oldest request whose answer has not come, or NULL.
static struct alb_send_wqe *awaited(struct alb_csa *csa)
{
    uint32_t head = atomic_load_explicit(&csa->qp->sq.head, memory_order_relaxed);
    if ((int32_t)(csa->answer_cursor - head) < 0)
        csa->answer_cursor = head;
    for (; csa->answer_cursor != csa->started; csa->answer_cursor++) {
        struct alb_send_wqe *wqe = alb_csa_wqe(csa, csa->answer_cursor);
        if (alb_outbound_wants_answer(wqe) && !wqe->is_answered && (!wqe->is_done || has_left(csa, wqe)))
            return wqe;
    }
    return NULL;
}

static enum alb_outcome begin(struct alb_csa *csa, const struct alb_csa_segment *segment, alb_time now)
{
    const struct alb_send_wqe *wqe = awaited(csa);
    if (!wqe || wqe->first_psn != segment->request_psn || !has_left(csa, wqe))
        return ALB_OUTCOME_INVALID_REQUEST; // another request, or one that has not been sent
    bool is_read = wqe->opcode == ALB_WR_RDMA_READ;
    if (is_read != (segment->op == ALB_CSA_READ_DATA) || segment->total_bytes != (is_read ? wqe->length : 0))
        return ALB_OUTCOME_INVALID_REQUEST;
    return ALB_OUTCOME_OK;
}

static enum alb_outcome scatter(struct alb_csa *csa, const struct alb_send_wqe *wqe, uint64_t offset,
                                const uint8_t *bytes, uint32_t length)
{
    return alb_outbound_scatter(csa->qp, wqe, offset, bytes, length) == ALB_WC_SUCCESS ? ALB_OUTCOME_OK
                                                                                       : ALB_OUTCOME_OPERATIONAL;
}

static enum alb_outcome place(struct alb_csa *csa, const struct alb_csa_segment *segment, uint32_t offset, alb_time now)
{
    const struct alb_send_wqe *wqe = awaited(csa);
    if (segment->op == ALB_CSA_READ_DATA)
        return scatter(csa, wqe, offset, segment->payload, segment->payload_bytes);
    if (wqe->opcode == ALB_WR_ATOMIC_WRITE)
        return ALB_OUTCOME_OK;
    return scatter(csa, wqe, 0, (const uint8_t *)&segment->original, sizeof(segment->original));
}

// An answer to a later request than the oldest one.
static bool place_early(struct alb_csa *csa, const struct alb_csa_segment *segment, uint32_t offset)
{
    if (segment->op != ALB_CSA_READ_DATA || !awaited(csa))
        return false;
    const struct alb_send_wqe *wqe = alb_csa_find_request(csa, segment->request_psn);
    if (wqe->first_psn != segment->request_psn || wqe->opcode != ALB_WR_RDMA_READ || wqe->is_done || wqe->is_answered ||
        !has_left(csa, wqe) || segment->total_bytes != wqe->length)
        return false;
    return alb_outbound_is_relaxed(csa->qp, wqe) &&
           alb_outbound_scatter(csa->qp, wqe, offset, segment->payload, segment->payload_bytes) == ALB_WC_SUCCESS;
}

static enum alb_outcome end(struct alb_csa *csa, const struct alb_csa_segment *last, alb_time now)
{
    awaited(csa)->is_answered = true;
    csa->asked_open--;
    csa->requests.probes = 0;
    alb_csa_retire(csa, now);
    if (alb_qp_state_of(csa->qp) != ALB_QPS_ERR)
        alb_stream_out_wake(&csa->requests);
    return ALB_OUTCOME_OK;
}

// An answer tells that everything before its request was executed: that completes first.
static void complete_before_answer(struct alb_csa *csa, alb_time now)
{
    const struct alb_send_wqe *wqe = awaited(csa);
    alb_psn executed = wqe ? alb_psn_next(wqe->first_psn) : csa->requests.una;
    if (!alb_psn_is_within(executed, csa->requests.una, alb_stream_out_count(&csa->requests) + 1))
        return;
    alb_stream_out_acked(&csa->requests, executed, now);
    alb_csa_retire(csa, now);
}

static void refuse(struct alb_csa *csa, enum alb_outcome outcome, alb_psn psn, alb_time now)
{
    complete_before_answer(csa, now);
    if (alb_qp_state_of(csa->qp) == ALB_QPS_ERR)
        return; // a completion queue is full
    if (outcome == ALB_OUTCOME_OPERATIONAL)
        alb_csa_fail(csa, ALB_WC_LOC_PROT_ERR, 0, "a local key does not cover the request's memory", now);
    else
        alb_csa_fail(csa, ALB_WC_BAD_RESP_ERR, 0, "an answer does not fit its request", now);
}

const struct alb_stream_in_ops alb_csa_completer_ops = {
    .begin = begin,
    .place = place,
    .place_early = place_early,
    .end = end,
    .refuse = refuse,
};

// ---- what a report says besides -------------------------------------------------------------------------------------

// What the peer refuses stands behind a request whose answer is still to come: that one ends first.
static bool awaits_earlier_answer(struct alb_csa *csa)
{
    const struct alb_send_wqe *wqe = awaited(csa);
    return wqe && alb_psn_is_before(wqe->first_psn, csa->requests.una);
}

// It left before the peer can have been asked again: no answer to that, and each answer counts once. One that takes no
// time at all is an answer, or what is to be sent again would go for ever before any time has passed.
static bool precedes_question(const struct alb_csa *csa, alb_time now)
{
    alb_time asked_at = csa->rnr_asked_at;
    return asked_at && now > asked_at && now < asked_at + csa->assoc->live->rtt_min_ns;
}

static void wait_rnr(struct alb_csa *csa, uint8_t syndrome, alb_time now)
{
    struct alb_qp *qp = csa->qp;
    alb_time wait_ns = alb_rnr_timer_ns(alb_aeth_value(syndrome));
    alb_qp_count(qp, ALB_STAT_rcvd_rnr_err, 1);
    alb_trace_add(qp->engine, ALB_TRACE_rnr_wait, qp->number, csa->requests.una, wait_ns, csa->rnr_retries_left, now);
    if (csa->is_waiting_rnr || precedes_question(csa, now))
        return; // said again
    if (qp->attr.rnr_retry != 7 && !(csa->rnr_retries_left == 0 && awaits_earlier_answer(csa))) {
        if (csa->rnr_retries_left == 0) {
            alb_qp_count(qp, ALB_STAT_retry_rnr_exceeded_err, 1);
            alb_csa_fail(csa, ALB_WC_RNR_RETRY_EXC_ERR, syndrome, "receiver not ready", now);
            return;
        }
        csa->rnr_retries_left--;
    }
    csa->is_waiting_rnr = true;
    csa->requests.probes = 0; // that was an answer
    alb_stream_out_uncharge(&csa->requests);
    alb_wheel_arm(&qp->engine->wheel, &csa->rnr_timer.timer, now + wait_ns);
}

// What the peer holds need not go again: a probe lets the peer look for a receive once more. What it had no room
// for does.
void alb_csa_on_rnr(struct alb_deadline *deadline, alb_time now)
{
    struct alb_csa *csa = ALB_CONTAINER_OF(deadline, struct alb_csa, rnr_timer);
    struct alb_engine *engine = csa->qp->engine;
    if (!alb_assoc_wake(engine, csa->assoc)) { // it may rest meanwhile, and the pool is empty
        alb_wheel_arm(&engine->wheel, &deadline->timer, now + engine->config.csa_probe_min_ns + ALB_NS_PER_MS);
        return;
    }
    csa->is_waiting_rnr = false;
    csa->heard = csa->rnr_asked_at = now;
    alb_stream_out_probe_oldest(&csa->requests);
    csa->requests.sent_at = now;
    alb_stream_out_wake(&csa->requests);
    alb_stream_out_watch(&csa->requests, now);
    alb_csa_watch_life(csa, now);
}

static void on_nak(struct alb_csa *csa, uint8_t syndrome, alb_time now)
{
    struct alb_qp *qp = csa->qp;
    switch (alb_aeth_value(syndrome)) {
    case ALB_NAK_PSN_SEQUENCE_ERROR: // what is lost was judged with the report
        break;
    case ALB_NAK_INVALID_REQUEST:
        alb_qp_count(qp, ALB_STAT_req_remote_invalid_request, 1);
        alb_csa_fail(csa, ALB_WC_REM_INV_REQ_ERR, syndrome, "the peer refused the request as invalid", now);
        break;
    case ALB_NAK_REMOTE_ACCESS_ERROR:
        alb_qp_count(qp, ALB_STAT_req_remote_access_errors, 1);
        alb_csa_fail(csa, ALB_WC_REM_ACCESS_ERR, syndrome, "the peer's memory does not allow the access", now);
        break;
    case ALB_NAK_REMOTE_OPERATIONAL_ERROR:
        alb_qp_count(qp, ALB_STAT_req_remote_op_errors, 1);
        alb_csa_fail(csa, ALB_WC_REM_OP_ERR, syndrome, "the peer could not complete the request", now);
        break;
    default:
        alb_csa_fail(csa, ALB_WC_BAD_RESP_ERR, syndrome, "a NAK of unknown code", now);
        break;
    }
}

void alb_csa_on_syndrome(struct alb_csa *csa, uint8_t syndrome, alb_time now)
{
    switch (alb_aeth_class(syndrome)) {
    case ALB_AETH_RNR:
        wait_rnr(csa, syndrome, now);
        break;
    case ALB_AETH_NAK:
        on_nak(csa, syndrome, now);
        break;
    default:
        break;
    }
}

// ---- signs of life --------------------------------------------------------------------------------------------------

// Timeouts are as long as they may be: no loss waits for them, reports and probes mend it.
alb_time alb_csa_patience_ns(const struct alb_csa *csa)
{
    const struct alb_qp *qp = csa->qp;
    alb_time timeout_ns = alb_qp_ack_timeout_ns(qp, ALB_ACK_TIMEOUT_STRETCH_MAX);
    return timeout_ns == ALB_TIME_NEVER ? ALB_TIME_NEVER : timeout_ns * (qp->attr.retry_cnt + 1u);
}

// Something is to come from the peer.
static bool is_waiting(const struct alb_csa *csa)
{
    return !csa->is_waiting_rnr && (csa->requests.una != csa->requests.next || csa->asked_open > 0 ||
                                    (csa->reflect_out && alb_reflect_out_is_waiting(csa->reflect_out)));
}

// When the silence has lasted too long. Some of it may be ours: a descheduled engine has neither asked nor listened,
// and the peer has one timeout from then on; not a stretched one, since on a busy machine that may happen repeatedly.
static alb_time patience_ends(const struct alb_csa *csa, alb_time patience)
{
    alb_time back_at = csa->qp->engine->back_at;
    alb_time end = csa->heard + patience;
    return back_at > csa->heard ? ALB_MAX(end, back_at + alb_qp_ack_timeout_ns(csa->qp, 1)) : end;
}

void alb_csa_watch_life(struct alb_csa *csa, alb_time now)
{
    if (alb_timer_is_armed(&csa->life_timer.timer))
        return;
    alb_time patience = alb_csa_patience_ns(csa);
    if (patience != ALB_TIME_NEVER)
        alb_wheel_arm(&csa->qp->engine->wheel, &csa->life_timer.timer, ALB_MAX(patience_ends(csa, patience), now + 1));
}

void alb_csa_watch_life_anew(struct alb_csa *csa, alb_time now)
{
    alb_wheel_disarm(&csa->qp->engine->wheel, &csa->life_timer.timer);
    if (is_waiting(csa))
        alb_csa_watch_life(csa, now);
}

void alb_csa_on_life(struct alb_deadline *deadline, alb_time now)
{
    struct alb_csa *csa = ALB_CONTAINER_OF(deadline, struct alb_csa, life_timer);
    alb_time patience = alb_csa_patience_ns(csa);
    if (!is_waiting(csa) || patience == ALB_TIME_NEVER)
        return;
    if (patience_ends(csa, patience) > now) {
        alb_csa_watch_life(csa, now);
        return;
    }
    const char *reason = alb_stream_out_is_wide(&csa->requests) ? ALB_MTU_TOO_NARROW : "no sign of life";
    alb_qp_count(csa->qp, ALB_STAT_retry_exceeded_err, 1);
    fail(csa, ALB_WC_RETRY_EXC_ERR, 0, reason, now - csa->heard, now);
}

void alb_csa_heard(struct alb_csa *csa, alb_time now)
{
    csa->heard = now;
    if (csa->responses.una == csa->responses.next)
        return;
    if (alb_csa_has_given_up_answers(csa))
        csa->responses.probes = 0;
    alb_stream_out_watch(&csa->responses, now);
}
