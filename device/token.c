// SPDX-License-Identifier: BSD-2-Clause
// The driver token on a futex. (Three states as in U. Drepper, "Futexes are tricky", mutex 2.)
#include "device/token.h"

#include "device/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The token is mostly held for a few microseconds; sleeping and being woken costs tens of them. So a microsecond is
// spent on looking. Yielding would cost a tick of the scheduler where a program that spins shares the processor, and
// may have been interrupted while it held the token (docs/LESSONS.md, 103): who sleeps is run when it is woken.
#define LOOKS_BEFORE_SLEEP 200

void alb_token_init(struct alb_token *token)
{
    atomic_init(&token->state, 0);
    atomic_init(&token->waiting, 0);
    atomic_init(&token->given_way, 0);
}

bool alb_token_has_given_way(struct alb_token *token)
{
    if (atomic_load_explicit(&token->state, memory_order_relaxed) != 0)
        return false;
    return atomic_fetch_add_explicit(&token->given_way, 1, memory_order_relaxed) >= ALB_TOKEN_GIVES_WAY;
}

static bool take(struct alb_token *token, uint32_t as)
{
    uint32_t free_state = 0;
    return atomic_compare_exchange_strong(&token->state, &free_state, as);
}

static bool sleep_until_released(struct alb_token *token, alb_time until)
{
    struct timespec at = alb_timespec(until);
    long rc = syscall(SYS_futex, &token->state, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 2,
                      until == ALB_TIME_NEVER ? NULL : &at, NULL, FUTEX_BITSET_MATCH_ANY);
    return rc == 0 || errno != ETIMEDOUT;
}

static bool lock_until(struct alb_token *token, alb_time until)
{
    if (take(token, 1))
        return true;
    atomic_fetch_add(&token->waiting, 1);
    bool taken = false, in_time = true;
    for (int i = 0; i < LOOKS_BEFORE_SLEEP && !taken; i++)
        taken = atomic_load_explicit(&token->state, memory_order_relaxed) == 0 && take(token, 1);
    // From here on the state is left at 2: others may sleep beside us.
    while (!taken && in_time) {
        if (atomic_exchange(&token->state, 2) == 0)
            taken = true;
        else
            in_time = sleep_until_released(token, until);
    }
    atomic_store_explicit(&token->given_way, 0, memory_order_relaxed);
    atomic_fetch_sub(&token->waiting, 1);
    // A thread that gave way to us left a note: having given up we try once more, since none gives way any longer.
    return taken || take(token, 2);
}

void alb_token_lock(struct alb_token *token)
{
    lock_until(token, ALB_TIME_NEVER);
}

bool alb_token_lock_for(struct alb_token *token, alb_time span)
{
    return lock_until(token, alb_clock_now() + span);
}

void alb_token_release(struct alb_token *token)
{
    uint32_t before = atomic_exchange(&token->state, 0);
    alb_assert(before != 0);
    if (before == 2)
        syscall(SYS_futex, &token->state, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}
