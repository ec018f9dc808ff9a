// SPDX-License-Identifier: BSD-2-Clause
// The log-linear histogram.
#include "base/histogram.h"

#include <string.h>

enum { PER_DOUBLING = 1 << ALB_HISTOGRAM_DIGIT };

// Values below two times PER_DOUBLING have a bucket each. Above, bits below the first ALB_HISTOGRAM_DIGIT + 1 are
// dropped.
static uint32_t bucket_of(uint64_t value)
{
    if (value < 2 * PER_DOUBLING)
        return (uint32_t)value;
    uint32_t dropped = 63 - (uint32_t)__builtin_clzll(value) - ALB_HISTOGRAM_DIGIT;
    return dropped * PER_DOUBLING + (uint32_t)(value >> dropped);
}

// The middle of a bucket.
static uint64_t value_of(uint32_t bucket)
{
    if (bucket < 2 * PER_DOUBLING)
        return bucket;
    uint32_t dropped = bucket / PER_DOUBLING - 1;
    uint64_t first = (uint64_t)(bucket - dropped * PER_DOUBLING) << dropped;
    return first + (1ull << dropped) / 2;
}

void alb_histogram_init(struct alb_histogram *histogram)
{
    memset(histogram, 0, sizeof(*histogram));
    histogram->min = UINT64_MAX;
}

void alb_histogram_record(struct alb_histogram *histogram, uint64_t value)
{
    histogram->count++;
    histogram->sum += value;
    histogram->min = ALB_MIN(histogram->min, value);
    histogram->max = ALB_MAX(histogram->max, value);
    histogram->buckets[bucket_of(value)]++;
}

void alb_histogram_merge(struct alb_histogram *histogram, const struct alb_histogram *other)
{
    histogram->count += other->count;
    histogram->sum += other->sum;
    histogram->min = ALB_MIN(histogram->min, other->min);
    histogram->max = ALB_MAX(histogram->max, other->max);
    for (uint32_t i = 0; i < ALB_HISTOGRAM_BUCKETS; i++)
        histogram->buckets[i] += other->buckets[i];
}

uint64_t alb_histogram_percentile(const struct alb_histogram *histogram, uint32_t per_million)
{
    if (histogram->count == 0)
        return 0;
    // The rank of the value that is asked for, from 1.
    unsigned __int128 share = (unsigned __int128)histogram->count * ALB_MIN(per_million, 1000000u);
    uint64_t rank = (uint64_t)((share + 999999) / 1000000);
    if (rank <= 1)
        return histogram->min;
    if (rank == histogram->count)
        return histogram->max;

    uint32_t bucket = 0;
    for (uint64_t passed = histogram->buckets[0]; passed < rank; passed += histogram->buckets[bucket])
        bucket++;
    return ALB_MAX(histogram->min, ALB_MIN(histogram->max, value_of(bucket)));
}

uint64_t alb_histogram_mean(const struct alb_histogram *histogram)
{
    return histogram->count == 0 ? 0 : (uint64_t)(histogram->sum / histogram->count);
}
