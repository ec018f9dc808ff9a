// SPDX-License-Identifier: BSD-2-Clause
// Counting runnable threads.
#include "device/cores.h"

#include "base/tests/test.h"

static void alb_cores_parse_runnable__text(void **state)
{
    assert_int_equal(alb_cores_parse_runnable("0.20 0.18 0.12 1/80 11206\n"), 1);
    assert_int_equal(alb_cores_parse_runnable("64.00 32.18 9.12 137/2080 5\n"), 137);
    assert_int_equal(alb_cores_parse_runnable("0.20 0.18 0.12 /80 11206\n"), UINT32_MAX);
    assert_int_equal(alb_cores_parse_runnable("0.20 0.18 0.12 1 80"), UINT32_MAX);
    assert_int_equal(alb_cores_parse_runnable(""), UINT32_MAX);
}

static void alb_cores_has_free__unknown_means_no(void **state)
{
    struct alb_cores cores;
    alb_cores_init(&cores);
    assert_true(cores.usable >= 1);
    alb_cores_fini(&cores);
    assert_int_equal(cores.loadavg_fd, -1);
    assert_false(alb_cores_has_free(&cores, 1000));
}

static void alb_cores_has_free__looks_once_a_millisecond(void **state)
{
    struct alb_cores cores;
    alb_cores_init(&cores);
    cores.usable = 1000000; // never that many
    assert_true(alb_cores_has_free(&cores, 5000));
    cores.usable = 0;
    assert_true(alb_cores_has_free(&cores, 5000 + ALB_NS_PER_MS - 1));
    assert_false(alb_cores_has_free(&cores, 5000 + ALB_NS_PER_MS)); // we run ourselves
    alb_cores_fini(&cores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_cores_parse_runnable__text),
        cmocka_unit_test(alb_cores_has_free__unknown_means_no),
        cmocka_unit_test(alb_cores_has_free__looks_once_a_millisecond),
    };
    return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}
