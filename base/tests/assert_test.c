// SPDX-License-Identifier: BSD-2-Clause
// A failed assertion says where, on one line, and aborts; one that holds costs nothing.
#include "base/tests/test.h"
#include "base/types.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// Runs body in a child with stderr in a pipe; fills text with what it wrote and returns its wait status.
static int run_child(void (*body)(void), char *text, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit none = {0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL); // cmocka or a sanitizer may have taken it
        dup2(ends[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while (used < size - 1 && (got = read(ends[0], text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void fails(void)
{
    alb_assert(1 + 1 == 3);
}

static void holds(void)
{
    alb_assert(1 + 1 == 2);
}

static void fails_at_length(void)
{
    char condition[2000];
    memset(condition, 'x', sizeof(condition) - 1);
    condition[sizeof(condition) - 1] = '\0';
    alb_assert_failed(condition, "file.c", 7);
}

static void alb_assert__failed_names_condition_and_place(void **state)
{
    char text[4096];
    int status = run_child(fails, text, sizeof(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_ptr_equal(strstr(text, "albedo: bug: 1 + 1 == 3 at "), text);
    assert_non_null(strstr(text, "base/tests/assert_test.c:"));
    assert_non_null(strstr(text, ", please report\n"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void alb_assert__long_condition_is_cut_to_one_line(void **state)
{
    char text[4096];
    int status = run_child(fails_at_length, text, sizeof(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_ptr_equal(strstr(text, "albedo: bug: xxx"), text);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void alb_assert__holds_quietly(void **state)
{
    char text[4096];
    int status = run_child(holds, text, sizeof(text));
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
