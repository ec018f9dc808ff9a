// SPDX-License-Identifier: BSD-2-Clause
// A failed assertion says where, on one line, and aborts; one that holds costs nothing.
#include "base/tests/child.h"
#include "base/tests/test.h"
#include "base/types.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static void fails(void *argument)
{
    alb_assert(1 + 1 == 3);
}

static void holds(void *argument)
{
    alb_assert(1 + 1 == 2);
}

static void fails_at_length(void *argument)
{
    char condition[2000];
    memset(condition, 'x', sizeof(condition) - 1);
    condition[sizeof(condition) - 1] = '\0';
    alb_assert_failed(condition, "file.c", 7);
}

static void alb_assert__failed_names_condition_and_place(void **state)
{
    char text[4096];
    int status = child_run(fails, NULL, text, sizeof(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_ptr_equal(strstr(text, "albedo: bug: 1 + 1 == 3 at "), text);
    assert_non_null(strstr(text, "base/tests/assert_test.c:"));
    assert_non_null(strstr(text, ", please report\n"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void alb_assert__long_condition_is_cut_to_one_line(void **state)
{
    char text[4096];
    int status = child_run(fails_at_length, NULL, text, sizeof(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_ptr_equal(strstr(text, "albedo: bug: xxx"), text);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void alb_assert__holds_quietly(void **state)
{
    char text[4096];
    int status = child_run(holds, NULL, text, sizeof(text));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_assert__failed_names_condition_and_place),
        cmocka_unit_test(alb_assert__long_condition_is_cut_to_one_line),
        cmocka_unit_test(alb_assert__holds_quietly),
    };
    return cmocka_run_group_tests_name("assert", tests, NULL, NULL);
}
