// SPDX-License-Identifier: BSD-2-Clause
// The cache of queue-pair contexts.
#include "sim/rnic.h"

#include "base/tests/test.h"

static void in__least_recently_used_makes_room(void **state)
{
    struct alb_rnic *rnic = alb_rnic_new(2, 1000, 64);
    assert_int_equal(alb_rnic_in(rnic, 1, 0), 1000);
    assert_int_equal(alb_rnic_in(rnic, 2, 5000), 6000);
    assert_int_equal(alb_rnic_in(rnic, 1, 10000), 10000); // a hit
    assert_int_equal(alb_rnic_in(rnic, 3, 20000), 21000); // 2 goes
    assert_int_equal(alb_rnic_in(rnic, 1, 30000), 30000);
    assert_int_equal(alb_rnic_in(rnic, 2, 40000), 41000);
    assert_int_equal(alb_rnic_hits(rnic), 2);
    assert_int_equal(alb_rnic_misses(rnic), 4);
    alb_rnic_free(rnic);
}

static void in__hits_wait_behind_misses(void **state)
{
    struct alb_rnic *rnic = alb_rnic_new(2, 1000, 64);
    alb_rnic_in(rnic, 1, 0);
    assert_int_equal(alb_rnic_in(rnic, 2, 5000), 6000);
    assert_int_equal(alb_rnic_in(rnic, 1, 5100), 6000);
    alb_rnic_free(rnic);
}

static void out__both_ways_share_the_cache_and_have_their_own_pipeline(void **state)
{
    struct alb_rnic *rnic = alb_rnic_new(4, 1000, 64);
    alb_rnic_bind(rnic, 9, 0x123456, 7);
    assert_int_equal(alb_rnic_out(rnic, 9, 0x123456, 0), 1000);
    assert_int_equal(alb_rnic_in(rnic, 7, 1100), 1100);     // it has been fetched
    assert_int_equal(alb_rnic_out(rnic, 9, 77, 200), 1000); // of no queue pair: it only waits its turn
    alb_rnic_free(rnic);
}

// It does not help to ask by the other pipeline.
static void in__waits_for_what_the_other_way_fetches(void **state)
{
    struct alb_rnic *rnic = alb_rnic_new(4, 1000, 64);
    alb_rnic_bind(rnic, 9, 0x123456, 7);
    alb_rnic_in(rnic, 7, 0);
    assert_int_equal(alb_rnic_out(rnic, 9, 0x123456, 100), 1000);
    assert_int_equal(alb_rnic_misses(rnic), 1);
    alb_rnic_free(rnic);
}

static void bind__many_come_and_go(void **state)
{
    enum { COUNT = 5000 };
    struct alb_rnic *rnic = alb_rnic_new(COUNT, 1, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        alb_rnic_bind(rnic, i % 100, i, i);
    for (uint32_t i = 0; i < COUNT; i += 2)
        alb_rnic_unbind(rnic, i % 100, i);
    for (uint32_t i = 0; i < COUNT; i++)
        alb_rnic_out(rnic, i % 100, i, 0);
    assert_int_equal(alb_rnic_misses(rnic), COUNT / 2);
    alb_rnic_free(rnic);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in__least_recently_used_makes_room),
        cmocka_unit_test(in__hits_wait_behind_misses),
        cmocka_unit_test(out__both_ways_share_the_cache_and_have_their_own_pipeline),
        cmocka_unit_test(in__waits_for_what_the_other_way_fetches),
        cmocka_unit_test(bind__many_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
