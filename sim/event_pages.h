// SPDX-License-Identifier: BSD-2-Clause
// Events of coming days, unsorted, in a page for each day of the calendar: a part of the event queue.
//
// Pages consist of chunks, and the chunk that was freed last is used first: the pages of a whole calendar would not
// stay in a cache, the chunks that are in use do.
#pragma once

#include "sim/event_heap.h"

enum {
    ALB_SIM_DAYS = 8192,      // of the calendar
    ALB_SIM_CHUNK_SLOTS = 15, // eight cache lines
};

// Events of one day, in no order: all chunks but the first are full.
struct alb_sim_page {
    uint32_t chunk, count;
};

struct alb_sim_chunk {
    struct alb_sim_slot slots[ALB_SIM_CHUNK_SLOTS];
    uint32_t next; // of its page, or free
} __attribute__((aligned(64)));

struct alb_sim_pages {
    uint64_t count; // of events
    struct alb_sim_chunk *chunks;
    uint32_t chunk_count, chunk_capacity, chunk_free;
    struct alb_sim_page page[ALB_SIM_DAYS];
    uint64_t used[ALB_SIM_DAYS / 64]; // pages that are not empty
};

void alb_sim_pages_init(struct alb_sim_pages *pages);
void alb_sim_pages_fini(struct alb_sim_pages *pages);

// An event's keeper is then its page's number. A slot's fields one by one: they come in registers, where a struct that
// was just written would have to reach the cache before it could be copied.
void alb_sim_page_put(struct alb_sim_pages *pages, uint32_t number, struct alb_sim_event *event, alb_sim_time at,
                      uint64_t tie, uint32_t node);
void alb_sim_page_remove(struct alb_sim_pages *pages, uint32_t number, uint32_t place);
// Empties the page, which has events, into slots, which have room: in the order in which they were put there, but for
// those whose places others have taken.
void alb_sim_page_take(struct alb_sim_pages *pages, uint32_t number, struct alb_sim_slot *slots);

// The next page from there on, in turn, that has events; there is one.
uint32_t alb_sim_pages_next(const struct alb_sim_pages *pages, uint32_t from);
// When the first event of a page, which has some, is due.
alb_sim_time alb_sim_page_earliest(const struct alb_sim_pages *pages, uint32_t number);
// Asks the caches for the events of a page, which has some.
void alb_sim_page_fetch(const struct alb_sim_pages *pages, uint32_t number);
