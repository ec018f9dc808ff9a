// SPDX-License-Identifier: BSD-2-Clause
// Which kernel computes the digest on this machine.
#include "base/digest_kernel.h"

#include <stdatomic.h>

static uint32_t kernels_here(const struct alb_digest_kernel *kernels[static 3])
{
    uint32_t count = 0;
    kernels[count++] = &alb_digest_plain;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        kernels[count++] = &alb_digest_avx2;
    if (__builtin_cpu_supports("avx512f"))
        kernels[count++] = &alb_digest_avx512;
#endif
    return count;
}

const struct alb_digest_kernel *alb_digest_kernel(uint32_t index)
{
    const struct alb_digest_kernel *kernels[3];
    return index < kernels_here(kernels) ? kernels[index] : NULL;
}

// Every thread that looks first finds the same.
static const struct alb_digest_kernel *best(void)
{
    static const struct alb_digest_kernel *_Atomic chosen;
    const struct alb_digest_kernel *kernel = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (alb_unlikely(!kernel)) {
        const struct alb_digest_kernel *kernels[3];
        kernel = kernels[kernels_here(kernels) - 1];
        atomic_store_explicit(&chosen, kernel, memory_order_relaxed);
    }
    return kernel;
}

void alb_digest_begin(struct alb_digest_state *state)
{
    best()->begin(state);
}

void alb_digest_add(struct alb_digest_state *state, const void *bytes, size_t length)
{
    best()->add(state, bytes, length);
}

struct alb_digest alb_digest_end(const struct alb_digest_state *state)
{
    return best()->end(state);
}

struct alb_digest alb_digest_of(const void *bytes, size_t length)
{
    return best()->of(bytes, length);
}
