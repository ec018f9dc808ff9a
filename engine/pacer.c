// SPDX-License-Identifier: BSD-2-Clause
// The rate of unreliable traffic. A source may send a burst whenever the bucket is not in debt; what the burst takes
// beyond the credit is debt that time pays off, so bursts stay whole and the rate still holds.
#include "engine/impl.h"
#include "wire/roce.h"

enum {
    DEPTH_BYTES_MIN = 65536, // one burst
    DEPTH_PER_S = 1000,      // at high rates the bucket holds a millisecond's worth: a driver does not come back sooner
};

static const uint64_t rate_max_bytes_per_s = 1ull << 40; // keeps the arithmetic below within 64 bits

static int64_t depth_bytes(const struct alb_pacer *pacer)
{
    return (int64_t)ALB_MAX(pacer->bytes_per_s / DEPTH_PER_S, (uint64_t)DEPTH_BYTES_MIN);
}

static uint64_t time_of_bytes(const struct alb_pacer *pacer, uint64_t bytes)
{
    return (bytes * ALB_NS_PER_S + pacer->bytes_per_s - 1) / pacer->bytes_per_s;
}

static void fill(struct alb_pacer *pacer, alb_time now)
{
    if (now <= pacer->last)
        return;
    int64_t depth = depth_bytes(pacer);
    alb_time elapsed_ns = now - pacer->last;
    if (elapsed_ns >= time_of_bytes(pacer, (uint64_t)(depth - pacer->credit_bytes))) {
        pacer->credit_bytes = depth;
        pacer->last = now;
        return;
    }
    uint64_t gain = elapsed_ns * pacer->bytes_per_s / ALB_NS_PER_S;
    pacer->credit_bytes += (int64_t)gain;
    pacer->last += time_of_bytes(pacer, gain); // what is left of a byte counts next time
}

// When the bucket will be out of debt.
static alb_time ready_at(const struct alb_pacer *pacer)
{
    return pacer->credit_bytes > 0 ? pacer->last
                                   : pacer->last + time_of_bytes(pacer, (uint64_t)(1 - pacer->credit_bytes));
}

// Lets as many sources try as the credit may serve; the rest waits for about the time that a packet of theirs takes.
static void fire(struct alb_deadline *deadline, alb_time now)
{
    struct alb_pacer *pacer = ALB_CONTAINER_OF(deadline, struct alb_pacer, deadline);
    struct alb_engine *engine = ALB_CONTAINER_OF(pacer, struct alb_engine, pacer);
    fill(pacer, now);
    for (int64_t credit = pacer->credit_bytes; credit > 0 && !alb_list_is_empty(&pacer->waiting);
         credit -= ALB_ROCE_PAYLOAD_MAX)
        alb_scheduler_wake(&engine->scheduler, ALB_LIST_ENTRY(pacer->waiting.next, struct alb_source, link));
    if (!alb_list_is_empty(&pacer->waiting))
        alb_wheel_arm(&engine->wheel, &deadline->timer,
                      ALB_MAX(ready_at(pacer), now + time_of_bytes(pacer, ALB_ROCE_PAYLOAD_MAX)));
}

void alb_pacer_init(struct alb_engine *engine)
{
    struct alb_pacer *pacer = &engine->pacer;
    pacer->bytes_per_s = ALB_MIN(engine->config.unreliable_bytes_per_s, rate_max_bytes_per_s);
    pacer->credit_bytes = depth_bytes(pacer);
    pacer->last = 0;
    alb_deadline_init(&pacer->deadline, fire);
    alb_list_init(&pacer->waiting);
}

bool alb_pacer_permits(struct alb_engine *engine, alb_time now)
{
    struct alb_pacer *pacer = &engine->pacer;
    if (pacer->bytes_per_s == 0)
        return true;
    fill(pacer, now);
    return pacer->credit_bytes > 0;
}

void alb_pacer_charge(struct alb_engine *engine, uint32_t bytes)
{
    if (engine->pacer.bytes_per_s != 0)
        engine->pacer.credit_bytes -= bytes;
}

void alb_pacer_wait(struct alb_engine *engine, struct alb_source *source, alb_time now)
{
    struct alb_pacer *pacer = &engine->pacer;
    alb_scheduler_remove(source);
    alb_list_push_back(&pacer->waiting, &source->link);
    if (!alb_timer_is_armed(&pacer->deadline.timer))
        alb_wheel_arm(&engine->wheel, &pacer->deadline.timer, ALB_MAX(ready_at(pacer), now + 1));
}
