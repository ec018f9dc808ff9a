// SPDX-License-Identifier: BSD-2-Clause
// Policies, chosen by name per device: which packets are missing (loss), how much may be in flight (congestion), which
// way a burst goes (path). Each is a table of functions over a small state that the user of the policy embeds.
#pragma once

#include "base/types.h"
#include "wire/psn.h"

struct alb_engine_config;

// ---- loss -------------------------------------------------------------------------------------------------

// What a receiver does with a segment.
enum alb_loss_verdict {
    ALB_LOSS_ACCEPT,    // hand it on
    ALB_LOSS_REPORT,    // drop it and tell the sender what is missing
    ALB_LOSS_DROP,      // drop it without a word
    ALB_LOSS_DUPLICATE, // has been accepted before
};

struct alb_loss_receiver {
    bool is_reported; // the gap in front of the expected segment has been told
};

// Why a sender must decide what to send again.
enum alb_loss_cause {
    ALB_LOSS_NAK,     // the receiver misses something
    ALB_LOSS_GAP,     // an answer is missing
    ALB_LOSS_TIMEOUT, // nothing was heard for too long
    ALB_LOSS_RNR,     // the receiver was not ready
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

// ---- congestion -------------------------------------------------------------------------------------------

// The window toward one peer, in bytes.
struct alb_congestion {
    uint32_t window_bytes;
    uint32_t window_min_bytes, window_max_bytes;
    uint32_t threshold_bytes; // below: grow by what is acknowledged; above: by about a segment a round
    uint32_t credit_bytes;    // acknowledged since it last grew
    uint32_t hold_bytes;      // bytes that must be acknowledged before it may shrink again: once per round
};

struct alb_congestion_ops {
    const char *name;
    void (*init)(struct alb_congestion *congestion, const struct alb_engine_config *config);
    // limited: the window, not the program, bounded what was in flight; else it does not grow.
    void (*on_ack)(struct alb_congestion *congestion, uint32_t bytes, bool limited);
    void (*on_loss)(struct alb_congestion *congestion, uint32_t inflight_bytes, enum alb_loss_cause cause);
    void (*on_mark)(struct alb_congestion *congestion, uint32_t inflight_bytes);
};

extern const struct alb_congestion_ops alb_congestion_window; // slow start, additive growth, halved by losses and marks
extern const struct alb_congestion_ops alb_congestion_fixed;  // window_max_bytes always
extern const struct alb_congestion_ops alb_congestion_none;   // no bound

const struct alb_congestion_ops *alb_congestion_find(const char *name);

// ---- path -------------------------------------------------------------------------------------------------

struct alb_path_ops {
    const char *name;
    // The path of the next burst of this flow.
    uint16_t (*choose)(uint32_t flow_hash);
};

extern const struct alb_path_ops alb_path_single;

const struct alb_path_ops *alb_path_find(const char *name);
