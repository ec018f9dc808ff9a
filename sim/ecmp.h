// SPDX-License-Identifier: BSD-2-Clause
// Equal-cost multi-path: which of several ways a flow takes, by a hash of its addresses and ports (RFC 2992 is why: a
// flow keeps its order, and flows that differ in a port may differ in their way).
#pragma once

#include "base/addr.h"

#include <string.h>

static inline uint64_t alb_ecmp_mix(uint64_t hash)
{
    hash *= 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93ull;
    return hash ^ hash >> 32;
}

static inline uint64_t alb_ecmp_words(const struct alb_addr *addr)
{
    uint64_t high, low;
    memcpy(&high, addr->bytes, sizeof(high));
    memcpy(&low, addr->bytes + sizeof(high), sizeof(low));
    return alb_ecmp_mix(high) ^ low;
}

// Of a flow, the same everywhere.
static inline uint32_t alb_ecmp_hash(const struct alb_endpoint *source, const struct alb_endpoint *destination)
{
    uint64_t hash = alb_ecmp_mix(alb_ecmp_words(&source->addr) ^ (uint64_t)source->port << 16);
    return (uint32_t)alb_ecmp_mix(hash ^ alb_ecmp_words(&destination->addr) ^ destination->port);
}

// Which of count ways the flow takes at the place with that salt. Places with different salts decide independently.
static inline uint32_t alb_ecmp_pick(uint32_t flow_hash, uint64_t salt, uint32_t count)
{
    return (uint32_t)((alb_ecmp_mix(flow_hash ^ salt) & 0xffffffff) * count >> 32);
}
