// SPDX-License-Identifier: BSD-2-Clause
// How a thread that polls shares its core.
#include "device/share.h"

#include "base/tests/test.h"
#include "engine/engine.h"

#define US ALB_NS_PER_US
#define MS ALB_NS_PER_MS

// Fruitless polls until it is time to yield.
static uint32_t count_polls(struct alb_share *share)
{
    uint32_t polls = 1;
    while (!alb_share_found_none(share))
        polls++;
    return polls;
}

static void found_none__yields_after_a_few(void **state)
{
    struct alb_share share = ALB_SHARE_INIT;
    assert_int_equal(count_polls(&share), ALB_SHARE_POLLS_MIN);
    assert_false(alb_share_found_none(&share));
    alb_share_found(&share);
    assert_int_equal(count_polls(&share), ALB_SHARE_POLLS_MIN);
    assert_true(alb_share_yields(&share, 0));
}

static void yielded__less_often_where_nobody_takes_the_core(void **state)
{
    struct alb_share share = ALB_SHARE_INIT;
    for (uint32_t polls = ALB_SHARE_POLLS_MIN; polls < ALB_SHARE_POLLS_MAX; polls *= 2) {
        assert_int_equal(count_polls(&share), polls);
        assert_false(alb_share_yielded(&share, MS, MS + US, ALB_HOST_LOAD_ONE));
    }
    assert_false(alb_share_yielded(&share, MS, MS + US, ALB_HOST_LOAD_ONE));
    assert_int_equal(count_polls(&share), ALB_SHARE_POLLS_MAX);
    assert_true(alb_share_yielded(&share, MS, MS + 5 * US, ALB_HOST_LOAD_ONE));
    assert_int_equal(count_polls(&share), ALB_SHARE_POLLS_MIN);
    assert_true(alb_share_yields(&share, MS + 5 * US));
}

// The first two are to nobody, on a virtual host; the third is to a thread that only yields back.
static void yielded__a_slow_system_call_is_not_another_thread(void **state)
{
    struct alb_share share = ALB_SHARE_INIT;
    assert_false(alb_share_yielded(&share, MS, MS + 1200, ALB_HOST_LOAD_ONE));
    assert_false(alb_share_yielded(&share, MS, MS + 1300, ALB_HOST_LOAD_ONE));
    assert_int_equal(count_polls(&share), 4 * ALB_SHARE_POLLS_MIN);
    assert_true(alb_share_yielded(&share, MS, MS + 9 * US, ALB_HOST_LOAD_ONE));
    assert_int_equal(count_polls(&share), ALB_SHARE_POLLS_MIN);
    // Who has been beside others since it began does not take them for the call.
    struct alb_share crowded = ALB_SHARE_INIT;
    for (uint32_t i = 0; i < 10; i++)
        assert_true(alb_share_yielded(&crowded, MS, MS + 4 * US, ALB_HOST_LOAD_ONE));
    // Where calls are quick, a microsecond and a half is a thread's.
    struct alb_share quick = ALB_SHARE_INIT;
    assert_false(alb_share_yielded(&quick, MS, MS + 200, ALB_HOST_LOAD_ONE));
    assert_true(alb_share_yielded(&quick, MS, MS + 1500, ALB_HOST_LOAD_ONE));
}

static void yielded__not_soon_again_to_one_that_computes(void **state)
{
    struct alb_share share = ALB_SHARE_INIT;
    assert_true(alb_share_yielded(&share, 10 * MS, 11 * MS, ALB_HOST_LOAD_ONE));
    assert_true(alb_share_yields(&share, 11 * MS));
    assert_true(alb_share_yielded(&share, 11 * MS, 15 * MS, ALB_HOST_LOAD_ONE));
    assert_false(alb_share_yields(&share, 15 * MS));
    assert_false(alb_share_yields(&share, 15 * MS + 499 * US));
    assert_true(alb_share_yields(&share, 15 * MS + 500 * US));
    // Of two others for each core, each had it for so long.
    struct alb_share busy = ALB_SHARE_INIT;
    assert_true(alb_share_yielded(&busy, 10 * MS, 12 * MS, 3 * ALB_HOST_LOAD_ONE));
    assert_true(alb_share_yields(&busy, 12 * MS));
    assert_true(alb_share_yielded(&busy, 12 * MS, 15 * MS, 3 * ALB_HOST_LOAD_ONE));
    assert_false(alb_share_yields(&busy, 15 * MS));
}

// Each of many keeps the core as long as it may: they do not take each other for threads that compute.
static void yielded__to_many_that_poll(void **state)
{
    struct alb_share share = ALB_SHARE_INIT;
    assert_true(alb_share_yielded(&share, 0, 30 * 500 * US, 31 * ALB_HOST_LOAD_ONE));
    assert_true(alb_share_yields(&share, 30 * 500 * US));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_none__yields_after_a_few),
        cmocka_unit_test(yielded__less_often_where_nobody_takes_the_core),
        cmocka_unit_test(yielded__a_slow_system_call_is_not_another_thread),
        cmocka_unit_test(yielded__not_soon_again_to_one_that_computes),
        cmocka_unit_test(yielded__to_many_that_poll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
