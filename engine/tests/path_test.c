// SPDX-License-Identifier: BSD-2-Clause
#include "engine/policy.h"

#include "base/tests/test.h"

static void single__keeps_every_flow_on_one_path(void **state)
{
    assert_int_equal(alb_path_single.choose(0), 0);
    assert_int_equal(alb_path_single.choose(0x12345678), 0);
    assert_int_equal(alb_path_single.choose(UINT32_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single__keeps_every_flow_on_one_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
