// SPDX-License-Identifier: BSD-2-Clause
// The initiator: what verdicts, deadlines and the program's word do to its operations. It repeats its commands until a
// verdict answers; when the target may have exposed a transaction and cannot be asked any more, it is in doubt.
#include "engine/impl.h"

#include <errno.h>

#define INTERVAL_MAX_NS (100 * ALB_NS_PER_MS) // between repetitions

enum {
    ASKS_IN_LEASE = 8,     // at least: a verdict that was lost is learned while there is time to decide
    ASKS_IN_PATIENCE = 16, // at least: their answers may be the only signs of life
};

// ---- commands -------------------------------------------------------------------------------------------------------

// A round trip and a half, and what it may be late by: until then an answer may still be on its way.
static alb_time first_interval_ns(const struct alb_reflect_out *out)
{
    const struct alb_csa *csa = out->csa;
    alb_time rtt_ns = alb_assoc_rtt_ns(csa->assoc);
    return rtt_ns + rtt_ns / 2 + alb_assoc_margin_ns(csa->qp->engine, csa->assoc);
}

static void arm(struct alb_reflect_out *out, alb_time at)
{
    struct alb_timer *timer = &out->timer.timer;
    if (!alb_timer_is_armed(timer) || at < timer->at)
        alb_wheel_arm(&out->csa->qp->engine->wheel, timer, at);
}

// Twice as long each time, whether nothing was answered or that it is pending: what is decided is said without being
// asked for, so that a question is only for a verdict that was lost.
static alb_time next_interval_ns(const struct alb_txn_out *txn)
{
    alb_time most_ns = ALB_MIN((alb_time)INTERVAL_MAX_NS, alb_csa_patience_ns(txn->out->csa) / ASKS_IN_PATIENCE);
    if (txn->lease_ns)
        most_ns = ALB_MIN(most_ns, txn->lease_ns / ASKS_IN_LEASE);
    return ALB_MAX(ALB_MIN(2 * txn->interval_ns, most_ns), first_interval_ns(txn->out));
}

// From now on an answer is waited for.
static void expect_answer(struct alb_txn_out *txn, alb_time now)
{
    txn->out->csa->heard = now; // of this, there was nothing to hear until now
    txn->asked_at = now;
    txn->interval_ns = first_interval_ns(txn->out);
    arm(txn->out, now + txn->interval_ns);
}

// The command is to be sent now.
static void owe(struct alb_txn_out *txn, enum alb_csa_command command)
{
    struct alb_reflect_out *out = txn->out;
    struct alb_engine *engine = out->csa->qp->engine;
    txn->command = (uint8_t)command;
    if (!alb_list_is_linked(&txn->due))
        alb_list_push_back(&out->due, &txn->due);
    struct alb_assoc_live *live = alb_assoc_wake(engine, out->csa->assoc);
    if (!live)
        return; // the timer comes back to it
    if (!alb_list_is_linked(&out->source.link))
        alb_list_push_back(&live->reflections, &out->source.link);
    alb_csa_turn_tell(live);
}

// On hold it is the program's turn. If the target has not said by the end of the lease that it is over, that was lost.
static void rest_until_lease(struct alb_txn_out *txn, alb_time now)
{
    txn->asked_at = now;
    txn->interval_ns = txn->lease_ns + first_interval_ns(txn->out);
    arm(txn->out, now + txn->interval_ns);
}

static void command(struct alb_txn_out *txn, enum alb_csa_command what, alb_time now)
{
    owe(txn, what);
    expect_answer(txn, now);
}

// ---- ends -----------------------------------------------------------------------------------------------------------

// The request's completion may go, in the send queue's order. Last of all: it may end the queue pair.
static void complete(struct alb_txn_out *txn, alb_time now)
{
    struct alb_csa *csa = txn->out->csa;
    struct alb_send_wqe *wqe = alb_csa_wqe(csa, txn->wqe_index);
    wqe->is_answered = true;
    wqe->vendor_err = (uint8_t)txn->reason;
    txn->is_completed = true;
    alb_txn_out_count_gaps(txn);
    alb_reflect_out_advance(txn->out);
    alb_csa_retire(csa, now);
    if (alb_qp_state_of(csa->qp) != ALB_QPS_ERR)
        alb_stream_out_wake(&csa->requests);
}

static enum alb_stat stat_of(enum alb_txn_state state)
{
    switch (state) {
    case ALB_TXN_COMMITTED:
        return ALB_STAT_txn_committed;
    case ALB_TXN_CORRUPT:
        return ALB_STAT_txn_corrupt;
    case ALB_TXN_UNKNOWN:
        return ALB_STAT_txn_unknown;
    case ALB_TXN_IN_DOUBT:
        return ALB_STAT_txn_in_doubt;
    default:
        return ALB_STAT_txn_aborted;
    }
}

static void count_end(const struct alb_txn_out *txn)
{
    if (!txn->is_message && !txn->is_question)
        alb_qp_count(txn->out->csa->qp, stat_of(txn->state), 1);
}

static void end(struct alb_txn_out *txn, enum alb_txn_state state, enum alb_txn_reason reason, alb_time now)
{
    alb_list_remove(&txn->due);
    alb_txn_out_set_state(txn, state, now);
    if (reason != ALB_TXN_OK && txn->reason == ALB_TXN_OK)
        txn->reason = reason;
    count_end(txn);
    if (!txn->is_completed) {
        complete(txn, now);
        return;
    }
    alb_txn_out_count_gaps(txn);
    alb_reflect_out_advance(txn->out); // its place is the posts' from here on
}

// It is not to be, and COMMIT was not sent. Once the target has the proposal, ABORT is sent.
static void withdraw(struct alb_txn_out *txn, enum alb_txn_reason reason, alb_time now)
{
    txn->reason = reason;
    alb_txn_out_set_state(txn, ALB_TXN_ABORTING, now);
    if (txn->is_delivered)
        command(txn, ALB_CSA_TXN_ABORT, now);
}

static void commit(struct alb_txn_out *txn, alb_time now)
{
    txn->has_committed = true;
    command(txn, ALB_CSA_TXN_COMMIT, now);
}

static alb_time deadline_of(const struct alb_txn_out *txn)
{
    alb_time at = txn->stages.submitted + txn->deadline_ns;
    return at < txn->stages.submitted ? ALB_TIME_NEVER : at;
}

// ---- as the stream goes on ------------------------------------------------------------------------------------------

void alb_reflect_out_begin(struct alb_reflect_out *out, const struct alb_send_wqe *wqe, alb_time now)
{
    struct alb_txn_out *txn = alb_txn_out_at(out, wqe->txn_number);
    alb_assert(txn->number == wqe->txn_number && out->begun == txn->number);
    out->begun++;
    alb_txn_out_set_state(txn, txn->is_question ? ALB_TXN_IN_DOUBT : ALB_TXN_TENTATIVE, now);
    if (txn->deadline_ns)
        arm(out, deadline_of(txn));
    if (txn->is_unwanted)
        withdraw(txn, ALB_TXN_WITHDRAWN, now);
    if (!txn->is_question)
        return;
    txn->is_delivered = true;
    command(txn, (enum alb_csa_command)txn->command, now);
}

void alb_reflect_out_sent(struct alb_reflect_out *out, const struct alb_send_wqe *wqe, bool is_last, alb_time now)
{
    struct alb_txn_out *txn = alb_txn_out_at(out, wqe->txn_number);
    now = ALB_MAX(now, txn->stages.submitted); // the driver may have read the clock before it was posted
    if (txn->stages.placed == ALB_TIME_NEVER)
        txn->stages.placed = now;
    if (is_last)
        txn->stages.transmitted = now;
}

void alb_reflect_out_delivered(struct alb_reflect_out *out, const struct alb_send_wqe *wqe, alb_time now)
{
    struct alb_txn_out *txn = alb_txn_out_find(out, wqe->txn_number);
    if (!txn || txn->is_delivered)
        return;
    txn->is_delivered = true;
    txn->stages.delivered = now;
    if (txn->state == ALB_TXN_ABORTING)
        command(txn, ALB_CSA_TXN_ABORT, now);
    else if (txn->state == ALB_TXN_TENTATIVE)
        expect_answer(txn, now); // the verdict is on its way, if it was not lost
}

// ---- verdicts -------------------------------------------------------------------------------------------------------

static bool is_ours(const struct alb_txn_out *txn, const struct alb_csa_verdict *verdict)
{
    return alb_digest_is_wire(&txn->digest, &verdict->digest);
}

static void on_reflected(struct alb_txn_out *txn, const struct alb_csa_verdict *verdict, alb_time now)
{
    if (txn->is_message || txn->is_question)
        return; // cannot be, since nothing is bound; it is bound at the target: its lease, or our decision, will end it
    if (txn->state == ALB_TXN_ABORTING) {
        command(txn, ALB_CSA_TXN_ABORT, now);
        return;
    }
    if (txn->state != ALB_TXN_TENTATIVE)
        return; // said again
    if (!is_ours(txn, verdict)) {
        withdraw(txn, ALB_TXN_DIGEST, now);
        return;
    }
    alb_txn_out_set_state(txn, ALB_TXN_REFLECTING, now);
    if (txn->holds)
        rest_until_lease(txn, now);
    else
        commit(txn, now);
    if (txn->level == ALB_LEVEL_REFLECTED)
        complete(txn, now);
}

// Whoever has decided for it: another holder of the token may have been before us.
static void on_committed(struct alb_txn_out *txn, const struct alb_csa_verdict *verdict, alb_time now)
{
    bool is_checked = !txn->is_question && !(txn->is_message && txn->level == ALB_LEVEL_DELIVERED);
    txn->reason = ALB_TXN_OK; // that it was withdrawn came too late
    if (is_checked && !is_ours(txn, verdict))
        end(txn, ALB_TXN_CORRUPT, txn->is_message ? ALB_TXN_DIGEST : ALB_TXN_COPY, now);
    else
        end(txn, ALB_TXN_COMMITTED, ALB_TXN_OK, now);
}

// Nothing has ended for that it is lost: so the target says that it does not know, and completions what is in doubt.
static enum alb_txn_reason reason_of(const struct alb_csa_verdict *verdict, enum alb_txn_reason otherwise)
{
    bool is_told = verdict->reason != ALB_TXN_OK && verdict->reason != ALB_TXN_LOST;
    return is_told && verdict->reason < ALB_TXN_REASONS ? (enum alb_txn_reason)verdict->reason : otherwise;
}

// A message that only its stages are asked of: it was acknowledged, and when it was read is all that is not known yet.
static bool has_reached_its_level(const struct alb_txn_out *txn)
{
    return txn->is_message && txn->level == ALB_LEVEL_DELIVERED && txn->is_delivered;
}

// A target without a record has not exposed what was never decided.
static void on_unknown(struct alb_txn_out *txn, const struct alb_csa_verdict *verdict, alb_time now)
{
    if (has_reached_its_level(txn))
        end(txn, ALB_TXN_COMMITTED, ALB_TXN_OK, now);
    else if (txn->is_question || txn->has_committed || txn->is_message)
        end(txn, ALB_TXN_UNKNOWN, ALB_TXN_LOST, now);
    else
        end(txn, ALB_TXN_ABORTED, reason_of(verdict, ALB_TXN_PEER_GONE), now);
}

static void judge(struct alb_txn_out *txn, const struct alb_csa_verdict *verdict, alb_time now)
{
    switch ((enum alb_csa_verdict_state)verdict->state) {
    case ALB_CSA_VERDICT_PENDING:
        break; // it is asked about again when it is time
    case ALB_CSA_VERDICT_REFLECTED:
        on_reflected(txn, verdict, now);
        break;
    case ALB_CSA_VERDICT_COMMITTED:
        on_committed(txn, verdict, now);
        break;
    case ALB_CSA_VERDICT_ABORTED:
        end(txn, ALB_TXN_ABORTED, reason_of(verdict, ALB_TXN_WITHDRAWN), now);
        break;
    case ALB_CSA_VERDICT_CORRUPT:
        txn->reason = ALB_TXN_OK;
        end(txn, ALB_TXN_CORRUPT, reason_of(verdict, ALB_TXN_COPY), now);
        break;
    case ALB_CSA_VERDICT_UNKNOWN:
        on_unknown(txn, verdict, now);
        break;
    }
}

// The target answers in the name of the keeper that it was asked for; asked for none, as any with the record, or none.
// What one of them does not know, or presumes, is no answer to a question to another.
static bool answers(const struct alb_txn_out *question, const struct alb_csa_verdict *verdict)
{
    return question->asked.initiator == verdict->id.initiator && question->asked.number == verdict->id.number &&
           (question->keeper == 0 || question->keeper == verdict->keeper);
}

// A verdict is about an operation of ours, or about one that we ask about.
static struct alb_txn_out *find(struct alb_reflect_out *out, const struct alb_csa_verdict *verdict)
{
    const struct alb_csa_txn_id *id = &verdict->id;
    if (id->initiator == out->initiator) {
        struct alb_txn_out *txn = alb_txn_out_find(out, id->number);
        return txn && !txn->is_question ? txn : NULL;
    }
    for (uint64_t n = atomic_load_explicit(&out->ended, memory_order_relaxed); n != out->begun; n++) {
        struct alb_txn_out *txn = alb_txn_out_at(out, n);
        if (txn->is_question && !alb_txn_state_is_end(txn->state) && answers(txn, verdict))
            return txn;
    }
    return NULL;
}

void alb_reflect_out_verdict(struct alb_reflect_out *out, const struct alb_csa_verdict *verdict, alb_time now)
{
    struct alb_csa *csa = out->csa;
    struct alb_txn_out *txn = find(out, verdict);
    if (!txn || txn->state == ALB_TXN_IDLE || alb_txn_state_is_end(txn->state))
        return;
    if (!txn->is_question && !txn->is_delivered) {
        if (verdict->state == ALB_CSA_VERDICT_UNKNOWN || !alb_csa_is_sent(csa, txn->wqe_index))
            return; // not asked for, or about what has not left: a forgery
        alb_csa_on_executed(csa, txn->wqe_index, now);
        if (alb_qp_state_of(csa->qp) == ALB_QPS_ERR)
            return;
    }
    if (txn->keeper == 0 && verdict->state != ALB_CSA_VERDICT_UNKNOWN && verdict->state != ALB_CSA_VERDICT_ABORTED)
        txn->keeper = verdict->keeper;
    if (!txn->is_question)
        alb_txn_out_note_stages(txn, verdict, now);
    judge(txn, verdict, now);
}

// ---- time -----------------------------------------------------------------------------------------------------------

static bool is_waiting(const struct alb_txn_out *txn)
{
    if (!txn->is_delivered || txn->interval_ns == 0)
        return false; // the stream sees to it, or it was not asked for
    return txn->state == ALB_TXN_TENTATIVE || txn->state == ALB_TXN_ABORTING ||
           (txn->state == ALB_TXN_REFLECTING && (txn->has_committed || txn->is_overdue)) ||
           (txn->state == ALB_TXN_IN_DOUBT && txn->is_question);
}

bool alb_reflect_out_is_waiting(const struct alb_reflect_out *out)
{
    uint64_t n = atomic_load_explicit(&out->ended, memory_order_relaxed);
    for (; n != out->begun; n++)
        if (is_waiting(&out->ring[n & (out->capacity - 1)]))
            return true;
    return false;
}

static enum alb_csa_command command_of(const struct alb_txn_out *txn)
{
    if (txn->is_question)
        return (enum alb_csa_command)txn->command;
    if (txn->state == ALB_TXN_ABORTING)
        return ALB_CSA_TXN_ABORT;
    return txn->has_committed ? ALB_CSA_TXN_COMMIT : ALB_CSA_TXN_ASK;
}

// Does what is due, and returns when it has something to do next.
static alb_time look_after(struct alb_txn_out *txn, alb_time now)
{
    alb_time next = ALB_TIME_NEVER;
    bool is_open = txn->state == ALB_TXN_TENTATIVE || (txn->state == ALB_TXN_REFLECTING && !txn->has_committed);
    if (txn->deadline_ns && is_open && !txn->is_question) {
        next = deadline_of(txn);
        if (next <= now) {
            withdraw(txn, ALB_TXN_DEADLINE, now);
            next = ALB_TIME_NEVER;
        }
    }
    bool is_held = txn->state == ALB_TXN_REFLECTING && !txn->has_committed;
    if (!is_held && !is_waiting(txn))
        return next;
    if (is_held && !txn->is_overdue && txn->asked_at + txn->interval_ns <= now) {
        txn->is_overdue = true;
        command(txn, ALB_CSA_TXN_ASK, now);
    } else if (txn->asked_at + txn->interval_ns <= now) {
        owe(txn, command_of(txn));
        txn->asked_at = now;
        txn->interval_ns = next_interval_ns(txn);
    }
    return ALB_MIN(next, txn->asked_at + txn->interval_ns);
}

void alb_reflect_out_on_timer(struct alb_deadline *deadline, alb_time now)
{
    struct alb_reflect_out *out = ALB_CONTAINER_OF(deadline, struct alb_reflect_out, timer);
    alb_time next = ALB_TIME_NEVER;
    for (uint64_t n = atomic_load_explicit(&out->ended, memory_order_relaxed); n != out->begun; n++)
        next = ALB_MIN(next, look_after(alb_txn_out_at(out, n), now));
    if (next != ALB_TIME_NEVER)
        arm(out, ALB_MAX(next, now + 1));
}

// ---- the program, and the end of the queue pair ---------------------------------------------------------------------

static bool is_decided(const struct alb_qp *qp, const struct alb_txn_out *txn)
{
    if (txn->state == ALB_TXN_IDLE)
        return txn->is_unwanted || alb_qp_state_of(qp) == ALB_QPS_ERR; // it will not begin any more
    return txn->has_committed || alb_txn_state_is_end(txn->state) || txn->state == ALB_TXN_ABORTING;
}

int alb_qp_txn_decide(struct alb_qp *qp, uint64_t number, bool commits, alb_time now)
{
    struct alb_reflect_out *out = qp->delivery == &alb_csa_ops ? alb_csa_of(qp)->reflect_out : NULL;
    if (!out)
        return EINVAL;
    struct alb_txn_out *txn = alb_txn_out_find_posted(out, number);
    if (!txn)
        return ENOENT;
    bool has_ended = number < atomic_load_explicit(&out->ended, memory_order_relaxed); // a post may be taking its place
    if (has_ended || is_decided(qp, txn))
        return EALREADY;
    if (!commits && txn->state == ALB_TXN_IDLE)
        txn->is_unwanted = true;
    else if (!commits)
        withdraw(txn, ALB_TXN_WITHDRAWN, now);
    else if (txn->state == ALB_TXN_REFLECTING)
        commit(txn, now);
    else
        txn->holds = false; // as soon as it may
    return 0;
}

// Nothing keeps a message from its place, once some of it has left.
static bool is_unsure(const struct alb_txn_out *txn)
{
    return txn->is_message ? txn->stages.placed != ALB_TIME_NEVER : txn->has_committed || txn->is_question;
}

static enum alb_txn_state stopped_state(const struct alb_txn_out *txn)
{
    if (has_reached_its_level(txn))
        return ALB_TXN_COMMITTED;
    if (!is_unsure(txn))
        return ALB_TXN_ABORTED;
    return txn->is_message ? ALB_TXN_UNKNOWN : ALB_TXN_IN_DOUBT;
}

static void stop(struct alb_txn_out *txn, alb_time now)
{
    struct alb_send_wqe *wqe = alb_csa_wqe(txn->out->csa, txn->wqe_index);
    enum alb_txn_state state = stopped_state(txn);
    alb_list_remove(&txn->due);
    if (alb_txn_state_is_end(txn->state))
        return;
    if (txn->reason == ALB_TXN_OK && state != ALB_TXN_COMMITTED)
        txn->reason = state == ALB_TXN_ABORTED ? ALB_TXN_PEER_GONE : ALB_TXN_LOST;
    if (txn->state != state) { // in doubt it may be stopped again
        alb_txn_out_set_state(txn, state, now);
        count_end(txn);
    }
    if (!txn->is_completed) {
        wqe->vendor_err = (uint8_t)txn->reason;
        wqe->is_answered = state == ALB_TXN_COMMITTED;
    }
    txn->is_completed = true;
}

void alb_reflect_out_stop(struct alb_reflect_out *out, alb_time now)
{
    alb_wheel_disarm(&out->csa->qp->engine->wheel, &out->timer.timer);
    alb_list_remove(&out->source.link);
    for (uint64_t n = atomic_load_explicit(&out->ended, memory_order_relaxed); n != out->begun; n++)
        stop(alb_txn_out_at(out, n), now);
    alb_reflect_out_advance(out);
}
