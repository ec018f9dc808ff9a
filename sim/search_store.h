// SPDX-License-Identifier: BSD-2-Clause
// A durable region's journal for the search: what device/store.h is to the engine, in virtual time and at random. It
// answers late, refuses to write, and when its side's program ends it has what was answered and any beginning of the
// rest. The region's memory has what was copied there, or, if the whole machine went down, any mixture of that and of
// what it was at the last checkpoint.
#pragma once

#include "engine/transaction.h"
#include "sim/event_queue.h"
#include "sim/model_txn.h"

struct alb_search_txn;

// In the order of the journal.
struct alb_search_store_record {
    struct alb_journal_request request; // its own parts, without regions
    struct alb_txn_part *parts;
    uint8_t *bytes;
    alb_sim_time due;
    bool is_void;     // an error was answered: it has never been written
    bool is_unplaced; // committed, and its region had gone
};

struct alb_search_store {
    struct alb_sim_event event; // the oldest request is answered
    struct alb_search_txn *search;
    uint32_t side;
    uint64_t keeper;
    bool is_open;
    bool is_bad;    // errors, and answers that take long
    bool is_spoilt; // what is committed does not stand in the region: only a replay brings it there
    struct alb_search_store_record *records;
    uint32_t count, capacity;
    uint32_t answered;     // of them
    uint32_t checkpointed; // the commits among the first ones are in the checkpoint
    uint64_t *checkpoint;  // the region's words then
};

void alb_search_store_init(struct alb_search_store *store, struct alb_search_txn *search, uint32_t side);
void alb_search_store_fini(struct alb_search_store *store);

// The region is registered, and has no transactions yet: its memory becomes what the journal says, and the engine hears
// what was committed and what is bound.
void alb_search_store_open(struct alb_search_store *store);
// The region has gone, as its program wished: what was asked for is answered, and the journal closed.
void alb_search_store_close(struct alb_search_store *store);
// True if the transaction's region had gone when it was committed: its end is not known until the next opening.
bool alb_search_store_was_unplaced(const struct alb_search_store *store, const struct alb_txn_id *id);
// Its program has ended, and with it perhaps the machine.
void alb_search_store_crash(struct alb_search_store *store);
// The engine has run.
void alb_search_store_look(struct alb_search_store *store);
