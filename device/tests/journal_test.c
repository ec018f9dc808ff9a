// SPDX-License-Identifier: BSD-2-Clause
// The journal file when writing, or making safe what was written, fails.
#include "device/journal.h"

#include "base/tests/test.h"
#include "device/journal_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], region[128];
static struct alb_journal journal;
static struct alb_ledger ledger;

static int setup(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/albedo-journal-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(region, sizeof(region), "%s/region", folder);
    assert_int_equal(alb_ledger_init(&ledger), 0);
    assert_int_equal(alb_journal_init(&journal, region), 0);
    journal.header.region_bytes = 1000;
    journal.header.keeper = 11;
    assert_int_equal(alb_journal_checkpoint(&journal, &ledger), 0);
    return 0;
}

static int teardown(void **state)
{
    unlink(journal.path);
    alb_journal_fini(&journal);
    alb_ledger_fini(&ledger);
    return rmdir(folder);
}

static int append(uint64_t number)
{
    static const uint8_t bytes[10] = "ten bytes";
    const struct alb_txn_part part = {.offset = 0, .length = sizeof(bytes), .bytes = bytes};
    const struct alb_journal_request request = {.part_count = 1, .parts = &part};
    struct alb_record record = {.kind = ALB_RECORD_PREPARE, .id = {.initiator = 1, .number = number}};
    uint64_t at;
    return alb_journal_append(&journal, &record, &request, 1, &at);
}

static uint32_t count_records(void)
{
    struct alb_journal_scan scan;
    struct alb_record record;
    const uint8_t *body;
    uint8_t *image;
    uint64_t image_bytes;
    uint32_t count = 0;
    assert_int_equal(alb_journal_read(&journal, &image, &image_bytes), 0);
    assert_true(alb_journal_scan_begin(&scan, image, image_bytes, journal.header.boot));
    assert_int_equal(scan.header.keeper, journal.header.keeper);
    while (alb_journal_scan_next(&scan, &record, &body) == ALB_SCAN_RECORD)
        count++;
    assert_int_equal(scan.at, image_bytes);
    free(image);
    return count;
}

static int open_again(void)
{
    if (journal.fd >= 0)
        close(journal.fd);
    journal.fd = -1;
    return alb_journal_open(&journal);
}

// A pipe in its place is not waited for, a link not followed.
static void alb_journal_open__a_file_and_nothing_else(void **state)
{
    assert_int_equal(open_again(), 0);
    unlink(journal.path);
    assert_int_equal(mkfifo(journal.path, 0600), 0);
    assert_int_equal(open_again(), EINVAL);
    unlink(journal.path);
    assert_int_equal(symlink("/etc/passwd", journal.path), 0);
    assert_int_equal(open_again(), ELOOP);
}

// Another user may write it, but for the one whose region it is, or root.
static void alb_journal_open__nobody_elses(void **state)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(journal.path, 1234, 0), 0);
    assert_int_equal(seteuid(4321), 0);
    int error = open_again();
    assert_int_equal(seteuid(0), 0);
    assert_true(error == EPERM || error == EACCES);
    assert_int_equal(open_again(), EPERM);
    journal.region_fd = open(region, O_RDWR | O_CREAT, 0600);
    assert_int_equal(open_again(), EPERM);
    assert_int_equal(fchown(journal.region_fd, 1234, 0), 0);
    assert_int_equal(open_again(), 0);
    close(journal.region_fd);
    unlink(region);
}

// Nothing of what another one is writing is read.
static void alb_journal_open__one_at_a_time(void **state)
{
    struct alb_journal second;
    assert_int_equal(alb_journal_init(&second, region), 0);
    assert_int_equal(alb_journal_open(&second), EBUSY);
    assert_int_equal(second.fd, -1);
    assert_int_equal(open_again(), 0);
    alb_journal_fini(&second);
}

static void alb_journal_append__a_failed_write_leaves_nothing(void **state)
{
    assert_int_equal(append(1), 0);
    int good = journal.fd;
    journal.fd = open(journal.path, O_RDONLY); // cannot be written, nor cut
    assert_int_equal(append(2), EBADF);
    close(journal.fd);
    journal.fd = good;
    assert_int_equal(count_records(), 1);
}

// A pipe cannot be made safe, and not cut either.
static void alb_journal_sync__uncertain_until_written_anew(void **state)
{
    int ends[2];
    assert_int_equal(append(1), 0);
    assert_int_equal(alb_journal_sync(&journal), 0);
    assert_int_equal(append(2), 0);
    assert_int_equal(pipe(ends), 0);
    int good = dup(journal.fd);
    assert_int_equal(dup2(ends[0], journal.fd), journal.fd);
    assert_int_not_equal(alb_journal_sync(&journal), 0);
    assert_true(journal.is_broken);
    assert_int_equal(append(3), EIO);
    assert_int_equal(alb_journal_sync(&journal), EIO);
    assert_int_equal(alb_journal_checkpoint(&journal, &ledger), 0);
    assert_false(journal.is_broken);
    assert_int_equal(count_records(), 0); // what was uncertain is certainly not there
    assert_int_equal(append(3), 0);
    assert_int_equal(alb_journal_sync(&journal), 0);
    assert_int_equal(count_records(), 1);
    close(good);
    close(ends[0]);
    close(ends[1]);
}

static void alb_journal_checkpoint__the_old_file_stays_on_an_error(void **state)
{
    assert_int_equal(append(1), 0);
    assert_int_equal(mkdir(journal.new_path, 0700), 0);
    assert_int_equal(alb_journal_checkpoint(&journal, &ledger), EISDIR);
    assert_int_equal(rmdir(journal.new_path), 0);
    assert_int_equal(count_records(), 1);
    assert_int_equal(append(2), 0);
    assert_int_equal(count_records(), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(alb_journal_open__a_file_and_nothing_else),
        TEST(alb_journal_open__nobody_elses),
        TEST(alb_journal_open__one_at_a_time),
        TEST(alb_journal_append__a_failed_write_leaves_nothing),
        TEST(alb_journal_sync__uncertain_until_written_anew),
        TEST(alb_journal_checkpoint__the_old_file_stays_on_an_error),
    };
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
