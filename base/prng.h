// SPDX-License-Identifier: BSD-2-Clause
// Fast reproducible random numbers for faults, tests and simulations: xoshiro256** seeded by splitmix64 (D. Blackman,
// S. Vigna). Some of them are enough to predict the rest: keys, QPNs and PSNs come from base/chacha.h.
#pragma once

#include "base/types.h"

struct alb_prng {
    uint64_t words[4];
};

// All seeds are good, 0 too.
void alb_prng_init(struct alb_prng *prng, uint64_t seed);

uint64_t alb_prng_u64(struct alb_prng *prng);

// 0 ... n - 1, all equally likely. n is at least 1.
uint64_t alb_prng_below(struct alb_prng *prng, uint64_t n);

// Draws one number, whatever the chance: 0 is never true, 1,000,000,000 (or more) always.
bool alb_prng_chance(struct alb_prng *prng, uint32_t per_billion);
