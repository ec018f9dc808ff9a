// SPDX-License-Identifier: BSD-2-Clause
// A CSA packet as it is built: frames one behind the other, into the driver's batch.
#pragma once

#include "engine/csa.h"
#include "engine/tx.h"

struct alb_csa_packet {
    struct alb_assoc_live *live;
    struct alb_tx_builder *builder;
    struct alb_flow flow; // where no segment says its class, that of the packet before
    bool is_open;
    bool is_whole;  // IP must not cut it
    bool has_class; // a queue pair's traffic class and hop limit are in flow
    uint32_t frames;
    uint32_t charged_bytes; // to the window, by its segments
    uint32_t room_bytes;    // left for frames and the padding between them; of all, whole words
    uint8_t *header;
    alb_psn sequence;
    struct alb_stream_out *filled_by; // whose segment was the last that fitted, and has another; NULL: nobody's
    alb_time now;
};

// Which association's packets, and the path they take.
void alb_csa_packet_init(struct alb_csa_packet *packet, struct alb_assoc_live *live, struct alb_tx_builder *builder,
                         alb_time now);
// False: the batch has no room for a packet.
bool alb_csa_packet_open(struct alb_csa_packet *packet);
// Sends it, or gives it up if it has no frame.
void alb_csa_packet_close(struct alb_csa_packet *packet);

// True if a frame of so many bytes, payload included, fits; a first one always does.
static inline bool alb_csa_packet_fits(const struct alb_csa_packet *packet, uint32_t bytes)
{
    return alb_roce_pad(packet->builder->packet_bytes) + bytes <= packet->room_bytes || packet->frames == 0;
}

// Room for the header of a frame with that much payload behind it. The caller has asked alb_csa_packet_fits; NULL: the
// batch has no room for it.
uint8_t *alb_csa_packet_frame(struct alb_csa_packet *packet, uint32_t header_bytes, uint32_t payload_bytes,
                              uint32_t refs);
// Adds a TXN (struct alb_csa_txn) or a VERDICT (struct alb_csa_verdict), in a further packet if need be. False: the
// batch is full.
bool alb_csa_control(struct alb_csa_packet *packet, enum alb_csa_type type, const void *what);
// Takes the frame begun last back.
void alb_csa_packet_undo(struct alb_csa_packet *packet);
// A segment of that stream leaves with the packet.
void alb_csa_packet_charge(struct alb_csa_packet *packet, struct alb_stream_out *out,
                           const struct alb_csa_segment *segment);
