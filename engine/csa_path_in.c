// SPDX-License-Identifier: BSD-2-Clause
// What came by a path. Its packets arrive in the order they left, so a gap in their numbers is a loss, at once, as long
// as the path behaves. Packets that come after younger ones teach it patience: from then on a gap waits as long as
// packets have been seen to be late, and that wears off while nothing is late. The idea of a reordering window that is
// measured, and not fixed, is that of RACK (RFC 8985, section 6.2); here the receiver holds it, which sees lateness
// itself where a sender only sees what it sent again in vain.
#include "engine/csa_path.h"

#include <string.h>

#define LATENESS_MIN_NS 10000u    // what a packet is late by cannot be measured within one run of received packets
#define LATENESS_MAX_NS 50000000u // later ones count as lost, and waiting for them as vain

enum {
    WINDOW = 64,       // packets behind the settled mark of which is known whether they came
    MEMORY = 32,       // packets before the settled mark of which is known whether they came
    OLD_MAX = 4096,    // packets: what is older than that teaches nothing
    FAR = 1 << 22,     // packets: a jump of this size is no loss, the sender has begun anew
    REPORT_TIMES = 3,  // paths frames that tell of a packet
    CALM_PACKETS = 16, // received, make one step of calm; so does a gap that waited in vain
    CALM_STEPS = 64,   // take a sixteenth off the lateness
};

// Settles the oldest count packets; returns how many of them have not come.
static uint32_t advance(struct alb_path_in *in, uint32_t count)
{
    uint32_t lost = 0, shown = ALB_MIN(count, (uint32_t)WINDOW), unseen = count - shown;
    for (uint32_t i = 0; i < shown; i++) {
        bool is_lost = (in->came & 1) == 0;
        in->lost = in->lost << 1 | is_lost;
        in->came >>= 1;
        lost += is_lost;
    }
    if (unseen >= MEMORY)
        in->lost = UINT32_MAX;
    else if (unseen > 0)
        in->lost = in->lost << unseen | ((1u << unseen) - 1);
    in->settled = alb_psn_add(in->settled, (int32_t)count);
    in->ahead -= ALB_MIN(count, (uint32_t)in->ahead);
    in->old -= ALB_MIN(count, (uint32_t)in->old);
    return lost + unseen;
}

// Settles what has come without a gap.
static void advance_over_what_came(struct alb_path_in *in)
{
    if (in->came & 1)
        advance(in, ~in->came ? (uint32_t)__builtin_ctzll(~in->came) : WINDOW);
}

// Starts the clock of the gap at the settled mark, if it is a new one. It was seen when the newest packet came, if not
// earlier.
static void watch_gap(struct alb_path_in *in)
{
    if (in->old > 0)
        return;
    in->gap_age_ns = 0;
    in->old = in->ahead;
}

static void count_packet(struct alb_path_in *in, bool is_marked)
{
    in->received++;
    in->marked += is_marked;
    if (in->unreported != REPORT_TIMES) // what is written in part is slow to be read as a whole
        in->unreported = REPORT_TIMES;
    if (in->lateness_ns == 0)
        return;
    in->calm += in->received % CALM_PACKETS == 0;
    if (in->calm < CALM_STEPS)
        return;
    in->calm = 0;
    in->lateness_ns -= in->lateness_ns / 16;
    if (in->lateness_ns < LATENESS_MIN_NS)
        in->lateness_ns = 0;
}

static uint32_t span_ns(alb_time from, alb_time to)
{
    return to <= from ? 0 : (uint32_t)ALB_MIN(to - from, (alb_time)UINT32_MAX);
}

// Had the packet taken as long as the newest one did, it would have come before that by what their timestamps differ.
static void learn_lateness(struct alb_path_in *in, uint32_t timestamp, alb_time now)
{
    int64_t late_ns = (int64_t)span_ns(in->newest_at, now) + (int32_t)(in->newest_timestamp - timestamp);
    if (late_ns > LATENESS_MAX_NS)
        return;
    int64_t wanted_ns = ALB_MIN(late_ns + late_ns / 4, (int64_t)LATENESS_MAX_NS);
    uint32_t lateness_ns = (uint32_t)ALB_MAX(wanted_ns, (int64_t)LATENESS_MIN_NS);
    in->lateness_ns = ALB_MAX(in->lateness_ns, lateness_ns);
    in->calm = 0;
}

static void note_newest(struct alb_path_in *in, uint32_t timestamp, alb_time now)
{
    uint32_t passed_ns = span_ns(in->newest_at, now);
    in->gap_age_ns = ALB_MIN(in->gap_age_ns, UINT32_MAX - passed_ns) + passed_ns;
    in->newest_at = now;
    in->newest_timestamp = timestamp;
}

// The first packet, or the first after a jump that no loss explains.
static void begin(struct alb_path_in *in, alb_psn sequence, uint32_t timestamp, alb_time now)
{
    in->is_known = true;
    in->has_stray = false;
    in->settled = alb_psn_next(sequence);
    in->came = 0;
    in->lost = UINT32_MAX & ~1u; // but for itself
    in->ahead = in->old = 0;
    note_newest(in, timestamp, now);
}

// Two numbers in a row, both far behind what has come: the sender has another association in place of the one whose
// numbers these were (as RFC 3550, A.1, has it for sources that restart). One alone may be a straggler.
static bool begins_anew(struct alb_path_in *in, alb_psn sequence)
{
    bool is_second = in->has_stray && in->stray_next == (uint8_t)sequence;
    in->has_stray = true;
    in->stray_next = (uint8_t)(sequence + 1);
    return is_second;
}

// depth: how far it is before the settled mark, from 1, up to OLD_MAX.
static enum alb_path_arrival arrive_behind(struct alb_path_in *in, uint32_t depth, uint32_t timestamp, bool is_marked,
                                           alb_time now)
{
    if (depth <= MEMORY) {
        uint32_t bit = 1u << (depth - 1);
        if ((in->lost & bit) == 0)
            return ALB_PATH_ARRIVAL_AGAIN;
        in->lost &= ~bit;
    }
    learn_lateness(in, timestamp, now);
    count_packet(in, is_marked);
    return ALB_PATH_ARRIVAL_LATE;
}

// distance: within the window.
static enum alb_path_arrival arrive_within(struct alb_path_in *in, uint32_t distance, uint32_t timestamp,
                                           bool is_marked, alb_time now)
{
    enum alb_path_arrival arrival = ALB_PATH_ARRIVAL_LATE;
    if (in->came >> distance & 1)
        return ALB_PATH_ARRIVAL_AGAIN;
    in->came |= 1ull << distance;
    in->has_stray = false;
    if (distance >= in->ahead) {
        arrival = distance == in->ahead ? ALB_PATH_ARRIVAL_NEXT : ALB_PATH_ARRIVAL_GAP;
        in->ahead = (uint8_t)(distance + 1);
        note_newest(in, timestamp, now);
    } else {
        learn_lateness(in, timestamp, now);
    }
    count_packet(in, is_marked);
    advance_over_what_came(in);
    watch_gap(in);
    return arrival;
}

// One that alb_path_in_is_next: nothing of the window moves but its beginning. There is no gap, so that nothing is old.
static void take_next(struct alb_path_in *in, uint32_t timestamp, bool is_marked, alb_time now)
{
    in->settled = alb_psn_next(in->settled);
    in->has_stray = false;
    in->lost <<= 1;
    in->newest_at = now;
    in->newest_timestamp = timestamp;
    count_packet(in, is_marked);
}

enum alb_path_arrival alb_path_in_packet(struct alb_path_in *in, alb_psn sequence, uint32_t timestamp, bool is_marked,
                                         alb_time now, uint32_t *lost)
{
    *lost = 0;
    if (alb_likely(alb_path_in_is_next(in, sequence))) {
        take_next(in, timestamp, is_marked, now);
        return ALB_PATH_ARRIVAL_NEXT;
    }
    int32_t distance = in->is_known ? alb_psn_diff(sequence, in->settled) : 0;
    bool is_stray = distance < -OLD_MAX;
    if (is_stray && !begins_anew(in, sequence))
        return ALB_PATH_ARRIVAL_LATE;
    if (!in->is_known || is_stray || distance > FAR) {
        enum alb_path_arrival arrival = in->is_known ? ALB_PATH_ARRIVAL_GAP : ALB_PATH_ARRIVAL_NEXT;
        begin(in, sequence, timestamp, now);
        count_packet(in, is_marked);
        return arrival;
    }
    if (distance < 0)
        return arrive_behind(in, (uint32_t)-distance, timestamp, is_marked, now);
    if (distance >= WINDOW) {
        *lost = advance(in, (uint32_t)distance - (WINDOW - 1));
        advance_over_what_came(in);
        distance = alb_psn_diff(sequence, in->settled);
    }
    enum alb_path_arrival arrival = arrive_within(in, (uint32_t)distance, timestamp, is_marked, now);
    if (in->lateness_ns == 0)
        *lost += advance(in, in->ahead);
    return arrival;
}

void alb_path_in_take_next(struct alb_path_in *in, uint32_t timestamp, alb_time now)
{
    take_next(in, timestamp, false, now);
}

alb_time alb_path_in_deadline(const struct alb_path_in *in)
{
    if (in->ahead == 0)
        return ALB_TIME_NEVER;
    // A gap never grows older than it may without being settled, but for a driver that comes late.
    return in->newest_at + in->lateness_ns - ALB_MIN(in->gap_age_ns, in->newest_at);
}

uint32_t alb_path_in_settle(struct alb_path_in *in, alb_time now)
{
    uint32_t lost = 0;
    while (alb_path_in_deadline(in) <= now) {
        lost += advance(in, in->old);
        advance_over_what_came(in);
        watch_gap(in);
        in->calm += in->calm < CALM_STEPS;
    }
    return lost;
}

void alb_path_in_report(struct alb_path_in *in, uint8_t path, alb_time now, struct alb_csa_path_entry *entry)
{
    *entry = (struct alb_csa_path_entry){
        .path = path,
        .settled = in->settled,
        .echo = in->newest_timestamp,
        .delay_ns = span_ns(in->newest_at, now),
        .received = in->received,
        .marked = in->marked,
    };
    in->unreported -= in->unreported > 0;
}
