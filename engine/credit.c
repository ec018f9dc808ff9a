// SPDX-License-Identifier: BSD-2-Clause
// Shares are approximately max-min fair, and found without ever looking at all senders: each is weighed when an
// interval of its own is over, or as soon as it has sent so much that its reserve must have been wrong.
#include "engine/credit.h"

#include "engine/engine.h"
#include "engine/policy_text.h"

#define STALE_NS_MAX ALB_NS_PER_S // what a reading of the clock may be older than the newest

enum {
    INTERVALS_ACTIVE = 4, // without a packet, and it is no sender any more
    STRETCH_MAX = 64,     // how much longer the interval of a far sender may be
    RATE_INTERVALS = 8,   // that a rate is smoothed over
    RATE_MAX = 1 << 23,   // 8 GB/s: keeps the squares of 2^17 senders within 64 bits
};

const struct alb_credit_ops alb_credit_end_to_end = {.name = "end-to-end", .is_limited = true};
const struct alb_credit_ops alb_credit_shortest = {.name = "shortest", .is_limited = true, .prefers_short = true};
const struct alb_credit_ops alb_credit_off = {.name = "off"};

const struct alb_credit_ops *alb_credit_find(const char *text)
{
    static const struct alb_credit_ops *const all[] = {&alb_credit_end_to_end, &alb_credit_shortest, &alb_credit_off};
    for (size_t i = 0; text && i < ALB_COUNT(all); i++)
        if (alb_policy_text_is(text, all[i]->name))
            return all[i];
    return NULL;
}

void alb_credit_pool_init(struct alb_credit_pool *pool, const struct alb_credit_ops *ops,
                          const struct alb_engine_config *config)
{
    *pool = (struct alb_credit_pool){
        .ops = ops,
        .budget_bytes = ops->is_limited ? config->receive_budget_bytes : 0,
        .grant_min_bytes = config->grant_min_bytes,
        .interval_ns = config->credit_interval_ns,
        .short_bytes = config->window_start_bytes,
        .aging_bytes = (uint32_t)((config->credit_aging_bytes_per_s << 20) / ALB_NS_PER_S),
    };
    alb_list_init(&pool->senders);
}

void alb_credit_in_init(struct alb_credit_in *in)
{
    *in = (struct alb_credit_in){0};
    alb_list_init(&in->link);
}

// ---- the sharers ----------------------------------------------------------------------------------------------------

static uint32_t tick_of(alb_time moment)
{
    return (uint32_t)(moment >> 10);
}

// Differences of less than an hour; a sender that was idle for longer has been taken out long ago, if any other sends.
// A driver may have read its clock before another one heard the sender.
static uint64_t age_ns(const struct alb_credit_in *in, alb_time now)
{
    uint32_t ticks = tick_of(now) - in->since;
    return ticks > UINT32_MAX - tick_of(STALE_NS_MAX) ? 0 : (uint64_t)ticks << 10;
}

static bool is_bulk(const struct alb_credit_in *in)
{
    return in->reserved_bytes == ALB_CSA_CREDIT_NONE;
}

static void put_reserve(struct alb_credit_pool *pool, struct alb_credit_in *in)
{
    if (is_bulk(in))
        pool->bulk_count--;
    else
        pool->reserved_bytes -= in->reserved_bytes;
    in->reserved_bytes = 0;
}

static void take_reserve(struct alb_credit_pool *pool, struct alb_credit_in *in, uint32_t bytes)
{
    in->reserved_bytes = bytes;
    if (is_bulk(in))
        pool->bulk_count++;
    else
        pool->reserved_bytes += bytes;
}

static void set_rate(struct alb_credit_pool *pool, struct alb_credit_in *in, uint32_t rate)
{
    pool->rates += rate - (uint64_t)in->rate;
    pool->squares += (uint64_t)rate * rate - (uint64_t)in->rate * in->rate;
    in->rate = rate;
}

static void leave(struct alb_credit_pool *pool, struct alb_credit_in *in)
{
    put_reserve(pool, in);
    set_rate(pool, in, 0);
    alb_list_remove(&in->link);
    in->bytes = 0;
    pool->count--;
}

static void forget_silent(struct alb_credit_pool *pool, alb_time now)
{
    while (!alb_list_is_empty(&pool->senders)) {
        struct alb_credit_in *oldest = ALB_LIST_ENTRY(pool->senders.next, struct alb_credit_in, link);
        if (age_ns(oldest, now) < (uint64_t)oldest->interval_ns * INTERVALS_ACTIVE)
            return;
        leave(pool, oldest);
    }
}

void alb_credit_in_fini(struct alb_credit_pool *pool, struct alb_credit_in *in)
{
    alb_credit_forget_place(pool, in);
    if (alb_list_is_linked(&in->link))
        leave(pool, in);
}

// What each of the bulk senders gets, if this one is among them; at least an equal share of all.
static uint32_t share_bytes(const struct alb_credit_pool *pool, const struct alb_credit_in *in)
{
    bool is_new = !alb_list_is_linked(&in->link);
    if (pool->count + is_new == 1)
        return ALB_MAX(pool->budget_bytes, pool->grant_min_bytes);
    uint64_t reserved = pool->reserved_bytes - (is_new || is_bulk(in) ? 0 : in->reserved_bytes);
    uint32_t bulk = pool->bulk_count + (is_new || !is_bulk(in));
    uint32_t equal = pool->budget_bytes / (pool->count + is_new);
    uint32_t share = reserved < pool->budget_bytes ? (uint32_t)(pool->budget_bytes - reserved) / bulk : 0;
    share = ALB_MAX(share, equal);
    return ALB_MAX(share, pool->grant_min_bytes);
}

// ---- arrivals -------------------------------------------------------------------------------------------------------

static void begin_interval(const struct alb_credit_pool *pool, struct alb_credit_in *in, uint32_t rtt_ns, alb_time now)
{
    uint64_t ns = ALB_MAX(2ull * rtt_ns, pool->interval_ns);
    ns = ALB_MIN(ns, pool->interval_ns * STRETCH_MAX);
    in->interval_ns = (uint32_t)ALB_MIN(ns, (uint64_t)UINT32_MAX);
    in->bytes = 0;
    in->since = tick_of(now);
}

// Smoothed over time, since a sender may be weighed before its interval is over. The first time it may only look slower
// than it is: no other has to give way for that.
static void measure(struct alb_credit_pool *pool, struct alb_credit_in *in, uint64_t elapsed_ns)
{
    uint64_t span_ns = in->rate == 0 ? ALB_MAX(elapsed_ns, in->interval_ns) : ALB_MAX(elapsed_ns, 1u);
    uint64_t rate = ALB_MIN(((uint64_t)in->bytes << 20) / span_ns, (uint64_t)RATE_MAX);
    uint64_t memory_ns = (uint64_t)RATE_INTERVALS * in->interval_ns;
    if (in->rate > 0 && elapsed_ns < memory_ns)
        rate = (rate * (elapsed_ns >> 8) + in->rate * ((memory_ns - elapsed_ns) >> 8)) / (memory_ns >> 8);
    set_rate(pool, in, (uint32_t)ALB_MAX(rate, 1u));
}

// An interval of this sender is over: what it has in flight at a time, twice, is what it may need.
static void weigh(struct alb_credit_pool *pool, struct alb_credit_in *in, uint64_t elapsed_ns, uint32_t rtt_ns,
                  alb_time now)
{
    uint64_t round_ns = rtt_ns == 0 ? in->interval_ns : rtt_ns;
    uint64_t need = 2 * (uint64_t)in->bytes;
    if (elapsed_ns > round_ns)
        need = need * (round_ns >> 8) / (elapsed_ns >> 8);
    uint32_t share = share_bytes(pool, in);
    measure(pool, in, elapsed_ns);
    put_reserve(pool, in);
    take_reserve(pool, in, need < share ? (uint32_t)need : ALB_CSA_CREDIT_NONE);
    begin_interval(pool, in, rtt_ns, now);
    alb_list_remove(&in->link);
    alb_list_push_back(&pool->senders, &in->link);
}

void alb_credit_on_packet(struct alb_credit_pool *pool, struct alb_credit_in *in, uint32_t bytes, uint32_t rtt_ns,
                          alb_time now)
{
    if (!pool->ops->is_limited)
        return;
    forget_silent(pool, now);
    if (!alb_list_is_linked(&in->link)) {
        alb_list_push_back(&pool->senders, &in->link);
        pool->count++;
        begin_interval(pool, in, rtt_ns, now);
        take_reserve(pool, in, 0);
    }
    in->bytes += bytes;
    uint64_t elapsed_ns = age_ns(in, now);
    if (elapsed_ns >= in->interval_ns || (!is_bulk(in) && in->bytes > in->reserved_bytes))
        weigh(pool, in, elapsed_ns, rtt_ns, now);
}

uint32_t alb_credit_grant(struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now)
{
    uint32_t most = alb_credit_waits(pool, in, now) ? ALB_CREDIT_WAITING_BYTES : ALB_CSA_CREDIT_NONE;
    if (pool->budget_bytes == 0)
        return most;
    forget_silent(pool, now);
    return ALB_MIN(share_bytes(pool, in), most);
}

// Rates are compared with a mean in which each rate is weighted by itself: many senders with little traffic do not make
// a bulk sender look too fast, and a sender that is much faster than the others does look so.
// Nobody is told of having less than others: it is for them to give way. All the rates by the mean are how many senders
// of that rate there are: if they are hardly more than one, there is nothing to compare.
uint8_t alb_credit_share(const struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now)
{
    if (pool->ops->prefers_short)
        return alb_credit_turn_share(pool, in, now);
    if (in->rate == 0 || pool->rates == 0)
        return 0;
    uint64_t mean = ALB_MAX(pool->squares / pool->rates, 1u);
    if (pool->rates < mean + mean / 2)
        return 0;
    uint64_t share = ALB_MIN((uint64_t)in->rate * ALB_CSA_SHARE_EVEN / mean, (uint64_t)UINT8_MAX);
    return (uint8_t)ALB_MAX(share, (uint64_t)ALB_CSA_SHARE_EVEN);
}
