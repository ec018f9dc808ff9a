// SPDX-License-Identifier: BSD-2-Clause
// Many small objects of one size, side by side in pages of a buddy pool: without the pool's rounding to powers of two,
// at the price of what stands at the head of each page. A page is taken when there is no free place, and given back
// with its last object.
#pragma once

#include "base/buddy.h"
#include "base/list.h"

#define ALB_SLAB_HEAD_BYTES 32u // of each page
#define ALB_SLAB_PLACES_MAX 64u // objects of a page

struct alb_slab {
    struct alb_buddy *pool;
    struct alb_list pages; // with a free place
    struct alb_list full;
    uint32_t object_bytes, page_bytes, places;
    uint32_t count; // objects
};

// Objects are aligned to 8 bytes. page_bytes: a power of two, 64 or more; pages that hold no object, or a pool that
// gives none, make a slab that is always empty.
void alb_slab_init(struct alb_slab *slab, struct alb_buddy *pool, size_t object_bytes, size_t page_bytes);
// An object whose contents are undefined; NULL: the pool is empty.
void *alb_slab_get(struct alb_slab *slab);
void alb_slab_put(struct alb_slab *slab, void *object);
// Visits every object once; those for which visit says true are put back. visit must not get or put any itself.
void alb_slab_sift(struct alb_slab *slab, bool (*visit)(void *object, void *context), void *context);
// What one object costs, its share of a page included.
uint32_t alb_slab_cost_bytes(const struct alb_slab *slab);
