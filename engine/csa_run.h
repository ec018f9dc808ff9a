// SPDX-License-Identifier: BSD-2-Clause
// Runs: consecutive segments of one long message or answer, each alone in its packet. Their packets differ in a few
// numbers, so all but the first of a burst are built from the one before, and parsed by comparison with it.
#pragma once

#include "engine/csa_packet.h"

// Where the numbers stand that differ: of the packet, and of the frame in it (docs/PROTOCOL.md).
enum {
    ALB_RUN_BTH_PSN = ALB_BTH_SEQUENCE + 1,
    ALB_RUN_FLAGS = 7,
    ALB_RUN_PSN = 8,
    ALB_RUN_INDEX = 12,
    ALB_RUN_TOTAL = 16, // and the rest of the frame's header, which do not
};

// What is left of a message that leaves, from segment k on.
struct alb_csa_rest_out {
    uint32_t k, packets;
    uint32_t segment_bytes; // of all but the last
    const uint8_t *bytes;   // of segment k, and of those behind it
    uint64_t bytes_count;   // as far as they lie in one piece
};

// Packets that continue the one just filled, in the same burst: at most packets_max of them, as long as the burst is
// shorter than *burst_bytes, which becomes more where the message then ends with it, and the stream's turn lasts;
// *data_bytes is what the burst has, and grows. Returns how many there are. The packet is closed.
uint32_t alb_csa_run_out(struct alb_csa_packet *packet, uint32_t packets_max, uint32_t *burst_bytes,
                         uint32_t *data_bytes);

// csa_answer.c: what is left of the answer to a READ. False: the segment with that PSN begins or ends it, or belongs to
// none, or its memory is gone.
bool alb_csa_answer_rest(const struct alb_csa *csa, alb_psn psn, struct alb_csa_rest_out *rest);

// Takes those behind the first of the datagrams, which has been taken already, that continue it in order. Returns how
// many they are; anything unusual is left to the general path.
uint32_t alb_csa_run_in(struct alb_engine *engine, const struct alb_datagram *datagrams, uint32_t count, alb_time now);
