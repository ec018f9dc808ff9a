// SPDX-License-Identifier: BSD-2-Clause
// The map against an array indexed by the key, through long random lives of small maps (where probe chains are long and
// wrap), and its refusals.
#include "base/map.h"
#include "base/prng.h"
#include "base/tests/test.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS = 64 };

static const struct alb_siphash_key hash_key = {{1, 2}};

struct key {
    uint32_t number;
    uint8_t filler[15]; // 19 bytes: not a multiple of a word
} __attribute__((packed));

static struct key key_of(uint32_t number)
{
    struct key key = {.number = number};
    memset(key.filler, 0x55, sizeof(key.filler));
    return key;
}

struct model {
    bool present[KEYS];
    uint64_t value[KEYS];
    uint32_t count;
};

static void check_whole(const struct alb_map *map, const struct model *m)
{
    bool seen[KEYS] = {false};
    assert_int_equal(alb_map_count(map), m->count);
    for (uint32_t n = 0; n < KEYS; n++) {
        struct key key = key_of(n);
        uint64_t value;
        assert_int_equal(alb_map_find(map, &key, &value), m->present[n]);
        if (m->present[n])
            assert_int_equal(value, m->value[n]);
    }
    for (uint32_t i = 0; i < map->count; i++) {
        const void *bytes;
        struct key key;
        uint64_t value = alb_map_at(map, i, &bytes);
        memcpy(&key, bytes, sizeof(key));
        assert_true(key.number < KEYS && m->present[key.number] && !seen[key.number]);
        assert_int_equal(value, m->value[key.number]);
        seen[key.number] = true;
    }
}

static void step(struct alb_map *map, struct model *m, struct alb_prng *prng)
{
    uint32_t n = (uint32_t)alb_prng_below(prng, KEYS);
    struct key key = key_of(n);
    uint64_t value = alb_prng_u64(prng), old;
    if (alb_prng_below(prng, 3) > 0) {
        enum alb_map_insert expected = m->present[n]              ? ALB_MAP_PRESENT
                                       : m->count < map->capacity ? ALB_MAP_INSERTED
                                                                  : ALB_MAP_FULL;
        assert_int_equal(alb_map_insert(map, &key, value), expected);
        if (expected == ALB_MAP_INSERTED) {
            m->present[n] = true;
            m->value[n] = value;
            m->count++;
        }
    } else {
        assert_int_equal(alb_map_remove(map, &key, &old), m->present[n]);
        if (m->present[n]) {
            assert_int_equal(old, m->value[n]);
            m->present[n] = false;
            m->count--;
        }
    }
}

static void alb_map__agrees_with_a_model(void **state)
{
    static const uint32_t capacities[] = {1, 2, 3, 7, 16, 40, KEYS};
    struct alb_prng prng;
    alb_prng_init(&prng, 3);
    for (size_t c = 0; c < ALB_COUNT(capacities); c++) {
        struct alb_map map;
        struct model m = {.count = 0};
        void *memory = malloc(alb_map_bytes(capacities[c], sizeof(struct key))); // its end is watched by sanitizers
        assert_non_null(memory);
        alb_map_init(&map, capacities[c], sizeof(struct key), memory, &hash_key);
        for (int i = 0; i < 3000; i++) {
            step(&map, &m, &prng);
            if (i % 8 == 0)
                check_whole(&map, &m);
        }
        free(memory);
    }
}

static void alb_map_insert__refuses_when_full_and_recovers(void **state)
{
    struct alb_map map;
    void *memory = malloc(alb_map_bytes(100, 4));
    alb_map_init(&map, 100, 4, memory, &hash_key);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(alb_map_insert(&map, &i, i), ALB_MAP_INSERTED);
    uint32_t extra = 100, present = 5;
    assert_int_equal(alb_map_insert(&map, &extra, 0), ALB_MAP_FULL);
    assert_int_equal(alb_map_insert(&map, &present, 0), ALB_MAP_PRESENT);
    assert_false(alb_map_find(&map, &extra, NULL));
    assert_true(alb_map_remove(&map, &present, NULL));
    assert_int_equal(alb_map_insert(&map, &extra, 7), ALB_MAP_INSERTED);
    for (uint32_t i = 0; i <= 100; i++)
        assert_int_equal(alb_map_find(&map, &i, NULL), i != present);
    free(memory);
}

static void alb_map_at__current_may_be_removed_going_down(void **state)
{
    struct alb_map map;
    uint32_t visits[50] = {0};
    void *memory = malloc(alb_map_bytes(50, 4));
    alb_map_init(&map, 50, 4, memory, &hash_key);
    for (uint32_t i = 0; i < 50; i++)
        alb_map_insert(&map, &i, i);
    for (uint32_t i = alb_map_count(&map); i-- > 0;) {
        const void *key;
        uint32_t number = (uint32_t)alb_map_at(&map, i, &key);
        visits[number]++;
        if (number % 2 == 0)
            assert_true(alb_map_remove(&map, &number, NULL));
    }
    for (uint32_t i = 0; i < 50; i++) {
        assert_int_equal(visits[i], 1);
        assert_int_equal(alb_map_find(&map, &i, NULL), i % 2);
    }
    free(memory);
}

static void alb_map_find_pointer__null_for_none(void **state)
{
    struct alb_map map;
    void *memory = malloc(alb_map_bytes(4, 4));
    uint32_t key = 9;
    alb_map_init(&map, 4, 4, memory, &hash_key);
    assert_null(alb_map_find_pointer(&map, &key));
    alb_map_insert(&map, &key, (uintptr_t)&map);
    assert_ptr_equal(alb_map_find_pointer(&map, &key), &map);
    free(memory);
}

// A hash that ignored its key would put these entries into the same order of slots under every key.
static void alb_map_init__hash_key_decides_the_slots(void **state)
{
    static const struct alb_siphash_key other = {{3, 4}};
    struct alb_map a, b;
    void *memory_a = malloc(alb_map_bytes(64, 4)), *memory_b = malloc(alb_map_bytes(64, 4));
    alb_map_init(&a, 64, 4, memory_a, &hash_key);
    alb_map_init(&b, 64, 4, memory_b, &other);
    for (uint32_t i = 0; i < 64; i++) {
        alb_map_insert(&a, &i, i);
        alb_map_insert(&b, &i, i);
    }
    assert_memory_not_equal(a.slots, b.slots, (a.slots_mask + 1) * sizeof(uint32_t));
    free(memory_a);
    free(memory_b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_map__agrees_with_a_model),
        cmocka_unit_test(alb_map_insert__refuses_when_full_and_recovers),
        cmocka_unit_test(alb_map_at__current_may_be_removed_going_down),
        cmocka_unit_test(alb_map_find_pointer__null_for_none),
        cmocka_unit_test(alb_map_init__hash_key_decides_the_slots),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
