// SPDX-License-Identifier: BSD-2-Clause
// When the thread of a store tries again.
#include "device/tests/shelf.h"

#include "base/log.h"
#include "device/clock.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_thread__tries_a_broken_journal_again_by_the_monotonic_clock),
    };
    return cmocka_run_group_tests_name("store_thread", tests, NULL, NULL);
}
