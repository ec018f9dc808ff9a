// SPDX-License-Identifier: BSD-2-Clause
#include "sim/link.h"

#include "sim/link_fault.h"
#include "wire/datagram.h"

#include <stdlib.h>

#define PS_PER_S 1000000000000ull

_Static_assert(offsetof(struct alb_sim_link, to) == 64 && offsetof(struct alb_sim_link, stats.lost) == 128,
               "what a hop looks at in a link are two cache lines, or the second of them");

static void on_turn(struct alb_sim_event *event, alb_sim_time now);
static void turn_soon(const struct alb_sim_event *event, uint32_t stage);

static void set_rate(struct alb_sim_link *link, uint64_t bits_per_s)
{
    link->config.bits_per_s = bits_per_s;
    uint64_t ps_per_byte = bits_per_s && 8 * PS_PER_S % bits_per_s == 0 ? 8 * PS_PER_S / bits_per_s : 0;
    link->ps_per_byte = ps_per_byte <= UINT32_MAX ? (uint32_t)ps_per_byte : 0;
}

static void note_calm(struct alb_sim_link *link)
{
    const struct alb_sim_link_config *config = &link->config;
    uint64_t limit = config->queue_bytes_max ? config->queue_bytes_max : UINT64_MAX;
    uint64_t calm_bytes = ALB_MIN(limit, config->mark_above_bytes ? config->mark_above_bytes : UINT64_MAX);
    link->calm_kib = (uint16_t)ALB_MIN(calm_bytes >> 10, (uint64_t)UINT16_MAX);
}

void alb_sim_link_init(struct alb_sim_link *link, struct alb_sim_queue *queue, struct alb_sim_packet_pool *pool,
                       struct alb_sim_node *to, const struct alb_sim_link_config *config)
{
    *link = (struct alb_sim_link){.queue = queue, .pool = pool, .to = to, .config = *config, .delay = config->delay};
    note_calm(link);
    set_rate(link, config->bits_per_s);
    alb_sim_event_init(&link->turn, on_turn);
    link->turn.soon = turn_soon;
    alb_list_init(&link->held);
    alb_prng_init(&link->prng, config->faults_seed ^ 0x6d61726b73);
    alb_faults_init(&link->faults, &config->faults, config->faults_seed);
    alb_sim_link_note_faults(link);
}

void alb_sim_link_go_ahead(struct alb_sim_link *link, uint64_t queue_bytes_max)
{
    alb_assert(link->waiting_bytes == 0 && !link->paused_by && !link->has_credit_limit && link->config.bits_per_s > 0);
    link->config.queue_bytes_max = queue_bytes_max;
    note_calm(link);
    link->goes_ahead = true;
}

static void forget_line(struct alb_sim_link *link, struct alb_sim_line *line)
{
    for (struct alb_sim_packet *packet; (packet = line->first);) {
        line->first = packet->next;
        alb_sim_packet_put(link->pool, packet);
    }
}

void alb_sim_link_fini(struct alb_sim_link *link)
{
    alb_sim_queue_cancel(link->queue, &link->turn);
    forget_line(link, &link->urgent);
    forget_line(link, &link->waiting);
    alb_sim_link_forget_held(link);
    free(link->script);
}

alb_sim_time alb_sim_link_time_of(const struct alb_sim_link *link, uint64_t bytes)
{
    if (alb_likely(link->ps_per_byte)) // what else there is lies in a line that no hop looks at
        return bytes * link->ps_per_byte;
    uint64_t rate = link->config.bits_per_s;
    return rate ? alb_sim_until_end((unsigned __int128)bytes * 8 * PS_PER_S / rate) : 0;
}

uint64_t alb_sim_link_queued_bytes(const struct alb_sim_link *link, alb_sim_time now)
{
    if (link->busy_until <= now)
        return link->goes_ahead ? 0 : link->waiting_bytes;
    alb_sim_time left = link->busy_until - now;
    if (alb_likely(link->ps_per_byte))
        return link->waiting_bytes + left / link->ps_per_byte;
    return link->waiting_bytes + (uint64_t)((unsigned __int128)left * link->config.bits_per_s / 8 / PS_PER_S);
}

// ---- wire and way ---------------------------------------------------------------------------------------------------

static void on_arrival(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_sim_packet *packet = ALB_CONTAINER_OF(event, struct alb_sim_packet, event);
    struct alb_sim_link *link = packet->on;
    if (alb_unlikely(!link->is_plain || packet->is_lost) && alb_sim_link_has_lost(link, packet))
        alb_sim_link_lose(link, packet, now);
    else
        link->to->receive(link->to, packet, now);
}

static void arrival_soon(const struct alb_sim_event *event, uint32_t stage)
{
    const struct alb_sim_packet *packet = ALB_CONTAINER_OF(event, struct alb_sim_packet, event);
    const struct alb_sim_link *link = packet->on;
    if (stage == 0)
        alb_sim_fetch(&link->to, 1);
    else if (stage == 1 && link->to_host)
        alb_sim_fetch_host(link->to, alb_sim_packet_is_report(packet));
    else if (stage == 1)
        alb_sim_fetch(link->to, ALB_SIM_SWITCH_LINES);
    else if (link->to->soon)
        link->to->soon(link->to, packet);
}

// On to the wire, at that time.
static void put_on_wire(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time at)
{
    link->stats.packets++;
    link->stats.bytes += packet->wire_bytes;
    packet->life = link->life;
    link->busy_until = ALB_MIN(at + alb_sim_link_time_of(link, packet->wire_bytes), ALB_SIM_END);
    packet->event.fire = on_arrival;
    packet->event.soon = arrival_soon;
    alb_sim_queue_schedule_for(link->queue, &packet->event, alb_sim_before_end(link->busy_until + link->delay),
                               link->to_node);
}

static void transmit(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    if (alb_unlikely(!link->is_plain))
        alb_sim_link_meet_wire(link, packet);
    put_on_wire(link, packet, now);
    link->on_wire = packet;
    if (alb_unlikely(link->has_credit_limit))
        link->credit_bytes -= packet->wire_bytes;
    if (link->feeder)
        link->feeder->departed(link->feeder, link, packet, now);
}

// ---- queue ----------------------------------------------------------------------------------------------------------

static bool may_leave(const struct alb_sim_link *link, const struct alb_sim_packet *packet)
{
    return !link->paused_by && (!link->has_credit_limit || link->credit_bytes >= (int64_t)packet->wire_bytes);
}

// Lets packets leave until the wire is busy or they may not.
static void serve(struct alb_sim_link *link, alb_sim_time now)
{
    while (link->waiting_bytes > 0) {
        struct alb_sim_line *line = link->waiting.first ? &link->waiting : &link->urgent;
        if (alb_unlikely(link->has_urgent) && link->urgent.first)
            line = &link->urgent;
        if (link->busy_until > now) {
            if (!alb_sim_event_is_scheduled(&link->turn))
                alb_sim_queue_schedule_for(link->queue, &link->turn, alb_sim_before_end(link->busy_until),
                                           link->from_node);
            return;
        }
        if (!may_leave(link, line->first)) {
            if (!link->is_held_up)
                link->held_since = now;
            link->is_held_up = true;
            return;
        }
        if (alb_unlikely(link->is_held_up))
            link->stats.held_up += now - link->held_since;
        link->is_held_up = false;
        struct alb_sim_packet *packet = alb_sim_line_pop(line);
        link->waiting_bytes -= packet->wire_bytes;
        alb_sim_fetch(line->first, 1); // whose turn is next
        if (alb_unlikely(packet->is_trimmed))
            link->urgent_bytes -= packet->wire_bytes;
        transmit(link, packet, now);
    }
}

static void on_turn(struct alb_sim_event *event, alb_sim_time now)
{
    serve(ALB_CONTAINER_OF(event, struct alb_sim_link, turn), now);
}

static void turn_soon(const struct alb_sim_event *event, uint32_t stage)
{
    const struct alb_sim_link *link = ALB_CONTAINER_OF(event, struct alb_sim_link, turn);
    if (stage == 0) {
        alb_sim_fetch(&link->to, 1);
        alb_sim_fetch(link->waiting.first, 1);
    } else if (stage == 1 && link->from_host) {
        alb_sim_fetch_host(link->feeder, true);
    } else if (link->from_host && link->feeder->soon) {
        link->feeder->soon(link->feeder, NULL);
    }
}

static bool is_marked_at(struct alb_sim_link *link, uint64_t queued)
{
    const struct alb_sim_link_config *config = &link->config;
    if (config->mark_above_bytes == 0 || queued <= config->mark_above_bytes)
        return false;
    if (queued >= config->mark_always_bytes)
        return true;
    uint64_t part = (queued - config->mark_above_bytes) * config->mark_per_million /
                    (config->mark_always_bytes - config->mark_above_bytes);
    return alb_prng_chance(&link->prng, (uint32_t)part * 1000);
}

// A queue that is no longer calm: false if the packet finds no room in it.
static bool has_room(struct alb_sim_link *link, struct alb_sim_packet *packet, uint64_t queued)
{
    uint64_t limit = link->config.queue_bytes_max;
    if (limit && queued + packet->wire_bytes > limit)
        return false;
    if (is_marked_at(link, queued))
        alb_sim_link_mark(link, packet);
    return true;
}

static void join(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    uint64_t queued = alb_sim_link_queued_bytes(link, now);
    bool is_calm = queued + packet->wire_bytes <= (uint64_t)link->calm_kib << 10;
    if (alb_unlikely(!is_calm) && !has_room(link, packet, queued)) {
        link->stats.overflowed++;
        alb_sim_packet_put(link->pool, packet);
        return;
    }
    uint64_t bytes = ALB_MIN(queued + packet->wire_bytes, (uint64_t)UINT32_MAX);
    link->queue_bytes_peak = ALB_MAX(link->queue_bytes_peak, (uint32_t)bytes);
    if (link->goes_ahead) {
        put_on_wire(link, packet, ALB_MAX(now, link->busy_until));
        return;
    }
    link->waiting_bytes += packet->wire_bytes;
    if (alb_unlikely(packet->is_trimmed)) {
        link->urgent_bytes += packet->wire_bytes;
        link->has_urgent = true;
    }
    alb_sim_line_push(packet->is_trimmed ? &link->urgent : &link->waiting, packet);
    serve(link, now);
}

void alb_sim_link_enqueue(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    const struct alb_sim_link_config *config = &link->config;
    if (config->payload_bytes_max && alb_sim_load(packet)->length > config->payload_bytes_max &&
        (!packet->is_cut || config->never_cuts)) {
        link->stats.too_long++;
        alb_sim_packet_put(link->pool, packet);
        return;
    }
    join(link, packet, now);
}

// True if the queue will be calm with the packet in it, and has been longer: there is nothing to do but to queue.
static bool is_nothing_new(const struct alb_sim_link *link, const struct alb_sim_packet *packet, alb_sim_time now)
{
    alb_sim_time left = ALB_MAX(now, link->busy_until) - now;
    uint64_t bytes = ALB_MIN((uint64_t)link->calm_kib << 10, link->queue_bytes_peak);
    return left + (uint64_t)packet->wire_bytes * link->ps_per_byte < bytes * link->ps_per_byte;
}

void alb_sim_link_send(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now)
{
    packet->on = link;
    if (alb_likely(link->is_plain && link->goes_ahead) && is_nothing_new(link, packet, now))
        put_on_wire(link, packet, ALB_MAX(now, link->busy_until));
    else if (link->is_plain)
        join(link, packet, now);
    else
        alb_sim_link_meet_faults(link, packet, now);
}

// ---- changes in the middle of a run ---------------------------------------------------------------------------------

static alb_sim_time stretch(alb_sim_time at, alb_sim_time now, uint64_t from_bits_per_s, uint64_t to_bits_per_s)
{
    if (to_bits_per_s == 0)
        return now;
    return alb_sim_until_end(now + (unsigned __int128)(at - now) * from_bits_per_s / to_bits_per_s);
}

void alb_sim_link_set_rate(struct alb_sim_link *link, uint64_t bits_per_s, alb_sim_time now)
{
    uint64_t before = link->config.bits_per_s;
    alb_sim_link_go_by_steps(link);
    set_rate(link, bits_per_s);
    if (link->busy_until <= now || !link->on_wire)
        return;
    link->busy_until = stretch(link->busy_until, now, before, bits_per_s);
    alb_sim_queue_schedule_for(link->queue, &link->on_wire->event, alb_sim_before_end(link->busy_until + link->delay),
                               link->to_node);
    alb_sim_queue_cancel(link->queue, &link->turn);
    serve(link, now);
}

void alb_sim_link_set_delay(struct alb_sim_link *link, alb_sim_time delay)
{
    alb_sim_link_go_by_steps(link);
    link->config.delay = link->delay = delay;
}

void alb_sim_link_set_paused(struct alb_sim_link *link, enum alb_sim_pauser by, bool is_paused, alb_sim_time now)
{
    alb_sim_link_go_by_steps(link);
    link->stats.pauses += is_paused && !(link->paused_by & by);
    link->paused_by = (uint8_t)(is_paused ? link->paused_by | by : link->paused_by & ~by);
    serve(link, now);
}

void alb_sim_link_limit_credit(struct alb_sim_link *link, uint64_t bytes)
{
    alb_sim_link_go_by_steps(link);
    link->has_credit_limit = true;
    link->credit_bytes = (int64_t)bytes;
}

void alb_sim_link_add_credit(struct alb_sim_link *link, uint64_t bytes, alb_sim_time now)
{
    link->credit_bytes += (int64_t)bytes;
    serve(link, now);
}
