// SPDX-License-Identifier: BSD-2-Clause
// A stream of the transport csa: a sequence of segments, numbered by PSN, from one queue pair to another. Its sending
// half keeps a record of each segment that is not acknowledged, its receiving half keeps what it holds. A connected
// queue pair has two of each: requests and answers.
#pragma once

#include "engine/csa_early.h"
#include "engine/csa_loss.h"
#include "engine/deadline.h"
#include "engine/inbound.h"
#include "wire/csa.h"

struct alb_assoc_live;
struct alb_csa;
struct alb_qp;

// ---- the sending half -------------------------------------------------------------------------------------

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

#define ALB_STREAM_OUT_OWN 4 // records that need no memory of the pool

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

// csa_out.c

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

// csa_probe.c

// The peer has not said for so long that it holds our answers that it may not want them any more.
bool alb_csa_has_given_up_answers(const struct alb_csa *csa);
void alb_stream_out_watch(struct alb_stream_out *out, alb_time now);
// The oldest segment probes, or a bare probe if the peer holds it.
void alb_stream_out_probe_oldest(struct alb_stream_out *out);
// Several probes have found no answer: nothing but probes leaves, and what is under way leaves the window to others.
bool alb_stream_out_is_silent(const struct alb_stream_out *out);
void alb_stream_out_on_probe(struct alb_deadline *deadline, alb_time now);

// ---- the receiving half -----------------------------------------------------------------------------------

#define ALB_STREAM_IN_OWN 64 // segments that need no memory of the pool

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

// csa_in.c

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

// csa_report.c

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
