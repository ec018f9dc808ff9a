// SPDX-License-Identifier: BSD-2-Clause
// A durable region's file is opened: what it may be, by which names, and what is left and said when it cannot be.
#include "device/tests/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct shelf shelf;
static uint8_t zeros[SHELF_REGION];

static const char *journal_path(void)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s.journal", shelf.path);
    return path;
}

static int setup(void **state)
{
    shelf_make(&shelf, "/dev/shm");
    return 0;
}

static int teardown(void **state)
{
    shelf_remove(&shelf);
    return 0;
}

static void alb_store_open__keeps_the_keeper(void **state)
{
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    uint64_t keeper = shelf.store.journal.header.keeper;
    assert_int_not_equal(keeper, 0);
    assert_int_equal(shelf.store.length, SHELF_REGION);
    assert_memory_equal(shelf.store.address, zeros, SHELF_REGION);
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(shelf.store.journal.header.keeper == keeper);
    alb_store_stop(&shelf.store);
    alb_store_close(&shelf.store, false);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(shelf.store.journal.header.keeper == keeper);
    shelf_crash(&shelf);
}

static void alb_store_open__one_at_a_time(void **state)
{
    struct alb_store second;
    const struct alb_store_init init = {.path = shelf.path, .length = SHELF_REGION};
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(alb_store_open(&second, &init), EBUSY);
    shelf_crash(&shelf);
    assert_int_equal(alb_store_open(&second, &init), 0);
    alb_store_close(&second, false);
}

// For longer than it is a region.
static void alb_store_open__a_program_has_a_lock_of_its_own(void **state)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1ll << 62};
    shelf_save(shelf.path, zeros, sizeof(zeros));
    int fd = open(shelf.path, O_RDWR);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    lock.l_start = 0;
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), -1);
    shelf_crash(&shelf);
    close(fd);
}

// A program whose standard error is closed would write its own lines into them.
static void alb_store_open__leaves_small_descriptors_to_the_program(void **state)
{
    for (int i = 0; i < 2; i++) { // a new journal, and one that is there
        assert_int_equal(shelf_open(&shelf, NULL), 0);
        assert_true(shelf.store.fd >= 512);
        assert_true(shelf.store.journal.fd >= 512 && shelf.store.journal.folder_fd >= 512);
        shelf_crash(&shelf);
    }
}

// What was committed by one of its names is there by the other: both have one journal.
static void alb_store_open__a_symbolic_link_has_no_journal_of_its_own(void **state)
{
    static struct shelf_txn bound;
    struct alb_store by_link;
    char link[128];
    snprintf(link, sizeof(link), "%s/link", shelf.folder);
    const struct alb_store_init init = {.path = link, .length = SHELF_REGION};
    assert_int_equal(symlink(shelf.path, link), 0);
    assert_int_equal(alb_store_open(&by_link, &init), 0); // it leads to nothing yet
    alb_store_close(&by_link, true);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(shelf.store.journal.header.keeper == by_link.journal.header.keeper);
    shelf_fill(&bound, 1, 1, 0, 100, 'a');
    assert_int_equal(shelf_ask(&shelf, &bound, ALB_JOURNAL_PREPARE, 1), 0);
    shelf_crash(&shelf);
    assert_int_equal(alb_store_open(&by_link, &init), 0);
    assert_non_null(alb_ledger_find(&by_link.ledger, &bound.id));
    alb_store_close(&by_link, true);
    assert_int_equal(unlink(link), 0);
}

// Commits something that only the journal has for sure, writes the journal anew, and crashes.
static void commit_and_crash(struct shelf_txn *txn)
{
    shelf_fill(txn, 1, 1, 0, 100, 'a');
    assert_int_equal(shelf_ask(&shelf, txn, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(alb_journal_checkpoint(&shelf.store.journal, &shelf.store.ledger), 0);
    assert_int_equal(shelf_ask(&shelf, txn, ALB_JOURNAL_COMMIT, 1), 0);
    shelf_crash(&shelf);
    shelf_save(shelf.path, zeros, sizeof(zeros));
}

static void expect_committed(const struct shelf_txn *txn)
{
    uint8_t there[100];
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    memcpy(there, shelf.store.address, sizeof(there));
    shelf_crash(&shelf);
    assert_memory_equal(there, txn->bytes[0], sizeof(there));
}

// As a daemon does.
static void alb_store_open__the_process_goes_elsewhere(void **state)
{
    static struct shelf_txn txn;
    struct shelf other;
    const struct alb_store_init init = {.path = "region"};
    int before = open(".", O_PATH | O_DIRECTORY);
    shelf_make(&other, "/dev/shm");
    assert_int_equal(chdir(shelf.folder), 0);
    assert_int_equal(shelf_open(&shelf, &init), 0);
    assert_int_equal(chdir(other.folder), 0);
    commit_and_crash(&txn);
    assert_int_equal(fchdir(before), 0);
    expect_committed(&txn);
    assert_int_equal(rmdir(other.folder), 0); // nothing came there
    close(before);
}

// As to the newest of several versions.
static void alb_store_open__a_link_on_the_way_leads_elsewhere(void **state)
{
    static struct shelf_txn txn;
    struct shelf other;
    char link[96], path[128];
    shelf_make(&other, "/dev/shm");
    snprintf(link, sizeof(link), "%s/current", other.folder);
    snprintf(path, sizeof(path), "%s/region", link);
    const struct alb_store_init init = {.path = path};
    assert_int_equal(symlink(shelf.folder, link), 0);
    assert_int_equal(shelf_open(&shelf, &init), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(".", link), 0);
    commit_and_crash(&txn);
    assert_int_equal(unlink(link), 0);
    expect_committed(&txn);
    assert_int_equal(rmdir(other.folder), 0);
}

static mode_t journal_mode(void)
{
    struct stat status;
    assert_int_equal(stat(journal_path(), &status), 0);
    return status.st_mode & 0777;
}

// It has the region's bytes in it.
static void alb_store_open__the_journal_is_for_those_that_the_file_is_for(void **state)
{
    mode_t before = umask(0);
    shelf_save(shelf.path, zeros, sizeof(zeros));
    assert_int_equal(chmod(shelf.path, 0640), 0);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    mode_t first = journal_mode();
    assert_int_equal(chmod(shelf.path, 0600), 0);
    assert_int_equal(alb_journal_checkpoint(&shelf.store.journal, &shelf.store.ledger), 0);
    shelf_crash(&shelf);
    umask(before);
    assert_int_equal(first, 0640);
    assert_int_equal(journal_mode(), 0600);
}

// Opens it, and gives what was said.
static int open_and_listen(const struct alb_store_init *init, char line[256])
{
    struct alb_store second;
    int said = open("/dev/shm", O_TMPFILE | O_RDWR, 0600), kept = dup(STDERR_FILENO);
    dup2(said, STDERR_FILENO);
    int error = alb_store_open(&second, init);
    dup2(kept, STDERR_FILENO);
    ssize_t length = pread(said, line, 255, 0);
    line[length > 0 ? length : 0] = 0;
    close(kept);
    close(said);
    return error;
}

// What comes over the network must not get into what is believed after a crash. The journal is another file after each
// checkpoint.
static void alb_store_open__not_the_journal_of_another(void **state)
{
    struct alb_store second;
    char journal[160];
    snprintf(journal, sizeof(journal), "%s", journal_path());
    const struct alb_store_init init = {.path = journal};
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(alb_store_open(&second, &init), EBUSY);
    assert_int_equal(alb_journal_checkpoint(&shelf.store.journal, &shelf.store.ledger), 0);
    assert_int_equal(alb_store_open(&second, &init), EBUSY);
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    shelf_crash(&shelf);
}

// Nor the other way round: a new journal would take the region's name, and it would go on without one. Nothing of what
// the network writes there is read.
static void alb_store_open__not_if_its_journal_is_a_region(void **state)
{
    struct alb_store region;
    char journal[160], its_own[176], line[512], expected[512];
    snprintf(journal, sizeof(journal), "%s", journal_path());
    snprintf(its_own, sizeof(its_own), "%s.journal", journal);
    const struct alb_store_init init = {.path = journal};
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    shelf_crash(&shelf);
    assert_int_equal(alb_store_open(&region, &init), 0);
    memset(region.address, 'x', region.length);
    const struct alb_store_init by_name = {.path = shelf.path, .length = SHELF_REGION};
    assert_int_equal(open_and_listen(&by_name, line), EBUSY);
    snprintf(expected, sizeof(expected), "albedo: error: %s: is open already ", journal);
    assert_memory_equal(line, expected, strlen(expected));
    alb_store_close(&region, false);
    assert_int_equal(unlink(journal), 0);
    assert_int_equal(unlink(its_own), 0);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    shelf_crash(&shelf);
}

// Nor if the new journal would be made where there is one.
static void alb_store_open__not_if_its_new_journal_is_a_region(void **state)
{
    struct alb_store region;
    char place[160], its_own[176], line[256], expected[256];
    snprintf(place, sizeof(place), "%s.new", journal_path());
    snprintf(its_own, sizeof(its_own), "%s.journal", place);
    const struct alb_store_init init = {.path = place, .length = SHELF_REGION};
    const struct alb_store_init by_name = {.path = shelf.path, .length = SHELF_REGION};
    assert_int_equal(alb_store_open(&region, &init), 0);
    assert_int_equal(open_and_listen(&by_name, line), EBUSY);
    snprintf(expected, sizeof(expected), "albedo: error: %s: is open already ", place);
    assert_memory_equal(line, expected, strlen(expected));
    assert_int_equal(access(place, F_OK), 0);
    assert_int_not_equal(access(shelf.path, F_OK), 0);
    alb_store_close(&region, false);
    assert_int_equal(unlink(its_own), 0);
}

// The folder may have been given as one of our descriptors, whose number tells people nothing.
static void alb_store_open__error_names_the_folder(void **state)
{
    char path[64], line[256];
    int folder = open("/dev", O_PATH | O_DIRECTORY);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/shm", folder);
    const struct alb_store_init init = {.path = path, .length = SHELF_REGION};
    assert_int_equal(open_and_listen(&init, line), EISDIR);
    assert_string_equal(line, "albedo: error: /dev/shm: Is a directory\n");
    close(folder);
}

static void alb_store_open__error_names_the_journal(void **state)
{
    char line[256], expected[256];
    const struct alb_store_init init = {.path = shelf.path, .length = SHELF_REGION};
    assert_int_equal(mkdir(journal_path(), 0700), 0);
    snprintf(expected, sizeof(expected), "albedo: error: %s: Is a directory\n", journal_path());
    assert_int_equal(open_and_listen(&init, line), EISDIR);
    assert_string_equal(line, expected);
    assert_int_equal(rmdir(journal_path()), 0);
}

static void alb_store_open__lengths(void **state)
{
    struct alb_store store;
    struct alb_store_init init = {.path = shelf.path};
    assert_int_equal(alb_store_open(&store, &init), EINVAL); // of what length?
    init.length = 100;
    assert_int_equal(alb_store_open(&store, &init), 0);
    alb_store_close(&store, false);
    init.length = 50;
    assert_int_equal(alb_store_open(&store, &init), EINVAL);
    init.length = 0;
    assert_int_equal(alb_store_open(&store, &init), 0);
    assert_int_equal(store.length, 100);
    alb_store_close(&store, false);
    init.length = 200; // it may grow
    assert_int_equal(alb_store_open(&store, &init), 0);
    alb_store_close(&store, false);
    init.path = shelf.folder;
    assert_int_equal(alb_store_open(&store, &init), EISDIR);
    char nowhere[128];
    snprintf(nowhere, sizeof(nowhere), "%s/no/file", shelf.folder);
    init.path = nowhere;
    assert_int_equal(alb_store_open(&store, &init), ENOENT);
}

static void alb_store_open__a_lost_file_is_not_replaced_by_zeros(void **state)
{
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    shelf_crash(&shelf);
    assert_int_equal(truncate(shelf.path, 0), 0);
    assert_int_equal(shelf_open(&shelf, NULL), EBADMSG);
    assert_int_equal(shelf_open(&shelf, NULL), EBADMSG);
    assert_int_equal(unlink(shelf.path), 0);
    assert_int_equal(shelf_open(&shelf, NULL), EBADMSG);
    assert_int_equal(shelf_open(&shelf, NULL), EBADMSG);
}

// Nor is it lengthened before that is known: whoever is killed then leaves one that looks whole.
static void alb_store_open__a_lost_file_is_not_lengthened(void **state)
{
    struct rlimit before, limit;
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    shelf_crash(&shelf);
    assert_int_equal(truncate(shelf.path, 0), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = SHELF_REGION - 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0); // by which lengthening it would fail
    assert_int_equal(shelf_open(&shelf, NULL), EBADMSG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

// The program did not ask for a signal that ends it.
static void alb_store_open__leaves_no_file_where_there_is_no_room(void **state)
{
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = SHELF_REGION - 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(shelf_open(&shelf, NULL), EFBIG);
    assert_false(is_there(shelf.path));
    shelf_save(shelf.path, zeros, 100); // what was there stays
    assert_int_equal(shelf_open(&shelf, NULL), EFBIG);
    assert_true(is_there(shelf.path));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    shelf_crash(&shelf);
}

// The place where it would be written is taken.
static void alb_store_open__leaves_no_file_without_its_journal(void **state)
{
    char place[160];
    snprintf(place, sizeof(place), "%s.new", journal_path());
    assert_int_equal(mkdir(place, 0700), 0);
    assert_int_equal(shelf_open(&shelf, NULL), EISDIR);
    assert_false(is_there(shelf.path));
    assert_false(is_there(journal_path()));
    assert_int_equal(rmdir(place), 0);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(mkdir(place, 0700), 0);
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), EISDIR);
    assert_true(is_there(shelf.path));
    assert_true(is_there(journal_path()));
    assert_int_equal(rmdir(place), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(alb_store_open__keeps_the_keeper),
        TEST(alb_store_open__one_at_a_time),
        TEST(alb_store_open__a_program_has_a_lock_of_its_own),
        TEST(alb_store_open__leaves_small_descriptors_to_the_program),
        TEST(alb_store_open__a_symbolic_link_has_no_journal_of_its_own),
        TEST(alb_store_open__the_process_goes_elsewhere),
        TEST(alb_store_open__a_link_on_the_way_leads_elsewhere),
        TEST(alb_store_open__the_journal_is_for_those_that_the_file_is_for),
        TEST(alb_store_open__not_the_journal_of_another),
        TEST(alb_store_open__not_if_its_journal_is_a_region),
        TEST(alb_store_open__not_if_its_new_journal_is_a_region),
        TEST(alb_store_open__error_names_the_folder),
        TEST(alb_store_open__error_names_the_journal),
        TEST(alb_store_open__lengths),
        TEST(alb_store_open__a_lost_file_is_not_replaced_by_zeros),
        TEST(alb_store_open__a_lost_file_is_not_lengthened),
        TEST(alb_store_open__leaves_no_file_where_there_is_no_room),
        TEST(alb_store_open__leaves_no_file_without_its_journal),
    };
    return cmocka_run_group_tests_name("store_open", tests, NULL, NULL);
}
