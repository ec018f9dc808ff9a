// SPDX-License-Identifier: BSD-2-Clause
// Tells ThreadSanitizer what it cannot see. A program that is built with it brings its runtime, but this library is not
// instrumented: without help, a thread that takes a completion seems to race with the one that posted the request, and
// so do two threads that hold one lock of ours in turn.
//
// A completion is ordered behind the posting of what has the same wr_id. Where a program gives one number to several
// requests more is ordered than is promised, which may hide a mistake of the program but does not invent one.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_THREAD__) // this library is instrumented, and its own races must not be hidden

static inline void alb_race_detector_acquire(void *object)
{
    (void)object;
}

static inline void alb_race_detector_release(void *object)
{
    (void)object;
}

#else

// <sanitizer/tsan_interface.h>; null unless the program has the runtime.
extern void __tsan_acquire(void *object) __attribute__((weak));
extern void __tsan_release(void *object) __attribute__((weak));

// The calling thread comes after all that have released the object.
static inline void alb_race_detector_acquire(void *object)
{
    if (__builtin_expect(__tsan_acquire != NULL, 0))
        __tsan_acquire(object);
}

static inline void alb_race_detector_release(void *object)
{
    if (__builtin_expect(__tsan_release != NULL, 0))
        __tsan_release(object);
}

#endif

// One address for each wr_id, as far as they last.
static inline void *alb_race_detector_request(uint64_t wr_id)
{
    extern char alb_race_detector_requests[4096];
    return &alb_race_detector_requests[(wr_id * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

// Before the device may see a request.
static inline void alb_race_detector_post(uint64_t wr_id)
{
    alb_race_detector_release(alb_race_detector_request(wr_id));
}

// When a completion is taken.
static inline void alb_race_detector_complete(uint64_t wr_id)
{
    alb_race_detector_acquire(alb_race_detector_request(wr_id));
}
