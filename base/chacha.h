// SPDX-License-Identifier: BSD-2-Clause
// Random numbers that cannot be predicted from the network: ChaCha20 (RFC 8439) over a seed that the driver gives. The
// same seed gives the same numbers. What has been handed out cannot be computed from a later state: every refill
// replaces the key and numbers are erased as they leave (D. J. Bernstein, "Fast-key-erasure random-number generators",
// 2017).
#pragma once

#include "base/types.h"

enum {
    ALB_CHACHA_KEY_BYTES = 32,
    ALB_CHACHA_BLOCK_BYTES = 64,
    ALB_RNG_REFILL_BYTES = 4 * ALB_CHACHA_BLOCK_BYTES,
};

// One block of the ChaCha20 keystream, as RFC 8439 section 2.3 defines it.
void alb_chacha20_block(const uint8_t key[ALB_CHACHA_KEY_BYTES], uint32_t counter, const uint8_t nonce[12],
                        uint8_t block[ALB_CHACHA_BLOCK_BYTES]);

struct alb_rng {
    uint8_t key[ALB_CHACHA_KEY_BYTES];
    uint8_t ready[ALB_RNG_REFILL_BYTES - ALB_CHACHA_KEY_BYTES];
    uint32_t ready_bytes; // the last ones of ready
};

void alb_rng_init(struct alb_rng *rng, const uint8_t seed[ALB_CHACHA_KEY_BYTES]);
void alb_rng_fill(struct alb_rng *rng, void *bytes, size_t size);
uint32_t alb_rng_u32(struct alb_rng *rng);
uint64_t alb_rng_u64(struct alb_rng *rng);

// 0 ... n - 1, all equally likely. n is at least 1.
uint32_t alb_rng_below(struct alb_rng *rng, uint32_t n);
