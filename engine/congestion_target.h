// SPDX-License-Identifier: BSD-2-Clause
// The target of congestion policy "window": up to which round-trip time there is no congestion. It is configured
// (rtt_target_ns), doubled and halved by flows that miss it round after round, less for a sender with more than an even
// share, and longer where the path is long by itself.
#pragma once

#include "engine/policy.h"

#include "engine/engine.h"
#include "wire/csa.h"

#define ALB_RTT_NO_SAMPLE UINT32_MAX
#define ALB_LONG_NS       1000000 // no queue in a data centre lasts so long

enum {
    ALB_SHARE_AMPLE = ALB_CSA_SHARE_EVEN * 5 / 4,
    ALB_AMPLE_ROUNDS = 16, // with so much, one after the other, and a target that was doubled is halved
    ALB_LEVEL_MIN = -3,    // how often the target is doubled, at least
};

// How strongly signs of congestion are answered, in parts of ALB_CSA_SHARE_EVEN: by our rate compared with the peer's
// other senders, or by whose turn it is. Without such signs no sender is held back.
static inline uint32_t alb_share_of_marks(const struct alb_delay_window *w)
{
    uint32_t most = ALB_CSA_SHARE_EVEN * 2; // more than that counts as that
    return w->share ? ALB_MIN((uint32_t)w->share, most) : ALB_CSA_SHARE_EVEN;
}

// A small share raises no target: one beyond what the queue can hold would help no flow.
static inline uint32_t alb_rtt_target_share(const struct alb_delay_window *w)
{
    return ALB_MAX(alb_share_of_marks(w), (uint32_t)ALB_CSA_SHARE_EVEN);
}

// True if a round trip is longer than any queue of flows with our target makes it.
bool alb_rtt_target_is_long(const struct alb_congestion *congestion, uint32_t ns);
// The shortest round trip lately, if that is longer than any queue of flows with our target makes it; else 0.
uint64_t alb_rtt_target_long_ns(const struct alb_congestion *congestion);
// How long a queue may last, where the path is long; else how long all of a round trip may.
uint64_t alb_rtt_target_room_ns(const struct alb_congestion *congestion);
// The target.
uint64_t alb_rtt_target_ns(const struct alb_congestion *congestion);

// A round-trip time was measured: it may be the shortest.
void alb_rtt_target_note(struct alb_delay_window *w, uint32_t rtt_ns, alb_time now);
// The shortest round trip was measured anew. If it shows a longer path the target is no longer doubled, and slow start
// goes on to where it would have gone.
void alb_rtt_target_set_base(struct alb_congestion *congestion, uint32_t ns, alb_time now);

// Doubles the target so often from now on; below 0: halves it. What was counted for a change is forgotten.
void alb_rtt_target_set_level(struct alb_delay_window *w, int level);
// A round is over. is_slow: its round trips took longer than the target; has_overflowed: its losses were those of a
// queue that was nearly as long as the target. Where the target is doubled slow start goes on, to the first window at
// most.
void alb_rtt_target_adapt(struct alb_congestion *congestion, bool is_slow, bool has_overflowed);
