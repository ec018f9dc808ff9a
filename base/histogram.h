// SPDX-License-Identifier: BSD-2-Clause
// A histogram of 64-bit values in fixed memory (15 KiB): exact below 64, and above that with 32 equal buckets for each
// power of two, so that a value read back is off by less than 1.6 %. Recording costs a few instructions.
#pragma once

#include "base/types.h"

enum {
    ALB_HISTOGRAM_DIGIT = 5, // log2 of the buckets for each power of two
    ALB_HISTOGRAM_BUCKETS = (64 - ALB_HISTOGRAM_DIGIT + 1) << ALB_HISTOGRAM_DIGIT,
};

struct alb_histogram {
    uint64_t count;
    uint64_t min; // UINT64_MAX while empty
    uint64_t max; // 0 while empty
    unsigned __int128 sum;
    uint64_t buckets[ALB_HISTOGRAM_BUCKETS];
};

void alb_histogram_init(struct alb_histogram *histogram);
void alb_histogram_record(struct alb_histogram *histogram, uint64_t value);

// Adds all that other has recorded.
void alb_histogram_merge(struct alb_histogram *histogram, const struct alb_histogram *other);

// The smallest value that at least per_million of a million recorded values do not exceed: 500,000 is the median, 0 the
// minimum and 1,000,000 the maximum (both exact). 0 while empty. More than 1,000,000 counts as 1,000,000.
uint64_t alb_histogram_percentile(const struct alb_histogram *histogram, uint32_t per_million);

// The exact mean, rounded down. 0 while empty.
uint64_t alb_histogram_mean(const struct alb_histogram *histogram);
