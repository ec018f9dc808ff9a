// SPDX-License-Identifier: BSD-2-Clause
// Silent corruption on demand: wrong bytes at the places where they come about in real machines, and where no CRC of a
// packet sees them. The places call the functions below with what they hold; where no corruption was asked for that is
// one look at a NULL pointer.
//
//   source    the program's memory changes after the message was posted (and its digest taken). Memory that is not
//             registered for local writing stays as it is, and so does what was posted inline
//   read      it is read wrongly while a packet is made of it: the memory stays right, and the packet's CRC covers the
//             error
//   packet    a packet's payload changes after its CRC has been checked
//   stage     what was staged changes before it is used
//   copy      what is exposed changes while it is copied there
//   misplace  a packet's payload is put at another address of the same memory
//   stale     it is not put anywhere: what was there before stays, as if an old packet had come again
//
// All but the last two flip one bit. Each has a probability for every use of its place: a message (source), a piece of
// a packet's payload (read, packet, misplace, stale), a part of a transaction (stage, copy).
#pragma once

#include "base/prng.h"

enum alb_corrupt {
    ALB_CORRUPT_SOURCE,
    ALB_CORRUPT_READ,
    ALB_CORRUPT_PACKET,
    ALB_CORRUPT_STAGE,
    ALB_CORRUPT_COPY,
    ALB_CORRUPT_MISPLACE,
    ALB_CORRUPT_STALE,
    ALB_CORRUPT_PLACES,
};

enum {
    ALB_CORRUPT_PIECE_BYTES = 64 << 10, // longer ones are read as they are
    ALB_CORRUPT_PIECES = 4,
};

// Parts per billion. All zeros: none.
struct alb_corruption_spec {
    uint32_t chance[ALB_CORRUPT_PLACES];
};

struct alb_corruption {
    struct alb_corruption_spec spec;
    struct alb_prng prng;
    uint64_t *counts; // how often each place was struck
    uint32_t piece_next;
    uint8_t pieces[ALB_CORRUPT_PIECES][ALB_CORRUPT_PIECE_BYTES]; // what was read wrongly
};

// counts: ALB_CORRUPT_PLACES of them, of the caller.
void alb_corruption_init(struct alb_corruption *corruption, const struct alb_corruption_spec *spec, uint64_t seed,
                         uint64_t *counts);
bool alb_corruption_spec_is_none(const struct alb_corruption_spec *spec);

void alb_corruption_flip(struct alb_corruption *corruption, enum alb_corrupt place, void *bytes, uint64_t length);
const uint8_t *alb_corruption_read(struct alb_corruption *corruption, const uint8_t *bytes, uint32_t length);
uint8_t *alb_corruption_aim(struct alb_corruption *corruption, uint8_t *to, uint64_t length, uint8_t *memory,
                            uint64_t memory_bytes);

// ---- for the places; corruption may be NULL -------------------------------------------------------------------------

// Flips a bit of these bytes, or does not.
static inline void alb_corrupt(struct alb_corruption *corruption, enum alb_corrupt place, void *bytes, uint64_t length)
{
    if (alb_unlikely(corruption))
        alb_corruption_flip(corruption, place, bytes, length);
}

// What is read there: the bytes, or a copy that is wrong and good until ALB_CORRUPT_PIECES more have been made.
static inline const uint8_t *alb_corrupt_read(struct alb_corruption *corruption, const uint8_t *bytes, uint32_t length)
{
    return alb_unlikely(corruption) ? alb_corruption_read(corruption, bytes, length) : bytes;
}

// Where length bytes meant for to, within the memory, really go; NULL: nowhere.
static inline uint8_t *alb_corrupt_aim(struct alb_corruption *corruption, uint8_t *to, uint64_t length, uint8_t *memory,
                                       uint64_t memory_bytes)
{
    return alb_unlikely(corruption) ? alb_corruption_aim(corruption, to, length, memory, memory_bytes) : to;
}
