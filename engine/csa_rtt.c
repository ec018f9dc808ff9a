// SPDX-License-Identifier: BSD-2-Clause
// The round-trip time of an association.
#include "engine/impl.h"

enum {
    RTT_UNKNOWN_NS = 1000000, // before any was measured
};

// RFC 6298, with the constants of RFC 9002.
void alb_assoc_on_rtt(struct alb_assoc_live *live, uint32_t rtt_ns)
{
    bool is_same_frame = live->rtt_newest_at == live->engine->now;
    live->rtt_newest_ns = is_same_frame ? ALB_MAX(live->rtt_newest_ns, rtt_ns) : rtt_ns;
    live->rtt_newest_at = live->engine->now;
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
