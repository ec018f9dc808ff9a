// SPDX-License-Identifier: BSD-2-Clause
// The paths of one association. A path is a source port, and packets of one path arrive in the order they left, unless
// the network shows otherwise. Out: which path the next burst takes, and what is known of each. In: which packets of a
// path have come, and which gaps are settled (lost for good).
#pragma once

#include "engine/policy.h"
#include "wire/csa.h"

#define ALB_PATHS_MAX 64

// ---- out --------------------------------------------------------------------------------------------------

enum alb_path_state {
    ALB_PATH_GOOD,
    ALB_PATH_LEFT,   // loses, drops or slows: carries nothing but a packet now and then that tries it
    ALB_PATH_TRYING, // such a packet is under way
};

struct alb_path_out {
    alb_psn next;    // sequence number of the next packet
    alb_psn settled; // as the peer last said
    bool has_settled;
    uint8_t state; // enum alb_path_state
    uint32_t inflight_bytes;
    uint32_t rtt_ns, rtt_min_ns, rtt_var_ns;          // smoothed; 0: not measured
    uint32_t last_echo;                               // newest timestamp that was echoed
    uint32_t received_seen, marked_seen;              // the peer's counters when last heard
    uint32_t recent_sent, recent_lost, recent_marked; // packets, halved from time to time
    alb_time try_at;                                  // LEFT: when to try it again
};

struct alb_paths_out {
    uint32_t count;   // of path[]
    uint32_t current; // the one chosen last
    struct alb_path_out path[];
};

// What one entry of a paths frame told.
struct alb_path_news {
    uint32_t rtt_sample_ns;    // 0: nothing new
    uint32_t received, marked; // packets since the last entry
    bool is_newer;             // settled has moved
};

// next: the sequence number that every path begins with.
void alb_paths_out_init(struct alb_paths_out *paths, uint32_t count, alb_psn next);
// The path of the next burst; segments of it are sent with consecutive sequence numbers.
uint16_t alb_paths_choose(struct alb_paths_out *paths, const struct alb_path_ops *ops, uint32_t flow_hash,
                          uint32_t bytes, alb_time now);
// A packet leaves on that path: its sequence number.
alb_psn alb_path_sent(struct alb_paths_out *paths, uint16_t path, uint32_t bytes, alb_time now);
// bytes that left by it have been acknowledged, or are lost (packets of them), or given up.
void alb_path_acked(struct alb_paths_out *paths, uint16_t path, uint32_t bytes, alb_time now);
void alb_path_lost(struct alb_paths_out *paths, const struct alb_path_ops *ops, uint16_t path, uint32_t bytes,
                   uint32_t packets, alb_time now);
// Nothing has been heard that was sent by it for too long (a probe went unanswered).
void alb_path_silent(struct alb_paths_out *paths, const struct alb_path_ops *ops, uint16_t path, alb_time now);
// Takes the peer's word; entries of paths that are not ours are ignored (count 0 in news). timestamp_now: our clock as
// timestamps have it.
struct alb_path_news alb_path_heard(struct alb_paths_out *paths, const struct alb_path_ops *ops,
                                    const struct alb_csa_path_entry *entry, alb_time now);
// True if the peer has said that this packet has either come or is lost.
static inline bool alb_path_is_settled(const struct alb_paths_out *paths, uint16_t path, alb_psn sequence)
{
    const struct alb_path_out *out = &paths->path[path];
    return out->has_settled && alb_psn_is_before(sequence, out->settled);
}
// The largest sequence number in use, for an association that goes idle and begins again behind it.
alb_psn alb_paths_out_last(const struct alb_paths_out *paths);
static inline size_t alb_paths_out_bytes(uint32_t count)
{
    return sizeof(struct alb_paths_out) + count * sizeof(struct alb_path_out);
}

// ---- in ---------------------------------------------------------------------------------------------------

struct alb_path_in {
    bool is_known;
    bool has_news;        // something came since it was last reported
    alb_psn settled;      // everything before has come or is lost
    alb_psn highest;      // one past the newest that came
    uint64_t came;        // bit i: settled + i has come (bit 0 never set at rest)
    alb_time gap_since;   // when the gap at settled was first seen, 0: there is none
    uint32_t lateness_ns; // how late packets have been after younger ones; how long a gap waits to be settled
    uint32_t newest_timestamp;
    alb_time newest_at;
    uint32_t received, marked;
};

enum alb_path_arrival {
    ALB_PATH_ARRIVAL_NEXT,  // as expected
    ALB_PATH_ARRIVAL_GAP,   // packets before it are missing (settled at once if the path has shown no lateness)
    ALB_PATH_ARRIVAL_LATE,  // fills a gap, or comes after its gap was settled
    ALB_PATH_ARRIVAL_AGAIN, // the same packet a second time, as far as can be told
};

// A packet came by this path. *lost: how many packets this settled as lost.
enum alb_path_arrival alb_path_in_packet(struct alb_path_in *in, alb_psn sequence, uint32_t timestamp, bool is_marked,
                                         alb_time now, uint32_t *lost);
// When the oldest gap is due to be settled; ALB_TIME_NEVER if there is none.
alb_time alb_path_in_deadline(const struct alb_path_in *in);
// Settles what is due; returns how many packets are lost by that.
uint32_t alb_path_in_settle(struct alb_path_in *in, alb_time now);
// What a paths frame says of it.
void alb_path_in_entry(const struct alb_path_in *in, uint8_t path, alb_time now, struct alb_csa_path_entry *entry);
