// SPDX-License-Identifier: BSD-2-Clause
// Tells LeakSanitizer, if the program has it, of mapped pages: it does not look for pointers in those by itself, and
// takes what is only reached from there for leaked when a program ends with its device open.
#pragma once

#include <stddef.h>

// <sanitizer/lsan_interface.h>; null unless the program has the runtime.
extern void __lsan_register_root_region(const void *begin, size_t bytes) __attribute__((weak));
extern void __lsan_unregister_root_region(const void *begin, size_t bytes) __attribute__((weak));

static inline void alb_leak_checker_show(const void *pages, size_t bytes)
{
    if (__lsan_register_root_region)
        __lsan_register_root_region(pages, bytes);
}

// Before they are unmapped.
static inline void alb_leak_checker_hide(const void *pages, size_t bytes)
{
    if (__lsan_unregister_root_region)
        __lsan_unregister_root_region(pages, bytes);
}
