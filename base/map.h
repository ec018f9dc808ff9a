// SPDX-License-Identifier: BSD-2-Clause
// A hash map from keys of a fixed number of bytes to a 64-bit value (a pointer or a number), in memory that the caller
// gives once: it never grows, never allocates, and refuses when it is full. The hash is keyed, so a peer that chooses
// the keys (addresses, ports, QPNs) cannot make them collide.
#pragma once

#include "base/siphash.h"

#define ALB_MAP_KEY_BYTES_MAX 64
#define ALB_MAP_CAPACITY_MAX  (1u << 28)

struct alb_map {
    struct alb_siphash_key hash_key;
    uint32_t *slots;  // number of an entry plus one, 0: empty; found by linear probing
    uint8_t *entries; // without gaps: the first count are in use
    uint32_t slots_mask;
    uint32_t capacity;
    uint32_t count;
    uint32_t key_bytes;
    uint32_t entry_bytes;
};

// How much memory a map of this capacity takes. capacity is 1 ... ALB_MAP_CAPACITY_MAX, key_bytes 1 ...
// ALB_MAP_KEY_BYTES_MAX.
size_t alb_map_bytes(uint32_t capacity, uint32_t key_bytes);

// memory is alb_map_bytes() large, aligned to 8 bytes, and stays the caller's. The hash key is random and secret.
void alb_map_init(struct alb_map *map, uint32_t capacity, uint32_t key_bytes, void *memory,
                  const struct alb_siphash_key *hash_key);

// The same in memory that is zero already, of which only what is used is ever touched.
void alb_map_init_zeroed(struct alb_map *map, uint32_t capacity, uint32_t key_bytes, void *memory,
                         const struct alb_siphash_key *hash_key);

// True if the key is there; *value is then its value (value may be NULL).
bool alb_map_find(const struct alb_map *map, const void *key, uint64_t *value);

enum alb_map_insert {
    ALB_MAP_INSERTED,
    ALB_MAP_PRESENT, // the key was there, and its value is unchanged
    ALB_MAP_FULL,
};

enum alb_map_insert alb_map_insert(struct alb_map *map, const void *key, uint64_t value);

// False if the key is not there. *value (which may be NULL) is the removed value.
bool alb_map_remove(struct alb_map *map, const void *key, uint64_t *value);

static inline uint32_t alb_map_count(const struct alb_map *map)
{
    return map->count;
}

// The i-th entry, i < count, in no particular order. The key is valid until the map changes. Going from the last entry
// down to the first, the current entry may be removed on the way:
//     for (uint32_t i = alb_map_count(map); i-- > 0;)
//         value = alb_map_at(map, i, &key);
uint64_t alb_map_at(const struct alb_map *map, uint32_t i, const void **key);

// The value of a key as a pointer, for maps that hold nothing else; NULL if the key is not there.
static inline void *alb_map_find_pointer(const struct alb_map *map, const void *key)
{
    uint64_t value;
    return alb_map_find(map, key, &value) ? (void *)(uintptr_t)value : NULL;
}
