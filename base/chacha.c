// SPDX-License-Identifier: BSD-2-Clause
// ChaCha20 and the generator over it.
#include "base/chacha.h"

#include <string.h>

static uint32_t load_le32(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void store_le32(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t rotate_left(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static void quarter_round(uint32_t x[16], int a, int b, int c, int d)
{
    x[a] += x[b];
    x[d] = rotate_left(x[d] ^ x[a], 16);
    x[c] += x[d];
    x[b] = rotate_left(x[b] ^ x[c], 12);
    x[a] += x[b];
    x[d] = rotate_left(x[d] ^ x[a], 8);
    x[c] += x[d];
    x[b] = rotate_left(x[b] ^ x[c], 7);
}

void alb_chacha20_block(const uint8_t key[ALB_CHACHA_KEY_BYTES], uint32_t counter, const uint8_t nonce[12],
                        uint8_t block[ALB_CHACHA_BLOCK_BYTES])
{
    uint32_t start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}; // "expand 32-byte k"
    uint32_t x[16];

    for (int i = 0; i < 8; i++)
        start[4 + i] = load_le32(key + 4 * i);
    start[12] = counter;
    for (int i = 0; i < 3; i++)
        start[13 + i] = load_le32(nonce + 4 * i);

    memcpy(x, start, sizeof(x));
    for (int i = 0; i < 10; i++) {
        for (int column = 0; column < 4; column++)
            quarter_round(x, column, 4 + column, 8 + column, 12 + column);
        for (int column = 0; column < 4; column++)
            quarter_round(x, column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4);
    }
    for (int i = 0; i < 16; i++)
        store_le32(block + 4 * i, x[i] + start[i]);
}

static void refill(struct alb_rng *rng)
{
    static const uint8_t nonce[12];
    uint8_t blocks[ALB_RNG_REFILL_BYTES];

    for (uint32_t i = 0; i < ALB_RNG_REFILL_BYTES / ALB_CHACHA_BLOCK_BYTES; i++)
        alb_chacha20_block(rng->key, i, nonce, blocks + i * ALB_CHACHA_BLOCK_BYTES);
    memcpy(rng->key, blocks, sizeof(rng->key));
    memcpy(rng->ready, blocks + sizeof(rng->key), sizeof(rng->ready));
    rng->ready_bytes = sizeof(rng->ready);
    explicit_bzero(blocks, sizeof(blocks));
}

void alb_rng_init(struct alb_rng *rng, const uint8_t seed[ALB_CHACHA_KEY_BYTES])
{
    memset(rng, 0, sizeof(*rng));
    memcpy(rng->key, seed, sizeof(rng->key));
}

void alb_rng_fill(struct alb_rng *rng, void *bytes, size_t size)
{
    uint8_t *to = bytes;
    while (size > 0) {
        if (rng->ready_bytes == 0)
            refill(rng);
        size_t part = ALB_MIN(size, (size_t)rng->ready_bytes);
        uint8_t *from = rng->ready + sizeof(rng->ready) - rng->ready_bytes;
        memcpy(to, from, part);
        explicit_bzero(from, part);
        rng->ready_bytes -= (uint32_t)part;
        to += part;
        size -= part;
    }
}

uint32_t alb_rng_u32(struct alb_rng *rng)
{
    uint8_t bytes[4];
    alb_rng_fill(rng, bytes, sizeof(bytes));
    return load_le32(bytes);
}

uint64_t alb_rng_u64(struct alb_rng *rng)
{
    uint8_t bytes[8];
    alb_rng_fill(rng, bytes, sizeof(bytes));
    return load_le32(bytes) | (uint64_t)load_le32(bytes + 4) << 32;
}

uint32_t alb_rng_below(struct alb_rng *rng, uint32_t n)
{
    alb_assert(n > 0);
    // The high half of a product is fair once the few low halves that would favour some results are drawn again
    // (D. Lemire, "Fast random integer generation in an interval", 2019).
    uint32_t unfair = -n % n;
    uint64_t product;
    do
        product = (uint64_t)alb_rng_u32(rng) * n;
    while ((uint32_t)product < unfair);
    return (uint32_t)(product >> 32);
}
