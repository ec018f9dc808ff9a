// SPDX-License-Identifier: BSD-2-Clause
// A journal is written anew where names have been moved, removed and given to other files meanwhile.
#include "device/journal.h"

#include "base/tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], region[128], moved[128], other[128];
static struct alb_journal journal;
static struct alb_ledger ledger;
static void (*before_rename)(void);
static bool has_no_flags;

// The linker puts it before renameat2 (--wrap): what others do between the look and the renaming, and file systems that
// know no flags.
int __real_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags);
int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags);

int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    void (*act)(void) = before_rename;
    before_rename = NULL;
    if (act)
        act();
    if (has_no_flags) {
        errno = EINVAL;
        return -1;
    }
    return __real_renameat2(from_folder, from, to_folder, to, flags);
}

static int setup(void **state)
{
    before_rename = NULL;
    has_no_flags = false;
    snprintf(folder, sizeof(folder), "/dev/shm/albedo-checkpoint-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(region, sizeof(region), "%s/region", folder);
    snprintf(moved, sizeof(moved), "%s/moved", folder);
    snprintf(other, sizeof(other), "%s/other", folder);
    assert_int_equal(alb_ledger_init(&ledger), 0);
    assert_int_equal(alb_journal_init(&journal, region), 0);
    journal.region_fd = open(region, O_RDWR | O_CREAT, 0600);
    journal.header.region_bytes = 1000;
    journal.header.keeper = 11;
    assert_int_equal(alb_journal_checkpoint(&journal, &ledger), 0);
    return 0;
}

static int teardown(void **state)
{
    close(journal.region_fd);
    unlink(region);
    unlink(moved);
    unlink(other);
    unlink(journal.path);
    alb_journal_fini(&journal);
    alb_ledger_fini(&ledger);
    return rmdir(folder); // nothing else is left
}

static ino_t inode_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

static ino_t own_inode(void)
{
    struct stat status;
    assert_int_equal(fstat(journal.fd, &status), 0);
    return status.st_ino;
}

static void make(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void expect_replaced(void)
{
    ino_t before = own_inode();
    assert_int_equal(alb_journal_checkpoint(&journal, &ledger), 0);
    assert_int_not_equal(own_inode(), before);
    assert_int_equal(inode_of(journal.path), own_inode());
}

// What has the name stays there, and the journal as it is.
static void expect_nothing_replaced(void)
{
    ino_t before = own_inode();
    assert_int_equal(alb_journal_checkpoint(&journal, &ledger), ESTALE);
    assert_int_equal(own_inode(), before);
}

static void move_journal_away(void)
{
    assert_int_equal(rename(journal.path, moved), 0);
}

static void give_it_another(void)
{
    move_journal_away();
    assert_int_equal(link(other, journal.path), 0);
}

static void move_both_away(void)
{
    move_journal_away();
    assert_int_equal(rename(region, other), 0);
}

static void give_the_free_name_to_another(void)
{
    assert_int_equal(link(other, journal.path), 0);
}

static void move_region_away(void)
{
    assert_int_equal(rename(region, other), 0);
}

static void alb_journal_checkpoint__of_its_own_name(void **state)
{
    expect_replaced();
    has_no_flags = true;
    expect_replaced();
}

static void alb_journal_checkpoint__anothers_journal_is_left_alone(void **state)
{
    make(other);
    give_it_another();
    assert_int_equal(alb_journal_check_name(&journal), ESTALE);
    expect_nothing_replaced();
    assert_int_equal(inode_of(journal.path), inode_of(other));
}

static void alb_journal_checkpoint__not_even_if_it_comes_after_the_look(void **state)
{
    make(other);
    before_rename = give_it_another;
    expect_nothing_replaced();
    assert_int_equal(inode_of(journal.path), inode_of(other));
    assert_int_equal(inode_of(moved), own_inode());
}

// The region is in its place: it needs one.
static void alb_journal_checkpoint__one_that_was_removed_is_there_again(void **state)
{
    assert_int_equal(unlink(journal.path), 0);
    assert_int_equal(alb_journal_check_name(&journal), 0);
    expect_replaced();
    assert_int_equal(unlink(journal.path), 0);
    has_no_flags = true;
    expect_replaced();
}

// It may be on its way to where the region follows.
static void alb_journal_checkpoint__one_that_was_moved_is_not(void **state)
{
    move_journal_away();
    assert_int_equal(alb_journal_check_name(&journal), ESTALE);
    expect_nothing_replaced();
    assert_int_equal(inode_of(journal.path), 0);
    assert_int_equal(rename(moved, journal.path), 0);
    expect_replaced();
}

static void alb_journal_checkpoint__not_if_another_has_come_there_after_the_look(void **state)
{
    make(other);
    assert_int_equal(unlink(journal.path), 0);
    before_rename = give_the_free_name_to_another;
    expect_nothing_replaced();
    assert_int_equal(inode_of(journal.path), inode_of(other));
}

// Nobody else can have it meanwhile.
static void alb_journal_checkpoint__its_own_is_replaced_wherever_the_region_is(void **state)
{
    move_region_away();
    expect_replaced();
    make(region);
    expect_replaced();
}

// A new region by that name would find the transactions of the old one.
static void alb_journal_checkpoint__none_where_the_region_is_not(void **state)
{
    move_both_away();
    expect_nothing_replaced();
    assert_int_equal(inode_of(journal.path), 0);
}

static void alb_journal_checkpoint__none_where_the_region_is_not_since_the_look(void **state)
{
    before_rename = move_both_away;
    expect_nothing_replaced();
    assert_int_equal(inode_of(journal.path), 0);
    assert_int_equal(rename(other, region), 0);
    assert_int_equal(unlink(moved), 0);
    before_rename = move_region_away;
    expect_nothing_replaced();
    assert_null(before_rename);
    assert_int_equal(inode_of(journal.path), 0);
}

static void alb_journal_checkpoint__goes_on_when_they_are_put_back(void **state)
{
    move_both_away();
    expect_nothing_replaced();
    assert_int_equal(rename(other, region), 0);
    assert_int_equal(rename(moved, journal.path), 0);
    expect_replaced();
}

// It may be a durable region of its own, or what another process has in the making.
static void alb_journal_checkpoint__leaves_what_somebody_has_locked(void **state)
{
    int fd = open(journal.new_path, O_RDWR | O_CREAT, 0600);
    assert_int_equal(alb_file_lock(fd), 0);
    ino_t locked = inode_of(journal.new_path), before = own_inode();
    assert_int_equal(alb_journal_checkpoint(&journal, &ledger), EBUSY);
    assert_int_equal(inode_of(journal.new_path), locked);
    assert_int_equal(own_inode(), before);
    close(fd); // what an end of a process has left there is removed
    expect_replaced();
    assert_int_equal(inode_of(journal.new_path), 0);
}

// Said before anything is made: the third name is the longest.
static void alb_journal_init__a_name_that_leaves_no_room_for_the_others(void **state)
{
    struct alb_journal second;
    char path[400];
    for (int length = 243; length <= 244; length++) {
        snprintf(path, sizeof(path), "%s/%0*d", folder, length, 1);
        assert_int_equal(alb_journal_init(&second, path), length == 243 ? 0 : ENAMETOOLONG);
        if (length == 243)
            alb_journal_fini(&second);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(alb_journal_init__a_name_that_leaves_no_room_for_the_others),
        TEST(alb_journal_checkpoint__of_its_own_name),
        TEST(alb_journal_checkpoint__anothers_journal_is_left_alone),
        TEST(alb_journal_checkpoint__not_even_if_it_comes_after_the_look),
        TEST(alb_journal_checkpoint__one_that_was_removed_is_there_again),
        TEST(alb_journal_checkpoint__one_that_was_moved_is_not),
        TEST(alb_journal_checkpoint__not_if_another_has_come_there_after_the_look),
        TEST(alb_journal_checkpoint__its_own_is_replaced_wherever_the_region_is),
        TEST(alb_journal_checkpoint__none_where_the_region_is_not),
        TEST(alb_journal_checkpoint__none_where_the_region_is_not_since_the_look),
        TEST(alb_journal_checkpoint__goes_on_when_they_are_put_back),
        TEST(alb_journal_checkpoint__leaves_what_somebody_has_locked),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
