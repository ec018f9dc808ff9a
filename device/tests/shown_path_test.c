// SPDX-License-Identifier: BSD-2-Clause
// What people read of a path.
#include "device/shown_path.h"

#include "base/tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void alb_shown_path__of_a_descriptor(void **state)
{
    char path[64], text[ALB_SHOWN_PATH_MAX];
    int folder = open("/dev", O_PATH | O_DIRECTORY);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/x.journal", folder);
    assert_string_equal(alb_shown_path(path, text), "/dev/x.journal");
    close(folder);
    assert_string_equal(alb_shown_path(path, text), path); // it is not open any more
}

static void alb_shown_path__of_any_other(void **state)
{
    static const char *const paths[] = {"x", "", "/", "/tmp/x", "../x", "/proc/self/x"};
    char text[ALB_SHOWN_PATH_MAX];
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_ptr_equal(alb_shown_path(paths[i], text), paths[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_shown_path__of_a_descriptor),
        cmocka_unit_test(alb_shown_path__of_any_other),
    };
    return cmocka_run_group_tests_name("shown_path", tests, NULL, NULL);
}
