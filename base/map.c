// SPDX-License-Identifier: BSD-2-Clause
// The hash map: a table of slots, at most half full, beside a dense array of entries.
#include "base/map.h"

#include <string.h>

struct entry {
    uint64_t value;
    uint32_t hash; // the low bits: enough to find the slot again and to tell most other keys apart
    uint8_t key[];
};

static uint32_t entry_bytes(uint32_t key_bytes)
{
    return (uint32_t)(offsetof(struct entry, key) + key_bytes + 7) & ~7u;
}

static uint32_t slots_of(uint32_t capacity)
{
    uint32_t slots = 2;
    while (slots < 2 * capacity)
        slots *= 2;
    return slots;
}

static struct entry *entry_at(const struct alb_map *map, uint32_t i)
{
    return (struct entry *)(map->entries + (size_t)i * map->entry_bytes);
}

static uint32_t hash_of(const struct alb_map *map, const void *key)
{
    return (uint32_t)alb_siphash13(&map->hash_key, key, map->key_bytes);
}

// The slot that holds the key, or the empty one where it belongs.
static uint32_t slot_of(const struct alb_map *map, const void *key, uint32_t hash)
{
    uint32_t slot = hash & map->slots_mask;
    for (; map->slots[slot] != 0; slot = (slot + 1) & map->slots_mask) {
        const struct entry *entry = entry_at(map, map->slots[slot] - 1);
        if (entry->hash == hash && memcmp(entry->key, key, map->key_bytes) == 0)
            break;
    }
    return slot;
}

static struct entry *find(const struct alb_map *map, const void *key)
{
    uint32_t slot = slot_of(map, key, hash_of(map, key));
    return map->slots[slot] != 0 ? entry_at(map, map->slots[slot] - 1) : NULL;
}

size_t alb_map_bytes(uint32_t capacity, uint32_t key_bytes)
{
    alb_assert(capacity > 0 && capacity <= ALB_MAP_CAPACITY_MAX);
    alb_assert(key_bytes > 0 && key_bytes <= ALB_MAP_KEY_BYTES_MAX);
    return (size_t)capacity * entry_bytes(key_bytes) + (size_t)slots_of(capacity) * sizeof(uint32_t);
}

void alb_map_init(struct alb_map *map, uint32_t capacity, uint32_t key_bytes, void *memory,
                  const struct alb_siphash_key *hash_key)
{
    memset(memory, 0, alb_map_bytes(capacity, key_bytes));
    alb_map_init_zeroed(map, capacity, key_bytes, memory, hash_key);
}

void alb_map_init_zeroed(struct alb_map *map, uint32_t capacity, uint32_t key_bytes, void *memory,
                         const struct alb_siphash_key *hash_key)
{
    alb_assert(alb_map_bytes(capacity, key_bytes) > 0); // which checks the arguments
    alb_assert((uintptr_t)memory % _Alignof(struct entry) == 0);
    *map = (struct alb_map){
        .hash_key = *hash_key,
        .entries = memory,
        .slots = (uint32_t *)((uint8_t *)memory + (size_t)capacity * entry_bytes(key_bytes)),
        .slots_mask = slots_of(capacity) - 1,
        .capacity = capacity,
        .key_bytes = key_bytes,
        .entry_bytes = entry_bytes(key_bytes),
    };
}

bool alb_map_find(const struct alb_map *map, const void *key, uint64_t *value)
{
    const struct entry *entry = find(map, key);
    if (entry == NULL)
        return false;
    if (value != NULL)
        *value = entry->value;
    return true;
}

enum alb_map_insert alb_map_insert(struct alb_map *map, const void *key, uint64_t value)
{
    uint32_t hash = hash_of(map, key);
    uint32_t slot = slot_of(map, key, hash);
    if (map->slots[slot] != 0)
        return ALB_MAP_PRESENT;
    if (map->count == map->capacity)
        return ALB_MAP_FULL;
    struct entry *entry = entry_at(map, map->count++);
    entry->value = value;
    entry->hash = hash;
    memcpy(entry->key, key, map->key_bytes);
    map->slots[slot] = map->count;
    return ALB_MAP_INSERTED;
}

// Empties a slot and closes the gap: what probing pushed beyond it moves up, so that no search ends at the gap too
// early.
static void clear_slot(struct alb_map *map, uint32_t gap)
{
    uint32_t mask = map->slots_mask;
    for (uint32_t slot = (gap + 1) & mask; map->slots[slot] != 0; slot = (slot + 1) & mask) {
        uint32_t home = entry_at(map, map->slots[slot] - 1)->hash & mask;
        if (((slot - home) & mask) < ((slot - gap) & mask))
            continue; // its home lies after the gap
        map->slots[gap] = map->slots[slot];
        gap = slot;
    }
    map->slots[gap] = 0;
}

bool alb_map_remove(struct alb_map *map, const void *key, uint64_t *value)
{
    uint32_t slot = slot_of(map, key, hash_of(map, key));
    if (map->slots[slot] == 0)
        return false;
    uint32_t i = map->slots[slot] - 1;
    struct entry *entry = entry_at(map, i);
    if (value != NULL)
        *value = entry->value;
    clear_slot(map, slot);

    uint32_t last = --map->count;
    if (i != last) { // the last entry fills the gap
        const struct entry *moved = entry_at(map, last);
        map->slots[slot_of(map, moved->key, moved->hash)] = i + 1;
        memcpy(entry, moved, map->entry_bytes);
    }
    return true;
}

uint64_t alb_map_at(const struct alb_map *map, uint32_t i, const void **key)
{
    alb_assert(i < map->count);
    const struct entry *entry = entry_at(map, i);
    if (key != NULL)
        *key = entry->key;
    return entry->value;
}
