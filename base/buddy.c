// SPDX-License-Identifier: BSD-2-Clause
// Which blocks are free is kept in bitmaps beside the arena, never in the blocks: a list through them would touch a
// page for each half that a split leaves over. For each block size there is a bitmap with a bit per block, and above it
// bitmaps whose bits say which words below are not zero, up to a single word; so the lowest free block is found in a
// few steps, and zeros mean "nothing free here", which is what untouched pages say.
#include "base/buddy.h"

#include "base/bitmap.h"

static uint32_t floor_log2(size_t value)
{
    return 63 - (uint32_t)__builtin_clzll(value);
}

// The words of all the bitmaps for that many blocks.
static size_t words_of(size_t blocks)
{
    size_t total = 0;
    do {
        blocks = ALB_BITMAP_WORDS(blocks);
        total += blocks;
    } while (blocks > 1);
    return total;
}

static uint32_t order_count_of(size_t units)
{
    return units == 0 ? 0 : ALB_MIN(floor_log2(units) + 1, (uint32_t)ALB_BUDDY_ORDERS);
}

size_t alb_buddy_bookkeeping_bytes(size_t arena_bytes)
{
    size_t units = arena_bytes / ALB_BUDDY_BLOCK_BYTES_MIN, words = 0;
    for (uint32_t order = 0; order < order_count_of(units); order++)
        words += words_of(units >> order);
    return words * sizeof(uint64_t);
}

static bool is_free(const struct alb_buddy *buddy, uint32_t order, size_t block)
{
    return block < buddy->units >> order && (buddy->free[order][block / 64] >> block % 64 & 1);
}

static void set_free(struct alb_buddy *buddy, uint32_t order, size_t block)
{
    uint64_t *words = buddy->free[order];
    buddy->free_orders |= 1u << order;
    for (size_t blocks = buddy->units >> order;; block /= 64) {
        uint64_t before = words[block / 64];
        words[block / 64] = before | 1ull << block % 64;
        blocks = ALB_BITMAP_WORDS(blocks);
        if (before != 0 || blocks == 1)
            return;
        words += blocks;
    }
}

static void set_taken(struct alb_buddy *buddy, uint32_t order, size_t block)
{
    uint64_t *words = buddy->free[order];
    for (size_t blocks = buddy->units >> order;; block /= 64) {
        words[block / 64] &= ~(1ull << block % 64);
        blocks = ALB_BITMAP_WORDS(blocks);
        if (words[block / 64] != 0)
            return;
        if (blocks == 1)
            break;
        words += blocks;
    }
    buddy->free_orders &= ~(1u << order);
}

// The lowest free block of an order that has one: from the single word at the top down.
static size_t lowest_free(const struct alb_buddy *buddy, uint32_t order)
{
    size_t blocks_of_level[ALB_BUDDY_ORDERS];
    uint32_t levels = 0;
    for (size_t blocks = buddy->units >> order; levels == 0 || blocks > 1; blocks = ALB_BITMAP_WORDS(blocks))
        blocks_of_level[levels++] = blocks;
    const uint64_t *words = buddy->free[order] + words_of(buddy->units >> order);
    size_t block = 0;
    while (levels-- > 0) {
        words -= ALB_BITMAP_WORDS(blocks_of_level[levels]);
        block = block * 64 + (size_t)__builtin_ctzll(words[block]);
    }
    return block;
}

void alb_buddy_init(struct alb_buddy *buddy, void *arena, size_t arena_bytes, void *bookkeeping)
{
    alb_assert((uintptr_t)arena % ALB_BUDDY_BLOCK_BYTES_MIN == 0);
    *buddy = (struct alb_buddy){.arena = arena, .units = arena_bytes / ALB_BUDDY_BLOCK_BYTES_MIN};
    buddy->order_count = order_count_of(buddy->units);
    uint64_t *words = bookkeeping;
    for (uint32_t order = 0; order < buddy->order_count; order++) {
        buddy->free[order] = words;
        words += words_of(buddy->units >> order);
    }
    // The largest blocks first, then what is left behind them: each begins at a multiple of its own size.
    for (size_t unit = 0; unit < buddy->units;) {
        uint32_t order = ALB_MIN(floor_log2(buddy->units - unit), (uint32_t)ALB_BUDDY_ORDERS - 1);
        set_free(buddy, order, unit >> order);
        unit += (size_t)1 << order;
    }
}

// The smallest order whose blocks hold that many bytes.
static uint32_t order_of(size_t bytes)
{
    size_t units = (bytes - 1) / ALB_BUDDY_BLOCK_BYTES_MIN; // one less than needed
    return units == 0 ? 0 : floor_log2(units) + 1;
}

static size_t bytes_of(uint32_t order)
{
    return (size_t)ALB_BUDDY_BLOCK_BYTES_MIN << order;
}

size_t alb_buddy_block_bytes(size_t bytes)
{
    alb_assert(bytes > 0);
    return bytes_of(order_of(bytes));
}

void *alb_buddy_get(struct alb_buddy *buddy, size_t bytes)
{
    alb_assert(bytes > 0);
    uint32_t order = order_of(bytes);
    if (order >= buddy->order_count || buddy->free_orders >> order == 0)
        return NULL;
    uint32_t from = order + (uint32_t)__builtin_ctz(buddy->free_orders >> order);
    size_t block = lowest_free(buddy, from);
    set_taken(buddy, from, block);
    while (from > order) { // keep the lower half, free the upper one
        from--;
        block *= 2;
        set_free(buddy, from, block + 1);
    }
    buddy->used_bytes += bytes_of(order);
    return buddy->arena + block * bytes_of(order);
}

// A block that is free already is so by itself or as a part of a larger one.
static void assert_taken(const struct alb_buddy *buddy, uint32_t order, size_t block)
{
    for (; order < buddy->order_count; order++, block /= 2)
        alb_assert(!is_free(buddy, order, block));
}

void alb_buddy_put(struct alb_buddy *buddy, void *block_address, size_t bytes)
{
    size_t offset = (size_t)((char *)block_address - buddy->arena);
    uint32_t order = order_of(bytes);
    alb_assert(bytes > 0 && order < buddy->order_count && offset % bytes_of(order) == 0);
    size_t block = offset / bytes_of(order);
    alb_assert(block < buddy->units >> order && buddy->used_bytes >= bytes_of(order));
    assert_taken(buddy, order, block);
    buddy->used_bytes -= bytes_of(order);
    for (; order + 1 < buddy->order_count && is_free(buddy, order, block ^ 1); order++, block /= 2)
        set_taken(buddy, order, block ^ 1);
    set_free(buddy, order, block);
}

size_t alb_buddy_used(const struct alb_buddy *buddy)
{
    return buddy->used_bytes;
}
