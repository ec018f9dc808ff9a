// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/pair_expect.h"

void pair_expect(struct pair *pair, int side, uint64_t wr_id, enum alb_wc_status status)
{
    struct alb_wc wc;
    assert_true(pair_poll(pair, side, &wc));
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
}

void pair_expect_none(struct pair *pair, int side)
{
    struct alb_wc wc;
    assert_false(pair_poll(pair, side, &wc));
}
