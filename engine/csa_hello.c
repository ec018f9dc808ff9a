// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_hello.h"

#include "engine/csa_admit.h"
#include "engine/impl.h"

#define PERIOD_NS (4 * ALB_NS_PER_S) // a cookie lives one to two of them

// ---- cookies --------------------------------------------------------------------------------------------------------

static void draw(struct alb_csa_cookies *cookies, struct alb_rng *rng)
{
    memcpy(cookies->keys[1], cookies->keys[0], sizeof(cookies->keys[1]));
    alb_rng_fill(rng, cookies->keys[0], sizeof(cookies->keys[0]));
}

void alb_csa_cookies_init(struct alb_csa_cookies *cookies, struct alb_rng *rng, alb_time now)
{
    draw(cookies, rng);
    draw(cookies, rng);
    cookies->drawn_at = now;
}

static void renew(struct alb_csa_cookies *cookies, struct alb_rng *rng, alb_time now)
{
    alb_time age_ns = now - cookies->drawn_at;
    if (age_ns < PERIOD_NS)
        return;
    if (age_ns < 2 * PERIOD_NS)
        draw(cookies, rng);
    else
        alb_csa_cookies_init(cookies, rng, now);
    cookies->drawn_at = now;
}

// The packet's sender: where from, to which address of ours, in which life.
static void bake(const struct alb_csa_arrival *arrival, const struct alb_siphash_key keys[2],
                 uint8_t cookie[ALB_CSA_COOKIE_BYTES])
{
    const struct alb_datagram *datagram = arrival->datagram;
    struct {
        struct alb_addr peer, local;
        uint32_t slot, epoch;
    } sender = {datagram->peer.addr, datagram->local.addr, arrival->header.source_slot, arrival->header.source_epoch};
    _Static_assert(sizeof(sender) == 40, "no padding, whose bytes would be undefined");
    for (uint32_t half = 0; half < 2; half++) {
        uint64_t hash = alb_siphash13(&keys[half], &sender, sizeof(sender));
        memcpy(cookie + half * sizeof(hash), &hash, sizeof(hash));
    }
}

static bool is_good(const struct alb_csa_arrival *arrival, const uint8_t cookie[ALB_CSA_COOKIE_BYTES], alb_time now)
{
    struct alb_engine *engine = arrival->engine;
    struct alb_csa_cookies *cookies = &engine->csa->cookies;
    renew(cookies, &engine->rng, now);
    uint8_t differs[2] = {0, 0}; // looked at to the end, so that time tells nothing
    for (uint32_t period = 0; period < 2; period++) {
        uint8_t wanted[ALB_CSA_COOKIE_BYTES];
        bake(arrival, cookies->keys[period], wanted);
        for (uint32_t i = 0; i < ALB_CSA_COOKIE_BYTES; i++)
            differs[period] |= wanted[i] ^ cookie[i];
    }
    return differs[0] == 0 || differs[1] == 0;
}

// ---- question and answer --------------------------------------------------------------------------------------------

void alb_csa_challenge(const struct alb_csa_arrival *arrival, alb_time now)
{
    struct alb_engine *engine = arrival->engine;
    struct alb_csa_cookies *cookies = &engine->csa->cookies;
    uint8_t cookie[ALB_CSA_COOKIE_BYTES];
    if (!arrival->assoc)
        return; // whatever it proves, there is nothing here for it
    renew(cookies, &engine->rng, now);
    bake(arrival, cookies->keys[0], cookie);
    alb_csa_reply_cookie(engine, arrival->datagram, &arrival->header, cookie);
}

enum alb_drop alb_csa_on_hello(struct alb_csa_arrival *arrival, const struct alb_csa_frame *frame, alb_time now)
{
    if (arrival->is_proven)
        return ALB_DROP_NONE;
    if (!frame->hello.has_cookie || !is_good(arrival, frame->hello.cookie, now))
        return ALB_DROP_NOT_PROVEN;
    arrival->live = alb_assoc_wake(arrival->engine, arrival->assoc);
    if (!arrival->live)
        return ALB_DROP_NO_RESOURCES;
    alb_csa_believe(arrival);
    arrival->live->paths_are_due = true; // whatever is said tells the peer our epoch
    alb_csa_turn_tell(arrival->live);
    return ALB_DROP_NONE;
}

enum alb_drop alb_csa_on_cookie(const struct alb_csa_arrival *arrival, const struct alb_csa_frame *frame)
{
    if (!arrival->assoc || arrival->header.destination_epoch != alb_assoc_epoch(arrival->engine->csa, arrival->assoc))
        return ALB_DROP_NOT_PROVEN;
    alb_csa_reply_hello(arrival->engine, arrival->datagram, &arrival->header, frame->hello.cookie);
    return ALB_DROP_NONE;
}
