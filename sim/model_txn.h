// SPDX-License-Identifier: BSD-2-Clause
// What reflection promises, written down a second time and without knowledge of how the engine keeps it. Each side has
// memory that transactions of the other one write to, in words of 64 bits; every word that is ever written says which
// operation wrote it and where it belongs, so that memory itself tells what has become visible. The model is shown
// memory after every event, and every report; it says when one of these is broken:
//
// A transaction becomes visible whole, in one moment, once, in the life of the target it was meant for, and only if its
// program had not kept the decision to itself. What it compared holds in that moment. Nothing is refused without a
// cause for the reason that is given. What was reported as committed is visible before, what was reported as aborted
// never is, before or after, whichever side reports it. A READ sees memory as it was in one moment between its post and
// its completion.
//
// Of a durable side's memory a recovery brings back what the last transaction wrote, or any plain WRITE after it: what
// is written beside transactions may be lost.
#pragma once

#include "engine/transaction.h"

enum {
    ALB_MODEL_TXN_SIDES = 2,
    ALB_MODEL_TXN_SPANS_MAX = 4,
    ALB_MODEL_TXN_COMPARES_MAX = 2,
    ALB_MODEL_TXN_FRESH_MAX = 64,
};

// Words of a side's memory.
struct alb_model_txn_span {
    uint32_t at, count;
};

struct alb_model_txn_compare {
    uint32_t at;
    uint64_t expected;
};

enum alb_model_txn_fate {
    ALB_MODEL_TXN_OPEN, // not reported, or unknown
    ALB_MODEL_TXN_COMMITTED,
    ALB_MODEL_TXN_ABORTED,
};

struct alb_model_txn_op {
    uint32_t target;  // whose memory
    bool is_in_place; // readers are held out while it stands there undecided
    bool is_plain;    // a WRITE of one word: it may be gone again in the moment in which it came
    bool may_commit;  // false as long as its program keeps the decision to itself
    struct alb_model_txn_span spans[ALB_MODEL_TXN_SPANS_MAX];
    uint32_t span_count;
    struct alb_model_txn_compare compares[ALB_MODEL_TXN_COMPARES_MAX];
    uint32_t compare_count;

    uint32_t life;        // of the target, when it was posted
    uint32_t recoveries;  // of the target's memory, then
    uint32_t visible_at;  // version of memory
    uint64_t seen_before; // at the first word, then
    uint32_t posted_at;   // version of that memory, then
    enum alb_model_txn_fate fate;
    bool is_visible;
    bool is_unseen; // reported as committed between two looks: a recovery may bring it, or the end of what conceals it
    bool was_read;  // by a READ, between two looks
    bool was_under; // visible when what concealed a word went: there since an unknown moment, perhaps, before that came
    bool agreed[ALB_MODEL_TXN_COMPARES_MAX]; // what it compared held while it stood behind others
    bool was_behind; // when its target's life ended: all there, and others held readers out of each word
    uint32_t notifications;
};

// A word that changed, in the order of time. Those of one moment have one version.
struct alb_model_txn_change {
    uint32_t version, at;
    uint64_t before, after;
};

// The last transaction of a word: since which version of memory, and what it wrote there (0: one of several that became
// visible in one moment).
struct alb_model_txn_base {
    uint32_t version;
    uint64_t word;
};

// A word that an operation wrote while readers were held out of it, though it could be read elsewhere: what had stood
// there for readers. Operations that could be read nowhere yet may have been there in between.
struct alb_model_txn_cover {
    uint64_t word, beneath;
    uint32_t count; // of operations that had been posted
};

struct alb_model_txn_memory {
    uint64_t *words; // of the target
    uint64_t *seen;  // what a reader has seen there last
    bool *concealed; // at the last look
    struct alb_model_txn_base *bases;
    struct alb_model_txn_cover *covers;
    uint32_t recoveries, recovered_at; // how many, and the version since the last one
    uint64_t gone_back;                // words that were older after them
    uint32_t life;
    uint32_t version;
    struct alb_model_txn_change *changes;
    uint32_t change_count, change_capacity;
    bool is_spoilt; // the target has said so: what stands there is not looked at in this life
};

struct alb_model_txn {
    struct alb_model_txn_memory memory[ALB_MODEL_TXN_SIDES];
    uint32_t word_count; // of each side
    // True if readers of that word are held out.
    bool (*is_held)(void *context, uint32_t side, uint32_t at);
    void *context;
    uint32_t held_words;          // that readers are held out of together
    bool is_durable;              // memory outlives its side's program
    bool has_corruption;          // bytes change by themselves, and nothing is placed before it is decided
    bool is_checked;              // the target's program is asked, and may refuse
    struct alb_model_txn_op *ops; // by number; 0 is the memory's first content
    uint32_t count, capacity;
    char failure[256]; // the first broken promise; empty: none
};

// words are the caller's; the model fills them.
void alb_model_txn_init(struct alb_model_txn *model, uint64_t *const words[ALB_MODEL_TXN_SIDES], uint32_t word_count,
                        bool (*is_held)(void *context, uint32_t side, uint32_t at), void *context);
void alb_model_txn_fini(struct alb_model_txn *model);
void alb_model_txn_fail(struct alb_model_txn *model, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The side's program is about to end: what was committed behind others is never seen, and may still be reported.
void alb_model_txn_end_life(struct alb_model_txn *model, uint32_t side);
// The side's program has ended, and begins anew with memory that is filled again; if it is durable it is looked at next
// when it is what it will be.
void alb_model_txn_begin_life(struct alb_model_txn *model, uint32_t side);

// The side's memory is durable, and has been brought back: words may have gone back as far as they may.
void alb_model_txn_recover(struct alb_model_txn *model, uint32_t side);

// Before it is posted; its number.
uint32_t alb_model_txn_post(struct alb_model_txn *model, const struct alb_model_txn_op *op);
// What operation number writes to that word.
uint64_t alb_model_txn_word(uint32_t number, uint32_t at);

// Something may have happened at that side.
void alb_model_txn_observe(struct alb_model_txn *model, uint32_t side);
// It was reported so.
void alb_model_txn_committed(struct alb_model_txn *model, uint32_t number);
void alb_model_txn_aborted(struct alb_model_txn *model, uint32_t number);
// Likewise, for that reason: a word that it compared, bytes that change by themselves, a program that is asked.
void alb_model_txn_refused(struct alb_model_txn *model, uint32_t number, enum alb_txn_reason reason);
void alb_model_txn_notified(struct alb_model_txn *model, uint32_t side, uint32_t number);
// It was reported as corrupt.
void alb_model_txn_spoilt(struct alb_model_txn *model, uint32_t number);
// A READ of what the side's memory was since version said so.
void alb_model_txn_read(struct alb_model_txn *model, uint32_t side, uint32_t version, struct alb_model_txn_span span,
                        const uint64_t *words);
