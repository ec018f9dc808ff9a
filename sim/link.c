// SPDX-License-Identifier: BSD-2-Clause
#include "sim/link.h"

#include "wire/datagram.h"

#define PS_PER_S 1000000000000ull

void alb_sim_link_init(struct alb_sim_link *link, struct alb_sim_queue *queue, struct alb_sim_packet_pool *pool,
                       struct alb_sim_node *to, const struct alb_sim_link_config *config)
{
    *link = (struct alb_sim_link){.queue = queue, .pool = pool, .to = to, .config = *config};
    alb_list_init(&link->held);
    alb_list_init(&link->queued);
    alb_faults_init(&link->faults, &config->faults, config->faults_seed);
}

void alb_sim_link_fini(struct alb_sim_link *link)
{
    ALB_LIST_FOR_EACH (&link->held, node) {
        struct alb_sim_packet *packet = ALB_LIST_ENTRY(node, struct alb_sim_packet, link);
        alb_sim_queue_cancel(link->queue, &packet->event);
        alb_sim_packet_put(link->pool, packet);
    }
}

void alb_sim_link_set_faults(struct alb_sim_link *link, const struct alb_faults_spec *faults, uint64_t seed)
{
    alb_faults_init(&link->faults, faults, seed);
}

alb_sim_time alb_sim_link_time_of(const struct alb_sim_link *link, uint64_t bytes)
{
    uint64_t rate = link->config.bits_per_s;
    return rate ? (alb_sim_time)((unsigned __int128)bytes * 8 * PS_PER_S / rate) : 0;
}

uint64_t alb_sim_link_queued_bytes(const struct alb_sim_link *link, alb_sim_time now)
{
    if (link->free_at <= now)
        return 0;
    return (uint64_t)((unsigned __int128)(link->free_at - now) * link->config.bits_per_s / 8 / PS_PER_S);
}

bool alb_sim_packet_headers(const struct alb_sim_packet *packet, struct alb_roce *roce)
{
    uint32_t payload_offset, payload_bytes;
    return packet->length > ALB_ICRC_BYTES && alb_roce_decode(packet->bytes, packet->length - ALB_ICRC_BYTES, roce,
                                                              &payload_offset, &payload_bytes) == ALB_DROP_NONE;
}

static void lose(struct alb_sim_link *link, struct alb_sim_packet *packet)
{
    link->stats.lost++;
    alb_sim_packet_put(link->pool, packet);
}

// ---- queue, wire and way
// -----------------------------------------------------------------------------------------------

static void on_arrival(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_sim_packet *packet = ALB_CONTAINER_OF(event, struct alb_sim_packet, event);
    struct alb_sim_link *link = packet->on;
    alb_list_remove(&packet->link);
    packet->on = NULL;
    if (link->is_dead)
        lose(link, packet);
    else
        link->to->receive(link->to, packet, now);
}

static void mark(struct alb_sim_link *link, struct alb_sim_packet *packet)
{
    if ((packet->traffic_class & ALB_ECN_MASK) == ALB_ECN_NOT_ECT)
        return;
    packet->traffic_class |= ALB_ECN_CE;
    link->stats.marked++;
}

static void depart(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    const struct alb_sim_link_config *config = &link->config;
    uint64_t queued = alb_sim_link_queued_bytes(link, now);
    if (config->payload_bytes_max && packet->length > config->payload_bytes_max && !packet->is_cut) {
        link->stats.too_long++;
        alb_sim_packet_put(link->pool, packet);
        return;
    }
    if (config->queue_bytes_max && queued + packet->wire_bytes > config->queue_bytes_max) {
        link->stats.overflowed++;
        alb_sim_packet_put(link->pool, packet);
        return;
    }
    if (config->mark_above_bytes && queued > config->mark_above_bytes)
        mark(link, packet);
    link->stats.queue_bytes_peak = ALB_MAX(link->stats.queue_bytes_peak, queued + packet->wire_bytes);
    link->stats.packets++;
    link->stats.bytes += packet->wire_bytes;
    link->free_at = ALB_MAX(link->free_at, now) + alb_sim_link_time_of(link, packet->wire_bytes);
    packet->gone_at = link->free_at;
    packet->event.fire = on_arrival;
    alb_list_push_back(&link->queued, &packet->link);
    alb_sim_queue_schedule(link->queue, &packet->event, packet->gone_at + config->delay);
}

static void on_delay(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_sim_packet *packet = ALB_CONTAINER_OF(event, struct alb_sim_packet, event);
    depart(packet->on, packet, now);
}

// ---- faults
// ------------------------------------------------------------------------------------------------------------

static void let_go(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    alb_list_remove(&packet->link);
    alb_sim_queue_cancel(link->queue, &packet->event);
    if (packet->delay == 0) {
        depart(link, packet, now);
        return;
    }
    packet->event.fire = on_delay;
    alb_sim_queue_schedule(link->queue, &packet->event, now + packet->delay);
}

static void on_held_long(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_sim_packet *packet = ALB_CONTAINER_OF(event, struct alb_sim_packet, event);
    let_go(packet->on, packet, now);
}

static void hold(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    alb_list_push_back(&link->held, &packet->link);
    packet->event.fire = on_held_long;
    alb_sim_queue_schedule(link->queue, &packet->event, now + ALB_SIM_NS(ALB_FAULTS_HOLD_NS_MAX));
}

// A packet has gone on: those held back come nearer to their turn.
static void pass_held(struct alb_sim_link *link, alb_sim_time now)
{
    ALB_LIST_FOR_EACH (&link->held, node) {
        struct alb_sim_packet *packet = ALB_LIST_ENTRY(node, struct alb_sim_packet, link);
        if (--packet->pass == 0)
            let_go(link, packet, now);
    }
}

static void corrupt(struct alb_sim_link *link, struct alb_sim_packet *packet, uint32_t bit)
{
    packet->is_corrupt = true;
    link->stats.corrupted++;
    if (bit / 8 < packet->stored_bytes)
        packet->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void carry_out(struct alb_sim_link *link, struct alb_sim_packet *packet, const struct alb_sim_verdict *verdict,
                      alb_sim_time copy_delay, alb_sim_time now)
{
    struct alb_sim_packet *copy = verdict->copies ? alb_sim_packet_copy(link->pool, packet) : NULL;
    if (verdict->is_corrupt)
        corrupt(link, packet, verdict->corrupt_bit);
    packet->pass = verdict->pass;
    packet->delay = verdict->delay;
    if (packet->pass)
        hold(link, packet, now);
    else
        let_go(link, packet, now);
    if (!copy)
        return;
    copy->delay = copy_delay;
    link->stats.duplicated++;
    let_go(link, copy, now);
}

static void add_faults(struct alb_sim_link *link, const struct alb_sim_packet *packet, struct alb_sim_verdict *verdict,
                       alb_sim_time *copy_delay)
{
    if (alb_faults_spec_is_none(&link->faults.spec))
        return;
    struct alb_fault_verdict fault = alb_faults_decide(&link->faults, packet->length);
    verdict->is_lost |= fault.is_lost;
    if (fault.is_lost)
        return;
    if (fault.is_corrupt) {
        verdict->is_corrupt = true;
        verdict->corrupt_bit = fault.corrupt_bit;
    }
    verdict->copies |= fault.copies > 1;
    verdict->pass += fault.pass;
    verdict->delay += ALB_SIM_NS(fault.delay_ns[0]);
    *copy_delay = ALB_SIM_NS(fault.delay_ns[1]);
}

void alb_sim_link_send(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct alb_sim_verdict verdict = {0};
    alb_sim_time copy_delay = 0;
    struct alb_roce roce;
    packet->on = link;
    if (link->tap)
        link->tap(link->tap_context, link, packet, now);
    if (link->is_dead) {
        lose(link, packet);
        return;
    }
    if (link->script.count && alb_sim_packet_headers(packet, &roce))
        alb_sim_script_decide(&link->script, &roce, packet->bytes, packet->length - ALB_ICRC_BYTES, &verdict);
    add_faults(link, packet, &verdict, &copy_delay);
    if (verdict.is_lost) {
        lose(link, packet);
        return;
    }
    if (verdict.is_marked)
        mark(link, packet);
    bool goes_on = verdict.pass == 0;
    carry_out(link, packet, &verdict, copy_delay, now);
    if (goes_on)
        pass_held(link, now);
}

// ---- changes in the middle of a run
// ------------------------------------------------------------------------------------

// The queue is one stretch of work without a gap, so that every moment in it stretches alike.
static alb_sim_time stretch(alb_sim_time at, alb_sim_time now, uint64_t from_bits_per_s, uint64_t to_bits_per_s)
{
    if (to_bits_per_s == 0)
        return now;
    return now + (alb_sim_time)((unsigned __int128)(at - now) * from_bits_per_s / to_bits_per_s);
}

void alb_sim_link_set_rate(struct alb_sim_link *link, uint64_t bits_per_s, alb_sim_time now)
{
    uint64_t before = link->config.bits_per_s;
    link->config.bits_per_s = bits_per_s;
    if (link->free_at <= now)
        return;
    link->free_at = stretch(link->free_at, now, before, bits_per_s);
    ALB_LIST_FOR_EACH (&link->queued, node) {
        struct alb_sim_packet *packet = ALB_LIST_ENTRY(node, struct alb_sim_packet, link);
        if (packet->gone_at <= now)
            continue;
        packet->gone_at = stretch(packet->gone_at, now, before, bits_per_s);
        alb_sim_queue_schedule(link->queue, &packet->event, packet->gone_at + link->config.delay);
    }
}

void alb_sim_link_set_delay(struct alb_sim_link *link, alb_sim_time delay)
{
    link->config.delay = delay;
}

void alb_sim_link_set_payload_max(struct alb_sim_link *link, uint32_t payload_bytes_max)
{
    link->config.payload_bytes_max = payload_bytes_max;
}

void alb_sim_link_set_dead(struct alb_sim_link *link, bool is_dead)
{
    link->is_dead = is_dead;
}
