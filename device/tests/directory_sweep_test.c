// SPDX-License-Identifier: BSD-2-Clause
// What ended processes leave in the host directory goes, and nothing of a living one does.
#include "device/directory_file.h"

#include "base/tests/test.h"
#include "device/cm_claim.h"
#include "device/tests/own_directory.h"
#include "device/tests/user_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LIVING = 100, // files
    CANNOT = 77,  // the host gives no namespaces
};

static void create_board(struct alb_board *board)
{
    static struct alb_addr addr;
    static const struct alb_faults_spec none;
    const struct alb_board_identity identity = {
        .device = "roce0", .mtu_bytes = 1024, .addresses = &addr, .address_count = 1, .faults = &none};
    assert_int_equal(alb_board_create(board, &identity, 256), 0);
}

// As a program that starts and ends.
static void come_and_go(struct alb_board *board)
{
    struct alb_directory_entry entry;
    alb_directory_enter(&entry, board);
    assert_true(entry.fd >= 0);
    alb_directory_leave(&entry);
}

static const char *own_folder(void)
{
    static char folder[ALB_DIRECTORY_FOLDER_MAX];
    assert_non_null(alb_directory_folder(geteuid(), folder));
    mkdir(folder, 0700);
    return folder;
}

static int count_files(void)
{
    DIR *dir = opendir(own_folder());
    int count = -2; // . and ..
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

// A file without a lock. -1 if there is no room.
static int leave_file(int number)
{
    char path[ALB_DIRECTORY_FOLDER_MAX + 64];
    snprintf(path, sizeof(path), number % 2 ? "%s/.cm-1-1-%016x-00" : "%s/%d-1", own_folder(), (unsigned)number);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void enter__sweeps_what_is_left(void **state)
{
    struct alb_board board;
    int living[LIVING];
    create_board(&board);
    for (int i = 0; i < LIVING; i++) {
        living[i] = leave_file(i);
        assert_int_equal(flock(living[i], LOCK_EX), 0);
    }
    for (int i = 0; i < LIVING; i++)
        close(leave_file(LIVING + i));
    assert_int_equal(count_files(), 2 * LIVING);
    for (int i = 0; i < 1000 && count_files() > LIVING; i++)
        come_and_go(&board);
    assert_int_equal(count_files(), LIVING);
    for (int i = 0; i < LIVING; i++)
        close(living[i]);
    for (int i = 0; i < LIVING / 8 + 1; i++) // eight at a time
        come_and_go(&board);
    assert_int_equal(count_files(), 0);
    alb_board_destroy(&board);
}

static const struct alb_cm_place places[] = {{.service_id = 7, .slot = 3}, {.service_id = 8, .slot = 3}};

static bool is_found(const struct alb_cm_place *place)
{
    uint8_t slot;
    return alb_cm_claim_find(place->gsi_index, place->service_id, &place->addr, &slot) == 0 && slot == place->slot;
}

// As the death of its process.
static void lose(struct alb_cm_claim *claim)
{
    alb_list_remove(&claim->link);
    close(claim->fd);
    free(claim->path);
}

static void claim__sweeps_claims(void **state)
{
    struct alb_cm_claim left, claim;
    struct alb_directory directory;
    assert_int_equal(alb_cm_claim(&left, &places[0]), 0);
    lose(&left);
    assert_int_equal(count_files(), 1);
    assert_int_equal(alb_cm_claim(&claim, &places[1]), 0);
    assert_int_equal(alb_cm_claim_listen(&claim), 0);
    assert_int_equal(count_files(), 1); // and is not swept
    assert_int_equal(alb_directory_open(&directory, geteuid()), 0);
    alb_directory_close(&directory);
    assert_true(is_found(&places[1]));
    lose(&claim);
    assert_int_equal(count_files(), 1);
    assert_int_equal(alb_directory_open(&directory, geteuid()), 0); // as albedo-stat(1)
    alb_directory_close(&directory);
    assert_int_equal(count_files(), 0);
}

// Who claims what is being swept has it all the same.
static void claim__beside_sweepers(void **state)
{
    enum { SWEEPERS = 3, ROUNDS = 3000 };
    pid_t sweepers[SWEEPERS];
    int folder = open(own_folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct alb_cm_claim claim;
    for (int i = 0; i < SWEEPERS; i++) {
        sweepers[i] = fork();
        assert_true(sweepers[i] >= 0);
        while (sweepers[i] == 0)
            alb_directory_sweep(folder);
    }
    int failures = 0;
    for (int i = 0; i < TEST_SOME(ROUNDS); i++) {
        failures += alb_cm_claim(&claim, &places[0]) != 0 || alb_cm_claim_listen(&claim) != 0 || !is_found(&places[0]);
        lose(&claim);
    }
    for (int i = 0; i < SWEEPERS; i++) {
        kill(sweepers[i], SIGKILL);
        assert_int_equal(waitpid(sweepers[i], NULL, 0), sweepers[i]);
    }
    assert_int_equal(failures, 0);
    alb_directory_sweep(folder);
    close(folder);
    assert_int_equal(count_files(), 0);
}

// In a file system of its own, filled to the last file, which is the one that is left.
static bool fill(void)
{
    int last = -1;
    if (!user_namespace_enter(CLONE_NEWNS) || mount("tmpfs", own_directory, "tmpfs", 0, "nr_inodes=64") != 0)
        return false;
    for (int i = 0, fd; (fd = leave_file(i)) >= 0 && flock(fd, LOCK_EX) == 0; i++)
        last = fd;
    return errno == ENOSPC && close(last) == 0;
}

static bool can_enter(void)
{
    struct alb_board board;
    struct alb_directory_entry entry;
    create_board(&board);
    alb_directory_enter(&entry, &board);
    bool is_entered = entry.fd >= 0;
    alb_directory_leave(&entry);
    return is_entered;
}

static bool can_claim(void)
{
    struct alb_cm_claim claim;
    int error = alb_cm_claim(&claim, &places[0]);
    alb_cm_claim_end(&claim);
    return error == 0;
}

static void in_full(bool (*can)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!fill())
            _exit(CANNOT);
        _exit(can() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
        skip();
    assert_int_equal(status, 0);
}

static void enter__makes_room(void **state)
{
    in_full(can_enter);
}

static void claim__makes_room(void **state)
{
    in_full(can_claim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(enter__sweeps_what_is_left, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(claim__sweeps_claims, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(claim__beside_sweepers, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(enter__makes_room, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(claim__makes_room, own_directory_setup, own_directory_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
