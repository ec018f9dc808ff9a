// SPDX-License-Identifier: BSD-2-Clause
// Journals whose records are sound, and which no store has written.
#include "device/tests/shelf.h"

#include "base/log.h"
#include "device/journal_record.h"
#include "device/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct shelf shelf;
static uint8_t zeros[SHELF_REGION];

static int setup(void **state)
{
    alb_log_set_level(ALB_LOG_ERROR);
    shelf_make(&shelf, "/dev/shm");
    shelf_save(shelf.path, zeros, sizeof(zeros));
    return 0;
}

static int teardown(void **state)
{
    shelf_remove(&shelf);
    return 0;
}

// A journal of so many outcomes, then of so many marks, each of another initiator; or the outcomes are of one, which
// with the last one has passed all others.
static void save(uint32_t outcomes, uint32_t marks, bool is_one)
{
    char path[128];
    const struct alb_journal_header header = {.keeper = 7, .region_bytes = SHELF_REGION};
    size_t bytes = ALB_JOURNAL_HEADER_BYTES + (size_t)(outcomes + marks) * ALB_JOURNAL_RECORD_BYTES;
    uint8_t *image = malloc(bytes), *next = image + ALB_JOURNAL_HEADER_BYTES;
    assert_non_null(image);
    alb_journal_header_encode(&header, image);
    for (uint32_t i = 1; i <= outcomes + marks; i++) {
        const struct alb_record record = {
            .length = ALB_JOURNAL_RECORD_BYTES,
            .sequence = i,
            .kind = i <= outcomes ? ALB_RECORD_OUTCOME : ALB_RECORD_MARK,
            .id = {.initiator = is_one ? 1 : i, .number = is_one ? i : i <= outcomes},
            .low_water = is_one && i == outcomes ? i : 0,
            .body = alb_digest_of("", 0),
        };
        alb_record_encode(&record, header.keeper, next);
        next += ALB_JOURNAL_RECORD_BYTES;
    }
    snprintf(path, sizeof(path), "%s.journal", shelf.path);
    shelf_save(path, image, bytes);
    free(image);
}

static void save_journal(uint32_t outcomes, uint32_t marks)
{
    save(outcomes, marks, false);
}

static void alb_store_recover__as_much_as_there_is_room_for(void **state)
{
    save_journal(ALB_LEDGER_MAX, 0);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(alb_ledger_count(&shelf.store.ledger), ALB_LEDGER_MAX);
    shelf_crash(&shelf);
}

static void alb_store_recover__one_transaction_too_many(void **state)
{
    save_journal(ALB_LEDGER_MAX + 1, 0);
    assert_int_equal(shelf_open(&shelf, NULL), EBADMSG);
}

static void alb_store_recover__one_initiator_too_many(void **state)
{
    save_journal(ALB_LEDGER_MAX, 1);
    assert_int_equal(shelf_open(&shelf, NULL), EBADMSG);
}

// What an initiator has passed makes room for what it asks for with that, as it did when that was written.
static void alb_store_recover__one_more_behind_what_was_passed(void **state)
{
    save(ALB_LEDGER_MAX + 1, 0, true);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(alb_ledger_count(&shelf.store.ledger), 1);
    shelf_crash(&shelf);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(alb_store_recover__as_much_as_there_is_room_for),
        TEST(alb_store_recover__one_transaction_too_many),
        TEST(alb_store_recover__one_initiator_too_many),
        TEST(alb_store_recover__one_more_behind_what_was_passed),
    };
    return cmocka_run_group_tests_name("store_recover", tests, NULL, NULL);
}
