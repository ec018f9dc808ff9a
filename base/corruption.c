// SPDX-License-Identifier: BSD-2-Clause
#include "base/corruption.h"

#include <string.h>

void alb_corruption_init(struct alb_corruption *corruption, const struct alb_corruption_spec *spec, uint64_t seed,
                         uint64_t *counts)
{
    corruption->spec = *spec;
    corruption->counts = counts;
    corruption->piece_next = 0;
    alb_prng_init(&corruption->prng, seed);
}

bool alb_corruption_spec_is_none(const struct alb_corruption_spec *spec)
{
    for (uint32_t i = 0; i < ALB_CORRUPT_PLACES; i++)
        if (spec->chance[i])
            return false;
    return true;
}

// Decides, and counts.
static bool strikes(struct alb_corruption *corruption, enum alb_corrupt place)
{
    bool strikes = alb_prng_chance(&corruption->prng, corruption->spec.chance[place]);
    // One writer, and readers beside it.
    uint64_t *count = &corruption->counts[place];
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + strikes, __ATOMIC_RELAXED);
    return strikes;
}

static void flip(struct alb_corruption *corruption, uint8_t *bytes, uint64_t length)
{
    uint64_t bit = alb_prng_below(&corruption->prng, 8 * length);
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

void alb_corruption_flip(struct alb_corruption *corruption, enum alb_corrupt place, void *bytes, uint64_t length)
{
    if (length > 0 && strikes(corruption, place))
        flip(corruption, bytes, length);
}

const uint8_t *alb_corruption_read(struct alb_corruption *corruption, const uint8_t *bytes, uint32_t length)
{
    if (length == 0 || length > ALB_CORRUPT_PIECE_BYTES || !strikes(corruption, ALB_CORRUPT_READ))
        return bytes;
    uint8_t *piece = corruption->pieces[corruption->piece_next++ % ALB_CORRUPT_PIECES];
    memcpy(piece, bytes, length);
    flip(corruption, piece, length);
    return piece;
}

// Anywhere else in the memory.
static uint8_t *misplace(struct alb_corruption *corruption, uint8_t *to, uint64_t length, uint8_t *memory,
                         uint64_t memory_bytes)
{
    uint64_t places = memory_bytes - length, meant = (uint64_t)(to - memory);
    uint64_t offset = alb_prng_below(&corruption->prng, places);
    return memory + offset + (offset >= meant);
}

uint8_t *alb_corruption_aim(struct alb_corruption *corruption, uint8_t *to, uint64_t length, uint8_t *memory,
                            uint64_t memory_bytes)
{
    if (length == 0)
        return to;
    if (strikes(corruption, ALB_CORRUPT_STALE))
        return NULL;
    if (memory_bytes > length && strikes(corruption, ALB_CORRUPT_MISPLACE))
        return misplace(corruption, to, length, memory, memory_bytes);
    return to;
}
