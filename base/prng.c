// SPDX-License-Identifier: BSD-2-Clause
// xoshiro256** and splitmix64.
#include "base/prng.h"

static uint64_t rotate_left(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void alb_prng_init(struct alb_prng *prng, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        prng->words[i] = splitmix64(&seed);
}

uint64_t alb_prng_u64(struct alb_prng *prng)
{
    uint64_t *s = prng->words;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t alb_prng_below(struct alb_prng *prng, uint64_t n)
{
    alb_assert(n > 0);
    uint64_t unfair = -n % n; // as in alb_rng_below
    unsigned __int128 product;
    do
        product = (unsigned __int128)alb_prng_u64(prng) * n;
    while ((uint64_t)product < unfair);
    return (uint64_t)(product >> 64);
}

bool alb_prng_chance(struct alb_prng *prng, uint32_t per_billion)
{
    return (uint64_t)((unsigned __int128)alb_prng_u64(prng) * 1000000000 >> 64) < per_billion;
}
