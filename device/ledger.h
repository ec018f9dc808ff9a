// SPDX-License-Identifier: BSD-2-Clause
// What the journal of a durable region still has to know, in memory: the transactions that are bound, the outcome of
// the committed ones until their initiator knows it (its low-water mark says so), and that mark of every initiator.
// What an initiator that is known has numbered at or above its mark, and is not here, was not committed; all else is
// unknown. So forgetting for lack of room may make an answer "unknown", never a wrong one.
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "engine/transaction.h"

#define ALB_LEDGER_MAX 8192u // transactions, and initiators: an engine has room for them by default

struct alb_ledger_entry {
    struct alb_list link;         // in the order in which they were bound, or committed
    struct alb_list of_initiator; // likewise
    struct alb_txn_id id;
    struct alb_digest digest;
    uint64_t lease_ns;
    uint64_t at; // of its PREPARE record in the journal
    uint32_t part_count;
    uint32_t condition_count;
    bool is_committed;
    bool is_placed; // the region has its bytes, though perhaps not on the disk yet; at means nothing any more
};

struct alb_ledger_initiator {
    struct alb_list entries;
    struct alb_list link; // while it has no entries: in the order in which the last one went
    uint64_t name;
    uint64_t low_water;
};

struct alb_ledger {
    struct alb_list entries;
    struct alb_list idle; // initiators without entries
    struct alb_map by_id;
    struct alb_map initiators;
    void *memory;
    uint32_t bound_count; // of the entries, those that are not committed
};

// ENOMEM.
int alb_ledger_init(struct alb_ledger *ledger);
void alb_ledger_fini(struct alb_ledger *ledger);

uint32_t alb_ledger_count(const struct alb_ledger *ledger);
struct alb_ledger_entry *alb_ledger_find(struct alb_ledger *ledger, const struct alb_txn_id *id);

// A new one, bound. EEXIST; ENOSPC: full; ENOMEM. For its initiator's sake an idle one may be forgotten.
int alb_ledger_add(struct alb_ledger *ledger, const struct alb_txn_id *id, struct alb_ledger_entry **entry);
// It is committed now: the youngest.
void alb_ledger_commit(struct alb_ledger *ledger, struct alb_ledger_entry *entry);
void alb_ledger_drop(struct alb_ledger *ledger, struct alb_ledger_entry *entry);

// The initiator knows what became of all that it numbered below: the committed ones of them are dropped. Those that
// are not placed stay, for the bytes' sake. Nothing happens if it is not known.
void alb_ledger_pass(struct alb_ledger *ledger, uint64_t initiator, uint64_t low_water);

// An initiator, known from now on. ENOSPC: full, and no initiator is idle; ENOMEM.
int alb_ledger_know(struct alb_ledger *ledger, uint64_t initiator, uint64_t low_water);
uint32_t alb_ledger_initiator_count(const struct alb_ledger *ledger);
const struct alb_ledger_initiator *alb_ledger_initiator_at(const struct alb_ledger *ledger, uint32_t index);

// Drops the older half of what is committed and placed; their initiators' marks move past them. The number of those.
uint32_t alb_ledger_forget(struct alb_ledger *ledger);
