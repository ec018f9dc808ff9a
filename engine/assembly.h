// SPDX-License-Identifier: BSD-2-Clause
// Puts the packets of a SEND or WRITE together again, in order. RC and UC share it; they differ in what they do about
// trouble.
#pragma once

#include "engine/delivery.h"
#include "engine/inbound.h"

struct alb_assembly {
    bool is_open; // a First has come, its Last has not
    bool is_send;
    struct alb_target target;
    uint64_t offset; // bytes placed so far
};

// Takes the next packet, places its payload and, with a Last or Only, completes the message. After anything but OK and
// RNR the message in progress is lost (alb_assembly_abandon); after RNR nothing has changed and the same packet may
// come again.
enum alb_outcome alb_assembly_add(struct alb_qp *qp, struct alb_assembly *assembly, const struct alb_packet *packet,
                                  alb_time now);

// Forgets the message in progress. A receive it had taken stays taken, for the next message or for alb_inbound_fail.
void alb_assembly_abandon(struct alb_assembly *assembly);
