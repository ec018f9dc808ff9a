// SPDX-License-Identifier: BSD-2-Clause
// Bitmaps over 64-bit words that the caller owns. Bit i is bit i % 64 of word i / 64. Ranges are [from, to). Searches
// end at bits, which need not be a multiple of 64, and then return bits.
#pragma once

#include "base/types.h"

#define ALB_BITMAP_WORDS(bits) (((bits) + 63) / 64)

static inline void alb_bitmap_set(uint64_t *words, uint32_t i)
{
    words[i / 64] |= 1ull << i % 64;
}

static inline void alb_bitmap_clear(uint64_t *words, uint32_t i)
{
    words[i / 64] &= ~(1ull << i % 64);
}

static inline bool alb_bitmap_test(const uint64_t *words, uint32_t i)
{
    return words[i / 64] >> i % 64 & 1;
}

// The first bit at or after from that is 0; bits if there is none.
uint32_t alb_bitmap_find_zero(const uint64_t *words, uint32_t bits, uint32_t from);

// How many bits of [from, to) are 1. An empty or reversed range has none.
uint32_t alb_bitmap_count(const uint64_t *words, uint32_t from, uint32_t to);

// An empty or reversed range changes nothing.
void alb_bitmap_set_range(uint64_t *words, uint32_t from, uint32_t to);
