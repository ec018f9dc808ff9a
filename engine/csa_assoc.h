// SPDX-License-Identifier: BSD-2-Clause
// An association of the transport csa: what two engines share, whatever queue pairs they have. It has the paths between
// them, the round-trip time, the window, and the lists of what waits to be sent in its packets.
#pragma once

#include "engine/credit.h"
#include "engine/csa_mtu.h"
#include "engine/csa_path.h"
#include "engine/csa_rest.h"
#include "engine/csa_trimmed.h"
#include "engine/dcqcn.h"
#include "engine/deadline.h"
#include "engine/policy.h"
#include "engine/scheduler.h"

struct alb_stream_out;

#define ALB_CSA_SEGMENT_OVERHEAD 96 // what a segment counts toward the window beside its payload

// One peer engine. 64 bytes, so that idle ones are cheap; what is needed only while packets come and go is in live.
struct alb_assoc {
    struct alb_addr peer;
    uint32_t next;               // in its bucket: index + 1
    uint32_t refs;               // queue pairs connected to it
    uint32_t peer_epoch;         // 0: not known
    uint32_t dead_epoch;         // the one before, which is over; 0: none
    alb_psn sequence;            // paths number their packets from the next one on when it wakes
    uint16_t payload_max;        // largest UDP payload of a packet to it, ICRC included
    uint16_t payload_limit;      // what the route carries, or, while that is not known, the engine
    struct alb_assoc_live *live; // NULL: idle
    uint32_t rtt_ns;             // when it last slept; 0: never measured
    uint8_t slot;                // the peer's process slot
    uint8_t local;               // our address: index in alb_csa_engine.locals
    uint8_t is_route_mtu : 1;    // payload_limit is the routes'
    uint8_t is_mtu_tried : 1;    // longer packets were tried at mtu_tried_at, and are not tried again for a while
    uint8_t is_mtu_sure : 1;     // since then the size in use was doubted, and has proved to work
    uint8_t mtu_tried_at;        // in units of 2^30 ns, modulo 256
    uint32_t rest;               // its record at rest, in units from the pool's start, plus 1; 0: none (csa_rest.c)
    uint32_t snapshot_bytes;     // of the pool, that answers to its READs have (csa_snapshot.c)
};

// What packets of the peer's take at least, from its clock's time to ours: so differences alone mean something, and
// those for a while only, since the clocks may drift apart.
struct alb_way_back {
    uint32_t least_ns[2]; // of the span before and of this one; of this one
    alb_path_tick since;  // when this span began; 0: none has
};

// The part of an association that exists while packets come and go, and for 50 to 100 ms afterwards. From the engine's
// pool.
struct alb_assoc_live {
    struct alb_assoc *assoc;
    struct alb_engine *engine;
    struct alb_source source;
    struct alb_list link;        // in alb_csa_engine.live
    struct alb_list ready;       // of struct alb_stream_out: they may have something to send
    struct alb_list waiting;     // of struct alb_stream_out: the window holds them back
    uint32_t in_line;            // streams in these two
    bool is_shut;                // something did not fit into the window since it last opened
    struct alb_list reports;     // of struct alb_stream_in: their report is due
    struct alb_list open;        // of struct alb_stream_in: they miss something
    struct alb_list reflections; // of struct alb_reflect_source: commands and verdicts to send
    struct alb_congestion congestion;
    uint64_t inflight_bytes;
    uint32_t credit_bytes; // the peer's grant: that we may have in flight; ALB_CSA_CREDIT_NONE: any number
    // Since the congestion policy was last called: arrived after alb_stream_out_uncharge had given them back.
    uint32_t late_bytes;
    struct alb_credit_in credit_in; // for what we grant the peer
    // Since the congestion policy was last called: the least sample (0: none), the least of them without what reports
    // have waited, and packets that the peer has reported.
    uint32_t rtt_sample_ns, there_sample_ns, news_received, news_marked, news_lost;
    struct alb_way_back way_back;
    struct alb_paths_out *paths;
    struct alb_path_in *paths_in;            // by path number, grown when a larger one comes; NULL: none has come
    uint32_t paths_in_count;                 // a power of two
    alb_path_tick heard_at;                  // when the peer's newest packet came (csa_hearing.c)
    struct alb_path_set paths_in_gaps;       // incoming paths that have a gap (alb_assoc_note_path_in)
    struct alb_path_set paths_in_news;       // to be reported to the peer
    uint32_t rtt_ns, rtt_var_ns, rtt_min_ns; // smoothed; mean deviation; least (0: none was measured since it woke)
    uint32_t rtt_newest_ns;                  // the largest in the newest paths frame that had one
    uint32_t rtt_newest_at;                  // then, ns modulo 2^32
    alb_path_tick ask_from; // what is silent may be heard of before that without a probe (csa_hearing.c)
    uint32_t peer_rtt_ns;   // what the peer has measured; 0: it has not said
    uint8_t share;          // how strongly to answer signs of congestion, by the peer (alb_credit_share); 0: not known
    bool reports_wait;      // on their way to us, for half of a round trip or more
    uint8_t reports_queued; // of so many more it is thought that more of them would wait for each other
    bool paths_are_due;     // a paths frame goes with the next packet
    alb_time paths_sent_at; // when one last went that no report asked for
    bool cnp_is_due;        // a congestion notification
    bool trimmed_is_due;    // there is something in trimmed
    bool window_limited;    // the window, and not the credit, has held something back since the policy was called
    uint8_t asked;          // probes since the peer fell silent as a whole (csa_hearing.c)
    bool is_used;           // since the last sweep
    uint16_t pong_bytes;    // a PONG of that size is due; 0: none is
    struct alb_mtu_search *mtu_search; // NULL: no sizes are tried
    struct alb_dcqcn_np np;
    struct alb_deadline settle_timer;
    struct alb_deadline pace_timer;
    uint32_t epoch;                // ours, for this peer
    struct alb_trimmed_in trimmed; // what is to be reported to the peer; last, since it is rarely looked at
};

// ---- csa_assoc.c ----------------------------------------------------------------------------------------------------

// The association with the peer engine of that slot, made if need be, with one reference more: the caller owes an
// alb_assoc_put. NULL: the table is full, or that of the engine's own addresses.
struct alb_assoc *alb_assoc_get(struct alb_engine *engine, const struct alb_addr *local, const struct alb_addr *peer,
                                uint8_t slot);
// Likewise, but neither made nor referenced; NULL: there is none.
// Our epoch for that peer.
uint32_t alb_assoc_epoch(const struct alb_csa_engine *csa, const struct alb_assoc *assoc);
struct alb_assoc *alb_assoc_find(struct alb_engine *engine, const struct alb_addr *local, const struct alb_addr *peer,
                                 uint8_t slot);
// Gives a reference back; with the last one the association ends. It must have nothing in flight or to send then.
void alb_assoc_put(struct alb_engine *engine, struct alb_assoc *assoc);
// The peer's instance of the present epoch is over: what was learned of it is forgotten, and the association belongs to
// the instance of that epoch; 0: not known yet. Queue pairs and streams are the caller's (csa_admit.c).
void alb_assoc_restart(struct alb_engine *engine, struct alb_assoc *assoc, uint32_t epoch);

// ---- csa_live.c -----------------------------------------------------------------------------------------------------

// The live part, made if need be, with what the association remembers of before. NULL: the pool is empty.
struct alb_assoc_live *alb_assoc_wake(struct alb_engine *engine, struct alb_assoc *assoc);
// Gives it back to the pool. Nothing may be in flight, waiting, or owed. Remembered are the round-trip time and the
// paths' number; the rest is alb_rest_begin's, which the caller calls before.
void alb_assoc_sleep(struct alb_assoc_live *live);
// The sweep timer: those sleep that have not been used since it last fired; senders without memory try again.
void alb_assoc_on_sweep(struct alb_deadline *deadline, alb_time now);
// alb_assoc_wake has returned NULL for that sender: it is woken again at the next sweep.
void alb_assoc_starve(struct alb_engine *engine, struct alb_stream_out *out);

// ---- csa_assoc_path.c -----------------------------------------------------------------------------------------------

// The incoming path of that number, made if need be; valid until the next call. NULL: the pool is empty, or there can
// be no such path.
struct alb_path_in *alb_assoc_path_in(struct alb_assoc_live *live, uint8_t path);
// To be called after each change of an incoming path: files it among those with gaps, and with news.
void alb_assoc_note_path_in(struct alb_assoc_live *live, uint32_t path);
// The peer has reported all of its news of the paths in scope: what left by one that they say nothing of may be lost,
// and then goes again.
void alb_assoc_judge_paths(struct alb_assoc_live *live, const struct alb_path_scope *scope, alb_time now);

// ---- csa_hearing.c --------------------------------------------------------------------------------------------------

// A packet of the peer's has come.
void alb_assoc_heard(struct alb_assoc_live *live, alb_time now);
// A stream sends a probe, which silence_ns should be enough to answer.
void alb_assoc_asked(struct alb_assoc_live *live, alb_time silence_ns, alb_time now);
// When a stream should probe that is due, and whose silence_ns is that.
alb_time alb_assoc_ask_at(const struct alb_assoc_live *live, alb_time due, alb_time silence_ns, alb_time now);

// ---- csa_stats.c ----------------------------------------------------------------------------------------------------

// Writes what there is to be seen of the association into its entry of config.peer_stats, if it has one.
void alb_assoc_show(const struct alb_engine *engine, const struct alb_assoc *assoc);
// It ends: the entry is free.
void alb_assoc_hide(const struct alb_engine *engine, const struct alb_assoc *assoc);

// ---- csa_rtt.c ------------------------------------------------------------------------------------------------------

// A round-trip time was measured; several at one moment are of one paths frame. back_ns: of it, what that frame has
// waited.
void alb_assoc_on_rtt(struct alb_assoc_live *live, uint32_t rtt_ns, uint32_t back_ns);
// How long a packet of the peer's that took so long has waited in queues on its way. For as much as it may have lain
// unread it may have waited for a busy host instead, and flows share a queue evenly only if they see the same of it:
// that counts only if the peer's data is not little beside ours, so that there is a queue.
uint32_t alb_assoc_waited_ns(struct alb_assoc_live *live, uint32_t took_ns, uint32_t unread_ns, alb_time now);
// How long a packet of the peer's has waited on its way: took_ns, by both clocks modulo 2^32, beyond the least of late.
uint32_t alb_way_back_waited_ns(struct alb_way_back *back, uint32_t took_ns, alb_time now);
// The round-trip time to reckon with: ours, else the peer's, else 1 ms.
uint32_t alb_assoc_rtt_ns(const struct alb_assoc *assoc);
// How long after its expected time something may come without counting as late.
uint32_t alb_assoc_margin_ns(const struct alb_engine *engine, const struct alb_assoc *assoc);

// ---- csa_window.c ---------------------------------------------------------------------------------------------------

// True if so many bytes more may be in flight; always true for the first ones, so that nothing waits for ever.
bool alb_assoc_permits(const struct alb_assoc_live *live, uint32_t bytes);
// How many bytes more fit; the first ones may go though they do not.
uint64_t alb_assoc_room_bytes(const struct alb_assoc_live *live);
// How many may be in flight, or leave in a round trip, where the congestion policy sets a rate.
uint32_t alb_assoc_flow_bytes(const struct alb_assoc_live *live);
// So many bytes are in flight, charged by segment: payload plus ALB_CSA_SEGMENT_OVERHEAD.
void alb_assoc_charge(struct alb_assoc_live *live, uint32_t bytes);
// So many bytes that were charged are not in flight any more. Lets waiting senders try again.
void alb_assoc_release(struct alb_assoc_live *live, uint32_t bytes);
// So many charged bytes have reached the peer: calls the congestion policy. Before they are released.
void alb_csa_note_landed(struct alb_assoc_live *live, uint32_t bytes, alb_time now);
// True if a stream has sent so many bytes without asking for a report that one is due: a few times in a window (or a
// round trip at the policy's rate: a sender that is paced must not take it for silence that it has not asked), and
// where there are many paths more often, so that the choice among them knows of the last packets of most, and where the
// window is paced, so that its room comes in pieces as small, unless reports wait for each other. Streams that
// share the window share this, too: what none of them asks about would keep it closed, and each would take its long
// wait for the next turn for silence.
static inline bool alb_assoc_report_is_due(const struct alb_assoc_live *live, uint32_t unasked_bytes)
{
    uint32_t few = live->congestion.is_paced && live->reports_queued == 0 ? 16 : 4;
    uint32_t times = ALB_MAX(few, live->paths->count / 2u) * ALB_MAX(live->in_line, 1u);
    // unasked_bytes >= flow_bytes / times, without a division
    return (unasked_bytes + 1ull) * times > alb_assoc_flow_bytes(live);
}
// True if the window has no room for another segment behind one that is charged so much, so that a report has to be
// asked for with it. But where reports wait on their way one for each segment would never let them get ahead.
static inline bool alb_assoc_closes(const struct alb_assoc_live *live, uint32_t cost_bytes)
{
    uint32_t window_bytes = ALB_MIN(live->congestion.window_bytes, live->credit_bytes);
    return live->inflight_bytes + 2 * (uint64_t)cost_bytes > window_bytes && !live->reports_wait;
}
// The grant to write into a packet to the peer: how many bytes it may have in flight to us; ALB_CSA_CREDIT_NONE: any.
uint32_t alb_assoc_credit(struct alb_assoc_live *live, alb_time now);
// A packet of so many bytes has come from the peer: for the credit policy.
void alb_assoc_note_received(struct alb_assoc_live *live, uint32_t bytes, alb_time now);
// So many bytes of that message of the peer are still to come: for the credit policy "shortest".
void alb_assoc_note_rest(struct alb_assoc_live *live, struct alb_credit_message *message, uint64_t bytes, alb_time now);
