// SPDX-License-Identifier: BSD-2-Clause
// Transactions of A on B's memory, over links of half a millisecond: a round trip is a millisecond and a bit.
#pragma once

#include "world.h"

#include "engine/transaction.h"

#define REFLECT_DELAY    ALB_SIM_US(500)
#define REFLECT_LEASE_NS (100 * (uint64_t)ALB_NS_PER_MS)

// Both ends may have transactions; the association has seen round trips, and is at rest. Memory is filled.
struct world *reflect_world(void);
// Of a queue pair that has just been connected.
void reflect_enable(struct end *end);

struct reflect {
    uint64_t id;
    uint32_t from, length, to; // as struct work; in two parts
    enum alb_level level;      // 0: COMMITTED
    bool hold, in_place, notify;
    uint64_t lease_ns; // 0: REFLECT_LEASE_NS
};

// Posts it, and lets the engine run; its number.
uint64_t reflect_post(struct world *w, struct end *end, struct reflect what);
enum alb_txn_state reflect_state(const struct end *end, uint64_t number);
struct alb_txn_token reflect_token(const struct end *end, uint64_t number);
// Asks about it by the first queue pair.
void reflect_ask(struct end *end, uint64_t id, const struct alb_txn_token *token, enum alb_txn_decision decision);
// True if all of it can be read, false if nothing can; anything else fails.
bool reflect_is_exposed(const struct world *w, const struct reflect *what);
