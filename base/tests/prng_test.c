// SPDX-License-Identifier: BSD-2-Clause
// The generator against its authors' numbers, and the spread of what is derived from it.
#include "base/prng.h"
#include "base/tests/test.h"

// The first outputs of splitmix64 from 0.
static void alb_prng_init__seeds_with_splitmix64(void **state)
{
    struct alb_prng prng;
    alb_prng_init(&prng, 0);
    assert_int_equal(prng.words[0], 0xe220a8397b1dcdaf);
    assert_int_equal(prng.words[1], 0x6e789e6aa1b965f4);
    assert_int_equal(prng.words[2], 0x06c45d188009454f);
    assert_int_equal(prng.words[3], 0xf88bb8a8724c81ec);
}

// The first outputs of xoshiro256** from the state 1, 2, 3, 4.
static void alb_prng_u64__is_xoshiro256(void **state)
{
    static const uint64_t expected[] = {11520, 0, 1509978240, 1215971899390074240};
    struct alb_prng prng = {.words = {1, 2, 3, 4}};
    for (size_t i = 0; i < ALB_COUNT(expected); i++)
        assert_int_equal(alb_prng_u64(&prng), expected[i]);
}

static void alb_prng_u64__same_seed_same_numbers(void **state)
{
    struct alb_prng a, b, c;
    int equal = 0;
    alb_prng_init(&a, 7);
    alb_prng_init(&b, 7);
    alb_prng_init(&c, 8);
    for (int i = 0; i < 1000; i++) {
        uint64_t number = alb_prng_u64(&a);
        assert_int_equal(number, alb_prng_u64(&b));
        equal += number == alb_prng_u64(&c);
    }
    assert_int_equal(equal, 0);
}

static void alb_prng_below__stays_below_and_is_even(void **state)
{
    static const uint64_t bounds[] = {1, 2, 3, 1000, 1ull << 32, (1ull << 63) + 1, UINT64_MAX};
    struct alb_prng prng;
    alb_prng_init(&prng, 1);
    for (size_t i = 0; i < ALB_COUNT(bounds); i++) {
        for (int k = 0; k < 1000; k++)
            assert_true(alb_prng_below(&prng, bounds[i]) < bounds[i]);
    }
    uint32_t counts[6] = {0}, residues[3] = {0};
    for (int k = 0; k < 60000; k++)
        counts[alb_prng_below(&prng, 6)]++;
    for (int k = 0; k < 6; k++)
        assert_in_range(counts[k], 9600, 10400);
    for (int k = 0; k < 30000; k++)
        residues[alb_prng_below(&prng, 3ull << 62) % 3]++;
    for (int k = 0; k < 3; k++)
        assert_in_range(residues[k], 9600, 10400);
}

static void alb_prng_chance__never_always_and_between(void **state)
{
    struct alb_prng prng;
    uint32_t hits = 0;
    alb_prng_init(&prng, 2);
    for (int k = 0; k < 10000; k++) {
        assert_false(alb_prng_chance(&prng, 0));
        assert_true(alb_prng_chance(&prng, 1000000000));
        assert_true(alb_prng_chance(&prng, UINT32_MAX));
    }
    for (int k = 0; k < 1000000; k++)
        hits += alb_prng_chance(&prng, 10000000); // 1 %
    assert_in_range(hits, 9500, 10500);           // sigma is 99
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_prng_init__seeds_with_splitmix64),
        cmocka_unit_test(alb_prng_u64__is_xoshiro256),
        cmocka_unit_test(alb_prng_u64__same_seed_same_numbers),
        cmocka_unit_test(alb_prng_below__stays_below_and_is_even),
        cmocka_unit_test(alb_prng_chance__never_always_and_between),
    };
    return cmocka_run_group_tests_name("prng", tests, NULL, NULL);
}
