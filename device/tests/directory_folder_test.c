// SPDX-License-Identifier: BSD-2-Clause
// Which folder of the host directory is a user's: the same inside and outside of a user namespace, and never another's.
#include "device/directory_file.h"

#include "base/tests/test.h"
#include "device/cm_claim.h"
#include "device/tests/own_directory.h"
#include "device/tests/user_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OTHER_USER = 1234, // whom a test run by root becomes
    CANNOT = 77,       // the host gives no user namespace
};

// Whether that holds in a process of a user who is not root, in a user namespace where that user is root, or has no
// number.
static void in_namespace(bool is_mapped, bool (*holds)(const char *outside))
{
    char outside[ALB_DIRECTORY_FOLDER_MAX];
    int status;
    assert_int_equal(chmod(own_directory, 0777), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (getuid() == 0 && setresuid(OTHER_USER, OTHER_USER, OTHER_USER) != 0)
            _exit(CANNOT);
        if (!alb_directory_folder(geteuid(), outside))
            _exit(1);
        if (is_mapped ? !user_namespace_enter(0) : unshare(CLONE_NEWUSER) != 0)
            _exit(CANNOT);
        _exit(holds(outside) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
        skip();
    assert_int_equal(status, 0);
}

static unsigned long long own_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/user", &status) == 0 ? (unsigned long long)status.st_ino : 0;
}

// Claims a service there and finds it.
static bool is_usable(void)
{
    const struct alb_cm_place place = {.service_id = 0x1061c06, .slot = 3};
    struct alb_cm_claim claim;
    uint8_t slot = 0;
    bool is_found = alb_cm_claim(&claim, &place) == 0 && alb_cm_claim_listen(&claim) == 0 &&
                    alb_cm_claim_find(0, place.service_id, &place.addr, &slot) == 0;
    alb_cm_claim_end(&claim);
    return is_found && slot == place.slot;
}

static bool is_the_one_outside(const char *outside)
{
    char folder[ALB_DIRECTORY_FOLDER_MAX];
    bool is_same = geteuid() == 0 && alb_directory_folder(0, folder) && strcmp(folder, outside) == 0 && is_usable();
    rmdir(outside);
    return is_same;
}

static void folder__is_the_same_inside_and_outside(void **state)
{
    in_namespace(true, is_the_one_outside);
}

// What it is must be known, or it is not used.
static bool fails_without_descriptors(const char *outside)
{
    char folder[ALB_DIRECTORY_FOLDER_MAX];
    const struct rlimit none = {.rlim_max = 64};
    return setrlimit(RLIMIT_NOFILE, &none) == 0 && !alb_directory_folder(0, folder) && errno == EMFILE;
}

static void folder__without_descriptors(void **state)
{
    in_namespace(true, fails_without_descriptors);
}

static bool is_the_namespaces(const char *outside)
{
    char folder[ALB_DIRECTORY_FOLDER_MAX], wanted[ALB_DIRECTORY_FOLDER_MAX];
    snprintf(wanted, sizeof(wanted), "%s/albedo-%u-%llu", own_directory, (unsigned)geteuid(), own_namespace());
    bool is_it = alb_directory_folder(geteuid(), folder) && strcmp(folder, wanted) == 0 && is_usable();
    rmdir(wanted);
    return is_it;
}

// All who have no number are 65534.
static void folder__of_one_without_a_number(void **state)
{
    in_namespace(false, is_the_namespaces);
}

static void folder__that_is_anothers(void **state)
{
    char folder[ALB_DIRECTORY_FOLDER_MAX], plain[ALB_DIRECTORY_FOLDER_MAX];
    struct alb_directory directory;
    assert_non_null(alb_directory_folder(geteuid(), plain));
    assert_int_equal(mkdir(plain, 0700), 0);
    if (chown(plain, OTHER_USER, (gid_t)-1) != 0) {
        assert_int_equal(rmdir(plain), 0);
        skip(); // only root gives files away
    }
    assert_non_null(alb_directory_folder(geteuid(), folder));
    assert_memory_equal(folder, plain, strlen(plain));
    assert_int_equal(strtoll(folder + strlen(plain), NULL, 10), -(long long)own_namespace()); // behind a hyphen
    assert_true(is_usable());
    assert_int_equal(alb_directory_open(&directory, geteuid()), 0);
    assert_true(directory.dir_fd >= 0);
    alb_directory_close(&directory);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(plain), 0);
}

// Of a user without a number in a namespace: names the folder, waits until somebody has made it, and opens it.
static int open_what_is_found(int named, int made)
{
    char path[ALB_DIRECTORY_FOLDER_MAX] = "", done;
    if (setresuid(OTHER_USER, OTHER_USER, OTHER_USER) != 0 || unshare(CLONE_NEWUSER) != 0)
        return CANNOT;
    if (!alb_directory_folder(geteuid(), path) || write(named, path, sizeof(path)) != (ssize_t)sizeof(path) ||
        read(made, &done, 1) != 1)
        return 1;
    return alb_directory_open_folder(geteuid(), path, true) < 0 && errno == EPERM ? 0 : 1;
}

// All other users look like oneself there.
static void folder__of_another_without_a_number(void **state)
{
    char path[ALB_DIRECTORY_FOLDER_MAX];
    int named[2], made[2], status;
    if (geteuid() != 0)
        skip(); // only root gives files away
    assert_int_equal(chmod(own_directory, 0777), 0);
    assert_int_equal(pipe(named), 0);
    assert_int_equal(pipe(made), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(open_what_is_found(named[1], made[0]));
    close(named[1]);
    bool is_named = read(named[0], path, sizeof(path)) == (ssize_t)sizeof(path);
    if (is_named) {
        assert_int_equal(mkdir(path, 0755), 0);
        assert_int_equal(chown(path, OTHER_USER + 1, (gid_t)-1), 0);
        assert_int_equal(write(made[1], "", 1), 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    close(named[0]);
    close(made[0]);
    close(made[1]);
    if (is_named)
        rmdir(path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
        skip();
    assert_int_equal(status, 0);
}

// What was made stays when its maker has ended, and others come.
static void folder__whatever_the_umask_is(void **state)
{
    char path[ALB_DIRECTORY_FOLDER_MAX];
    struct stat folder_status, file_status;
    mode_t before = umask(0777);
    int folder = alb_directory_open_folder(geteuid(), path, true);
    int file = folder < 0 ? -1 : alb_directory_open_file(folder, "file");
    umask(before);
    assert_true(file >= 0);
    assert_int_equal(fstat(folder, &folder_status), 0);
    assert_int_equal(fstat(file, &file_status), 0);
    assert_int_equal(folder_status.st_mode & 0777, 0700);
    assert_int_equal(file_status.st_mode & 0777, 0600);
    assert_int_equal(unlinkat(folder, "file", 0), 0);
    close(file);
    close(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folder__is_the_same_inside_and_outside, own_directory_setup,
                                        own_directory_teardown),
        cmocka_unit_test_setup_teardown(folder__without_descriptors, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(folder__of_one_without_a_number, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(folder__that_is_anothers, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(folder__of_another_without_a_number, own_directory_setup,
                                        own_directory_teardown),
        cmocka_unit_test_setup_teardown(folder__whatever_the_umask_is, own_directory_setup, own_directory_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
