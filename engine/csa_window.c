// SPDX-License-Identifier: BSD-2-Clause
// How much an association may have in flight: what the congestion policy's window and the peer's credit permit, and
// what this side grants the peer.
#include "engine/impl.h"

static uint32_t limit_bytes(const struct alb_assoc_live *live)
{
    return ALB_MIN(live->congestion.window_bytes, live->credit_bytes);
}

bool alb_assoc_permits(const struct alb_assoc_live *live, uint32_t bytes)
{
    return live->inflight_bytes == 0 || live->inflight_bytes + bytes <= limit_bytes(live);
}

uint64_t alb_assoc_room_bytes(const struct alb_assoc_live *live)
{
    uint64_t limit = limit_bytes(live);
    return limit - ALB_MIN(limit, live->inflight_bytes);
}

uint32_t alb_assoc_flow_bytes(const struct alb_assoc_live *live)
{
    uint64_t rate_bytes_per_s = alb_congestion_rate_bytes_per_s(live->engine->congestion, &live->congestion);
    if (alb_likely(rate_bytes_per_s == 0))
        return limit_bytes(live);
    uint64_t paced_bytes = rate_bytes_per_s / 1000 * alb_assoc_rtt_ns(live->assoc) / (ALB_NS_PER_S / 1000);
    return (uint32_t)ALB_MIN(paced_bytes, (uint64_t)limit_bytes(live));
}

void alb_assoc_charge(struct alb_assoc_live *live, uint32_t bytes)
{
    live->inflight_bytes += bytes;
}

void alb_assoc_release(struct alb_assoc_live *live, uint32_t bytes)
{
    alb_assert(bytes <= live->inflight_bytes);
    live->inflight_bytes -= bytes;
    alb_line_open(live, bytes);
}

void alb_csa_note_landed(struct alb_assoc_live *live, uint32_t bytes, alb_time now)
{
    const struct alb_ack ack = {
        .bytes = bytes + live->late_bytes,
        .limited = live->window_limited,
        .rtt_ns = live->rtt_sample_ns,
        .back_ns = live->rtt_sample_ns - live->there_sample_ns,
        .packets = live->news_received,
        .marked = live->news_marked,
        .lost = live->news_lost,
        .share = live->share,
        .host_load = atomic_load_explicit(&live->engine->host_load, memory_order_relaxed),
    };
    alb_congestion_on_ack(live->engine->congestion, &live->congestion, &ack, now);
    live->window_limited = false;
    live->late_bytes = 0;
    live->rtt_sample_ns = live->there_sample_ns = live->news_received = live->news_marked = live->news_lost = 0;
    alb_mtu_consider(live, now);
}

uint32_t alb_assoc_credit(struct alb_assoc_live *live, alb_time now)
{
    return alb_credit_grant(&live->engine->csa->credit, &live->credit_in, now);
}

// The peer's is that of the route its data takes.
static uint32_t data_rtt_ns(const struct alb_assoc_live *live)
{
    return ALB_MAX(live->rtt_ns, live->peer_rtt_ns);
}

void alb_assoc_note_received(struct alb_assoc_live *live, uint32_t bytes, alb_time now)
{
    alb_credit_on_packet(&live->engine->csa->credit, &live->credit_in, bytes, data_rtt_ns(live), now);
}

void alb_assoc_note_rest(struct alb_assoc_live *live, struct alb_credit_message *message, uint64_t bytes, alb_time now)
{
    alb_credit_on_rest(&live->engine->csa->credit, &live->credit_in, message, bytes, data_rtt_ns(live), now);
}
