// SPDX-License-Identifier: BSD-2-Clause
// The sending half of a stream: a ring of records of what has left and is not acknowledged. What reports do to them:
// csa_judge.c.
#include "engine/impl.h"

#define REPORT_LATE_NS 50000000 // no report is later than that, nor any other packet (csa_path_in.c)

enum {
    GROWN_MIN = 64, // records of the first ring that is taken from the pool
};

void alb_stream_out_init(struct alb_stream_out *out, struct alb_csa *csa, bool is_response)
{
    out->csa = csa;
    out->is_response = is_response;
    out->capacity = ALB_STREAM_OUT_OWN;
    out->sent = out->own;
    alb_list_init(&out->link);
    alb_deadline_init(&out->probe_timer, alb_stream_out_on_probe);
}

static struct alb_assoc_live *live_of(const struct alb_stream_out *out)
{
    return out->csa->assoc->live;
}

void alb_stream_out_give_back(struct alb_stream_out *out)
{
    if (out->sent != out->own)
        alb_buddy_put(&out->csa->qp->engine->csa->pool, out->sent, out->capacity * sizeof(*out->sent));
    out->sent = out->own;
    out->capacity = ALB_STREAM_OUT_OWN;
}

static uint32_t charged_bytes(const struct alb_sent *sent)
{
    return sent->is_uncharged ? 0 : sent->bytes;
}

void alb_stream_out_stop(struct alb_stream_out *out)
{
    uint32_t bytes = out->inflight_bytes;
    alb_line_leave(out);
    alb_wheel_disarm(&out->csa->qp->engine->wheel, &out->probe_timer.timer);
    if (out->csa->assoc)
        for (alb_psn psn = out->una; psn != out->next; psn = alb_psn_next(psn)) {
            const struct alb_sent *sent = alb_stream_out_at(out, psn);
            if (sent->state == ALB_SENT_FLYING && charged_bytes(sent) > 0) // else the association may sleep
                alb_path_done(live_of(out)->paths, sent->path, sent->bytes);
        }
    out->una = out->next;
    out->lost_count = out->inflight_bytes = out->probes = 0;
    out->probe_is_due = out->has_probe_psn = false;
    alb_stream_out_give_back(out);
    if (bytes)
        alb_assoc_release(live_of(out), bytes);
}

void alb_stream_out_begin(struct alb_stream_out *out, alb_psn first)
{
    out->una = out->next = out->lost_from = first;
    out->turn_began = 0;
    out->has_report = false;
    out->room = UINT16_MAX;
}

// Twice the records.
static bool grow(struct alb_stream_out *out)
{
    struct alb_engine *engine = out->csa->qp->engine;
    uint32_t capacity = ALB_MAX(2 * out->capacity, (uint32_t)GROWN_MIN);
    if (out->capacity >= engine->config.csa_window_segments)
        return false;
    struct alb_sent *sent = alb_buddy_get(&engine->csa->pool, capacity * sizeof(*sent));
    if (!sent)
        return false;
    for (alb_psn psn = out->una; psn != out->next; psn = alb_psn_next(psn))
        sent[psn & (capacity - 1)] = *alb_stream_out_at(out, psn);
    alb_stream_out_give_back(out);
    out->sent = sent;
    out->capacity = capacity;
    return true;
}

static bool has_room_at(const struct alb_stream_out *out, uint32_t distance)
{
    return distance < out->room || out->room == UINT16_MAX;
}

bool alb_stream_out_has_room(struct alb_stream_out *out)
{
    uint32_t count = alb_stream_out_count(out);
    return has_room_at(out, count) && (count < out->capacity || grow(out));
}

bool alb_stream_out_take_probe(struct alb_stream_out *out, alb_psn *psn)
{
    *psn = out->probe_psn;
    out->has_probe_psn = out->has_probe_psn && alb_psn_is_within(*psn, out->una, alb_stream_out_count(out)) &&
                         alb_stream_out_at(out, *psn)->state == ALB_SENT_LOST;
    return out->has_probe_psn;
}

bool alb_stream_out_next_lost(struct alb_stream_out *out, alb_psn *psn)
{
    if (out->lost_count == 0)
        return false;
    if (alb_psn_is_before(out->lost_from, out->una))
        out->lost_from = out->una;
    while (alb_stream_out_at(out, out->lost_from)->state != ALB_SENT_LOST)
        out->lost_from = alb_psn_next(out->lost_from);
    *psn = out->lost_from;
    return has_room_at(out, (uint32_t)alb_psn_diff(*psn, out->una));
}

void alb_stream_out_sent(struct alb_stream_out *out, alb_psn psn, uint32_t bytes, uint16_t path, alb_psn sequence,
                         alb_time now)
{
    struct alb_sent *sent = alb_stream_out_at(out, psn);
    bool is_new = psn == out->next;
    if (is_new)
        out->next = alb_psn_next(psn);
    else
        out->lost_count--;
    *sent = (struct alb_sent){
        .at_64ns = (uint32_t)(now >> 6),
        .sequence = sequence,
        .path = path,
        .bytes = (uint16_t)ALB_MIN(bytes, (uint32_t)UINT16_MAX),
        .state = ALB_SENT_FLYING,
        .times = (uint8_t)(is_new ? 1 : ALB_MIN(sent->times + 1, UINT8_MAX)),
    };
    out->inflight_bytes += sent->bytes;
    alb_assoc_charge(live_of(out), sent->bytes);
    out->sent_at = now;
    alb_stream_out_watch(out, now);
}

void alb_stream_out_wake(struct alb_stream_out *out)
{
    struct alb_csa *csa = out->csa;
    bool probes = out->probe_is_due || out->has_probe_psn;
    if (out->place != ALB_LINE_NONE && !probes) {
        if (out->lost_count == 0)
            return;
        if (out->place == ALB_LINE_WAITING)
            alb_line_hasten(out);
        alb_csa_turn_hurry(live_of(out), csa->qp->engine->now);
        return;
    }
    if (!csa->assoc)
        return;
    struct alb_assoc_live *live = alb_assoc_wake(csa->qp->engine, csa->assoc);
    alb_list_remove(&out->link);
    if (!live) {
        alb_assoc_starve(csa->qp->engine, out);
        return;
    }
    alb_line_join(out, probes || out->lost_count > 0);
    alb_csa_turn_hurry(live, csa->qp->engine->now);
    alb_scheduler_wake(&csa->qp->engine->scheduler, &live->source);
}

// ---- what has arrived, and what is lost -----------------------------------------------------------------------------

// Takes a segment out of flight. Returns the bytes that are in flight no more.
static uint32_t land(struct alb_stream_out *out, struct alb_sent *sent)
{
    if (sent->state == ALB_SENT_LOST)
        out->lost_count--;
    if (sent->state != ALB_SENT_FLYING)
        return 0;
    uint32_t bytes = charged_bytes(sent);
    out->inflight_bytes -= bytes;
    if (bytes > 0) // else the association may sleep
        alb_path_done(live_of(out)->paths, sent->path, bytes);
    return bytes;
}

uint32_t alb_stream_out_arrived(struct alb_stream_out *out, struct alb_sent *sent)
{
    struct alb_assoc_live *live = out->csa->assoc ? live_of(out) : NULL;
    if (alb_unlikely(live && live->mtu_search) && sent->is_full && sent->state == ALB_SENT_FLYING)
        alb_mtu_on_full(live, sent->at_64ns);
    if (alb_unlikely(sent->is_uncharged) && live && sent->state == ALB_SENT_FLYING)
        live->late_bytes += sent->bytes;
    return land(out, sent);
}

uint32_t alb_stream_out_take_cumulative(struct alb_stream_out *out, alb_psn cumulative)
{
    uint32_t bytes = 0, taken = (uint32_t)alb_psn_diff(cumulative, out->una);
    out->room = (uint16_t)ALB_MIN(out->room + taken, (uint32_t)UINT16_MAX);
    while (out->una != cumulative) {
        bytes += alb_stream_out_arrived(out, alb_stream_out_at(out, out->una));
        out->una = alb_psn_next(out->una);
    }
    return bytes;
}

void alb_stream_out_acked(struct alb_stream_out *out, alb_psn psn, alb_time now)
{
    struct alb_assoc_live *live = live_of(out);
    if (psn != out->una)
        out->probes = 0;
    uint32_t landed = alb_stream_out_take_cumulative(out, psn);
    if (live && (landed || live->late_bytes)) // else the association sleeps, and forgets its window
        alb_csa_note_landed(live, landed, now);
    if (landed)
        alb_assoc_release(live, landed);
    if (out->una == out->next)
        alb_stream_out_give_back(out);
}

// To be sent again.
static uint32_t lose(struct alb_stream_out *out, alb_psn psn)
{
    struct alb_sent *sent = alb_stream_out_at(out, psn);
    uint32_t bytes = land(out, sent);
    sent->state = ALB_SENT_LOST;
    if (out->lost_count++ == 0 || alb_psn_is_before(psn, out->lost_from))
        out->lost_from = psn;
    return bytes;
}

uint32_t alb_stream_out_mark_lost(struct alb_stream_out *out, alb_psn psn)
{
    const struct alb_sent *sent = alb_stream_out_at(out, psn);
    if (sent->state != ALB_SENT_FLYING)
        return 0;
    if (alb_unlikely(sent->times == ALB_MTU_SUSPICIOUS_TIMES))
        out->wide_since = out->csa->qp->engine->now;
    if (alb_unlikely(sent->times >= ALB_MTU_SUSPICIOUS_TIMES))
        alb_mtu_suspect(live_of(out), out->csa->qp->engine->now);
    return lose(out, psn);
}

bool alb_stream_out_trimmed(struct alb_stream_out *out, alb_psn psn, uint8_t path, alb_psn sequence, uint32_t *bytes)
{
    struct alb_sent *sent = alb_stream_out_at(out, psn);
    if (!alb_psn_is_within(psn, out->una, alb_stream_out_count(out)) || sent->state != ALB_SENT_FLYING ||
        sent->path != path || sent->sequence != sequence)
        return false;
    *bytes += lose(out, psn);
    sent->times -= sent->times > 0;
    return true;
}

void alb_stream_out_lose_path(struct alb_stream_out *out, uint16_t path, alb_psn from, alb_time now)
{
    struct alb_engine *engine = out->csa->qp->engine;
    struct alb_assoc_live *live = live_of(out);
    uint32_t inflight_bytes = (uint32_t)live->inflight_bytes, bytes = 0, lost_before = out->lost_count;
    for (alb_psn psn = out->una; psn != out->next; psn = alb_psn_next(psn)) {
        const struct alb_sent *sent = alb_stream_out_at(out, psn);
        if (sent->state == ALB_SENT_FLYING && sent->path == path && !alb_psn_is_before(sent->sequence, from) &&
            alb_path_is_settled(live->paths, path, sent->sequence))
            bytes += alb_stream_out_mark_lost(out, psn);
    }
    if (out->lost_count == lost_before)
        return;
    alb_congestion_on_loss(engine->congestion, &live->congestion, inflight_bytes, bytes, ALB_LOSS_NAK, now);
    alb_assoc_release(live, bytes);
    alb_stream_out_wake(out);
}

void alb_stream_out_uncharge(struct alb_stream_out *out)
{
    uint32_t bytes = out->inflight_bytes;
    for (alb_psn psn = out->una; psn != out->next; psn = alb_psn_next(psn)) {
        struct alb_sent *sent = alb_stream_out_at(out, psn);
        if (sent->state != ALB_SENT_FLYING || sent->is_uncharged)
            continue;
        alb_path_done(live_of(out)->paths, sent->path, sent->bytes);
        sent->is_uncharged = true;
    }
    out->inflight_bytes = 0;
    if (bytes)
        alb_assoc_release(live_of(out), bytes);
}

void alb_stream_out_leave(struct alb_stream_out *out, alb_psn psn)
{
    struct alb_sent *sent = alb_stream_out_at(out, psn);
    alb_assert(sent->state == ALB_SENT_LOST);
    out->lost_count--;
    sent->state = ALB_SENT_FLYING;
    sent->bytes = 0;
}

bool alb_stream_out_is_surely_missing(const struct alb_stream_out *out, alb_psn psn, alb_time now)
{
    const struct alb_sent *sent = alb_stream_out_at(out, psn);
    alb_time age_ns = (alb_time)((uint32_t)(now >> 6) - sent->at_64ns) << 6;
    return out->reported_at + age_ns > now + alb_assoc_rtt_ns(out->csa->assoc) + REPORT_LATE_NS;
}

bool alb_stream_out_is_wide(const struct alb_stream_out *out)
{
    const struct alb_sent *oldest = alb_stream_out_at(out, out->una);
    return out->una != out->next && oldest->is_wide && oldest->state != ALB_SENT_HELD;
}

bool alb_stream_out_is_stuck(const struct alb_stream_out *out, alb_time now)
{
    return alb_stream_out_is_wide(out) && alb_stream_out_at(out, out->una)->times > ALB_MTU_HOPELESS_TIMES &&
           now > out->wide_since + ALB_MTU_HOPELESS_NS;
}

bool alb_stream_out_is_at_end(const struct alb_stream_out *out)
{
    const struct alb_csa *csa = out->csa;
    if (out->is_response)
        return out->next == csa->answer_psn;
    return out->next == csa->started_psn &&
           csa->started == atomic_load_explicit(&csa->qp->sq.tail, memory_order_acquire);
}
