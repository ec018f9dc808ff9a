// SPDX-License-Identifier: BSD-2-Clause
#include "device/cm_claim.h"

#include "base/log.h"
#include "base/tests/listen_conflicts.h"
#include "base/tests/test.h"
#include "device/directory_file.h"
#include "device/tests/cancelled.h"
#include "device/tests/flock_refused.h"
#include "device/tests/own_directory.h"
#include "device/tests/said.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct alb_addr addr(const char *text)
{
    struct alb_addr result;
    assert_true(alb_addr_parse(text, &result));
    return result;
}

static struct alb_cm_place place(const char *text, bool is_one_family, uint8_t slot)
{
    return (struct alb_cm_place){
        .service_id = 0x1061c06, .addr = addr(text), .is_one_family = is_one_family, .slot = slot};
}

// The slot that is found, -1: none.
static int find(uint64_t service_id, const char *text)
{
    uint8_t slot;
    struct alb_addr local = addr(text);
    return alb_cm_claim_find(0, service_id, &local, &slot) == 0 ? slot : -1;
}

// Claims and listens.
static int claim_and_listen(struct alb_cm_claim *claim, const struct alb_cm_place *at)
{
    int error = alb_cm_claim(claim, at);
    return error ? error : alb_cm_claim_listen(claim);
}

static void find__nobody_and_nothing(void **state)
{
    assert_int_equal(find(0x1061c06, "10.0.0.1"), -1);
    setenv("ALBEDO_DIRECTORY", "/nowhere/at/all", 1);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), -1);
    struct alb_cm_claim claim;
    struct alb_cm_place here = place("10.0.0.1", false, 3);
    assert_int_equal(alb_cm_claim(&claim, &here), ENOENT);
    alb_cm_claim_end(&claim);
    setenv("ALBEDO_DIRECTORY", own_directory, 1);
}

// In a process of its own, which has not said it yet.
static void say_and_end(void)
{
    char text[ALB_LOG_LINE_MAX];
    struct said said;
    struct alb_cm_claim claim, other;
    struct alb_cm_place here = place("10.0.0.1", false, 3);
    said_begin(&said);
    int in_use = alb_cm_claim(&claim, &here) == 0 ? alb_cm_claim(&other, &here) : 0;
    alb_cm_claim_end(&claim);
    said_end(&said, text, sizeof(text));
    bool is_quiet = in_use == EADDRINUSE && text[0] == 0;
    setenv("ALBEDO_DIRECTORY", "/nowhere/at/all", 1);
    said_begin(&said);
    bool fails = alb_cm_claim(&claim, &here) == ENOENT && alb_cm_claim(&claim, &here) == ENOENT;
    said_end(&said, text, sizeof(text));
    const char *told =
        strstr(text, ": No such file or directory: rdma_cm can neither bind nor listen; ALBEDO_DIRECTORY "
                     "names another place\n");
    _exit(is_quiet && fails && told && strchr(told, '\n')[1] == 0 ? 0 : 1);
}

static void claim__says_once_why_it_fails(void **state)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        say_and_end();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void claim__is_found_until_it_ends(void **state)
{
    struct alb_cm_claim claim;
    struct alb_cm_place here = place("10.0.0.1", false, 3);
    assert_int_equal(alb_cm_claim(&claim, &here), 0);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), -1);
    assert_int_equal(alb_cm_claim_listen(&claim), 0);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), 3);
    assert_int_equal(find(0x1061c06, "10.0.0.2"), -1);
    assert_int_equal(find(0x1061c07, "10.0.0.1"), -1);
    alb_cm_claim_end(&claim);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), -1);
    alb_cm_claim_end(&claim);
}

static void claim__the_narrowest_wins(void **state)
{
    struct alb_cm_claim ipv4, ipv6;
    struct alb_cm_place any_ipv4 = place("0.0.0.0", false, 4), only_ipv6 = place("::", true, 6);
    assert_int_equal(claim_and_listen(&ipv4, &any_ipv4), 0);
    assert_int_equal(claim_and_listen(&ipv6, &only_ipv6), 0);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), 4);
    assert_int_equal(find(0x1061c06, "fd00::1"), 6);
    alb_cm_claim_end(&ipv4);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), -1);
    alb_cm_claim_end(&ipv6);
    struct alb_cm_place both = place("::", false, 7);
    assert_int_equal(claim_and_listen(&ipv6, &both), 0);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), 7);
    alb_cm_claim_end(&ipv6);
}

static void claim__refuses_what_another_has(void **state)
{
    for (unsigned i = 0; i < ALB_COUNT(listen_conflicts); i++) {
        const struct listen_conflict *pair = &listen_conflicts[i];
        struct alb_cm_claim first, second;
        struct alb_cm_place one = place(pair->first, pair->first_is_one_family, 1);
        struct alb_cm_place two = place(pair->second, false, 2);
        assert_int_equal(claim_and_listen(&first, &one), 0);
        assert_int_equal(claim_and_listen(&second, &two), pair->result);
        alb_cm_claim_end(&second);
        assert_int_equal(find(0x1061c06, pair->first), 1); // a refused one takes nothing with it
        alb_cm_claim_end(&first);
    }
}

// Where too few descriptors are left to look at the other claims, nothing is claimed.
static void claim__without_descriptors(void **state)
{
    static struct alb_cm_claim first, second; // the list of those that the process holds may outlive a failed test
    struct alb_cm_place any_ipv4 = place("0.0.0.0", false, 1), one = place("10.0.0.1", false, 2);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(claim_and_listen(&first, &any_ipv4), 0);
    int error = 0, lowest = dup(STDERR_FILENO);
    close(lowest);
    for (int left = 0; left < 16 && error != EADDRINUSE; left++) {
        const struct rlimit limit = {.rlim_cur = (rlim_t)(lowest + left), .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        error = alb_cm_claim(&second, &one);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_true(error == EMFILE || error == EADDRINUSE);
    }
    assert_int_equal(error, EADDRINUSE);
    alb_cm_claim_end(&first);
}

// Another process claims, and dies by kill -9: what it leaves behind is nothing.
static void claim__ends_with_its_process(void **state)
{
    struct alb_cm_place here = place("10.0.0.1", false, 9);
    struct alb_cm_claim claim;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (claim_and_listen(&claim, &here) != 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), 9);
    assert_int_equal(claim_and_listen(&claim, &here), EADDRINUSE);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), -1);
    here.slot = 2;
    assert_int_equal(claim_and_listen(&claim, &here), 0);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), 2);
    alb_cm_claim_end(&claim);
    close(ready[0]);
    close(ready[1]);
}

// A child that outlives its parent does not hold the parent's claims, and cannot end them.
static void claim__is_not_inherited(void **state)
{
    struct alb_cm_place here = place("10.0.0.1", false, 9);
    struct alb_cm_claim claim;
    int ready[2], go[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    assert_int_equal(claim_and_listen(&claim, &here), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(go[1]);
        alb_cm_claim_end(&claim); // is nothing here
        if (write(ready[1], "x", 1) == 1 && read(go[0], &byte, 1) == 0)
            _exit(0);
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), 9);
    close(claim.fd); // as the parent's death does
    assert_int_equal(find(0x1061c06, "10.0.0.1"), -1);
    claim.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    alb_cm_claim_end(&claim);
    int status;
    close(go[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(go[0]);
    close(ready[0]);
    close(ready[1]);
}

static void find__trusts_no_file(void **state)
{
    struct alb_cm_claim claim;
    struct alb_cm_place here = place("10.0.0.1", false, 3);
    assert_int_equal(claim_and_listen(&claim, &here), 0);
    assert_int_equal(ftruncate(claim.fd, 5), 0);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), -1);
    assert_int_equal(ftruncate(claim.fd, 4096), 0);
    assert_int_equal(pwrite(claim.fd, "garbage!", 8, 0), 8);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), -1);
    alb_cm_claim_end(&claim);
}

static void claim_listen_and_find(void *found)
{
    const struct alb_cm_place here = place("127.0.0.1", false, 9);
    struct alb_cm_claim claim;
    *(bool *)found = claim_and_listen(&claim, &here) == 0 && find(here.service_id, "127.0.0.1") == 9;
    alb_cm_claim_end(&claim);
}

// Requests are looked up by the driver, which holds the token.
static void alb_cm_claim__in_a_cancelled_thread(void **state)
{
    bool found = false;
    cancelled_call(claim_listen_and_find, &found);
    assert_true(found);
    assert_int_equal(find(0x1061c06, "127.0.0.1"), -1);
}

// The whole of the path counts, or nothing of it.
static void claim__in_a_folder_with_a_long_name(void **state)
{
    enum { DEPTH = 3 };
    char deep[sizeof(own_directory) + DEPTH * 130], longer[PATH_MAX], folder[ALB_DIRECTORY_FOLDER_MAX];
    struct alb_cm_claim claim;
    struct alb_cm_place here = place("10.0.0.1", false, 3);
    int length = snprintf(deep, sizeof(deep), "%s", own_directory);
    for (int i = 0; i < DEPTH; i++) {
        length += snprintf(deep + length, sizeof(deep) - (size_t)length, "/%0120d", i);
        assert_int_equal(mkdir(deep, 0700), 0);
    }
    setenv("ALBEDO_DIRECTORY", deep, 1);
    assert_int_equal(claim_and_listen(&claim, &here), 0);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), 3);
    deep[length - 1] = '7';
    setenv("ALBEDO_DIRECTORY", deep, 1);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), -1);
    deep[length - 1] = '2';
    alb_cm_claim_end(&claim);

    memset(longer, '/', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    setenv("ALBEDO_DIRECTORY", longer, 1);
    assert_int_equal(alb_cm_claim(&claim, &here), ENAMETOOLONG);
    assert_int_equal(find(0x1061c06, "10.0.0.1"), -1);

    setenv("ALBEDO_DIRECTORY", deep, 1);
    assert_int_equal(rmdir(alb_directory_folder(geteuid(), folder)), 0); // nothing is left in it
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(rmdir(deep), 0);
        *strrchr(deep, '/') = 0;
    }
    setenv("ALBEDO_DIRECTORY", own_directory, 1);
}

static int count_files(void)
{
    char path[ALB_DIRECTORY_FOLDER_MAX];
    DIR *dir = opendir(alb_directory_folder(geteuid(), path));
    int count = 0;
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; // "." and ".."
}

// Where there are no such locks nobody could tell later that the file is stale.
static void claim__without_locks_leaves_nothing(void **state)
{
    struct alb_cm_claim claim;
    struct alb_cm_place here = place("10.0.0.1", false, 3);
    flock_error = ENOSYS;
    alb_log_set_level(ALB_LOG_ERROR);
    int error = alb_cm_claim(&claim, &here);
    flock_error = 0;
    assert_int_equal(error, ENOSYS);
    assert_int_equal(count_files(), 0);
    alb_cm_claim_end(&claim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_cm_claim__in_a_cancelled_thread),
        cmocka_unit_test_setup_teardown(claim__says_once_why_it_fails, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(find__nobody_and_nothing, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(claim__in_a_folder_with_a_long_name, own_directory_setup,
                                        own_directory_teardown),
        cmocka_unit_test_setup_teardown(claim__is_found_until_it_ends, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(claim__the_narrowest_wins, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(claim__refuses_what_another_has, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(claim__without_descriptors, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(claim__without_locks_leaves_nothing, own_directory_setup,
                                        own_directory_teardown),
        cmocka_unit_test_setup_teardown(claim__ends_with_its_process, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(claim__is_not_inherited, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(find__trusts_no_file, own_directory_setup, own_directory_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
