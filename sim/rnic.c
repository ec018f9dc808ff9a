// SPDX-License-Identifier: BSD-2-Clause
#include "sim/rnic.h"

#include "sim/ecmp.h"

#include <stdlib.h>

enum {
    NONE = 0, // of chains: indexes count from 1 there
    BINDINGS_MIN = 64,
};

struct context {
    uint32_t newer, older; // in the order of use; NONE: it is the end
    bool is_cached;
    alb_sim_time fetched_at; // it is there, or will be
};

// Where a queue pair of ours sends to. Found by linear probing.
struct binding {
    uint64_t to; // host and QPN; 0: free
    uint32_t index;
};

struct alb_rnic {
    uint32_t entries, cached, indexes;
    alb_sim_time miss_penalty, free_at[ALB_RNIC_WAYS];
    uint32_t newest, oldest;
    struct context *contexts; // by index + 1
    struct binding *bindings;
    uint32_t binding_count, binding_capacity; // a power of two
    uint64_t hits, misses;
};

struct alb_rnic *alb_rnic_new(uint32_t cache_entries, alb_sim_time miss_penalty, uint32_t indexes)
{
    struct alb_rnic *rnic = calloc(1, sizeof(*rnic));
    alb_assert(rnic && cache_entries > 0);
    rnic->entries = cache_entries;
    rnic->miss_penalty = miss_penalty;
    rnic->indexes = indexes;
    rnic->contexts = calloc(indexes + 1, sizeof(*rnic->contexts));
    rnic->binding_capacity = BINDINGS_MIN;
    rnic->bindings = calloc(rnic->binding_capacity, sizeof(*rnic->bindings));
    alb_assert(rnic->contexts && rnic->bindings);
    return rnic;
}

void alb_rnic_free(struct alb_rnic *rnic)
{
    if (!rnic)
        return;
    free(rnic->contexts);
    free(rnic->bindings);
    free(rnic);
}

// ---- which queue pair sends -----------------------------------------------------------------------------------------

static uint64_t key_of(uint32_t to_host, uint32_t to_qpn)
{
    return ((uint64_t)to_host + 1) << 24 | (to_qpn & 0xffffff);
}

static uint32_t place_of(const struct alb_rnic *rnic, uint64_t key)
{
    uint32_t mask = rnic->binding_capacity - 1, place = (uint32_t)alb_ecmp_mix(key) & mask;
    while (rnic->bindings[place].to != 0 && rnic->bindings[place].to != key)
        place = (place + 1) & mask;
    return place;
}

static void grow(struct alb_rnic *rnic)
{
    struct binding *before = rnic->bindings;
    uint32_t count = rnic->binding_capacity;
    rnic->binding_capacity *= 2;
    rnic->bindings = calloc(rnic->binding_capacity, sizeof(*rnic->bindings));
    alb_assert(rnic->bindings);
    for (uint32_t i = 0; i < count; i++)
        if (before[i].to)
            rnic->bindings[place_of(rnic, before[i].to)] = before[i];
    free(before);
}

void alb_rnic_bind(struct alb_rnic *rnic, uint32_t to_host, uint32_t to_qpn, uint32_t index)
{
    uint64_t key = key_of(to_host, to_qpn);
    if (2 * (rnic->binding_count + 1) > rnic->binding_capacity)
        grow(rnic);
    struct binding *binding = &rnic->bindings[place_of(rnic, key)];
    rnic->binding_count += binding->to == 0;
    *binding = (struct binding){key, index};
}

void alb_rnic_unbind(struct alb_rnic *rnic, uint32_t to_host, uint32_t to_qpn)
{
    uint32_t mask = rnic->binding_capacity - 1, hole = place_of(rnic, key_of(to_host, to_qpn));
    if (rnic->bindings[hole].to == 0)
        return;
    rnic->bindings[hole].to = 0;
    rnic->binding_count--;
    // Those behind the hole that were pushed on by it move up.
    for (uint32_t at = (hole + 1) & mask; rnic->bindings[at].to; at = (at + 1) & mask) {
        struct binding binding = rnic->bindings[at];
        rnic->bindings[at].to = 0;
        rnic->bindings[place_of(rnic, binding.to)] = binding;
    }
}

// ---- the cache ------------------------------------------------------------------------------------------------------

static void unlink_context(struct alb_rnic *rnic, uint32_t number)
{
    struct context *context = &rnic->contexts[number];
    if (context->newer)
        rnic->contexts[context->newer].older = context->older;
    else
        rnic->newest = context->older;
    if (context->older)
        rnic->contexts[context->older].newer = context->newer;
    else
        rnic->oldest = context->newer;
}

static void link_newest(struct alb_rnic *rnic, uint32_t number)
{
    struct context *context = &rnic->contexts[number];
    context->newer = NONE;
    context->older = rnic->newest;
    context->is_cached = true;
    if (rnic->newest)
        rnic->contexts[rnic->newest].newer = number;
    else
        rnic->oldest = number;
    rnic->newest = number;
}

// True if the cache held it, or it is being fetched; it does from now on.
static bool touch(struct alb_rnic *rnic, uint32_t number)
{
    bool was_cached = rnic->contexts[number].is_cached;
    if (was_cached) {
        unlink_context(rnic, number);
    } else if (rnic->cached == rnic->entries) {
        uint32_t oldest = rnic->oldest;
        unlink_context(rnic, oldest);
        rnic->contexts[oldest].is_cached = false;
    } else {
        rnic->cached++;
    }
    link_newest(rnic, number);
    return was_cached;
}

static alb_sim_time pass(struct alb_rnic *rnic, enum alb_rnic_way way, uint32_t index, alb_sim_time now)
{
    alb_sim_time at = ALB_MAX(now, rnic->free_at[way]);
    uint32_t number = index % rnic->indexes + 1;
    struct context *context = &rnic->contexts[number];
    bool is_hit = touch(rnic, number);
    rnic->hits += is_hit;
    rnic->misses += !is_hit;
    if (!is_hit)
        context->fetched_at = at + rnic->miss_penalty;
    rnic->free_at[way] = ALB_MAX(at, context->fetched_at); // the other pipeline may have asked for it
    return rnic->free_at[way];
}

alb_sim_time alb_rnic_out(struct alb_rnic *rnic, uint32_t to_host, uint32_t to_qpn, alb_sim_time now)
{
    const struct binding *binding = &rnic->bindings[place_of(rnic, key_of(to_host, to_qpn))];
    return binding->to ? pass(rnic, ALB_RNIC_OUT, binding->index, now) : ALB_MAX(now, rnic->free_at[ALB_RNIC_OUT]);
}

alb_sim_time alb_rnic_in(struct alb_rnic *rnic, uint32_t index, alb_sim_time now)
{
    return pass(rnic, ALB_RNIC_IN, index, now);
}

uint64_t alb_rnic_hits(const struct alb_rnic *rnic)
{
    return rnic->hits;
}

uint64_t alb_rnic_misses(const struct alb_rnic *rnic)
{
    return rnic->misses;
}
