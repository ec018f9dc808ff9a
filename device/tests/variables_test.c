// SPDX-License-Identifier: BSD-2-Clause
// Which environment variables are warned of.
#include "device/device.h"

#include "base/tests/test.h"

#include <stdio.h>

static uint32_t warned(const char *text)
{
    char copy[128];
    snprintf(copy, sizeof(copy), "%s", text);
    char *environment[] = {"PATH=/bin", copy, "HOME=/", NULL};
    return alb_device_warn_of_variables(environment);
}

static void variables__of_albedo_are_known(void **state)
{
    assert_int_equal(warned("ALBEDO_NET=10.0.0.1"), 0);
    assert_int_equal(warned("ALBEDO_COMPLETIONS="), 0);
    assert_int_equal(warned("ALBEDO_PATH=spray"), 0);
    assert_int_equal(warned("ALBEDO_PATHS=4"), 0);
}

static void variables__misspelt_ones_are_warned_of(void **state)
{
    assert_int_equal(warned("ALBEDO_DEVICE=albedo0"), 1);
    assert_int_equal(warned("ALBEDO_LOS=csa"), 1);
    assert_int_equal(warned("ALBEDO_"), 1);
    assert_int_equal(warned("ALBEDO_net=10.0.0.1"), 1);
}

static void variables__of_others_are_theirs(void **state)
{
    assert_int_equal(warned("ALBEDO=1"), 0);
    assert_int_equal(warned("MY_ALBEDO_NET=1"), 0);
    assert_int_equal(alb_device_warn_of_variables(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables__of_albedo_are_known),
        cmocka_unit_test(variables__misspelt_ones_are_warned_of),
        cmocka_unit_test(variables__of_others_are_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
