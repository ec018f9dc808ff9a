// SPDX-License-Identifier: BSD-2-Clause
#include "wire/psn.h"

#include "base/tests/test.h"

static void psn_add__wraps_in_both_directions(void **state)
{
    assert_int_equal(alb_psn_add(0xffffff, 1), 0);
    assert_int_equal(alb_psn_add(0, -1), 0xffffff);
    assert_int_equal(alb_psn_add(5, 0x800000), 0x800005);
    assert_int_equal(alb_psn_next(0xffffff), 0);
}

static void psn_diff__is_signed_in_24_bits(void **state)
{
    assert_int_equal(alb_psn_diff(7, 7), 0);
    assert_int_equal(alb_psn_diff(0, 0xffffff), 1);
    assert_int_equal(alb_psn_diff(0xffffff, 0), -1);
    assert_int_equal(alb_psn_diff(0x7fffff, 0), 0x7fffff);
    assert_int_equal(alb_psn_diff(0x800000, 0), -0x800000);
    for (alb_psn a = 0; a < 0x1000000; a += 0x3fff1)
        for (int32_t d = -0x800000; d < 0x800000; d += 0x7ffff)
            assert_int_equal(alb_psn_diff(alb_psn_add(a, d), a), d);
}

static void psn__order_and_ranges_hold_across_the_wrap(void **state)
{
    assert_true(alb_psn_is_before(0xfffff0, 3));
    assert_false(alb_psn_is_before(3, 0xfffff0));
    assert_true(alb_psn_is_after(3, 0xfffff0));
    assert_false(alb_psn_is_after(9, 9));
    assert_false(alb_psn_is_before(9, 9));

    assert_true(alb_psn_is_within(2, 0xfffffe, 5));
    assert_false(alb_psn_is_within(3, 0xfffffe, 5));
    assert_false(alb_psn_is_within(0xfffffd, 0xfffffe, 5));
    assert_false(alb_psn_is_within(4, 4, 0));
    assert_true(alb_psn_is_within(3, 4, 1u << 24));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(psn_add__wraps_in_both_directions),
        cmocka_unit_test(psn_diff__is_signed_in_24_bits),
        cmocka_unit_test(psn__order_and_ranges_hold_across_the_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
