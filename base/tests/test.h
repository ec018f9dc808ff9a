// SPDX-License-Identifier: BSD-2-Clause
// cmocka with the headers that it wants before itself.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// How much of n a test does, seeds or seconds: what holds of all the ordinary build has to show. A sanitizer, under
// which it takes four times as long, looks at what is done on the way, of which a quarter has as much.
#ifdef __SANITIZE_ADDRESS__
#define TEST_SOME(n) ((n) / 4)
#else
#define TEST_SOME(n) (n)
#endif
