// SPDX-License-Identifier: BSD-2-Clause
// The indexes of a single-producer single-consumer ring. It owns no slots: a queue keeps an array of capacity elements
// beside it and asks here which of them to fill or to read. Everything the producer stored before
// alb_ring_push_commit() is seen by the consumer that counts those slots as used, and what the consumer read before
// alb_ring_pop_commit() may be overwritten by the producer that counts them as free.
#pragma once

#include "base/types.h"

#include <stdatomic.h>

#define ALB_CACHE_LINE 64

// Indexes run over all of uint32_t and are masked for access. Each side keeps its index and what it last saw of the
// other's on a cache line of its own, so that the lines travel only when a side runs out of what it knows.
struct alb_ring {
    _Alignas(ALB_CACHE_LINE) _Atomic uint32_t tail; // written by the producer
    uint32_t head_seen;
    uint32_t capacity;
    uint32_t mask;
    _Alignas(ALB_CACHE_LINE) _Atomic uint32_t head; // written by the consumer
    uint32_t tail_seen;
    uint32_t consumer_mask; // again, on the consumer's line
};

// capacity is a power of two up to 2^31. Not while either side is at work.
static inline void alb_ring_init(struct alb_ring *ring, uint32_t capacity)
{
    alb_assert(capacity != 0 && (capacity & (capacity - 1)) == 0);
    atomic_init(&ring->tail, 0);
    atomic_init(&ring->head, 0);
    ring->head_seen = 0;
    ring->tail_seen = 0;
    ring->capacity = capacity;
    ring->mask = capacity - 1;
    ring->consumer_mask = capacity - 1;
}

// Producer: true if count more slots may be filled.
static inline bool alb_ring_has_room(struct alb_ring *ring, uint32_t count)
{
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (alb_likely(ring->capacity - (tail - ring->head_seen) >= count))
        return true;
    ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
    return ring->capacity - (tail - ring->head_seen) >= count;
}

// Producer: how many slots may be filled now. The consumer's index is read again only when none is known to be free, so
// there may be more than this says, never fewer, and 0 means none. alb_ring_has_room() answers for more than one
// exactly.
static inline uint32_t alb_ring_free(struct alb_ring *ring)
{
    if (!alb_ring_has_room(ring, 1))
        return 0;
    return ring->capacity - (atomic_load_explicit(&ring->tail, memory_order_relaxed) - ring->head_seen);
}

// Producer: the slot of the i-th element that will be pushed next (i < free).
static inline uint32_t alb_ring_tail_slot(const struct alb_ring *ring, uint32_t i)
{
    return (atomic_load_explicit(&ring->tail, memory_order_relaxed) + i) & ring->mask;
}

// Producer: hands the next count slots, filled, to the consumer.
static inline void alb_ring_push_commit(struct alb_ring *ring, uint32_t count)
{
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, tail + count, memory_order_release);
}

// Consumer: true if at least count filled slots wait.
static inline bool alb_ring_has(struct alb_ring *ring, uint32_t count)
{
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (ring->tail_seen - head >= count)
        return true;
    ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
    return ring->tail_seen - head >= count;
}

// Consumer: how many filled slots wait. The producer's index is read again only when none is known, so there may be
// more than this says, never fewer, and 0 means none.
static inline uint32_t alb_ring_used(struct alb_ring *ring)
{
    if (!alb_ring_has(ring, 1))
        return 0;
    return ring->tail_seen - atomic_load_explicit(&ring->head, memory_order_relaxed);
}

// Consumer: the slot of the i-th oldest element (i < used).
static inline uint32_t alb_ring_head_slot(const struct alb_ring *ring, uint32_t i)
{
    return (atomic_load_explicit(&ring->head, memory_order_relaxed) + i) & ring->consumer_mask;
}

// Consumer: gives the oldest count slots back to the producer.
static inline void alb_ring_pop_commit(struct alb_ring *ring, uint32_t count)
{
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    atomic_store_explicit(&ring->head, head + count, memory_order_release);
}
