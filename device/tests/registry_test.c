// SPDX-License-Identifier: BSD-2-Clause
// What happens to a process's devices when it forks and when it exits.
#include "device/registry.h"

#include "device/directory_file.h"
#include "device/impl.h"
#include "device/tests/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// ThreadSanitizer refuses a child that starts threads after a fork from a process with threads (its own is one), and
// with die_after_fork=0 it ends with "dup thread": all of this is for the other builds.
#ifdef __SANITIZE_THREAD__
#define SKIP_UNDER_TSAN() skip()
#else
#define SKIP_UNDER_TSAN()
#endif

// AddressSanitizer's allocator, unlike libc's, cannot be used in a child that was forked while another thread was
// inside it, and a thread allocates while it starts. A device thread that has gone to rest once allocates no more.
static void await_rest(const struct alb_device *device)
{
    while (atomic_load(&device->armed_until) == 0)
        sched_yield();
}

static void reap(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void alb_device_open__in_a_forked_child(void **state)
{
    SKIP_UNDER_TSAN();
    struct alb_device_options *options = pair_options("127.95.0.1");
    struct alb_device *device;
    assert_int_equal(alb_device_open("roce0", options, &device), 0);
    assert_int_equal(alb_device_slot(device), 0);
    assert_false(alb_device_is_forked(device));
    await_rest(device);
    pid_t child = fork();
    if (child == 0) {
        struct alb_device *own = NULL;
        bool is_right = alb_device_is_forked(device) && device->directory.fd < 0 && device->board.fd < 0 &&
                        device->cores.loadavg_fd < 0;
        alb_device_close(device); // does nothing
        alb_port_wake(&device->port);
        is_right &= alb_device_open("roce0", options, &own) == 0 && own != device;
        is_right &= own && alb_device_slot(own) == 1 && !alb_device_is_forked(own);
        if (own)
            alb_device_close(own);
        _exit(is_right ? 0 : 1);
    }
    reap(child);
    assert_false(alb_device_is_forked(device));
    alb_device_close(device);
    free(options);
}

// Two devices of a process have nothing in common but the process.
static void alb_device_open__two_names(void **state)
{
    struct alb_device_options *options = pair_options("127.95.0.4");
    struct alb_device *roce, *albedo;
    struct alb_directory directory;
    struct alb_directory_board board;
    uint32_t listed = 0;
    assert_int_equal(alb_device_open("roce0", options, &roce), 0);
    assert_int_equal(alb_device_open("albedo0", options, &albedo), 0);
    assert_ptr_not_equal(roce, albedo);
    assert_int_equal(alb_device_slot(roce), 0);
    assert_int_equal(alb_device_slot(albedo), 1);
    assert_string_equal(alb_engine_configuration(alb_device_engine(roce))->transport, "rc");
    assert_string_equal(alb_engine_configuration(alb_device_engine(albedo))->transport, "csa");
    assert_int_equal(alb_directory_open(&directory, geteuid()), 0);
    while (alb_directory_next(&directory, &board)) {
        bool is_roce = strcmp(board.header.device, "roce0") == 0;
        if (board.header.pid == getpid()) {
            assert_true(is_roce || strcmp(board.header.device, "albedo0") == 0);
            assert_int_equal(board.header.slot, is_roce ? 0 : 1);
            listed |= is_roce ? 1 : 2;
        }
        alb_directory_unmap(&board);
    }
    alb_directory_close(&directory);
    assert_int_equal(listed, 3);
    alb_device_close(roce); // the other one goes on
    assert_int_equal(alb_device_open("roce0", options, &roce), 0);
    assert_int_equal(alb_device_slot(roce), 0);
    alb_device_close(albedo);
    alb_device_close(roce);
    free(options);
}

static void is_file(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
}

enum { FILES_OF_BOTH = 6 };

// Both devices write three files each, and nothing else, into the folder, which goes with them.
static void expect_files(const struct alb_device_options *options, const char *folder,
                         const char *const names[FILES_OF_BOTH])
{
    struct alb_device *roce, *albedo;
    assert_int_equal(alb_device_open("roce0", options, &roce), 0);
    assert_int_equal(alb_device_open("albedo0", options, &albedo), 0);
    alb_device_close(roce);
    alb_device_close(albedo);
    for (uint32_t i = 0; i < FILES_OF_BOTH; i++)
        is_file(folder, names[i]);
    assert_int_equal(rmdir(folder), 0);
}

static void alb_device_open__two_names_two_files(void **state)
{
    struct alb_device_options *options = pair_options("127.95.0.5");
    struct alb_device *albedo;
    char folder[] = "/tmp/albedo-registry-XXXXXX";
    assert_non_null(mkdtemp(folder));
    snprintf(options->pcap_path, sizeof(options->pcap_path), "%s/p", folder);
    snprintf(options->trace_path, sizeof(options->trace_path), "%s/t", folder);
    snprintf(options->stats_path, sizeof(options->stats_path), "%s/s", folder);
    static const char *const names[FILES_OF_BOTH] = {"p", "t", "s", "p.albedo0", "t.albedo0", "s.albedo0"};
    expect_files(options, folder, names);
    memset(options->stats_path, 'x', sizeof(options->stats_path) - 1);
    assert_int_equal(alb_device_open("albedo0", options, &albedo), ENAMETOOLONG);
    free(options);
}

static void alb_device_open__its_name_in_the_files(void **state)
{
    struct alb_device_options *options = pair_options("127.95.0.5");
    struct alb_device *albedo;
    char folder[] = "/tmp/albedo-registry-XXXXXX";
    assert_non_null(mkdtemp(folder));
    snprintf(options->pcap_path, sizeof(options->pcap_path), "%s/%%d.p", folder);
    snprintf(options->trace_path, sizeof(options->trace_path), "%s/t-%%d-%%d", folder);
    snprintf(options->stats_path, sizeof(options->stats_path), "%s/s%%d", folder);
    static const char *const names[FILES_OF_BOTH] = {"roce0.p",   "t-roce0-roce0",     "sroce0",
                                                     "albedo0.p", "t-albedo0-albedo0", "salbedo0"};
    expect_files(options, folder, names);
    memset(options->stats_path, 'x', sizeof(options->stats_path) - 1);
    memcpy(options->stats_path, "%d", 2);
    assert_int_equal(alb_device_open("albedo0", options, &albedo), ENAMETOOLONG);
    free(options);
}

static void alb_device_open__folders_keep_their_names(void **state)
{
    struct alb_device_options *options = pair_options("127.95.0.6");
    char folder[] = "/tmp/albedo-100%done-XXXXXX";
    assert_non_null(mkdtemp(folder));
    snprintf(options->pcap_path, sizeof(options->pcap_path), "%s/p", folder);
    snprintf(options->trace_path, sizeof(options->trace_path), "%s/t-%%d", folder);
    snprintf(options->stats_path, sizeof(options->stats_path), "%s/s", folder);
    static const char *const names[FILES_OF_BOTH] = {"p", "t-roce0", "s", "p.albedo0", "t-albedo0", "s.albedo0"};
    expect_files(options, folder, names);
    free(options);
}

// A child that lives on must not keep its parent's slot and place in the directory.
static void alb_device_open__a_forked_child_holds_nothing(void **state)
{
    SKIP_UNDER_TSAN();
    struct alb_device_options *options = pair_options("127.95.0.2");
    int ready[2];
    pid_t grandchild;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct alb_device *device;
        if (alb_device_open("roce0", options, &device) != 0 || alb_device_slot(device) != 0)
            _exit(1);
        await_rest(device);
        // The grandchild tells of itself once it has let go of what it inherited; it ends by itself should the test
        // fail.
        if (fork() == 0) {
            pid_t self = getpid();
            if (write(ready[1], &self, sizeof(self)) != sizeof(self))
                _exit(1);
            close(ready[1]);
            alarm(30);
            for (;;)
                pause();
        }
        kill(getpid(), SIGKILL);
    }
    close(ready[1]); // so that a child that fails ends the read
    assert_int_equal(read(ready[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
    assert_int_equal(waitpid(child, NULL, 0), child);

    struct alb_device *device;
    assert_int_equal(alb_device_open("roce0", options, &device), 0);
    assert_int_equal(alb_device_slot(device), 0);
    alb_device_close(device);
    struct alb_directory directory;
    struct alb_directory_board board;
    assert_int_equal(alb_directory_open(&directory, geteuid()), 0);
    while (alb_directory_next(&directory, &board)) {
        assert_int_not_equal(board.header.pid, child);
        alb_directory_unmap(&board);
    }
    alb_directory_close(&directory);
    kill(grandchild, SIGKILL);
    close(ready[0]);
    free(options);
}

// Exits right after posting, without waiting for anything: what was posted arrives all the same.
static void at_exit__drains(void **state)
{
    SKIP_UNDER_TSAN();
    struct alb_device_options *options = pair_options("127.95.0.3");
    struct side here;
    int to_child[2], to_parent[2];
    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(to_parent), 0);
    struct {
        alb_qpn qpn;
        uint64_t address;
        uint32_t rkey;
    } mine, theirs;

    pid_t child = fork();
    if (child == 0) {
        struct side there;
        side_open_shared(&there, options, ALB_QPT_RC);
        theirs.qpn = alb_qp_number(there.qp);
        if (write(to_parent[1], &theirs, sizeof(theirs)) != sizeof(theirs) ||
            read(to_child[0], &mine, sizeof(mine)) != sizeof(mine))
            _exit(1);
        side_connect_to(&there, mine.qpn, alb_device_gid(there.device, 0), 18, 7);
        memset(there.memory, 0x5a, PAIR_BYTES);
        side_write_to(&there, mine.address, mine.rkey, 0, PAIR_BYTES);
        exit(0);
    }
    close(to_parent[1]); // so that a child that fails ends the read
    close(to_child[0]);
    side_open(&here, options, ALB_QPT_RC);
    mine.qpn = alb_qp_number(here.qp);
    mine.address = (uint64_t)(uintptr_t)here.memory;
    mine.rkey = alb_region_key(here.mr);
    assert_int_equal(read(to_parent[0], &theirs, sizeof(theirs)), sizeof(theirs));
    side_connect_to(&here, theirs.qpn, alb_device_gid(here.device, 0), 18, 7);
    assert_int_equal(write(to_child[1], &mine, sizeof(mine)), sizeof(mine));
    reap(child);
    alb_device_lock(here.device);
    alb_device_unlock(here.device);
    for (uint32_t i = 0; i < PAIR_BYTES; i++)
        assert_int_equal(here.memory[i], 0x5a);
    side_close(&here);
    close(to_parent[0]);
    close(to_child[1]);
    free(options);
}

static struct side leaving;

// Waits without polling, so that the device thread has to do it all.
static void say_goodbye(void)
{
    side_write(&leaving, &leaving, 0, 8);
    _exit(side_wait_idle(&leaving).status == ALB_WC_SUCCESS ? 4 : 5);
}

// A program's own handler, registered before there was a device, as those of C++ objects with static storage are.
static void at_exit__comes_after_the_handlers_of_the_program(void **state)
{
    SKIP_UNDER_TSAN();
    struct alb_device_options *options = pair_options("127.95.0.5");
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        atexit(say_goodbye);
        side_open_shared(&leaving, options, ALB_QPT_RC);
        side_connect(&leaving, &leaving, 18, 7);
        exit(3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 4);
    free(options);
}

static void close_all(void)
{
    close_range(3, ~0u, 0);
}

static void at_exit__of_a_program_that_has_closed_all_descriptors(void **state)
{
    SKIP_UNDER_TSAN();
    struct alb_device_options *options = pair_options("127.95.0.6");
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct side side;
        alarm(30);
        atexit(close_all);
        side_open_shared(&side, options, ALB_QPT_RC);
        exit(3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    free(options);
}

static void alb_device_close__of_a_program_that_has_closed_all_descriptors(void **state)
{
    SKIP_UNDER_TSAN();
    struct alb_device_options *options = pair_options("127.95.0.6");
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct side side;
        alarm(30);
        side_open(&side, options, ALB_QPT_RC);
        usleep(50000); // until its thread sleeps
        close_all();
        side_close(&side);
        _exit(3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    free(options);
}

static void alb_device_close__of_a_program_that_has_other_files_there(void **state)
{
    SKIP_UNDER_TSAN();
    enum { FILES = 600 };
    struct alb_device_options *options = pair_options("127.95.0.6");
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct alb_device *device;
        alarm(10);
        if (alb_device_open("roce0", options, &device))
            _exit(1);
        usleep(50000); // until its thread sleeps
        close_all();
        for (int i = 0; i < FILES; i++)
            open("/dev/null", O_RDWR);
        alb_device_close(device);
        _exit(3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    free(options);
}

// As from a signal's handler that has interrupted whoever holds the token.
static void at_exit__does_not_wait_for_itself(void **state)
{
    SKIP_UNDER_TSAN();
    struct alb_device_options *options = pair_options("127.95.0.4");
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct alb_device *device;
        if (alb_device_open("roce0", options, &device))
            _exit(1);
        alb_device_lock(device);
        alarm(30);
        exit(3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    free(options);
}

static void end_by_signal(int number)
{
    signal(number, SIG_DFL);
    alarm(2);
    exit(3);
}

// It waits for a reader of its capture.
static void at_exit__within_an_open(void **state)
{
    SKIP_UNDER_TSAN();
    struct alb_device_options *options = pair_options("127.95.0.7");
    char folder[] = "/tmp/albedo-registry-XXXXXX";
    int status;
    assert_non_null(mkdtemp(folder));
    snprintf(options->pcap_path, sizeof(options->pcap_path), "%s/p", folder);
    assert_int_equal(mkfifo(options->pcap_path, 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        struct alb_device *device;
        signal(SIGALRM, end_by_signal);
        alarm(1);
        alb_device_open("roce0", options, &device);
        _exit(4);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    unlink(options->pcap_path);
    assert_int_equal(rmdir(folder), 0);
    free(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_device_open__two_names),
        cmocka_unit_test(alb_device_open__two_names_two_files),
        cmocka_unit_test(alb_device_open__its_name_in_the_files),
        cmocka_unit_test(alb_device_open__folders_keep_their_names),
        cmocka_unit_test(alb_device_open__in_a_forked_child),
        cmocka_unit_test(alb_device_open__a_forked_child_holds_nothing),
        cmocka_unit_test(at_exit__drains),
        cmocka_unit_test(at_exit__comes_after_the_handlers_of_the_program),
        cmocka_unit_test(at_exit__of_a_program_that_has_closed_all_descriptors),
        cmocka_unit_test(alb_device_close__of_a_program_that_has_closed_all_descriptors),
        cmocka_unit_test(alb_device_close__of_a_program_that_has_other_files_there),
        cmocka_unit_test(at_exit__does_not_wait_for_itself),
        cmocka_unit_test(at_exit__within_an_open),
    };
    return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
