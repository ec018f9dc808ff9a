// SPDX-License-Identifier: BSD-2-Clause
// Policies, chosen by name per device: which packets of RC are lost (loss; those of csa: engine/csa_loss.h), how much
// may be in flight (congestion), which path a burst takes (path). Each is a table of functions over a small state that
// the user of the policy embeds. The policy "credit" is in engine/credit.h.
#pragma once

#include "base/types.h"
#include "wire/psn.h"

struct alb_engine_config;

// ---- loss -----------------------------------------------------------------------------------------------------------

// What a receiver does with a segment.
enum alb_loss_verdict {
    ALB_LOSS_ACCEPT,    // hand it on
    ALB_LOSS_REPORT,    // drop it and tell the sender what is missing
    ALB_LOSS_DROP,      // drop it silently
    ALB_LOSS_DUPLICATE, // has been accepted before
};

struct alb_loss_receiver {
    bool is_reported; // the gap in front of the expected segment has been reported
};

// Why a sender must decide what to send again.
enum alb_loss_cause {
    ALB_LOSS_NAK,     // the receiver misses something
    ALB_LOSS_GAP,     // an answer is missing
    ALB_LOSS_TIMEOUT, // nothing was received for too long
    ALB_LOSS_RNR,     // the receiver was not ready
    ALB_LOSS_TRIMMED, // a queue had no room for more than the headers (csa_trimmed.h)
};

struct alb_loss_sender {
    bool is_recovering; // a gap in the answers has been acted on, and nothing new was heard since
};

struct alb_loss_ops {
    const char *name;
    // distance: how far the segment is ahead of the one expected next, in segments; negative: behind.
    enum alb_loss_verdict (*on_segment)(struct alb_loss_receiver *receiver, int32_t distance);
    // The first segment to send again, in segments from the oldest one not acknowledged, or -1: none, it is under way.
    int32_t (*on_loss)(struct alb_loss_sender *sender, enum alb_loss_cause cause);
    // Something new was acknowledged.
    void (*on_progress)(struct alb_loss_sender *sender);
};

extern const struct alb_loss_ops alb_loss_go_back_n;

const struct alb_loss_ops *alb_loss_find(const char *name); // NULL: no such policy

// ---- congestion -----------------------------------------------------------------------------------------------------

// "aimd"
struct alb_aimd {
    uint32_t threshold_bytes; // below: grow by what is acknowledged; above: by about a segment a round
    uint32_t credit_bytes;    // acknowledged since it last grew
    uint32_t hold_bytes;      // bytes to be acknowledged before it may shrink again: once per round
};

// "window". Its bytes are counted: it is kept while an association rests, but for the end (engine/csa_rest.c).
struct alb_delay_window {
    uint32_t threshold_bytes; // below: slow start
    uint32_t rtt_ns;          // smoothed: how long a round lasts; 0: not measured
    uint32_t marked_part;     // smoothed
    // Of this round:
    uint32_t round_bytes; // acknowledged
    alb_time round_since;
    uint32_t packets, marked, lost;
    uint32_t least_ns; // smallest round-trip time that another one confirms
    uint32_t pressure; // smallest of all in parts of its target
    // The shortest round trip lately, and when it was seen last. A drain looks for it with half a window.
    uint32_t base_ns;
    alb_time base_at;
    uint32_t newest_ns; // sample
    union {
        struct {
            uint32_t drain_least_ns;
            uint32_t drain_base_ns, drain_window_bytes; // as they were before
        };
        struct {                        // while there is no drain: of the rounds in a row that took too long
            uint32_t pressed_most_ns;   // the longest of their least ones
            uint32_t pressed_before_ns; // the least one of the round before, since
            uint32_t quartered_at;      // 64 us each: since the window is a quarter of what it was; 0: it is not
        };
    };
    // Of the rounds before:
    uint32_t pressure_before;
    uint32_t judged, judged_lost; // packets since losses were last found to be congestion
    uint32_t calm_rounds;         // in a row that ended without a sign of congestion
    uint32_t unpressed_bytes;     // how far slow start would go, or the window, before rounds that took too long
    uint16_t pressed_rounds;      // in a row that took too long
    uint16_t ample_rounds;        // in a row with more than an even share
    uint16_t level_rounds;        // since the target was doubled or halved
    uint16_t overflow_rounds;     // since losses counted as an overflow
    uint8_t overflows : 4;
    uint8_t drain_rounds : 4; // left; 0: there is no drain now
    int8_t level_floor;       // the least that it may be
    int8_t level;             // how often it is doubled

    bool limited;         // this round
    uint8_t share;        // reported last (ALB_CSA_SHARE_EVEN)
    uint8_t host_load;    // of it, in parts of ALB_HOST_LOAD_ONE; 0: not known
    uint8_t young_rounds; // with a full window, up to the first drain
    uint8_t paced_rounds; // left; 0: the path's queue has room for what reports let go
    // Means nothing after a rest:
    uint32_t before_ns;   // of samples that came at another time than the newest, the newest
    uint32_t there_ns;    // rtt_ns without what reports have waited: our queues are in it, and no others
    uint32_t paced_until; // by then would have left what has, in units of 64 ns; only on a long path
    alb_time sample_at;
};

// "dcqcn"
struct alb_dcqcn {
    bool is_limited; // a CNP has come; else the rest means nothing
    uint16_t timer_steps, counter_steps;
    uint32_t alpha;
    uint32_t counted_bytes;
    uint64_t rate_bytes_per_s, target_bytes_per_s;
    int64_t credit_bytes; // what may leave now; below 0: what left too early
    alb_time earned_until, cut_at, alpha_at, increase_at;
    alb_time used_at; // when anything last happened, or was asked
};

// What may be in flight toward one peer, and when.
struct alb_congestion {
    const struct alb_engine_config *config;
    uint32_t window_bytes;
    bool is_paced; // bursts of a window do not leave at once: reports are to come as often
    union {
        struct alb_aimd aimd;
        struct alb_delay_window window;
        struct alb_dcqcn dcqcn;
    };
};

// What the peer has reported.
struct alb_ack {
    uint32_t bytes;           // no longer in flight, since they have come
    bool limited;             // the window, not the program, bounded what was in flight; else it does not grow
    uint32_t rtt_ns;          // newest round-trip time of a path; 0: not measured
    uint32_t back_ns;         // of it, what reports have waited on their way back, where nothing of ours waits
    uint32_t packets, marked; // packets that have come since its last report, and those with an ECN mark
    uint32_t lost;            // packets that are settled as lost since then
    uint8_t host_load;        // alb_engine_note_host_load
    uint8_t share; // how strongly to answer signs of congestion (ALB_CSA_SHARE_EVEN); 0: not given, as to the only one
};

// Functions that a policy does not need are NULL, except init.
struct alb_congestion_ops {
    const char *name;
    bool needs_feedback; // round-trip times, marks, a pacer: a transport without them cannot have this policy
    bool wants_cnp;      // a receiver of marked packets sends congestion notification packets (engine/dcqcn.h)
    void (*init)(struct alb_congestion *congestion, const struct alb_engine_config *config);
    void (*on_sent)(struct alb_congestion *congestion, uint32_t bytes, alb_time now);
    void (*on_ack)(struct alb_congestion *congestion, const struct alb_ack *ack, alb_time now);
    // inflight_bytes: with those that are lost.
    void (*on_loss)(struct alb_congestion *congestion, uint32_t inflight_bytes, uint32_t lost_bytes,
                    enum alb_loss_cause cause, alb_time now);
    // A burst has left: so much of it counts as in flight, which reports and unreliable messages do not.
    void (*on_burst)(struct alb_congestion *congestion, uint32_t bytes, alb_time now);
    // The peer, or one of its packets, signals congestion without saying how much.
    void (*on_mark)(struct alb_congestion *congestion, uint32_t inflight_bytes, alb_time now);
    // When to ask again whether a burst may leave; now or before: it may.
    alb_time (*send_at)(struct alb_congestion *congestion, alb_time now);
    // How fast bursts may leave; 0: as fast as they can.
    uint64_t (*rate_bytes_per_s)(const struct alb_congestion *congestion);
};

extern const struct alb_congestion_ops alb_congestion_aimd;   // slow start, additive growth, halved by losses and marks
extern const struct alb_congestion_ops alb_congestion_window; // by round-trip times and the share of marks
extern const struct alb_congestion_ops alb_congestion_dcqcn;  // a rate, cut by CNPs
extern const struct alb_congestion_ops alb_congestion_fixed;  // window_max_bytes always
extern const struct alb_congestion_ops alb_congestion_none;   // no bound

// Each calls the policy's function, if it has one.
static inline void alb_congestion_on_sent(const struct alb_congestion_ops *ops, struct alb_congestion *congestion,
                                          uint32_t bytes, alb_time now)
{
    if (ops->on_sent)
        ops->on_sent(congestion, bytes, now);
}

static inline void alb_congestion_on_burst(const struct alb_congestion_ops *ops, struct alb_congestion *congestion,
                                           uint32_t bytes, alb_time now)
{
    if (ops->on_burst)
        ops->on_burst(congestion, bytes, now);
}

static inline void alb_congestion_on_ack(const struct alb_congestion_ops *ops, struct alb_congestion *congestion,
                                         const struct alb_ack *ack, alb_time now)
{
    if (ops->on_ack)
        ops->on_ack(congestion, ack, now);
}

static inline void alb_congestion_on_loss(const struct alb_congestion_ops *ops, struct alb_congestion *congestion,
                                          uint32_t inflight_bytes, uint32_t lost_bytes, enum alb_loss_cause cause,
                                          alb_time now)
{
    if (ops->on_loss)
        ops->on_loss(congestion, inflight_bytes, lost_bytes, cause, now);
}

static inline void alb_congestion_on_mark(const struct alb_congestion_ops *ops, struct alb_congestion *congestion,
                                          uint32_t inflight_bytes, alb_time now)
{
    if (ops->on_mark)
        ops->on_mark(congestion, inflight_bytes, now);
}

static inline alb_time alb_congestion_send_at(const struct alb_congestion_ops *ops, struct alb_congestion *congestion,
                                              alb_time now)
{
    return ops->send_at ? ops->send_at(congestion, now) : now;
}

static inline uint64_t alb_congestion_rate_bytes_per_s(const struct alb_congestion_ops *ops,
                                                       const struct alb_congestion *congestion)
{
    return ops->rate_bytes_per_s ? ops->rate_bytes_per_s(congestion) : 0;
}

// That the text names, with parameters or without (congestion_text.c); NULL: no such policy.
const struct alb_congestion_ops *alb_congestion_find(const char *text);
// Sets what the name of the configuration's congestion policy gives as parameters. False: there is no such policy, or
// it has no such parameters.
bool alb_congestion_set(struct alb_engine_config *config);
// True if what the policies need of the configuration agrees.
bool alb_congestion_agrees(const struct alb_engine_config *config);
// The policy's parameters, as alb_engine_policy_parameter.
const char *alb_congestion_parameter(const char *policy, uint32_t index, const char **bounds);

// ---- path -----------------------------------------------------------------------------------------------------------

struct alb_paths_out;
struct alb_path_news;

struct alb_path_ops {
    const char *name;
    // The path of a RoCEv2 queue pair, which never changes. NULL: not a policy for those, whose peers expect packets in
    // order.
    uint16_t (*choose)(uint32_t flow_hash);
    // The path of the next burst of this flow, among the paths of an association (engine/csa_path.h); bytes: at least
    // so many are to go.
    uint16_t (*pick)(struct alb_paths_out *paths, uint32_t flow_hash, uint32_t bytes, alb_time now);
    // For what is not given to the pick: true if a packet may leave by that path, which is not good, to see how it does
    // now. NULL: none is ever left.
    bool (*may_try)(struct alb_paths_out *paths, uint16_t path, alb_time now);
    // The peer has reported packets that left by the path. NULL: no interest.
    void (*on_news)(struct alb_paths_out *paths, uint16_t path, const struct alb_path_news *news, alb_time now);
    // All that left by the path and was not settled now is, since nothing was heard of it: lost packets. NULL: no
    // interest.
    void (*on_silence)(struct alb_paths_out *paths, uint16_t path, uint32_t lost, alb_time now);
};

extern const struct alb_path_ops alb_path_single;   // each flow on one path
extern const struct alb_path_ops alb_path_spray;    // all paths in turn
extern const struct alb_path_ops alb_path_adaptive; // more on better ones; bad ones are left, and tried again

const struct alb_path_ops *alb_path_find(const char *name); // NULL: no such policy
