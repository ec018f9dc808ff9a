// SPDX-License-Identifier: BSD-2-Clause
#include "engine/policy.h"

#include "base/tests/test.h"

static void policy_find__by_name(void **state)
{
    assert_ptr_equal(alb_loss_find("go-back-n"), &alb_loss_go_back_n);
    assert_ptr_equal(alb_congestion_find("aimd"), &alb_congestion_aimd);
    assert_ptr_equal(alb_congestion_find("window"), &alb_congestion_window);
    assert_ptr_equal(alb_congestion_find("dcqcn"), &alb_congestion_dcqcn);
    assert_ptr_equal(alb_congestion_find("fixed"), &alb_congestion_fixed);
    assert_ptr_equal(alb_congestion_find("none"), &alb_congestion_none);
    assert_ptr_equal(alb_path_find("single"), &alb_path_single);
    assert_ptr_equal(alb_path_find("spray"), &alb_path_spray);
    assert_ptr_equal(alb_path_find("adaptive"), &alb_path_adaptive);
}

static void policy_find__unknown(void **state)
{
    static const char *const names[] = {NULL, "", "windows", "go-back", "Single"};
    for (size_t i = 0; i < ALB_COUNT(names); i++) {
        assert_null(alb_loss_find(names[i]));
        assert_null(alb_congestion_find(names[i]));
        assert_null(alb_path_find(names[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy_find__by_name),
        cmocka_unit_test(policy_find__unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
