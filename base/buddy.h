// SPDX-License-Identifier: BSD-2-Clause
// A buddy allocator (D. Knuth, The Art of Computer Programming, volume 1, section 2.5) over one arena that its owner
// gives: blocks of 64 bytes times a power of two, halved on demand and joined again when both halves are free. It is
// for state that exists while something is in flight: of the arena and of the bookkeeping, only the pages in use are
// ever touched, so that both can be large, and cost nothing while they are idle.
#pragma once

#include "base/types.h"

enum {
    ALB_BUDDY_BLOCK_BYTES_MIN = 64,
    ALB_BUDDY_ORDERS = 32, // the largest block has 64 << 31 bytes
};

struct alb_buddy {
    char *arena;
    size_t units; // blocks of the smallest size in the arena
    size_t used_bytes;
    uint32_t order_count;
    uint32_t free_orders; // bit k: a block of 64 << k bytes is free
    // For each size which blocks are free: a bitmap, and above it bitmaps of its words.
    uint64_t *free[ALB_BUDDY_ORDERS];
};

// How many bytes of bookkeeping an arena of that size takes: about one in 250.
size_t alb_buddy_bookkeeping_bytes(size_t arena_bytes);

// The arena is not touched. It begins at a multiple of 64 bytes; a block is aligned to its own size as far as the arena
// is. Its size need not be a power of two; a rest under 64 bytes is not used. The bookkeeping is aligned to 8 bytes,
// and all zero.
void alb_buddy_init(struct alb_buddy *buddy, void *arena, size_t arena_bytes, void *bookkeeping);

// A block of at least so many bytes (1 or more), whose contents are undefined; NULL: no block of that size is free.
// Takes the lowest of the smallest blocks that do.
void *alb_buddy_get(struct alb_buddy *buddy, size_t bytes);

// How large the block for so many bytes (1 or more) is. Blocks of an arena in which nothing else is taken are found in
// any order, as long as together they are no larger than it.
size_t alb_buddy_block_bytes(size_t bytes);

// Gives back a block, with the number of bytes that it was asked for with.
void alb_buddy_put(struct alb_buddy *buddy, void *block, size_t bytes);

// What is taken, in whole blocks.
size_t alb_buddy_used(const struct alb_buddy *buddy);
