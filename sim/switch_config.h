// SPDX-License-Identifier: BSD-2-Clause
// What a switch does with packets: one shared buffer, and the ways to live with its end.
#pragma once

#include "sim/time.h"

enum alb_flow_control {
    ALB_FLOW_CONTROL_NONE,    // a packet without room is dropped (or trimmed)
    ALB_FLOW_CONTROL_PFC,     // priority flow control (IEEE 802.1Qbb), one lossless class: the upstream port is paused
    ALB_FLOW_CONTROL_CREDITS, // as in InfiniBand: a packet leaves only if the next buffer has room for it
};

enum alb_spread {
    ALB_SPREAD_ECMP,  // by a hash of addresses and UDP ports: a flow's path keeps its order
    ALB_SPREAD_SPRAY, // each packet to the next of the equal ports, in turn from a random one
};

struct alb_switch_config {
    uint64_t buffer_bytes; // of one switch, shared by its ports; 0: no limit
    // Of bytes that wait for one port, so that it may hold alpha times what is free of the shared buffer (A. K.
    // Choudhury, E. L. Hahne, 1998). In sixteenths: 16 is alpha = 1. 0: no such limit.
    uint32_t alpha_16ths;
    uint64_t port_bytes_max; // that may wait for one port, and be left on its wire if links go ahead; 0: no such limit

    // Random early detection (S. Floyd, V. Jacobson, 1993) on the queue as it is, marks only: never below min, always
    // above max, in between with a chance that grows to mark_per_million. max 0: no marks.
    uint64_t mark_min_bytes, mark_max_bytes;
    uint32_t mark_per_million;

    enum alb_flow_control flow_control;
    // PFC: an ingress port that fills more than this of the shared buffer pauses its link. 0: alpha as above, applied
    // to the ingress port. It lets go below xoff - xon_gap.
    uint64_t pfc_xoff_bytes, pfc_xon_gap_bytes;
    // Kept for each ingress port beside the shared part, for what comes until the pause takes effect. 0: as much as
    // its link needs (two delays, two packets each way and a pause frame).
    uint64_t pfc_headroom_bytes;
    uint64_t credit_bytes; // CREDITS: buffer of each ingress port; 0: as its link needs to be kept full, twice

    uint32_t packet_wire_bytes; // of the longest packet that hosts send: what a link needs is reckoned from it

    bool trims;              // a packet without room loses its payload and goes on before all others
    uint64_t trim_bytes_max; // of headers that may wait for one port
    enum alb_spread spread;
    alb_sim_time latency; // from the last bit in to the first bit out, at least
};

// 100 Gb/s, 12 us: no limit but 5 BDP a port, no marks, ECMP.
void alb_switch_config_default(struct alb_switch_config *config);
