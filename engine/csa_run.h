// SPDX-License-Identifier: BSD-2-Clause
// Runs: consecutive segments of one long message, each alone in its packet. Their packets differ in a few numbers, so
// all but the first of a burst are made from the one before, and taken by what the one before was.
#pragma once

#include "engine/csa_packet.h"

// Where the numbers stand that differ: of the packet, and of the frame in it (docs/PROTOCOL.md).
enum {
    ALB_RUN_BTH_PSN = 9,
    ALB_RUN_FLAGS = 7,
    ALB_RUN_PSN = 8,
    ALB_RUN_INDEX = 12,
    ALB_RUN_TOTAL = 16, // and the rest of the frame's header, which do not
};

// Packets that continue the one just filled, in the same burst: at most packets_max of them, as long as the burst is
// shorter than burst_bytes; *data_bytes is what it has, and grows. Returns how many there are. The packet is closed.
uint32_t alb_csa_run_out(struct alb_csa_packet *packet, uint32_t packets_max, uint32_t burst_bytes,
                         uint32_t *data_bytes);

// Takes those behind the first of the datagrams, which has been taken already, that continue it in order. Returns how
// many they are; whatever is out of the ordinary is left for others to look at.
uint32_t alb_csa_run_in(struct alb_engine *engine, const struct alb_datagram *datagrams, uint32_t count, alb_time now);
