// SPDX-License-Identifier: BSD-2-Clause
// What a receiving half tells its peer, and when: what was asked for at once; a hole when its path settles it; the tail
// when it is overdue. docs/PROTOCOL.md, "REPORT".
#include "engine/impl.h"

enum {
    GAPS_OF_PATIENCE = 4, // between arrivals, before what is missing is overdue
    GAPS_IF_PRESSING = 2, // where others wait for it
    ASKS_MAX = 8,         // for the same tail; then it is the sender's to probe
    STALE_TIMES = 2,      // what is waited for now: a timer that is farther ahead is from slower times
};

void alb_stream_in_owe_report(struct alb_stream_in *in)
{
    struct alb_csa *csa = in->csa;
    if (alb_list_is_linked(&in->report_link)) {
        alb_qp_count(csa->qp, ALB_STAT_ack_deferred, 1);
        return;
    }
    struct alb_assoc_live *live = alb_assoc_wake(csa->qp->engine, csa->assoc);
    if (!live)
        return; // the pool is empty; the peer will ask
    alb_list_push_back(&live->reports, &in->report_link);
    live->paths_are_due = true;
    alb_csa_turn_tell(live);
}

void alb_stream_in_forget_report(struct alb_stream_in *in)
{
    alb_list_remove(&in->report_link);
}

// A refusal is not said before everything ahead of it has been answered.
static uint8_t syndrome_of(const struct alb_stream_in *in)
{
    const struct alb_csa *csa = in->csa;
    if (in->owes_nak)
        return ALB_AETH_SYNDROME_NAK(ALB_NAK_PSN_SEQUENCE_ERROR);
    if (!in->is_response && csa->is_refusing && csa->responses.una != csa->answer_psn &&
        !alb_csa_has_given_up_answers(csa))
        return ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT);
    return in->syndrome;
}

// What there is to tell of: from the cumulative PSN to the last segment that has come.
static uint32_t span_of(const struct alb_stream_in *in)
{
    uint32_t span = (uint32_t)alb_psn_diff(in->highest, in->cumulative);
    return span > (1u << 23) ? 0 : ALB_MIN(span, in->capacity);
}

uint32_t alb_stream_in_report_pages(const struct alb_stream_in *in, uint32_t room_bytes)
{
    uint32_t pages = (span_of(in) + ALB_CSA_PAGE_BITS - 1) / ALB_CSA_PAGE_BITS;
    pages = ALB_MIN(pages, room_bytes / alb_csa_report_bytes(ALB_CSA_BITMAP_WORDS));
    return ALB_MAX(ALB_MIN(pages, (uint32_t)ALB_CSA_PAGES_MAX), 1u);
}

// 64 segments from psn on. Nothing is held outside of the span, and that is no longer than the bitmap.
static uint64_t held_from(const struct alb_stream_in *in, alb_psn psn)
{
    uint32_t at = psn & (in->capacity - 1), shift = at % 64;
    uint64_t low = in->held[at / 64] >> shift;
    return shift ? low | in->held[(at / 64 + 1) % (in->capacity / 64)] << (64 - shift) : low;
}

void alb_stream_in_fill_report(const struct alb_stream_in *in, uint32_t page, struct alb_csa_report *report)
{
    report->is_response = in->is_response;
    report->is_overdue = in->is_overdue;
    report->is_full = in->is_full && page == 0;
    report->number = (uint16_t)(in->report_number + 1);
    report->syndrome = syndrome_of(in);
    report->qpn = in->csa->qp->attr.dest_qpn;
    report->cumulative = in->cumulative;
    report->page = page;
    uint32_t first = page * ALB_CSA_PAGE_BITS, span = span_of(in);
    uint32_t bits = span > first ? ALB_MIN(span - first, ALB_CSA_PAGE_BITS) : 0;
    report->word_count = ALB_BITMAP_WORDS(bits);
    for (uint32_t i = 0; i < report->word_count; i++)
        report->held[i] = held_from(in, alb_psn_add(in->cumulative, (int32_t)(first + 64 * i)));
    if (bits % 64)
        report->held[bits / 64] &= (1ull << bits % 64) - 1;
}

void alb_stream_in_reported(struct alb_stream_in *in)
{
    in->report_number++;
    in->owes_nak = in->is_overdue = in->is_full = false;
    alb_list_remove(&in->report_link);
}

// ---- holes ----------------------------------------------------------------------------------------------------------

void alb_assoc_report_losses(struct alb_assoc_live *live)
{
    ALB_LIST_FOR_EACH (&live->open, node) {
        struct alb_stream_in *in = ALB_LIST_ENTRY(node, struct alb_stream_in, open_link);
        alb_stream_in_owe_report(in);
        in->asked_at = live->engine->now;
        in->asked_psn = in->cumulative;
        in->has_asked = true;
    }
}

void alb_assoc_arm_settle(struct alb_assoc_live *live)
{
    alb_time at = ALB_TIME_NEVER;
    const struct alb_path_set *gaps = &live->paths_in_gaps;
    for (uint32_t i = alb_path_set_next(gaps, 0); i < ALB_PATHS_MAX; i = alb_path_set_next(gaps, i + 1))
        at = ALB_MIN(at, alb_path_in_deadline(&live->paths_in[i]));
    const struct alb_timer *timer = &live->settle_timer.timer;
    if (alb_timer_is_armed(timer) ? at != timer->at : at != ALB_TIME_NEVER)
        alb_wheel_arm(&live->engine->wheel, &live->settle_timer.timer, at);
}

void alb_assoc_on_settle(struct alb_deadline *deadline, alb_time now)
{
    struct alb_assoc_live *live = ALB_CONTAINER_OF(deadline, struct alb_assoc_live, settle_timer);
    uint32_t lost = 0;
    const struct alb_path_set *gaps = &live->paths_in_gaps;
    for (uint32_t i = alb_path_set_next(gaps, 0); i < ALB_PATHS_MAX; i = alb_path_set_next(gaps, i + 1)) {
        lost += alb_path_in_settle(&live->paths_in[i], now);
        alb_assoc_note_path_in(live, i);
    }
    if (lost > 0 && live->engine->csa->loss.ops->reports_settled)
        alb_assoc_report_losses(live);
    alb_assoc_arm_settle(live);
}

// ---- the tail -------------------------------------------------------------------------------------------------------

// The end has come, and what is missing before it has been asked for.
static bool has_asked_for_all(const struct alb_stream_in *in)
{
    return in->highest == in->end && in->has_asked && in->asked_psn == in->cumulative;
}

// How long nothing may come before the rest is overdue. Rate and round-trip time are known from what came: segments
// were gap_ns apart, and the peer says its round-trip time in every packet.
static alb_time patience_ns(const struct alb_stream_in *in)
{
    const struct alb_csa *csa = in->csa;
    const struct alb_engine *engine = csa->qp->engine;
    alb_time interval_ns = engine->csa->loss.interval_ns;
    if (interval_ns)
        return interval_ns;
    alb_time margin_ns = ALB_MAX(alb_assoc_rtt_ns(csa->assoc) / 4, engine->config.csa_margin_min_ns);
    if (in->asks == 0 && !has_asked_for_all(in)) {
        bool is_pressing = !in->is_response && alb_expect_is_pressing(csa);
        return (is_pressing ? GAPS_IF_PRESSING : GAPS_OF_PATIENCE) * (alb_time)in->gap_ns + margin_ns;
    }
    alb_time answer_ns = alb_assoc_rtt_ns(csa->assoc) + margin_ns; // what was asked for last must have had time to come
    return answer_ns << (in->asks ? in->asks - 1 : 0);
}

// The timer is left where it is, and looks again when it fires; but one that was armed before the round-trip time was
// known would let the first tail wait for very long.
static void arm_tail(struct alb_stream_in *in, alb_time now)
{
    const struct alb_timer *timer = &in->tail_timer.timer;
    alb_time wait_ns = patience_ns(in);
    if (!alb_timer_is_armed(timer) || timer->at > now + STALE_TIMES * wait_ns)
        alb_wheel_arm(&in->csa->qp->engine->wheel, &in->tail_timer.timer, now + wait_ns);
}

void alb_stream_in_watch(struct alb_stream_in *in, alb_time now)
{
    struct alb_assoc_live *live = in->csa->assoc->live;
    const struct alb_csa_loss_ops *loss = in->csa->qp->engine->csa->loss.ops;
    if (!alb_stream_in_misses(in) || in->waits_rnr) {
        alb_list_remove(&in->open_link);
        return; // the timer finds nothing to do
    }
    if (!alb_list_is_linked(&in->open_link) && live && loss->reports_settled)
        alb_list_push_back(&live->open, &in->open_link);
    if (loss->watches_tail)
        arm_tail(in, now);
}

void alb_stream_in_on_tail(struct alb_deadline *deadline, alb_time now)
{
    struct alb_stream_in *in = ALB_CONTAINER_OF(deadline, struct alb_stream_in, tail_timer);
    struct alb_wheel *wheel = &in->csa->qp->engine->wheel;
    if (!alb_stream_in_misses(in) || in->waits_rnr)
        return;
    bool is_asked = in->asks > 0 || has_asked_for_all(in);
    alb_time due = (is_asked ? in->asked_at : ALB_MAX(in->came_at, in->asked_at)) + patience_ns(in);
    if (due > now) {
        alb_wheel_arm(wheel, &deadline->timer, due);
        return;
    }
    if (in->asks >= ASKS_MAX) {
        alb_list_remove(&in->open_link); // the association may fall asleep
        return;
    }
    in->asks++;
    in->asked_at = now;
    alb_qp_count(in->csa->qp, ALB_STAT_tail_asks, 1);
    in->is_overdue = true;
    alb_stream_in_owe_report(in);
    alb_wheel_arm(wheel, &deadline->timer, now + patience_ns(in));
}
