// SPDX-License-Identifier: BSD-2-Clause
// Buffered files: names, exclusiveness, contents, failure.
#include "device/outfile.h"

#include "base/log.h"
#include "base/tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static int setup(void **state)
{
    strcpy(folder, "/tmp/albedo-outfile-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    return rmdir(folder);
}

static const char *path(const char *name)
{
    static char text[128];
    snprintf(text, sizeof(text), "%s/%s", folder, name);
    return text;
}

static off_t size_of(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0 ? status.st_size : -1;
}

static void alb_outfile__writes_what_was_added(void **state)
{
    struct alb_outfile file;
    static uint8_t bytes[100000], back[sizeof(bytes)];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 3 + i / 256);
    assert_int_equal(alb_outfile_open(&file, path("a")), 0);
    for (int i = 0; i < 10; i++) // more than the buffer holds
        alb_outfile_add(&file, bytes, sizeof(bytes));
    assert_true(size_of(path("a")) >= ALB_OUTFILE_BUFFER_BYTES);
    alb_outfile_close(&file);
    assert_int_equal(size_of(path("a")), 10 * sizeof(bytes));
    int fd = open(path("a"), O_RDONLY);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(read(fd, back, sizeof(back)), sizeof(back));
        assert_memory_equal(back, bytes, sizeof(bytes));
    }
    close(fd);
    unlink(path("a"));
}

static void alb_outfile_reserve__keeps_records_whole(void **state)
{
    struct alb_outfile file;
    static uint8_t bytes[100000];
    assert_int_equal(alb_outfile_open(&file, path("b")), 0);
    for (int i = 0; i < 4; i++) {
        alb_outfile_reserve(&file, sizeof(bytes));
        alb_outfile_add(&file, bytes, sizeof(bytes));
        assert_int_equal(size_of(path("b")) % (off_t)sizeof(bytes), 0);
    }
    alb_outfile_close(&file);
    unlink(path("b"));
}

static void alb_outfile_open__process_id_in_the_name(void **state)
{
    struct alb_outfile file;
    char expected[128], name[32];
    snprintf(name, sizeof(name), "x-%d-%d%%", (int)getpid(), (int)getpid());
    strcpy(expected, path(name));
    assert_int_equal(alb_outfile_open(&file, path("x-%p-%p%")), 0);
    assert_string_equal(file.path, expected);
    alb_outfile_close(&file);
    assert_int_equal(unlink(expected), 0);
}

// It may be one that the user has not written: `albedo run` makes names absolute.
static void alb_outfile_open__folders_keep_their_names(void **state)
{
    struct alb_outfile file;
    char name[64];
    snprintf(name, sizeof(name), "100%%put/x-%d", (int)getpid());
    assert_int_equal(mkdir(path("100%put"), 0700), 0);
    assert_int_equal(alb_outfile_open(&file, path("100%put/x-%p")), 0);
    assert_string_equal(file.path, path(name));
    alb_outfile_close(&file);
    unlink(path(name));
    assert_int_equal(rmdir(path("100%put")), 0);
}

static void alb_outfile_open__does_not_share(void **state)
{
    struct alb_outfile first, second;
    assert_int_equal(alb_outfile_open(&first, path("c")), 0);
    alb_outfile_add(&first, "first", 5);
    alb_outfile_flush(&first);
    assert_int_equal(alb_outfile_open(&second, path("c")), 0); // as another process would
    assert_string_not_equal(first.path, second.path);
    assert_int_equal(size_of(first.path), 5);
    alb_outfile_close(&second);
    alb_outfile_close(&first);
    assert_int_equal(unlink(second.path), 0);
    unlink(path("c"));
}

// Programs look for devices by opening one after the other, and test suites open one for each test.
static void alb_outfile_open__goes_on_behind_what_the_process_wrote(void **state)
{
    struct alb_outfile file;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(alb_outfile_open(&file, path("e")), 0);
        assert_int_equal(file.continues, i > 0);
        alb_outfile_add(&file, "line\n", 5);
        alb_outfile_close(&file);
        assert_int_equal(size_of(path("e")), 5 * (i + 1));
    }
    unlink(path("e"));
}

static void alb_outfile_open__empties_what_another_process_wrote(void **state)
{
    struct alb_outfile file;
    int status;
    assert_int_equal(alb_outfile_open(&file, path("f")), 0);
    alb_outfile_add(&file, "parent", 6);
    alb_outfile_close(&file);
    pid_t child = fork();
    if (child == 0) {
        bool is_emptied = alb_outfile_open(&file, path("f")) == 0 && !file.continues && size_of(path("f")) == 0;
        _exit(is_emptied ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    unlink(path("f"));
}

// A program whose standard error is closed would write its own lines into it.
static void alb_outfile_open__leaves_small_descriptors_to_the_program(void **state)
{
    struct alb_outfile file;
    assert_int_equal(alb_outfile_open(&file, path("d")), 0);
    assert_true(file.fd >= 512);
    alb_outfile_close(&file);
    unlink(path("d"));
}

// A file beside a device node would be in /dev.
static void alb_outfile_open__device_nodes_are_shared(void **state)
{
    struct alb_outfile first, second;
    assert_int_equal(alb_outfile_open(&first, "/dev/null"), 0);
    assert_int_equal(alb_outfile_open(&second, "/dev/null"), 0);
    assert_string_equal(second.path, "/dev/null");
    alb_outfile_close(&second);
    alb_outfile_close(&first);
}

static void alb_outfile__failure_is_not_fatal(void **state)
{
    struct alb_outfile file;
    assert_int_equal(alb_outfile_open(&file, "/nowhere/at/all"), ENOENT);
    alb_log_set_level(ALB_LOG_ERROR); // a warning is expected
    assert_int_equal(alb_outfile_open(&file, "/dev/full"), 0);
    alb_outfile_add(&file, "x", 1);
    alb_outfile_flush(&file);
    assert_int_equal(file.fd, -1);
    alb_outfile_add(&file, "x", 1); // forgotten
    alb_outfile_flush(&file);
    alb_outfile_close(&file);
}

static volatile sig_atomic_t signals;
static volatile int reader = -1;
static const char *pipe_path;

static void read_after_some(int number)
{
    if (++signals == 3)
        reader = open(pipe_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static void alb_outfile_open__of_a_pipe_goes_on_waiting_after_signals(void **state)
{
    struct alb_outfile file;
    const struct sigaction action = {.sa_handler = read_after_some}; // without SA_RESTART
    const struct itimerval often = {.it_interval.tv_usec = 50000, .it_value.tv_usec = 50000}, never = {.it_value = {0}};
    struct sigaction before;
    pipe_path = path("pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    int error = alb_outfile_open(&file, pipe_path);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(error, 0);
    assert_true(signals >= 3);
    alb_outfile_close(&file);
    close(reader);
    unlink(pipe_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_outfile__writes_what_was_added),
        cmocka_unit_test(alb_outfile_reserve__keeps_records_whole),
        cmocka_unit_test(alb_outfile_open__process_id_in_the_name),
        cmocka_unit_test(alb_outfile_open__folders_keep_their_names),
        cmocka_unit_test(alb_outfile_open__does_not_share),
        cmocka_unit_test(alb_outfile_open__goes_on_behind_what_the_process_wrote),
        cmocka_unit_test(alb_outfile_open__empties_what_another_process_wrote),
        cmocka_unit_test(alb_outfile_open__leaves_small_descriptors_to_the_program),
        cmocka_unit_test(alb_outfile_open__device_nodes_are_shared),
        cmocka_unit_test(alb_outfile_open__of_a_pipe_goes_on_waiting_after_signals),
        cmocka_unit_test(alb_outfile__failure_is_not_fatal),
    };
    return cmocka_run_group_tests_name("outfile", tests, setup, teardown);
}
