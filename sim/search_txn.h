// SPDX-License-Identifier: BSD-2-Clause
// The world of a search for broken promises of reflection: two hosts, each initiator of transactions on the other's
// memory, over the network, limits and queue pairs of the other search (sim/search_world.h).
#pragma once

#include "base/corruption.h"
#include "engine/transaction.h"
#include "sim/model_txn.h"
#include "sim/search_store.h"
#include "sim/search_world.h"

enum {
    SEARCH_TXN_WORDS = 256,
    SEARCH_TXN_STRIDE = 64,
    SEARCH_TXN_SCRATCH_WORDS = 1 << 16, // of a side: what is written, and what READs bring; anew in every phase
    SEARCH_TXN_IN_FLIGHT = 16,
    SEARCH_TXN_ANSWERS = 8, // proposals that a program thinks about
};

enum alb_search_txn_kind {
    SEARCH_TXN_TRANSACTION,
    SEARCH_TXN_WRITE,
    SEARCH_TXN_READ,
    SEARCH_TXN_QUESTION,
};

// One request. Its place in the list is its wr_id.
struct alb_search_txn_work {
    enum alb_search_txn_kind kind;
    uint32_t side, index; // the queue pair, while it lives
    uint32_t life;        // of the target, when it was posted
    bool is_open;         // its completion is to come
    bool is_followed;     // its queue pair can be asked about it
    bool holds, has_decided;
    bool notifies;
    bool is_in_doubt;
    bool was_lost; // its program has ended: what the engine knew of it, it may have passed
    enum alb_level level;
    uint32_t op;    // of the model; of a question: of the transaction asked about
    uint32_t about; // question: which work
    uint64_t number;
    struct alb_txn_token token; // what the program has written down
    struct alb_model_txn_span span;
    uint32_t version;
    const uint64_t *read;
};

struct alb_search_txn_side {
    uint64_t *words;
    _Atomic uint64_t versions[SEARCH_TXN_WORDS * 8 / SEARCH_TXN_STRIDE];
    struct alb_region *mr;
    uint64_t iova;
    uint64_t *scratch;
    struct alb_region *scratch_mr;
    uint32_t scratch_used;
    struct alb_txn_id answers[SEARCH_TXN_ANSWERS];
    uint32_t answer_count;
    struct alb_corruption corruption;
    uint64_t corrupted[ALB_CORRUPT_PLACES];
    struct alb_search_store store; // durable
};

struct alb_search_txn {
    struct alb_search base;
    struct alb_model_txn model;
    struct alb_search_txn_side sides[ALB_MODEL_SIDES];
    struct alb_search_txn_work *works;
    uint32_t work_count, work_capacity;
    struct alb_search_txn_result *result;

    // Drawn from the seed.
    bool is_checked;   // the target's program is asked
    bool is_durable;   // both sides' memory: as asked for
    bool has_plain;    // plain WRITEs and READs of the same memory
    bool has_in_place; // transactions that are placed as they come
    bool has_corruption;
    bool has_renewals; // regions are deregistered and registered again
    struct alb_corruption_spec corruption;
};

static inline struct alb_qp *alb_search_txn_qp(const struct alb_search_txn *search, uint32_t side, uint32_t index)
{
    return search->base.sides[side].qps[index].qp;
}

static inline bool alb_search_txn_has_failed(const struct alb_search_txn *search)
{
    return search->model.failure[0] != 0;
}

// search_txn_world.c
void alb_search_txn_open(struct alb_search_txn *search, uint64_t seed);
void alb_search_txn_close(struct alb_search_txn *search);
// A side's memory as a program has it that begins: its region, and what READs bring.
void alb_search_txn_create_memory(struct alb_search_txn *search, uint32_t side);
void alb_search_txn_destroy_memory(struct alb_search_txn *search, uint32_t side);
// Registers its region, which search->sides[side].mr is from then on.
void alb_search_txn_create_region(struct alb_search_txn *search, uint32_t side);

// search_txn_work.c
// Posts something, if there is room for it.
void alb_search_txn_post(struct alb_search_txn *search, uint32_t side, uint32_t index);
// A plain WRITE of one word; false: no room.
bool alb_search_txn_write(struct alb_search_txn *search, uint32_t side, uint32_t index, uint32_t at);
// A transaction of one word that nothing speaks against but the target's program; false: no room.
bool alb_search_txn_write_agreed(struct alb_search_txn *search, uint32_t side, uint32_t index, uint32_t at);
// Asks about something that is in doubt; false: nothing is, or no side can be asked.
bool alb_search_txn_ask(struct alb_search_txn *search, uint32_t side, uint32_t index, bool only_doubts);
// Decides one on hold.
void alb_search_txn_decide(struct alb_search_txn *search, bool all);
// The target's program answers proposals.
void alb_search_txn_answer(struct alb_search_txn *search, uint32_t side, bool all);
// Receives for notifications.
void alb_search_txn_receive(struct alb_search_txn *search, uint32_t side, uint32_t index);

// search_txn_report.c
// Looks at all completions of a side; returns how many.
uint32_t alb_search_txn_poll(struct alb_search_txn *search, uint32_t side);
// The queue pair's program notes what it can still learn of its transactions, before it is reset.
// is_over: what is not decided now never will be.
void alb_search_txn_follow(struct alb_search_txn *search, uint32_t side, uint32_t index, bool is_over);
// A side's program ends: of what it has posted only tokens are left.
void alb_search_txn_lose(struct alb_search_txn *search, uint32_t side);
