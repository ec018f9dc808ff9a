// SPDX-License-Identifier: BSD-2-Clause
// How long the device thread sleeps while a program polls.
#include "device/nap.h"

#include "base/tests/test.h"

#define US ALB_NS_PER_US
#define MS ALB_NS_PER_MS

#define TAKEOVER_NS (100 * US)
#define DOUBLED_MAX (1600 * US)

static alb_time begin(struct alb_nap *nap, alb_time now)
{
    return alb_nap_begin(nap, TAKEOVER_NS, DOUBLED_MAX, ALB_NAP_MAX_NS, now);
}

static void begin__doubles_some_times(void **state)
{
    struct alb_nap nap = {0};
    assert_false(alb_nap_is_on(&nap));
    assert_int_equal(begin(&nap, MS), 100 * US);
    assert_true(alb_nap_is_on(&nap));
    assert_int_equal(begin(&nap, MS + 100 * US), 200 * US);
    assert_int_equal(begin(&nap, MS + 300 * US), 400 * US);
    assert_int_equal(begin(&nap, MS + 700 * US), 400 * US);
}

// What a busy host makes of the takeover is not doubled beyond bounds.
static void begin__doubled_naps_have_a_bound(void **state)
{
    struct alb_nap nap = {0};
    assert_int_equal(alb_nap_begin(&nap, MS, DOUBLED_MAX, 0, MS), MS);
    assert_int_equal(alb_nap_begin(&nap, MS, DOUBLED_MAX, 0, 2 * MS), DOUBLED_MAX);
}

// So a second of polling is interrupted by some 500 naps instead of 2,500, and who stops waits for a sixteenth more.
static void begin__takes_a_share_of_what_was_polled_for(void **state)
{
    struct alb_nap nap = {0};
    alb_time from = MS, now = from;
    uint32_t naps = 0;
    for (; now < from + ALB_NS_PER_S; naps++) {
        alb_time ns = begin(&nap, now), polled_ns = now - from;
        assert_true(ns <= ALB_MAX(polled_ns / 16, 400 * US));
        now += ns;
    }
    assert_in_range(naps, 500, 560);
    assert_int_equal(alb_nap_begin(&nap, TAKEOVER_NS, DOUBLED_MAX, 0, now), 400 * US); // it may be away at any time
    assert_int_equal(begin(&nap, now), 2 * MS);
}

static void end__the_next_one_is_short_again(void **state)
{
    struct alb_nap nap = {0};
    begin(&nap, MS);
    begin(&nap, 1000 * MS);
    alb_nap_end(&nap);
    assert_false(alb_nap_is_on(&nap));
    assert_int_equal(begin(&nap, 2000 * MS), 100 * US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begin__doubles_some_times),
        cmocka_unit_test(begin__doubled_naps_have_a_bound),
        cmocka_unit_test(begin__takes_a_share_of_what_was_polled_for),
        cmocka_unit_test(end__the_next_one_is_short_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
