// SPDX-License-Identifier: BSD-2-Clause
// Asks the caches for lines that will be written to. from: may be NULL.
#pragma once

#include <stdint.h>

enum {
    ALB_SIM_LINE_BYTES = 64,
};

static inline void alb_sim_fetch(const void *from, uint32_t lines)
{
    for (uint32_t i = 0; i < lines; i++) // as a number, which NULL is too
        __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)ALB_SIM_LINE_BYTES * i), 1);
    __asm__ volatile(""); // else GCC takes a function that does nothing but this for one without effect, and drops it
}
