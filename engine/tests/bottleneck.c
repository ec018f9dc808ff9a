// SPDX-License-Identifier: BSD-2-Clause
// Time goes in steps that a packet takes on the link.
#include "engine/tests/bottleneck.h"

#include <stdlib.h>

struct bottleneck *bottleneck_new(void)
{
    struct bottleneck *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    alb_engine_config_default(&b->engine);
    assert_int_equal(alb_engine_config_transport(&b->engine, "csa"), 0);
    b->engine.rtt_target_ns = 60 * ALB_NS_PER_US;
    b->bytes_per_s = 1250000000;
    b->packet_bytes = 4096;
    b->rtt_ns = 30 * ALB_NS_PER_US;
    b->queue_bytes_max = 1000000;
    alb_prng_init(&b->prng, 1);
    return b;
}

struct bottleneck_flow *bottleneck_add(struct bottleneck *b, const struct alb_congestion_ops *ops, alb_time start)
{
    assert_true(b->flow_count < BOTTLENECK_FLOWS);
    struct bottleneck_flow *flow = &b->flows[b->flow_count++];
    *flow = (struct bottleneck_flow){.ops = ops, .start = start, .stop = ALB_TIME_NEVER};
    ops->init(&flow->congestion, &b->engine);
    return flow;
}

// The packet at the head of the queue passes the link. Lost ones are in the queue to keep the order, and take no time.
static void pass(struct bottleneck *b)
{
    while (b->queue_head != b->queue_tail) {
        struct bottleneck_packet packet = b->queue[b->queue_head++ % BOTTLENECK_PACKETS];
        packet.at = b->now + b->rtt_ns;
        if (packet.is_marked)
            packet.is_cnp = alb_dcqcn_np_on_mark(&b->flows[packet.flow].np, &b->engine.dcqcn, b->now);
        assert_true(b->answers_tail - b->answers_head < BOTTLENECK_PACKETS);
        b->answers[b->answers_tail++ % BOTTLENECK_PACKETS] = packet;
        if (packet.is_lost)
            continue;
        b->queued_bytes -= b->packet_bytes;
        break;
    }
}

static void hear(struct bottleneck *b, const struct bottleneck_packet *packet)
{
    struct bottleneck_flow *flow = &b->flows[packet->flow];
    uint32_t bytes = b->packet_bytes;
    if (packet->is_lost) {
        alb_congestion_on_loss(flow->ops, &flow->congestion, flow->inflight_bytes, bytes, ALB_LOSS_GAP, b->now);
        flow->inflight_bytes -= bytes;
        flow->lost_bytes += bytes;
        struct alb_ack loss = {.lost = 1};
        alb_congestion_on_ack(flow->ops, &flow->congestion, &loss, b->now);
        return;
    }
    flow->inflight_bytes -= bytes;
    flow->came_bytes += bytes;
    uint32_t rtt_ns = (uint32_t)(b->now - packet->sent_at);
    struct alb_ack ack = {
        .bytes = bytes, .limited = flow->limited, .rtt_ns = rtt_ns, .packets = 1, .marked = packet->is_marked};
    flow->limited = false;
    alb_congestion_on_ack(flow->ops, &flow->congestion, &ack, b->now);
    if (packet->is_cnp)
        alb_congestion_on_mark(flow->ops, &flow->congestion, flow->inflight_bytes, b->now);
}

static void send(struct bottleneck *b, uint32_t f)
{
    struct bottleneck_packet packet = {.flow = (uint8_t)f, .sent_at = b->now};
    bool is_full = b->queued_bytes + b->packet_bytes > b->queue_bytes_max;
    packet.is_lost = is_full || alb_prng_chance(&b->prng, b->lost_per_billion);
    if (!packet.is_lost) {
        packet.is_marked = b->mark_above_bytes != 0 && b->queued_bytes > b->mark_above_bytes;
        b->queued_bytes += b->packet_bytes;
        b->queue_peak_bytes = ALB_MAX(b->queue_peak_bytes, b->queued_bytes);
    }
    assert_true(b->queue_tail - b->queue_head < BOTTLENECK_PACKETS);
    b->queue[b->queue_tail++ % BOTTLENECK_PACKETS] = packet;
    struct bottleneck_flow *flow = &b->flows[f];
    flow->inflight_bytes += b->packet_bytes;
    flow->inflight_peak_bytes = ALB_MAX(flow->inflight_peak_bytes, flow->inflight_bytes);
    alb_congestion_on_sent(flow->ops, &flow->congestion, b->packet_bytes, b->now);
}

static bool may_send(struct bottleneck *b, struct bottleneck_flow *flow)
{
    if (b->now < flow->start || b->now >= flow->stop)
        return false;
    if (flow->inflight_bytes != 0 && flow->inflight_bytes + b->packet_bytes > flow->congestion.window_bytes) {
        flow->limited = true;
        return false;
    }
    return alb_congestion_send_at(flow->ops, &flow->congestion, b->now) <= b->now;
}

static bool is_stalled(const struct bottleneck *b)
{
    return b->stall_each_ns != 0 && b->now % b->stall_each_ns < b->stall_ns;
}

void bottleneck_run(struct bottleneck *b, alb_time ns)
{
    for (alb_time until = b->now + ns; b->now < until;) {
        b->now = ++b->step * b->packet_bytes * ALB_NS_PER_S / b->bytes_per_s;
        pass(b);
        if (is_stalled(b))
            continue;
        while (b->answers_head != b->answers_tail && b->answers[b->answers_head % BOTTLENECK_PACKETS].at <= b->now)
            hear(b, &b->answers[b->answers_head++ % BOTTLENECK_PACKETS]);
        // One packet each in turn, another flow first each time.
        bool any = true;
        while (any) {
            any = false;
            for (uint32_t i = 0; i < b->flow_count; i++) {
                uint32_t f = (uint32_t)((b->step + i) % b->flow_count);
                if (!may_send(b, &b->flows[f]))
                    continue;
                send(b, f);
                any = true;
            }
        }
    }
}

void bottleneck_measure(struct bottleneck *b)
{
    for (uint32_t f = 0; f < b->flow_count; f++)
        b->flows[f].came_bytes = b->flows[f].lost_bytes = 0;
    b->queue_peak_bytes = b->queued_bytes;
}

uint32_t bottleneck_percent(const struct bottleneck *b, alb_time ns)
{
    uint64_t came = 0;
    for (uint32_t f = 0; f < b->flow_count; f++)
        came += b->flows[f].came_bytes;
    return (uint32_t)(came * 100 / (b->bytes_per_s * (ns / ALB_NS_PER_US) / 1000000));
}

uint32_t bottleneck_fairness(const struct bottleneck *b)
{
    uint64_t least = UINT64_MAX, most = 1;
    for (uint32_t f = 0; f < b->flow_count; f++) {
        least = ALB_MIN(least, b->flows[f].came_bytes);
        most = ALB_MAX(most, b->flows[f].came_bytes);
    }
    return (uint32_t)(least * 100 / most);
}
