// SPDX-License-Identifier: BSD-2-Clause
// How programs begin.
#include "tools/command.h"

#include "base/tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { ASIDE = 100 };

static int lowest_free(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    close(fd);
    return fd;
}

static void command_begin__leaves_no_small_number_free(void **state)
{
    bool is_taken = true, is_closed_to_writers = true;
    int before = lowest_free();
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        assert_int_equal(dup2(fd, ASIDE + fd), ASIDE + fd);
        close(fd);
    }
    command_begin();
    int after = lowest_free();
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        is_taken = is_taken && fcntl(fd, F_GETFD) == FD_CLOEXEC;
        is_closed_to_writers = is_closed_to_writers && write(fd, "x", 1) < 0 && errno == EBADF;
        dup2(ASIDE + fd, fd);
        close(ASIDE + fd);
    }
    assert_true(is_taken);
    assert_true(is_closed_to_writers);
    assert_int_equal(after, before);
}

static void command_begin__leaves_what_is_open(void **state)
{
    int before = lowest_free();
    command_begin();
    assert_int_equal(lowest_free(), before);
    assert_int_equal(fcntl(STDOUT_FILENO, F_GETFD), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_begin__leaves_no_small_number_free),
        cmocka_unit_test(command_begin__leaves_what_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
