// SPDX-License-Identifier: BSD-2-Clause
// Which process slot a message to queue pair 1 or 3 is for. A request names a service, and the claims say which slot
// listens for it; everything else names a communication id, whose high 8 bits are the slot of the process that made it.
#pragma once

#include "base/addr.h"
#include "base/types.h"

// A lookup of a claim is a dozen of system calls, and anybody may send requests. So a listener that was found is
// remembered for a moment; that there is none is not, since one may come. And of those that nothing is remembered of so
// many are looked up in a period.
#define ALB_GSI_FOUND     64
#define ALB_GSI_FOUND_NS  (10 * ALB_NS_PER_MS)
#define ALB_GSI_LOOKUPS   200
#define ALB_GSI_PERIOD_NS (100 * ALB_NS_PER_MS)

struct alb_gsi_found {
    alb_time until;
    uint64_t service_id;
    struct alb_addr local;
    uint8_t gsi_index;
    uint8_t slot;
};

// All zero: nothing was looked up yet.
struct alb_gsi_finder {
    alb_time period_began;
    uint32_t lookups;                          // in this period
    bool has_complained;                       // that nothing can be looked up
    struct alb_gsi_found found[ALB_GSI_FOUND]; // by service
};

enum alb_gsi_place {
    ALB_GSI_HOLDER, // whoever has the port: it is no such message, names no id, or names a service without a listener
    ALB_GSI_SLOT,
    ALB_GSI_UNKNOWN, // it cannot be told now, for want of descriptors, or there are too many; who sent it asks again
};

// bytes: a datagram as it came to port 4791 of the address local, with its ICRC.
enum alb_gsi_place alb_gsi_slot(struct alb_gsi_finder *finder, const uint8_t *bytes, uint32_t length,
                                const struct alb_addr *local, alb_time now, uint8_t *slot);
