// SPDX-License-Identifier: BSD-2-Clause
// The round-trip time of an association.
#include "engine/impl.h"

enum {
    RTT_UNKNOWN_NS = 1000000, // before any was measured
    // Ticks for which, or twice that, a least time counts. Clocks that drift apart by 50 parts in a million differ by
    // 100 us more at the end.
    SPAN = 1000000000 >> 10,
};

uint32_t alb_way_back_waited_ns(struct alb_way_back *back, uint32_t took_ns, alb_time now)
{
    alb_path_tick passed = alb_path_tick_of(now) - back->since;
    if (back->since == 0 || passed >= SPAN) {
        back->least_ns[0] = back->since == 0 || passed >= 2 * SPAN ? took_ns : back->least_ns[1];
        back->least_ns[1] = took_ns;
        back->since = alb_path_tick_of(now);
    }
    for (uint32_t i = 0; i < ALB_COUNT(back->least_ns); i++)
        if ((int32_t)(took_ns - back->least_ns[i]) < 0)
            back->least_ns[i] = took_ns;
    return took_ns - back->least_ns[0];
}

// A quarter of what we have in flight, or more, comes from the peer in a round trip.
static bool sends_much(const struct alb_assoc_live *live)
{
    return ((uint64_t)live->credit_in.rate * live->rtt_ns >> 20) * 4 >= live->inflight_bytes;
}

uint32_t alb_assoc_waited_ns(struct alb_assoc_live *live, uint32_t took_ns, uint32_t unread_ns, alb_time now)
{
    uint32_t waited_ns = alb_way_back_waited_ns(&live->way_back, took_ns, now);
    bool is_crowded = sends_much(live); // by the peer's data
    if (!is_crowded)
        waited_ns -= ALB_MIN(unread_ns, waited_ns);
    live->reports_wait = waited_ns > live->rtt_ns / 2;
    if (waited_ns > live->rtt_ns / 8 && !is_crowded)
        live->reports_queued = UINT8_MAX;
    else if (live->reports_queued > 0)
        live->reports_queued--;
    return waited_ns;
}

static void take_sample(struct alb_assoc_live *live, uint32_t rtt_ns, uint32_t back_ns)
{
    uint32_t there_ns = rtt_ns - ALB_MIN(back_ns, rtt_ns);
    bool is_first = live->rtt_sample_ns == 0;
    live->rtt_sample_ns = is_first ? rtt_ns : ALB_MIN(live->rtt_sample_ns, rtt_ns);
    live->there_sample_ns = is_first ? there_ns : ALB_MIN(live->there_sample_ns, there_ns);
}

// RFC 6298, with the constants of RFC 9002.
void alb_assoc_on_rtt(struct alb_assoc_live *live, uint32_t rtt_ns, uint32_t back_ns)
{
    take_sample(live, rtt_ns, back_ns);
    bool is_same_frame = live->rtt_newest_at == (uint32_t)live->engine->now;
    live->rtt_newest_ns = is_same_frame ? ALB_MAX(live->rtt_newest_ns, rtt_ns) : rtt_ns;
    live->rtt_newest_at = (uint32_t)live->engine->now;
    if (live->rtt_min_ns == 0) {
        live->rtt_ns = live->rtt_min_ns = rtt_ns;
        live->rtt_var_ns = rtt_ns / 8;
        return;
    }
    live->rtt_min_ns = ALB_MIN(live->rtt_min_ns, rtt_ns);
    uint32_t deviation = rtt_ns > live->rtt_ns ? rtt_ns - live->rtt_ns : live->rtt_ns - rtt_ns;
    live->rtt_var_ns = (uint32_t)((3ull * live->rtt_var_ns + deviation) / 4);
    live->rtt_ns = (uint32_t)((7ull * live->rtt_ns + rtt_ns) / 8);
}

uint32_t alb_assoc_rtt_ns(const struct alb_assoc *assoc)
{
    uint32_t rtt_ns = assoc->live ? assoc->live->rtt_ns : assoc->rtt_ns;
    if (rtt_ns == 0 && assoc->live)
        rtt_ns = assoc->live->peer_rtt_ns;
    return rtt_ns ? rtt_ns : RTT_UNKNOWN_NS;
}

uint32_t alb_assoc_margin_ns(const struct alb_engine *engine, const struct alb_assoc *assoc)
{
    uint32_t rtt_ns = alb_assoc_rtt_ns(assoc), margin_ns = rtt_ns / 8;
    // A few samples from a host that was busy say little of the next one; asking too early costs a packet, and waiting
    // for a hundred milliseconds costs that.
    if (assoc->live && assoc->live->rtt_min_ns)
        margin_ns = ALB_MAX(margin_ns, (uint32_t)ALB_MIN(4ull * assoc->live->rtt_var_ns, (uint64_t)rtt_ns));
    return ALB_MAX(margin_ns, engine->config.csa_margin_min_ns);
}
