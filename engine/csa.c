// SPDX-License-Identifier: BSD-2-Clause
// The delivery layer csa as the verbs layer sees it: its life with the queue pair.
#include "engine/csa.h"

#include "engine/impl.h"

#include <errno.h>

static int create(struct alb_qp *qp)
{
    struct alb_csa *csa = alb_engine_get_memory(qp->engine, sizeof(*csa));
    if (!csa)
        return ENOMEM;
    csa->qp = qp;
    if (alb_reflect_in_reserve(csa) != 0) {
        alb_engine_put_memory(qp->engine, csa, sizeof(*csa));
        return ENOMEM;
    }
    alb_stream_out_init(&csa->requests, csa, false);
    alb_stream_out_init(&csa->responses, csa, true);
    alb_stream_in_init(&csa->in_requests, csa, false, &alb_csa_responder_ops);
    alb_stream_in_init(&csa->in_responses, csa, true, &alb_csa_completer_ops);
    alb_deadline_init(&csa->life_timer, alb_csa_on_life);
    alb_deadline_init(&csa->rnr_timer, alb_csa_on_rnr);
    qp->delivery_state = csa;
    return 0;
}

// Leaves every list of the association. Nothing is in flight.
static void disconnect(struct alb_csa *csa)
{
    struct alb_stream_in *in[] = {&csa->in_requests, &csa->in_responses};
    struct alb_stream_out *out[] = {&csa->requests, &csa->responses};
    for (uint32_t i = 0; i < 2; i++) {
        alb_stream_in_forget_report(in[i]);
        alb_list_remove(&in[i]->open_link);
        alb_line_leave(out[i]);
    }
    // A command may have been answered while its repetition waited: it is not wanted any more, but still in the list.
    if (csa->reflect_out)
        alb_list_remove(&csa->reflect_out->source.link);
    if (csa->reflect_in)
        alb_list_remove(&csa->reflect_in->source.link);
    if (csa->assoc)
        alb_assoc_put(csa->qp->engine, csa->assoc);
    csa->assoc = NULL;
    csa->bound_epoch = 0; // which is for those two addresses
}

static void put_answers(struct alb_csa *csa)
{
    alb_engine_put_memory(csa->qp->engine, csa->answers, csa->answer_capacity * sizeof(*csa->answers));
    csa->answers = NULL;
    csa->answer_capacity = 0;
}

static void destroy(struct alb_qp *qp)
{
    struct alb_csa *csa = alb_csa_of(qp);
    alb_reflect_in_stop(csa, qp->engine->now);
    alb_engine_put_memory(qp->engine, csa->reflect_room, sizeof(*csa->reflect_room));
    if (csa->reflect_out)
        alb_reflect_out_destroy(csa->reflect_out);
    disconnect(csa);
    put_answers(csa);
    if (qp->engine->csa->heard_last == csa)
        qp->engine->csa->heard_last = NULL;
    alb_engine_put_memory(qp->engine, csa, sizeof(*csa));
}

// ---- attributes -----------------------------------------------------------------------------------------------------

// At least one place.
static uint32_t answers_wanted(const struct alb_csa *csa)
{
    return ALB_MAX(csa->qp->attr.max_dest_rd_atomic, 1);
}

static struct alb_csa_answer *get_answers(const struct alb_csa *csa)
{
    return alb_engine_get_memory(csa->qp->engine, answers_wanted(csa) * sizeof(struct alb_csa_answer));
}

// Another ring of answers, of which there are none now.
static void change_answers(struct alb_csa *csa, struct alb_csa_answer *answers)
{
    put_answers(csa);
    csa->answers = answers;
    csa->answer_capacity = answers_wanted(csa);
    csa->answer_first = 0;
}

// What has left, or is owed, is reckoned with the association that it began with.
static bool is_under_way(const struct alb_csa *csa)
{
    return alb_stream_out_count(&csa->requests) > 0 || csa->asked_open > 0 || csa->answer_count > 0 ||
           (csa->reflect_out && !alb_reflect_out_is_quiet(csa->reflect_out)) ||
           (csa->reflect_in && !alb_reflect_in_is_quiet(csa->reflect_in));
}

// The peer's engine is that of the slot in its QPN. An address can only be changed while draining.
static int connect(struct alb_csa *csa)
{
    struct alb_qp *qp = csa->qp;
    struct alb_engine *engine = qp->engine;
    const struct alb_av *av = &qp->attr.av;
    struct alb_assoc *assoc = alb_assoc_get(engine, &av->local, &av->peer, (uint8_t)(qp->attr.dest_qpn >> 16));
    if (!assoc)
        return ENOMEM;
    bool is_same = csa->assoc == assoc;
    if (csa->assoc && !is_same && is_under_way(csa)) {
        alb_assoc_put(engine, assoc);
        return EBUSY;
    }
    if (av->path_payload_max)
        alb_mtu_set_route(engine, assoc, av->path_payload_max);
    if (is_same)
        alb_assoc_put(engine, assoc);
    else
        disconnect(csa);
    csa->assoc = assoc;
    return 0;
}

// What can fail. Then nothing has changed.
static int take_resources(struct alb_csa *csa, uint32_t mask)
{
    bool is_resized = mask & ALB_QP_MAX_DEST_RD_ATOMIC;
    if (is_resized && csa->answer_count > 0)
        return EBUSY;
    struct alb_csa_answer *answers = is_resized ? get_answers(csa) : NULL;
    if (is_resized && !answers)
        return ENOMEM;
    int error = mask & ALB_QP_AV ? connect(csa) : 0;
    if (error && is_resized)
        alb_engine_put_memory(csa->qp->engine, answers, answers_wanted(csa) * sizeof(*answers));
    else if (is_resized)
        change_answers(csa, answers);
    return error;
}

static int modify(struct alb_qp *qp, uint32_t mask, enum alb_qp_state next)
{
    struct alb_csa *csa = alb_csa_of(qp);
    int error = take_resources(csa, mask);
    if (error)
        return error;
    if (mask & ALB_QP_RQ_PSN) {
        alb_stream_in_begin(&csa->in_requests, qp->attr.rq_psn);
        alb_stream_out_begin(&csa->responses, qp->attr.rq_psn);
        csa->answer_psn = qp->attr.rq_psn;
    }
    if (mask & ALB_QP_SQ_PSN) {
        alb_stream_out_begin(&csa->requests, qp->attr.sq_psn);
        alb_stream_in_begin(&csa->in_responses, qp->attr.sq_psn);
        csa->started_psn = qp->attr.sq_psn;
    }
    if (mask & ALB_QP_RNR_RETRY)
        csa->rnr_retries_left = qp->attr.rnr_retry;
    if (mask & (ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT))
        alb_csa_watch_life_anew(csa, qp->engine->now);
    return 0;
}

// ---- state ----------------------------------------------------------------------------------------------------------

void alb_csa_stop_answering(struct alb_csa *csa)
{
    alb_stream_out_stop(&csa->responses);
    alb_csa_forget_all_answers(csa);
    csa->answer_psn = csa->responses.next;
}

static void stop_asking(struct alb_csa *csa)
{
    struct alb_wheel *wheel = &csa->qp->engine->wheel;
    alb_stream_out_stop(&csa->requests);
    alb_stream_in_stop(&csa->in_requests);
    alb_stream_in_stop(&csa->in_responses);
    alb_expect_drop(csa);
    alb_wheel_disarm(wheel, &csa->life_timer.timer);
    alb_wheel_disarm(wheel, &csa->rnr_timer.timer);
    csa->is_waiting_rnr = false;
    csa->rnr_asked_at = 0;
    csa->asked_open = csa->answered_open = 0;
    csa->started = csa->cursor = csa->answer_cursor = csa->acked_cursor =
        atomic_load_explicit(&csa->qp->sq.tail, memory_order_relaxed);
}

static void reset(struct alb_csa *csa)
{
    stop_asking(csa);
    alb_csa_stop_answering(csa);
    alb_reflect_in_stop(csa, csa->qp->engine->now);
    if (csa->reflect_out)
        alb_reflect_out_reset(csa->reflect_out);
    disconnect(csa);
    alb_stream_out_begin(&csa->requests, 0);
    alb_stream_in_begin(&csa->in_requests, 0);
    atomic_store_explicit(&csa->qp->wants_receive, false, memory_order_relaxed);
    csa->is_refusing = false;
    csa->started = csa->cursor = csa->answer_cursor = csa->acked_cursor = 0;
    csa->recv_number = csa->received = 0;
    csa->is_blocked = false;
    csa->farewells = 0;
}

static void on_state(struct alb_qp *qp, enum alb_qp_state old, alb_time now)
{
    struct alb_csa *csa = alb_csa_of(qp);
    switch (alb_qp_state_of(qp)) {
    case ALB_QPS_RESET:
        reset(csa);
        break;
    case ALB_QPS_ERR: // what was executed is still acknowledged, and why it ended is still said
        if (csa->reflect_out)
            alb_reflect_out_stop(csa->reflect_out, now);
        alb_reflect_in_stop(csa, now);
        stop_asking(csa);
        if (!csa->is_refusing)
            alb_csa_stop_answering(csa);
        break;
    case ALB_QPS_SQD:
        alb_csa_retire(csa, now);
        alb_csa_requester_drain(csa);
        break;
    default:
        break;
    }
}

// A receive may have come for what waits.
static void retry(struct alb_stream_in *in, alb_time now)
{
    alb_psn cumulative = in->cumulative;
    alb_stream_in_retry(in, now);
    if (alb_qp_state_of(in->csa->qp) == ALB_QPS_ERR)
        return;
    if (in->cumulative != cumulative)
        alb_stream_in_owe_report(in);
    alb_stream_in_watch(in, now);
}

static bool has_something_to_send(const struct alb_csa *csa)
{
    uint32_t tail = atomic_load_explicit(&csa->qp->sq.tail, memory_order_acquire);
    return tail != csa->cursor || csa->requests.lost_count > 0 || csa->requests.probe_is_due;
}

static void work(struct alb_qp *qp, alb_time now)
{
    struct alb_csa *csa = alb_csa_of(qp);
    if (csa->in_requests.waits_rnr)
        retry(&csa->in_requests, now);
    if (csa->reflect_in && csa->reflect_in->notice_count > 0)
        alb_reflect_in_notify(csa, now);
    if (has_something_to_send(csa))
        alb_stream_out_wake(&csa->requests);
}

static bool owes_report(const struct alb_csa *csa)
{
    return alb_list_is_linked(&csa->in_requests.report_link) || alb_list_is_linked(&csa->in_responses.report_link);
}

static bool is_quiet(const struct alb_qp *qp)
{
    const struct alb_csa *csa = alb_csa_of(qp);
    if (alb_qp_state_of(qp) < ALB_QPS_RTR)
        return true;
    if (owes_report(csa) || (csa->reflect_in && !alb_reflect_in_is_quiet(csa->reflect_in)))
        return false;
    bool is_answered = csa->responses.una == csa->answer_psn || alb_csa_has_given_up_answers(csa);
    if (alb_qp_state_of(qp) == ALB_QPS_ERR)
        return is_answered;
    bool is_draining = alb_qp_state_of(qp) == ALB_QPS_SQD; // then what has not begun waits for the program
    uint32_t done = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
    uint32_t wanted = is_draining ? done : atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
    return csa->requests.una == csa->requests.next && is_answered && csa->asked_open == 0 && csa->started == wanted &&
           (!csa->reflect_out || alb_reflect_out_is_quiet(csa->reflect_out));
}

// The peer may have no report of what came last, and cannot ask once we are gone.
static void farewell(struct alb_qp *qp)
{
    struct alb_csa *csa = alb_csa_of(qp);
    enum alb_qp_state state = alb_qp_state_of(qp);
    bool is_connected = state == ALB_QPS_RTR || state == ALB_QPS_RTS || state == ALB_QPS_SQD;
    if (!is_connected || csa->bound_epoch == 0)
        return;
    csa->farewells = ALB_CSA_FAREWELLS;
    alb_stream_in_owe_report(&csa->in_requests);
}

static void query(const struct alb_qp *qp, struct alb_qp_attr *attr)
{
    const struct alb_csa *csa = alb_csa_of(qp);
    if (alb_qp_state_of(qp) >= ALB_QPS_RTR)
        attr->rq_psn = csa->in_requests.cumulative;
    if (alb_qp_state_of(qp) >= ALB_QPS_RTS)
        attr->sq_psn = csa->requests.next;
}

const struct alb_delivery_ops alb_csa_ops = {
    .name = "csa",
    .create = create,
    .destroy = destroy,
    .modify = modify,
    .on_state = on_state,
    .work = work,
    .rx = alb_csa_rx_foreign,
    .farewell = farewell,
    .is_quiet = is_quiet,
    .query = query,
};
