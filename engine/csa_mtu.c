// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_mtu.h"

#include "engine/csa_packet.h"
#include "engine/impl.h"

enum {
    PAYLOAD_MIN = 512,        // what every network carries (RFC 791: 576 with headers)
    PAYLOAD_SURE = 1232,      // nearly every one (RFC 8200: 1280)
    PAYLOAD_USUAL = 1472,     // Ethernet, IPv4
    PAYLOAD_LINK_MAX = 16384, // a route that carries more leaves no host
    TRIES = 3,
    CHECK_TRIES = 5,   // of a size that has worked: losses must not look like a limit
    WAIT_SECONDS = 10, // before longer packets are tried again
    SURE_SECONDS = 2,  // in which a size that was suspected and worked is not suspected again
    SHORT_BYTES = 128, // room for a cookie, should the peer not know us yet
    PING_BYTES = ALB_CSA_OUTER_BYTES + 4 + ALB_ICRC_BYTES,
};

// Between the tries of a check: long enough for something as long to arrive where most packets are dropped.
#define CHECK_WAIT_NS (20 * ALB_NS_PER_MS)

#define FOUND_NS (600ull * 1000000000) // that what was found is believed without another try

static const uint8_t zeros[8192]; // padding refers to it as often as need be

// Sizes that networks have, the largest first: loopback, jumbo frames over IPv4 and IPv6, InfiniBand, Ethernet, and
// Ethernet with a tunnel in it.
static const uint16_t usual[] = {65504, 8972, 8952, 4052, 1472, 1452, 1420, 1372};

static void set_size(struct alb_assoc *assoc, uint32_t bytes)
{
    assoc->payload_max = (uint16_t)ALB_MAX(bytes, (uint32_t)PAYLOAD_MIN);
}

static uint8_t seconds_of(alb_time now)
{
    return (uint8_t)(now >> 30);
}

// ---- what was found, for the associations to come -------------------------------------------------------------------

static bool is_found_of(const struct alb_mtu_found *found, const struct alb_assoc *assoc)
{
    return found->at && found->payload_limit == assoc->payload_limit && alb_addr_equals(&found->peer, &assoc->peer);
}

// The association's; else a free place, or the oldest.
static struct alb_mtu_found *find_found(struct alb_csa_engine *csa, const struct alb_assoc *assoc)
{
    struct alb_mtu_found *oldest = csa->mtu_found;
    for (struct alb_mtu_found *found = csa->mtu_found; found < csa->mtu_found + ALB_COUNT(csa->mtu_found); found++) {
        if (is_found_of(found, assoc))
            return found;
        if (found->at < oldest->at)
            oldest = found;
    }
    return oldest;
}

// What an association begins with while nothing was found. A route's word is not enough: a message that was cut for it
// never arrives where a switch carries less, or, over IPv6, where the refusal of a router is lost.
static uint32_t expected_bytes(const struct alb_engine *engine, const struct alb_assoc *assoc)
{
    uint32_t limit = assoc->payload_limit;
    if (assoc->is_route_mtu && (engine->config.csa_trusts_routes || limit > PAYLOAD_LINK_MAX))
        return limit;
    return ALB_MIN(limit, (uint32_t)(alb_addr_is_ipv4(&assoc->peer) ? PAYLOAD_USUAL : PAYLOAD_SURE));
}

// The size in use is what was found; worth a word if it is not what one begins with anyway.
static void remember(struct alb_engine *engine, const struct alb_assoc *assoc, alb_time now)
{
    struct alb_mtu_found *found = find_found(engine->csa, assoc);
    uint32_t size = assoc->payload_max, expected = expected_bytes(engine, assoc);
    if (size + ALB_MTU_GRAIN <= expected || size >= expected + ALB_MTU_GRAIN)
        *found = (struct alb_mtu_found){assoc->peer, now, assoc->payload_limit, assoc->payload_max};
    else if (is_found_of(found, assoc))
        *found = (struct alb_mtu_found){0};
}

// The size to begin with, now that peer and limit are known. Longer ones are tried after a while.
static void start(struct alb_engine *engine, struct alb_assoc *assoc)
{
    const struct alb_mtu_found *found = find_found(engine->csa, assoc);
    set_size(assoc, expected_bytes(engine, assoc));
    assoc->is_mtu_tried = assoc->is_mtu_sure = false;
    if (!is_found_of(found, assoc) || engine->now > found->at + FOUND_NS)
        return;
    set_size(assoc, found->payload_max);
    assoc->is_mtu_tried = true;
    assoc->mtu_tried_at = seconds_of(engine->now);
}

void alb_mtu_begin(struct alb_engine *engine, struct alb_assoc *assoc)
{
    assoc->payload_limit = (uint16_t)(engine->config.csa_payload_bytes & ~3u);
    start(engine, assoc);
}

// ---- a search -------------------------------------------------------------------------------------------------------

static void try(struct alb_mtu_search *search, alb_time now)
{
    struct alb_assoc_live *live = search->live;
    struct alb_engine *engine = live->engine;
    alb_time patience_ns = 2ull * alb_assoc_rtt_ns(live->assoc) + alb_assoc_margin_ns(engine, live->assoc);
    search->tries++;
    search->ping_is_due = true;
    alb_scheduler_wake(&engine->scheduler, &live->source);
    alb_time wait_ns = search->is_check ? CHECK_WAIT_NS : (alb_time)engine->config.csa_probe_min_ns;
    alb_wheel_arm(&engine->wheel, &search->timer.timer, now + ALB_MAX(patience_ns, wait_ns));
}

void alb_mtu_stop(struct alb_assoc_live *live)
{
    struct alb_mtu_search *search = live->mtu_search;
    if (!search)
        return;
    alb_wheel_disarm(&live->engine->wheel, &search->timer.timer);
    live->mtu_search = NULL;
    alb_buddy_put(&live->engine->csa->pool, search, sizeof(*search));
}

// What lies between the size in use and the one that is too long; 0: nothing worth a try.
static uint32_t next_candidate(const struct alb_assoc *assoc, uint32_t too_long)
{
    uint32_t works = assoc->payload_max;
    if (too_long < works + ALB_MTU_GRAIN)
        return 0;
    if (too_long > assoc->payload_limit)
        return assoc->payload_limit;
    for (size_t i = 0; i < ALB_COUNT(usual); i++)
        if (usual[i] < too_long && usual[i] > works)
            return usual[i];
    return ((works + too_long) / 2) & ~3u;
}

static void try_next(struct alb_mtu_search *search, alb_time now)
{
    struct alb_assoc_live *live = search->live;
    uint32_t candidate = next_candidate(live->assoc, search->too_long);
    if (candidate == 0 || candidate <= live->assoc->payload_max) {
        live->assoc->is_mtu_tried = true;
        live->assoc->is_mtu_sure = false;
        live->assoc->mtu_tried_at = seconds_of(now);
        remember(live->engine, live->assoc, now);
        alb_mtu_stop(live);
        return;
    }
    search->candidate = (uint16_t)candidate;
    search->is_check = false;
    search->tries = 0;
    try(search, now);
}

// Long packets vanish while short ones arrive.
static void step_down(struct alb_mtu_search *search, alb_time now)
{
    struct alb_assoc *assoc = search->live->assoc;
    search->too_long = assoc->payload_max;
    set_size(assoc, assoc->payload_max > PAYLOAD_SURE ? PAYLOAD_SURE : PAYLOAD_MIN);
    remember(search->live->engine, assoc, now); // should the queue pair not outlive the search
    search->live->engine->stats->sum.counter[ALB_STAT_path_mtu_drops]++;
    try_next(search, now);
}

static void on_timer(struct alb_deadline *deadline, alb_time now)
{
    struct alb_mtu_search *search = ALB_CONTAINER_OF(deadline, struct alb_mtu_search, timer);
    if (search->tries < (search->is_check ? CHECK_TRIES : TRIES)) {
        try(search, now);
    } else if (!search->is_check) {
        search->too_long = search->candidate;
        try_next(search, now);
    } else if (search->short_works) {
        step_down(search, now);
    } else {
        alb_mtu_stop(search->live); // the way is dead, whatever the size
    }
}

// A search that tries candidate first; NULL: one is under way, or the pool is empty.
static struct alb_mtu_search *begin_search(struct alb_assoc_live *live)
{
    struct alb_mtu_search *search = live->mtu_search ? NULL : alb_buddy_get(&live->engine->csa->pool, sizeof(*search));
    if (!search)
        return NULL;
    *search = (struct alb_mtu_search){.live = live, .too_long = UINT16_MAX};
    alb_deadline_init(&search->timer, on_timer);
    live->mtu_search = search;
    return search;
}

// ---- when there is one ----------------------------------------------------------------------------------------------

static bool was_tried_within(const struct alb_assoc *assoc, uint8_t seconds, alb_time now)
{
    return (uint8_t)(seconds_of(now) - assoc->mtu_tried_at) < seconds;
}

void alb_mtu_consider(struct alb_assoc_live *live, alb_time now)
{
    struct alb_assoc *assoc = live->assoc;
    if (alb_likely(assoc->payload_max + ALB_MTU_GRAIN > assoc->payload_limit))
        return;
    if (assoc->peer_epoch == 0) // it has never been heard, and may know nothing of us
        return;
    if (assoc->is_mtu_tried && was_tried_within(assoc, WAIT_SECONDS, now))
        return;
    assoc->is_mtu_tried = false;
    struct alb_mtu_search *search = begin_search(live);
    if (search)
        try_next(search, now);
}

void alb_mtu_suspect(struct alb_assoc_live *live, alb_time now)
{
    struct alb_assoc *assoc = live->assoc;
    if (live->engine->config.csa_trusts_routes)
        return;
    if (assoc->is_mtu_sure && was_tried_within(assoc, SURE_SECONDS, now))
        return;
    assoc->is_mtu_sure = false;
    struct alb_mtu_search *search = assoc->payload_max > PAYLOAD_MIN ? begin_search(live) : NULL;
    if (!search)
        return;
    search->candidate = live->assoc->payload_max;
    search->is_check = true;
    search->began_64ns = (uint32_t)(now >> 6);
    try(search, now);
}

void alb_mtu_set_route(struct alb_engine *engine, struct alb_assoc *assoc, uint32_t payload_max)
{
    payload_max = ALB_MIN(payload_max, engine->config.csa_payload_bytes) & ~3u;
    if (payload_max == assoc->payload_limit && assoc->is_route_mtu)
        return; // what was found out since holds
    if (assoc->live)
        alb_mtu_stop(assoc->live);
    assoc->payload_limit = (uint16_t)ALB_MAX(payload_max, (uint32_t)PAYLOAD_MIN);
    assoc->is_route_mtu = true;
    start(engine, assoc);
    alb_assoc_show(engine, assoc);
}

// ---- PING and PONG --------------------------------------------------------------------------------------------------

// It works: those losses had another reason.
static void end_check(struct alb_assoc_live *live, alb_time now)
{
    live->assoc->is_mtu_sure = true;
    live->assoc->mtu_tried_at = seconds_of(now);
    alb_mtu_stop(live);
}

void alb_mtu_on_full(struct alb_assoc_live *live, uint32_t sent_at_64ns)
{
    const struct alb_mtu_search *search = live->mtu_search;
    if (search && search->is_check && (int32_t)(sent_at_64ns - search->began_64ns) >= 0)
        end_check(live, live->engine->now);
}

void alb_mtu_on_pong(struct alb_assoc_live *live, uint32_t bytes, alb_time now)
{
    struct alb_mtu_search *search = live->mtu_search;
    if (!search)
        return;
    if (bytes != search->candidate) {
        search->short_works |= bytes == SHORT_BYTES;
        return;
    }
    if (search->is_check) {
        end_check(live, now);
        return;
    }
    set_size(live->assoc, search->candidate);
    try_next(search, now);
}

static bool add_ping(struct alb_csa_packet *packet, uint32_t bytes)
{
    uint8_t frame[ALB_CSA_FRAME_MAX];
    uint32_t padding_bytes = bytes - PING_BYTES;
    uint32_t header_bytes = alb_csa_encode_ping((uint16_t)padding_bytes, frame);
    if (!alb_csa_packet_open(packet))
        return false;
    packet->is_whole = true;
    uint32_t refs = (padding_bytes + sizeof(zeros) - 1) / sizeof(zeros);
    uint8_t *at = alb_csa_packet_frame(packet, header_bytes, padding_bytes, refs);
    if (at) {
        memcpy(at, frame, header_bytes);
        for (uint32_t left = padding_bytes; left > 0; left -= ALB_MIN(left, (uint32_t)sizeof(zeros)))
            alb_tx_payload(packet->builder, zeros, ALB_MIN(left, (uint32_t)sizeof(zeros)));
    }
    alb_csa_packet_close(packet);
    return at != NULL;
}

bool alb_mtu_send(struct alb_csa_packet *packet)
{
    struct alb_mtu_search *search = packet->live->mtu_search;
    if (alb_likely(!search) || !search->ping_is_due)
        return true;
    alb_csa_packet_close(packet);
    // The long one first: a policer that has little left would pass the short one alone.
    if (!add_ping(packet, search->candidate))
        return false;
    if (search->is_check && !search->short_works && !add_ping(packet, SHORT_BYTES))
        return false;
    search->ping_is_due = false;
    return true;
}
