// SPDX-License-Identifier: BSD-2-Clause
// A store in a folder of its own, with a taker that does what an engine does: it copies what is committed.
#pragma once

#include "device/store.h"

#include "base/tests/test.h"

#define SHELF_REGION 4096

// One transaction of one or two parts.
struct shelf_txn {
    struct alb_txn_id id;
    uint32_t part_count;
    struct alb_txn_part parts[2];
    uint8_t bytes[2][512];
};

struct shelf {
    char folder[64];
    char path[96];
    struct alb_store store;
    pthread_mutex_t mutex;
    pthread_cond_t answered;
    struct alb_store_answer answers[1024];
    uint32_t answer_count;
    struct shelf_txn *txns[1024]; // that were prepared, for the copy at their commit
    uint32_t txn_count;
    bool places_nothing; // of what is committed: its region has gone meanwhile
};

// parent: where the folder is made.
void shelf_make(struct shelf *shelf, const char *parent);
// Removes everything.
void shelf_remove(struct shelf *shelf);

// Opens and starts it. An errno.
int shelf_open(struct shelf *shelf, const struct alb_store_init *options);
// As the end of a process would: the journal stays as it is.
void shelf_crash(struct shelf *shelf);

void shelf_fill(struct shelf_txn *txn, uint64_t initiator, uint64_t number, uint64_t offset, uint32_t length,
                uint8_t byte);
// Submits and waits for the answer. Its error.
int shelf_ask(struct shelf *shelf, struct shelf_txn *txn, enum alb_journal_kind kind, uint64_t low_water);
// Submits only.
void shelf_submit(struct shelf *shelf, struct shelf_txn *txn, enum alb_journal_kind kind, uint64_t low_water);
void shelf_wait(struct shelf *shelf, uint32_t answers);

// Files in memory, so that a test can go back to them.
uint8_t *shelf_load(const char *path, size_t *length);
void shelf_save(const char *path, const uint8_t *bytes, size_t length);
