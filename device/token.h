// SPDX-License-Identifier: BSD-2-Clause
// The driver token: a lock that is usually only tried. Its holder drives the engine. All of its state changes are
// sequentially consistent, so that "leave a note, then try the token" on one side and "give the token back, then look
// for notes" on the other cannot both miss.
#pragma once

#include "base/types.h"

#include <stdatomic.h>

struct alb_token {
    _Atomic uint32_t state;     // 0 free, 1 held, 2 held, and a waiter may sleep in the kernel
    _Atomic uint32_t waiting;   // threads in alb_token_lock that do not hold it yet
    _Atomic uint32_t given_way; // tries that found it free and left it to these
};

// So many tries leave the token to a waiter. One that has not come by then has no processor, and nobody would drive.
#define ALB_TOKEN_GIVES_WAY 64

void alb_token_init(struct alb_token *token);

// True if the waiters have had their turn.
bool alb_token_has_given_way(struct alb_token *token);

// Takes the token if it is free and no thread waits for it: one that polls in a loop must not starve one that has to
// get in.
static inline bool alb_token_try(struct alb_token *token)
{
    uint32_t free_state = 0;
    if (alb_unlikely(atomic_load_explicit(&token->waiting, memory_order_relaxed) != 0) &&
        !alb_token_has_given_way(token))
        return false;
    return atomic_compare_exchange_strong(&token->state, &free_state, 1);
}

// Takes the token if it is free, even if others wait: for a thread that has just released it and found a note.
static inline bool alb_token_retake(struct alb_token *token)
{
    uint32_t free_state = 0;
    return atomic_compare_exchange_strong(&token->state, &free_state, 1);
}

// Waits for the token.
void alb_token_lock(struct alb_token *token);

// Waits for the token at most that long (CLOCK_MONOTONIC). False: it is still held by another.
bool alb_token_lock_for(struct alb_token *token, alb_time span);

void alb_token_release(struct alb_token *token);
