// SPDX-License-Identifier: BSD-2-Clause
// Searching, counting and filling bitmaps a word at a time.
#include "base/bitmap.h"

uint32_t alb_bitmap_find_zero(const uint64_t *words, uint32_t bits, uint32_t from)
{
    if (from >= bits)
        return bits;
    uint32_t last = (bits - 1) / 64;
    uint32_t i = from / 64;
    uint64_t zeros = ~words[i] & UINT64_MAX << from % 64;
    while (zeros == 0 && i < last)
        zeros = ~words[++i];
    if (zeros == 0)
        return bits;
    return ALB_MIN(bits, i * 64 + (uint32_t)__builtin_ctzll(zeros));
}

// The bits of word i that belong to [from, to), which reaches into that word.
static uint64_t mask_of(uint32_t i, uint32_t from, uint32_t to)
{
    uint64_t mask = UINT64_MAX;
    if (i == from / 64)
        mask &= UINT64_MAX << from % 64;
    if (i == (to - 1) / 64)
        mask &= UINT64_MAX >> (63 - (to - 1) % 64);
    return mask;
}

uint32_t alb_bitmap_count(const uint64_t *words, uint32_t from, uint32_t to)
{
    uint32_t count = 0;
    if (from >= to)
        return 0;
    for (uint32_t i = from / 64; i <= (to - 1) / 64; i++)
        count += (uint32_t)__builtin_popcountll(words[i] & mask_of(i, from, to));
    return count;
}

void alb_bitmap_set_range(uint64_t *words, uint32_t from, uint32_t to)
{
    if (from >= to)
        return;
    for (uint32_t i = from / 64; i <= (to - 1) / 64; i++)
        words[i] |= mask_of(i, from, to);
}
