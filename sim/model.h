// SPDX-License-Identifier: BSD-2-Clause
// What verbs promise, written down a second time and without knowledge of how the engine keeps it. The model hears what
// two hosts post and is shown what completes; it says when a completion, a byte or the lack of one breaks a promise:
//
// RC, XRC: requests execute in order and exactly once; each signalled one completes once, in order, with the status it
// must have, and none that is posted to a send queue that is drained is begun; after an error, which has a cause,
// everything is flushed in order; messages arrive in order, whole, in the receives in order. What a WRITE brings is
// stored when it completes, or when a message behind it does. Atomics of all queue pairs have one total order that
// agrees with each queue pair's. UC and UD: a message arrives whole and untouched, or not at all. No byte outside of
// what was asked for changes, ever. Where memory is registered with relaxed ordering, of several WRITEs to a byte any
// may be the last one to be stored; all else keeps its order.
//
// Time is divided into phases. Within one, the order of events is checked; at its end, when nothing is under way,
// memory is.
#pragma once

#include "engine/verbs.h"

enum {
    ALB_MODEL_SIDES = 2,
    ALB_MODEL_QPS_MAX = 6, // of a side
    ALB_MODEL_SGE_MAX = 4,
    ALB_MODEL_NAMED = 2, // shared receive queues of XRC, of a side
    ALB_MODEL_FORMER = 16,
    ALB_MODEL_WORDS = 4, // that atomics work on, of a side
};

// A stretch of a side's arena.
struct alb_model_span {
    uint32_t at, length;
};

enum alb_model_state {
    ALB_MODEL_OPEN,
    ALB_MODEL_DONE,
    ALB_MODEL_FAILED,    // completed with an error, or flushed
    ALB_MODEL_ABANDONED, // its queue was reset under it
};

struct alb_model_op {
    enum alb_wr_opcode opcode;
    bool is_signaled, is_fenced;
    uint32_t length, imm;
    struct alb_model_span local[ALB_MODEL_SGE_MAX];
    uint32_t local_count;
    uint32_t remote_at; // in the peer's arena; atomics: of the word
    uint64_t compare_add, swap;
    uint32_t invalidate;        // SEND_WITH_INV: the key that the peer's completion must name
    enum alb_wc_status fate;    // what it must end with, or SUCCESS
    enum alb_wc_status may_end; // what it may end with instead, or SUCCESS: its key may go under it
    bool is_undeliverable;      // UC, UD: wrong key, so that it never arrives
    uint32_t target;            // UD: the queue pair of the peer it goes to
    uint8_t *content;           // what is sent; of a READ what it must bring

    enum alb_model_state state;
    uint32_t life;       // of the queue pair, when it was posted
    bool is_executed;    // known to have taken effect
    uint32_t deliveries; // times it completed a receive
    uint64_t original;   // of an atomic that is done
};

struct alb_model_recv {
    struct alb_model_span local[ALB_MODEL_SGE_MAX];
    uint32_t local_count;
    uint32_t length;
    enum alb_model_state state;
};

// Receives in the order they were posted in.
struct alb_model_recvs {
    struct alb_model_recv *all;
    uint32_t count, capacity;
    uint32_t open; // not completed
    uint32_t length_min;
};

struct alb_model_qp {
    uint32_t side, index;
    enum alb_qp_type type;
    alb_qpn number;
    alb_qpn former_numbers[ALB_MODEL_FORMER]; // before its side began anew, the last ones
    uint32_t former_count;
    uint8_t rnr_retry;
    bool may_fail;   // its peer is gone or in error, so retries may be exceeded
    bool has_failed; // a request ended with an error or was flushed
    bool may_break;  // its program or a receive that failed may have put it into error
    uint32_t life;   // how often it has begun anew
    struct alb_model_op *ops;
    uint32_t count, capacity;
    uint32_t first_open;
    uint32_t held_from;     // while its send queue is drained (SQD), what it may not begin; else none
    uint32_t next_delivery; // RC, UC: the op that may complete a receive next, or one before it
    struct alb_model_recvs recvs;
    struct alb_model_recvs *used; // recvs, or the side's shared ones, or those that XRC names
    struct alb_model_span slice;  // of the peer's arena: where its WRITEs go
    uint8_t *base;                // the slice with what is known to be executed
    uint8_t *view;                // the slice with all that was posted
};

struct alb_model_memory {
    uint8_t *actual;   // the arena
    uint8_t *expected; // what it must hold where nothing is under way
    uint8_t *loose;    // how many requests under way may change that byte
    uint32_t bytes;
    uint32_t words_at;
};

struct alb_model {
    struct alb_model_memory memory[ALB_MODEL_SIDES];
    struct alb_model_qp qps[ALB_MODEL_SIDES][ALB_MODEL_QPS_MAX];
    uint32_t qp_count; // of each side; number i of one side is connected to number i of the other
    struct alb_model_recvs shared[ALB_MODEL_SIDES];
    struct alb_model_recvs named[ALB_MODEL_SIDES][ALB_MODEL_NAMED]; // by the rest of a queue pair's index
    bool is_relaxed;     // memory is registered so that what is stored in it keeps no order
    bool has_restarted;  // a side has begun anew: a queue pair may have a number that another one had
    bool may_duplicate;  // the network may double or reorder packets
    bool may_lose_much;  // the network may lose so much that retries are exceeded
    char failure[256];   // the first broken promise; empty: none
    const char *promise; // which one: its sentence without numbers
};

// Arenas of so many bytes each are the caller's, already filled.
void alb_model_init(struct alb_model *model, uint8_t *const arena[ALB_MODEL_SIDES], uint32_t arena_bytes);
void alb_model_fini(struct alb_model *model);
// Declares where atomics work on a side.
void alb_model_set_words(struct alb_model *model, uint32_t side, uint32_t at);
// Declares a queue pair and where in the peer's arena its WRITEs go.
void alb_model_add_qp(struct alb_model *model, uint32_t side, uint32_t index, enum alb_qp_type type, bool is_shared,
                      struct alb_model_span slice);

// Before a request is posted: returns its number in the queue pair's phase. Then alb_model_posted or, if
// the post is refused, alb_model_unpost.
uint32_t alb_model_post(struct alb_model *model, struct alb_model_qp *qp, const struct alb_model_op *op);
void alb_model_unpost(struct alb_model *model, struct alb_model_qp *qp);
// After it was posted.
void alb_model_posted(struct alb_model_qp *qp);
uint32_t alb_model_post_recv(struct alb_model *model, struct alb_model_recvs *recvs, uint32_t side,
                             const struct alb_model_recv *recv);
void alb_model_unpost_recv(struct alb_model *model, struct alb_model_recvs *recvs, uint32_t side);

// A completion, of request or receive number. is_error: the queue pair is in the error state (or SQE).
void alb_model_on_send(struct alb_model *model, struct alb_model_qp *qp, uint32_t number, const struct alb_wc *wc,
                       bool is_error);
void alb_model_on_recv(struct alb_model *model, struct alb_model_qp *qp, uint32_t number, const struct alb_wc *wc,
                       bool is_error);
// Its program drains its send queue: what is posted from now on waits. Or lets it go on.
void alb_model_on_drain(struct alb_model_qp *qp, bool is_drained);
// Its program puts it into error.
void alb_model_on_break(struct alb_model_qp *qp);
// It is in error, and all its completions have been shown: something must have put it there.
void alb_model_check_broken(struct alb_model *model, const struct alb_model_qp *qp);
// The queue pair was reset or destroyed, after all its completions had been shown: what is open will never complete.
void alb_model_on_reset(struct alb_model *model, struct alb_model_qp *qp);

// A side begins anew after all its queue pairs were reset: receives that were posted elsewhere than to one of them will
// never complete either.
void alb_model_on_restart(struct alb_model *model, uint32_t side);

// Number index of both sides was reset and begins anew, while packets of its former life may still be under way: they
// may have no effect any more. RC only: UC knows no better than to take them for new ones.
void alb_model_on_new_life(struct alb_model *model, uint32_t index);

// Requests of it that may still complete.
uint32_t alb_model_open(const struct alb_model_qp *qp);
// True if the peer needs a receive for what this queue pair has posted.
bool alb_model_wants_receive(const struct alb_model_qp *qp);

// Nothing is under way any more. Checks that all that had to complete has completed and that memory is right, and
// begins a new phase. What is still posted to receive stays so.
void alb_model_end_phase(struct alb_model *model);

void alb_model_fail(struct alb_model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Of model_memory.c.
// Zeroed; there is some. free gives it back.
void *alb_model_get(size_t bytes);
void alb_model_loosen(struct alb_model_memory *memory, const struct alb_model_span *spans, uint32_t count, int by);
// What the spans hold is what they must hold from now on.
void alb_model_adopt(struct alb_model_memory *memory, const struct alb_model_span *spans, uint32_t count);
// Copies length bytes out of the spans of an arena.
void alb_model_gather(const uint8_t *arena, const struct alb_model_span *spans, uint32_t count, uint8_t *to,
                      uint32_t length);
// The request has been reported as done, here or there: what it writes is stored.
void alb_model_check_stored(struct alb_model *model, const struct alb_model_qp *qp, uint32_t number);
void alb_model_check_slice(struct alb_model *model, struct alb_model_qp *qp);
void alb_model_check_words(struct alb_model *model, uint32_t side);
void alb_model_check_arena(struct alb_model *model, uint32_t side);
static inline struct alb_model_qp *alb_model_peer(struct alb_model *model, const struct alb_model_qp *qp)
{
    return &model->qps[1 - qp->side][qp->index];
}
// Of model.c: whether anything may have put the queue pair into error.
bool alb_model_has_cause(const struct alb_model *model, const struct alb_model_qp *qp);
static inline bool alb_model_is_xrc(enum alb_qp_type type)
{
    return type == ALB_QPT_XRC_SEND || type == ALB_QPT_XRC_RECV;
}
static inline bool alb_model_is_reliable(enum alb_qp_type type)
{
    return type == ALB_QPT_RC || alb_model_is_xrc(type);
}
static inline bool alb_model_is_atomic(enum alb_wr_opcode opcode)
{
    return opcode == ALB_WR_ATOMIC_CMP_AND_SWP || opcode == ALB_WR_ATOMIC_FETCH_AND_ADD;
}
static inline bool alb_model_is_write(enum alb_wr_opcode opcode)
{
    return opcode == ALB_WR_RDMA_WRITE || opcode == ALB_WR_RDMA_WRITE_WITH_IMM || opcode == ALB_WR_ATOMIC_WRITE;
}
static inline bool alb_model_takes_receive(enum alb_wr_opcode opcode)
{
    return opcode == ALB_WR_SEND || opcode == ALB_WR_SEND_WITH_IMM || opcode == ALB_WR_SEND_WITH_INV ||
           opcode == ALB_WR_RDMA_WRITE_WITH_IMM;
}
