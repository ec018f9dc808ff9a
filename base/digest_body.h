// SPDX-License-Identifier: BSD-2-Clause
// The body of a kernel. xxhash.h takes the vectors that the compiler may use, and is inlined whole: each file that
// includes this one has a copy for its own compiler options, named ALB_DIGEST_KERNEL.
#include "base/digest_kernel.h"

// How far in front of the bytes that are read the next ones are fetched; 512 by itself, which is too late for bytes
// that are in no cache (LESSONS 86).
#define XXH_PREFETCH_DIST 2048
#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(struct alb_digest_state), "a state is too small");
_Static_assert(_Alignof(XXH3_state_t) <= _Alignof(struct alb_digest_state), "a state is not aligned");

static XXH3_state_t *state_of(struct alb_digest_state *state)
{
    return (XXH3_state_t *)state->opaque;
}

static struct alb_digest digest_of(XXH128_hash_t hash)
{
    return (struct alb_digest){.low = hash.low64, .high = hash.high64};
}

static void begin(struct alb_digest_state *state)
{
    XXH3_INITSTATE(state_of(state));
    XXH3_128bits_reset(state_of(state));
}

static void add(struct alb_digest_state *state, const void *bytes, size_t length)
{
    XXH3_128bits_update(state_of(state), bytes, length);
}

static struct alb_digest end(const struct alb_digest_state *state)
{
    return digest_of(XXH3_128bits_digest((const XXH3_state_t *)state->opaque));
}

static struct alb_digest of(const void *bytes, size_t length)
{
    return digest_of(XXH3_128bits(bytes, length));
}

#define KERNEL_NAME_(kernel) #kernel
#define KERNEL_NAME(kernel)  KERNEL_NAME_(kernel)

const struct alb_digest_kernel ALB_DIGEST_KERNEL = {KERNEL_NAME(ALB_DIGEST_KERNEL), begin, add, end, of};
