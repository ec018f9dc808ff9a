// SPDX-License-Identifier: BSD-2-Clause
// Version words: how readers in the process of a transactional region see it whole while the engine changes it.
//
// A word stands for one stride of the region. It is even while the stride is stable and odd while it is being changed;
// whenever a change is over it has grown. In an odd word the lowest 20 bits are 2n-1 for n changes under way, since
// transactions in place may share a stride: the word is even again only when the last of them lets readers in. The 44
// bits above are the number of changes.
//
// There is one writer, the holder of the engine. Readers run beside it, in any thread, and write nothing:
//
//     struct alb_versions_read read;
//     do {
//         while (!alb_versions_read_begin(words, stride, offset, length, &read))
//             ...; // being changed, for as long as a network takes if the transaction is in place
//         copy what is wanted;
//     } while (alb_versions_read_retry(&read));
//
// What is copied before the last line may be torn and must not be followed (pointers, lengths) or believed. Order: the
// writer makes the word odd, then comes a release fence, then the data, then the even word with release order. A reader
// that has seen any byte of the new data therefore finds, behind an acquire fence, the word odd or grown: H.-J. Boehm,
// "Can seqlocks get along with programming language memory models?", 2012. In terms of C the data race with such a
// reader exists all the same, as in every seqlock whose data are plain memory; on the processors that Albedo runs on
// aligned loads and stores of up to 8 bytes are indivisible, and the fences are what the compiler must not move them
// across.
#pragma once

#include "engine/region.h"

#define ALB_VERSION_STEP (1ull << 20) // what one change adds

// The thread sanitizer knows no fences. It checks that there are no races, not the order that a processor may choose.
static inline void alb_versions_fence(memory_order order)
{
#ifdef __SANITIZE_THREAD__
    (void)order;
#else
    atomic_thread_fence(order);
#endif
}

// ---- readers --------------------------------------------------------------------------------------------------------

struct alb_versions_read {
    const _Atomic uint64_t *words;
    uint64_t count;
    uint64_t sum; // of the words when it began: they only grow from there
};

// Begins to read length bytes from offset of the region. False while any of them is being changed.
static inline bool alb_versions_read_begin(const _Atomic uint64_t *words, uint64_t stride, uint64_t offset,
                                           uint64_t length, struct alb_versions_read *read)
{
    uint64_t first = offset / stride;
    uint64_t count = length ? (offset + length - 1) / stride - first + 1 : 0;
    *read = (struct alb_versions_read){.words = words + first, .count = count};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t word = atomic_load_explicit(&read->words[i], memory_order_acquire);
        if (word & 1)
            return false;
        read->sum += word;
    }
    return true;
}

// True if what was read since may be of several versions.
static inline bool alb_versions_read_retry(const struct alb_versions_read *read)
{
    uint64_t sum = 0;
    alb_versions_fence(memory_order_acquire);
    for (uint64_t i = 0; i < read->count; i++)
        sum += atomic_load_explicit(&read->words[i], memory_order_relaxed);
    return sum != read->sum;
}

// ---- the writer -----------------------------------------------------------------------------------------------------

static inline bool alb_region_is_transactional(struct alb_region *region)
{
    return alb_region_root(region)->versions != NULL;
}

// Holds the readers of a range out, until the same range lets them in again; a range may be held more than once, up to
// half a million times. Nothing happens in a region that is not transactional. The range is within the region, or
// within a window that is bound.
void alb_region_hold_readers(struct alb_region *region, uint64_t va, uint64_t length);
void alb_region_let_readers(struct alb_region *region, uint64_t va, uint64_t length);
// True while readers of any of it are held out.
bool alb_region_holds_readers(struct alb_region *region, uint64_t va, uint64_t length);
