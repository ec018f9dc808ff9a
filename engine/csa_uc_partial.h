// SPDX-License-Identifier: BSD-2-Clause
// Messages of partial completion on UC over CSA (engine/partial.h): what is kept of each, at its sender and at its
// receiver. A message is found by its number; it is forgotten when a newer one needs its place.
#pragma once

#include "base/types.h"
#include "wire/csa.h"
#include "wire/drop.h"

struct alb_csa_uc;
struct alb_send_wqe;

enum alb_partial_side {
    ALB_PARTIAL_SENDING,
    ALB_PARTIAL_RECEIVING,
    ALB_PARTIAL_SIDES,
};

struct alb_csa_partial {
    uint32_t number; // 0: the place is free
    uint8_t op;
    bool is_complete;
    bool is_due; // sender: a question; receiver: what it holds
    bool is_solicited;
    bool is_incoming;
    uint32_t due_first; // segment from which on that is to be said
    uint32_t total_bytes;
    uint32_t segment_bytes;
    uint32_t packets;
    uint32_t held_count;
    uint32_t rkey;
    uint32_t imm_be;
    uint64_t va;
    alb_psn first;
    uint64_t *held;   // bit i: segment i has come, or the peer has said so
    uint64_t cleared; // bit i: so are the bits of the i-th part (ALB_CSA_UC_PART); those of others are undefined
    uint64_t own;     // where one word is enough
};

struct alb_csa_partials {
    uint32_t capacity; // of each side, a power of two
    uint32_t newest[ALB_PARTIAL_SIDES];
    uint32_t due_count;
    struct alb_csa_partial *places[ALB_PARTIAL_SIDES];
};

// Sets uc->partials, which is NULL before, to places for capacity messages of each side: a power of two, at least 1. 0,
// or ENOMEM and nothing has changed.
int alb_csa_partials_create(struct alb_csa_uc *uc, uint32_t capacity);
// With what is kept of messages; uc->partials is NULL again. Harmless if it is. The queue pair's end does it.
void alb_csa_partials_destroy(struct alb_csa_uc *uc);
// Forgets every message.
void alb_csa_partials_clear(struct alb_csa_uc *uc);
// That message, or with 0 the newest one; NULL: forgotten, or never seen.
struct alb_csa_partial *alb_csa_partial_find(const struct alb_csa_uc *uc, enum alb_partial_side side, uint32_t number);
// From now on none of its bits are undefined.
void alb_csa_partial_clear(struct alb_csa_partial *partial);

// ---- the sender -----------------------------------------------------------------------------------------------------

// The request begins, and its segments would have so many bytes; returns how many they have.
uint32_t alb_csa_partial_open(struct alb_csa_uc *uc, const struct alb_send_wqe *wqe, uint32_t segment_bytes);
// The first segment from that one on that is to be sent; wqe->packets: there is none.
uint32_t alb_csa_partial_skip(const struct alb_csa_uc *uc, const struct alb_send_wqe *wqe, uint32_t from);
// Sets what the segment at index says of its message.
void alb_csa_partial_describe(const struct alb_csa_uc *uc, const struct alb_send_wqe *wqe, uint32_t index,
                              struct alb_csa_segment *segment);
// The peer has said what it holds.
enum alb_drop alb_csa_partial_heard(struct alb_csa_uc *uc, const struct alb_csa_holds *holds);

// ---- the receiver ---------------------------------------------------------------------------------------------------

enum alb_drop alb_csa_partial_take(struct alb_csa_uc *uc, const struct alb_csa_segment *segment, alb_time now);

// ---- both: what is to be said ---------------------------------------------------------------------------------------

// The next frame, for a packet. False: there is none.
bool alb_csa_partial_next_due(struct alb_csa_uc *uc, struct alb_csa_holds *holds);
// That one leaves.
void alb_csa_partial_said(struct alb_csa_uc *uc, const struct alb_csa_holds *holds);
// Something of that message is to be said.
void alb_csa_partial_owe(struct alb_csa_uc *uc, struct alb_csa_partial *partial);
