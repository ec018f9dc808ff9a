// SPDX-License-Identifier: BSD-2-Clause
// The host directory: which devices are listed, which no longer are, and that nothing read from it is trusted.
#include "device/directory_file.h"

#include "base/log.h"
#include "base/tests/test.h"
#include "device/tests/flock_refused.h"
#include "device/tests/own_directory.h"
#include "device/tests/said.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void create_board(struct alb_board *board, uint8_t slot)
{
    static struct alb_addr addr;
    static const struct alb_faults_spec none;
    assert_true(alb_addr_parse("10.1.2.3", &addr));
    const struct alb_board_identity identity = {
        .device = "roce0", .slot = slot, .mtu_bytes = 1024, .addresses = &addr, .address_count = 1, .faults = &none};
    assert_int_equal(alb_board_create(board, &identity, 65536), 0);
}

// How many boards the directory shows; the last one's slot is stored.
static int count_boards(uint8_t *slot)
{
    struct alb_directory directory;
    struct alb_directory_board board;
    int count = 0;
    assert_int_equal(alb_directory_open(&directory, geteuid()), 0);
    while (alb_directory_next(&directory, &board)) {
        *slot = board.header.slot;
        assert_non_null(board.rows.qps);
        assert_string_equal(board.header.device, "roce0");
        alb_directory_unmap(&board);
        count++;
    }
    alb_directory_close(&directory);
    return count;
}

static int count_files(void)
{
    char folder[ALB_DIRECTORY_FOLDER_MAX];
    DIR *dir = opendir(alb_directory_folder(geteuid(), folder));
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

// A process that lists a board of that slot, with one queue pair's counters, and sleeps.
static pid_t start_listed(uint8_t slot)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct alb_board board;
        struct alb_directory_entry entry;
        create_board(&board, slot);
        board.qps[40000].qpn = 0x9c40;
        board.qps[40000].stats.counter[ALB_STAT_sent_pkts] = 77;
        alb_directory_enter(&entry, &board);
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void alb_directory__empty(void **state)
{
    uint8_t slot;
    assert_int_equal(count_boards(&slot), 0);
}

static uint64_t sent_pkts(const struct alb_board_rows *rows, uint32_t qpn)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < rows->qp_count; i++)
        count += rows->qps[i].qpn == qpn ? rows->qps[i].stats.counter[ALB_STAT_sent_pkts] : 0;
    return count;
}

static void alb_directory__shows_another_process(void **state)
{
    pid_t child = start_listed(9);
    struct alb_directory directory;
    struct alb_directory_board board;
    assert_int_equal(alb_directory_open(&directory, geteuid()), 0);
    assert_true(alb_directory_next(&directory, &board));
    assert_int_equal(board.header.pid, child);
    assert_int_equal(board.header.slot, 9);
    assert_int_equal(board.header.net_namespace, alb_board_net_namespace());
    assert_int_equal(board.header.address_count, 1);
    assert_int_equal(sent_pkts(&board.rows, 0x9c40), 77);
    alb_directory_unmap(&board);
    assert_false(alb_directory_next(&directory, &board));
    alb_directory_close(&directory);
    end(child);
}

static void alb_directory__forgets_the_killed(void **state)
{
    uint8_t slot;
    pid_t first = start_listed(1), second = start_listed(2);
    assert_int_equal(count_boards(&slot), 2);
    end(first);
    assert_int_equal(count_files(), 2);
    assert_int_equal(count_boards(&slot), 1);
    assert_int_equal(slot, 2);
    assert_int_equal(count_files(), 1); // the stale file was removed by its reader
    end(second);
    assert_int_equal(count_boards(&slot), 0);
    assert_int_equal(count_files(), 0);
}

// However the file system lists them.
static void alb_directory_next__by_process(void **state)
{
    enum { CHILDREN = 8 };
    pid_t children[CHILDREN];
    struct alb_directory directory;
    struct alb_directory_board board;
    for (int i = 0; i < CHILDREN; i++)
        children[i] = start_listed((uint8_t)i);
    assert_int_equal(alb_directory_open(&directory, geteuid()), 0);
    for (int before = 0, i = 0; i < CHILDREN; i++) {
        assert_true(alb_directory_next(&directory, &board));
        assert_true(board.header.pid > before);
        before = board.header.pid;
        alb_directory_unmap(&board);
    }
    assert_false(alb_directory_next(&directory, &board));
    alb_directory_close(&directory);
    for (int i = 0; i < CHILDREN; i++)
        end(children[i]);
    uint8_t slot;
    assert_int_equal(count_boards(&slot), 0);
}

static void alb_directory_leave__removes(void **state)
{
    struct alb_board board;
    struct alb_directory_entry entry;
    uint8_t slot;
    create_board(&board, 5);
    alb_directory_enter(&entry, &board);
    assert_int_equal(count_boards(&slot), 1); // of this very process
    assert_int_equal(count_boards(&slot), 1); // and reading has not unlocked it
    assert_int_equal(slot, 5);
    alb_directory_leave(&entry);
    alb_directory_leave(&entry); // harmless
    assert_int_equal(count_files(), 0);
    alb_board_destroy(&board);
}

static void alb_directory__reading_allocates_nothing(void **state)
{
    struct alb_board board;
    struct alb_directory_entry entry;
    struct stat before, after;
    uint8_t slot;
    create_board(&board, 5);
    board.qps[3].qpn = 3;
    alb_directory_enter(&entry, &board);
    assert_int_equal(fstat(board.fd, &before), 0);
    assert_int_equal(count_boards(&slot), 1);
    assert_int_equal(fstat(board.fd, &after), 0);
    assert_true(after.st_blocks * 512 <= before.st_blocks * 512 + 4096); // the counters, which a device writes anyway
    assert_true(after.st_blocks * 512 < 256 << 10);                      // of 18 MiB
    alb_directory_leave(&entry);
    alb_board_destroy(&board);
}

// Lists a locked file with any contents.
static int list_garbage(const char *name, const void *bytes, size_t length)
{
    char folder[ALB_DIRECTORY_FOLDER_MAX], path[ALB_DIRECTORY_FOLDER_MAX + 64];
    mkdir(alb_directory_folder(geteuid(), folder), 0700);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    return fd; // not locked: stale
}

static void alb_directory__garbage_files(void **state)
{
    uint8_t slot;
    struct alb_directory_file file = {.magic = ALB_DIRECTORY_MAGIC, .pid = -1, .board_fd = -1};
    close(list_garbage("a", "garbage", 7));
    close(list_garbage("b", &file, sizeof(file)));
    close(list_garbage("c", "", 0));
    assert_int_equal(count_boards(&slot), 0);
    assert_int_equal(count_files(), 0);

    int locked = list_garbage("d", &file, sizeof(file)); // a live process that shows nothing
    assert_int_equal(flock(locked, LOCK_EX), 0);
    assert_int_equal(count_boards(&slot), 0);
    assert_int_equal(count_files(), 1);
    close(locked);
    assert_int_equal(count_boards(&slot), 0);
    assert_int_equal(count_files(), 0);
}

// Its process lives, but has another number here.
static void alb_directory_next__counts_the_unreadable(void **state)
{
    struct alb_directory directory;
    struct alb_directory_board board;
    const struct alb_directory_file file = {.magic = ALB_DIRECTORY_MAGIC, .pid = (int32_t)getpid(), .board_fd = 0};
    const int locked[] = {list_garbage("1", &file, sizeof(file)), list_garbage("2", &file, sizeof(file)),
                          list_garbage("3", "", 0)}; // that is just being made
    for (unsigned i = 0; i < ALB_COUNT(locked); i++)
        assert_int_equal(flock(locked[i], LOCK_EX), 0);
    assert_int_equal(alb_directory_open(&directory, geteuid()), 0);
    assert_false(alb_directory_next(&directory, &board));
    assert_int_equal(directory.unreadable, 2);
    alb_directory_close(&directory);
    for (unsigned i = 0; i < ALB_COUNT(locked); i++)
        close(locked[i]);
    uint8_t slot;
    assert_int_equal(count_boards(&slot), 0);
    assert_int_equal(count_files(), 0);
}

// Maps a file of our own as if it were another's board.
static bool maps(int fd)
{
    struct stat status;
    struct alb_directory_board board;
    assert_int_equal(fstat(fd, &status), 0);
    bool is_mapped = alb_directory_map((int)getpid(), fd, (uint64_t)status.st_dev, (uint64_t)status.st_ino, &board);
    if (is_mapped)
        alb_directory_unmap(&board);
    return is_mapped;
}

static void alb_directory_map__garbage_boards(void **state)
{
    struct alb_board board;
    create_board(&board, 1);
    const struct alb_board_header good = *board.header;
    assert_true(maps(board.fd));
#define REFUSES(change)               \
    do {                              \
        change;                       \
        assert_false(maps(board.fd)); \
        *board.header = good;         \
    } while (0)
    REFUSES(board.header->magic ^= 1);
    REFUSES(board.header->version++);
    REFUSES(board.header->header_bytes++);
    REFUSES(board.header->address_count = ALB_DEVICE_ADDRESSES_MAX + 1);
    REFUSES(board.header->qp_max++);
    REFUSES(board.header->qp_max = UINT32_MAX);
    REFUSES(board.header->qp_max = 0);
    REFUSES(board.header->qp_offset = UINT64_MAX);
    REFUSES(board.header->qp_offset = 8);
    REFUSES(board.header->peer_max++);
    REFUSES(board.header->peer_max = 0);
    REFUSES(board.header->peer_offset = UINT64_MAX);
    REFUSES(board.header->peer_offset = 8);
    REFUSES(memset(board.header->program, 'x', sizeof(board.header->program)));
    REFUSES(memset(board.header->device, 'x', sizeof(board.header->device)));
    REFUSES(memset(board.header->faults, 'x', sizeof(board.header->faults)));
    assert_true(maps(board.fd));
    struct alb_directory_board other;
    struct stat status;
    assert_int_equal(fstat(board.fd, &status), 0);
    snprintf(board.header->program, sizeof(board.header->program), "a\033[2J\n"); // programs choose their names
    assert_true(alb_directory_map((int)getpid(), board.fd, (uint64_t)status.st_dev, (uint64_t)status.st_ino, &other));
    assert_string_equal(other.header.program, "a?[2J?");
    alb_directory_unmap(&other);
    assert_false(
        alb_directory_map((int)getpid(), board.fd, (uint64_t)status.st_dev, (uint64_t)status.st_ino + 1, &other));
    board.header->stat_count++; // another version's counters: listed, but not readable
    assert_true(alb_directory_map((int)getpid(), board.fd, (uint64_t)status.st_dev, (uint64_t)status.st_ino, &other));
    assert_null(other.rows.qps);
    alb_directory_unmap(&other);
    alb_board_destroy(&board);

    int shrinkable = memfd_create("shrinkable", MFD_CLOEXEC | MFD_ALLOW_SEALING); // its owner could make a reader crash
    assert_int_equal(ftruncate(shrinkable, (off_t)good.total_bytes), 0);
    assert_int_equal(pwrite(shrinkable, &good, sizeof(good), 0), sizeof(good));
    assert_false(maps(shrinkable));
    assert_int_equal(fcntl(shrinkable, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_true(maps(shrinkable));
    close(shrinkable);
}

static void alb_directory_open__not_ours(void **state)
{
    struct alb_directory directory;
    char folder[ALB_DIRECTORY_FOLDER_MAX];
    mkdir(alb_directory_folder(geteuid(), folder), 0700);
    chmod(folder, 0777); // any user could put files there
    assert_int_equal(alb_directory_open(&directory, geteuid()), EPERM);
    chmod(folder, 0700);
    rmdir(folder);
    assert_int_equal(symlink("/tmp", folder), 0);
    assert_int_not_equal(alb_directory_open(&directory, geteuid()), 0);
    unlink(folder);
}

static void alb_directory_enter__without_a_place(void **state)
{
    struct alb_board board;
    struct alb_directory_entry entry;
    alb_log_set_level(ALB_LOG_ERROR);
    setenv("ALBEDO_DIRECTORY", "/nowhere/at/all", 1);
    create_board(&board, 1);
    alb_directory_enter(&entry, &board);
    assert_int_equal(entry.fd, -1);
    alb_directory_leave(&entry);
    board.header->device_stats.sum.counter[0]++; // counts all the same
    alb_board_destroy(&board);
    setenv("ALBEDO_DIRECTORY", own_directory, 1);
}

// What is said where there may be so many descriptors.
static void enter_in_vain(rlim_t descriptors, char *text, size_t size)
{
    struct alb_board board;
    struct alb_directory_entry entry;
    struct said said;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit limit = {.rlim_cur = ALB_MIN(descriptors, before.rlim_cur), .rlim_max = before.rlim_max};
    create_board(&board, 1);
    alb_log_set_level(ALB_LOG_WARNING);
    said_begin(&said);
    setrlimit(RLIMIT_NOFILE, &limit);
    alb_directory_enter(&entry, &board);
    setrlimit(RLIMIT_NOFILE, &before);
    said_end(&said, text, size);
    assert_int_equal(entry.fd, -1);
    alb_board_destroy(&board);
}

// What is missed, and what can be done about it.
static void alb_directory_enter__says_why(void **state)
{
    char text[ALB_LOG_LINE_MAX];
    enter_in_vain(3, text, sizeof(text));
    assert_non_null(strstr(text, ": Too many open files: \"albedo stat\" will not show this process, and rdma_cm can "
                                 "neither bind nor listen in it; `ulimit -n` bounds"));
    setenv("ALBEDO_DIRECTORY", "/nowhere/at/all", 1);
    enter_in_vain(RLIM_INFINITY, text, sizeof(text));
    assert_non_null(strstr(text,
                           ": No such file or directory: \"albedo stat\" will not show this process, and rdma_cm can "
                           "neither bind nor listen in it; ALBEDO_DIRECTORY names another place\n"));
    setenv("ALBEDO_DIRECTORY", own_directory, 1);
}

// Some file systems and sandboxes have no such locks.
static void alb_directory_enter__without_locks(void **state)
{
    char text[ALB_LOG_LINE_MAX];
    flock_error = ENOSYS;
    enter_in_vain(RLIM_INFINITY, text, sizeof(text));
    flock_error = 0;
    assert_non_null(strstr(text, strerror(ENOSYS)));
    assert_non_null(strstr(text, "; ALBEDO_DIRECTORY names another place\n"));
    assert_int_equal(count_files(), 0);
}

// One that does not fit is no other one.
static void alb_directory_enter__too_long_a_path(void **state)
{
    struct alb_board board;
    struct alb_directory_entry entry;
    struct alb_directory directory;
    char path[PATH_MAX];
    memset(path, '/', sizeof(path) - 1);
    path[sizeof(path) - 1] = 0;
    alb_log_set_level(ALB_LOG_ERROR);
    setenv("ALBEDO_DIRECTORY", path, 1);
    create_board(&board, 1);
    alb_directory_enter(&entry, &board);
    assert_int_equal(entry.fd, -1);
    assert_int_equal(alb_directory_open(&directory, geteuid()), ENAMETOOLONG);
    alb_board_destroy(&board);
    setenv("ALBEDO_DIRECTORY", own_directory, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_directory__empty),
        cmocka_unit_test(alb_directory_enter__too_long_a_path),
        cmocka_unit_test(alb_directory__shows_another_process),
        cmocka_unit_test(alb_directory__forgets_the_killed),
        cmocka_unit_test(alb_directory_next__by_process),
        cmocka_unit_test(alb_directory_leave__removes),
        cmocka_unit_test(alb_directory__reading_allocates_nothing),
        cmocka_unit_test(alb_directory__garbage_files),
        cmocka_unit_test(alb_directory_next__counts_the_unreadable),
        cmocka_unit_test(alb_directory_map__garbage_boards),
        cmocka_unit_test(alb_directory_open__not_ours),
        cmocka_unit_test(alb_directory_enter__without_a_place),
        cmocka_unit_test(alb_directory_enter__says_why),
        cmocka_unit_test(alb_directory_enter__without_locks),
    };
    return cmocka_run_group_tests_name("directory", tests, own_directory_setup, own_directory_teardown);
}
