// SPDX-License-Identifier: BSD-2-Clause
// When sizes are tried. What comes of it on real paths is tested over the virtual network (sim/tests/csa_mtu_test.c).
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define MS ALB_NS_PER_MS

static struct alb_assoc_live *suspect(struct csa_pair *c)
{
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    assert_non_null(live);
    alb_mtu_suspect(live, c->pair->now);
    return live;
}

// The PINGs themselves may be what is in the way of a segment, in a short queue.
static void suspect__not_again_at_once_when_the_size_has_worked(void **state)
{
    struct csa_pair *c = *state;
    assert_non_null(suspect(c)->mtu_search);
    pair_settle(c->pair);
    assert_null(csa_pair_live(c, 0)->mtu_search); // it works
    for (uint32_t i = 0; i < 10; i++) {
        pair_pass(c->pair, 90 * MS);
        assert_null(suspect(c)->mtu_search);
        pair_settle(c->pair);
    }
    pair_pass(c->pair, 2000 * MS);
    assert_non_null(suspect(c)->mtu_search);
    pair_settle(c->pair);
}

// A size that was given up is another matter.
static void suspect__at_once_when_the_size_is_another(void **state)
{
    struct csa_pair *c = *state;
    suspect(c);
    pair_settle(c->pair);
    alb_mtu_set_route(c->engines[0], c->csa[0]->assoc, 800);
    assert_non_null(suspect(c)->mtu_search);
    pair_settle(c->pair);
    assert_null(suspect(c)->mtu_search);
}

// ---- the sizes of a search ------------------------------------------------------------------------------------------

enum {
    SIZES_MAX = 24,
    TRIES = 3,
    CHECK_TRIES = 5,
};

struct search {
    uint16_t in_use, limit; // at first
    uint16_t network;       // what gets through
    uint16_t sizes[SIZES_MAX], found;
};

// PINGs are answered by hand, and nothing leaves.
static struct alb_assoc_live *prepare(struct csa_pair *c, uint16_t in_use, uint16_t limit)
{
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    assert_non_null(live);
    live->assoc->payload_max = in_use;
    live->assoc->payload_limit = limit;
    live->assoc->is_mtu_tried = live->assoc->is_mtu_sure = false;
    return live;
}

static void time_out(struct alb_assoc_live *live, uint32_t times, alb_time now)
{
    for (uint32_t i = 0; i < times; i++) {
        assert_non_null(live->mtu_search);
        live->mtu_search->timer.fire(&live->mtu_search->timer, now);
    }
}

static void follow(struct csa_pair *c, struct alb_assoc_live *live, const struct search *search)
{
    for (uint32_t i = 0; search->sizes[i] > 0; i++) {
        assert_non_null(live->mtu_search);
        uint16_t size = live->mtu_search->candidate;
        assert_int_equal(size, search->sizes[i]);
        if (size <= search->network) {
            alb_mtu_on_pong(live, size, c->pair->now);
            continue;
        }
        time_out(live, TRIES - 1, c->pair->now);
        assert_int_equal(live->mtu_search->candidate, size);
        time_out(live, 1, c->pair->now);
    }
    assert_null(live->mtu_search);
    assert_int_equal(live->assoc->payload_max, search->found);
}

static void consider__sizes_that_it_tries(void **state)
{
    static const struct search searches[] = {
        {1472, 9000, 9000, {9000}, 9000},
        {1472, 65504, 4000, {65504, 8972, 8952, 4052, 2760, 3404, 3728, 3888, 3968, 4008, 3988}, 3988},
        {1472, 1504, 1503, {1504, 1488}, 1488}, // 32 bytes are worth a try, fewer are not
    };
    struct csa_pair *c = *state;
    for (size_t i = 0; i < ALB_COUNT(searches); i++) {
        struct alb_assoc_live *live = prepare(c, searches[i].in_use, searches[i].limit);
        alb_mtu_consider(live, c->pair->now);
        follow(c, live, &searches[i]);
    }
}

static void consider__not_for_less_than_is_worth_it(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = prepare(c, 1472, 1472 + 31);
    alb_mtu_consider(live, c->pair->now);
    assert_null(live->mtu_search);
    live = prepare(c, 1472, 1472 + 32);
    alb_mtu_consider(live, c->pair->now);
    assert_non_null(live->mtu_search);
}

static void consider__not_again_for_ten_seconds(void **state)
{
    static const struct search in_vain = {1472, 1504, 1472, {1504, 1488}, 1472};
    struct csa_pair *c = *state;
    const alb_time second = 1ull << 30; // as the association counts them
    pair_pass(c->pair, 20 * second);
    struct alb_assoc_live *live = prepare(c, in_vain.in_use, in_vain.limit);
    alb_mtu_consider(live, c->pair->now);
    follow(c, live, &in_vain);
    alb_mtu_consider(live, c->pair->now + 9 * second);
    assert_null(live->mtu_search);
    alb_mtu_consider(live, c->pair->now + 10 * second);
    assert_non_null(live->mtu_search);
}

// That the size before it worked, when it was suspected, says nothing of the one that was found.
static void consider__what_it_finds_may_be_suspected(void **state)
{
    static const struct search search = {1472, 9000, 9000, {9000}, 9000};
    struct csa_pair *c = *state;
    suspect(c);
    pair_settle(c->pair);
    struct alb_assoc_live *live = prepare(c, search.in_use, search.limit);
    live->assoc->is_mtu_sure = true;
    alb_mtu_consider(live, c->pair->now);
    follow(c, live, &search);
    assert_non_null(suspect(c)->mtu_search);
}

static void suspect__long_packets_vanish(void **state)
{
    static const struct search searches[] = {
        {1472, 1472, 1300, {1452, 1420, 1372, 1300, 1336, 1316}, 1300},
        {1232, 1472, 600, {872, 692, 600, 644, 620}, 600},
    };
    struct csa_pair *c = *state;
    for (size_t i = 0; i < ALB_COUNT(searches); i++) {
        struct alb_assoc_live *live = prepare(c, searches[i].in_use, searches[i].limit);
        alb_mtu_suspect(live, c->pair->now);
        alb_mtu_on_pong(live, 128, c->pair->now); // the short one
        time_out(live, CHECK_TRIES - 1, c->pair->now);
        assert_int_equal(live->assoc->payload_max, searches[i].in_use);
        time_out(live, 1, c->pair->now);
        follow(c, live, &searches[i]);
        assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_path_mtu_drops), i + 1);
    }
}

// The short PING asks whether anything arrives: once it was answered, that is known.
static void suspect__short_one_beside_the_long_one(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = suspect(c);
    for (uint32_t i = 0; i < 3; i++) {
        pair_send(c->pair, 0);
        assert_int_equal(csa_pair_count(c, 0, ALB_CSA_PING, NULL), i < 2 ? 2 : 1);
        while (pair_count(c->pair, 0))
            pair_lose(c->pair, 0);
        if (i == 1)
            alb_mtu_on_pong(live, 128, c->pair->now);
        time_out(live, 1, c->pair->now);
    }
}

static void suspect__a_dead_path_says_nothing_of_sizes(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = prepare(c, 1472, 1472);
    alb_mtu_suspect(live, c->pair->now);
    alb_mtu_on_pong(live, 600, c->pair->now); // of a search that is over
    time_out(live, CHECK_TRIES, c->pair->now);
    assert_null(live->mtu_search);
    assert_int_equal(live->assoc->payload_max, 1472);
}

static void suspect__not_the_shortest(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = prepare(c, 512, 1472);
    alb_mtu_suspect(live, c->pair->now);
    assert_null(live->mtu_search);
}

static void set_route__what_was_found_out_since_holds(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = prepare(c, 800, 1000);
    live->assoc->is_route_mtu = false;
    alb_mtu_set_route(c->engines[0], live->assoc, 1000); // the first word of the routes
    assert_int_equal(live->assoc->payload_max, 1000);
    live->assoc->payload_max = 800;
    alb_mtu_set_route(c->engines[0], live->assoc, 1000);
    assert_int_equal(live->assoc->payload_max, 800);
    alb_mtu_set_route(c->engines[0], live->assoc, 900);
    assert_int_equal(live->assoc->payload_max, 900);
}

static void set_route__ends_a_search(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = prepare(c, 1472, 9000);
    alb_mtu_consider(live, c->pair->now);
    assert_non_null(live->mtu_search);
    alb_mtu_set_route(c->engines[0], live->assoc, 1000);
    assert_null(live->mtu_search);
    assert_int_equal(live->assoc->payload_max, 1000);
}

// ---- what was found is remembered -----------------------------------------------------------------------------------

static const struct search narrow = {1472, 1472, 1300, {1452, 1420, 1372, 1300, 1336, 1316}, 1300};

static void find_narrow(struct csa_pair *c)
{
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    c->engines[0]->config.csa_payload_bytes = narrow.limit;
    live->assoc->is_route_mtu = false;
    alb_mtu_set_route(c->engines[0], live->assoc, narrow.limit);
    alb_mtu_suspect(live, c->pair->now);
    alb_mtu_on_pong(live, 128, c->pair->now);
    time_out(live, CHECK_TRIES, c->pair->now);
    follow(c, live, &narrow);
}

// Another association with that peer: of another slot.
static struct alb_assoc *begin(struct csa_pair *c, const struct alb_addr *peer, uint32_t route)
{
    struct alb_engine *engine = c->engines[0];
    struct alb_assoc *assoc = alb_assoc_get(engine, &engine->csa->locals[c->csa[0]->assoc->local], peer, 77);
    assert_non_null(assoc);
    if (route)
        alb_mtu_set_route(engine, assoc, route);
    return assoc;
}

static void expect_begins_with(struct csa_pair *c, const struct alb_addr *peer, uint32_t route, uint32_t expected)
{
    struct alb_assoc *assoc = begin(c, peer, route);
    assert_int_equal(assoc->payload_max, expected);
    alb_assoc_put(c->engines[0], assoc);
}

static void begin__with_what_was_found(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_addr peer = c->csa[0]->assoc->peer;
    struct alb_addr other = peer;
    other.bytes[15] ^= 1;
    find_narrow(c);
    expect_begins_with(c, &peer, 1472, 1300);
    expect_begins_with(c, &peer, 1400, 1400); // another route
    expect_begins_with(c, &other, 1472, 1472);
}

static void begin__what_was_found_is_tried_again_later(void **state)
{
    struct csa_pair *c = *state;
    const alb_time second = 1ull << 30;
    find_narrow(c);
    struct alb_assoc *assoc = begin(c, &c->csa[0]->assoc->peer, 1472);
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], assoc);
    alb_mtu_consider(live, c->pair->now + 9 * second);
    assert_null(live->mtu_search);
    alb_mtu_consider(live, c->pair->now + 11 * second);
    assert_null(live->mtu_search); // nothing has been heard of the peer
    assoc->peer_epoch = 1;
    alb_mtu_consider(live, c->pair->now + 11 * second);
    assert_int_equal(live->mtu_search->candidate, 1472);
    alb_mtu_on_pong(live, 1472, c->pair->now + 11 * second); // it has become as wide as the routes say
    alb_assoc_put(c->engines[0], assoc);
    expect_begins_with(c, &c->csa[0]->assoc->peer, 1472, 1472);
}

static void begin__what_was_found_is_forgotten_in_time(void **state)
{
    struct csa_pair *c = *state;
    find_narrow(c);
    pair_pass(c->pair, 599000 * MS);
    pair_settle(c->pair);
    expect_begins_with(c, &c->csa[0]->assoc->peer, 1472, 1300);
    pair_pass(c->pair, 2000 * MS);
    pair_settle(c->pair);
    expect_begins_with(c, &c->csa[0]->assoc->peer, 1472, 1472);
}

// There is room for so many peers, and then for the newest.
static void begin__newest_are_remembered(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_addr peer = c->csa[0]->assoc->peer;
    for (uint32_t i = 0; i <= ALB_MTU_FOUND_MAX; i++) {
        c->csa[0]->assoc->peer.bytes[15] = (uint8_t)(peer.bytes[15] + i);
        pair_pass(c->pair, MS);
        pair_settle(c->pair);
        find_narrow(c);
    }
    c->csa[0]->assoc->peer = peer;
    for (uint32_t i = 0; i <= ALB_MTU_FOUND_MAX; i++) {
        struct alb_addr other = peer;
        other.bytes[15] = (uint8_t)(peer.bytes[15] + i);
        expect_begins_with(c, &other, 1472, i == 0 ? 1472 : 1300);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(suspect__not_again_at_once_when_the_size_has_worked),
        CSA_GREETED_TEST(suspect__at_once_when_the_size_is_another),
        CSA_GREETED_TEST(consider__sizes_that_it_tries),
        CSA_GREETED_TEST(consider__not_for_less_than_is_worth_it),
        CSA_GREETED_TEST(consider__not_again_for_ten_seconds),
        CSA_GREETED_TEST(consider__what_it_finds_may_be_suspected),
        CSA_GREETED_TEST(suspect__long_packets_vanish),
        CSA_GREETED_TEST(suspect__short_one_beside_the_long_one),
        CSA_GREETED_TEST(suspect__a_dead_path_says_nothing_of_sizes),
        CSA_GREETED_TEST(suspect__not_the_shortest),
        CSA_GREETED_TEST(set_route__what_was_found_out_since_holds),
        CSA_GREETED_TEST(set_route__ends_a_search),
        CSA_GREETED_TEST(begin__with_what_was_found),
        CSA_GREETED_TEST(begin__what_was_found_is_tried_again_later),
        CSA_GREETED_TEST(begin__what_was_found_is_forgotten_in_time),
        CSA_GREETED_TEST(begin__newest_are_remembered),
    };
    return cmocka_run_group_tests_name("csa_mtu", tests, NULL, NULL);
}
