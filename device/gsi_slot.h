// SPDX-License-Identifier: BSD-2-Clause
// Which process slot a message to queue pair 1 or 3 is for. A request names a service, and the claims say which slot
// listens for it; everything else names a communication id, whose high 8 bits are the slot of the process that made it.
#pragma once

#include "base/addr.h"

enum alb_gsi_place {
    ALB_GSI_HOLDER, // whoever has the port: it is no such message, names no id, or names a service without a listener
    ALB_GSI_SLOT,
    ALB_GSI_UNKNOWN, // it cannot be told now for want of descriptors; who sent it will ask again
};

// bytes: a datagram as it came to port 4791 of the address local, its ICRC not yet checked.
enum alb_gsi_place alb_gsi_slot(const uint8_t *bytes, uint32_t length, const struct alb_addr *local, uint8_t *slot);
