// SPDX-License-Identifier: BSD-2-Clause
// SipHash-1-3 (J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012, with one and three rounds): a
// hash for tables whose keys an attacker may choose. Without the secret key, colliding inputs cannot be prepared.
#pragma once

#include "base/types.h"

struct alb_siphash_key {
    uint64_t words[2];
};

uint64_t alb_siphash13(const struct alb_siphash_key *key, const void *bytes, size_t size);
