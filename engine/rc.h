// SPDX-License-Identifier: BSD-2-Clause
// The delivery layer rc: reliable connected service by the rules of the InfiniBand specification, volume 1, 9.7. One
// queue pair's state, and what its three roles - requester, responder, completer - offer each other.
//
// Requester: requests leave in PSN order. PSNs una ... next - 1 are in flight, next ... high - 1 have been sent before
// and will be sent again, high is the first never sent. READs are asked for in pieces, so that answers stay within the
// peer's window.
#pragma once

#include "engine/assembly.h"
#include "engine/dcqcn.h"
#include "engine/deadline.h"
#include "engine/delivery.h"
#include "engine/policy.h"

#define ALB_RC_PACKET_OVERHEAD 64 // what a packet counts toward the window beside its payload

// An ACK whose PSN is as far behind is not sent: the peer has had answers since, and numbers come round.
#define ALB_RC_ACK_REACH (1u << 22)

// An answer that is owed to a READ or an atomic, in PSN order.
struct alb_rc_answer {
    alb_psn psn;
    uint32_t packets;
    uint32_t sent;    // packets of it that have been sent
    uint8_t opcode;   // of the request, as that of RC
    bool is_repeated; // its request had come before
    uint32_t rkey;    // READ
    uint64_t va;
    uint32_t length;
    uint32_t xrc_srqn; // XRC
    uint64_t original; // atomics
};

// The result of an atomic, kept for a request that comes again (9.4.5).
struct alb_rc_replay {
    bool is_valid;
    alb_psn psn;
    uint64_t original;
};

struct alb_rc {
    struct alb_qp *qp;
    enum alb_service service;
    uint8_t opcode_base; // of the service: its opcodes are those of RC behind another base

    bool asks_next; // the last turn was spent on answers

    // Requester.
    alb_psn una, next, high;
    uint32_t cursor;         // send queue index of the request that next belongs to
    uint32_t started;        // send queue index of the first request that has no PSNs yet
    bool is_blocked;         // a request failed before it was sent: nothing behind it starts
    uint32_t unasked_bytes;  // sent since an acknowledgement was last asked for
    uint32_t inflight_bytes; // charged to the peer
    uint32_t answered_open;  // READs and atomics started and not completed: what a fence waits for
    alb_psn *requested_ends; // ring: one past the last PSN of each READ piece and atomic asked for and not answered
    uint32_t requested_first, requested_count, requested_capacity;
    uint32_t requested_again; // the last so many of them are to be asked for again
    bool read_has_waited;     // the next READ piece has once found no room for all of it
    bool window_limited;      // the window has held something back since the last acknowledgement

    // Completer.
    struct alb_loss_sender loss_sender;
    uint8_t retries_left;
    uint8_t rnr_retries_left;
    uint8_t timeouts;      // in a row
    uint8_t held_timeouts; // of them: while the window held it back
    bool is_held;          // nothing is in flight, and the window has no room for what would be
    bool exceeds_window;   // by a packet, as long as the peer is silent
    bool is_waiting_rnr;
    alb_time heard; // when something was last acknowledged, the oldest packet in flight left, or it was held back
    struct alb_deadline ack_timer;
    struct alb_deadline rnr_timer;

    // Responder.
    alb_psn expected;
    uint32_t behind_ack; // PSNs of READs and atomics executed since a packet of a SEND or WRITE, at most the reach
    uint32_t msn;
    struct alb_loss_receiver loss_receiver;
    struct alb_assembly assembly;
    struct alb_rc_answer *answers; // ring
    uint32_t answer_first, answer_count, answer_capacity;
    struct alb_rc_replay *replays; // ring, overwritten from the oldest
    uint32_t replay_next;
    bool ack_is_due;
    uint8_t farewells; // acknowledgements to repeat before the queue pair goes
    bool cnp_is_due;
    bool is_completing; // a message: if that ends the queue pair, a NAK behind the answers says so
    struct alb_dcqcn_np np;
    bool nak_is_due; // RNR NAKs too; stands behind the answers that are owed
    uint8_t nak_syndrome;
    alb_psn nak_psn;
};

static inline struct alb_rc *alb_rc_of(const struct alb_qp *qp)
{
    return qp->delivery_state;
}

// Send queue index behind the last request that was posted.
static inline uint32_t alb_rc_tail(const struct alb_rc *rc)
{
    return atomic_load_explicit(&rc->qp->sq.tail, memory_order_acquire);
}

static inline struct alb_send_wqe *alb_rc_wqe(const struct alb_rc *rc, uint32_t index)
{
    return alb_send_queue_at(&rc->qp->sq, index);
}

// The opcode of RC that a packet's of the queue pair's own service corresponds to.
static inline uint8_t alb_rc_opcode(const struct alb_rc *rc, uint8_t opcode)
{
    return (uint8_t)(opcode - rc->opcode_base);
}

// What packets [k, k + count) of a request count toward the window (of a READ: its answers).
uint32_t alb_rc_cost_bytes(const struct alb_rc *rc, const struct alb_send_wqe *wqe, uint32_t k, uint32_t count);

// rc_requester.c: builds requests, a burst at the most.
enum alb_build_result alb_rc_build_requests(struct alb_rc *rc, struct alb_tx_builder *builder, alb_time now);
// Sends again from psn on (between una and high): takes what is beyond it out of flight.
void alb_rc_go_back(struct alb_rc *rc, alb_psn psn, enum alb_loss_cause cause, alb_time now);
// No request begins any more: asks for the acknowledgement that one of those to come would have asked for.
void alb_rc_requester_drain(struct alb_rc *rc, alb_time now);
// Forgets what is in flight; timers stop.
void alb_rc_requester_stop(struct alb_rc *rc);
// An acknowledgement of all that has left is asked for, or nothing of it is in flight any more.
void alb_rc_note_asked(struct alb_rc *rc);
// No more than what is in flight waits for a question: what was acknowledged without one does not.
void alb_rc_trim_unasked(struct alb_rc *rc);

// rc_completer.c
// An acknowledgement, an answer or a NAK has come. Returns why it was dropped.
enum alb_drop alb_rc_on_response(struct alb_rc *rc, const struct alb_packet *packet, alb_time now);
// PSNs before end are acknowledged.
void alb_rc_acknowledge(struct alb_rc *rc, alb_psn end, alb_time now);
// If the peer has been heard since rc->heard it was not silent: true, and what was held against it is forgotten.
bool alb_rc_forgive_if_heard(struct alb_rc *rc);
// Arms the timer of acknowledgements for the time at which silence will have lasted too long.
void alb_rc_watch(struct alb_rc *rc);
// The timers of silence, and of an RNR NAK.
void alb_rc_on_ack_timeout(struct alb_deadline *deadline, alb_time now);
void alb_rc_on_rnr_timeout(struct alb_deadline *deadline, alb_time now);
// Completes the requests at the head of the send queue that are done.
void alb_rc_retire(struct alb_rc *rc, alb_time now);

// rc.c: only the connected queue pair's address may speak.
enum alb_drop alb_rc_check_peer(const struct alb_qp *qp, const struct alb_datagram *datagram);

// rc_usual.c: takes a packet that is like most others. False: nothing has been done.
bool alb_rc_rx_usual(struct alb_qp *qp, const struct alb_datagram *datagram, alb_time now);
// Begins one of a small message (alb_tx_begin): the next one of a request, which has one. False likewise.
bool alb_rc_begin_usual(struct alb_rc *rc, const struct alb_send_wqe *wqe, struct alb_tx_builder *builder, bool ackreq);

// rc_run_in.c: takes those behind the first of the datagrams, which was taken already, that continue its message or
// answer in order. Returns how many they are; anything unusual is left to the other ways.
uint32_t alb_rc_run_in(struct alb_engine *engine, const struct alb_datagram *datagrams, uint32_t count, alb_time now);

// rc_responder.c
// A request has come: executed, or a NAK is owed. Returns why it was dropped.
enum alb_drop alb_rc_on_request(struct alb_rc *rc, const struct alb_packet *packet, alb_time now);
// The packets of a SEND or WRITE at the expected PSN have been executed. ends_message: their message with them.
void alb_rc_note_executed(struct alb_rc *rc, uint32_t psns, bool ends_message, bool wants_ack);

// rc_cnp.c
// A packet of the peer's, which is no CNP, came with an ECN mark: a CNP is owed if it brings payload, unless one was
// lately.
void alb_rc_on_mark(struct alb_rc *rc, const struct alb_packet *packet, alb_time now);
void alb_rc_send_cnp(struct alb_rc *rc, struct alb_tx_builder *builder);
// The peer has received such packets of ours.
void alb_rc_on_cnp(struct alb_rc *rc, alb_time now);

// rc_answer.c: builds answers, acknowledgements and CNPs.
enum alb_build_result alb_rc_build_answers(struct alb_rc *rc, struct alb_tx_builder *builder);
// False: more READs and atomics than were agreed. Makes room for one more answer, if need be by giving up one whose
// request had come before: a peer that keeps to the agreement has that one already, or asks again.
bool alb_rc_make_room(struct alb_rc *rc);
// Makes room likewise, and owes the answer, which is copied.
bool alb_rc_owe_answer(struct alb_rc *rc, const struct alb_rc_answer *answer);
// Owes the answer to a request that has come again, in its place in PSN order, instead of what is owed of the same
// PSNs. What is owed of others stays: the request may be a late copy of one that was answered long ago. It is such a
// one if there is no room, since the peer has as many newer ones open as were agreed.
void alb_rc_owe_again(struct alb_rc *rc, const struct alb_rc_answer *answer);
// A NAK (an RNR NAK too) with that syndrome, for the request at psn, is to be sent behind the answers that are owed.
void alb_rc_owe_nak(struct alb_rc *rc, uint8_t syndrome, alb_psn psn);
// One past the last packet of a SEND or WRITE that was executed. An ACK never carries the PSN of a READ or an atomic,
// whose answer may have been lost: the Linux kernel would take the request for complete, without its data.
static inline alb_psn alb_rc_ack_end(const struct alb_rc *rc)
{
    return alb_psn_add(rc->expected, -(int32_t)rc->behind_ack);
}
// True if an answer or a NAK is to be sent; or anything at all.
static inline bool alb_rc_owes_more_than_ack(const struct alb_rc *rc)
{
    return rc->answer_count > 0 || rc->nak_is_due;
}
static inline bool alb_rc_owes(const struct alb_rc *rc)
{
    return alb_rc_owes_more_than_ack(rc) || rc->ack_is_due || rc->farewells > 0 || rc->cnp_is_due;
}
