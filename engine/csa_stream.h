// SPDX-License-Identifier: BSD-2-Clause
// A stream of the transport csa: a sequence of segments, numbered by PSN, from one queue pair to another. Its sending
// half keeps a record of each segment that is not acknowledged, its receiving half keeps what it holds. A connected
// queue pair has two of each: requests and answers.
#pragma once

#include "engine/credit.h"
#include "engine/csa_early.h"
#include "engine/csa_line.h"
#include "engine/csa_loss.h"
#include "engine/deadline.h"
#include "engine/inbound.h"
#include "wire/csa.h"

struct alb_assoc_live;
struct alb_csa;
struct alb_qp;

// ---- the sending half -----------------------------------------------------------------------------------------------

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
    uint16_t bytes;           // of the packet that it left in, charged to the window
    uint8_t state : 5;        // enum alb_sent_state
    uint8_t is_uncharged : 1; // they were given back since, although it may still arrive
    uint8_t is_wide : 1;      // it left in a packet longer than the path was believed to carry (csa_mtu.h)
    uint8_t is_full : 1;      // in one as long as that
    uint8_t times;            // how often it has left
};

#define ALB_STREAM_OUT_OWN     4 // records that need no memory of the pool
#define ALB_PROBES_OF_PATIENCE 2 // unanswered: then the window is left to others

struct alb_stream_out {
    struct alb_csa *csa;
    struct alb_list link;      // in the association's ready or waiting, or in the engine's starved
    enum alb_line_place place; // in the former two
    bool is_response;
    bool has_report;
    uint16_t report_number; // of the newest report
    uint8_t report_page;    // of that report's bitmap, the last one that came
    uint8_t turn_left;      // packets of a turn that the end of a burst cut; 0: none did
    uint16_t room;          // PSNs from una on that the peer is believed to have room for; UINT16_MAX: any number
    alb_psn una, next;      // the oldest that is not acknowledged; the first that was never sent
    uint32_t capacity;      // a power of two
    struct alb_sent *sent;  // ring by PSN: own, or from the pool
    struct alb_sent own[ALB_STREAM_OUT_OWN];
    uint32_t lost_count;
    alb_psn lost_from;       // no lost one is before it
    uint32_t inflight_bytes; // charged to the window
    uint32_t probes;         // sent since the peer last acknowledged or answered something
    bool probe_is_due;       // a probe without a segment, since nothing is there to be sent again
    bool has_probe_psn;      // the segment at probe_psn goes again, whatever the window says
    alb_psn probe_psn;
    uint32_t judged_in;     // number of the packet whose reports were judged by last
    alb_psn judged_until;   // by them: one past the last that was
    alb_psn turn_psn;       // the first of the message whose turn began
    alb_time turn_began;    // then; for credit policies that prefer the short ones (csa_turn.c)
    uint32_t unasked_bytes; // sent since a report was last asked for
    alb_time sent_at;       // when something last left
    alb_time wide_since;    // when a segment last came to be lost as often as makes its length suspicious (csa_mtu.h)
    alb_time reported_at;   // when the peer last said what it holds
    struct alb_deadline probe_timer;
};

// csa_out.c

// Once; memory of the pool is taken as it is needed.
void alb_stream_out_init(struct alb_stream_out *out, struct alb_csa *csa, bool is_response);
// Forgets all that is not acknowledged, releases it from the window, and gives memory back to the pool.
void alb_stream_out_stop(struct alb_stream_out *out);
// The first segment will have that PSN; nothing is in flight.
void alb_stream_out_begin(struct alb_stream_out *out, alb_psn first);
// The record of a PSN from una to next - 1; of another one it is some other's.
static inline struct alb_sent *alb_stream_out_at(const struct alb_stream_out *out, alb_psn psn)
{
    return &out->sent[psn & (out->capacity - 1)];
}
// Segments that are not acknowledged, held or not.
static inline uint32_t alb_stream_out_count(const struct alb_stream_out *out)
{
    return (uint32_t)alb_psn_diff(out->next, out->una);
}
// Makes room for the record of one more new segment. False: the peer has no room for it, as many as there may be are
// unacknowledged, or the pool is empty.
bool alb_stream_out_has_room(struct alb_stream_out *out);
// *psn: the segment that goes again as a probe. False: none does, or the peer has it by now, and none is due any more.
bool alb_stream_out_take_probe(struct alb_stream_out *out, alb_psn *psn);
// *psn: the next segment to be sent again. False: none is lost, or the peer has no room for it. Does not take it off:
// alb_stream_out_sent does.
bool alb_stream_out_next_lost(struct alb_stream_out *out, alb_psn *psn);
// The segment at psn leaves in the packet of that sequence on that path: a new one if psn is next, else one that was
// lost. bytes: what it counts toward the window, from which they are taken.
void alb_stream_out_sent(struct alb_stream_out *out, alb_psn psn, uint32_t bytes, uint16_t path, alb_psn sequence,
                         alb_time now);
// All that there is to send has left.
bool alb_stream_out_is_at_end(const struct alb_stream_out *out);
// There may be something to send: the association's turn with the scheduler comes. A probe does not wait for the
// window.
void alb_stream_out_wake(struct alb_stream_out *out);
// True if a report may say that everything before psn is executed.
static inline bool alb_stream_out_can_be_acked(const struct alb_stream_out *out, alb_psn psn)
{
    return alb_psn_is_within(psn, out->una, alb_stream_out_count(out) + 1);
}
// Everything before psn is acknowledged; alb_stream_out_can_be_acked holds.
void alb_stream_out_acked(struct alb_stream_out *out, alb_psn psn, alb_time now);
// The segment is to be sent again, if it is in flight. Returns the bytes that are in flight no more: the caller passes
// them to alb_assoc_release.
uint32_t alb_stream_out_mark_lost(struct alb_stream_out *out, alb_psn psn);
// A switch has cut the payload from the packet that the segment left in, by that path and with that sequence. False:
// the segment did not last leave in that one, or is not in flight. Else it is to be sent again, and that transmission
// is not counted, since it says nothing of the path MTU. Adds to *bytes what is in flight no more: the caller releases
// it.
bool alb_stream_out_trimmed(struct alb_stream_out *out, alb_psn psn, uint8_t path, alb_psn sequence, uint32_t *bytes);
// What left by that path with that sequence or a later one, and is settled by now, is lost, and to be sent again.
void alb_stream_out_lose_path(struct alb_stream_out *out, uint16_t path, alb_psn from, alb_time now);
// What is in flight counts toward the window no more: the peer takes nothing for now, and other streams need not wait.
// What arrives after all still makes the window grow.
void alb_stream_out_uncharge(struct alb_stream_out *out);
// A lost segment is not sent again after all, and counts as in flight with no bytes, until the peer reports.
void alb_stream_out_leave(struct alb_stream_out *out, alb_psn psn);
// True if the peer has reported that it does not hold the segment, so long after that last left that the report must
// have been written later.
bool alb_stream_out_is_surely_missing(const struct alb_stream_out *out, alb_psn psn, alb_time now);
// True if the oldest segment has become too long for the path.
bool alb_stream_out_is_wide(const struct alb_stream_out *out);
// Likewise, and it is lost however often it leaves, and has been for a while.
bool alb_stream_out_is_stuck(const struct alb_stream_out *out, alb_time now);
// The peer has it: takes a segment out of flight. Returns the bytes that are in flight no more: the caller releases
// those of all segments together.
uint32_t alb_stream_out_arrived(struct alb_stream_out *out, struct alb_sent *sent);
// Likewise all before psn, which are acknowledged.
uint32_t alb_stream_out_take_cumulative(struct alb_stream_out *out, alb_psn psn);
// Nothing is unacknowledged: the records' memory goes back to the pool.
void alb_stream_out_give_back(struct alb_stream_out *out);

// csa_judge.c

// Takes a report. What is before its cumulative PSN is acknowledged; returns false for one that is old or makes no
// sense.
bool alb_stream_out_report(struct alb_stream_out *out, const struct alb_csa_report *report, alb_time now);
// The state of the stream as loss policies see it; is_nak and is_overdue are the report's, and false here.
struct alb_loss_sending alb_stream_out_sending(const struct alb_stream_out *out);

// csa_probe.c

// True if so many probes for our answers went without one that the peer may not want them any more.
bool alb_csa_has_given_up_answers(const struct alb_csa *csa);
// After something was sent or reported: keeps the probe timer armed while something is owed to us.
void alb_stream_out_watch(struct alb_stream_out *out, alb_time now);
// A probe is due with the oldest segment, or without one if the peer holds it. Disarms the timer: the caller watches.
void alb_stream_out_probe_oldest(struct alb_stream_out *out);
// True if several probes have found no answer: nothing but probes leaves then, and what is in flight is not charged.
static inline bool alb_stream_out_is_silent(const struct alb_stream_out *out)
{
    return out->una != out->next && out->probes > ALB_PROBES_OF_PATIENCE && out->reported_at < out->sent_at;
}
// If the stream is stuck, which only shows now and then: the queue pair fails. False: it is not.
bool alb_stream_out_fail_stuck(struct alb_stream_out *out, alb_time now);
// The probe timer: sends a probe, or all again, by the loss policy.
void alb_stream_out_on_probe(struct alb_deadline *deadline, alb_time now);

// ---- the receiving half ---------------------------------------------------------------------------------------------

#define ALB_STREAM_IN_OWN 64 // segments that need no memory of the pool

struct alb_stream_in;

// What a receiving half does with messages: the responder's (requests) and the completer's (answers) part. What comes
// out is ALB_OUTCOME_OK; RNR, and it is tried again later; or why the queue pair fails, after which refuse is called.
struct alb_stream_in_ops {
    // The message that the segment belongs to is next: may it be executed? Called again after RNR.
    enum alb_outcome (*begin)(struct alb_csa *csa, const struct alb_csa_segment *segment, alb_time now);
    // Places the payload at that offset of the message; called for the last segment of a message last.
    enum alb_outcome (*place)(struct alb_csa *csa, const struct alb_csa_segment *segment, uint32_t offset,
                              alb_time now);
    // Room from that offset on for more segments of the message that this one belongs to, but its last. False: place
    // sees to each. NULL: it always does.
    bool (*place_begin)(struct alb_csa *csa, const struct alb_csa_segment *segment, uint32_t offset,
                        struct alb_room *room);
    // Likewise before the turn of its message, where order does not matter. False: it must wait. NULL: they all must.
    bool (*place_early)(struct alb_csa *csa, const struct alb_csa_segment *segment, uint32_t offset);
    // All of the message is placed.
    enum alb_outcome (*end)(struct alb_csa *csa, const struct alb_csa_segment *last, alb_time now);
    // The message cannot be executed: the queue pair goes to its error state. Never for RNR.
    void (*refuse)(struct alb_csa *csa, enum alb_outcome outcome, alb_psn psn, alb_time now);
};

struct alb_stream_in {
    struct alb_csa *csa;
    const struct alb_stream_in_ops *ops;
    struct alb_list report_link; // its report is due
    struct alb_list open_link;   // it misses something
    bool is_response;
    bool is_open;           // a message has begun and has not ended
    bool waits_rnr;         // for a receive, or for memory that a transaction has
    bool has_dropped;       // something before its turn was dropped, and what is next has not come since
    bool is_overdue;        // the next report says so
    bool owes_nak;          // the next report says that something was dropped before its turn
    uint16_t report_number; // of the last one that left
    uint8_t syndrome;       // AETH: what the next one says besides
    bool is_full;           // something was dropped for lack of room; the next report says so
    alb_psn cumulative;     // all before is executed
    alb_psn end;            // one past the newest that the peer is known to have, sent or not
    alb_psn highest;        // one past the newest that is held
    uint32_t capacity;      // bits
    uint64_t *held;         // ring by PSN: own, or from the pool
    uint64_t own[ALB_STREAM_IN_OWN / 64];
    uint32_t early_bytes;   // of the pool, that early has
    struct alb_list early;  // of struct alb_early: held before their turn, by PSN
    alb_psn first, past;    // of the open message: its first PSN, one past its last
    uint32_t segment_bytes; // of each of its segments but the last; 0: not known yet
    uint32_t total_bytes;
    uint8_t op;                        // enum alb_csa_op
    uint8_t refused_as;                // enum alb_drop: as what the segment counts that the queue pair failed by
    uint32_t placed;                   // its segments that have been
    struct alb_credit_message message; // for the credit policy
    alb_time came_at;                  // when something last came
    alb_time asked_at;                 // when a report last asked for the tail, or for a hole
    alb_psn asked_psn;                 // cumulative, when it was for a hole
    bool has_asked;                    // asked_psn is valid
    uint32_t gap_ns;                   // between arrivals, smoothed
    uint32_t asks;                     // for the tail, since something came
    uint32_t tried_in;                 // number of the packet in which it was last seen that it waits
    alb_psn tried_psn;                 // for what that segment needs
    struct alb_deadline tail_timer;
};

// csa_in.c

// Once; memory of the pool is taken as it is needed.
void alb_stream_in_init(struct alb_stream_in *in, struct alb_csa *csa, bool is_response,
                        const struct alb_stream_in_ops *ops);
// The first segment will have that PSN.
void alb_stream_in_begin(struct alb_stream_in *in, alb_psn first);
// Forgets what is held and waits for its turn, and gives memory back to the pool. A report that is due still goes:
// alb_stream_in_forget_report.
void alb_stream_in_stop(struct alb_stream_in *in);
// Takes a segment that has come: placed, or kept until its turn (the payload is copied). What it makes due - a report,
// a completion - is noted. Returns ALB_DROP_NONE, or why it was dropped. After ALB_DROP_BAD_REQUEST the queue pair is
// in error.
enum alb_drop alb_stream_in_segment(struct alb_stream_in *in, const struct alb_csa_segment *segment, alb_time now);
// Tries again what waited for a receive, or for a transaction to end. Frames of a packet do so, too, but together only
// once.
void alb_stream_in_retry(struct alb_stream_in *in, alb_time now);
// A request waits for a receive: the next one that is posted rings the engine's bell, and so does one that is there.
void alb_csa_want_receive(struct alb_qp *qp);
// The peer says that it has, or will have, segments up to next - 1, and asks: what waits is tried again, and a report
// is due. A number that cannot be is ignored.
void alb_stream_in_probed(struct alb_stream_in *in, alb_psn next, alb_time now);
// True if something that the peer has is not held, or waits for its turn.
static inline bool alb_stream_in_misses(const struct alb_stream_in *in)
{
    return in->cumulative != in->end;
}

// csa_report.c

// A report is due, and leaves with the association's next packet. Nothing happens if the pool is empty: the peer asks.
void alb_stream_in_owe_report(struct alb_stream_in *in);
// None is due any more.
void alb_stream_in_forget_report(struct alb_stream_in *in);
// How many pages of bitmap it takes to say all, or fit into so many bytes; 1 at least.
uint32_t alb_stream_in_report_pages(const struct alb_stream_in *in, uint32_t room_bytes);
// What a page of a report would say now; *report is overwritten. Changes nothing, since it may not fit into the packet.
void alb_stream_in_fill_report(const struct alb_stream_in *in, uint32_t page, struct alb_csa_report *report);
// The report whose pages alb_stream_in_fill_report has filled leaves.
void alb_stream_in_reported(struct alb_stream_in *in);
// After something came: keeps the association's list of halves that miss something, and the tail timer.
void alb_stream_in_watch(struct alb_stream_in *in, alb_time now);
// The tail timer: asks for what is overdue, ever more rarely, and after a while leaves it to the sender.
void alb_stream_in_on_tail(struct alb_deadline *deadline, alb_time now);
// Packets of a path are settled as lost: streams that miss something report it.
void alb_assoc_report_losses(struct alb_assoc_live *live);
// Arms the settle timer for the first gap of an incoming path that will count as lost.
void alb_assoc_arm_settle(struct alb_assoc_live *live);
// The settle timer: gaps that are old enough are settled as lost, and reported.
void alb_assoc_on_settle(struct alb_deadline *deadline, alb_time now);
