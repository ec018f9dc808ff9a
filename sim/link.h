// SPDX-License-Identifier: BSD-2-Clause
// Links: one direction between two nodes, with the port that feeds it. A packet meets, in this order, the script, the
// faults (sim/link_fault.c), the queue (limit, ECN mark), the wire (rate, unless the far end has paused it or has given
// no credit) and the way (delay). Faults that do nothing but lose and damage are met on the wire, and death there and
// on the way: what begins or ends while a packet waits finds it or does not.
//
// A link that nothing can hold up (alb_sim_link_go_ahead) works out when a packet will have left as soon as it joins
// the queue, and has one event for it, its arrival. Every other link has another one for a packet that waits: its turn.
#pragma once

#include "base/faults.h"
#include "sim/event_queue.h"
#include "sim/fetch.h"
#include "sim/packet.h"
#include "sim/script.h"

// What holds a link up; each holder releases it itself.
enum alb_sim_pauser {
    ALB_SIM_PAUSED_BY_PEER = 1, // the far end, for want of buffer
    ALB_SIM_PAUSED_BY_FAULT = 2,
};

// Whatever packets can arrive at: a host, a switch, a fabric. The packet is the node's from then on.
struct alb_sim_node {
    void (*receive)(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now);
    // A packet has left the queue of a link that the node feeds, or is lost before it.
    void (*departed)(struct alb_sim_node *node, struct alb_sim_link *link, struct alb_sim_packet *packet,
                     alb_sim_time now);
    // A packet will soon come, or NULL: depart. Asks the caches for what that needs, and changes nothing that a run
    // depends on. May be NULL.
    void (*soon)(struct alb_sim_node *node, const struct alb_sim_packet *packet);
};

struct alb_sim_link_config {
    uint64_t bits_per_s; // 0: no limit, and then no queue either
    alb_sim_time delay;
    uint64_t queue_bytes_max; // 0: no limit
    // Packets that find more than that in the queue are marked; up to mark_always_bytes by chance, which grows to
    // mark_per_million there. 0: none, and mark_always_bytes 0: without chance.
    uint64_t mark_above_bytes, mark_always_bytes;
    uint32_t mark_per_million;
    uint32_t payload_bytes_max; // longer ones (UDP payload) are lost without a word; 0: no limit
    bool never_cuts;            // also those that IP may cut
    struct alb_faults_spec faults;
    uint64_t faults_seed; // and of the marks
};

struct alb_sim_link_stats {
    uint64_t packets, bytes;   // that went on to the wire or, where it goes ahead, will
    uint64_t lost, overflowed; // by fault, script or death; by the queue's limit
    uint64_t too_long;
    uint64_t marked, duplicated, corrupted;
    uint64_t trimmed;
    uint64_t pauses;
    alb_sim_time held_up; // for pause or want of credit, though something waited
};

enum {
    ALB_SIM_SWITCH_LINES = 2,   // cache lines that a hop looks at in a switch, the first alone where links go ahead,
    ALB_SIM_HOST_LINES = 4,     // and in a host, and behind them
    ALB_SIM_HOT_LINES = 8,      // what its engine needs, for packets that bring data, and then for those that report
    ALB_SIM_REPORT_BYTES = 512, // on the wire: what is longer brings data
};

static inline uint32_t alb_sim_packet_is_report(const struct alb_sim_packet *packet)
{
    return packet->wire_bytes <= ALB_SIM_REPORT_BYTES;
}

// What a host looks at for such packets.
static inline void alb_sim_fetch_host(const struct alb_sim_node *host, bool is_report)
{
    alb_sim_fetch(host, ALB_SIM_HOST_LINES);
    alb_sim_fetch((const char *)host + ALB_SIM_LINE_BYTES * (ALB_SIM_HOST_LINES + is_report * (ALB_SIM_HOT_LINES + 1)),
                  ALB_SIM_HOT_LINES);
}

// In the order they leave.
struct alb_sim_line {
    struct alb_sim_packet *first, *last;
};

static inline void alb_sim_line_push(struct alb_sim_line *line, struct alb_sim_packet *packet)
{
    packet->next = NULL;
    if (line->first)
        line->last->next = packet;
    else
        line->first = packet;
    line->last = packet;
}

// There is one.
static inline struct alb_sim_packet *alb_sim_line_pop(struct alb_sim_line *line)
{
    struct alb_sim_packet *packet = line->first;
    line->first = packet->next;
    packet->next = NULL;
    return packet;
}

struct alb_sim_link {
    // What every packet needs, a cache line, where it does not go ahead,
    struct alb_sim_event turn; // of what waits first: when the wire is free
    struct alb_sim_line waiting;
    uint64_t waiting_bytes;         // in both lines
    struct alb_sim_node *feeder;    // hears what departs; may be NULL
    struct alb_sim_packet *on_wire; // while it is busy: what left last

    // and one more in any case.
    struct alb_sim_node *to;
    struct alb_sim_queue *queue;
    alb_sim_time busy_until; // the wire: with what has left or, where it goes ahead, with all that it was given
    alb_sim_time delay;      // config's
    uint32_t ps_per_byte;    // 0: not a whole number
    uint16_t calm_kib;       // a queue that is not longer is neither marked nor limited
    uint8_t paused_by;       // enum alb_sim_pauser
    bool is_plain : 1;       // nothing but queue, wire and way
    bool is_dead : 1, is_held_up : 1, has_credit_limit : 1;
    bool has_urgent : 1;             // some have been trimmed
    bool to_host : 1, from_host : 1; // of a cluster
    bool goes_ahead : 1;
    uint32_t to_node : 24;           // of the event queue: its packets are this node's
    uint32_t life : 8;               // grows with each death, modulo 256: what left in another one is lost
    uint32_t queue_bytes_peak;       // at most UINT32_MAX
    struct alb_sim_link_stats stats; // the first of them go with the above

    struct alb_sim_line urgent;
    uint32_t from_node; // and all else here is this one's
    uint16_t to_port;   // of the switch at its end
    uint64_t urgent_bytes;
    int64_t credit_bytes;
    alb_sim_time held_since; // while it is held up
    struct alb_sim_packet_pool *pool;
    uint32_t number; // in a cluster
    struct alb_sim_link_config config;
    struct alb_prng prng; // of the marks
    struct alb_faults faults;
    bool has_died;
    struct alb_sim_script *script; // NULL: none yet
    struct alb_list held;          // packets that later ones pass
    // If set, sees every packet that is given to the link, before anything happens to it.
    void (*tap)(void *context, const struct alb_sim_link *link, const struct alb_sim_packet *packet, alb_sim_time now);
    void *tap_context;
    alb_sim_time control_at; // when the last pause or resume for it arrives
    uint32_t control_life;   // those of an earlier one are void: its far end has begun anew
} __attribute__((aligned(64)));

void alb_sim_link_init(struct alb_sim_link *link, struct alb_sim_queue *queue, struct alb_sim_packet_pool *pool,
                       struct alb_sim_node *to, const struct alb_sim_link_config *config);
// Packets that wait or are held back are forgotten; those on the wire are the network's to wait for.
void alb_sim_link_fini(struct alb_sim_link *link);
// From now on packets are given their arrival at once: departures are not reported, there is no pause, no credit, and
// no packet goes before others. Its queue may have so many bytes, what is left on the wire among them (0: no limit).
// What can hold it up, or changes what was worked out, ends that (alb_sim_link_go_by_steps), of itself too.
void alb_sim_link_go_ahead(struct alb_sim_link *link, uint64_t queue_bytes_max);
// What comes from now on leaves in turn, so that it meets what befalls the link while it waits. What came before
// arrives when it would have, and until then the wire is busy.
static inline void alb_sim_link_go_by_steps(struct alb_sim_link *link)
{
    link->goes_ahead = false;
}
// Other faults from now on; what is held back goes on as it would have.
void alb_sim_link_set_faults(struct alb_sim_link *link, const struct alb_faults_spec *faults, uint64_t seed);
// Another rate from now on, also for what is queued (0: no limit).
void alb_sim_link_set_rate(struct alb_sim_link *link, uint64_t bits_per_s, alb_sim_time now);
// Another delay for what is sent from now on: after a shorter one packets overtake.
void alb_sim_link_set_delay(struct alb_sim_link *link, alb_sim_time delay);
// Longer packets are lost from now on (0: no limit).
void alb_sim_link_set_payload_max(struct alb_sim_link *link, uint32_t payload_bytes_max);
// A dead link loses what it is given, what leaves for it, and what is on its way.
void alb_sim_link_set_dead(struct alb_sim_link *link, bool is_dead);
// The rules that its packets meet.
struct alb_sim_script *alb_sim_link_script(struct alb_sim_link *link);
// If set, sees every packet that is given to the link, before anything happens to it.
void alb_sim_link_set_tap(struct alb_sim_link *link,
                          void (*tap)(void *context, const struct alb_sim_link *link,
                                      const struct alb_sim_packet *packet, alb_sim_time now),
                          void *context);

// Sends a packet, which is the link's from then on.
void alb_sim_link_send(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now);
// Puts a packet that has met script and faults into the queue: sim/link_fault.c's.
void alb_sim_link_enqueue(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now);

// Pauses it, or lets it go on: the packet on the wire leaves, no other.
void alb_sim_link_set_paused(struct alb_sim_link *link, enum alb_sim_pauser by, bool is_paused, alb_sim_time now);
// From now on nothing leaves beyond the credit that the far end has given.
void alb_sim_link_limit_credit(struct alb_sim_link *link, uint64_t bytes);
void alb_sim_link_add_credit(struct alb_sim_link *link, uint64_t bytes, alb_sim_time now);

// Bytes that wait for the wire or are on their way into it.
uint64_t alb_sim_link_queued_bytes(const struct alb_sim_link *link, alb_sim_time now);
// How long so many bytes take.
alb_sim_time alb_sim_link_time_of(const struct alb_sim_link *link, uint64_t bytes);

// The headers of a packet; false if it has none that RoCE knows.
bool alb_sim_packet_headers(const struct alb_sim_packet *packet, struct alb_roce *roce);
