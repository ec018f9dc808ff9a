// SPDX-License-Identifier: BSD-2-Clause
#include "device/share.h"

#include "engine/engine.h"

// Another thread took the core if a yield lasted for longer than this, and than twice a mere call.
#define TAKEN_NS ALB_NS_PER_US

// Who keeps the core for so long computes. It is kept for less than that afterwards, so that threads that poll do not
// take each other for such.
#define COMPUTES_NS ALB_NS_PER_MS
#define KEEP_NS     (500 * ALB_NS_PER_US)

// The mean turn of those that had the core. One had it at least, whatever the load says.
static alb_time turn_ns(alb_time away_ns, uint32_t load)
{
    uint32_t others = ALB_MAX(load, 2u * ALB_HOST_LOAD_ONE) - ALB_HOST_LOAD_ONE;
    return away_ns * ALB_HOST_LOAD_ONE / others;
}

bool alb_share_yielded(struct alb_share *share, alb_time before, alb_time after, uint32_t load)
{
    alb_time away_ns = after - before;
    share->call_ns = ALB_MIN(share->call_ns, away_ns);
    if (away_ns <= ALB_MAX(2 * share->call_ns, TAKEN_NS)) {
        share->polls_to_yield = ALB_MIN(2 * share->polls_to_yield, ALB_SHARE_POLLS_MAX);
        return false;
    }
    share->polls_to_yield = ALB_SHARE_POLLS_MIN;
    if (turn_ns(away_ns, load) > COMPUTES_NS)
        share->keeps_until = after + KEEP_NS;
    return true;
}
