// SPDX-License-Identifier: BSD-2-Clause
// Percentiles against the sorted values themselves, within the promised error; the exact figures exactly.
#include "base/histogram.h"
#include "base/prng.h"
#include "base/tests/test.h"

#include <stdlib.h>

enum { VALUES = 5000 };

static struct alb_histogram histogram, other, whole; // large for a stack

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void assert_close(uint64_t got, uint64_t exact)
{
    uint64_t off = got > exact ? got - exact : exact - got;
    assert_true(off <= exact / 63); // 1/64 of the bucket's first value, at most
    if (exact < 64)
        assert_int_equal(got, exact);
}

static void alb_histogram_percentile__close_to_the_sorted_values(void **state)
{
    static const uint32_t parts[] = {0, 1, 1000, 250000, 500000, 900000, 990000, 999000, 999900, 1000000};
    static const uint32_t magnitudes[] = {5, 10, 24, 40, 64};
    struct alb_prng prng;
    uint64_t *values = malloc(VALUES * sizeof(*values));
    alb_prng_init(&prng, 5);
    for (size_t m = 0; m < ALB_COUNT(magnitudes); m++) {
        alb_histogram_init(&histogram);
        for (int i = 0; i < VALUES; i++) {
            values[i] = alb_prng_u64(&prng) >> (64 - magnitudes[m]) >> alb_prng_below(&prng, magnitudes[m]);
            alb_histogram_record(&histogram, values[i]);
        }
        qsort(values, VALUES, sizeof(*values), compare);
        for (size_t p = 0; p < ALB_COUNT(parts); p++) {
            uint64_t rank = ((uint64_t)VALUES * parts[p] + 999999) / 1000000;
            assert_close(alb_histogram_percentile(&histogram, parts[p]), values[rank == 0 ? 0 : rank - 1]);
        }
        assert_int_equal(alb_histogram_percentile(&histogram, 0), values[0]);
        assert_int_equal(alb_histogram_percentile(&histogram, 1000000), values[VALUES - 1]);
        assert_int_equal(alb_histogram_percentile(&histogram, UINT32_MAX), values[VALUES - 1]);
    }
    free(values);
}

static void alb_histogram_record__borders_of_every_bucket(void **state)
{
    for (uint32_t bit = 0; bit < 64; bit++) {
        for (int64_t off = -1; off <= 1; off++) {
            uint64_t value = (1ull << bit) + (uint64_t)off;
            alb_histogram_init(&histogram);
            alb_histogram_record(&histogram, 0); // so that neither rank 1 nor the last is asked for
            alb_histogram_record(&histogram, value);
            alb_histogram_record(&histogram, UINT64_MAX);
            assert_close(alb_histogram_percentile(&histogram, 500000), value);
        }
    }
}

static void alb_histogram__empty(void **state)
{
    alb_histogram_init(&histogram);
    assert_int_equal(histogram.count, 0);
    assert_int_equal(alb_histogram_percentile(&histogram, 500000), 0);
    assert_int_equal(alb_histogram_mean(&histogram), 0);
}

static void alb_histogram_mean__exact_beyond_64_bits(void **state)
{
    alb_histogram_init(&histogram);
    for (int i = 0; i < 4; i++)
        alb_histogram_record(&histogram, UINT64_MAX - (uint64_t)i);
    assert_int_equal(alb_histogram_mean(&histogram), UINT64_MAX - 2);
    assert_int_equal(histogram.min, UINT64_MAX - 3);
    assert_int_equal(histogram.max, UINT64_MAX);
    assert_int_equal(histogram.count, 4);
}

static void alb_histogram_merge__is_as_if_recorded_together(void **state)
{
    struct alb_prng prng;
    alb_prng_init(&prng, 6);
    alb_histogram_init(&histogram);
    alb_histogram_init(&other);
    alb_histogram_init(&whole);
    alb_histogram_merge(&histogram, &other);
    assert_int_equal(histogram.min, UINT64_MAX);
    for (int i = 0; i < VALUES; i++) {
        uint64_t value = alb_prng_u64(&prng) >> alb_prng_below(&prng, 64);
        alb_histogram_record(i % 3 == 0 ? &histogram : &other, value);
        alb_histogram_record(&whole, value);
    }
    alb_histogram_merge(&histogram, &other);
    assert_memory_equal(histogram.buckets, whole.buckets, sizeof(whole.buckets));
    assert_int_equal(histogram.count, whole.count);
    assert_int_equal(histogram.min, whole.min);
    assert_int_equal(histogram.max, whole.max);
    assert_int_equal(alb_histogram_mean(&histogram), alb_histogram_mean(&whole));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_histogram_percentile__close_to_the_sorted_values),
        cmocka_unit_test(alb_histogram_record__borders_of_every_bucket),
        cmocka_unit_test(alb_histogram__empty),
        cmocka_unit_test(alb_histogram_mean__exact_beyond_64_bits),
        cmocka_unit_test(alb_histogram_merge__is_as_if_recorded_together),
    };
    return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
