// SPDX-License-Identifier: BSD-2-Clause
// Claims: ranges of regions that are bound by transactions. What two owners claim in a region never overlaps, through
// whatever windows they came; one owner's claims may. Plain WRITEs and atomic operations of peers to a claimed range
// wait (engine/inbound.c).
//
// Two registrations of the same memory know nothing of each other: a program that has memory bound by transactions
// registers it once, and gives rights to parts of it by windows.
#pragma once

#include "engine/region.h"

// In the owner's memory. The owner sets owner and on_gone, once; the rest belongs to the region.
struct alb_claim {
    const void *owner; // not NULL
    // The region is about to be deregistered, moved or given other rights, or the window to be unbound. The memory is
    // still there, the claim is not any more; others of the same owner may be given up from here. May be NULL.
    void (*on_gone)(struct alb_claim *claim);

    struct alb_region *region; // that it was made through; NULL: it is not made
    struct alb_list of_region; // link in its claims
    uint64_t first, past;      // in the region behind it
    struct alb_claim *left, *right;
    uint64_t past_max; // of those below it, and its own
    uint32_t priority;
    bool is_mixed; // they have several owners
};

// Before anything else is done with a claim.
void alb_claim_init(struct alb_claim *claim, const void *owner, void (*on_gone)(struct alb_claim *claim));

// False, and nothing is changed, if the range overlaps a claim of another owner. The range is within the region, or the
// window that is bound; an empty one overlaps nothing. The claim is not made yet.
bool alb_region_claim(struct alb_region *region, struct alb_claim *claim, uint64_t va, uint64_t length);
// Nothing happens to one that is not made.
void alb_region_unclaim(struct alb_claim *claim);
// True if any of the range is claimed, by any owner.
bool alb_region_is_claimed(struct alb_region *region, uint64_t va, uint64_t length);

// Every claim made through this region or window ends, and its owner is called.
void alb_region_claims_are_gone(struct alb_region *region);
