// SPDX-License-Identifier: BSD-2-Clause
// The delivery layer csa: reliable connected service over unreliable datagrams on many paths (docs/PROTOCOL.md).
//
// An association is what two engines share: paths, round-trip time, window. A connected queue pair has two streams each
// way, requests and answers; a stream is a sequence of segments, of which the receiving half keeps what it holds and
// the sending half what is not acknowledged. Packets are an association's: it gathers what its streams have to send.
//
//     csa.c            the queue pair: its life
//     csa_requester.c  send queue -> segments of the request stream      csa_responder.c  segments -> execution
//     csa_completer.c  reports and answers -> completions                csa_answer.c     answers -> response stream
//     csa_out.c        sending half of a stream                          csa_in.c         receiving half
//     csa_early.c      what waits for its turn in it
//     csa_report.c     what a receiving half tells, and when             csa_probe.c      silence
//     csa_snapshot.c   answers that must not change
//     csa_expect.c     what is announced to come
//     csa_hello.c      proof by cookie
//     csa_mtu.c        how long packets may be
//     csa_engine.c     what an engine has once                           csa_assoc.c      associations
//     csa_live.c       what they have awake                              csa_rest.c       what they remember at rest
//     csa_rtt.c        round-trip time                                   csa_window.c     what may be in flight
//     csa_assoc_path.c their paths
//     csa_admit.c      epochs, proof, resets
//     csa_tx.c         packets out                                       csa_rx.c         packets in
//     csa_trimmed.c    packets of which only headers have come
//     csa_run_out.c    runs of segments: packets made from the one before    csa_run_in.c     and taken like it
//     csa_loose.c      UC and UD
#pragma once

#include "base/bitmap.h"
#include "base/buddy.h"
#include "base/siphash.h"
#include "engine/credit.h"
#include "engine/csa_early.h"
#include "engine/csa_expect.h"
#include "engine/csa_hello.h"
#include "engine/csa_loss.h"
#include "engine/csa_mtu.h"
#include "engine/csa_path.h"
#include "engine/csa_reply.h"
#include "engine/csa_rest.h"
#include "engine/csa_trimmed.h"
#include "engine/deadline.h"
#include "engine/delivery.h"
#include "engine/inbound.h"
#include "engine/policy.h"
#include "engine/reflect.h"
#include "wire/csa.h"

struct alb_csa;
struct alb_stream_out;

#define ALB_CSA_FAREWELLS 2 // with independent losses of 1 %, three reports leave one peer in a million waiting

#define ALB_CSA_SEGMENT_OVERHEAD 96 // what a segment counts toward the window beside its payload

// ---- associations -----------------------------------------------------------------------------------------

// What a peer engine is known by. 64 bytes while nothing is under way.
struct alb_assoc {
    struct alb_addr peer;
    uint32_t next;               // in its bucket: index + 1
    uint32_t refs;               // queue pairs connected to it
    uint32_t peer_epoch;         // 0: not known
    uint32_t dead_epoch;         // the one before, which is over; 0: none
    alb_psn sequence;            // that paths begin behind when it wakes
    uint16_t payload_max;        // largest UDP payload of a packet to it, ICRC included
    uint16_t payload_limit;      // that the routes, or else the engine, would carry
    struct alb_assoc_live *live; // NULL: idle
    uint32_t rtt_ns;             // the last one known; 0: none
    uint8_t slot;
    uint8_t local;            // index of the engine's address
    uint8_t is_mtu_told : 1;  // payload_limit is the routes'
    uint8_t is_mtu_tried : 1; // at mtu_tried_at: longer packets are not tried again for a while
    uint8_t is_mtu_sure : 1;  // then the size in use was suspected, and worked
    uint8_t mtu_tried_at;     // in seconds, or nearly
    uint32_t rest;            // its record at rest, in units from the pool's start, plus 1; 0: none (csa_rest.c)
};

// What it has besides while packets come and go, and for a moment afterwards.
struct alb_assoc_live {
    struct alb_assoc *assoc;
    struct alb_engine *engine;
    struct alb_source source;
    struct alb_list link;        // among the engine's live ones
    struct alb_list ready;       // senders with something to send
    struct alb_list waiting;     // senders that the window holds back
    struct alb_list reports;     // receiving halves whose report is due
    struct alb_list open;        // receiving halves that miss something
    struct alb_list reflections; // struct alb_reflect_source: commands and verdicts
    struct alb_congestion congestion;
    uint64_t inflight_bytes;
    uint32_t credit_bytes;                                         // that the peer lets us have in flight
    uint8_t share;                                                 // that it says we have
    struct alb_credit_in credit_in;                                // what we grant the peer
    uint32_t rtt_sample_ns, news_received, news_marked, news_lost; // since the window's policy last heard
    struct alb_paths_out *paths;
    struct alb_path_in *paths_in;
    uint32_t paths_in_count;           // a power of two
    struct alb_path_set paths_in_gaps; // incoming paths that have a gap (alb_assoc_note_path_in)
    struct alb_path_set paths_in_news; // to be reported to the peer
    uint32_t rtt_ns, rtt_var_ns, rtt_min_ns;
    uint32_t rtt_newest_ns; // the largest in the newest paths frame that had one
    alb_time rtt_newest_at;
    uint32_t peer_rtt_ns; // as the peer says
    bool paths_are_due;
    alb_time paths_told_at; // without a report
    bool cnp_is_due;
    bool trimmed_is_due; // there is something in trimmed
    bool window_limited;
    bool is_used;                      // since the last sweep
    uint16_t pong_bytes;               // a PONG is due
    struct alb_mtu_search *mtu_search; // NULL: no sizes are tried
    struct alb_dcqcn_np np;
    struct alb_deadline settle_timer;
    struct alb_deadline pace_timer;
    struct alb_trimmed_in trimmed; // what is to be reported to the peer; last, since it is rarely looked at
};

// One per engine of this transport.
struct alb_csa_engine {
    struct alb_engine *engine;
    struct alb_buddy pool;
    void *arena, *bookkeeping;
    uint32_t epoch;
    struct alb_assoc *assocs;
    struct alb_assoc *found_last; // by alb_assoc_find; NULL: it has ended
    struct alb_csa *heard_last;   // by alb_csa_find_qp; NULL: it has ended
    uint32_t *buckets;            // index + 1
    uint32_t bucket_count, free_first;
    uint32_t assoc_count, assoc_used; // now; places that were ever taken
    struct alb_siphash_key hash_key;
    struct alb_addr locals[16];
    uint32_t local_refs[16]; // associations that have it
    uint32_t local_count;    // places that were ever taken
    struct alb_list live;
    struct alb_slab rests;
    alb_time aged_at;        // when what rests was last looked at
    struct alb_list starved; // senders whose association could not wake: the pool was empty
    struct alb_deadline sweep_timer;
    struct alb_csa_loss loss;
    struct alb_credit_pool credit;
    uint64_t waiting_bytes; // of segments that came early
    uint64_t snapshot_bytes;
    struct alb_csa_replies replies;
    struct alb_list expect_groups;
    struct alb_csa_cookies cookies;
};

// ---- csa_engine.c -----------------------------------------------------------------------------------------

int alb_csa_engine_create(struct alb_engine *engine);
void alb_csa_engine_destroy(struct alb_engine *engine);

// ---- csa_assoc.c ------------------------------------------------------------------------------------------

// The association with the peer engine of that slot, made if need be; NULL when the table is full.
struct alb_assoc *alb_assoc_get(struct alb_engine *engine, const struct alb_addr *local, const struct alb_addr *peer,
                                uint8_t slot);
struct alb_assoc *alb_assoc_find(struct alb_engine *engine, const struct alb_addr *local, const struct alb_addr *peer,
                                 uint8_t slot);
void alb_assoc_put(struct alb_engine *engine, struct alb_assoc *assoc);
// The peer's life is over; begins anew with another one, or with none that is known yet (0).
void alb_assoc_restart(struct alb_engine *engine, struct alb_assoc *assoc, uint32_t epoch);

// ---- csa_live.c -------------------------------------------------------------------------------------------

// What it needs to send or receive, with what it remembers; NULL when the pool is empty.
struct alb_assoc_live *alb_assoc_wake(struct alb_engine *engine, struct alb_assoc *assoc);
// Gives that back; nothing is in flight.
void alb_assoc_sleep(struct alb_assoc_live *live);
// Lets those sleep that have not been used since the last sweep.
void alb_assoc_on_sweep(struct alb_deadline *deadline, alb_time now);
// The association could not wake for that sender: it tries again by and by.
void alb_assoc_starve(struct alb_engine *engine, struct alb_stream_out *out);

// ---- csa_assoc_path.c -------------------------------------------------------------------------------------

// The incoming path of that number; NULL when the pool is empty.
struct alb_path_in *alb_assoc_path_in(struct alb_assoc_live *live, uint8_t path);
// Something has happened to that incoming path.
void alb_assoc_note_path_in(struct alb_assoc_live *live, uint32_t path);
// The peer has reported all of its news of the paths in scope: what left by one that they say nothing of may be lost,
// and then goes again.
void alb_assoc_judge_paths(struct alb_assoc_live *live, const struct alb_path_scope *scope, alb_time now);

// ---- csa_rtt.c --------------------------------------------------------------------------------------------

// A round-trip time was measured.
void alb_assoc_on_rtt(struct alb_assoc_live *live, uint32_t rtt_ns);
// The round-trip time to reckon with, in ns, before any was measured too.
uint32_t alb_assoc_rtt_ns(const struct alb_assoc *assoc);
// How far beyond its expected time something may come and not be missed.
uint32_t alb_assoc_margin_ns(const struct alb_engine *engine, const struct alb_assoc *assoc);

// ---- csa_window.c -----------------------------------------------------------------------------------------

bool alb_assoc_permits(const struct alb_assoc_live *live, uint32_t bytes);
void alb_assoc_charge(struct alb_assoc_live *live, uint32_t bytes);
// No longer in flight. Lets waiting senders try again.
void alb_assoc_release(struct alb_assoc_live *live, uint32_t bytes);
// Bytes have reached the peer: the window's policy hears of it.
void alb_csa_note_landed(struct alb_assoc_live *live, uint32_t bytes, alb_time now);
// A report is asked for at least so often: a few times in a window, and where there are many paths more often, so that
// the choice among them knows of the last packets of most.
static inline uint32_t alb_assoc_report_bytes(const struct alb_assoc_live *live, uint32_t window_bytes)
{
    return window_bytes / ALB_MAX(4u, live->paths->count / 2u);
}
// What the peer may have in flight to us.
uint32_t alb_assoc_credit(struct alb_assoc_live *live, alb_time now);
void alb_assoc_note_received(struct alb_assoc_live *live, uint32_t bytes, alb_time now);
// That much of a message of the peer is still to come.
void alb_assoc_note_rest(struct alb_assoc_live *live, uint64_t bytes, alb_time now);

// ---- streams ----------------------------------------------------------------------------------------------

enum alb_sent_state {
    ALB_SENT_FLYING,
    ALB_SENT_LOST, // to be sent again
    ALB_SENT_HELD, // the peer holds it
};

// One segment that is not acknowledged.
struct alb_sent {
    uint32_t at_64ns;       // when it last left, in units of 64 ns
    uint32_t sequence : 24; // on its path
    uint32_t path : 8;
    uint16_t bytes; // charged to the window
    uint8_t state;  // enum alb_sent_state
    uint8_t times;  // how often it has left
};

#define ALB_STREAM_OUT_OWN 4  // records that need no memory of the pool
#define ALB_STREAM_IN_OWN  64 // likewise segments

struct alb_stream_out {
    struct alb_csa *csa;
    struct alb_list link; // among the association's senders that are ready, or wait; or senders that wait for memory
    bool is_ready;
    bool is_response;
    bool has_report;
    uint16_t report_number; // of the newest report
    uint16_t room;          // PSNs from una on that the peer is believed to have room for; UINT16_MAX: any number
    alb_psn una, next;      // unacknowledged; never sent
    uint32_t capacity;
    struct alb_sent *sent; // ring by PSN
    struct alb_sent own[ALB_STREAM_OUT_OWN];
    uint32_t lost_count;
    alb_psn lost_from; // no lost one is before it
    uint32_t inflight_bytes;
    uint32_t probes;    // since something last went on
    bool probe_is_due;  // a bare probe: nothing is there to be sent again
    bool has_probe_psn; // the segment at probe_psn goes again, whatever the window says
    alb_psn probe_psn;
    uint32_t unasked_bytes; // sent since a report was last asked for
    alb_time sent_at;       // when something last left
    alb_time reported_at;   // when the peer last said what it holds
    struct alb_deadline probe_timer;
};

struct alb_stream_in;

// What a receiving half does with messages: the responder's and the completer's part.
struct alb_stream_in_ops {
    // The message that the segment belongs to is next. May be asked again after RNR.
    enum alb_outcome (*begin)(struct alb_csa *csa, const struct alb_csa_segment *segment, alb_time now);
    // Puts its payload in place; the last segment of a message comes last.
    enum alb_outcome (*place)(struct alb_csa *csa, const struct alb_csa_segment *segment, uint32_t offset,
                              alb_time now);
    // The same before the turn of its message, where order does not matter. False: it must wait. Or NULL.
    bool (*place_early)(struct alb_csa *csa, const struct alb_csa_segment *segment, uint32_t offset);
    // All of it is there.
    enum alb_outcome (*end)(struct alb_csa *csa, const struct alb_csa_segment *last, alb_time now);
    // The message cannot be taken: not called for RNR.
    void (*refuse)(struct alb_csa *csa, enum alb_outcome outcome, alb_psn psn, alb_time now);
};

struct alb_stream_in {
    struct alb_csa *csa;
    const struct alb_stream_in_ops *ops;
    struct alb_list report_link; // its report is due
    struct alb_list open_link;   // it misses something
    bool is_response;
    bool is_open;     // a message has begun and has not ended
    bool waits_rnr;   // for a receive, or for memory that a transaction has
    bool has_dropped; // something that came before its turn, and has said so
    bool is_overdue;  // the next report says so
    bool owes_nak;    // and has still to say so
    uint16_t report_number;
    uint8_t syndrome;
    bool is_full;       // something was dropped for lack of room; the next report says so
    alb_psn cumulative; // all before is executed
    alb_psn end;        // one past the newest that is known to exist
    alb_psn highest;    // one past the newest that is held
    uint32_t capacity;  // bits
    uint64_t *held;     // ring by PSN
    uint64_t own[ALB_STREAM_IN_OWN / 64];
    uint32_t early_bytes;
    struct alb_list early;  // by PSN
    alb_psn first, past;    // of the open message
    uint32_t segment_bytes; // of it; 0: not known yet
    uint32_t total_bytes;
    uint8_t op;
    uint32_t placed;   // segments of it
    alb_time came_at;  // when something last came
    alb_time asked_at; // when the rest, or a hole, was last asked for
    alb_psn asked_psn; // what was cumulative when a hole was
    bool has_asked;
    uint32_t gap_ns; // between arrivals, smoothed
    uint32_t asks;   // for the tail, since something came
    struct alb_deadline tail_timer;
};

// ---- a queue pair -----------------------------------------------------------------------------------------

// An answer on its way, in the order of requests.
struct alb_csa_answer {
    alb_psn first; // in the response stream
    uint32_t packets;
    alb_psn request_psn;
    uint8_t op; // enum alb_csa_op of the request
    uint32_t segment_bytes;
    uint32_t rkey, length, xrc_srqn;
    uint64_t va;
    union {
        uint64_t original; // of an atomic operation
        uint8_t *snapshot; // of a READ: the bytes to answer with; NULL: those of the memory (csa_snapshot.h)
    };
};

struct alb_csa {
    struct alb_qp *qp;
    struct alb_assoc *assoc;
    uint32_t bound_epoch;                // of the peer: packets with another one are ignored; 0: nothing has come yet
    struct alb_expect *expect;           // NULL: nothing was announced
    struct alb_reflect_out *reflect_out; // NULL: no transactions are enabled
    struct alb_reflect_in *reflect_in;   // NULL: none have come
    struct alb_stream_out requests, responses;
    struct alb_stream_in in_requests, in_responses;

    // Requester.
    uint32_t started;       // send queue index of the first request that has no PSNs yet
    alb_psn started_psn;    // the PSN it will get
    uint32_t cursor;        // send queue index of the request that the next new segment belongs to
    uint32_t answered_open; // READs and atomics started and not completed: what a fence waits for
    uint32_t asked_open;    // of them, asked for and not answered (max_rd_atomic)
    uint32_t recv_number;   // receives that the requests started use
    bool is_blocked;        // a request failed before it was sent: nothing behind it starts
    bool is_waiting_rnr;
    uint8_t rnr_retries_left;

    // Completer.
    alb_time heard;         // a sign of life, or when there was last nothing to wait for
    uint32_t answer_cursor; // send queue index of the request whose answer comes next
    uint32_t acked_cursor;  // and of the first one with a number, or before it, that is not known to be executed
    struct alb_deadline life_timer;
    struct alb_deadline rnr_timer;

    // Responder.
    bool is_refusing;  // in error for a request of the peer's: answers to those before it still go, and then why
    uint8_t farewells; // reports to repeat before the queue pair goes
    struct alb_target target;
    uint32_t received;              // receives that the messages executed have used
    struct alb_csa_answer *answers; // ring
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

// ---- csa_out.c: the sending half --------------------------------------------------------------------------

void alb_stream_out_init(struct alb_stream_out *out, struct alb_csa *csa, bool is_response);
// Forgets all that is in flight and gives memory back.
void alb_stream_out_stop(struct alb_stream_out *out);
void alb_stream_out_begin(struct alb_stream_out *out, alb_psn first);
static inline struct alb_sent *alb_stream_out_at(const struct alb_stream_out *out, alb_psn psn)
{
    return &out->sent[psn & (out->capacity - 1)];
}
static inline uint32_t alb_stream_out_count(const struct alb_stream_out *out)
{
    return (uint32_t)alb_psn_diff(out->next, out->una);
}
// Room for one more new segment; false: as many as there may be are unacknowledged.
bool alb_stream_out_has_room(struct alb_stream_out *out);
// The one that probes, if it is still of use.
bool alb_stream_out_take_probe(const struct alb_stream_out *out, alb_psn *psn);
// The next one to be sent again; false: there is none.
bool alb_stream_out_next_lost(struct alb_stream_out *out, alb_psn *psn);
// A segment leaves: a new one if psn is next.
void alb_stream_out_sent(struct alb_stream_out *out, alb_psn psn, uint32_t bytes, uint16_t path, alb_psn sequence,
                         alb_time now);
// Says that there may be something to send. A probe goes ahead of what the window holds back.
void alb_stream_out_wake(struct alb_stream_out *out);
// True if a report may say that everything before psn is executed.
static inline bool alb_stream_out_can_be_acked(const struct alb_stream_out *out, alb_psn psn)
{
    return alb_psn_is_within(psn, out->una, alb_stream_out_count(out) + 1);
}
// Everything before psn is acknowledged.
void alb_stream_out_acked(struct alb_stream_out *out, alb_psn psn, alb_time now);
// Takes a report. What is before its cumulative PSN is acknowledged; returns false for one that is old or makes no
// sense.
bool alb_stream_out_report(struct alb_stream_out *out, const struct alb_csa_report *report, alb_time now);
// To be sent again, if it is in flight; the bytes that are not in flight any more are the caller's to release.
uint32_t alb_stream_out_mark_lost(struct alb_stream_out *out, alb_psn psn);
// The network has cut the packet down that it left in by that path, with that sequence. False: it did not last leave in
// that one, or is not in flight. Else it goes again, as if it had not left in it: nothing is to be concluded of its
// length, or of what else left then. *bytes: not in flight any more, which the caller releases.
bool alb_stream_out_trimmed(struct alb_stream_out *out, alb_psn psn, uint8_t path, alb_psn sequence, uint32_t *bytes);
// What left by that path and is settled now, but was not before that sequence, is lost, and to be sent again.
void alb_stream_out_lose_path(struct alb_stream_out *out, uint16_t path, alb_psn from, alb_time now);
// What is in flight counts no more toward the window: the peer has stopped the stream, others need not wait for it.
void alb_stream_out_uncharge(struct alb_stream_out *out);
// It does not go again after all: what has become of it is for the peer to say.
void alb_stream_out_leave(struct alb_stream_out *out, alb_psn psn);
// The peer has reported not to hold it, so long after it last left that the report is not an old one.
bool alb_stream_out_is_surely_missing(const struct alb_stream_out *out, alb_psn psn, alb_time now);
struct alb_loss_sending alb_stream_out_sending(const struct alb_stream_out *out);

// ---- csa_in.c: the receiving half -------------------------------------------------------------------------

void alb_stream_in_init(struct alb_stream_in *in, struct alb_csa *csa, bool is_response,
                        const struct alb_stream_in_ops *ops);
void alb_stream_in_begin(struct alb_stream_in *in, alb_psn first);
void alb_stream_in_stop(struct alb_stream_in *in);
enum alb_drop alb_stream_in_segment(struct alb_stream_in *in, const struct alb_csa_segment *segment, alb_time now);
// Tries again what waited for a receive, or for a transaction to end.
void alb_stream_in_retry(struct alb_stream_in *in, alb_time now);
// Something waits for a receive: posting one rings the bell.
void alb_csa_want_receive(struct alb_qp *qp);
// The peer says that it has sent everything before next.
void alb_stream_in_hear_end(struct alb_stream_in *in, alb_psn next, alb_time now);
static inline bool alb_stream_in_misses(const struct alb_stream_in *in)
{
    return in->cumulative != in->end;
}

// ---- csa_report.c -----------------------------------------------------------------------------------------

void alb_stream_in_owe_report(struct alb_stream_in *in);
void alb_stream_in_forget_report(struct alb_stream_in *in);
void alb_stream_in_fill_report(const struct alb_stream_in *in, struct alb_csa_report *report);
// That report leaves.
void alb_stream_in_reported(struct alb_stream_in *in);
// After something came: keeps the association's list of halves that miss something, and the tail timer.
void alb_stream_in_watch(struct alb_stream_in *in, alb_time now);
void alb_stream_in_on_tail(struct alb_deadline *deadline, alb_time now);
// Packets of a path are settled as lost: streams that miss something report it.
void alb_assoc_report_losses(struct alb_assoc_live *live);
void alb_assoc_arm_settle(struct alb_assoc_live *live, alb_time now);
void alb_assoc_on_settle(struct alb_deadline *deadline, alb_time now);

// ---- csa_probe.c ------------------------------------------------------------------------------------------

// The peer has not said for so long that it holds our answers that it may not want them any more.
bool alb_csa_has_given_up_answers(const struct alb_csa *csa);
void alb_stream_out_watch(struct alb_stream_out *out, alb_time now);
// The oldest segment probes, or a bare probe if the peer holds it.
void alb_stream_out_probe_oldest(struct alb_stream_out *out);
// Several probes have found no answer: nothing but probes leaves, and what is under way leaves the window to others.
bool alb_stream_out_is_silent(const struct alb_stream_out *out);
void alb_stream_out_on_probe(struct alb_deadline *deadline, alb_time now);

// ---- csa_requester.c, csa_answer.c: what the segments of a stream are -------------------------------------

enum alb_csa_fill {
    ALB_CSA_FILL_NONE,   // nothing to send now
    ALB_CSA_FILL_DONE,   // added a segment
    ALB_CSA_FILL_PACKET, // does not fit into this packet
    ALB_CSA_FILL_BATCH,  // does not fit into this batch
    ALB_CSA_FILL_WINDOW, // the window is closed
};

struct alb_csa_packet;

enum alb_csa_fill alb_csa_fill_request(struct alb_csa *csa, struct alb_csa_packet *packet, alb_time now);
// True if the segment of the request that leaves now asks for a report; that is remembered, so it has to leave.
bool alb_csa_asks_for_report(struct alb_csa *csa, const struct alb_send_wqe *wqe, bool is_last, bool is_again,
                             uint32_t cost_bytes);
// Likewise of an answer.
bool alb_csa_answer_asks_for_report(struct alb_csa *csa, bool is_last, uint32_t cost_bytes);
// The request that a segment belongs to that has left before, of those that have not completed, of which there is one.
struct alb_send_wqe *alb_csa_find_request(const struct alb_csa *csa, alb_psn psn);
// Adds a segment's frame, without its payload.
enum alb_csa_fill alb_csa_add_segment(struct alb_csa *csa, struct alb_csa_packet *packet, enum alb_csa_type type,
                                      const struct alb_csa_segment *segment, uint32_t refs, bool is_probe);
// The largest payload of a segment with such a frame header: it fills a packet.
uint32_t alb_csa_segment_payload(const struct alb_assoc *assoc, enum alb_csa_type type,
                                 const struct alb_csa_segment *segment);
// No request begins any more: asks for the report that one of those to come would have asked for.
void alb_csa_requester_drain(struct alb_csa *csa, alb_time now);
// Adds a bare probe.
enum alb_csa_fill alb_csa_send_probe(struct alb_stream_out *out, struct alb_csa_packet *packet);
enum alb_csa_fill alb_csa_fill_response(struct alb_csa *csa, struct alb_csa_packet *packet, alb_time now);
// Something of the request stream was acknowledged.
void alb_csa_on_acked(struct alb_csa *csa, alb_time now);
// Something of the response stream was.
void alb_csa_on_answers_acked(struct alb_csa *csa);
void alb_csa_stop_answering(struct alb_csa *csa);
// Cuts an answer into segments, before anything is executed or kept for it. INVALID_REQUEST: there are as many as were
// agreed (max_dest_rd_atomic), or it is too long; RNR: not before others have come.
enum alb_outcome alb_csa_cut_answer(const struct alb_csa *csa, struct alb_csa_answer *answer);
// Owes one that was cut.
void alb_csa_owe_answer(struct alb_csa *csa, const struct alb_csa_answer *answer);
// The requester holds all of the response stream before that PSN.
void alb_csa_forget_answers(struct alb_csa *csa, alb_psn acked);
void alb_csa_forget_all_answers(struct alb_csa *csa);
// Frames of a queue pair have left.
void alb_csa_count_frames(struct alb_qp *qp, uint32_t frames);
bool alb_csa_wants_answer(const struct alb_send_wqe *wqe);

// ---- csa_completer.c --------------------------------------------------------------------------------------

extern const struct alb_stream_in_ops alb_csa_completer_ops;
void alb_csa_retire(struct alb_csa *csa, alb_time now);
void alb_csa_fail(struct alb_csa *csa, enum alb_wc_status status, uint8_t syndrome, const char *reason, alb_time now);
void alb_csa_heard(struct alb_csa *csa, alb_time now);
// The request at that index of the send queue has left, all of it.
bool alb_csa_is_sent(const struct alb_csa *csa, uint32_t index);
// The peer has executed it, as a verdict shows.
void alb_csa_on_executed(struct alb_csa *csa, uint32_t index, alb_time now);
void alb_csa_on_syndrome(struct alb_csa *csa, uint8_t syndrome, alb_time now);
// How long silence may last before the queue pair fails; ALB_TIME_NEVER: for ever.
alb_time alb_csa_patience_ns(const struct alb_csa *csa);
void alb_csa_watch_life(struct alb_csa *csa, alb_time now);
void alb_csa_on_life(struct alb_deadline *deadline, alb_time now);
void alb_csa_on_rnr(struct alb_deadline *deadline, alb_time now);

// ---- csa_responder.c --------------------------------------------------------------------------------------

extern const struct alb_stream_in_ops alb_csa_responder_ops;
// The request at psn cannot be executed or answered: a NAK says why, and the queue pair is in error (9.9.3).
void alb_csa_refuse(struct alb_csa *csa, enum alb_outcome outcome, alb_psn psn, alb_time now);

// ---- csa_tx.c, csa_rx.c -----------------------------------------------------------------------------------

enum alb_build_result alb_assoc_build(struct alb_source *source, struct alb_tx_builder *builder, alb_time now);
void alb_assoc_pace(struct alb_deadline *deadline, alb_time now);
// A RoCE packet to a queue pair of csa: it takes none.
enum alb_drop alb_csa_rx_foreign(struct alb_qp *qp, const struct alb_packet *packet, alb_time now);
// A datagram to the engine's own QPN index.
enum alb_drop alb_csa_rx(struct alb_engine *engine, const struct alb_datagram *datagram, alb_time now);
