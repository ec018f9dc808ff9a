// SPDX-License-Identifier: BSD-2-Clause
#include "sim/event_pages.h"

#include "sim/fetch.h"
#include "sim/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_SLOTS = ALB_SIM_CHUNK_SLOTS,
    CHUNK_SHIFT = 4, // a place in a page is its chunk's number, shifted, and the slot's
    CHUNK_NONE = UINT32_MAX,
    CHUNKS_MIN = 64,
};

void alb_sim_pages_init(struct alb_sim_pages *pages)
{
    *pages = (struct alb_sim_pages){.chunk_free = CHUNK_NONE};
    for (uint32_t i = 0; i < ALB_SIM_DAYS; i++)
        pages->page[i].chunk = CHUNK_NONE;
}

void alb_sim_pages_fini(struct alb_sim_pages *pages)
{
    free(pages->chunks);
    pages->chunks = NULL;
}

static uint32_t get_chunk(struct alb_sim_pages *pages)
{
    uint32_t number = pages->chunk_free;
    if (number != CHUNK_NONE) {
        pages->chunk_free = pages->chunks[number].next;
        return number;
    }
    if (pages->chunk_count == pages->chunk_capacity) {
        uint32_t capacity = ALB_MAX(2 * pages->chunk_capacity, (uint32_t)CHUNKS_MIN);
        struct alb_sim_chunk *chunks = alb_sim_big(capacity * sizeof(*chunks));
        alb_assert(capacity <= 1u << (32 - CHUNK_SHIFT - 1));
        if (pages->chunk_count)
            memcpy(chunks, pages->chunks, pages->chunk_count * sizeof(*chunks));
        free(pages->chunks);
        pages->chunks = chunks;
        pages->chunk_capacity = capacity;
    }
    return pages->chunk_count++;
}

static void put_chunk(struct alb_sim_pages *pages, uint32_t number)
{
    pages->chunks[number].next = pages->chunk_free;
    pages->chunk_free = number;
}

// Slots of the page's first chunk that are used; the page is not empty.
static uint32_t first_used(const struct alb_sim_page *page)
{
    return (page->count - 1) % CHUNK_SLOTS + 1;
}

void alb_sim_page_put(struct alb_sim_pages *pages, uint32_t number, struct alb_sim_event *event, alb_sim_time at,
                      uint64_t tie, uint32_t node)
{
    struct alb_sim_page *page = &pages->page[number];
    uint32_t used = page->count ? first_used(page) : CHUNK_SLOTS;
    if (used == CHUNK_SLOTS) {
        uint32_t chunk = get_chunk(pages);
        pages->chunks[chunk].next = page->chunk;
        page->chunk = chunk;
        used = 0;
    }
    if (page->count++ == 0)
        pages->used[number / 64] |= 1ull << number % 64;
    struct alb_sim_slot *slot = &pages->chunks[page->chunk].slots[used];
    event->keeper = number;
    event->place = page->chunk << CHUNK_SHIFT | used;
    slot->at = at;
    slot->tie = tie;
    slot->event = event;
    slot->node = node;
    pages->count++;
}

// The last one of the first chunk takes the place that becomes free.
void alb_sim_page_remove(struct alb_sim_pages *pages, uint32_t number, uint32_t place)
{
    struct alb_sim_page *page = &pages->page[number];
    struct alb_sim_chunk *first = &pages->chunks[page->chunk];
    uint32_t last = first_used(page) - 1;
    struct alb_sim_slot *slot = &pages->chunks[place >> CHUNK_SHIFT].slots[place % (1u << CHUNK_SHIFT)];
    slot->event->place = ALB_SIM_UNSCHEDULED;
    if (slot != &first->slots[last]) {
        *slot = first->slots[last];
        slot->event->place = place;
    }
    page->count--;
    pages->count--;
    if (last == 0) {
        uint32_t chunk = page->chunk;
        page->chunk = first->next;
        put_chunk(pages, chunk);
    }
    if (page->count == 0)
        pages->used[number / 64] &= ~(1ull << number % 64);
}

void alb_sim_page_take(struct alb_sim_pages *pages, uint32_t number, struct alb_sim_slot *slots)
{
    struct alb_sim_page *page = &pages->page[number];
    uint32_t used = first_used(page), end = page->count;
    while (page->chunk != CHUNK_NONE) {
        uint32_t chunk = page->chunk;
        end -= used;
        memcpy(&slots[end], pages->chunks[chunk].slots, used * sizeof(*slots));
        used = CHUNK_SLOTS;
        page->chunk = pages->chunks[chunk].next;
        put_chunk(pages, chunk);
    }
    pages->count -= page->count;
    page->count = 0;
    pages->used[number / 64] &= ~(1ull << number % 64);
}

uint32_t alb_sim_pages_next(const struct alb_sim_pages *pages, uint32_t from)
{
    uint32_t word = from / 64;
    uint64_t bits = pages->used[word] & ~0ull << from % 64;
    while (bits == 0) {
        word = (word + 1) % (ALB_SIM_DAYS / 64);
        bits = pages->used[word];
    }
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

alb_sim_time alb_sim_page_earliest(const struct alb_sim_pages *pages, uint32_t number)
{
    alb_sim_time at = ALB_SIM_NEVER;
    uint32_t used = first_used(&pages->page[number]);
    for (uint32_t chunk = pages->page[number].chunk; chunk != CHUNK_NONE; chunk = pages->chunks[chunk].next) {
        for (uint32_t i = 0; i < used; i++)
            at = ALB_MIN(at, pages->chunks[chunk].slots[i].at);
        used = CHUNK_SLOTS;
    }
    return at;
}

void alb_sim_page_fetch(const struct alb_sim_pages *pages, uint32_t number)
{
    uint32_t used = first_used(&pages->page[number]);
    for (uint32_t next = pages->page[number].chunk; next != CHUNK_NONE; used = CHUNK_SLOTS) {
        const struct alb_sim_chunk *chunk = &pages->chunks[next];
        for (uint32_t i = 0; i < used; i++)
            alb_sim_fetch(chunk->slots[i].event, 1);
        next = chunk->next;
    }
}
