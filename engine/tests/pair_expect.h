// SPDX-License-Identifier: BSD-2-Clause
// Completions of a pair (engine/tests/pair.h) as a cmocka test expects them.
#pragma once

#include "engine/tests/pair.h"

#include "base/tests/test.h"

// Takes the oldest completion of a side, which must be this one.
void pair_expect(struct pair *pair, int side, uint64_t wr_id, enum alb_wc_status status);
// There is none.
void pair_expect_none(struct pair *pair, int side);
