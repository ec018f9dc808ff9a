// SPDX-License-Identifier: BSD-2-Clause
#include "device/memory_watch.h"

// A program that answers with a WRITE, and polls until that is acknowledged, finds the next request beside the
// acknowledgement, and needs no watch until it is interrupted. So the first watch is just long enough for it to get
// there, and only one who needs them gets longer ones.
#define WATCH_MIN_NS (200 * ALB_NS_PER_US)
#define WATCH_MAX_NS (100 * ALB_NS_PER_MS)

// A watch was long enough if none was needed for so many times its length.
#define WATCHES_WITHOUT 10

// As long as a poller may leave to its next poll what it has to send.
#define ANSWER_NS (100 * ALB_NS_PER_US)

bool alb_memory_watch_is_on(const struct alb_memory_watch *watch, alb_time now)
{
    return now < watch->until;
}

void alb_memory_watch_begin(struct alb_memory_watch *watch, alb_time now)
{
    bool was_enough = now - ALB_MIN(watch->until, now) >= WATCHES_WITHOUT * watch->length_ns;
    watch->length_ns = was_enough ? WATCH_MIN_NS : ALB_MIN(2 * watch->length_ns, WATCH_MAX_NS);
    watch->until = now + watch->length_ns;
}

bool alb_memory_watch_expects_answer(const struct alb_memory_watch *watch, alb_time polled_at)
{
    return polled_at > watch->written_at;
}

alb_time alb_memory_watch_took(struct alb_memory_watch *watch, bool only_writes, alb_time polled_at, alb_time now)
{
    watch->answer_by = only_writes && alb_memory_watch_expects_answer(watch, polled_at) ? now + ANSWER_NS : 0;
    if (only_writes)
        watch->written_at = now;
    return watch->answer_by;
}

alb_time alb_memory_watch_took_nothing(struct alb_memory_watch *watch, alb_time now)
{
    if (now >= watch->answer_by)
        watch->answer_by = 0;
    return watch->answer_by;
}
