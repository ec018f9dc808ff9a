// SPDX-License-Identifier: BSD-2-Clause
// What a receiver does with the segments of a SEND or a WRITE. Reliable and unreliable queue pairs share it; they
// differ in which segments they take, and in what they do about trouble.
#pragma once

#include "engine/inbound.h"
#include "wire/csa.h"

#define ALB_CSA_MESSAGE_PACKETS_MAX (1 << 22) // half the PSN space must tell old from new

static inline bool alb_csa_uses_receive(uint8_t op)
{
    return op == ALB_CSA_SEND || op == ALB_CSA_SEND_IMM || op == ALB_CSA_SEND_INV || op == ALB_CSA_WRITE_IMM;
}

// Segments of its message; 0: its numbers contradict each other.
uint32_t alb_csa_message_packets(const struct alb_csa_segment *segment);
// The message of that segment begins. RNR if it needs a receive and there is none.
enum alb_outcome alb_csa_message_begin(struct alb_qp *qp, const struct alb_csa_segment *segment,
                                       struct alb_target *target);
// Puts its payload in place; a message's last segment comes last. RNR: a WRITE with immediate needs a receive.
enum alb_outcome alb_csa_message_place(struct alb_qp *qp, const struct alb_csa_segment *segment, uint32_t offset,
                                       const struct alb_target *target);
// All of it is in place.
enum alb_outcome alb_csa_message_end(struct alb_qp *qp, const struct alb_csa_segment *last, alb_time now);
