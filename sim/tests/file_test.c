// SPDX-License-Identifier: BSD-2-Clause
// What closing says of a file that could not be written, wherever its buffer ended.
#include "sim/file.h"

#include "base/tests/test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROOM = 10000 };

static char path[] = "/tmp/albedo-file-XXXXXX";

static int setup(void **state)
{
    memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
    close(mkstemp(path));
    signal(SIGXFSZ, SIG_IGN);
    return 0;
}

static int teardown(void **state)
{
    unlink(path);
    return 0;
}

static void file_open__empties_it_and_keeps_what_is_written(void **state)
{
    char text[8] = "";
    assert_int_equal(truncate(path, ROOM), 0);
    FILE *file = alb_sim_file_open(path);
    assert_non_null(file);
    assert_true(fputs("a", file) >= 0 && fprintf(file, "%d\n", 7) == 2);
    assert_int_equal(fclose(file), 0);
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    assert_int_equal(fread(text, 1, sizeof(text), from), 3);
    fclose(from);
    assert_string_equal(text, "a7\n");
}

static void file_open__says_why_not(void **state)
{
    assert_null(alb_sim_file_open("/nowhere/at/all"));
    assert_int_equal(errno, ENOENT);
}

// The buffer is empty when it is closed: the error was that of a write before.
static void file_close__fails_with_the_first_error(void **state)
{
    struct rlimit before, little;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){.rlim_cur = ROOM, .rlim_max = before.rlim_max};
    FILE *file = alb_sim_file_open(path);
    assert_non_null(file);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    for (uint32_t i = 0; i < 2 * ROOM; i++)
        fputc('a', file);
    fflush(file);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    fputs("not behind a gap", file); // though there would be room again
    errno = 0;
    assert_int_equal(fclose(file), EOF);
    assert_int_equal(errno, EFBIG);
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    assert_int_equal(fseek(from, 0, SEEK_END), 0);
    assert_int_equal(ftell(from), ROOM);
    fclose(from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(file_open__empties_it_and_keeps_what_is_written, setup, teardown),
        cmocka_unit_test_setup_teardown(file_open__says_why_not, setup, teardown),
        cmocka_unit_test_setup_teardown(file_close__fails_with_the_first_error, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
