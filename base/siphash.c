// SPDX-License-Identifier: BSD-2-Clause
// SipHash-1-3.
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

static uint64_t rotate_left(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void mix(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] = rotate_left(v[2], 32);
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v);
    v[0] ^= word;
}

uint64_t alb_siphash13(const struct alb_siphash_key *key, const void *bytes, size_t size)
{
    uint64_t v[4] = {
        key->words[0] ^ 0x736f6d6570736575, // "somepseudorandomlygeneratedbytes"
        key->words[1] ^ 0x646f72616e646f6d,
        key->words[0] ^ 0x6c7967656e657261,
        key->words[1] ^ 0x7465646279746573,
    };
    const uint8_t *at = bytes;
    uint64_t word;

    for (size_t rest = size; rest >= 8; rest -= 8, at += 8) {
        memcpy(&word, at, 8);
        absorb(v, le64toh(word));
    }
    word = (uint64_t)size << 56;
    for (size_t i = 0; i < size % 8; i++)
        word |= (uint64_t)at[i] << 8 * i;
    absorb(v, word);

    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
