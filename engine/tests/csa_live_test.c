// SPDX-License-Identifier: BSD-2-Clause
// What an association has while it is awake, and when it has none.
#include "engine/tests/csa_pair.h"

#define MS ALB_NS_PER_MS

// Long enough for both associations to fall asleep.
static void doze(struct csa_pair *c)
{
    pair_settle(c->pair);
    pair_pass(c->pair, 3000 * MS);
    assert_null(csa_pair_live(c, 0));
    assert_null(csa_pair_live(c, 1));
}

static void set_timeout(struct alb_qp_attr *attr, int side)
{
    attr->timeout = 0;
}

static uint32_t drain_pool(struct alb_buddy *pool, void **blocks, uint32_t count)
{
    uint32_t taken = 0;
    while (taken < count && (blocks[taken] = alb_buddy_get(pool, 64)))
        taken++;
    return taken;
}

static void wake__takes_memory_that_sleep_gives_back(void **state)
{
    struct csa_pair *c = *state;
    struct alb_buddy *pool = &c->engines[0]->csa->pool;
    doze(c);
    assert_int_equal(alb_buddy_used(pool), 0);
    csa_pair_greet(c);
    assert_non_null(csa_pair_live(c, 0));
    assert_true(alb_buddy_used(pool) > 0);
    doze(c);
    assert_int_equal(alb_buddy_used(pool), 0);
    assert_true(alb_engine_deadline(c->engines[0]) == ALB_TIME_NEVER); // nothing is left to look at
}

static void sweep__spares_what_is_in_use(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    struct alb_assoc_live *live = csa_pair_live(c, 0);
    for (uint32_t i = 0; i < 5; i++) {
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 8);
        pair_settle(c->pair);
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
        pair_pass(c->pair, 45 * MS);
        assert_ptr_equal(csa_pair_live(c, 0), live);
    }
}

static void sweep__spares_what_is_in_flight(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, set_timeout);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    pair_pass(c->pair, 5000 * MS);
    assert_non_null(csa_pair_live(c, 0));
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

// Sequence numbers go on, so that the peer's path does not begin anew in the middle of what it knows.
static void sleep__keeps_sequence_and_round_trip_time(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    struct alb_assoc *assoc = c->csa[0]->assoc;
    alb_psn next = assoc->live->paths->path[0].next;
    assoc->live->rtt_ns = 12345;
    pair_pass(c->pair, 3000 * MS);
    assert_null(assoc->live);
    assert_int_equal(alb_assoc_rtt_ns(assoc), 12345);
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], assoc);
    assert_int_equal(live->paths->path[0].next, next);
    assert_int_equal(live->rtt_ns, 12345);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

// Nothing else would remind a sender that waits for memory.
static void wake__is_tried_again_when_the_pool_was_empty(void **state)
{
    struct csa_pair *c = *state;
    struct alb_buddy *pool = &c->engines[0]->csa->pool;
    void *blocks[4096];
    doze(c);
    uint32_t taken = drain_pool(pool, blocks, ALB_COUNT(blocks));
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    assert_int_equal(pair_send(c->pair, 0), 0);
    pair_pass(c->pair, 2500 * MS);
    assert_int_equal(pair_send(c->pair, 0), 0);
    while (taken > 0)
        alb_buddy_put(pool, blocks[--taken], 64);
    pair_pass(c->pair, 1000 * MS);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

static void wake__not_of_who_is_gone_meanwhile(void **state)
{
    struct csa_pair *c = *state;
    struct alb_buddy *pool = &c->engines[0]->csa->pool;
    void *blocks[4096];
    doze(c);
    uint32_t taken = drain_pool(pool, blocks, ALB_COUNT(blocks));
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    assert_int_equal(pair_send(c->pair, 0), 0);
    assert_int_equal(alb_qp_destroy(c->qps[0]), 0);
    while (taken > 0)
        alb_buddy_put(pool, blocks[--taken], 64);
    pair_pass(c->pair, 3000 * MS);
    assert_int_equal(pair_send(c->pair, 0), 0);
}

// A packet for which there is no memory is as good as lost.
static void wake__packets_wait_for_memory_too(void **state)
{
    struct csa_pair *c = *state;
    struct alb_buddy *pool = &c->engines[1]->csa->pool;
    void *blocks[4096];
    doze(c);
    uint32_t taken = drain_pool(pool, blocks, ALB_COUNT(blocks));
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    pair_settle(c->pair);
    csa_pair_expect_none(c, 0);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NO_RESOURCES), 1);
    while (taken > 0)
        alb_buddy_put(pool, blocks[--taken], 64);
    pair_pass(c->pair, 2 * MS);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(wake__takes_memory_that_sleep_gives_back),
        CSA_PAIR_TEST(sweep__spares_what_is_in_use),
        cmocka_unit_test(sweep__spares_what_is_in_flight),
        CSA_PAIR_TEST(sleep__keeps_sequence_and_round_trip_time),
        CSA_PAIR_TEST(wake__is_tried_again_when_the_pool_was_empty),
        CSA_PAIR_TEST(wake__not_of_who_is_gone_meanwhile),
        CSA_PAIR_TEST(wake__packets_wait_for_memory_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
