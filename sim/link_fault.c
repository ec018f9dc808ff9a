// SPDX-License-Identifier: BSD-2-Clause
#include "sim/link_fault.h"

#include "wire/datagram.h"

#include <stdlib.h>

void alb_sim_link_note_faults(struct alb_sim_link *link)
{
    link->is_plain = !link->is_dead && !link->has_died && !link->tap && !link->script &&
                     alb_list_is_empty(&link->held) && link->config.payload_bytes_max == 0 &&
                     alb_faults_spec_is_none(&link->faults.spec);
}

bool alb_sim_packet_headers(const struct alb_sim_packet *packet, struct alb_roce *roce)
{
    const struct alb_sim_load *load = alb_sim_load(packet);
    uint32_t payload_offset, payload_bytes;
    return load->length > ALB_ICRC_BYTES && alb_roce_decode(load->bytes, load->length - ALB_ICRC_BYTES, roce,
                                                            &payload_offset, &payload_bytes) == ALB_DROP_NONE;
}

void alb_sim_link_lose(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    uint32_t bytes = packet->wire_bytes;
    link->stats.lost++;
    alb_sim_packet_put(link->pool, packet);
    if (link->has_credit_limit)
        alb_sim_link_add_credit(link, bytes, now);
}

void alb_sim_link_mark(struct alb_sim_link *link, struct alb_sim_packet *packet)
{
    uint8_t ecn = packet->traffic_class & ALB_ECN_MASK;
    if (ecn == ALB_ECN_NOT_ECT || ecn == ALB_ECN_CE)
        return;
    packet->traffic_class |= ALB_ECN_CE;
    link->stats.marked++;
}

// It never comes into the queue: the feeder need not keep room for it any more.
static void lose_unsent(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    if (link->feeder)
        link->feeder->departed(link->feeder, link, packet, now);
    link->stats.lost++;
    alb_sim_packet_put(link->pool, packet);
}

// ---- packets that come later than others ----------------------------------------------------------------------------

static void on_delay(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_sim_packet *packet = ALB_CONTAINER_OF(event, struct alb_sim_packet, event);
    alb_sim_link_enqueue(packet->on, packet, now);
}

static void let_go(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct alb_sim_load *load = alb_sim_load(packet);
    if (packet->is_held)
        alb_list_remove(&load->link);
    packet->is_held = false;
    alb_sim_queue_cancel(link->queue, &packet->event);
    if (load->delay == 0) {
        alb_sim_link_enqueue(link, packet, now);
        return;
    }
    packet->event.fire = on_delay;
    alb_sim_queue_schedule(link->queue, &packet->event, now + load->delay);
}

static void on_held_long(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_sim_packet *packet = ALB_CONTAINER_OF(event, struct alb_sim_packet, event);
    let_go(packet->on, packet, now);
}

static void hold(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct alb_sim_load *load = alb_sim_load(packet);
    load->packet = packet;
    alb_list_init(&load->link);
    alb_list_push_back(&link->held, &load->link);
    packet->is_held = true;
    packet->event.fire = on_held_long;
    alb_sim_queue_schedule(link->queue, &packet->event, now + ALB_SIM_NS(ALB_FAULTS_HOLD_NS_MAX));
}

// A packet has gone on: those held back come nearer to their turn.
static void pass_held(struct alb_sim_link *link, alb_sim_time now)
{
    ALB_LIST_FOR_EACH (&link->held, node) {
        struct alb_sim_load *load = ALB_LIST_ENTRY(node, struct alb_sim_load, link);
        if (--load->pass == 0)
            let_go(link, load->packet, now);
    }
}

void alb_sim_link_forget_held(struct alb_sim_link *link)
{
    ALB_LIST_FOR_EACH (&link->held, node) {
        struct alb_sim_packet *packet = ALB_LIST_ENTRY(node, struct alb_sim_load, link)->packet;
        alb_sim_queue_cancel(link->queue, &packet->event);
        alb_sim_packet_put(link->pool, packet);
    }
}

// ---- verdicts -------------------------------------------------------------------------------------------------------

static void corrupt(struct alb_sim_link *link, struct alb_sim_packet *packet, uint32_t bit)
{
    struct alb_sim_load *load = alb_sim_load(packet);
    packet->is_corrupt = true;
    link->stats.corrupted++;
    if (load->gap_count == 0 && bit / 8 < load->stored_bytes)
        load->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void carry_out(struct alb_sim_link *link, struct alb_sim_packet *packet, const struct alb_sim_verdict *verdict,
                      alb_sim_time copy_delay, alb_sim_time now)
{
    struct alb_sim_load *load = alb_sim_load(packet);
    struct alb_sim_packet *copy = verdict->copies ? alb_sim_packet_copy(link->pool, packet) : NULL;
    if (verdict->is_corrupt)
        corrupt(link, packet, verdict->corrupt_bit);
    load->pass = verdict->pass;
    load->delay = verdict->delay;
    if (load->pass)
        hold(link, packet, now);
    else
        let_go(link, packet, now);
    if (!copy)
        return;
    alb_sim_load(copy)->delay = copy_delay;
    link->stats.duplicated++;
    let_go(link, copy, now);
}

// They do nothing but what can happen to a packet on the wire.
static bool are_of_the_wire(const struct alb_faults_spec *spec)
{
    return (spec->loss | spec->corrupt) != 0 && (spec->duplicate | spec->reorder | spec->delay_ns_max) == 0;
}

void alb_sim_link_meet_wire(struct alb_sim_link *link, struct alb_sim_packet *packet)
{
    packet->is_lost |= link->is_dead;
    if (!are_of_the_wire(&link->faults.spec))
        return;
    struct alb_fault_verdict fault = alb_faults_decide(&link->faults, alb_sim_load(packet)->length);
    packet->is_lost |= fault.is_lost;
    if (!packet->is_lost && fault.is_corrupt)
        corrupt(link, packet, fault.corrupt_bit);
}

bool alb_sim_link_has_lost(const struct alb_sim_link *link, const struct alb_sim_packet *packet)
{
    return packet->is_lost || link->is_dead || packet->life != link->life;
}

// A link that goes ahead has no other time for those of the wire.
static void add_faults(struct alb_sim_link *link, struct alb_sim_packet *packet, struct alb_sim_verdict *verdict,
                       alb_sim_time *copy_delay)
{
    const struct alb_faults_spec *spec = &link->faults.spec;
    if (alb_faults_spec_is_none(spec) || (!link->goes_ahead && are_of_the_wire(spec)))
        return;
    struct alb_fault_verdict fault = alb_faults_decide(&link->faults, alb_sim_load(packet)->length);
    packet->is_lost = fault.is_lost;
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

void alb_sim_link_meet_faults(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct alb_sim_verdict verdict = {0};
    alb_sim_time copy_delay = 0;
    struct alb_roce roce;
    if (link->tap)
        link->tap(link->tap_context, link, packet, now);
    if (link->is_dead) {
        lose_unsent(link, packet, now);
        return;
    }
    if (link->script && link->script->count && alb_sim_packet_headers(packet, &roce))
        alb_sim_script_decide(link->script, &roce, alb_sim_load(packet)->bytes,
                              alb_sim_load(packet)->length - ALB_ICRC_BYTES, &verdict);
    add_faults(link, packet, &verdict, &copy_delay);
    if (verdict.is_lost) {
        lose_unsent(link, packet, now);
        return;
    }
    if (packet->is_lost) {
        alb_sim_link_enqueue(link, packet, now);
        return;
    }
    if (verdict.is_marked)
        alb_sim_link_mark(link, packet);
    bool goes_on = verdict.pass == 0;
    carry_out(link, packet, &verdict, copy_delay, now);
    if (goes_on)
        pass_held(link, now);
}

// ---- what there is to meet ------------------------------------------------------------------------------------------

void alb_sim_link_set_faults(struct alb_sim_link *link, const struct alb_faults_spec *faults, uint64_t seed)
{
    alb_faults_init(&link->faults, faults, seed);
    alb_sim_link_note_faults(link);
}

void alb_sim_link_set_payload_max(struct alb_sim_link *link, uint32_t payload_bytes_max)
{
    link->config.payload_bytes_max = payload_bytes_max;
    alb_sim_link_note_faults(link);
}

void alb_sim_link_set_dead(struct alb_sim_link *link, bool is_dead)
{
    if (is_dead && !link->is_dead)
        link->life++;
    link->has_died |= is_dead;
    link->is_dead = is_dead;
    alb_sim_link_note_faults(link);
}

struct alb_sim_script *alb_sim_link_script(struct alb_sim_link *link)
{
    if (!link->script) {
        link->script = calloc(1, sizeof(*link->script));
        alb_assert(link->script);
        alb_sim_link_note_faults(link);
    }
    return link->script;
}

void alb_sim_link_set_tap(struct alb_sim_link *link,
                          void (*tap)(void *, const struct alb_sim_link *, const struct alb_sim_packet *, alb_sim_time),
                          void *context)
{
    link->tap = tap;
    link->tap_context = context;
    alb_sim_link_note_faults(link);
}
