// SPDX-License-Identifier: BSD-2-Clause
// Whose turn it is, for the credit policy "shortest": that of the senders whose messages have least left to come, as
// each segment says of its own (shortest remaining first, as in Homa; Montazeri et al., SIGCOMM 2018). Unlike Homa this
// grants nothing for a message, and switches need no priorities: a waiting sender has a little in flight, and so is
// heard each round trip. The receiver therefore searches for none: a sender that is heard takes a place that is free,
// or that of one with more left. There are more places than turns, so that who had to wait for one is still the next.
//
// Between messages that began at different times shortest first is unfair to the older ones, which lose again each time
// that another one comes to its end, and decides the slowest: so what is left counts for less, the longer it has
// waited.
//
// Several have their turn at once, since one alone leaves the link idle whenever it is held up elsewhere. The link is
// not shared evenly among them: each answers marks half as much as the next one, by the share it is told.
//
// A sender with a short rest needs no turn: the rest is under way. So the next one begins before the last has ended,
// and a sender that begins a message is not held back before anything of it has come.
#include "engine/credit.h"

enum {
    SILENT_RTTS = 8, // then the sender is held up elsewhere, or has stopped
    FIRST_SHARE = ALB_CSA_SHARE_EVEN / 16,
};

static uint32_t tick_of(alb_time moment)
{
    return (uint32_t)(moment >> 10);
}

static struct alb_credit_place *place_of(struct alb_credit_pool *pool, const struct alb_credit_in *in)
{
    for (uint32_t i = 0; i < ALB_COUNT(pool->places); i++)
        if (pool->places[i].in == in)
            return &pool->places[i];
    return NULL;
}

static bool is_held(const struct alb_credit_place *place, alb_time now)
{
    return place->in && (int32_t)(tick_of(now) - place->until) <= 0;
}

// What is left of its message, less what it has gained by waiting.
static int64_t key_of(const struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now)
{
    uint64_t aged_bytes = ((uint64_t)(tick_of(now) - in->message.began) * pool->aging_bytes) >> 10;
    return (int64_t)in->message.rest_bytes - (int64_t)aged_bytes;
}

// A place that is free or has not been used, else that of the last sender, if that is behind this one.
static struct alb_credit_place *find_place(struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now)
{
    int64_t last = key_of(pool, in, now);
    struct alb_credit_place *found = NULL;
    for (uint32_t i = 0; i < ALB_COUNT(pool->places); i++) {
        struct alb_credit_place *place = &pool->places[i];
        if (!is_held(place, now))
            return place;
        int64_t key = key_of(pool, place->in, now);
        if (key > last) {
            found = place;
            last = key;
        }
    }
    return found;
}

void alb_credit_forget_place(struct alb_credit_pool *pool, const struct alb_credit_in *in)
{
    struct alb_credit_place *place = place_of(pool, in);
    if (place)
        place->in = NULL;
}

void alb_credit_on_rest(struct alb_credit_pool *pool, struct alb_credit_in *in, struct alb_credit_message *message,
                        uint64_t rest_bytes, uint32_t rtt_ns, alb_time now)
{
    if (!pool->ops->prefers_short)
        return;
    if (message->rest_bytes <= pool->short_bytes)
        message->began = tick_of(now); // of a message that is not short, if this is its first packet
    message->rest_bytes = (uint32_t)ALB_MIN(rest_bytes, (uint64_t)UINT32_MAX);
    in->message = *message;
    if (message->rest_bytes <= pool->short_bytes) {
        alb_credit_forget_place(pool, in);
        return;
    }
    struct alb_credit_place *place = place_of(pool, in);
    if (!place)
        place = find_place(pool, in, now);
    if (!place)
        return;
    uint64_t silence_ns = rtt_ns ? (uint64_t)SILENT_RTTS * rtt_ns : pool->interval_ns;
    *place = (struct alb_credit_place){in, tick_of(now + silence_ns)};
}

// How many come before it; none if it needs no turn. Of two that are alike the one in the place before.
static uint32_t rank_of(const struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now)
{
    if (in->message.rest_bytes <= pool->short_bytes)
        return 0;
    int64_t own = key_of(pool, in, now);
    uint32_t before = 0;
    bool has_place = false;
    for (uint32_t i = 0; i < ALB_COUNT(pool->places); i++) {
        const struct alb_credit_place *place = &pool->places[i];
        if (place->in == in)
            has_place = is_held(place, now);
        else if (is_held(place, now)) {
            int64_t key = key_of(pool, place->in, now);
            before += key < own || (key == own && !has_place);
        }
    }
    return has_place ? before : ALB_CREDIT_PLACES;
}

bool alb_credit_waits(const struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now)
{
    return pool->ops->prefers_short && rank_of(pool, in, now) >= ALB_CREDIT_FIRST_MAX;
}

uint8_t alb_credit_turn_share(const struct alb_credit_pool *pool, const struct alb_credit_in *in, alb_time now)
{
    return (uint8_t)(FIRST_SHARE << ALB_MIN(rank_of(pool, in, now), (uint32_t)ALB_CREDIT_FIRST_MAX));
}
