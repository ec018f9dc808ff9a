// SPDX-License-Identifier: BSD-2-Clause
// What the verbs layer does with messages that come in: access checks, placement, atomics, receives. Delivery layers
// call it with messages and offsets, never with packets.
#pragma once

#include "engine/qp.h"
#include "wire/aeth.h"

enum alb_outcome {
    ALB_OUTCOME_OK,
    ALB_OUTCOME_RNR,             // not now: no receive posted, or the memory is bound by a transaction
    ALB_OUTCOME_INVALID_REQUEST, // what is asked is never allowed here
    ALB_OUTCOME_ACCESS,          // the key, the bounds or the rights are wrong
    ALB_OUTCOME_OPERATIONAL,     // our own receive is broken
    ALB_OUTCOME_TOO_LONG,        // longer than the receive posted
    ALB_OUTCOME_TOO_LARGE,       // a READ that needs more memory of ours than there may ever be
    ALB_OUTCOME_TOO_NARROW,      // an answer that gets through to the peer no more
    ALB_OUTCOME_FORGOTTEN,       // an answer that was kept for the peer as long as nobody else needed the memory
};

// What follows from an outcome that ends the connection: what is sent to the peer, counted, raised and logged.
struct alb_refusal {
    enum alb_nak nak;
    enum alb_stat stat;
    enum alb_event_type event;
    enum alb_wc_status status;
    enum alb_drop drop; // what its packet counts as
    const char *reason;
};
const struct alb_refusal *alb_inbound_refusal(enum alb_outcome outcome);

// Where the bytes of one message go.
enum alb_target_kind {
    ALB_TARGET_NONE,
    ALB_TARGET_RECEIVE, // the receive that the queue pair has taken
    ALB_TARGET_REGION,  // (rkey, va, length)
    ALB_TARGET_STAGE,   // the engine's own memory, or what it has claimed
    ALB_TARGET_CONTROL, // the engine's own memory; what is said about payload, and no payload
    ALB_TARGET_DISCARD, // nowhere
};

struct alb_target {
    enum alb_target_kind kind;
    uint32_t rkey;
    uint64_t va;
    uint64_t length; // REGION, STAGE, CONTROL: of the whole message
    uint8_t *stage;  // STAGE, CONTROL
};

// A SEND begins: takes a receive. RNR if there is none.
enum alb_outcome alb_inbound_send(struct alb_qp *qp, struct alb_target *target);
// A WRITE begins: checks the whole range. RNR while any of it is claimed by a transaction.
enum alb_outcome alb_inbound_write(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length,
                                   struct alb_target *target);

// Puts length bytes at offset of the target's message. This is the one place where payload reaches the program's
// memory. Keys are checked each time, so that memory deregistered in the middle of a message is not touched; RNR, and
// nothing is placed, if the range is claimed by a transaction meanwhile. The last bytes are stored last, and an aligned
// 8-byte unit never tears (docs/ARCHITECTURE.md, "Order").
enum alb_outcome alb_place(struct alb_qp *qp, const struct alb_target *target, uint64_t offset, const uint8_t *bytes,
                           uint32_t length);

// Memory for pieces of a message that are stored one behind the other, without another look at keys.
struct alb_room {
    uint8_t *at;
    uint64_t left; // bytes
};

// The same in two steps, for pieces that come at once: room from that offset on, for the rest of the message, or of a
// receive's entry. False, and nothing is begun, where there is something that alb_place must see to each time.
bool alb_place_begin(struct alb_qp *qp, const struct alb_target *target, uint64_t offset, struct alb_room *room);
// A piece, no longer than what is left.
void alb_place_next(const struct alb_engine *engine, struct alb_room *room, const uint8_t *bytes, uint32_t length);

// The same before the message's turn has come, where the program has allowed that for the memory
// (ALB_ACCESS_RELAXED_ORDERING): length bytes at offset of a WRITE to that target, or of a SEND of total bytes that
// will take the receive behind so many others. False if that may not be, or not be known: then nothing counts as
// placed. What is wrong with the message is for its turn to say.
bool alb_place_early_in_region(struct alb_qp *qp, const struct alb_target *target, uint64_t offset,
                               const uint8_t *bytes, uint32_t length);
bool alb_place_early_in_receive(struct alb_qp *qp, uint32_t behind, uint64_t total, uint64_t offset,
                                const uint8_t *bytes, uint32_t length);

// A READ begins: the memory that it answers from. *transactional: the region, where the answer must be of one version,
// the one that stands there as soon as readers are not held out of any of it; else NULL. INVALID_REQUEST: the queue
// pair takes no READs; ACCESS.
enum alb_outcome alb_inbound_begin_read(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length,
                                        const uint8_t **bytes, struct alb_region **transactional);
// The same for a piece of its answer, whatever the region. Outcomes as above.
enum alb_outcome alb_inbound_read(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length,
                                  const uint8_t **bytes);

enum alb_atomic {
    ALB_ATOMIC_CMP_SWAP,
    ALB_ATOMIC_FETCH_ADD,
    ALB_ATOMIC_WRITE,
};

// Executes an atomic operation on the 8 bytes at va (host byte order), also against this host's processors. original:
// what they held; 0 for a write, which asks for no right to read. RNR while a transaction claims them.
enum alb_outcome alb_inbound_atomic(struct alb_qp *qp, enum alb_atomic atomic, uint32_t rkey, uint64_t va,
                                    uint64_t operand, uint64_t compare, uint64_t *original);

// What ends a SEND or a WRITE with immediate.
struct alb_inbound_end {
    uint32_t opcode; // enum alb_wc_opcode
    uint32_t byte_len;
    uint32_t imm_data;
    uint32_t invalidate_rkey;
    uint16_t wc_flags;
    bool solicited;
    alb_qpn src_qpn;
    uint8_t sl;
};

// Completes the receive; with ALB_WC_WITH_INV it first invalidates the key (ACCESS if it may not).
enum alb_outcome alb_inbound_complete(struct alb_qp *qp, const struct alb_inbound_end *end, alb_time now);

// The message in progress failed: its receive, if one is taken, completes with an error.
void alb_inbound_fail(struct alb_qp *qp, enum alb_outcome outcome, alb_time now);

// Copies n bytes to memory that another thread may be polling. An aligned 8-byte unit within them never tears; the last
// such unit and what stands behind it are stored last, upward and with release order, so that the last byte is the last
// one seen to change.
void alb_store_release(uint8_t *to, const uint8_t *from, uint64_t n);

// The same with bytes that came from the network, if there are any (has_no_payload).
void alb_store_payload(const struct alb_engine *engine, uint8_t *to, const uint8_t *from, uint64_t n);
