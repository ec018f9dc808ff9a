// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

static void mbps__there_and_back(void **state)
{
    int known = 0;
    for (int rate = IBV_RATE_2_5_GBPS; rate <= IBV_RATE_1200_GBPS; rate++) {
        int mbps = ibv_rate_to_mbps(rate);
        assert_true(mbps >= 2500);
        assert_int_equal(mbps_to_ibv_rate(mbps), rate);
        known++;
    }
    assert_int_equal(known, 23);
    assert_int_equal(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
    assert_int_equal(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
    assert_int_equal(ibv_rate_to_mbps(1000), -1);
    assert_int_equal(mbps_to_ibv_rate(1), IBV_RATE_MAX);
}

static void mult__there_and_back(void **state)
{
    for (int mult = 1; mult < 1000; mult++) {
        enum ibv_rate rate = mult_to_ibv_rate(mult);
        if (rate != IBV_RATE_MAX)
            assert_int_equal(ibv_rate_to_mult(rate), mult);
    }
    assert_int_equal(ibv_rate_to_mult(IBV_RATE_10_GBPS), 4);
    assert_int_equal(ibv_rate_to_mult(IBV_RATE_100_GBPS), -1);
    assert_int_equal(mult_to_ibv_rate(3), IBV_RATE_MAX);
    assert_int_equal(mult_to_ibv_rate(0), IBV_RATE_MAX);
    assert_int_equal(mult_to_ibv_rate(-1), IBV_RATE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mbps__there_and_back), cmocka_unit_test(mult__there_and_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
