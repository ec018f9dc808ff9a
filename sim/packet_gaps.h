// SPDX-License-Identifier: BSD-2-Clause
// Packets that need not carry their payload, only its length: what the engine wrote is stored, with gaps where the
// program's bytes stood. A data centre's packets are then small, and nothing copies what nobody reads.
#pragma once

#include "sim/packet.h"
#include "wire/datagram.h"

// The segment as a packet. Without payload it has gaps, unless it has more pieces than ALB_SIM_GAPS_MAX.
struct alb_sim_packet *alb_sim_packet_of(struct alb_sim_packet_pool *pool, const struct alb_tx *tx,
                                         const struct alb_segment *segment, bool without_payload);
// All of its packet->length bytes: its own, or those put together in scratch, which has room for them. Gaps are filled
// with zeros if asked for; else they show what scratch held.
const uint8_t *alb_sim_packet_bytes(const struct alb_sim_packet *packet, uint8_t *scratch, bool with_zeros);
