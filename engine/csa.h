// SPDX-License-Identifier: BSD-2-Clause
// The delivery layer csa: reliable connected service over unreliable datagrams on many paths (docs/PROTOCOL.md).
//
// An association (csa_assoc.h) is what two engines share: paths, round-trip time, window. Each of a connected queue
// pair's ends sends and receives two streams (csa_stream.h), requests and answers. Packets are an association's: it
// gathers what its streams have to send. This header has the queue pair, and what the segments of its streams mean.
//
//     csa.c            the queue pair: its life
//     csa_requester.c  send queue -> segments of the request stream      csa_responder.c  segments -> execution
//     csa_completer.c  reports and answers -> completions                csa_answer.c     answers -> response stream
//     csa_out.c        sending half of a stream                          csa_in.c         receiving half
//     csa_judge.c      what reports do to it                             csa_early.c      what waits for its turn in it
//     csa_report.c     what a receiving half tells, and when             csa_probe.c      silence
//     csa_snapshot.c   answers that must not change
//     csa_expect.c     what is announced to come
//     csa_hello.c      proof by cookie
//     csa_mtu.c        how long packets may be
//     csa_engine.c     what an engine has once                           csa_assoc.c      associations
//     csa_live.c       what they have awake                              csa_rest.c       what they remember at rest
//     csa_rtt.c        round-trip time                                   csa_window.c     what may be in flight
//     csa_assoc_path.c their paths                                       csa_stats.c      what they show
//     csa_admit.c      epochs, proof, resets
//     csa_tx.c         packets out                                       csa_rx.c         packets in
//     csa_trimmed.c    packets of which only headers have come
//     csa_run_out.c    runs: packets made from the one before             csa_run_in.c     and taken like it
//     csa_uc.c, csa_uc_in.c, csa_ud.c, csa_loose.c  UC and UD
#pragma once

#include "engine/csa_assoc.h"
#include "engine/csa_engine.h"
#include "engine/csa_expect.h"
#include "engine/csa_stream.h"
#include "engine/deadline.h"
#include "engine/delivery.h"
#include "engine/inbound.h"
#include "engine/reflect.h"
#include "wire/csa.h"

#define ALB_CSA_FAREWELLS 2 // with independent losses of 1 %, three reports leave one peer in a million waiting

// An answer that the requester is not known to hold.
struct alb_csa_answer {
    alb_psn first;                   // of its segments, in the response stream
    uint32_t packets;                // how many segments it has
    alb_psn request_psn;             // of the request's first segment
    uint8_t op;                      // enum alb_csa_op of the request
    bool is_forgotten;               // a READ's copy made room for others
    uint32_t segment_bytes;          // of each segment but the last
    uint32_t rkey, length, xrc_srqn; // READ: what is asked for, checked again as it leaves
    uint64_t va;
    union {
        uint64_t original; // of an atomic operation
        uint8_t *snapshot; // of a READ: the bytes to answer with; NULL: those of the memory (csa_snapshot.h)
    };
};

struct alb_csa {
    struct alb_qp *qp;
    struct alb_assoc *assoc;
    uint32_t bound_epoch;                // the peer's: packets of another one are dropped; 0: nothing has come yet
    struct alb_expect *expect;           // NULL: nothing was announced
    struct alb_reflect_out *reflect_out; // NULL: no transactions are enabled
    struct alb_reflect_in *reflect_in;   // NULL: none have come
    struct alb_reflect_in *reflect_room; // for that; NULL: not RC, or a device without transactions
    struct alb_stream_out requests, responses;
    struct alb_stream_in in_requests, in_responses;

    // Requester.
    uint32_t started;       // send queue index of the first request that has no PSNs yet
    alb_psn started_psn;    // the PSN it will get
    uint32_t cursor;        // send queue index of the request that the next new segment belongs to
    uint32_t answered_open; // READs and atomics started and not completed: what a fence waits for
    uint32_t asked_open;    // of them, asked for and not answered (max_rd_atomic)
    uint32_t recv_number;   // of the peer's receives that the requests started use
    bool is_blocked;        // a request failed before it was sent: nothing behind it starts
    bool is_waiting_rnr;
    uint8_t rnr_retries_left;

    // Completer.
    alb_time heard;         // when the peer last showed life, or there was nothing to wait for
    uint32_t answer_cursor; // send queue index of the request whose answer comes next
    uint32_t acked_cursor;  // and of the first one with a number, or before it, that is not known to be executed
    struct alb_deadline life_timer;
    struct alb_deadline rnr_timer;
    alb_time rnr_asked_at; // when the peer was last asked whether it is ready; 0: not since the last progress

    // Responder.
    bool is_refusing;  // in error for a request of the peer's: answers to those before it still go, then the NAK
    uint8_t farewells; // reports to repeat before the queue pair goes
    struct alb_target target;
    uint32_t received;              // receives that the messages executed have used
    struct alb_csa_answer *answers; // ring of as many as max_dest_rd_atomic, in the order of requests
    uint32_t answer_first, answer_count, answer_capacity;
    alb_psn answer_psn; // in the response stream: of the next answer
};

static inline struct alb_csa *alb_csa_of(const struct alb_qp *qp)
{
    return qp->delivery_state;
}

static inline struct alb_send_wqe *alb_csa_wqe(const struct alb_csa *csa, uint32_t index)
{
    return alb_send_queue_at(&csa->qp->sq, index);
}

extern const struct alb_delivery_ops alb_csa_ops;

// ---- csa_requester.c, csa_answer.c: what the segments of a stream are -----------------------------------------------

enum alb_csa_fill {
    ALB_CSA_FILL_NONE,   // nothing to send now
    ALB_CSA_FILL_DONE,   // added a segment
    ALB_CSA_FILL_LAST,   // likewise, and there is no more to send now
    ALB_CSA_FILL_PACKET, // does not fit into this packet
    ALB_CSA_FILL_BATCH,  // does not fit into this batch
    ALB_CSA_FILL_WINDOW, // the window is closed
};

struct alb_csa_packet;

// Adds to the packet what is next of the request stream: a probe, a segment that was lost, a new one.
enum alb_csa_fill alb_csa_fill_request(struct alb_csa *csa, struct alb_csa_packet *packet, alb_time now);
// True if nothing is to be sent any more but the rest of a request that has begun, and that counts for no more than so
// many bytes of the window.
bool alb_csa_ends_within(const struct alb_csa *csa, uint64_t bytes);
// True if the segment of the request that leaves now is to ask for a report. Counts the segment: a caller whose segment
// does not leave restores requests.unasked_bytes. is_again: it left before; cost_bytes: what it counts toward the
// window.
bool alb_csa_asks_for_report(struct alb_csa *csa, const struct alb_send_wqe *wqe, bool is_last, bool is_again,
                             uint32_t cost_bytes);
// Likewise of an answer.
bool alb_csa_answer_asks_for_report(struct alb_csa *csa, bool is_last, uint32_t cost_bytes);
// Of the requests that have PSNs and have not completed, of which there must be one: the last that begins at psn or
// before it, else the oldest. Never NULL.
struct alb_send_wqe *alb_csa_find_request(const struct alb_csa *csa, alb_psn psn);
// Adds a segment's frame with room for refs references to its payload, which the caller adds. A probe ignores the
// window.
enum alb_csa_fill alb_csa_add_segment(struct alb_csa *csa, struct alb_csa_packet *packet, enum alb_csa_type type,
                                      const struct alb_csa_segment *segment, uint32_t refs, bool is_probe);
// No request begins any more: asks for the report that one of those to come would have asked for.
void alb_csa_requester_drain(struct alb_csa *csa);
// Adds a probe without a segment.
enum alb_csa_fill alb_csa_send_probe(struct alb_stream_out *out, struct alb_csa_packet *packet);
// No more can be sent before the peer has told of what was: for want of records, or of room at the peer. The last of it
// may not have asked for a report.
enum alb_csa_fill alb_csa_ask_for_room(struct alb_stream_out *out, struct alb_csa_packet *packet);
// Likewise of the response stream.
enum alb_csa_fill alb_csa_fill_response(struct alb_csa *csa, struct alb_csa_packet *packet);
// Something of the request stream was acknowledged: completes what has ended, and lets the rest go on.
void alb_csa_on_acked(struct alb_csa *csa, alb_time now);
// Something of the response stream was acknowledged: those answers are forgotten.
void alb_csa_on_answers_acked(struct alb_csa *csa);
// Forgets all answers and what is in flight of them.
void alb_csa_stop_answering(struct alb_csa *csa);
// The oldest answer never gets through: the peer is told, and the queue pair fails.
void alb_csa_refuse_stuck_answer(struct alb_csa *csa, alb_time now);
// The answer that the segment at psn of the response stream belongs to; NULL: none.
const struct alb_csa_answer *alb_csa_find_answer(const struct alb_csa *csa, alb_psn psn);
// Computes an answer's segments, before anything is executed or kept for it. INVALID_REQUEST: there are
// max_dest_rd_atomic answers already, or it is too long; RNR: the stream has no numbers left until earlier ones are
// acknowledged.
enum alb_outcome alb_csa_cut_answer(const struct alb_csa *csa, struct alb_csa_answer *answer);
// The answer, which alb_csa_cut_answer has accepted, is to be sent; it is copied.
void alb_csa_owe_answer(struct alb_csa *csa, const struct alb_csa_answer *answer);
// The requester holds all of the response stream before that PSN.
void alb_csa_forget_answers(struct alb_csa *csa, alb_psn acked);
// Forgets them without touching the response stream.
void alb_csa_forget_all_answers(struct alb_csa *csa);
// The copies that its answers have kept; the READs are refused if the requester is heard again.
void alb_csa_forget_snapshots(struct alb_csa *csa);
// So many frames of a queue pair have left, in a packet or several: for its statistics.
void alb_csa_count_frames(struct alb_qp *qp, uint32_t frames);
// A segment of the queue pair's has come. The device's own sum counts whole packets.
void alb_csa_count_received(struct alb_qp *qp, const struct alb_csa_segment *segment);

// ---- csa_completer.c ------------------------------------------------------------------------------------------------

extern const struct alb_stream_in_ops alb_csa_completer_ops;
// Completes the oldest requests that have ended, in order. The queue pair may be in error afterwards.
void alb_csa_retire(struct alb_csa *csa, alb_time now);
// The queue pair goes to its error state: the oldest started request completes with that status, all others are
// flushed. reason: for a log line, a literal.
void alb_csa_fail(struct alb_csa *csa, enum alb_wc_status status, uint8_t syndrome, const char *reason, alb_time now);
// The peer's half of the queue pair has shown life.
void alb_csa_heard(struct alb_csa *csa, alb_time now);
// True if all segments of the request at that index of the send queue have left, and it has not completed.
bool alb_csa_is_sent(const struct alb_csa *csa, uint32_t index);
// A verdict shows that the peer has executed the request at that index, and so all before it.
void alb_csa_on_executed(struct alb_csa *csa, uint32_t index, alb_time now);
// What a report says besides: an RNR NAK lets the requester wait, other NAKs fail the queue pair.
void alb_csa_on_syndrome(struct alb_csa *csa, uint8_t syndrome, alb_time now);
// How long silence may last before the queue pair fails; ALB_TIME_NEVER: for ever.
alb_time alb_csa_patience_ns(const struct alb_csa *csa);
// Something is awaited of the peer: arms the timer of silence, unless it is armed.
void alb_csa_watch_life(struct alb_csa *csa, alb_time now);
// The same, by a timeout or a number of retries that has changed meanwhile.
void alb_csa_watch_life_anew(struct alb_csa *csa, alb_time now);
// The timer of silence, and that of an RNR NAK.
void alb_csa_on_life(struct alb_deadline *deadline, alb_time now);
void alb_csa_on_rnr(struct alb_deadline *deadline, alb_time now);

// ---- csa_responder.c ------------------------------------------------------------------------------------------------

extern const struct alb_stream_in_ops alb_csa_responder_ops;
// The request at psn cannot be executed or answered: a NAK says why, and the queue pair is in error (9.9.3).
void alb_csa_refuse(struct alb_csa *csa, enum alb_outcome outcome, alb_psn psn, alb_time now);

// ---- csa_tx.c, csa_rx.c ---------------------------------------------------------------------------------------------

// The association's turn with the scheduler: fills one burst with what its streams have to send, then with reports and
// the like.
enum alb_build_result alb_assoc_build(struct alb_source *source, struct alb_tx_builder *builder, alb_time now);
// True if the senders of an association go in the order of what is left of their messages.
bool alb_csa_turn_has_order(const struct alb_assoc_live *live);
// When what the association has to send is due, by the scheduler's reckoning (csa_turn.c). 0: at once.
alb_time alb_csa_turn_due(const struct alb_assoc_live *live, alb_time now);
// There is something to be said about the other direction: whatever the order of data is, at once.
void alb_csa_turn_tell(struct alb_assoc_live *live);
// Streams have come into the association's line, or have to send again: its turn may come earlier now.
void alb_csa_turn_hurry(struct alb_assoc_live *live, alb_time now);
// It was the association's turn at once, and what is next of its data is due later.
bool alb_csa_turn_is_over(const struct alb_assoc_live *live, alb_time now);
// Brings what is due first of its streams to the head of the line, where a sender prefers the short ones.
void alb_csa_turn_choose(struct alb_assoc_live *live, alb_time now);
// The timer of the congestion policy's rate: data may be sent again.
void alb_assoc_pace(struct alb_deadline *deadline, alb_time now);
// A RoCE packet to a queue pair of csa: always a drop.
enum alb_drop alb_csa_rx_foreign(struct alb_qp *qp, const struct alb_packet *packet, alb_time now);
// A datagram to the engine's own QPN index, which is where CSA packets go. Returns ALB_DROP_NONE, or why it was dropped
// as a whole; a frame that is dropped is counted only.
enum alb_drop alb_csa_rx(struct alb_engine *engine, const struct alb_datagram *datagram, alb_time now);
