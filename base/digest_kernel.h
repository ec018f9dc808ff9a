// SPDX-License-Identifier: BSD-2-Clause
// One way to compute the digest: the same source compiled for other vectors.
#pragma once

#include "base/digest.h"

struct alb_digest_kernel {
    const char *name;
    void (*begin)(struct alb_digest_state *state);
    void (*add)(struct alb_digest_state *state, const void *bytes, size_t length);
    struct alb_digest (*end)(const struct alb_digest_state *state);
    struct alb_digest (*of)(const void *bytes, size_t length);
};

extern const struct alb_digest_kernel alb_digest_plain;
extern const struct alb_digest_kernel alb_digest_avx2;
extern const struct alb_digest_kernel alb_digest_avx512;

// Those that run on this machine, the slowest first; NULL behind the last.
const struct alb_digest_kernel *alb_digest_kernel(uint32_t index);
