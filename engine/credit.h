// SPDX-License-Identifier: BSD-2-Clause
// End-to-end credits: a receiver's buffer divided among its senders, so that many senders at once do not overrun the
// socket's buffer. A sender has no more in flight than the peer's last grant, and may always send one packet.
//
// Only the receiver keeps state for it. Senders that were heard in the last intervals share the budget. For those that
// use little, by their bytes in a round trip, twice that is reserved; the rest is shared by the others, and that share
// is granted to all. So a sender with little traffic costs a bulk sender nothing, and may begin to send much without
// asking. When many do so at once it is too much for one round trip, until each has its share.
//
// The policy "shortest" also orders the senders: the few whose messages have least left to come are granted their
// share, and the others little until it is their turn.
#pragma once

#include "base/list.h"
#include "wire/csa.h"

struct alb_engine_config;

struct alb_credit_ops {
    const char *name;
    bool is_limited;
    bool prefers_short; // the sender with least left to send goes first (credit_shortest.c)
};

extern const struct alb_credit_ops alb_credit_end_to_end;
extern const struct alb_credit_ops alb_credit_shortest;
extern const struct alb_credit_ops alb_credit_off;

const struct alb_credit_ops *alb_credit_find(const char *name); // NULL: no such policy

#define ALB_CREDIT_FIRST_MAX     3     // senders at a time: some of them are held up elsewhere
#define ALB_CREDIT_WAITING_BYTES 16384 // so that waiting senders are heard, and idle time is used

struct alb_credit_in;

// One whose turn it is.
struct alb_credit_first {
    struct alb_credit_in *in; // NULL: none
    uint32_t until;           // then the place is another's, if this one has not been heard, in ticks of 1024 ns
};

// A receiver's.
struct alb_credit_pool {
    const struct alb_credit_ops *ops;
    uint32_t budget_bytes; // 0: no limit
    uint32_t grant_min_bytes;
    uint64_t interval_ns;
    struct alb_list senders; // that have sent lately, the one heard of longest ago first
    uint32_t count;          // of them
    uint32_t bulk_count;     // of them: those that share what is not in reserve
    uint64_t reserved_bytes; // for the others
    uint64_t rates, squares; // sums over all senders: of their rates, and of these squared
    uint32_t short_bytes;    // a sender that has no more left has sent it, or may
    struct alb_credit_first first[ALB_CREDIT_FIRST_MAX];
};

// What it knows of one sender; in no list before it has sent anything, and when it has not for long.
struct alb_credit_in {
    struct alb_list link;
    uint32_t since;          // when its interval began, in ticks of 1024 ns
    uint32_t interval_ns;    // the pool's, or two round trips
    uint32_t bytes;          // since then
    uint32_t reserved_bytes; // ALB_CSA_CREDIT_NONE: it is one of those that share
    uint32_t rate;           // bytes in 2^20 ns, smoothed; 0: not measured yet
    uint32_t rest_bytes;     // of the message that it sends, as far as is known
};

void alb_credit_pool_init(struct alb_credit_pool *pool, const struct alb_credit_ops *ops,
                          const struct alb_engine_config *config);
void alb_credit_in_init(struct alb_credit_in *in);
// Before it ends.
void alb_credit_in_fini(struct alb_credit_pool *pool, struct alb_credit_in *in);

// A packet of so many bytes came. rtt_ns: a round trip to that sender; 0: not known.
void alb_credit_on_packet(struct alb_credit_pool *pool, struct alb_credit_in *in, uint32_t bytes, uint32_t rtt_ns,
                          alb_time now);
// So many bytes of a message of that sender are still to come, after something of it has. Means nothing but to policies
// that prefer the short ones.
void alb_credit_on_rest(struct alb_credit_pool *pool, struct alb_credit_in *in, uint64_t rest_bytes, uint32_t rtt_ns,
                        alb_time now);
// True if it is not this sender's turn, and so it is granted ALB_CREDIT_WAITING_BYTES at the most.
bool alb_credit_waits(const struct alb_credit_pool *pool, const struct alb_credit_in *in);
// It goes, and so does its turn.
void alb_credit_forget_first(struct alb_credit_pool *pool, const struct alb_credit_in *in);
// How many bytes that sender may have in flight to us; ALB_CSA_CREDIT_NONE: any.
uint32_t alb_credit_grant(struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now);
// How fast that sender is compared with the present senders: ALB_CSA_SHARE_EVEN is as fast. 0: not known, or shares are
// not meant to be even.
uint8_t alb_credit_share(const struct alb_credit_pool *pool, const struct alb_credit_in *in);
