// SPDX-License-Identifier: BSD-2-Clause
// What reaches stderr, by level and environment; each case in a child, since the level is read once.
#include "base/log.h"
#include "base/tests/child.h"
#include "base/tests/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Runs body in a child with ALBEDO_LOG set (NULL: unset), and fills text with what it wrote to stderr.
static void log_as(const char *level, void (*body)(void *argument), char *text, size_t size)
{
    if (level == NULL)
        unsetenv("ALBEDO_LOG");
    else
        setenv("ALBEDO_LOG", level, 1);
    assert_int_equal(child_run(body, NULL, text, size), 0);
}

static void all_levels(void *argument)
{
    alb_log(ALB_LOG_ERROR, "e%d", 1);
    alb_log(ALB_LOG_WARNING, "w%s", "2");
    alb_log(ALB_LOG_INFO, "i");
    alb_log(ALB_LOG_DEBUG, "d");
}

static void alb_log__levels_of_the_environment(void **state)
{
    static const struct {
        const char *level;
        const char *expected;
    } cases[] = {
        {NULL, "albedo: error: e1\nalbedo: warning: w2\n"},
        {"", "albedo: error: e1\nalbedo: warning: w2\n"},
        {"error", "albedo: error: e1\n"},
        {"warning", "albedo: error: e1\nalbedo: warning: w2\n"},
        {"info", "albedo: error: e1\nalbedo: warning: w2\nalbedo: info: i\n"},
        {"debug", "albedo: error: e1\nalbedo: warning: w2\nalbedo: info: i\nalbedo: debug: d\n"},
        {"loud", "albedo: warning: ALBEDO_LOG is \"loud\", not error, warning, info or debug: showing warnings\n"
                 "albedo: error: e1\nalbedo: warning: w2\n"},
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        char text[4096];
        log_as(cases[i].level, all_levels, text, sizeof(text));
        assert_string_equal(text, cases[i].expected);
    }
}

static void set_level_then_log(void *argument)
{
    alb_log_set_level(ALB_LOG_INFO);
    if (alb_log_is_shown(ALB_LOG_INFO) && !alb_log_is_shown(ALB_LOG_DEBUG))
        all_levels(NULL);
}

static void alb_log_set_level__overrules_the_environment(void **state)
{
    char text[4096];
    log_as("error", set_level_then_log, text, sizeof(text));
    assert_string_equal(text, "albedo: error: e1\nalbedo: warning: w2\nalbedo: info: i\n");
}

static void log_control_characters(void *argument)
{
    alb_log(ALB_LOG_ERROR, "a\nb\tc\033[1md \xc3\xa9");
}

static void alb_log__stays_on_its_line(void **state)
{
    char text[4096];
    log_as(NULL, log_control_characters, text, sizeof(text));
    assert_string_equal(text, "albedo: error: a b c [1md \xc3\xa9\n");
}

static void log_long_lines(void *argument)
{
    static const char prefix[] = "albedo: error: ";
    char longest[ALB_LOG_LINE_MAX + 100];
    for (size_t length = ALB_LOG_LINE_MAX - 2; length <= ALB_LOG_LINE_MAX + 50; length += 26) {
        size_t size = length - strlen(prefix);
        memset(longest, 'x', size);
        longest[size] = '\0';
        alb_log(ALB_LOG_ERROR, "%s", longest);
    }
}

static void alb_log__cuts_what_is_too_long(void **state)
{
    char text[8192];
    log_as(NULL, log_long_lines, text, sizeof(text));
    char *first_end = strchr(text, '\n');
    assert_non_null(first_end);
    assert_int_equal(first_end - text, ALB_LOG_LINE_MAX - 2);
    assert_int_equal(first_end[-1], 'x');
    for (char *line = first_end + 1; *line != '\0'; line += ALB_LOG_LINE_MAX) {
        assert_int_equal(strcspn(line, "\n"), ALB_LOG_LINE_MAX - 1);
        assert_memory_equal(line + ALB_LOG_LINE_MAX - 4, "...\n", 4);
    }
}

static void log_to_nowhere(void *argument)
{
    close(STDERR_FILENO);
    errno = EAGAIN;
    alb_log(ALB_LOG_ERROR, "x");
    if (errno != EAGAIN)
        _exit(1);
}

static void alb_log__leaves_errno_alone(void **state)
{
    char text[64];
    log_as(NULL, log_to_nowhere, text, sizeof(text));
    assert_string_equal(text, "");
}

static void alb_log_level_parse__takes_names(void **state)
{
    enum alb_log_level level = ALB_LOG_ERROR;
    assert_true(alb_log_level_parse("debug", &level));
    assert_int_equal(level, ALB_LOG_DEBUG);
    assert_false(alb_log_level_parse("", &level));
    assert_false(alb_log_level_parse("debugs", &level));
    assert_int_equal(level, ALB_LOG_DEBUG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_log_level_parse__takes_names),
        cmocka_unit_test(alb_log__levels_of_the_environment),
        cmocka_unit_test(alb_log_set_level__overrules_the_environment),
        cmocka_unit_test(alb_log__stays_on_its_line),
        cmocka_unit_test(alb_log__cuts_what_is_too_long),
        cmocka_unit_test(alb_log__leaves_errno_alone),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
