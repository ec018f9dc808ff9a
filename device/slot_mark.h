// SPDX-License-Identifier: BSD-2-Clause
// By what the holder of port 4791 knows that UDP port 4791 + slot of an address is an Albedo process's, so that nothing
// is passed on to other programs that have such a port: a Unix socket with an abstract name. It is there for all users
// of the network namespace, whatever other namespaces they are in, and goes with its process. Slot 0 needs none, since
// nothing is passed on to port 4791.
#pragma once

#include "device/slot.h"

// The descriptor, which is all there is of it; -1 with errno. EADDRINUSE: there is one.
int alb_slot_mark_open(const struct alb_addr *addr, uint8_t slot);

#define ALB_SLOT_MARK_SEEN_NS ALB_NS_PER_MS // it is not looked for anew

// What was seen of the slots. All zero: nothing yet.
struct alb_slot_marks {
    struct alb_slot_mark_seen {
        alb_time until;
        struct alb_addr addr;
        bool is_there;
    } seen[ALB_SLOTS];
};

// True if that slot has a mark at the address, or it cannot be told, as without a descriptor to look with.
bool alb_slot_marks_has(struct alb_slot_marks *marks, const struct alb_addr *addr, uint8_t slot, alb_time now);
