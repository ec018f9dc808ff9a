// SPDX-License-Identifier: BSD-2-Clause
// The table of associations, what an association has while it is awake, and when it has none.
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define MS ALB_NS_PER_MS

static struct alb_addr addr(uint8_t last)
{
    return alb_addr_from_ipv4((const uint8_t[]){10, 1, 0, last});
}

static struct alb_assoc *get(struct csa_pair *c, uint8_t local, uint8_t peer, uint8_t slot)
{
    struct alb_addr from = addr(local), to = addr(peer);
    return alb_assoc_get(c->engines[0], &from, &to, slot);
}

static struct alb_assoc *find(struct csa_pair *c, uint8_t local, uint8_t peer, uint8_t slot)
{
    struct alb_addr from = addr(local), to = addr(peer);
    return alb_assoc_find(c->engines[0], &from, &to, slot);
}

// ---- the table ------------------------------------------------------------------------------------------------------

static void get__one_for_each_peer_engine(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc *a = get(c, 1, 2, 0);
    assert_non_null(a);
    assert_ptr_equal(get(c, 1, 2, 0), a);
    struct alb_assoc *other_slot = get(c, 1, 2, 1), *other_local = get(c, 3, 2, 0), *other_peer = get(c, 1, 4, 0);
    assert_true(a != other_slot && a != other_local && a != other_peer && other_slot != other_local);
    assert_ptr_equal(find(c, 1, 2, 1), other_slot);
    assert_ptr_equal(find(c, 3, 2, 0), other_local);
    assert_null(find(c, 1, 2, 2));
    assert_null(find(c, 9, 2, 0));
    struct alb_assoc *all[] = {a, a, other_slot, other_local, other_peer};
    for (uint32_t i = 0; i < ALB_COUNT(all); i++)
        alb_assoc_put(c->engines[0], all[i]);
    assert_null(find(c, 1, 2, 0));
}

static void get__refuses_beyond_peer_max(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc *assocs[8]; // peer_max, one of which is in use
    for (uint8_t i = 0; i < 7; i++) {
        assocs[i] = get(c, 1, (uint8_t)(10 + i), 0);
        assert_non_null(assocs[i]);
    }
    assert_null(get(c, 1, 20, 0));
    alb_assoc_put(c->engines[0], assocs[3]);
    assocs[3] = get(c, 1, 20, 0);
    assert_non_null(assocs[3]);
    for (uint8_t i = 0; i < 7; i++) {
        if (i != 3)
            assert_ptr_equal(find(c, 1, (uint8_t)(10 + i), 0), assocs[i]);
        alb_assoc_put(c->engines[0], assocs[i]);
    }
    assert_int_equal(c->engines[0]->csa->assoc_count, 1);
}

static void allow_many_peers(struct alb_engine_config *config)
{
    config->peer_max = 32;
}

static void get__knows_sixteen_local_addresses_at_a_time(void **state)
{
    struct csa_pair *c = csa_pair_new(allow_many_peers, NULL);
    struct alb_assoc *assocs[15]; // the first address is the host's own
    for (uint8_t i = 0; i < 15; i++) {
        assocs[i] = get(c, (uint8_t)(30 + i), 2, 0);
        assert_non_null(assocs[i]);
    }
    assert_null(get(c, 60, 2, 0));
    struct alb_assoc *second = get(c, 33, 4, 0);
    assert_non_null(second);
    alb_assoc_put(c->engines[0], assocs[3]);
    assert_null(get(c, 60, 2, 0)); // somebody still uses it
    alb_assoc_put(c->engines[0], second);
    assocs[3] = get(c, 60, 2, 0);
    assert_non_null(assocs[3]);
    assert_null(find(c, 33, 2, 0));
    assert_ptr_equal(find(c, 60, 2, 0), assocs[3]);
    for (uint8_t i = 0; i < 15; i++)
        alb_assoc_put(c->engines[0], assocs[i]);
    void *all = c;
    csa_pair_teardown(&all);
}

// One after another there may be any number.
static void get__local_addresses_that_nobody_uses_make_room(void **state)
{
    struct csa_pair *c = *state;
    for (uint8_t i = 0; i < 100; i++) {
        struct alb_assoc *assoc = get(c, (uint8_t)(30 + i), 2, 0);
        assert_non_null(assoc);
        assert_ptr_equal(find(c, (uint8_t)(30 + i), 2, 0), assoc);
        alb_assoc_put(c->engines[0], assoc);
        assert_null(find(c, (uint8_t)(30 + i), 2, 0));
    }
}

static void payload__is_bounded_and_a_multiple_of_four(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc *assoc = c->csa[0]->assoc;
    uint32_t most = c->engines[0]->config.csa_payload_bytes;
    alb_mtu_told(c->engines[0], assoc, 1000000);
    assert_int_equal(assoc->payload_max, most);
    alb_mtu_told(c->engines[0], assoc, 1003);
    assert_int_equal(assoc->payload_max, 1000);
    alb_mtu_told(c->engines[0], assoc, 0);
    assert_int_equal(assoc->payload_max, 512);
    const struct alb_endpoint peer = {c->pair->hosts[1].addr, ALB_ROCE_PORT};
    alb_engine_path_mtu(c->engines[0], &peer, 804, c->pair->now);
    assert_int_equal(assoc->payload_max, 804);
}

static void engine__refuses_what_can_not_be(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_engine_config good = c->engines[0]->config;
    struct alb_engine_config bad[7];
    for (uint32_t i = 0; i < ALB_COUNT(bad); i++)
        bad[i] = good;
    bad[0].csa_window_segments = 2;
    bad[1].csa_window_segments = 100; // no power of two
    bad[2].csa_payload_bytes = 508;
    bad[3].csa_payload_bytes = 65508;
    bad[4].csa_payload_bytes = 1001;
    bad[5].path_max = ALB_PATHS_MAX + 1;
    bad[6].loss = "irn:few=many";
    for (uint32_t i = 0; i < ALB_COUNT(bad); i++) {
        struct alb_engine *engine;
        assert_int_equal(alb_engine_create(&bad[i], &engine), EINVAL);
    }
}

// ---- awake and asleep -----------------------------------------------------------------------------------------------

// Long enough for both associations to fall asleep.
static void doze(struct csa_pair *c)
{
    pair_settle(c->pair);
    pair_pass(c->pair, 3000 * MS);
    assert_null(csa_pair_live(c, 0));
    assert_null(csa_pair_live(c, 1));
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

static void set_timeout(struct alb_qp_attr *attr, int side)
{
    attr->timeout = 0;
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
    void *all = c;
    csa_pair_teardown(&all);
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

static uint32_t drain_pool(struct alb_buddy *pool, void **blocks, uint32_t count)
{
    uint32_t taken = 0;
    while (taken < count && (blocks[taken] = alb_buddy_get(pool, 64)))
        taken++;
    return taken;
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

static void path_in__grows_to_the_number_that_came(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    struct alb_assoc_live *live = csa_pair_live(c, 1);
    assert_int_equal(live->paths_in_count, 1);
    uint32_t received = live->paths_in[0].received;
    struct alb_path_in *fifth = alb_assoc_path_in(live, 5);
    assert_ptr_equal(fifth, &live->paths_in[5]);
    assert_int_equal(live->paths_in_count, 8);
    assert_int_equal(live->paths_in[0].received, received);
    assert_int_equal(live->paths_in[5].received, 0);
    assert_non_null(alb_assoc_path_in(live, ALB_PATHS_MAX - 1));
    assert_null(alb_assoc_path_in(live, ALB_PATHS_MAX));
    assert_null(alb_assoc_path_in(live, 255));
}

// ---- round-trip time and window -------------------------------------------------------------------------------------

static void rtt__is_smoothed(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc *assoc = c->csa[0]->assoc;
    assert_int_equal(alb_assoc_rtt_ns(assoc), MS); // nothing is known
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], assoc);
    live->peer_rtt_ns = 300000;
    assert_int_equal(alb_assoc_rtt_ns(assoc), 300000); // what the peer says, if that is all
    alb_assoc_on_rtt(live, 80000);
    assert_int_equal(alb_assoc_rtt_ns(assoc), 80000);
    assert_int_equal(live->rtt_var_ns, 10000);
    alb_assoc_on_rtt(live, 160000);
    assert_int_equal(live->rtt_ns, 90000);
    assert_int_equal(live->rtt_min_ns, 80000);
    assert_int_equal(live->rtt_var_ns, 27500);
    assert_int_equal(alb_assoc_margin_ns(c->engines[0], assoc), 90000); // four times the variation, or a round trip
}

static void margin__is_a_round_trip_at_most(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc *assoc = c->csa[0]->assoc;
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], assoc);
    live->rtt_ns = live->rtt_min_ns = 1600;
    live->rtt_var_ns = 1500000000;
    assert_int_equal(alb_assoc_margin_ns(c->engines[0], assoc), 1600);
    live->rtt_var_ns = 0;
    assert_int_equal(alb_assoc_margin_ns(c->engines[0], assoc), 200);
    live->rtt_ns = 10; // a floor for what clocks and processors do
    assert_int_equal(alb_assoc_margin_ns(c->engines[0], assoc), c->engines[0]->config.csa_margin_min_ns);
}

static void window__lets_one_segment_go_in_any_case(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    live->congestion.window_bytes = 1000;
    assert_true(alb_assoc_permits(live, 50000));
    alb_assoc_charge(live, 400);
    assert_true(alb_assoc_permits(live, 600));
    assert_false(alb_assoc_permits(live, 601));
    live->credit_bytes = 500; // of window and credit the smaller one
    assert_true(alb_assoc_permits(live, 100));
    assert_false(alb_assoc_permits(live, 101));
    live->credit_bytes = 0;
    assert_false(alb_assoc_permits(live, 1));
    alb_assoc_release(live, 400);
    assert_true(alb_assoc_permits(live, 50000));
}

static void restart__forgets_what_came_by_paths(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    struct alb_assoc *assoc = c->csa[1]->assoc;
    struct alb_assoc_live *live = assoc->live;
    uint32_t before = assoc->peer_epoch;
    live->credit_bytes = 0;
    live->peer_rtt_ns = 5;
    alb_assoc_restart(c->engines[1], assoc, before + 1);
    assert_int_equal(assoc->peer_epoch, before + 1);
    assert_int_equal(assoc->dead_epoch, before);
    assert_false(live->paths_in[0].is_known);
    assert_int_equal(live->credit_bytes, ALB_CSA_CREDIT_NONE); // that was another's
    assert_int_equal(live->peer_rtt_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(get__one_for_each_peer_engine),
        CSA_PAIR_TEST(get__refuses_beyond_peer_max),
        cmocka_unit_test(get__knows_sixteen_local_addresses_at_a_time),
        CSA_PAIR_TEST(get__local_addresses_that_nobody_uses_make_room),
        CSA_PAIR_TEST(payload__is_bounded_and_a_multiple_of_four),
        CSA_PAIR_TEST(engine__refuses_what_can_not_be),
        CSA_PAIR_TEST(wake__takes_memory_that_sleep_gives_back),
        CSA_PAIR_TEST(sweep__spares_what_is_in_use),
        cmocka_unit_test(sweep__spares_what_is_in_flight),
        CSA_PAIR_TEST(sleep__keeps_sequence_and_round_trip_time),
        CSA_PAIR_TEST(wake__is_tried_again_when_the_pool_was_empty),
        CSA_PAIR_TEST(wake__not_of_who_is_gone_meanwhile),
        CSA_PAIR_TEST(wake__packets_wait_for_memory_too),
        CSA_PAIR_TEST(path_in__grows_to_the_number_that_came),
        CSA_PAIR_TEST(rtt__is_smoothed),
        CSA_PAIR_TEST(margin__is_a_round_trip_at_most),
        CSA_PAIR_TEST(window__lets_one_segment_go_in_any_case),
        CSA_PAIR_TEST(restart__forgets_what_came_by_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
