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
