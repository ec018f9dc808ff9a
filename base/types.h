// SPDX-License-Identifier: BSD-2-Clause
// Scalars and small macros that every folder uses.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A moment or a span in nanoseconds. Moments count from an origin the driver chooses (CLOCK_MONOTONIC, or the start of
// a simulation); only differences and order have a meaning.
typedef uint64_t alb_time;

#define ALB_TIME_NEVER UINT64_MAX
#define ALB_NS_PER_US  1000ull
#define ALB_NS_PER_MS  1000000ull
#define ALB_NS_PER_S   1000000000ull

#define ALB_MIN(a, b)                      \
    ({                                     \
        __typeof__(a) min_a_ = (a);        \
        __typeof__(b) min_b_ = (b);        \
        min_a_ < min_b_ ? min_a_ : min_b_; \
    })
#define ALB_MAX(a, b)                      \
    ({                                     \
        __typeof__(a) max_a_ = (a);        \
        __typeof__(b) max_b_ = (b);        \
        max_a_ > max_b_ ? max_a_ : max_b_; \
    })

#define ALB_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define ALB_CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#define alb_likely(x)   __builtin_expect(!!(x), 1)
#define alb_unlikely(x) __builtin_expect(!!(x), 0)

// Checked in release builds too: a failed one is a bug of Albedo, never of its caller, peer or network.
#define alb_assert(condition)                                  \
    do {                                                       \
        if (alb_unlikely(!(condition)))                        \
            alb_assert_failed(#condition, __FILE__, __LINE__); \
    } while (0)

_Noreturn void alb_assert_failed(const char *condition, const char *file, int line);
