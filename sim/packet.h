// SPDX-License-Identifier: BSD-2-Clause
// A datagram on its way through the virtual network, and the pool that packets come from.
#pragma once

#include "base/addr.h"
#include "base/list.h"
#include "sim/event_queue.h"

struct alb_sim_link;

#define ALB_SIM_PATH_PORT 49152 // path p of a host has this source port + p; but path 0 has the engine's own port

struct alb_sim_packet {
    struct alb_sim_event event; // what happens to it next: let go, arrives
    struct alb_list link;       // in the pool, among those that a link holds back, or among those in its queue
    struct alb_list all;        // among all packets of the pool
    struct alb_sim_link *on;    // the link it is travelling
    struct alb_endpoint source, destination;
    uint16_t path;
    uint8_t traffic_class; // DSCP and ECN
    uint8_t hop_limit;
    uint32_t wire_bytes;   // what it takes on a link: with UDP, IP and frame
    uint32_t length;       // of the UDP payload
    uint32_t stored_bytes; // of it in bytes[]: all, or the headers if payload is not carried
    bool is_cut;           // travels in fragments, so that links carry it whatever its length
    bool is_corrupt;       // damaged on the way (when payload is not carried, nothing else would tell)
    uint32_t pass;         // later packets that must go on before it is let go
    alb_sim_time delay;    // and then it waits for so long
    alb_sim_time gone_at;  // when its last bit has left the link's queue
    uint8_t bytes[];
};

struct alb_sim_packet_pool {
    struct alb_list free, all; // struct alb_sim_packet; each has room for as much
    uint32_t packet_bytes_max;
    uint64_t outstanding;
};

void alb_sim_packet_pool_init(struct alb_sim_packet_pool *pool, uint32_t packet_bytes_max);
// Ends packets on their way too: their events must not fire any more.
void alb_sim_packet_pool_fini(struct alb_sim_packet_pool *pool);
// Contents are what they were.
struct alb_sim_packet *alb_sim_packet_get(struct alb_sim_packet_pool *pool);
void alb_sim_packet_put(struct alb_sim_packet_pool *pool, struct alb_sim_packet *packet);
struct alb_sim_packet *alb_sim_packet_copy(struct alb_sim_packet_pool *pool, const struct alb_sim_packet *packet);
