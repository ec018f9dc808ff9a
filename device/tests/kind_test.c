// SPDX-License-Identifier: BSD-2-Clause
// Which devices there are, and how a list of names chooses among them.
#include "device/kind.h"

#include "base/tests/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct alb_device_selection selection;
static char error[256];

static void alb_device_name__roce0_first(void **state)
{
    assert_string_equal(alb_device_name(0), "roce0");
    assert_string_equal(alb_device_name(1), "albedo0");
    assert_null(alb_device_name(2));
}

static void alb_device_kind_find__by_name(void **state)
{
    assert_string_equal(alb_device_kind_find("roce0")->transport, "rc");
    assert_string_equal(alb_device_kind_find("albedo0")->transport, "csa");
    assert_null(alb_device_kind_find("albedo"));
    assert_null(alb_device_kind_find(""));
}

static void alb_device_select__in_the_order_asked_for(void **state)
{
    assert_int_equal(alb_device_select("albedo0", &selection, error, sizeof(error)), 0);
    assert_int_equal(selection.count, 1);
    assert_int_equal(selection.index[0], 1);
    assert_int_equal(alb_device_select("albedo0,roce0", &selection, error, sizeof(error)), 0);
    assert_int_equal(selection.count, 2);
    assert_int_equal(selection.index[0], 1);
    assert_int_equal(selection.index[1], 0);
}

static void alb_device_select__refuses(void **state)
{
    static const char *const wrong[] = {"", "mlx5_0", "roce0,", "roce0,,albedo0", "roce0, albedo0", "ROCE0"};
    for (size_t i = 0; i < ALB_COUNT(wrong); i++) {
        error[0] = 0;
        assert_int_equal(alb_device_select(wrong[i], &selection, error, sizeof(error)), EINVAL);
        assert_non_null(strstr(error, "there are roce0 and albedo0"));
    }
    assert_int_equal(alb_device_select("roce0,roce0", &selection, error, sizeof(error)), EINVAL);
    assert_non_null(strstr(error, "twice"));
    char endless[4096];
    memset(endless, ',', sizeof(endless));
    endless[sizeof(endless) - 1] = 0;
    assert_int_equal(alb_device_select(endless, &selection, error, sizeof(error)), EINVAL);
}

static void alb_device_selection_from_environment__all_by_default(void **state)
{
    unsetenv("ALBEDO_DEVICES");
    assert_int_equal(alb_device_selection_from_environment(&selection, error, sizeof(error)), 0);
    assert_int_equal(selection.count, 2);
    assert_int_equal(selection.index[0], 0);
    setenv("ALBEDO_DEVICES", "", 1);
    assert_int_equal(alb_device_selection_from_environment(&selection, error, sizeof(error)), 0);
    assert_int_equal(selection.count, 2);
    setenv("ALBEDO_DEVICES", "albedo0", 1);
    assert_int_equal(alb_device_selection_from_environment(&selection, error, sizeof(error)), 0);
    assert_int_equal(selection.count, 1);
    assert_int_equal(selection.index[0], 1);
    setenv("ALBEDO_DEVICES", "eth0", 1);
    assert_int_equal(alb_device_selection_from_environment(&selection, error, sizeof(error)), EINVAL);
    assert_non_null(strstr(error, "ALBEDO_DEVICES: \"eth0\""));
}

static void choose(const char *devices, const char *completions)
{
    devices ? setenv("ALBEDO_DEVICES", devices, 1) : unsetenv("ALBEDO_DEVICES");
    setenv("ALBEDO_COMPLETIONS", completions, 1);
}

// A program never gets a device whose completions say less than was asked for.
static void alb_device_selection_from_environment__that_has_the_level(void **state)
{
    choose(NULL, "visible");
    assert_int_equal(alb_device_selection_from_environment(&selection, error, sizeof(error)), 0);
    assert_int_equal(selection.count, 1);
    assert_int_equal(selection.index[0], 1);
    choose("albedo0", "reflected");
    assert_int_equal(alb_device_selection_from_environment(&selection, error, sizeof(error)), 0);
    static const char *const without[] = {"roce0", "roce0,albedo0", "albedo0,roce0"};
    for (size_t i = 0; i < ALB_COUNT(without); i++) {
        choose(without[i], "visible");
        assert_int_equal(alb_device_selection_from_environment(&selection, error, sizeof(error)), EINVAL);
        assert_non_null(strstr(error, "ALBEDO_COMPLETIONS: completions of roce0"));
        assert_non_null(strstr(error, "or name none"));
        choose(without[i], "delivered");
        assert_int_equal(alb_device_selection_from_environment(&selection, error, sizeof(error)), 0);
    }
    choose(NULL, "hoped");
    assert_int_equal(alb_device_selection_from_environment(&selection, error, sizeof(error)), EINVAL);
    unsetenv("ALBEDO_COMPLETIONS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_device_name__roce0_first),
        cmocka_unit_test(alb_device_kind_find__by_name),
        cmocka_unit_test(alb_device_select__in_the_order_asked_for),
        cmocka_unit_test(alb_device_select__refuses),
        cmocka_unit_test(alb_device_selection_from_environment__all_by_default),
        cmocka_unit_test(alb_device_selection_from_environment__that_has_the_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
