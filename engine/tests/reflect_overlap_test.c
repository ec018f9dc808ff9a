// SPDX-License-Identifier: BSD-2-Clause
#include "engine/reflect.h"

#include "base/prng.h"
#include "engine/tests/fixture.h"

#include <stdlib.h>
#include <string.h>

enum {
    PARTS = ALB_TXN_WRITES_MAX,
    BYTES = 4096,
};

static uint8_t memory[BYTES], meant[BYTES]; // the destination; what all parts agree upon
static size_t compared_bytes;

int __real_memcmp(const void *a, const void *b, size_t bytes);
int __wrap_memcmp(const void *a, const void *b, size_t bytes);
int __wrap_memcmp(const void *a, const void *b, size_t bytes)
{
    compared_bytes += bytes;
    return __real_memcmp(a, b, bytes);
}

struct made {
    struct alb_txn_in txn;
    struct alb_txn_range *parts[PARTS];
    uint32_t count;
};

static int setup(void **state)
{
    struct made *made = calloc(1, sizeof(*made));
    alb_list_init(&made->txn.ranges);
    for (uint32_t i = 0; i < BYTES; i++)
        meant[i] = (uint8_t)(i * 7 + i / 256);
    compared_bytes = 0;
    *state = made;
    return 0;
}

static void clear(struct made *made)
{
    while (made->count > 0) {
        alb_list_remove(&made->parts[--made->count]->link);
        free(made->parts[made->count]);
    }
}

static int teardown(void **state)
{
    clear(*state);
    free(*state);
    return 0;
}

// One more part, with the bytes that are meant to be there.
static struct alb_txn_range *add(struct made *made, uint32_t offset, uint32_t length)
{
    struct alb_txn_range *part = calloc(1, sizeof(*part) + length);
    part->host = memory + offset;
    part->length = length;
    memcpy(part->bytes, meant + offset, length);
    alb_list_push_back(&made->txn.ranges, &part->link);
    made->parts[made->count++] = part;
    return part;
}

static void overlap__of_all_parts_costs_no_more_than_their_bytes(void **state)
{
    struct made *made = *state;
    for (uint32_t i = 0; i < PARTS; i++)
        add(made, 0, BYTES);
    assert_false(alb_txn_in_contradicts_itself(&made->txn));
    assert_in_range(compared_bytes, BYTES, PARTS * BYTES);
}

static void overlap__of_parts_that_reach_less_far_each_time(void **state)
{
    struct made *made = *state;
    for (uint32_t i = 0; i < PARTS; i++)
        add(made, i, BYTES - 2 * i);
    assert_false(alb_txn_in_contradicts_itself(&made->txn));
    assert_in_range(compared_bytes, BYTES, PARTS * BYTES);
    made->parts[PARTS - 1]->bytes[BYTES - 2 * PARTS] ^= 1;
    assert_true(alb_txn_in_contradicts_itself(&made->txn));
}

static void overlap__is_none_where_parts_only_touch(void **state)
{
    struct made *made = *state;
    add(made, 100, 50)->bytes[49] ^= 1;
    add(made, 150, 50)->bytes[0] ^= 1;
    add(made, 50, 50)->bytes[49] ^= 1;
    assert_false(alb_txn_in_contradicts_itself(&made->txn));
    assert_int_equal(compared_bytes, 0);
}

static void overlap__is_none_where_a_part_is_empty(void **state)
{
    struct made *made = *state;
    add(made, 100, 50);
    add(made, 120, 0);
    add(made, 0, 0)->host = NULL;
    add(made, 130, 50);
    assert_false(alb_txn_in_contradicts_itself(&made->txn));
    assert_int_equal(compared_bytes, 20);
}

// Byte by byte: what each part would leave there.
static bool contradicts(const struct made *made)
{
    int left[BYTES];
    for (uint32_t i = 0; i < BYTES; i++)
        left[i] = -1;
    for (uint32_t i = 0; i < made->count; i++) {
        const struct alb_txn_range *part = made->parts[i];
        for (uint64_t j = 0; j < part->length; j++) {
            int *byte = &left[part->host - memory + j];
            if (*byte >= 0 && *byte != part->bytes[j])
                return true;
            *byte = part->bytes[j];
        }
    }
    return false;
}

static uint32_t below(struct alb_prng *prng, uint32_t n)
{
    return (uint32_t)alb_prng_below(prng, n);
}

static void overlap__is_found_as_byte_by_byte(void **state)
{
    struct made *made = *state;
    struct alb_prng prng;
    uint32_t found = 0;
    alb_prng_init(&prng, 1);
    for (uint32_t round = 0; round < 3000; round++) {
        uint32_t count = 2 + below(&prng, round % 2 ? 6 : PARTS - 1), room = round % 3 ? 100 : 1000;
        uint64_t bytes = 0;
        while (made->count < count) {
            uint32_t offset = below(&prng, room);
            bytes += add(made, offset, below(&prng, room - offset + 1))->length;
        }
        struct alb_txn_range *wrong = made->parts[below(&prng, count)];
        if (wrong->length > 0)
            wrong->bytes[below(&prng, (uint32_t)wrong->length)] ^= 1;
        compared_bytes = 0;
        bool is_found = alb_txn_in_contradicts_itself(&made->txn);
        assert_int_equal(is_found, contradicts(made));
        assert_in_range(compared_bytes, 0, bytes);
        found += is_found;
        clear(made);
    }
    assert_in_range(found, 500, 2500);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(overlap__of_all_parts_costs_no_more_than_their_bytes),
        CASE(overlap__of_parts_that_reach_less_far_each_time),
        CASE(overlap__is_none_where_parts_only_touch),
        CASE(overlap__is_none_where_a_part_is_empty),
        CASE(overlap__is_found_as_byte_by_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
