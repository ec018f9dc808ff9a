// SPDX-License-Identifier: BSD-2-Clause
// Every operation against an array of bools, for all ranges of a small bitmap.
#include "base/bitmap.h"
#include "base/prng.h"
#include "base/tests/test.h"

#include <string.h>

enum { BITS = 200, WORDS = ALB_BITMAP_WORDS(BITS) };

static void fill(struct alb_prng *prng, uint64_t words[WORDS], bool model[BITS], uint32_t ones_per_billion)
{
    memset(words, 0xff, WORDS * sizeof(uint64_t)); // what lies beyond the end must not matter
    for (uint32_t i = 0; i < BITS; i++) {
        model[i] = alb_prng_chance(prng, ones_per_billion);
        if (model[i])
            alb_bitmap_set(words, i);
        else
            alb_bitmap_clear(words, i);
    }
}

static void assert_same(const uint64_t words[WORDS], const bool model[BITS])
{
    for (uint32_t i = 0; i < BITS; i++)
        assert_int_equal(alb_bitmap_test(words, i), model[i]);
}

static void alb_bitmap_set_clear__one_bit(void **state)
{
    uint64_t words[2] = {0};
    alb_bitmap_set(words, 0);
    alb_bitmap_set(words, 63);
    alb_bitmap_set(words, 64);
    assert_int_equal(words[0], 0x8000000000000001);
    assert_int_equal(words[1], 1);
    alb_bitmap_clear(words, 63);
    alb_bitmap_clear(words, 62);
    assert_int_equal(words[0], 1);
    assert_true(alb_bitmap_test(words, 64));
    assert_false(alb_bitmap_test(words, 65));
}

static uint32_t model_find_zero(const bool model[BITS], uint32_t bits, uint32_t from)
{
    for (uint32_t i = from; i < bits; i++) {
        if (!model[i])
            return i;
    }
    return bits;
}

static void alb_bitmap_find_zero__agrees_with_a_model(void **state)
{
    static const uint32_t densities[] = {0, 10000000, 500000000, 990000000, 1000000000};
    struct alb_prng prng;
    alb_prng_init(&prng, 1);
    for (size_t d = 0; d < ALB_COUNT(densities); d++) {
        uint64_t words[WORDS];
        bool model[BITS];
        fill(&prng, words, model, densities[d]);
        for (uint32_t bits = 0; bits <= BITS; bits += 1 + bits % 3) {
            for (uint32_t from = 0; from <= BITS; from++)
                assert_int_equal(alb_bitmap_find_zero(words, bits, from), model_find_zero(model, bits, from));
        }
    }
}

static void alb_bitmap_range__agrees_with_a_model(void **state)
{
    struct alb_prng prng;
    alb_prng_init(&prng, 2);
    for (uint32_t from = 0; from <= BITS; from++) {
        for (uint32_t to = 0; to <= BITS; to += 1 + to % 2) {
            uint64_t words[WORDS];
            bool model[BITS];
            uint32_t count = 0;
            fill(&prng, words, model, 500000000);
            for (uint32_t i = from; i < to; i++)
                count += model[i];
            assert_int_equal(alb_bitmap_count(words, from, to), count);
            alb_bitmap_set_range(words, from, to);
            for (uint32_t i = from; i < to; i++)
                model[i] = true;
            assert_same(words, model);
            assert_int_equal(words[WORDS - 1] >> BITS % 64, UINT64_MAX >> BITS % 64);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_bitmap_set_clear__one_bit),
        cmocka_unit_test(alb_bitmap_find_zero__agrees_with_a_model),
        cmocka_unit_test(alb_bitmap_range__agrees_with_a_model),
    };
    return cmocka_run_group_tests_name("bitmap", tests, NULL, NULL);
}
