// SPDX-License-Identifier: BSD-2-Clause
#include "engine/region_version.h"

#include "engine/impl.h"

#include <errno.h>

#define STRIDE_MIN   64
#define HOLDERS_MASK (ALB_VERSION_STEP - 1)

static bool stride_is_valid(uint64_t stride, uint64_t length)
{
    return stride == length || (stride >= STRIDE_MIN && (stride & (stride - 1)) == 0);
}

static uint64_t word_count(uint64_t length, uint64_t stride)
{
    return length / stride + (length % stride != 0);
}

static bool any_is_held(const _Atomic uint64_t *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (atomic_load_explicit(&words[i], memory_order_relaxed) & 1)
            return true;
    return false;
}

// The words of a process that was killed may say that something is being changed.
static void begin_words(_Atomic uint64_t *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t word = atomic_load_explicit(&words[i], memory_order_relaxed);
        if (word & HOLDERS_MASK)
            atomic_store_explicit(&words[i], (word & ~HOLDERS_MASK) + ALB_VERSION_STEP, memory_order_release);
    }
}

int alb_mr_set_versions(struct alb_region *mr, _Atomic uint64_t *words, uint64_t stride)
{
    if (mr->kind != ALB_REGION_MR)
        return EINVAL;
    if (!mr->engine->csa)
        return EOPNOTSUPP;
    if (!words) {
        if (mr->versions && any_is_held(mr->versions, word_count(mr->length, mr->version_stride)))
            return EBUSY;
        mr->versions = NULL;
        return 0;
    }
    if (mr->length == 0 || !stride_is_valid(stride, mr->length) || (uintptr_t)words % sizeof(*words) != 0)
        return EINVAL;
    if (mr->versions || mr->held_count)
        return EBUSY;
    begin_words(words, word_count(mr->length, stride));
    mr->versions = words;
    mr->version_stride = stride;
    return 0;
}

// The words of a range.
struct span {
    _Atomic uint64_t *words;
    uint64_t count;
};

static struct span span_of(struct alb_region *region, uint64_t va, uint64_t length)
{
    const struct alb_region *root = alb_region_root(region);
    if (!root->versions || length == 0)
        return (struct span){0};
    uint64_t offset = alb_region_offset(region, va);
    uint64_t first = offset / root->version_stride, last = (offset + length - 1) / root->version_stride;
    return (struct span){root->versions + first, last - first + 1};
}

// There is one writer, so plain loads and stores do.
void alb_region_hold_readers(struct alb_region *region, uint64_t va, uint64_t length)
{
    struct span span = span_of(region, va, length);
    alb_region_root(region)->held_count += length > 0;
    for (uint64_t i = 0; i < span.count; i++) {
        uint64_t word = atomic_load_explicit(&span.words[i], memory_order_relaxed);
        atomic_store_explicit(&span.words[i], word + (word & 1 ? 2 : 1), memory_order_relaxed);
    }
    alb_versions_fence(memory_order_release);
}

void alb_region_let_readers(struct alb_region *region, uint64_t va, uint64_t length)
{
    struct span span = span_of(region, va, length);
    alb_region_root(region)->held_count -= length > 0;
    for (uint64_t i = 0; i < span.count; i++) {
        uint64_t word = atomic_load_explicit(&span.words[i], memory_order_relaxed);
        bool is_last = (word & HOLDERS_MASK) == 1;
        atomic_store_explicit(&span.words[i], is_last ? word - 1 + ALB_VERSION_STEP : word - 2, memory_order_release);
    }
}

bool alb_region_holds_readers(struct alb_region *region, uint64_t va, uint64_t length)
{
    struct span span = span_of(region, va, length);
    return any_is_held(span.words, span.count);
}
