// SPDX-License-Identifier: BSD-2-Clause
// Silence. When nothing has been heard for the policy's time since something left, the newest segment goes again (or a
// bare probe, if there is nothing to send), so that the peer says what it holds. Each time waits twice as long.
#include "engine/impl.h"

enum {
    DOUBLINGS_MAX = 10,
    PROBES_IN_PATIENCE = 16, // at least, before a queue pair fails for silence
    ANSWER_PROBES_MAX = 12,  // no request depends on our failing: a requester that wants the answer asks
    STALE_RTTS = 16,         // that a timer may be ahead, and is not looked at
};

bool alb_csa_has_given_up_answers(const struct alb_csa *csa)
{
    return csa->responses.probes >= ANSWER_PROBES_MAX;
}

// Something is owed to us: an acknowledgement, or the answer to a request.
static bool is_waiting(const struct alb_stream_out *out)
{
    if (out->una != out->next)
        return true;
    return !out->is_response && out->csa->asked_open > 0;
}

// How often the wait has doubled: once a probe. A policy of one interval keeps it for a peer that was heard since.
static uint32_t doublings(const struct alb_stream_out *out)
{
    bool is_kept = out->csa->qp->engine->csa->loss.interval_ns && out->reported_at > out->sent_at;
    return is_kept ? 0 : ALB_MIN(out->probes, (uint32_t)DOUBLINGS_MAX);
}

static alb_time silence_ns(const struct alb_stream_out *out)
{
    const struct alb_engine *engine = out->csa->qp->engine;
    const struct alb_csa_loss *loss = &engine->csa->loss;
    const struct alb_loss_sending sending = alb_stream_out_sending(out);
    return ALB_MAX(loss->ops->silence_ns(loss, &sending), (alb_time)engine->config.csa_probe_min_ns);
}

// However often it has doubled.
static alb_time longest_wait_ns(const struct alb_stream_out *out, alb_time once_ns)
{
    alb_time patience_ns = out->is_response ? ALB_TIME_NEVER : alb_csa_patience_ns(out->csa);
    return ALB_MAX(once_ns, patience_ns / PROBES_IN_PATIENCE);
}

static alb_time due_at(const struct alb_stream_out *out)
{
    alb_time once_ns = silence_ns(out), rtt_ns = alb_assoc_rtt_ns(out->csa->assoc);
    uint32_t doubled = doublings(out);
    alb_time wait_ns = ALB_MIN(once_ns << doubled, longest_wait_ns(out, once_ns));
    alb_time since = ALB_MAX(out->sent_at, out->reported_at);
    if (doubled > 0 || wait_ns <= rtt_ns)
        return since + wait_ns;
    // What left last is answered a round trip after it left, whatever was reported meanwhile.
    return ALB_MAX(out->sent_at + wait_ns, since + wait_ns - rtt_ns);
}

// Likewise, once that has passed: others may ask first.
static alb_time turn_at(const struct alb_stream_out *out, alb_time due, alb_time now)
{
    const struct alb_assoc_live *live = out->csa->assoc->live;
    if (!live || !live->engine->csa->loss.ops->asks_together)
        return due;
    alb_time once_ns = silence_ns(out), turn = alb_assoc_ask_at(live, due, once_ns, now);
    return ALB_MIN(turn, due + longest_wait_ns(out, once_ns));
}

// True if it is surely not due before the timer looks again: mostly so where messages go one at a time.
static bool looks_in_time(const struct alb_stream_out *out)
{
    const struct alb_engine *engine = out->csa->qp->engine;
    const struct alb_timer *timer = &out->probe_timer.timer;
    if (!alb_timer_is_armed(timer))
        return false;
    return timer->at <= out->sent_at + engine->config.csa_probe_min_ns ||
           (engine->csa->loss.ops->waits_round_trip && timer->at <= out->sent_at + alb_assoc_rtt_ns(out->csa->assoc));
}

// Called for every segment: the timer is left where it is, and looks again when it fires.
void alb_stream_out_watch(struct alb_stream_out *out, alb_time now)
{
    if (looks_in_time(out))
        return;
    bool is_armed = alb_timer_is_armed(&out->probe_timer.timer);
    // One armed while the round-trip time was not known would let the first loss wait very long.
    bool is_fair =
        is_armed && out->probe_timer.timer.at <= now + STALE_RTTS * (alb_time)alb_assoc_rtt_ns(out->csa->assoc);
    if ((is_fair && alb_stream_out_count(out) > 1 && out->probes == 0) || !is_waiting(out))
        return;
    alb_time due = ALB_MAX(due_at(out), now + 1);
    if (!is_armed || out->probe_timer.timer.at > due) // the first one after a rest: it may be from slower times
        alb_wheel_arm(&out->csa->qp->engine->wheel, &out->probe_timer.timer, due);
}

static bool find_oldest(const struct alb_stream_out *out, alb_psn *psn)
{
    for (*psn = out->una; *psn != out->next; *psn = alb_psn_next(*psn))
        if (alb_stream_out_at(out, *psn)->state != ALB_SENT_HELD)
            return true;
    return false;
}

// The newest segment that the peer is not known to hold; false: it holds all. Every other time the oldest, which a peer
// can take that takes nothing before its turn, or has no room. A peer that has never been heard knows us by a queue
// pair's first message only (csa_admit.c).
static bool find_segment(const struct alb_stream_out *out, alb_psn *psn)
{
    if (out->csa->assoc->peer_epoch == 0 || out->probes % 2 == 1)
        return find_oldest(out, psn);
    for (*psn = out->next; *psn != out->una;) {
        *psn = alb_psn_add(*psn, -1);
        if (alb_stream_out_at(out, *psn)->state != ALB_SENT_HELD)
            return true;
    }
    return false;
}

static uint32_t mark_all_lost(struct alb_stream_out *out)
{
    uint32_t bytes = 0;
    for (alb_psn psn = out->una; psn != out->next; psn = alb_psn_next(psn))
        bytes += alb_stream_out_mark_lost(out, psn);
    return bytes;
}

// What is left goes when the peer is heard again, and does not keep the association awake until then.
static void give_up(struct alb_stream_out *out)
{
    uint32_t bytes = mark_all_lost(out);
    if (bytes)
        alb_assoc_release(out->csa->assoc->live, bytes);
}

static void resend_all(struct alb_stream_out *out, alb_time now)
{
    struct alb_assoc_live *live = out->csa->assoc->live;
    struct alb_engine *engine = out->csa->qp->engine;
    uint32_t inflight_bytes = (uint32_t)live->inflight_bytes, bytes = mark_all_lost(out);
    alb_qp_count(out->csa->qp, ALB_STAT_local_ack_timeout_err, 1);
    alb_congestion_on_loss(engine->congestion, &live->congestion, inflight_bytes, bytes, ALB_LOSS_TIMEOUT, now);
    alb_assoc_release(live, bytes);
    out->has_probe_psn = alb_stream_out_next_lost(out, &out->probe_psn);
    out->probe_is_due = !out->has_probe_psn; // the peer holds the next ones, and waits for a receive
}

static void probe_with(struct alb_stream_out *out, alb_psn psn)
{
    alb_assoc_release(out->csa->assoc->live, alb_stream_out_mark_lost(out, psn));
    out->probe_psn = psn;
    out->has_probe_psn = true;
}

void alb_stream_out_probe_oldest(struct alb_stream_out *out)
{
    alb_wheel_disarm(&out->csa->qp->engine->wheel, &out->probe_timer.timer); // the caller arms it for this probe
    if (out->una == out->next || alb_stream_out_at(out, out->una)->state == ALB_SENT_HELD)
        out->probe_is_due = true;
    else
        probe_with(out, out->una);
}

// True if something new waits for the link or for its pace, not for the window, so that the newest segment is not the
// last one: nothing has to go again to tell what is lost (RFC 8985, 7.3). By a slow link a report may have been asked
// for longer ago than silence lasts, since that is done for each part of a window.
static bool has_more(const struct alb_stream_out *out)
{
    bool is_known = out->csa->assoc->peer_epoch != 0; // else only the first message is answered (csa_admit.c)
    return is_known && out->place == ALB_LINE_READY && !alb_stream_out_is_at_end(out);
}

static void probe(struct alb_stream_out *out, alb_time now)
{
    struct alb_engine *engine = out->csa->qp->engine;
    struct alb_assoc_live *live = out->csa->assoc->live;
    alb_psn psn;
    alb_qp_count(out->csa->qp, ALB_STAT_tail_probes, 1);
    alb_assoc_asked(live, silence_ns(out), now);
    if ((out->probes == 0 && has_more(out)) || !find_segment(out, &psn)) {
        out->probe_is_due = true;
        return;
    }
    const struct alb_sent *sent = alb_stream_out_at(out, psn);
    if (out->probes > 0 && out->reported_at < out->sent_at) // the first one may just have been early
        alb_path_unanswered(live->paths, engine->path, sent->path, now);
    probe_with(out, psn);
}

// A policy of timeouts asks with everything that is not acknowledged, until the stream counts as silent.
static bool resends_all(const struct alb_stream_out *out)
{
    return out->csa->qp->engine->csa->loss.ops->on_silence == ALB_LOSS_RESEND_ALL &&
           out->probes < ALB_PROBES_OF_PATIENCE;
}

bool alb_stream_out_fail_stuck(struct alb_stream_out *out, alb_time now)
{
    if (alb_likely(!alb_stream_out_is_stuck(out, now)))
        return false;
    if (out->is_response) {
        alb_csa_refuse_stuck_answer(out->csa, now);
        return true;
    }
    alb_qp_count(out->csa->qp, ALB_STAT_retry_exceeded_err, 1);
    alb_csa_fail(out->csa, ALB_WC_RETRY_EXC_ERR, 0, ALB_MTU_TOO_NARROW, now);
    return true;
}

void alb_stream_out_on_probe(struct alb_deadline *deadline, alb_time now)
{
    struct alb_stream_out *out = ALB_CONTAINER_OF(deadline, struct alb_stream_out, probe_timer);
    struct alb_csa *csa = out->csa;
    struct alb_engine *engine = csa->qp->engine;
    if (!is_waiting(out) || (csa->is_waiting_rnr && !out->is_response))
        return; // whatever ends that wait arms the timer again
    alb_time due = due_at(out);
    if (due <= now)
        due = turn_at(out, due, now);
    if (due > now) {
        alb_wheel_arm(&engine->wheel, &deadline->timer, due);
        return;
    }
    if (alb_stream_out_fail_stuck(out, now))
        return;
    if (!alb_assoc_wake(engine, csa->assoc)) { // the pool is empty
        out->sent_at = now;
        alb_wheel_arm(&engine->wheel, &deadline->timer, due_at(out));
        return;
    }
    if (out->is_response && alb_csa_has_given_up_answers(csa)) {
        give_up(out);
        return;
    }
    alb_trace_add(engine, ALB_TRACE_silence, csa->qp->number, out->una, out->probes, alb_assoc_rtt_ns(csa->assoc), now);
    if (out->una != out->next && resends_all(out))
        resend_all(out, now);
    else
        probe(out, now);
    out->probes++;
    out->sent_at = now;
    if (alb_stream_out_is_silent(out))
        alb_stream_out_uncharge(out);
    alb_stream_out_wake(out);
    alb_stream_out_watch(out, now);
}
