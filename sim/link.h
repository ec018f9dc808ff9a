// SPDX-License-Identifier: BSD-2-Clause
// Links: one direction between two nodes. A packet meets, in this order, the script, the faults, the queue (limit, ECN
// mark), the wire (rate) and the way (delay).
#pragma once

#include "base/faults.h"
#include "sim/packet.h"
#include "sim/script.h"

// Whatever packets can arrive at: a host, a fabric. The packet is the node's from then on.
struct alb_sim_node {
    void (*receive)(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now);
};

struct alb_sim_link_config {
    uint64_t bits_per_s; // 0: no limit, and then no queue either
    alb_sim_time delay;
    uint64_t queue_bytes_max;   // 0: no limit
    uint64_t mark_above_bytes;  // packets that find more in the queue are marked; 0: none
    uint32_t payload_bytes_max; // longer ones (UDP payload) are lost without a word; 0: no limit
    struct alb_faults_spec faults;
    uint64_t faults_seed;
};

struct alb_sim_link_stats {
    uint64_t packets, bytes;   // that went on to the wire
    uint64_t lost, overflowed; // by fault, script or death; by the queue's limit
    uint64_t too_long;
    uint64_t marked, duplicated, corrupted;
    uint64_t queue_bytes_peak;
};

struct alb_sim_link {
    struct alb_sim_queue *queue;
    struct alb_sim_packet_pool *pool;
    struct alb_sim_node *to;
    struct alb_sim_link_config config;
    struct alb_faults faults;
    struct alb_sim_script script;
    struct alb_list held;   // packets that later ones pass
    struct alb_list queued; // packets that have not arrived, in the order they leave
    bool is_dead;
    alb_sim_time free_at; // when the wire has sent all that is queued
    struct alb_sim_link_stats stats;
    // If set, sees every packet that is given to the link, before anything happens to it.
    void (*tap)(void *context, const struct alb_sim_link *link, const struct alb_sim_packet *packet, alb_sim_time now);
    void *tap_context;
};

void alb_sim_link_init(struct alb_sim_link *link, struct alb_sim_queue *queue, struct alb_sim_packet_pool *pool,
                       struct alb_sim_node *to, const struct alb_sim_link_config *config);
// Packets that it holds back are forgotten; those on the wire are the network's to wait for.
void alb_sim_link_fini(struct alb_sim_link *link);
// Other faults from now on; what is held back goes on as it would have.
void alb_sim_link_set_faults(struct alb_sim_link *link, const struct alb_faults_spec *faults, uint64_t seed);
// Another rate from now on, also for what is queued (0: no limit).
void alb_sim_link_set_rate(struct alb_sim_link *link, uint64_t bits_per_s, alb_sim_time now);
// Another delay for what is sent from now on: after a shorter one packets overtake.
void alb_sim_link_set_delay(struct alb_sim_link *link, alb_sim_time delay);
// Longer packets are lost from now on (0: no limit).
void alb_sim_link_set_payload_max(struct alb_sim_link *link, uint32_t payload_bytes_max);
// A dead link loses what it is given, and what would arrive while it is dead.
void alb_sim_link_set_dead(struct alb_sim_link *link, bool is_dead);

// Sends a packet, which is the link's from then on.
void alb_sim_link_send(struct alb_sim_link *link, struct alb_sim_packet *packet, alb_sim_time now);

// Bytes that wait for the wire or are on their way into it.
uint64_t alb_sim_link_queued_bytes(const struct alb_sim_link *link, alb_sim_time now);
// How long so many bytes take.
alb_sim_time alb_sim_link_time_of(const struct alb_sim_link *link, uint64_t bytes);

// The headers of a packet; false if it has none that RoCE knows.
bool alb_sim_packet_headers(const struct alb_sim_packet *packet, struct alb_roce *roce);
