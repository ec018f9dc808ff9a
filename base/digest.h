// SPDX-License-Identifier: BSD-2-Clause
// XXH3-128 (Y. Collet, xxHash 0.8, unseeded), the digest of reflection: it finds what memory, processors and networks
// do by themselves. It is no signature: an attacker can make two inputs with one digest.
//
// Distributions build libxxhash for the oldest processor of the architecture; here the widest vectors that this
// machine has are chosen at the first use. What is chosen changes the speed and never the answer.
#pragma once

#include "base/types.h"

struct alb_digest {
    uint64_t low, high;
};

// A digest in the making, in the caller's memory.
struct alb_digest_state {
    _Alignas(64) uint8_t opaque[576];
};

void alb_digest_begin(struct alb_digest_state *state);
// The next length bytes. How the input is cut into calls does not matter.
void alb_digest_add(struct alb_digest_state *state, const void *bytes, size_t length);
// Of what was added so far; more may follow.
struct alb_digest alb_digest_end(const struct alb_digest_state *state);

// Of all at once.
struct alb_digest alb_digest_of(const void *bytes, size_t length);

static inline bool alb_digest_is_equal(const struct alb_digest *a, const struct alb_digest *b)
{
    return ((a->low ^ b->low) | (a->high ^ b->high)) == 0;
}
