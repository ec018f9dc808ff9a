// SPDX-License-Identifier: BSD-2-Clause
// Faults on demand: which datagrams of a link are lost, doubled, overtaken, damaged or late. This file only decides;
// the device (between engine and socket) and the simulator's links carry the verdicts out, so both mean the same by the
// same text.
//
// The text is a list such as "loss=1%,duplicate=0.1%,reorder=1%,corrupt=0.01%,delay=50us..1ms", any part of it in any
// order:
//   loss       the datagram disappears
//   duplicate  it arrives twice
//   reorder    1 to ALB_FAULTS_PASS_MAX datagrams that are sent after it arrive before it
//   corrupt    one bit of it is flipped
//   delay      every copy is late by a span drawn evenly from the range (one duration: always by that). Copies with
//              different delays overtake each other; a single duration keeps the order
//   source, read, packet, stage, copy, misplace, stale
//              bytes go wrong where no datagram is any more, or not yet (base/corruption.h, which carries that out)
// Probabilities are taken for each datagram anew and independently of each other. "" and "none" mean no faults.
#pragma once

#include "base/corruption.h"

#define ALB_FAULTS_PASS_MAX     4
#define ALB_FAULTS_HOLD_NS_MAX  ALB_NS_PER_MS       // how long a datagram is held back at most for others to pass
#define ALB_FAULTS_DELAY_NS_MAX (10 * ALB_NS_PER_S) // the longest delay that may be asked for
#define ALB_FAULTS_TEXT_MAX     384
#define ALB_FAULTS_ERROR_MAX    320 // room for every message of alb_faults_parse()

// Probabilities are parts per billion. All zeros: no faults.
struct alb_faults_spec {
    uint32_t loss;
    uint32_t duplicate;
    uint32_t reorder;
    uint32_t corrupt;
    alb_time delay_ns_min;
    alb_time delay_ns_max;
    struct alb_corruption_spec corruption;
};

// True and *spec set, or false, *spec unchanged, and one line for the user in error: what is wrong and what is
// accepted.
bool alb_faults_parse(const char *text, struct alb_faults_spec *spec, char *error, size_t error_size);

// Writes text that alb_faults_parse() reads back to the same spec, "none" for no faults, and returns it.
char *alb_faults_format(const struct alb_faults_spec *spec, char text[ALB_FAULTS_TEXT_MAX]);

// Nothing happens to datagrams.
static inline bool alb_faults_spec_spares_datagrams(const struct alb_faults_spec *spec)
{
    return (spec->loss | spec->duplicate | spec->reorder | spec->corrupt | spec->delay_ns_max) == 0;
}

static inline bool alb_faults_spec_is_none(const struct alb_faults_spec *spec)
{
    return alb_faults_spec_spares_datagrams(spec) && alb_corruption_spec_is_none(&spec->corruption);
}

// Counted in datagrams that were decided on. A lost one counts as lost and as nothing else.
struct alb_faults {
    struct alb_faults_spec spec;
    struct alb_prng prng;
    uint64_t datagrams;
    uint64_t lost;
    uint64_t duplicated;
    uint64_t reordered;
    uint64_t corrupted;
    uint64_t delayed;
};

// What becomes of one datagram. Copy 0 is the original, copy 1 (if any) its duplicate, which is neither held nor
// damaged.
struct alb_fault_verdict {
    bool is_lost;
    bool is_corrupt;
    uint8_t copies;       // 0 if lost, else 1 or 2
    uint32_t corrupt_bit; // of copy 0, if is_corrupt: bit corrupt_bit % 8 of byte corrupt_bit / 8
    // Copy 0 is held back until so many later datagrams of the link have gone on (lost ones do not count), yet no
    // longer than ALB_FAULTS_HOLD_NS_MAX; 0: it is not held. Its delay begins when it is let go.
    uint32_t pass;
    alb_time delay_ns[2]; // of each copy
};

void alb_faults_init(struct alb_faults *faults, const struct alb_faults_spec *spec, uint64_t seed);

// Decides on the next datagram of the link, of so many bytes, less than 2^29 (an empty one cannot be damaged). The
// verdicts follow from seed, spec and the sequence of sizes alone. Every call draws the same number of random numbers,
// so that changing one option leaves the others' choices where they were (but for what a lost datagram cannot suffer
// any more).
struct alb_fault_verdict alb_faults_decide(struct alb_faults *faults, uint32_t datagram_bytes);
