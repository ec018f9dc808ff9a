// SPDX-License-Identifier: BSD-2-Clause
// The receiving half of a stream. Segments of the message that is next are placed as they come, its last one last;
// segments of later messages wait, so that memory changes in the order of messages (docs/DESIGN.md, decision 5). Where
// the program has freed us from that their bytes are placed as they come, and only messages wait. What is held is never
// given up.
#include "engine/csa_message.h"
#include "engine/impl.h"

enum {
    GROWN_MIN = 256, // bits of the first bitmap that is taken from the pool
};

// ---- what is held ---------------------------------------------------------------------------------------------------

static bool is_held(const struct alb_stream_in *in, alb_psn psn)
{
    return alb_bitmap_test(in->held, psn & (in->capacity - 1));
}

static void give_back(struct alb_stream_in *in)
{
    if (in->held != in->own)
        alb_buddy_put(&in->csa->qp->engine->csa->pool, in->held, alb_early_bitmap_bytes(in->capacity));
    memset(in->own, 0, sizeof(in->own));
    in->held = in->own;
    in->capacity = ALB_STREAM_IN_OWN;
}

// Room for bits cumulative ... cumulative + count - 1.
static bool make_room(struct alb_stream_in *in, uint32_t count)
{
    struct alb_engine *engine = in->csa->qp->engine;
    if (alb_likely(count <= in->capacity))
        return true;
    uint32_t capacity = ALB_MAX(2 * in->capacity, (uint32_t)GROWN_MIN);
    while (capacity < count)
        capacity *= 2;
    uint64_t *held = alb_buddy_get(&engine->csa->pool, alb_early_bitmap_bytes(capacity));
    if (!held)
        return false;
    memset(held, 0, alb_early_bitmap_bytes(capacity));
    for (alb_psn psn = in->cumulative; psn != in->highest; psn = alb_psn_next(psn))
        if (is_held(in, psn))
            alb_bitmap_set(held, psn & (capacity - 1));
    give_back(in);
    in->held = held;
    in->capacity = capacity;
    alb_early_index(in);
    return true;
}

// ---- life -----------------------------------------------------------------------------------------------------------

void alb_stream_in_init(struct alb_stream_in *in, struct alb_csa *csa, bool is_response,
                        const struct alb_stream_in_ops *ops)
{
    in->csa = csa;
    in->ops = ops;
    in->is_response = is_response;
    in->held = in->own;
    in->capacity = ALB_STREAM_IN_OWN;
    alb_list_init(&in->early);
    alb_list_init(&in->report_link);
    alb_list_init(&in->open_link);
    alb_deadline_init(&in->tail_timer, alb_stream_in_on_tail);
}

void alb_stream_in_begin(struct alb_stream_in *in, alb_psn first)
{
    in->cumulative = in->end = in->highest = in->past = first;
    in->syndrome = ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT);
    in->report_number = 0;
    in->message = (struct alb_credit_message){0};
}

void alb_stream_in_stop(struct alb_stream_in *in)
{
    while (!alb_list_is_empty(&in->early))
        alb_early_put_first(in);
    give_back(in);
    in->is_open = in->waits_rnr = in->has_dropped = in->owes_nak = in->is_full = false;
    in->end = in->highest = in->cumulative;
    alb_list_remove(&in->open_link);
    alb_wheel_disarm(&in->csa->qp->engine->wheel, &in->tail_timer.timer);
}

// ---- messages -------------------------------------------------------------------------------------------------------

uint32_t alb_csa_message_packets(const struct alb_csa_segment *segment)
{
    uint64_t carried = (uint64_t)segment->index * segment->payload_bytes + segment->payload_bytes;
    if (segment->op == ALB_CSA_READ) // what is asked for does not come this way
        return segment->index == 0 && segment->flags & ALB_CSA_LAST ? 1 : 0;
    if (segment->flags & ALB_CSA_LAST)
        return segment->index < ALB_CSA_MESSAGE_PACKETS_MAX ? segment->index + 1 : 0;
    if (segment->payload_bytes == 0 || carried >= segment->total_bytes)
        return 0;
    uint64_t packets = ((uint64_t)segment->total_bytes + segment->payload_bytes - 1) / segment->payload_bytes;
    return packets <= ALB_CSA_MESSAGE_PACKETS_MAX ? (uint32_t)packets : 0;
}

static uint32_t offset_of(const struct alb_csa_segment *segment)
{
    return segment->op == ALB_CSA_READ ? 0 : alb_csa_segment_offset(segment);
}

enum taken {
    TAKEN,
    NOT_YET, // it has to wait for its turn, or for a receive
    REFUSED, // the queue pair is in error, and the stream has been stopped
};

static enum taken refuse(struct alb_stream_in *in, enum alb_outcome outcome, alb_psn psn, alb_time now)
{
    in->refused_as = (uint8_t)alb_inbound_refusal(outcome)->drop;
    in->ops->refuse(in->csa, outcome, psn, now);
    return REFUSED;
}

// The second of the two, the post of a receive or this, sees the other.
void alb_csa_want_receive(struct alb_qp *qp)
{
    if (atomic_exchange_explicit(&qp->wants_receive, true, memory_order_seq_cst))
        return;
    if (alb_recv_queue_count(&qp->rq) > 0)
        alb_engine_bell_ring(qp);
}

static uint32_t packet_of(const struct alb_stream_in *in)
{
    return in->csa->qp->engine->csa->packet_number;
}

// To see whether it still waits may be to look through all that it is about, and a packet has room for thousands of
// frames that ask.
static bool was_tried(const struct alb_stream_in *in, const struct alb_csa_segment *segment)
{
    return in->waits_rnr && in->tried_in == packet_of(in) && in->tried_psn == segment->psn;
}

// The peer gets a report when a wait begins, and whenever it sends something; trying again is not reported.
static enum taken wait_for_receive(struct alb_stream_in *in, alb_psn psn)
{
    struct alb_qp *qp = in->csa->qp;
    in->tried_in = packet_of(in);
    in->tried_psn = psn;
    if (!in->is_response)
        alb_csa_want_receive(qp);
    if (in->waits_rnr)
        return NOT_YET;
    in->waits_rnr = true;
    in->syndrome = ALB_AETH_SYNDROME_RNR(qp->attr.min_rnr_timer);
    alb_stream_in_owe_report(in);
    return NOT_YET;
}

// Once a segment has been taken whole: a step of it that succeeds says nothing, since the next one may have to wait.
static void end_wait(struct alb_stream_in *in)
{
    if (alb_likely(!in->waits_rnr))
        return;
    atomic_store_explicit(&in->csa->qp->wants_receive, false, memory_order_relaxed);
    in->waits_rnr = false;
    in->syndrome = ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT);
}

static enum taken outcome_to_taken(struct alb_stream_in *in, enum alb_outcome outcome, alb_psn psn, alb_time now)
{
    if (outcome == ALB_OUTCOME_OK)
        return TAKEN;
    return outcome == ALB_OUTCOME_RNR ? wait_for_receive(in, psn) : refuse(in, outcome, psn, now);
}

static void open_message(struct alb_stream_in *in, const struct alb_csa_segment *segment, alb_psn first,
                         uint32_t packets)
{
    in->is_open = true;
    in->first = first;
    in->past = alb_psn_add(first, (int32_t)packets);
    in->total_bytes = segment->total_bytes;
    in->segment_bytes = 0;
    in->op = segment->op;
    in->placed = 0;
}

static enum taken begin_message(struct alb_stream_in *in, const struct alb_csa_segment *segment, alb_time now)
{
    return outcome_to_taken(in, in->ops->begin(in->csa, segment, now), segment->psn, now);
}

// All of it is placed.
static enum taken end_message(struct alb_stream_in *in, const struct alb_csa_segment *last, alb_time now)
{
    in->is_open = false;
    in->refused_as = ALB_DROP_WRONG_QP_STATE; // a completion may find its queue full: then all of this is stopped
    enum taken taken = outcome_to_taken(in, in->ops->end(in->csa, last, now), last->psn, now);
    return alb_qp_state_of(in->csa->qp) == ALB_QPS_ERR ? REFUSED : taken;
}

// The segment says of its message what those before it said.
static bool fits_message(const struct alb_stream_in *in, const struct alb_csa_segment *segment)
{
    bool is_last = segment->flags & ALB_CSA_LAST;
    alb_psn past = alb_psn_add(in->first, (int32_t)alb_csa_message_packets(segment));
    if (segment->op != in->op || segment->total_bytes != in->total_bytes || past != in->past)
        return false;
    if (in->segment_bytes == 0 || segment->op == ALB_CSA_READ)
        return true;
    return is_last ? segment->index * in->segment_bytes == segment->total_bytes - segment->payload_bytes
                   : segment->payload_bytes == in->segment_bytes;
}

// It would reach back into a message that is over, or begin within the one that is open.
static bool contradicts_others(const struct alb_stream_in *in, alb_psn first)
{
    if (!in->is_open)
        return alb_psn_is_before(first, in->cumulative);
    return first != in->first && alb_psn_is_before(first, in->past);
}

// Something before it could not be placed, since a transaction has the memory: what comes behind does not overtake it.
static bool is_behind_waiting(const struct alb_stream_in *in, const struct alb_csa_segment *segment)
{
    if (alb_likely(!in->waits_rnr) || alb_list_is_empty(&in->early))
        return false;
    return alb_psn_is_before(alb_early_first(&in->early)->segment.psn, segment->psn);
}

// is_placed: its bytes have been placed before their turn, and are not touched again.
static enum taken place(struct alb_stream_in *in, const struct alb_csa_segment *segment, bool is_placed, alb_time now)
{
    struct alb_csa_segment rest;
    uint32_t offset = offset_of(segment);
    if (is_placed) {
        rest = *segment;
        rest.payload_bytes = 0;
        segment = &rest;
    }
    return outcome_to_taken(in, in->ops->place(in->csa, segment, offset, now), segment->psn, now);
}

static bool place_early(struct alb_stream_in *in, const struct alb_csa_segment *segment)
{
    return in->ops->place_early(in->csa, segment, offset_of(segment));
}

static bool keep(struct alb_stream_in *in, const struct alb_csa_segment *segment)
{
    bool may_be_placed = in->ops->place_early && segment->payload_bytes > 0;
    return alb_early_keep(in, segment, may_be_placed ? place_early : NULL);
}

static enum taken try_to_take(struct alb_stream_in *in, const struct alb_csa_segment *segment, bool is_placed,
                              alb_time now)
{
    alb_psn first = alb_psn_add(segment->psn, -(int32_t)segment->index);
    bool is_last = segment->flags & ALB_CSA_LAST;
    if (contradicts_others(in, first))
        return refuse(in, ALB_OUTCOME_INVALID_REQUEST, segment->psn, now);
    if (first != (in->is_open ? in->first : in->cumulative) || is_behind_waiting(in, segment) || was_tried(in, segment))
        return NOT_YET;
    if (!in->is_open) {
        if (is_last && segment->index > 0) // more of it must come before, and tells the same
            return NOT_YET;
        enum taken taken = begin_message(in, segment, now);
        if (taken != TAKEN)
            return taken;
        open_message(in, segment, first, alb_csa_message_packets(segment));
    }
    if (!fits_message(in, segment))
        return refuse(in, ALB_OUTCOME_INVALID_REQUEST, segment->psn, now);
    if (is_last && in->placed < segment->index)
        return NOT_YET;
    enum taken taken = place(in, segment, is_placed, now);
    if (taken != TAKEN)
        return taken;
    in->placed++;
    if (!is_last) {
        in->segment_bytes = segment->payload_bytes;
        return TAKEN;
    }
    return end_message(in, segment, now);
}

// Takes a segment if it is its turn.
static enum taken take(struct alb_stream_in *in, const struct alb_csa_segment *segment, bool is_placed, alb_time now)
{
    enum taken taken = try_to_take(in, segment, is_placed, now);
    if (taken == TAKEN)
        end_wait(in);
    return taken;
}

// ---- progress -------------------------------------------------------------------------------------------------------

// Everything before the open message's last segment that is held and does not wait is placed; so is the whole of what
// has ended.
static void move_cumulative(struct alb_stream_in *in)
{
    alb_psn limit = in->is_open ? alb_psn_add(in->past, -1) : in->past;
    if (!alb_list_is_empty(&in->early)) {
        alb_psn waiting = alb_early_first(&in->early)->segment.psn;
        if (alb_psn_is_before(waiting, limit))
            limit = waiting;
    }
    while (in->cumulative != limit && in->cumulative != in->highest && is_held(in, in->cumulative)) {
        alb_bitmap_clear(in->held, in->cumulative & (in->capacity - 1));
        in->cumulative = alb_psn_next(in->cumulative);
    }
}

// Takes what has waited, as far as its turn has come.
static void take_early(struct alb_stream_in *in, alb_time now)
{
    while (!alb_list_is_empty(&in->early)) {
        struct alb_early *early = alb_early_first(&in->early);
        enum taken taken = take(in, &early->segment, early->is_placed, now);
        if (taken != TAKEN) // REFUSED: it was forgotten with all the others
            return;
        alb_early_put_first(in);
        move_cumulative(in);
    }
    if (alb_unlikely(in->held != in->own) && !alb_stream_in_misses(in) && alb_list_is_empty(&in->early))
        give_back(in);
}

// The time between arrivals counts while something is known to be on its way.
static void note_arrival(struct alb_stream_in *in, alb_time now)
{
    if (alb_stream_in_misses(in) && now > in->came_at) {
        uint64_t gap_ns = ALB_MIN(now - in->came_at, (alb_time)UINT32_MAX / 2);
        in->gap_ns = (uint32_t)((7ull * in->gap_ns + gap_ns) / 8);
    }
    in->came_at = now;
    if (in->asks > 0) // patience begins anew
        alb_wheel_disarm(&in->csa->qp->engine->wheel, &in->tail_timer.timer);
    in->asks = 0;
}

// Notes a new segment that was taken, or keeps it until its turn.
static enum alb_drop hold(struct alb_stream_in *in, const struct alb_csa_segment *segment, enum taken taken,
                          alb_time now)
{
    if (taken == REFUSED)
        return (enum alb_drop)in->refused_as;
    if (taken == NOT_YET && !keep(in, segment)) {
        in->is_full = true;
        return in->waits_rnr ? ALB_DROP_NO_RECEIVE : ALB_DROP_NO_RESOURCES;
    }
    alb_bitmap_set(in->held, segment->psn & (in->capacity - 1));
    alb_psn past = alb_psn_next(segment->psn);
    if (alb_psn_is_after(past, in->highest))
        in->highest = past;
    if (!in->is_response)
        alb_expect_note(in->csa, segment, now);
    if (taken == TAKEN) {
        move_cumulative(in);
        take_early(in, now);
    }
    return ALB_DROP_NONE;
}

// What the segment says of its message, less what has come of it, is still to come.
static void note_rest(struct alb_stream_in *in, const struct alb_csa_segment *segment, alb_time now)
{
    const struct alb_csa *csa = in->csa;
    if (alb_likely(!csa->qp->engine->csa->credit.ops->prefers_short) || !csa->assoc || !csa->assoc->live)
        return;
    uint64_t segment_bytes = in->segment_bytes ? in->segment_bytes : segment->payload_bytes;
    uint64_t bytes = (uint64_t)alb_psn_diff(in->end, in->cumulative) * segment_bytes;
    if (in->is_open)
        bytes = in->total_bytes - ALB_MIN(in->placed * segment_bytes, (uint64_t)in->total_bytes);
    alb_assoc_note_rest(csa->assoc->live, &in->message, bytes, now);
}

// Says so once, until what is next has come.
static enum alb_drop drop_early(struct alb_stream_in *in)
{
    if (!in->has_dropped) {
        in->has_dropped = in->owes_nak = true;
        alb_qp_count(in->csa->qp, ALB_STAT_sent_seq_err, 1);
        alb_stream_in_owe_report(in);
    }
    return ALB_DROP_OUT_OF_SEQUENCE;
}

// The whole of the message that is next, where nothing is missing, waits or was asked for: most segments are this, and
// nothing of what follows for others needs to be found out for them.
static bool is_expected(const struct alb_stream_in *in, const struct alb_csa_segment *segment)
{
    const struct alb_csa *csa = in->csa;
    return segment->psn == in->cumulative && in->end == in->cumulative && in->highest == in->cumulative &&
           segment->index == 0 && segment->flags & ALB_CSA_LAST && !in->is_open && !in->waits_rnr && in->asks == 0 &&
           in->held == in->own && alb_list_is_empty(&in->early) && !csa->expect &&
           !csa->qp->engine->csa->credit.ops->prefers_short;
}

static enum taken take_message(struct alb_stream_in *in, const struct alb_csa_segment *segment, alb_time now)
{
    enum taken taken = begin_message(in, segment, now);
    if (alb_unlikely(taken != TAKEN))
        return taken;
    open_message(in, segment, segment->psn, 1);
    taken = outcome_to_taken(in, in->ops->place(in->csa, segment, 0, now), segment->psn, now);
    if (alb_unlikely(taken != TAKEN))
        return taken;
    in->placed = 1;
    return end_message(in, segment, now);
}

static enum alb_drop take_expected(struct alb_stream_in *in, const struct alb_csa_segment *segment, alb_time now)
{
    alb_psn past = alb_psn_next(segment->psn);
    if (segment->flags & ALB_CSA_REPORT_NOW)
        alb_stream_in_owe_report(in);
    if (segment->flags & ALB_CSA_PROBING)
        in->is_overdue = true;
    in->came_at = now;
    in->end = past;
    in->has_dropped = false;
    enum taken taken = take_message(in, segment, now);
    if (alb_unlikely(taken != TAKEN))
        return hold(in, segment, taken, now);
    in->cumulative = in->highest = past;
    return ALB_DROP_NONE;
}

// The peer has, or will have, segments up to next - 1. What a message's own numbers say of its end is bounded by the
// window of the peer, but for a message so long that the rest has not been sent yet.
static void hear_end(struct alb_stream_in *in, alb_psn next)
{
    int32_t distance = alb_psn_diff(next, in->cumulative);
    if (distance > 0 && distance <= ALB_CSA_MESSAGE_PACKETS_MAX && alb_psn_is_after(next, in->end))
        in->end = next;
}

enum alb_drop alb_stream_in_segment(struct alb_stream_in *in, const struct alb_csa_segment *segment, alb_time now)
{
    struct alb_qp *qp = in->csa->qp;
    const struct alb_csa_loss_ops *loss = qp->engine->csa->loss.ops;
    if (alb_likely(is_expected(in, segment)))
        return take_expected(in, segment, now);
    if (in->waits_rnr) {
        alb_stream_in_owe_report(in);
        take_early(in, now);
        if (alb_qp_state_of(qp) == ALB_QPS_ERR)
            return ALB_DROP_WRONG_QP_STATE;
    }
    int32_t distance = alb_psn_diff(segment->psn, in->cumulative);
    uint32_t packets = alb_csa_message_packets(segment);
    if (packets == 0)
        return ALB_DROP_BAD_LENGTH;
    if (segment->flags & ALB_CSA_REPORT_NOW)
        alb_stream_in_owe_report(in);
    if (segment->flags & ALB_CSA_PROBING)
        in->is_overdue = true;
    if (distance < 0 || (distance < (int32_t)in->capacity && is_held(in, segment->psn))) {
        alb_qp_count(qp, ALB_STAT_duplicate_request, 1);
        alb_stream_in_owe_report(in);
        return ALB_DROP_DUPLICATE;
    }
    if ((uint32_t)distance >= qp->engine->config.csa_window_segments) {
        in->is_full = true;
        return ALB_DROP_OUT_OF_SEQUENCE;
    }
    note_arrival(in, now);
    hear_end(in, alb_psn_add(segment->psn, (int32_t)(packets - segment->index)));
    if (distance > 0 && segment->psn != in->highest) {
        alb_qp_count(qp, in == &in->csa->in_requests ? ALB_STAT_out_of_seq_request : ALB_STAT_implied_nak_seq_err, 1);
        if (loss->reports_holes)
            alb_stream_in_owe_report(in);
    }
    if (distance > 0 && !loss->takes_early)
        return drop_early(in);
    in->has_dropped = false;
    if (!make_room(in, (uint32_t)distance + 1)) {
        in->is_full = true;
        return ALB_DROP_NO_RESOURCES;
    }
    bool fills_hole = alb_psn_is_before(segment->psn, alb_psn_add(in->highest, -1));
    enum alb_drop drop = hold(in, segment, take(in, segment, false, now), now);
    if (drop == ALB_DROP_NONE)
        note_rest(in, segment, now);
    // A peer that asked with the last segment has a report of this hole, and waits.
    if (fills_hole && !alb_stream_in_misses(in) && alb_qp_state_of(qp) != ALB_QPS_ERR)
        alb_stream_in_owe_report(in);
    return drop;
}

void alb_stream_in_retry(struct alb_stream_in *in, alb_time now)
{
    in->tried_in = packet_of(in) - 1; // something has changed since
    take_early(in, now);
}

void alb_stream_in_probed(struct alb_stream_in *in, alb_psn next, alb_time now)
{
    hear_end(in, next);
    take_early(in, now);
    in->is_overdue = true;
    alb_stream_in_owe_report(in);
}
