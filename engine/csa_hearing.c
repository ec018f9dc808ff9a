// SPDX-License-Identifier: BSD-2-Clause
// One question is enough for a peer that is silent as a whole. Where its thread waits for a processor, all streams fall
// silent at once, and when it goes on it says in a moment what it holds of each: a probe of every stream would send as
// many segments again for nothing. So behind a gap in what comes, whatever the stream, they ask by one probe, and by
// another one twice as long after each; and when the gap has ended they wait for what follows the first packet. Where
// the peer is heard of other streams none of them waits: one that is not heard of has lost something. Nor for longer
// than processors are taken from a thread, since those that ask may be of queue pairs that the peer has no more.
#include "engine/impl.h"

#define TURN_NS (4 * ALB_NS_PER_MS) // of a thread on a processor that others wait for

enum {
    DOUBLINGS_MAX = 10,
    FOLLOWS_PART = 4, // of a round trip: so long a receiver may wait before it reports
};

static alb_path_tick ticks(alb_time ns)
{
    return (alb_path_tick)(ns >> 10) + 1;
}

// How long packets that follow one another may be apart: longer is a gap.
static uint32_t follows_ns(const struct alb_assoc_live *live)
{
    return ALB_MAX(live->rtt_ns / FOLLOWS_PART, live->engine->config.csa_probe_min_ns / 2);
}

// A thread that read its clock before another one received is told an earlier time than that.
static bool is_silent(const struct alb_assoc_live *live, alb_path_tick tick)
{
    return (int32_t)(tick - live->heard_at) > (int32_t)ticks(follows_ns(live));
}

void alb_assoc_heard(struct alb_assoc_live *live, alb_time now)
{
    alb_path_tick tick = alb_path_tick_of(now);
    if (alb_unlikely(is_silent(live, tick)))
        live->ask_from = tick + ticks(follows_ns(live));
    else if ((int32_t)(live->ask_from - tick) < 0) // kept close, since ticks are compared modulo 2^32
        live->ask_from = tick;
    live->heard_at = tick;
    live->asked = 0;
}

void alb_assoc_asked(struct alb_assoc_live *live, alb_time silence_ns, alb_time now)
{
    alb_path_tick tick = alb_path_tick_of(now);
    if (!is_silent(live, tick))
        return;
    live->ask_from = tick + ticks(silence_ns << live->asked);
    live->asked = (uint8_t)ALB_MIN(live->asked + 1, DOUBLINGS_MAX);
}

alb_time alb_assoc_ask_at(const struct alb_assoc_live *live, alb_time due, alb_time silence_ns, alb_time now)
{
    int32_t left = (int32_t)(live->ask_from - alb_path_tick_of(now));
    if (left <= 0)
        return due;
    alb_time halt_ns = (alb_time)TURN_NS * alb_engine_host_load(live->engine) / ALB_HOST_LOAD_ONE;
    return ALB_MIN(due + ALB_MAX(silence_ns, halt_ns), now + ((alb_time)left << 10));
}
