// SPDX-License-Identifier: BSD-2-Clause
// The progress bar on a terminal, which is made here: one line, whatever the name is.
#include "tools/progress.h"

#include "base/tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { SHOWN_MAX = 4096 };

// All of a line, which a terminal may hand on in parts.
static void read_line(int terminal, char shown[SHOWN_MAX])
{
    size_t length = 0;
    do {
        ssize_t got = read(terminal, shown + length, SHOWN_MAX - 1 - length);
        assert_true(got > 0);
        length += (size_t)got;
        shown[length] = '\0';
    } while (length < 3 || strcmp(shown + length - 3, "\033[K") != 0);
}

// What a terminal of so many columns is sent for a copy of half of a file.
static const char *show(const char *name, uint16_t columns, char shown[SHOWN_MAX])
{
    struct progress progress;
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), kept = dup(STDERR_FILENO);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    int side = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(side >= 0 && ioctl(side, TIOCSWINSZ, &size) == 0 && dup2(side, STDERR_FILENO) >= 0);
    progress_begin(&progress, name, 2000);
    progress_add(&progress, 1000, false);
    read_line(terminal, shown);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(side);
    close(terminal);
    return shown;
}

// Columns, of a text of one each: without the sequences at both ends.
static size_t columns_of(const char *shown)
{
    assert_int_equal(shown[0], '\r');
    assert_string_equal(shown + strlen(shown) - 3, "\033[K");
    return strlen(shown) - 4;
}

static void progress__has_one_line(void **state)
{
    char shown[SHOWN_MAX], name[300];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (uint16_t columns = 1; columns <= 250; columns++)
        assert_true(columns_of(show(name, columns, shown)) < columns);
    assert_non_null(strstr(show(name, 100, shown), "nnn... [###############...............]  50% 1000.0 B, "));
    assert_true(columns_of(show(name, 0, shown)) < 80);
    assert_non_null(strstr(show("short", 80, shown), "\rshort [####"));
}

static void progress__cuts_no_character(void **state)
{
    char shown[SHOWN_MAX];
    static const char name[] = "\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4";
    for (uint16_t columns = 60; columns <= 100; columns++) {
        const char *end = strstr(show(name, columns, shown), "... [");
        assert_true(!end || (end - shown - 1) % 2 == 0);
    }
}

static void progress__disarms_the_name(void **state)
{
    char shown[SHOWN_MAX];
    assert_non_null(strstr(show("a\033[31m\nb", 100, shown), "\ra?[31m?b [####"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress__has_one_line),
        cmocka_unit_test(progress__cuts_no_character),
        cmocka_unit_test(progress__disarms_the_name),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
