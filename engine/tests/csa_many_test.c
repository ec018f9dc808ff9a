// SPDX-License-Identifier: BSD-2-Clause
// 100,000 associations in one engine, and one that is used. What they cost it is counted, in steps and packets and
// bytes: clocks say little on a machine that others use too.
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

enum {
    MANY = 100000,
    PLACES = 1 << 17,
    MESSAGES = 200,
};

static void allow_many(struct alb_engine_config *config)
{
    config->peer_max = PLACES;
}

static void peer_of(uint32_t i, struct alb_addr *peer, uint8_t *slot)
{
    *peer = alb_addr_from_ipv4((const uint8_t[]){11, (uint8_t)(i >> 12), (uint8_t)(i >> 4), 1});
    *slot = (uint8_t)(i & 15); // sixteen engines on each host
}

static void make_many(struct csa_pair *c, int side)
{
    for (uint32_t i = 0; i < MANY; i++) {
        struct alb_addr peer;
        uint8_t slot;
        peer_of(i, &peer, &slot);
        assert_non_null(alb_assoc_get(c->engines[side], &c->pair->hosts[side].addr, &peer, slot));
    }
}

static void end_many(struct csa_pair *c, int side)
{
    for (uint32_t i = 0; i < MANY; i++) {
        struct alb_addr peer;
        uint8_t slot;
        peer_of(i, &peer, &slot);
        alb_assoc_put(c->engines[side], alb_assoc_find(c->engines[side], &c->pair->hosts[side].addr, &peer, slot));
    }
}

static void many__each_is_found_within_a_few_steps(void **state)
{
    struct csa_pair *c = csa_pair_new(allow_many, NULL);
    const struct alb_csa_engine *csa = c->engines[0]->csa;
    make_many(c, 0);
    assert_int_equal(csa->assoc_count, MANY + 1);
    for (uint32_t i = 0; i < MANY; i++) {
        struct alb_addr peer;
        uint8_t slot;
        peer_of(i, &peer, &slot);
        const struct alb_assoc *assoc = alb_assoc_find(c->engines[0], &c->pair->hosts[0].addr, &peer, slot);
        assert_non_null(assoc);
        assert_true(assoc->slot == slot && alb_addr_equals(&assoc->peer, &peer));
    }
    uint64_t steps = 0; // of looking for each of them once
    for (uint32_t bucket = 0; bucket < csa->bucket_count; bucket++) {
        uint32_t length = 0;
        for (uint32_t next = csa->buckets[bucket]; next; next = csa->assocs[next - 1].next)
            steps += ++length;
        assert_true(length <= 12);
    }
    assert_in_range(steps, MANY, 2 * MANY);
    end_many(c, 0);
    assert_int_equal(csa->assoc_count, 1);
    csa_pair_free(c);
}

static void many__idle_ones_take_their_place_in_the_table_and_nothing_else(void **state)
{
    struct csa_pair *c = csa_pair_new(allow_many, NULL);
    size_t held = c->pair->hosts[0].bytes_held, used = alb_buddy_used(&c->engines[0]->csa->pool);
    uint64_t gets = c->pair->hosts[0].gets;
    make_many(c, 0);
    assert_int_equal(c->pair->hosts[0].bytes_held, held);
    assert_int_equal(c->pair->hosts[0].gets, gets);
    assert_int_equal(alb_buddy_used(&c->engines[0]->csa->pool), used);
    assert_true(held < PLACES * (sizeof(struct alb_assoc) + sizeof(uint32_t)) + (4 << 20));
    end_many(c, 0);
    csa_pair_free(c);
}

// What one association that is used does, and what its engines do meanwhile.
struct effort {
    uint64_t packets, segments_again, timers;
    alb_time took;
};

static uint32_t live_count(const struct alb_engine *engine)
{
    uint32_t count = 0;
    ALB_LIST_FOR_EACH (&engine->csa->live, node)
        count++;
    return count;
}

// Time goes on from one timer to the next, which are counted.
static void pass(struct csa_pair *c, alb_time until, struct effort *effort)
{
    while (c->pair->now < until) {
        alb_time next = until;
        for (int side = 0; side < 2; side++)
            next = ALB_MIN(next, alb_engine_deadline(c->engines[side]));
        effort->timers += next < until;
        pair_pass(c->pair, ALB_MAX(next, c->pair->now + 1) - c->pair->now);
        pair_settle(c->pair);
    }
}

static struct effort work(bool has_many)
{
    struct csa_pair *c = csa_pair_new(allow_many, NULL);
    struct effort effort = {0};
    if (has_many) {
        make_many(c, 0);
        make_many(c, 1);
    }
    alb_time began = c->pair->now;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        csa_pair_ask(c, i % 2 ? ALB_WR_RDMA_READ : ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 1 + 97 * i);
        pair_send(c->pair, 0);
        if (i % 7 == 0)
            pair_lose(c->pair, 0); // some has to be looked for
        pair_settle(c->pair);
        pass(c, c->pair->now + 20 * ALB_NS_PER_MS, &effort);
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
        assert_int_equal(live_count(c->engines[0]), 1); // that the sweep visits
    }
    effort.took = c->pair->now - began;
    effort.packets = csa_pair_stat(c, 0, ALB_STAT_sent_pkts) + csa_pair_stat(c, 1, ALB_STAT_sent_pkts);
    effort.segments_again = csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts);
    if (has_many) {
        end_many(c, 0);
        end_many(c, 1);
    }
    csa_pair_free(c);
    return effort;
}

static void many__one_in_use_does_the_same_work(void **state)
{
    struct effort alone = work(false), among_many = work(true);
    assert_true(alone.segments_again > 0);
    assert_int_equal(among_many.packets, alone.packets);
    assert_int_equal(among_many.segments_again, alone.segments_again);
    assert_int_equal(among_many.timers, alone.timers);
    assert_int_equal(among_many.took, alone.took);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many__each_is_found_within_a_few_steps),
        cmocka_unit_test(many__idle_ones_take_their_place_in_the_table_and_nothing_else),
        cmocka_unit_test(many__one_in_use_does_the_same_work),
    };
    return cmocka_run_group_tests_name("csa_many", tests, NULL, NULL);
}
