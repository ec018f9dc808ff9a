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

static void alb_descriptor_aside__stays_where_none_is_allowed(void **state)
{
    struct rlimit before, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
    int fd = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    errno = ENOSPC;
    assert_int_equal(alb_descriptor_aside(fd), fd);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(fcntl(fd, F_GETFD) >= 0);
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
        cmocka_unit_test(alb_descriptor_aside__stays_where_none_is_allowed),
        cmocka_unit_test(alb_descriptor_aside__failed_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
