// SPDX-License-Identifier: BSD-2-Clause
// A search that an assertion or a crash ends says in which seed that was.
#pragma once

#include <stdint.h>

// program: as its lines begin; stays the caller's.
void alb_last_words_begin(const char *program);
void alb_last_words_seed(uint64_t seed);
