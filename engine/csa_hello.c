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

// The packet's sender: where from, to which address of ours, in which life. And the life that was known of it then
// (0: none): a cookie that has been given before another life began must not end that one.
static void bake(const struct alb_csa_arrival *arrival, const struct alb_siphash_key keys[2], uint32_t known_epoch,
                 uint8_t cookie[ALB_CSA_COOKIE_BYTES])
{
    const struct alb_datagram *datagram = arrival->datagram;
    struct {
        struct alb_addr peer, local;
        uint32_t slot, epoch, known_epoch, zero;
    } sender = {datagram->peer.addr,          datagram->local.addr, arrival->header.source_slot,
                arrival->header.source_epoch, known_epoch,          0};
    _Static_assert(sizeof(sender) == 48, "no padding, whose bytes would be undefined");
    for (uint32_t half = 0; half < 2; half++) {
        uint64_t hash = alb_siphash13(&keys[half], &sender, sizeof(sender));
        memcpy(cookie + half * sizeof(hash), &hash, sizeof(hash));
    }
}

// What else may have been known when a cookie was given that is still good: nothing, if its life has been proven
// meanwhile; the one that is over, if nothing is known since.
static uint32_t known_before(const struct alb_csa_arrival *arrival)
{
    const struct alb_assoc *assoc = arrival->assoc;
    if (assoc->peer_epoch == arrival->header.source_epoch)
        return 0;
    return assoc->peer_epoch ? assoc->peer_epoch : assoc->dead_epoch;
}

static bool is_good(const struct alb_csa_arrival *arrival, const uint8_t cookie[ALB_CSA_COOKIE_BYTES], alb_time now)
{
    struct alb_engine *engine = arrival->engine;
    struct alb_csa_cookies *cookies = &engine->csa->cookies;
    renew(cookies, &engine->rng, now);
    const uint32_t known[2] = {arrival->assoc->peer_epoch, known_before(arrival)};
    bool is_any = false;
    for (uint32_t n = 0; n < 4; n++) { // all of them, byte by byte, so that time tells nothing
        uint8_t wanted[ALB_CSA_COOKIE_BYTES], differs = 0;
        bake(arrival, cookies->keys[n / 2], known[n % 2], wanted);
        for (uint32_t i = 0; i < ALB_CSA_COOKIE_BYTES; i++)
            differs |= wanted[i] ^ cookie[i];
        is_any |= differs == 0;
    }
    return is_any;
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
    bake(arrival, cookies->keys[0], arrival->assoc->peer_epoch, cookie);
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
