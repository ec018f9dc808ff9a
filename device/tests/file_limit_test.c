// SPDX-License-Identifier: BSD-2-Clause
#include "device/file_limit.h"

#include "base/tests/test.h"
#include "device/board.h"
#include "device/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct rlimit before;

static void limit_to(rlim_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int setup(void **state)
{
    return getrlimit(RLIMIT_FSIZE, &before);
}

static int teardown(void **state)
{
    return setrlimit(RLIMIT_FSIZE, &before);
}

static void alb_file_limit_allows__up_to_the_limit(void **state)
{
    int fd = memfd_create("some", MFD_CLOEXEC);
    limit_to(100);
    assert_int_equal(write(fd, "forty bytes, which is not much of a file", 40), 40);
    assert_true(alb_file_limit_allows(fd, 60));
    errno = 0;
    assert_false(alb_file_limit_allows(fd, 61));
    assert_int_equal(errno, EFBIG);
    assert_false(alb_file_limit_allows(fd, UINT64_MAX));
    limit_to(20);
    assert_false(alb_file_limit_allows(fd, 0));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(alb_file_limit_allows(fd, 61));
    close(fd);
}

static void alb_file_limit_allows__what_has_no_size(void **state)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    limit_to(0);
    assert_true(alb_file_limit_allows(ends[1], 1000));
    close(ends[0]);
    close(ends[1]);
}

// Without the limit in mind each of these ends the process by SIGXFSZ.

static void alb_board_create__beyond_the_limit(void **state)
{
    struct alb_board board;
    static const struct alb_faults_spec none;
    const struct alb_board_identity identity = {.device = "roce0", .faults = &none};
    limit_to(0);
    assert_int_equal(alb_board_create(&board, &identity, 16), 0);
    assert_int_equal(board.fd, -1);
    alb_board_destroy(&board);
}

static void alb_outfile_flush__beyond_the_limit(void **state)
{
    static uint8_t bytes[1000];
    char path[] = "/tmp/albedo-file-limit-XXXXXX";
    struct alb_outfile file;
    struct stat status;
    close(mkstemp(path));
    assert_int_equal(alb_outfile_open(&file, path), 0);
    limit_to(1500);
    for (int i = 0; i < 3; i++) {
        alb_outfile_add(&file, bytes, sizeof(bytes));
        alb_outfile_flush(&file);
    }
    assert_int_equal(file.fd, -1);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 1000);
    alb_outfile_close(&file);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alb_file_limit_allows__up_to_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_file_limit_allows__what_has_no_size, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_board_create__beyond_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_outfile_flush__beyond_the_limit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
