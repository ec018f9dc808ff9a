// SPDX-License-Identifier: BSD-2-Clause
#include "device/descriptor.h"

#include "base/tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

static void alb_descriptor_aside__frees_the_small_number(void **state)
{
    int small = eventfd(7, 0);
    int high = alb_descriptor_aside(small);
    assert_true(high >= 512);
    assert_int_equal(fcntl(high, F_GETFD), FD_CLOEXEC);
    eventfd_t value;
    assert_int_equal(eventfd_read(high, &value), 0);
    assert_int_equal(value, 7);
    int next = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(next, small);
    close(next);
    close(high);
}

static struct rlimit before;

// The numbers that the process may have end there.
static void allow_below(rlim_t end)
{
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit low = {.rlim_cur = end, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
}

static void allow_as_before(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void alb_descriptor_aside__stays_where_no_other_is_allowed(void **state)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    allow_below((rlim_t)fd + 1);
    errno = ENOSPC;
    assert_int_equal(alb_descriptor_aside(fd), fd);
    assert_int_equal(errno, ENOSPC);
    allow_as_before();
    assert_true(fcntl(fd, F_GETFD) >= 0);
    close(fd);
}

// A process that has closed stdin, as daemons do, and may have few: what it opens itself must not become its stdout.
static void alb_descriptor_aside__leaves_the_standard_streams(void **state)
{
    int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    close(STDIN_FILENO);
    int small = eventfd(0, EFD_CLOEXEC);
    allow_below(64);
    int fd = alb_descriptor_aside(small);
    allow_as_before();
    dup2(input, STDIN_FILENO);
    close(input);
    assert_int_equal(small, STDIN_FILENO);
    assert_true(fd > STDERR_FILENO);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
}

static void alb_descriptor_aside__failed_call(void **state)
{
    errno = EMFILE;
    assert_int_equal(alb_descriptor_aside(-1), -1);
    assert_int_equal(errno, EMFILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_descriptor_aside__frees_the_small_number),
        cmocka_unit_test(alb_descriptor_aside__stays_where_no_other_is_allowed),
        cmocka_unit_test(alb_descriptor_aside__leaves_the_standard_streams),
        cmocka_unit_test(alb_descriptor_aside__failed_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
