// SPDX-License-Identifier: BSD-2-Clause
#include "base/slab.h"

struct page {
    struct alb_list link;
    uint64_t taken; // bit per place
};

_Static_assert(sizeof(struct page) <= ALB_SLAB_HEAD_BYTES, "objects begin behind it");

void alb_slab_init(struct alb_slab *slab, struct alb_buddy *pool, size_t object_bytes, size_t page_bytes)
{
    alb_assert(object_bytes > 0 && page_bytes >= ALB_BUDDY_BLOCK_BYTES_MIN && (page_bytes & (page_bytes - 1)) == 0);
    *slab = (struct alb_slab){
        .pool = pool,
        .object_bytes = (uint32_t)((object_bytes + 7) & ~(size_t)7),
        .page_bytes = (uint32_t)page_bytes,
    };
    slab->places = ALB_MIN((slab->page_bytes - ALB_SLAB_HEAD_BYTES) / slab->object_bytes, ALB_SLAB_PLACES_MAX);
    alb_list_init(&slab->pages);
    alb_list_init(&slab->full);
}

static uint64_t all_places(const struct alb_slab *slab)
{
    return slab->places == 64 ? UINT64_MAX : (1ull << slab->places) - 1;
}

static void *place_at(const struct alb_slab *slab, struct page *page, uint32_t place)
{
    return (char *)page + ALB_SLAB_HEAD_BYTES + place * slab->object_bytes;
}

// A block of the pool is aligned to its size, as seen from the arena.
static struct page *page_of(const struct alb_slab *slab, const void *object, uint32_t *place)
{
    size_t offset = (size_t)((const char *)object - slab->pool->arena);
    struct page *page = (struct page *)(void *)(slab->pool->arena + (offset & ~((size_t)slab->page_bytes - 1)));
    size_t behind = (size_t)((const char *)object - (const char *)page) - ALB_SLAB_HEAD_BYTES;
    alb_assert(behind % slab->object_bytes == 0);
    *place = (uint32_t)(behind / slab->object_bytes);
    alb_assert(*place < slab->places && page->taken >> *place & 1);
    return page;
}

// Puts the page, which is in no list, where it belongs by what is taken of it.
static void file(struct alb_slab *slab, struct page *page)
{
    if (page->taken == 0)
        alb_buddy_put(slab->pool, page, slab->page_bytes);
    else
        alb_list_push_front(page->taken == all_places(slab) ? &slab->full : &slab->pages, &page->link);
}

void *alb_slab_get(struct alb_slab *slab)
{
    struct page *page;
    if (slab->places == 0)
        return NULL;
    if (alb_list_is_empty(&slab->pages)) {
        page = alb_buddy_get(slab->pool, slab->page_bytes);
        if (!page)
            return NULL;
        page->taken = 0;
        alb_list_init(&page->link);
    } else {
        page = ALB_LIST_ENTRY(slab->pages.next, struct page, link);
        alb_list_remove(&page->link);
    }
    uint32_t place = (uint32_t)__builtin_ctzll(~page->taken);
    page->taken |= 1ull << place;
    slab->count++;
    file(slab, page);
    return place_at(slab, page, place);
}

void alb_slab_put(struct alb_slab *slab, void *object)
{
    uint32_t place;
    struct page *page = page_of(slab, object, &place);
    alb_list_remove(&page->link);
    page->taken &= ~(1ull << place);
    slab->count--;
    file(slab, page);
}

static void sift_page(struct alb_slab *slab, struct page *page, bool (*visit)(void *object, void *context),
                      void *context)
{
    for (uint64_t left = page->taken; left; left &= left - 1) {
        uint32_t place = (uint32_t)__builtin_ctzll(left);
        if (!visit(place_at(slab, page, place), context))
            continue;
        page->taken &= ~(1ull << place);
        slab->count--;
    }
    file(slab, page);
}

void alb_slab_sift(struct alb_slab *slab, bool (*visit)(void *object, void *context), void *context)
{
    struct alb_list all, *node;
    alb_list_init(&all);
    while ((node = alb_list_pop(&slab->full)) || (node = alb_list_pop(&slab->pages)))
        alb_list_push_back(&all, node);
    while ((node = alb_list_pop(&all)))
        sift_page(slab, ALB_LIST_ENTRY(node, struct page, link), visit, context);
}

uint32_t alb_slab_cost_bytes(const struct alb_slab *slab)
{
    return slab->places == 0 ? 0 : (slab->page_bytes + slab->places - 1) / slab->places;
}
