// SPDX-License-Identifier: BSD-2-Clause
// What the device thread knows of a program that polls memory. Times are of no clock.
#include "device/memory_watch.h"

#include "base/tests/test.h"

#define US ALB_NS_PER_US
#define MS ALB_NS_PER_MS

static void alb_memory_watch_begin__short_at_first(void **state)
{
    struct alb_memory_watch watch = {0};
    assert_false(alb_memory_watch_is_on(&watch, 1000 * MS));
    alb_memory_watch_begin(&watch, 1000 * MS);
    assert_true(alb_memory_watch_is_on(&watch, 1000 * MS));
    assert_true(alb_memory_watch_is_on(&watch, 1000 * MS + 199 * US));
    assert_false(alb_memory_watch_is_on(&watch, 1000 * MS + 200 * US));
}

static alb_time length_of_next(struct alb_memory_watch *watch, alb_time at)
{
    alb_memory_watch_begin(watch, at);
    return watch->until - at;
}

static void alb_memory_watch_begin__longer_for_who_needs_another_soon(void **state)
{
    struct alb_memory_watch watch = {0};
    alb_time at = 1000 * MS, length = length_of_next(&watch, at);
    for (int i = 0; i < 8; i++) {
        at += length + 400 * US;
        assert_int_equal(length_of_next(&watch, at), 2 * length);
        length *= 2;
    }
    at += length + 400 * US;
    assert_int_equal(length_of_next(&watch, at), 100 * MS);
    assert_int_equal(length_of_next(&watch, at + 100 * MS + 999 * MS), 100 * MS);
}

static void alb_memory_watch_begin__short_again_for_who_did_without(void **state)
{
    struct alb_memory_watch watch = {0};
    alb_memory_watch_begin(&watch, 1000 * MS);
    alb_memory_watch_begin(&watch, 1001 * MS);
    assert_int_equal(watch.length_ns, 400 * US);
    alb_memory_watch_begin(&watch, watch.until + 4 * MS);
    assert_int_equal(watch.length_ns, 200 * US);
}

static void alb_memory_watch_took__waits_for_a_program_that_answers(void **state)
{
    struct alb_memory_watch watch = {0};
    alb_time at = 1000 * MS;
    assert_int_equal(alb_memory_watch_took(&watch, true, at - 50 * US, at), at + 100 * US);
    // A second request, which the first one's answer would have come before.
    assert_int_equal(alb_memory_watch_took(&watch, true, at - 50 * US, at + 10 * US), 0);
    assert_int_equal(alb_memory_watch_took(&watch, true, at + 15 * US, at + 20 * US), at + 120 * US);
}

static void alb_memory_watch_took__does_not_wait_for_a_program_that_never_polls(void **state)
{
    struct alb_memory_watch watch = {0};
    assert_int_equal(alb_memory_watch_took(&watch, true, 0, 1000 * MS), 0);
}

static void alb_memory_watch_took__lets_nobody_else_wait(void **state)
{
    struct alb_memory_watch watch = {0};
    alb_time at = 1000 * MS;
    assert_int_equal(alb_memory_watch_took(&watch, false, at - 50 * US, at), 0);
    assert_int_equal(alb_memory_watch_took(&watch, true, at - 50 * US, at), at + 100 * US);
    assert_int_equal(alb_memory_watch_took(&watch, false, at + 1 * US, at + 2 * US), 0);
    assert_int_equal(alb_memory_watch_took_nothing(&watch, at + 3 * US), 0);
}

static void alb_memory_watch_took_nothing__waits_on_as_long_as_it_was_to(void **state)
{
    struct alb_memory_watch watch = {0};
    alb_time at = 1000 * MS;
    assert_int_equal(alb_memory_watch_took_nothing(&watch, at), 0);
    alb_memory_watch_took(&watch, true, at - 50 * US, at);
    assert_int_equal(alb_memory_watch_took_nothing(&watch, at + 99 * US), at + 100 * US);
    assert_int_equal(alb_memory_watch_took_nothing(&watch, at + 100 * US), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_memory_watch_begin__short_at_first),
        cmocka_unit_test(alb_memory_watch_begin__longer_for_who_needs_another_soon),
        cmocka_unit_test(alb_memory_watch_begin__short_again_for_who_did_without),
        cmocka_unit_test(alb_memory_watch_took__waits_for_a_program_that_answers),
        cmocka_unit_test(alb_memory_watch_took__does_not_wait_for_a_program_that_never_polls),
        cmocka_unit_test(alb_memory_watch_took__lets_nobody_else_wait),
        cmocka_unit_test(alb_memory_watch_took_nothing__waits_on_as_long_as_it_was_to),
    };
    return cmocka_run_group_tests_name("memory_watch", tests, NULL, NULL);
}
