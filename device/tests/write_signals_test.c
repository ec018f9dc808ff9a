// SPDX-License-Identifier: BSD-2-Clause
// Without care each of these ends the process by SIGPIPE or SIGXFSZ.
#include "device/write_signals.h"

#include "base/log.h"
#include "base/tests/test.h"
#include "device/board.h"
#include "device/outfile.h"
#include "device/report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static bool is_blocked(int number)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    return sigismember(&mask, number);
}

static void alb_write_signals__none_is_left(void **state)
{
    int ends[2];
    sigset_t before, pending;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    alb_write_signals_hold(&before);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(write(ends[1], "x", 1), -1);
        assert_int_equal(errno, EPIPE);
    }
    alb_write_signals_release(&before);
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGPIPE));
    assert_false(is_blocked(SIGPIPE) || is_blocked(SIGXFSZ));
    close(ends[1]);
}

// A signal that the program itself holds back stays its own.
static void alb_write_signals__those_of_the_program_stay(void **state)
{
    sigset_t mask, before, pending;
    const struct timespec at_once = {0};
    sigemptyset(&mask);
    sigaddset(&mask, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    pthread_kill(pthread_self(), SIGPIPE);
    alb_write_signals_hold(&before);
    alb_write_signals_release(&before);
    assert_int_equal(sigpending(&pending), 0);
    assert_true(sigismember(&pending, SIGPIPE));
    assert_true(is_blocked(SIGPIPE));
    assert_int_equal(sigtimedwait(&mask, NULL, &at_once), SIGPIPE);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
}

static void alb_outfile_flush__to_a_pipe_without_reader(void **state)
{
    int ends[2];
    char name[32];
    struct alb_outfile file;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", ends[1]);
    assert_int_equal(alb_outfile_open(&file, name), 0);
    close(ends[0]);
    alb_outfile_add(&file, "x", 1);
    alb_outfile_flush(&file);
    assert_int_equal(file.fd, -1);
    alb_outfile_close(&file);
    close(ends[1]);
}

static void write_report(const char *path)
{
    struct alb_board board;
    static const struct alb_faults_spec none;
    const struct alb_board_identity identity = {.device = "roce0", .faults = &none};
    assert_int_equal(alb_board_create(&board, &identity, 16), 0);
    alb_report_to_file(&board, path);
    alb_board_destroy(&board);
}

static void alb_report_to_file__beyond_the_limit(void **state)
{
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    char path[64];
    snprintf(path, sizeof(path), "/tmp/albedo-write-signals-%d", (int)getpid());
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    write_report(path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(access(path, F_OK), -1); // nothing in part
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_write_signals__none_is_left),
        cmocka_unit_test(alb_write_signals__those_of_the_program_stay),
        cmocka_unit_test(alb_outfile_flush__to_a_pipe_without_reader),
        cmocka_unit_test(alb_report_to_file__beyond_the_limit),
    };
    alb_log_set_level(ALB_LOG_ERROR); // warnings are expected
    return cmocka_run_group_tests(tests, NULL, NULL);
}
