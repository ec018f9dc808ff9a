// SPDX-License-Identifier: BSD-2-Clause
// A store in a folder of its own.
#include "device/tests/shelf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void shelf_make(struct shelf *shelf, const char *parent)
{
    memset(shelf, 0, sizeof(*shelf));
    snprintf(shelf->folder, sizeof(shelf->folder), "%s/albedo-shelf-XXXXXX", parent);
    assert_non_null(mkdtemp(shelf->folder));
    snprintf(shelf->path, sizeof(shelf->path), "%s/region", shelf->folder);
    pthread_mutex_init(&shelf->mutex, NULL);
    pthread_cond_init(&shelf->answered, NULL);
}

void shelf_remove(struct shelf *shelf)
{
    static const char *const names[] = {"region", "region.journal", "region.journal.new"};
    char path[128];
    for (size_t i = 0; i < ALB_COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", shelf->folder, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(shelf->folder), 0);
}

static void expose(struct shelf *shelf, const struct alb_txn_id *id)
{
    for (uint32_t i = 0; i < shelf->txn_count; i++) {
        const struct shelf_txn *txn = shelf->txns[i];
        if (memcmp(&txn->id, id, sizeof(*id)) != 0)
            continue;
        for (uint32_t part = 0; part < txn->part_count; part++)
            memcpy(shelf->store.address + txn->parts[part].offset, txn->bytes[part], txn->parts[part].length);
    }
}

static void take_answers(void *context, struct alb_store_answer *answers, uint32_t count)
{
    struct shelf *shelf = context;
    pthread_mutex_lock(&shelf->mutex);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(shelf->answer_count < ALB_COUNT(shelf->answers));
        shelf->answers[shelf->answer_count++] = answers[i];
        answers[i].is_placed = answers[i].kind == ALB_JOURNAL_COMMIT && !answers[i].error && !shelf->places_nothing;
        if (answers[i].is_placed)
            expose(shelf, &answers[i].id);
    }
    pthread_mutex_unlock(&shelf->mutex);
    pthread_cond_broadcast(&shelf->answered);
}

int shelf_open(struct shelf *shelf, const struct alb_store_init *options)
{
    struct alb_store_init init = {.path = shelf->path, .length = SHELF_REGION};
    const struct alb_store_taker taker = {.context = shelf, .answers = take_answers};
    if (options) {
        init.path = options->path ? options->path : shelf->path;
        init.page_cache = options->page_cache;
        init.checkpoint_bytes = options->checkpoint_bytes;
    }
    shelf->answer_count = shelf->txn_count = 0;
    int error = alb_store_open(&shelf->store, &init);
    return error ? error : alb_store_start(&shelf->store, &taker);
}

void shelf_crash(struct shelf *shelf)
{
    alb_store_stop(&shelf->store);
    alb_store_close(&shelf->store, true);
}

void shelf_fill(struct shelf_txn *txn, uint64_t initiator, uint64_t number, uint64_t offset, uint32_t length,
                uint8_t byte)
{
    *txn = (struct shelf_txn){.id = {.initiator = initiator, .number = number}, .part_count = 1};
    memset(txn->bytes[0], byte, length);
    txn->parts[0] = (struct alb_txn_part){.offset = offset, .length = length, .bytes = txn->bytes[0]};
}

void shelf_submit(struct shelf *shelf, struct shelf_txn *txn, enum alb_journal_kind kind, uint64_t low_water)
{
    const struct alb_journal_request request = {
        .kind = kind,
        .store = &shelf->store,
        .id = txn->id,
        .digest = {.low = txn->id.number, .high = 7},
        .low_water = low_water,
        .lease_ns = 1000,
        .part_count = kind == ALB_JOURNAL_PREPARE ? txn->part_count : 0,
        .parts = kind == ALB_JOURNAL_PREPARE ? txn->parts : NULL,
    };
    if (kind == ALB_JOURNAL_PREPARE) {
        pthread_mutex_lock(&shelf->mutex);
        shelf->txns[shelf->txn_count++] = txn;
        pthread_mutex_unlock(&shelf->mutex);
    }
    assert_int_equal(alb_store_submit(&shelf->store, &request), 0);
}

void shelf_wait(struct shelf *shelf, uint32_t answers)
{
    pthread_mutex_lock(&shelf->mutex);
    while (shelf->answer_count < answers)
        pthread_cond_wait(&shelf->answered, &shelf->mutex);
    pthread_mutex_unlock(&shelf->mutex);
}

int shelf_ask(struct shelf *shelf, struct shelf_txn *txn, enum alb_journal_kind kind, uint64_t low_water)
{
    pthread_mutex_lock(&shelf->mutex);
    uint32_t before = shelf->answer_count;
    pthread_mutex_unlock(&shelf->mutex);
    shelf_submit(shelf, txn, kind, low_water);
    shelf_wait(shelf, before + 1);
    const struct alb_store_answer *answer = &shelf->answers[before];
    assert_memory_equal(&answer->id, &txn->id, sizeof(txn->id));
    assert_int_equal(answer->kind, kind);
    return answer->error;
}

uint8_t *shelf_load(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(1 << 20);
    assert_non_null(file);
    assert_non_null(bytes);
    *length = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

void shelf_save(const char *path, const uint8_t *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}
