// SPDX-License-Identifier: BSD-2-Clause
// Switches: where a packet goes on (routes, ECMP or spraying), whether there is room for it (sim/switch_buffer.c), and
// what follows if there is none. Queues, marks and wires are the links' (sim/link.h), which leave a switch by its
// ports.
#pragma once

#include "sim/link.h"
#include "sim/routes.h"
#include "sim/switch_config.h"

struct alb_sim_switch;

// What all switches of a cluster share.
struct alb_sim_switches {
    const struct alb_switch_config *config;
    const struct alb_routes *routes;
    struct alb_sim_packet_pool *pool;
    const struct alb_sim_queue *queue;
};

struct alb_sim_port {
    struct alb_sim_link *out, *in;
    uint64_t ingress_bytes;  // of what came in here and has not left, in the shared buffer
    uint64_t headroom_bytes; // likewise, in the port's own headroom
    uint64_t headroom_bytes_max;
    bool has_paused; // its feeder
};

struct alb_sim_switch_stats {
    uint64_t buffered_bytes_peak, headroom_bytes, headroom_bytes_peak;
    uint64_t trimmed, homeless; // homeless: there is no way
    uint64_t pauses_sent;
};

#define ALB_SIM_NO_LEAF 0x7fffffffu

struct alb_sim_switch {
    struct alb_sim_node node;
    // What every packet needs: a cache line, and the next one too unless its links go ahead.
    const struct alb_sim_switches *shared;
    struct alb_sim_link **outs; // of each port
    uint32_t number;
    uint32_t leaf : 31;      // among the routes' leaves; ALB_SIM_NO_LEAF: it has no hosts
    uint32_t goes_ahead : 1; // all its links do, and the buffer, which has no end, is not counted
    uint64_t salt;
    int64_t uncounted_bytes; // where it goes ahead: after so many more the buffer may be fuller than ever

    uint64_t buffered_bytes;   // in the shared buffer, unless it goes ahead
    uint64_t buffer_bytes_max; // of it: without headroom
    uint32_t turn;             // of spraying
    uint32_t port_count;
    uint64_t fetched_in; // the window in which its links were asked for: both its ends, added up
    struct alb_sim_switch_stats stats;
    struct alb_sim_port *ports; // not looked at without flow control
} __attribute__((aligned(64)));

// Ports have their links afterwards (alb_sim_switch_join), all of them before the first packet.
void alb_sim_switch_init(struct alb_sim_switch *sw, const struct alb_sim_switches *shared, uint32_t number,
                         uint64_t seed);
void alb_sim_switch_fini(struct alb_sim_switch *sw);
void alb_sim_switch_join(struct alb_sim_switch *sw, uint32_t port, struct alb_sim_link *out, struct alb_sim_link *in);
// All ports have their links: divides the buffer, gives the first credits. False: the headroom of its ports is more
// than the buffer.
bool alb_sim_switch_begin(struct alb_sim_switch *sw);
// Of all its ports together, since then.
uint64_t alb_sim_switch_headroom(const struct alb_sim_switch *sw);
// The link of that port has been dead: control frames sent over it may be lost, and are sent again.
void alb_sim_switch_rejoin(struct alb_sim_switch *sw, uint32_t port, alb_sim_time now);

// ---- sim/switch_buffer.c --------------------------------------------------------------------------------------------

// What its ports hold that has not left: the buffer in use.
uint64_t alb_sim_switch_buffered(const struct alb_sim_switch *sw, alb_sim_time now);
// It goes ahead, and uncounted_bytes has run out.
void alb_sim_switch_count(struct alb_sim_switch *sw, alb_sim_time now);
// Room for a packet that came by packet->from and leaves by out: true, and it is taken.
bool alb_sim_switch_admit(struct alb_sim_switch *sw, const struct alb_sim_link *out, struct alb_sim_packet *packet,
                          alb_sim_time now);
// It leaves the buffer.
void alb_sim_switch_release(struct alb_sim_switch *sw, const struct alb_sim_packet *packet, alb_sim_time now);
