// SPDX-License-Identifier: BSD-2-Clause
// A datagram on its way through the virtual network, and the pool that packets come from.
#pragma once

#include "base/addr.h"
#include "base/list.h"
#include "sim/event_heap.h"
#include "wire/csa.h"

struct alb_sim_link;

#define ALB_SIM_PATH_PORT 49152 // path p of a host has this source port + p; but path 0 has the engine's own port
#define ALB_SIM_GAPS_MAX  4
#define ALB_SIM_NOWHERE   0xffffffu
#define ALB_SIM_TRIM_TO   ALB_CSA_TRIMMED_BYTES // of UDP payload, left of a packet that is trimmed

// A stretch of the UDP payload that is not carried.
struct alb_sim_gap {
    uint16_t at, length;
};

// What every hop looks at: one cache line. Those of all packets lie together, apart from their loads: the next packets
// of a thousand hosts are in no cache, and where memory is looked up page by page, they should not be in as many pages.
struct alb_sim_packet {
    struct alb_sim_event event;  // what happens to it next: let go, arrives
    struct alb_sim_packet *next; // in a link's queue, or in the pool
    struct alb_sim_link *on;     // the link it is travelling
    struct alb_sim_link *from;   // the one it came by to the switch that holds it
    uint32_t wire_bytes;         // what it takes on a link: with UDP, IP and frame
    uint32_t flow_hash;          // of addresses and ports: the same for all packets of a path
    uint32_t to : 24;            // number of the host it is for, in a cluster; ALB_SIM_NOWHERE: none
    uint32_t life : 8;           // of the link, when it went on to the wire
    uint8_t traffic_class;       // DSCP and ECN
    uint8_t hop_limit;
    uint8_t path;        // of its sender, or enum alb_sim_control
    bool is_cut : 1;     // travels in fragments where links let it, whatever its length
    bool is_corrupt : 1; // damaged on the way (when payload is not carried, nothing else would tell)
    bool is_trimmed : 1; // a switch had no room for more than its headers, and sends it before others
    bool is_held : 1;    // by a link, until later ones have gone on
    bool is_lost : 1;    // on its way: it takes its time on the wire and does not arrive
    bool is_small : 1;   // has room for headers only
} __attribute__((aligned(64)));

// What only its ends look at, and a link that does something to it.
struct alb_sim_load {
    struct alb_list link; // among those that a link holds back
    struct alb_sim_packet *packet;
    uint32_t pass;      // later packets that must go on before it is let go
    alb_sim_time delay; // and then it waits for so long

    struct alb_endpoint source __attribute__((aligned(64)));
    struct alb_endpoint destination;
    uint32_t length;       // of the UDP payload
    uint32_t stored_bytes; // of it in bytes[]: all, or what lies between the gaps
    uint32_t gap_count;
    struct alb_sim_gap gaps[ALB_SIM_GAPS_MAX];
    uint8_t bytes[];
} __attribute__((aligned(64)));

enum {
    ALB_SIM_FRAME_BYTES = 66,       // on the wire beside a UDP payload: Ethernet with preamble and gap, IPv4, UDP
    ALB_SIM_PACKET_SMALL = 256,     // bytes of room that headers mostly find enough
    ALB_SIM_PACKET_CHUNK = 2 << 20, // of memory for small ones: begins where a huge page may
    ALB_SIM_PACKET_LOAD = sizeof(struct alb_sim_load) + ALB_SIM_PACKET_SMALL,
    ALB_SIM_PACKETS = (ALB_SIM_PACKET_CHUNK - 64) / (64 + ALB_SIM_PACKET_LOAD), // of a chunk
};

// Of a chunk, whose first line says where the next one is, the packets come first, and then their loads; a large packet
// has its load behind it.
static inline struct alb_sim_load *alb_sim_load(const struct alb_sim_packet *packet)
{
    uintptr_t in_chunk = (uintptr_t)packet % ALB_SIM_PACKET_CHUNK, index = in_chunk / sizeof(*packet) - 1;
    if (!packet->is_small)
        return (struct alb_sim_load *)(packet + 1);
    return (struct alb_sim_load *)((uintptr_t)packet - in_chunk + (1 + ALB_SIM_PACKETS) * sizeof(*packet) +
                                   index * ALB_SIM_PACKET_LOAD);
}

struct alb_sim_packet_pool {
    struct alb_sim_packet *free_small, *free_large;
    struct alb_sim_packet *chunk; // of small ones, the last one that has been taken: its first packet,
    uint32_t chunk_used;          // of which so many have been used
    void *chunks;                 // of memory, each begins with a pointer to the next
    uint32_t packet_bytes_max;
    uint64_t outstanding;
    uint64_t memory_bytes;
};

void alb_sim_packet_pool_init(struct alb_sim_packet_pool *pool, uint32_t packet_bytes_max);
// Ends packets on their way too: their events must not fire any more.
void alb_sim_packet_pool_fini(struct alb_sim_packet_pool *pool);
// Contents are what they were. With room for so many bytes.
struct alb_sim_packet *alb_sim_packet_get(struct alb_sim_packet_pool *pool, uint32_t bytes);
void alb_sim_packet_put(struct alb_sim_packet_pool *pool, struct alb_sim_packet *packet);
struct alb_sim_packet *alb_sim_packet_copy(struct alb_sim_packet_pool *pool, const struct alb_sim_packet *packet);
