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
// share, and the others little until it is their turn. Likewise a sender's own turns (csa_turn.c). What has waited
// counts for less than it is, so that no message waits for ever, and those of one size end in the order in which they
// began.
#pragma once

#include "base/list.h"
#include "wire/csa.h"

struct alb_engine_config;

struct alb_credit_ops {
    const char *name;
    bool is_limited;    // the receive budget is divided; else each sender is granted any number
    bool prefers_short; // the senders with least left to send go first (credit_shortest.c)
};

extern const struct alb_credit_ops alb_credit_end_to_end;
extern const struct alb_credit_ops alb_credit_shortest;
extern const struct alb_credit_ops alb_credit_off;

// That the text names, with parameters or without (credit_text.c); NULL: no such policy.
const struct alb_credit_ops *alb_credit_find(const char *text);
// Sets what the name of the configuration's credit policy gives as parameters. False: it is none.
bool alb_credit_set(struct alb_engine_config *config);
// The policy's parameters, as alb_engine_policy_parameter.
const char *alb_credit_parameter(const char *policy, uint32_t index, const char **bounds);

#define ALB_CREDIT_PLACES        8     // senders whose order is known
#define ALB_CREDIT_FIRST_MAX     3     // of these, whose turn it is: several, since some are held up elsewhere
#define ALB_CREDIT_WAITING_BYTES 16384 // granted to the others, so that they are heard and fill idle time

struct alb_credit_in;

// A place among those whose order is known, for policies that prefer the short ones.
struct alb_credit_place {
    struct alb_credit_in *in; // NULL: the place is free
    uint32_t until;           // then it is as good as free, unless this one is heard; in ticks of 1024 ns
};

// An engine's, as a receiver.
struct alb_credit_pool {
    const struct alb_credit_ops *ops;
    uint32_t budget_bytes;    // 0: no limit
    uint32_t grant_min_bytes; // no share is smaller
    uint64_t interval_ns;     // a sender is weighed at least so often; farther ones each two round trips
    struct alb_list senders;  // of struct alb_credit_in that have sent lately, the one weighed longest ago first
    uint32_t count;           // of senders
    uint32_t bulk_count;      // of those that share what is not reserved
    uint64_t reserved_bytes;  // for the other senders together
    uint64_t rates, squares;  // sums over all senders: of their rates, and of these squared
    uint32_t short_bytes;     // a sender that has no more left needs no turn: it is under way
    uint32_t aging_bytes;     // that a message gains on others in 1024 ticks of 1024 ns
    struct alb_credit_place places[ALB_CREDIT_PLACES];
};

// What is known of a message, for policies that prefer the short ones. Each stream has its own: between two parts of a
// long message a short one may come by another queue pair.
struct alb_credit_message {
    uint32_t rest_bytes; // still to come, as far as is known
    uint32_t began;      // when it was first heard, if it is not short; in ticks of 1024 ns
};

// What it knows of one sender. In the pool's list while the sender counts: from its first packet on, until nothing has
// come for several intervals.
struct alb_credit_in {
    struct alb_list link;
    uint32_t since;                    // when its interval began, in ticks of 1024 ns modulo 2^32
    uint32_t interval_ns;              // the pool's, or two round trips
    uint32_t bytes;                    // received in its interval
    uint32_t reserved_bytes;           // ALB_CSA_CREDIT_NONE: it is a bulk sender, one of those that share
    uint32_t rate;                     // bytes in 2^20 ns, smoothed; 0: not measured yet
    struct alb_credit_message message; // that was heard last
};

// ops stays the caller's and must outlive the pool; config is read only now.
void alb_credit_pool_init(struct alb_credit_pool *pool, const struct alb_credit_ops *ops,
                          const struct alb_engine_config *config);
void alb_credit_in_init(struct alb_credit_in *in);
// Before the sender's memory goes: takes it out of the pool.
void alb_credit_in_fini(struct alb_credit_pool *pool, struct alb_credit_in *in);

// A packet of so many bytes came. rtt_ns: a round trip to that sender; 0: not known. The only call by which a sender
// begins to count.
void alb_credit_on_packet(struct alb_credit_pool *pool, struct alb_credit_in *in, uint32_t bytes, uint32_t rtt_ns,
                          alb_time now);
// So many bytes of that message of the sender are still to come, after something of it has; before the first one it is
// zero. Does nothing unless the policy prefers the short ones.
void alb_credit_on_rest(struct alb_credit_pool *pool, struct alb_credit_in *in, struct alb_credit_message *message,
                        uint64_t rest_bytes, uint32_t rtt_ns, alb_time now);
// True if it is not this sender's turn, and so it is granted ALB_CREDIT_WAITING_BYTES at the most.
bool alb_credit_waits(const struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now);
// Gives up its place, if it has one.
void alb_credit_forget_place(struct alb_credit_pool *pool, const struct alb_credit_in *in);
// How many bytes that sender may have in flight to us; ALB_CSA_CREDIT_NONE: any number. May take silent senders out.
uint32_t alb_credit_grant(struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now);
// How strongly the sender is to answer signs of congestion, in parts of ALB_CSA_SHARE_EVEN, up to 255; 0: not known, or
// there is none to compare with. It is its rate divided by the mean of all present senders' (weighted by rate),
// ALB_CSA_SHARE_EVEN at least; or less, by whose turn it is.
uint8_t alb_credit_share(const struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now);
// Likewise, of a policy that prefers the short ones: the less, the earlier its turn is.
uint8_t alb_credit_turn_share(const struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now);
