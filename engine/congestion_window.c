// SPDX-License-Identifier: BSD-2-Clause
// Congestion policy "window": a window that follows round-trip times, as Swift does (Kumar et al., "Swift: delay is
// simple and effective for congestion control in the datacenter", SIGCOMM 2020), and the share of ECN marks, as DCTCP
// does (RFC 8257). It decides once a round trip: it grows while there is no sign of a queue, and else shrinks by as
// much as the sign is strong, by half at most.
//
// A lost packet is no sign of congestion: paths may lose packets for other reasons, and a transport that recovers well
// need not slow down for that. More than a tenth of the packets lost is one, and so is silence.
//
// Round-trip times on a busy machine jump, since threads wait for a processor. So it is the smallest one of a round
// that counts, in two rounds after each other. What reports have waited on their way back is no sign of a queue of ours
// and does not count (LEDBAT, RFC 6817, looks at the way there alone, too): else two hosts that send to each other
// would both hold back for the sum of two queues, and fill neither.
//
// Where the path itself is longer than the target was chosen for, the target follows its shortest round trip, which is
// looked for anew now and then, as BBR does.
#include "engine/congestion_target.h"

#define COUNT_MAX (1u << 30)
#define SPAN_NS   5000000000 // for which a shortest round trip is believed (BBRv2)

enum {
    ONE = 1 << 16,     // shares and pressures are in parts of this
    CUT_MAX = ONE / 2, // Swift's max_mdf

    GROWTH_BYTES = 512,   // a round
    CALM_ROUNDS = 16,     // so many, and growth itself grows (TIMELY's hyperactive increase)
    GROWTH_SHARE_MAX = 8, // but the window by no more than one part in so many
    APT_RTTS = 8,         // of them in a target at most, for windows to grow as round trips allow,
    GROWTH_FREE = 4096,   // or by this, while there is room
    EMPTY_ROUNDS = 2,     // that it grew, without a queue: then as a new flow would
    EMPTY_PART = 8,       // of the shortest round trip more is no queue yet

    DELAY_CUT_MIN = ONE / 8, // smaller ones would let unequal shares last

    MARKED_GAIN_LOG2 = 2, // DCTCP's g, for flows that last for few round trips

    LOST_EVIDENCE = 16,   // losses are judged by no fewer packets than this
    LOST_MEMORY = 128,    // nor by many more
    LOST_PART = ONE / 10, // more of them lost, and a quarter of the window goes
    LOST_CUT = ONE / 4,
    LOST_PART_HARD = ONE / 4, // half of it
    LOST_PART_HOLD = ONE / 8, // in one round: no time to grow

    LONG_START_PART = 8,     // of it ends slow start (RFC 9406: RttThresh),
    LONG_START_PACKETS = 16, // of which one at least must have been faster
    LONG_FULL_PART = 32,     // of it is a queue
    LONG_LOST = ONE / 32,    // packets lost beside a queue: it overflows (BBRv2: 2 %)
    LONG_CUT = ONE / 8,
    DRAIN_ROUNDS = 2,
    BURST_PART = 16,          // of a window may leave at once on a long path whose queue is short,
    PACED_PART = 64,          // of a round's packets that were lost say so,
    PACED_ROUNDS = UINT8_MAX, // for so long
    PACED_NS = 64,            // what its pace is counted in

    LONG_STEADY_PART = 128, // of a round trip is no change from one round to the next
    QUARTERED_NS = 1 << 16, // what is counted in since when the window is a quarter of what it was

    YOUNG_ROUNDS = 16, // with a full window, then the first drain
};

static void set_window(struct alb_congestion *congestion, uint64_t bytes)
{
    uint64_t bounded = ALB_MIN(bytes, (uint64_t)congestion->config->window_max_bytes);
    congestion->window_bytes = (uint32_t)ALB_MAX(bounded, (uint64_t)congestion->config->window_min_bytes);
}

static void begin_round(struct alb_delay_window *w, alb_time now)
{
    w->round_since = now;
    w->round_bytes = 0;
    w->packets = w->marked = w->lost = 0;
    w->pressure_before = w->pressure;
    w->pressure = w->least_ns = ALB_RTT_NO_SAMPLE;
    w->limited = false;
}

static void init(struct alb_congestion *congestion, const struct alb_engine_config *config)
{
    *congestion = (struct alb_congestion){
        .config = config,
        .window = {.threshold_bytes = config->window_max_bytes,
                   .pressure = ALB_RTT_NO_SAMPLE,
                   .least_ns = ALB_RTT_NO_SAMPLE,
                   .base_ns = ALB_RTT_NO_SAMPLE,
                   .level_floor = ALB_LEVEL_MIN,
                   .pressure_before = ALB_RTT_NO_SAMPLE,
                   .marked_part = ALB_RTT_NO_SAMPLE},
    };
    set_window(congestion, config->window_start_bytes);
}

// ---- round-trip times -----------------------------------------------------------------------------------------------

static uint32_t smooth(uint32_t smoothed_ns, uint32_t sample_ns)
{
    return smoothed_ns == 0 ? sample_ns : (uint32_t)(((uint64_t)smoothed_ns * 7 + sample_ns) / 8);
}

static void take_sample(struct alb_congestion *congestion, uint32_t rtt_ns, uint32_t back_ns, alb_time now)
{
    struct alb_delay_window *w = &congestion->window;
    uint32_t there_ns = rtt_ns - ALB_MIN(back_ns, rtt_ns - 1);
    w->rtt_ns = smooth(w->rtt_ns, rtt_ns);
    w->there_ns = smooth(w->there_ns, there_ns);
    alb_rtt_target_note(w, there_ns, now);
    uint64_t pressure = (uint64_t)there_ns * ONE / alb_rtt_target_ns(congestion);
    w->pressure = (uint32_t)ALB_MIN(pressure, (uint64_t)w->pressure);
}

// True if most packets come well before the target: then windows grow by parts of themselves, as in Swift's successors
// (NSCC's proportional increase), for a flow that lasts for ten round trips has no time for less.
static bool has_room(const struct alb_congestion *congestion)
{
    uint32_t there_ns = congestion->window.there_ns;
    return there_ns > 0 && there_ns < alb_rtt_target_long_ns(congestion) + alb_rtt_target_room_ns(congestion) / 4 * 3;
}

// True if the target was chosen for such a path. Of one that is many times longer round trips tell nothing.
static bool is_apt(const struct alb_congestion *congestion)
{
    return congestion->window.there_ns > alb_rtt_target_ns(congestion) / APT_RTTS;
}

// ---- how long the path is -------------------------------------------------------------------------------------------

// A flow that uses a long path all the time, or began when others did, does not see its shortest round trip: half a
// window, for a moment, shows it. A flow that sees a shorter one meanwhile drains again as much later as we do, and so
// all come to drain at the same time (BBR: Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 14
// (2016)).
static void begin_drain(struct alb_congestion *congestion)
{
    struct alb_delay_window *w = &congestion->window;
    w->drain_rounds = DRAIN_ROUNDS;
    w->drain_least_ns = ALB_RTT_NO_SAMPLE;
    w->drain_base_ns = w->base_ns;
    w->drain_window_bytes = congestion->window_bytes;
    w->ample_rounds = 0;
    set_window(congestion, congestion->window_bytes / 2);
    w->threshold_bytes = ALB_MIN(w->threshold_bytes, congestion->window_bytes);
}

static void drain(struct alb_congestion *congestion, alb_time now)
{
    struct alb_delay_window *w = &congestion->window;
    w->drain_least_ns = ALB_MIN(w->drain_least_ns, w->least_ns);
    if (--w->drain_rounds > 0 || w->drain_least_ns == ALB_RTT_NO_SAMPLE)
        return;
    uint64_t bytes = w->drain_window_bytes;
    if (w->drain_least_ns < w->drain_base_ns)
        bytes = bytes * w->drain_least_ns / w->drain_base_ns;
    alb_rtt_target_set_base(congestion, w->drain_least_ns, now);
    if (w->level > 0) // where it was too short for what all sent, it may not be now
        alb_rtt_target_set_level(w, w->level - 1);
    set_window(congestion, ALB_MAX(congestion->window_bytes, bytes));
}

static bool should_drain(struct alb_congestion *congestion, alb_time now)
{
    struct alb_delay_window *w = &congestion->window;
    if (!w->limited || congestion->window_bytes < w->threshold_bytes)
        return false;
    w->young_rounds += w->young_rounds <= YOUNG_ROUNDS;
    return w->young_rounds == YOUNG_ROUNDS || w->ample_rounds >= ALB_AMPLE_ROUNDS || now >= w->base_at + SPAN_NS;
}

// Two rounds of packets that left when the window had been cut to a quarter take as long as each other, and hardly less
// than before: a queue of ours, or of flows like us, would be shorter by then. What remains is the path, or a queue of
// others that do not heed delay.
static bool has_become_longer(struct alb_congestion *congestion, alb_time now)
{
    struct alb_delay_window *w = &congestion->window;
    if (w->pressed_rounds == 0 || !alb_rtt_target_is_long(congestion, w->least_ns))
        return false;
    if (w->pressed_rounds == 1)
        w->pressed_most_ns = w->pressed_before_ns = w->quartered_at = 0;
    w->pressed_most_ns = ALB_MAX(w->pressed_most_ns, w->least_ns);
    if (w->quartered_at == 0 && congestion->window_bytes <= w->unpressed_bytes / 4)
        w->quartered_at = (uint32_t)(now / QUARTERED_NS) | 1;
    uint32_t left_at = (uint32_t)((w->round_since - ALB_MIN(w->round_since, (alb_time)w->least_ns)) / QUARTERED_NS);
    if (w->quartered_at == 0 || (int32_t)(left_at - w->quartered_at) <= 0)
        return false;
    uint32_t before_ns = w->pressed_before_ns, least_ns = w->least_ns;
    uint32_t moved_ns = before_ns > least_ns ? before_ns - least_ns : least_ns - before_ns;
    w->pressed_before_ns = least_ns;
    return before_ns > 0 && moved_ns <= least_ns / LONG_STEADY_PART && least_ns > w->base_ns &&
           (least_ns - w->base_ns) * 4ull >= (w->pressed_most_ns - w->base_ns) * 3ull;
}

// At the end of a round.
static void look_at_path(struct alb_congestion *congestion, alb_time now)
{
    struct alb_delay_window *w = &congestion->window;
    bool is_old = now >= w->base_at + SPAN_NS && w->least_ns != ALB_RTT_NO_SAMPLE;
    if (w->drain_rounds > 0) {
        drain(congestion, now);
    } else if (has_become_longer(congestion, now)) {
        alb_rtt_target_set_base(congestion, w->least_ns, now);
    } else if (is_old && (alb_rtt_target_long_ns(congestion) == 0 || !w->limited)) {
        alb_rtt_target_set_base(congestion, w->least_ns, now);
    } else if (alb_rtt_target_long_ns(congestion) > 0 && should_drain(congestion, now)) {
        begin_drain(congestion);
    }
}

// ---- once a round ---------------------------------------------------------------------------------------------------

// What the round asks to take from the window, in parts of it.
static uint32_t cut_for_marks(struct alb_delay_window *w)
{
    if (w->packets == 0)
        return 0;
    uint32_t part = (uint32_t)(ALB_MIN(w->marked, w->packets) * (uint64_t)ONE / w->packets);
    // The first round counts as it is: one mark in it may come from one path of many.
    if (w->marked_part == ALB_RTT_NO_SAMPLE)
        w->marked_part = part;
    w->marked_part += (part >> MARKED_GAIN_LOG2) - (w->marked_part >> MARKED_GAIN_LOG2);
    return w->marked > 0 ? w->marked_part / 2 * alb_share_of_marks(w) / ALB_CSA_SHARE_EVEN : 0;
}

static uint32_t cut_for_delay(const struct alb_delay_window *w)
{
    uint64_t pressure = ALB_MIN(w->pressure, w->pressure_before);
    if (w->pressure == ALB_RTT_NO_SAMPLE || w->pressure_before == ALB_RTT_NO_SAMPLE || pressure <= ONE)
        return 0;
    uint64_t cut = (pressure - ONE) * ONE / pressure * 4 / 5; // Swift's beta
    return (uint32_t)ALB_MAX(cut, (uint64_t)DELAY_CUT_MIN);
}

static uint32_t cut_for_losses(struct alb_delay_window *w)
{
    w->judged += w->packets + w->lost;
    w->judged_lost += w->lost;
    if (w->judged < LOST_EVIDENCE)
        return 0;
    uint32_t part = (uint32_t)(w->judged_lost * (uint64_t)ONE / w->judged);
    uint32_t cut = part > LOST_PART_HARD ? CUT_MAX : part > LOST_PART ? LOST_CUT : 0;
    if (cut > 0)
        w->judged = w->judged_lost = 0;
    for (; w->judged > LOST_MEMORY; w->judged /= 2)
        w->judged_lost /= 2;
    return cut;
}

// Most of the target, in a round that was measured.
static bool is_near_target(const struct alb_delay_window *w)
{
    return w->pressure != ALB_RTT_NO_SAMPLE && w->pressure > ONE / 4 * 3;
}

// The path is long, and full: if flows grew by parts of themselves there, no cut would make them equal.
static bool has_long_queue(const struct alb_congestion *congestion)
{
    uint64_t path_ns = alb_rtt_target_long_ns(congestion);
    return path_ns > 0 && congestion->window.there_ns > path_ns + path_ns / LONG_FULL_PART;
}

// Its queue may be shorter than we would like it to be, and overflow each time. Losses without a queue are no sign.
static uint32_t cut_for_overflow(const struct alb_congestion *congestion)
{
    const struct alb_delay_window *w = &congestion->window;
    bool are_many = (uint64_t)w->lost * ONE > (uint64_t)(w->packets + w->lost) * LONG_LOST;
    return are_many && has_long_queue(congestion) ? LONG_CUT : 0;
}

// On a long path rounds are few: it grows by as much in a second as on a shorter one.
static uint64_t growth_bytes(const struct alb_congestion *congestion)
{
    return GROWTH_BYTES * ALB_MAX(alb_rtt_target_long_ns(congestion) / ALB_LONG_NS, 1ull);
}

// Packets come without having waited, as when the flows that shared the path have ended.
static bool is_empty(const struct alb_congestion *congestion)
{
    const struct alb_delay_window *w = &congestion->window;
    return w->there_ns <= (uint64_t)w->base_ns + w->base_ns / EMPTY_PART && w->marked == 0 && w->lost == 0 &&
           w->share <= ALB_SHARE_AMPLE && alb_rtt_target_long_ns(congestion) == 0 && is_apt(congestion);
}

// A flow that finds the path as empty as a new one would may have as much in flight as that, by slow start (after
// NSCC's fast increase).
static void begin_anew(struct alb_congestion *congestion)
{
    struct alb_delay_window *w = &congestion->window;
    w->threshold_bytes = ALB_MAX(w->threshold_bytes, congestion->config->window_start_bytes);
}

static void grow(struct alb_congestion *congestion)
{
    struct alb_delay_window *w = &congestion->window;
    bool hurries = w->calm_rounds > CALM_ROUNDS;
    bool is_free = has_room(congestion) && is_apt(congestion) && !has_long_queue(congestion);
    uint64_t times = hurries ? w->calm_rounds - CALM_ROUNDS : 1;
    uint64_t share = congestion->window_bytes / GROWTH_SHARE_MAX, step = growth_bytes(congestion);
    uint64_t bytes = ALB_MIN(times * step, ALB_MAX(share, step));
    if (is_free)
        bytes = ALB_MAX(share, (uint64_t)GROWTH_FREE);
    if (w->share > ALB_SHARE_AMPLE)
        bytes = step;
    set_window(congestion, congestion->window_bytes + bytes);
    w->calm_rounds++;
    if (w->calm_rounds >= EMPTY_ROUNDS && is_empty(congestion))
        begin_anew(congestion);
}

// A long path has lost so much in a round that its queue may have been too short for what left at once. Elsewhere the
// window is not paced: each piece of a window costs its report, and a thread that wakes.
static void judge_pace(struct alb_congestion *congestion)
{
    struct alb_delay_window *w = &congestion->window;
    bool are_many = (uint64_t)w->lost * PACED_PART > w->packets + w->lost;
    if (are_many && alb_rtt_target_long_ns(congestion) > 0)
        w->paced_rounds = PACED_ROUNDS;
    else
        w->paced_rounds -= w->paced_rounds > 0;
}

static void end_round(struct alb_congestion *congestion, alb_time now)
{
    struct alb_delay_window *w = &congestion->window;
    bool is_hit = (uint64_t)w->lost * ONE > (uint64_t)(w->packets + w->lost) * LOST_PART_HOLD;
    uint32_t cut = cut_for_marks(w), delay = cut_for_delay(w), losses = cut_for_losses(w);
    if (w->pressed_rounds == 0)
        w->unpressed_bytes = congestion->window_bytes;
    cut = ALB_MAX(cut, delay);
    cut = ALB_MAX(cut, losses);
    cut = ALB_MAX(cut, cut_for_overflow(congestion));
    cut = ALB_MIN(cut, (uint32_t)CUT_MAX);
    if (cut > 0) {
        set_window(congestion, congestion->window_bytes - (uint64_t)congestion->window_bytes * cut / ONE);
        w->threshold_bytes = congestion->window_bytes;
        w->calm_rounds = 0;
    } else if (is_hit) {
        w->calm_rounds = 0;
    } else if (w->limited && congestion->window_bytes >= w->threshold_bytes && w->drain_rounds == 0) {
        grow(congestion);
    }
    alb_rtt_target_adapt(congestion, delay > 0,
                         losses > 0 && is_near_target(w) && alb_rtt_target_long_ns(congestion) == 0);
    look_at_path(congestion, now);
    judge_pace(congestion);
    begin_round(w, now);
}

// A round is a round trip, and some more if none was measured in it. While that time is unknown, a round lasts until a
// window has come.
static void end_round_if_over(struct alb_congestion *congestion, alb_time now)
{
    const struct alb_delay_window *w = &congestion->window;
    alb_time least_ns = w->pressure == ALB_RTT_NO_SAMPLE ? w->rtt_ns * 4ull : w->rtt_ns;
    if (w->rtt_ns != 0 ? now >= w->round_since + least_ns : w->round_bytes >= congestion->window_bytes)
        end_round(congestion, now);
}

// ---- feedback -------------------------------------------------------------------------------------------------------

// What slow start sends in a round too many is as much as the path holds, and that of a long one is much: it ends when
// no round trip is short any more (HyStart++, RFC 9406).
static bool is_long_and_fills(const struct alb_congestion *congestion)
{
    const struct alb_delay_window *w = &congestion->window;
    uint64_t path_ns = alb_rtt_target_long_ns(congestion);
    return path_ns > 0 && w->packets >= LONG_START_PACKETS && w->least_ns != ALB_RTT_NO_SAMPLE &&
           w->least_ns > path_ns + path_ns / LONG_START_PART;
}

// Slow start ends as soon as a queue shows; it does not wait for the round, nor for all of the target. One late packet
// is no queue: over many paths there is always one.
static void start_slowly(struct alb_congestion *congestion, const struct alb_ack *ack)
{
    struct alb_delay_window *w = &congestion->window;
    if (congestion->window_bytes >= w->threshold_bytes)
        return;
    if (ack->marked > 0 || (w->rtt_ns > 0 && !has_room(congestion)) || is_long_and_fills(congestion))
        w->threshold_bytes = congestion->window_bytes;
    else if (ack->limited)
        set_window(congestion, ALB_MIN((uint64_t)congestion->window_bytes + ack->bytes, (uint64_t)w->threshold_bytes));
}

static void on_ack(struct alb_congestion *congestion, const struct alb_ack *ack, alb_time now)
{
    struct alb_delay_window *w = &congestion->window;
    w->round_bytes += ack->bytes;
    w->packets = ALB_MIN(w->packets + ack->packets, COUNT_MAX);
    w->marked = ALB_MIN(w->marked + ack->marked, COUNT_MAX);
    w->lost = ALB_MIN(w->lost + ack->lost, COUNT_MAX);
    w->limited |= ack->limited;
    w->share = ack->share;
    w->host_load = ack->host_load;
    if (ack->rtt_ns != 0)
        take_sample(congestion, ack->rtt_ns, ack->back_ns, now);
    start_slowly(congestion, ack);
    end_round_if_over(congestion, now);
}

// A queue has said how much too much it was: nothing has to be guessed or smoothed (as NSCC of the Ultra Ethernet
// specification answers a NACK).
static void make_room(struct alb_congestion *congestion, uint32_t bytes)
{
    struct alb_delay_window *w = &congestion->window;
    set_window(congestion, congestion->window_bytes - ALB_MIN(bytes, congestion->window_bytes));
    w->threshold_bytes = ALB_MIN(w->threshold_bytes, congestion->window_bytes);
    w->calm_rounds = 0;
}

static void on_loss(struct alb_congestion *congestion, uint32_t inflight_bytes, uint32_t lost_bytes,
                    enum alb_loss_cause cause, alb_time now)
{
    struct alb_delay_window *w = &congestion->window;
    if (cause == ALB_LOSS_TRIMMED)
        make_room(congestion, lost_bytes);
    if (cause != ALB_LOSS_TIMEOUT)
        return; // on_ack hears of it, with what it is a part of
    // Begin again from the bottom, fast up to half of what it was.
    w->threshold_bytes = congestion->window_bytes / 2;
    w->calm_rounds = 0;
    w->drain_rounds = 0;
    set_window(congestion, 0);
    begin_round(w, now);
}

// ---- pacing ---------------------------------------------------------------------------------------------------------
//
// Reports let parts of a window go at once, and those of a long path may be more than a queue before it has room for.
// Where that is so a window leaves in most of a round trip, a little faster than it is acknowledged (as Linux paces
// TCP), and reports come more often. On other paths a queue of the target's length has room for all of a window.

static bool should_pace(const struct alb_congestion *congestion)
{
    return congestion->window.paced_rounds > 0 && alb_rtt_target_long_ns(congestion) > 0;
}

// How long the bytes would take if a window left in eight ninths of a round trip, and in a third of one in slow start.
static uint64_t pace_ns(const struct alb_congestion *congestion, uint64_t bytes)
{
    const struct alb_delay_window *w = &congestion->window;
    uint64_t whole_ns = bytes * w->rtt_ns / congestion->window_bytes;
    return congestion->window_bytes < w->threshold_bytes ? whole_ns / 3 : whole_ns * 8 / 9;
}

// How much more has left than should have; below 0: how much less. What is farther ahead than a round trip is old.
static int64_t ahead_ns(const struct alb_delay_window *w, alb_time now)
{
    int64_t ns = (int64_t)(int32_t)(w->paced_until - (uint32_t)(now / PACED_NS)) * PACED_NS;
    return ns > w->rtt_ns ? -(int64_t)w->rtt_ns : ns;
}

// What a new flow may send at once any other may, too, and so may one that comes late by a part of a round trip, or by
// as much as a thread may have waited for a processor.
static void on_burst(struct alb_congestion *congestion, uint32_t bytes, alb_time now)
{
    struct alb_delay_window *w = &congestion->window;
    congestion->is_paced = should_pace(congestion);
    if (alb_likely(!congestion->is_paced))
        return;
    uint32_t burst_bytes = ALB_MAX(congestion->config->window_start_bytes, congestion->window_bytes / BURST_PART);
    uint64_t burst_ns = ALB_MAX(pace_ns(congestion, burst_bytes), 2ull * congestion->config->csa_probe_min_ns);
    int64_t ns = ALB_MAX(ahead_ns(w, now), -(int64_t)burst_ns);
    ns = ALB_MIN(ns + (int64_t)pace_ns(congestion, bytes), (int64_t)w->rtt_ns);
    w->paced_until = (uint32_t)((now + (alb_time)ns) / PACED_NS);
}

static alb_time send_at(struct alb_congestion *congestion, alb_time now)
{
    if (alb_likely(!should_pace(congestion)))
        return now;
    return now + (alb_time)ALB_MAX(ahead_ns(&congestion->window, now), (int64_t)0);
}

// A peer tells how many packets were marked, which says more than a notification: on_mark has no use.
const struct alb_congestion_ops alb_congestion_window = {
    .name = "window",
    .needs_feedback = true,
    .init = init,
    .on_ack = on_ack,
    .on_loss = on_loss,
    .on_burst = on_burst,
    .send_at = send_at,
};
