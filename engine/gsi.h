// SPDX-License-Identifier: BSD-2-Clause
// Queue pair 1 (or 3, configured), the general services interface: management datagrams out of a bounded ring and into
// the connection manager. What does not fit the ring is lost as on the network, and a sender that waits for an answer
// sends it again.
#pragma once

#include "engine/delivery.h"
#include "wire/cm.h"

// The part of a queue pair number that names such a queue pair in whatever slot.
#define ALB_GSI_INDEX_MASK 0xffffu

struct alb_gsi_mad {
    struct alb_flow flow;
    alb_qpn qpn; // destination
    alb_qpn src_qpn;
    uint8_t bytes[ALB_MAD_BYTES];
};

// Ring indexes run over all of uint32_t: done <= sent <= queued.
struct alb_gsi {
    struct alb_source source;
    struct alb_gsi_mad *ring;
    uint32_t capacity; // a power of two
    uint32_t queued;
    uint32_t sent; // handed to the driver, which may refer to it until it comes back
    uint32_t done;
    alb_psn psn;
};

// ENOMEM.
int alb_gsi_init(struct alb_gsi *gsi, struct alb_engine *engine, uint32_t capacity);
void alb_gsi_fini(struct alb_gsi *gsi, struct alb_engine *engine);

// Queues a message. False if the ring is full.
bool alb_gsi_send(struct alb_engine *engine, const struct alb_av *av, alb_qpn qpn,
                  const struct alb_cm_message *message);

// A packet for that queue pair of this slot, or of no slot in particular.
enum alb_drop alb_gsi_rx(struct alb_engine *engine, const struct alb_packet *packet, alb_time now);
