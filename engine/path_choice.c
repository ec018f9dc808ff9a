// SPDX-License-Identifier: BSD-2-Clause
// Which way of choosing a path this machine takes.
#include "engine/path_choice.h"

#include <stdatomic.h>

enum {
    CHOOSERS_MAX = 2,
};

static uint32_t choosers_here(const struct alb_path_chooser *choosers[static CHOOSERS_MAX])
{
    uint32_t count = 0;
    choosers[count++] = &alb_path_chooser_plain;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        choosers[count++] = &alb_path_chooser_avx2;
#endif
    return count;
}

const struct alb_path_chooser *alb_path_chooser(uint32_t index)
{
    const struct alb_path_chooser *choosers[CHOOSERS_MAX];
    return index < choosers_here(choosers) ? choosers[index] : NULL;
}

// Every thread that looks first finds the same.
const struct alb_path_chooser *alb_path_chooser_best(void)
{
    static const struct alb_path_chooser *_Atomic chosen;
    const struct alb_path_chooser *chooser = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (alb_unlikely(!chooser)) {
        const struct alb_path_chooser *choosers[CHOOSERS_MAX];
        chooser = choosers[choosers_here(choosers) - 1];
        atomic_store_explicit(&chosen, chooser, memory_order_relaxed);
    }
    return chooser;
}
