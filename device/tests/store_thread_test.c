// SPDX-License-Identifier: BSD-2-Clause
// When the thread of a store tries again.
#include "device/tests/said.h"
#include "device/tests/shelf.h"

#include "base/log.h"
#include "device/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// The linker puts it before clock_gettime (--wrap): the time of day may be set while something waits.
static _Atomic int seconds_ahead;
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = __real_clock_gettime(clock, time);
    time->tv_sec += clock == CLOCK_REALTIME ? seconds_ahead : 0;
    return result;
}

// Likewise msync, which each attempt to write the journal anew begins with.
static _Atomic int attempts;
int __real_msync(void *address, size_t bytes, int flags);
int __wrap_msync(void *address, size_t bytes, int flags);

int __wrap_msync(void *address, size_t bytes, int flags)
{
    attempts++;
    return __real_msync(address, bytes, flags);
}

// The time of day is set back as soon as it waits.
static void store_thread__tries_a_broken_journal_again_by_the_monotonic_clock(void **state)
{
    static struct shelf shelf;
    static struct shelf_txn one;
    alb_log_set_level(ALB_LOG_ERROR);
    shelf_make(&shelf, "/dev/shm");
    shelf_fill(&one, 1, 1, 0, 100, 'a');
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(mkdir(shelf.store.journal.new_path, 0700), 0); // it cannot be written anew
    shelf.store.journal.is_broken = true;
    seconds_ahead = 60;
    attempts = 0;
    alb_time begun = alb_clock_now();
    shelf_submit(&shelf, &one, ALB_JOURNAL_PREPARE, 1);
    while (attempts < 3) // before the batch, behind it, and a second later
        usleep(1000);
    seconds_ahead = 0;
    assert_true(alb_clock_now() - begun < 30 * ALB_NS_PER_S);
    assert_int_equal(rmdir(shelf.store.journal.new_path), 0);
    shelf_wait(&shelf, 1);
    shelf_crash(&shelf);
    shelf_remove(&shelf);
}

// Moves the region with its journal, as a program that begins anew does beside one that has them open.
static void move_both(const struct shelf *shelf, const char *name)
{
    char from[128], to[128];
    snprintf(to, sizeof(to), "%s/%s", shelf->folder, name);
    assert_int_equal(rename(shelf->path, to), 0);
    snprintf(from, sizeof(from), "%s.journal", shelf->path);
    snprintf(to, sizeof(to), "%s/%s.journal", shelf->folder, name);
    assert_int_equal(rename(from, to), 0);
}

static void commit(struct shelf *shelf, struct shelf_txn *txn, uint64_t number, uint8_t byte)
{
    shelf_fill(txn, 1, number, 0, 500, byte);
    assert_int_equal(shelf_ask(shelf, txn, ALB_JOURNAL_PREPARE, number), 0);
    assert_int_equal(shelf_ask(shelf, txn, ALB_JOURNAL_COMMIT, number), 0);
}

// As after a crash of the machine, which had not written back what was committed.
static void expect_recovered(struct shelf *shelf, const char *name, uint8_t byte)
{
    static uint8_t zeros[SHELF_REGION];
    snprintf(shelf->path, sizeof(shelf->path), "%s/%s", shelf->folder, name);
    shelf_save(shelf->path, zeros, sizeof(zeros));
    assert_int_equal(shelf_open(shelf, NULL), 0);
    assert_int_equal(shelf->store.address[499], byte);
    shelf_crash(shelf);
}

// Each of two regions that were opened by one name has what it has committed; and neither has what the other has.
static void store_thread__a_name_that_another_region_has_got(void **state)
{
    static struct shelf old, new;
    static struct shelf_txn txns[20], of_new;
    char said_text[2048], path[128];
    struct said said;
    alb_log_set_level(ALB_LOG_ERROR);
    shelf_make(&old, "/dev/shm");
    assert_int_equal(shelf_open(&old, &(struct alb_store_init){.checkpoint_bytes = 2000}), 0);
    move_both(&old, "old");
    new = (struct shelf){.mutex = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER};
    memcpy(new.folder, old.folder, sizeof(new.folder));
    memcpy(new.path, old.path, sizeof(new.path));
    assert_int_equal(shelf_open(&new, NULL), 0);
    commit(&new, &of_new, 1, 'n');
    said_begin(&said);
    for (uint32_t i = 0; i < ALB_COUNT(txns); i++) { // it grows
        commit(&old, &txns[i], i + 1, (uint8_t)(i + 1));
        old.store.checkpoint_after = 0; // no second passes
    }
    said_end(&said, said_text, sizeof(said_text));
    assert_non_null(strstr(said_text, "moved, removed or replaced"));
    assert_null(strstr(strstr(said_text, "albedo: ") + 1, "albedo: ")); // once
    assert_true(old.store.journal.end > 20 * 500);
    alb_store_stop(&old.store);
    alb_store_close(&old.store, false);
    shelf_crash(&new);
    expect_recovered(&new, "region", 'n');
    expect_recovered(&old, "old", ALB_COUNT(txns));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/old%s", old.folder, i ? ".journal" : "");
        assert_int_equal(unlink(path), 0);
    }
    shelf_remove(&new);
}

// What is forgotten would stay in a journal that cannot be written anew, and be too much when it is read.
static void store_thread__forgets_nothing_where_the_name_is_anothers(void **state)
{
    static struct shelf shelf;
    static struct shelf_txn txn, after;
    struct alb_ledger_entry *entry;
    char path[128], kept[128];
    alb_log_set_level(ALB_LOG_ERROR);
    shelf_make(&shelf, "/dev/shm");
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    for (uint64_t i = 1; i <= ALB_LEDGER_MAX; i++) {
        assert_int_equal(alb_ledger_add(&shelf.store.ledger, &(struct alb_txn_id){1, i}, &entry), 0);
        alb_ledger_commit(&shelf.store.ledger, entry);
        entry->is_placed = true;
    }
    snprintf(path, sizeof(path), "%s.journal", shelf.path);
    snprintf(kept, sizeof(kept), "%s/kept", shelf.folder);
    assert_int_equal(rename(path, kept), 0);
    shelf_save(path, (const uint8_t *)"another", 7);
    shelf_fill(&txn, 1, ALB_LEDGER_MAX + 1, 0, 100, 'a');
    assert_int_equal(shelf_ask(&shelf, &txn, ALB_JOURNAL_PREPARE, 1), ENOSPC);
    assert_int_equal(rename(kept, path), 0);
    shelf_fill(&after, 1, ALB_LEDGER_MAX + 2, 0, 100, 'b');
    assert_int_equal(shelf_ask(&shelf, &after, ALB_JOURNAL_PREPARE, 1), 0);
    shelf_crash(&shelf);
    shelf_remove(&shelf);
}

// Both are gone, and a journal must not come back for whoever makes the file again.
static void store_close__leaves_no_journal_of_a_file_that_was_removed(void **state)
{
    static struct shelf shelf;
    char path[128];
    alb_log_set_level(ALB_LOG_ERROR);
    shelf_make(&shelf, "/dev/shm");
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    snprintf(path, sizeof(path), "%s.journal", shelf.path);
    assert_int_equal(unlink(shelf.path), 0);
    assert_int_equal(unlink(path), 0);
    alb_store_stop(&shelf.store);
    alb_store_close(&shelf.store, false);
    assert_int_not_equal(access(path, F_OK), 0);
    shelf_remove(&shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_thread__tries_a_broken_journal_again_by_the_monotonic_clock),
        cmocka_unit_test(store_thread__a_name_that_another_region_has_got),
        cmocka_unit_test(store_thread__forgets_nothing_where_the_name_is_anothers),
        cmocka_unit_test(store_close__leaves_no_journal_of_a_file_that_was_removed),
    };
    return cmocka_run_group_tests_name("store_thread", tests, NULL, NULL);
}
