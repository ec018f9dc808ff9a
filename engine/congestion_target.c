// SPDX-License-Identifier: BSD-2-Clause
#include "engine/congestion_target.h"

enum {
    PRESSED_ROUNDS = 16,  // that took too long, one after the other, and the target doubles
    OVERFLOW_ROUNDS = 16, // apart are overflows that are counted
    OVERFLOWS = 3,        // and the target is halved
    LEVEL_MAX = 10,
    LEVEL_ROUNDS = 4096, // until the target is tried that is one step nearer to what was asked for

    LONG_TARGETS = 2,    // and ALB_LONG_NS: no queue of flows that have the target lasts so long,
    CROWD_TARGETS = 10,  // but for one of many that began together, each with a whole first window
    LONG_QUEUE_PART = 4, // of a long path's round trip is what its queue may last for
    LONG_SAME_PART = 64, // of it make no other path
    LONG_OTHER_PART = 4, // of it do

    HOST_LOAD_MAX = 4 * ALB_HOST_LOAD_ONE,
};

bool alb_rtt_target_is_long(const struct alb_congestion *congestion, uint32_t ns)
{
    uint64_t targets = congestion->window.share ? CROWD_TARGETS : LONG_TARGETS;
    uint64_t least_ns = ALB_MAX(targets * congestion->config->rtt_target_ns, (uint64_t)ALB_LONG_NS);
    return ns != ALB_RTT_NO_SAMPLE && ns > least_ns;
}

uint64_t alb_rtt_target_long_ns(const struct alb_congestion *congestion)
{
    uint32_t base_ns = congestion->window.base_ns;
    return alb_rtt_target_is_long(congestion, base_ns) ? base_ns : 0;
}

// Where threads wait for processors, all that passes through the host takes longer, and with less under way at a time
// takes more of them.
static uint64_t host_target_ns(const struct alb_congestion *congestion)
{
    uint64_t load = ALB_MAX(congestion->window.host_load, ALB_HOST_LOAD_ONE);
    return congestion->config->rtt_target_ns * ALB_MIN(load, (uint64_t)HOST_LOAD_MAX) / ALB_HOST_LOAD_ONE;
}

uint64_t alb_rtt_target_room_ns(const struct alb_congestion *congestion)
{
    uint64_t ns = ALB_MAX(host_target_ns(congestion), alb_rtt_target_long_ns(congestion) / LONG_QUEUE_PART);
    int level = congestion->window.level;
    ns = level < 0 ? ALB_MAX(ns >> -level, 1ull) : ns << level;
    uint32_t share = alb_rtt_target_share(&congestion->window);
    if (alb_unlikely(share != ALB_CSA_SHARE_EVEN))
        ns = ns * (ALB_CSA_SHARE_EVEN * ALB_CSA_SHARE_EVEN) / (share * share);
    return ALB_MAX(ns, 1ull);
}

// Flows that share a queue share it fairly only if they have the same target: so it is an absolute one, and does not
// come from the shortest round trip that a flow has seen, since a flow that starts late has seen no short one. Only a
// path that is long by itself adds its length, as Swift's target grows with the hops of a path. The target is less for
// a sender with more than an even share, by the share squared.
uint64_t alb_rtt_target_ns(const struct alb_congestion *congestion)
{
    return alb_rtt_target_long_ns(congestion) + alb_rtt_target_room_ns(congestion);
}

// A host whose thread was descheduled between reading the clock and reading its socket takes what has come meanwhile
// for earlier than it was. So a round trip counts as a short one only if the sample before confirms it.
void alb_rtt_target_note(struct alb_delay_window *w, uint32_t rtt_ns, alb_time now)
{
    if (now != w->sample_at)
        w->before_ns = w->newest_ns;
    w->newest_ns = rtt_ns;
    w->sample_at = now;
    uint32_t ns = ALB_MAX(rtt_ns, w->before_ns);
    if (ns <= (uint64_t)w->base_ns + w->base_ns / LONG_SAME_PART)
        w->base_at = now;
    w->base_ns = ALB_MIN(w->base_ns, ns);
    w->least_ns = ALB_MIN(w->least_ns, ns);
}

void alb_rtt_target_set_base(struct alb_congestion *congestion, uint32_t ns, alb_time now)
{
    struct alb_delay_window *w = &congestion->window;
    uint64_t before_ns = alb_rtt_target_long_ns(congestion);
    w->base_ns = ns;
    w->base_at = now;
    if (alb_rtt_target_long_ns(congestion) <= before_ns + before_ns / LONG_OTHER_PART)
        return;
    // If the target was doubled it was for this, and the window was cut for it.
    alb_rtt_target_set_level(w, 0);
    w->threshold_bytes = ALB_MAX(w->threshold_bytes, w->unpressed_bytes);
}

void alb_rtt_target_set_level(struct alb_delay_window *w, int level)
{
    w->level = (int8_t)level;
    w->level_rounds = w->pressed_rounds = w->overflow_rounds = w->ample_rounds = 0;
    w->overflows = 0;
}

// A target that is missed round after round, whatever the window, is too short for the path, or for the packets of all
// flows that share it: each of them notices, and doubles it. One that is too long for the queue, which overflows first
// again and again, is halved. So is one that was doubled, if it gets us more than others have: theirs is not. From time
// to time what was asked for is tried again.
void alb_rtt_target_adapt(struct alb_congestion *congestion, bool is_slow, bool has_overflowed)
{
    struct alb_delay_window *w = &congestion->window;
    w->pressed_rounds = is_slow ? (uint16_t)(w->pressed_rounds + 1) : 0;
    w->ample_rounds = w->share > ALB_SHARE_AMPLE ? (uint16_t)(w->ample_rounds + 1) : 0;
    w->overflow_rounds++;
    if (has_overflowed && w->overflow_rounds >= OVERFLOW_ROUNDS) {
        w->overflow_rounds = 0;
        w->overflows += w->overflows < OVERFLOWS;
    }
    if (++w->level_rounds >= LEVEL_ROUNDS) {
        w->level_floor = ALB_LEVEL_MIN;
        alb_rtt_target_set_level(w, w->level > 0 ? w->level - 1 : w->level + (w->level < 0));
    } else if (w->ample_rounds >= ALB_AMPLE_ROUNDS && w->level > 0) {
        alb_rtt_target_set_level(w, w->level - 1);
    } else if (w->pressed_rounds >= PRESSED_ROUNDS && w->level < LEVEL_MAX && w->share <= ALB_SHARE_AMPLE) {
        alb_rtt_target_set_level(w, w->level + 1);
        w->level_floor = w->level;
        w->threshold_bytes = ALB_MIN(w->unpressed_bytes, congestion->config->window_start_bytes);
    } else if (w->overflows >= OVERFLOWS && w->level > w->level_floor) {
        alb_rtt_target_set_level(w, w->level - 1);
    }
}
