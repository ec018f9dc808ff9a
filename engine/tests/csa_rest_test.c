// SPDX-License-Identifier: BSD-2-Clause
// What an association remembers while nothing is in flight, and for how long.
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define MS ALB_NS_PER_MS

enum {
    CROWD = 1500,
    CROWD_PLACES = 2048,
};

// Long enough for both to rest.
static void pause(struct csa_pair *c)
{
    pair_settle(c->pair);
    pair_pass(c->pair, 150 * MS);
    pair_settle(c->pair);
    for (int side = 0; side < 2; side++) {
        assert_null(csa_pair_live(c, side));
        assert_true(c->csa[side]->assoc->rest != 0);
    }
}

static void ask(struct csa_pair *c, uint64_t wr_id)
{
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, wr_id, ALB_SEND_SIGNALED, 8);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, wr_id, ALB_WC_SUCCESS);
}

static void rest__gives_back_what_is_for_packets_in_flight(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    size_t awake = alb_buddy_used(&c->engines[0]->csa->pool);
    pause(c);
    assert_true(alb_buddy_used(&c->engines[0]->csa->pool) <= c->engines[0]->csa->rests.page_bytes);
    assert_true(awake > alb_rest_cost_bytes(&c->engines[0]->config));
    assert_int_equal(c->engines[0]->csa->rests.count, 1);
}

static void rest__keeps_window_times_and_paths(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    struct alb_assoc_live *live = csa_pair_live(c, 0);
    struct alb_path_out *out = &live->paths->path[0];
    live->congestion.window_bytes = 54321;
    live->credit_bytes = 1 << 20;
    live->rtt_ns = 12345;
    live->rtt_var_ns = 678;
    live->rtt_min_ns = 9999;
    out->rtt_ns = 11111;
    alb_path_load(live->paths, 0)->weight = 33;
    out->back_off = 5;
    alb_psn next = out->next;
    csa_pair_live(c, 1)->paths_in[0].lateness_ns = 77777;
    const struct alb_path_in in = csa_pair_live(c, 1)->paths_in[0];
    pause(c);
    assert_int_equal(alb_assoc_rtt_ns(c->csa[0]->assoc), 12345);
    live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    out = &live->paths->path[0];
    assert_int_equal(live->congestion.window_bytes, 54321);
    assert_ptr_equal(live->congestion.config, &c->engines[0]->config);
    assert_int_equal(live->credit_bytes, 1 << 20);
    assert_true(live->rtt_ns == 12345 && live->rtt_var_ns == 678 && live->rtt_min_ns == 9999);
    assert_true(out->rtt_ns == 11111 && alb_path_load(live->paths, 0)->weight == 33 && out->back_off == 5);
    assert_true(out->next == next);
    assert_int_equal(c->csa[0]->assoc->rest, 0);
    const struct alb_path_in *again = &alb_assoc_wake(c->engines[1], c->csa[1]->assoc)->paths_in[0];
    assert_true(again->is_known && again->settled == in.settled && again->received == in.received);
    assert_int_equal(again->lateness_ns, 77777);
    assert_int_equal(again->newest_timestamp, in.newest_timestamp);
    assert_true(again->newest_at + 1024 > in.newest_at && again->newest_at < in.newest_at + 1024);
}

// What only the peer has measured is not taken for our own.
static void rest__keeps_that_no_time_was_measured(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    csa_pair_live(c, 0)->rtt_ns = 0;
    csa_pair_live(c, 0)->peer_rtt_ns = 500;
    pause(c);
    assert_int_equal(alb_assoc_rtt_ns(c->csa[0]->assoc), 500);
    const struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    assert_int_equal(live->rtt_ns, 0);
    assert_int_equal(live->peer_rtt_ns, 500);
}

// A path's first packet after the rest is lost: what comes behind it shows that, since the numbers go on.
static void rest__a_loss_right_behind_it_is_seen(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    pause(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 2 * CSA_PAIR_SEGMENT);
    pair_send(c->pair, 0);
    assert_int_equal(pair_count(c->pair, 0), 2);
    pair_lose(c->pair, 0);
    pair_settle(c->pair); // without any time
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

static void rest__ends_after_two_seconds(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    pause(c);
    pair_pass(c->pair, 2500 * MS);
    for (int side = 0; side < 2; side++) {
        assert_int_equal(c->csa[side]->assoc->rest, 0);
        assert_int_equal(alb_buddy_used(&c->engines[side]->csa->pool), 0);
        assert_true(alb_engine_deadline(c->engines[side]) == ALB_TIME_NEVER);
    }
    ask(c, 1);
}

static void rest__begins_anew_with_each_use(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    for (uint32_t i = 0; i < 10; i++) {
        pause(c);
        pair_pass(c->pair, 700 * MS);
        assert_true(c->csa[0]->assoc->rest != 0);
        ask(c, i);
    }
}

static void set_times(struct alb_qp_attr *attr, int side)
{
    attr->timeout = 0;
    attr->min_rnr_timer = 0; // 655 ms
}

static void rest__not_while_a_gap_waits(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, set_times);
    csa_pair_greet(c);
    csa_pair_live(c, 1)->paths_in[0].lateness_ns = 50 * MS;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 2 * CSA_PAIR_SEGMENT);
    pair_send(c->pair, 0);
    pair_lose(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_false(alb_rest_can_begin(csa_pair_live(c, 1)));
    pair_pass(c->pair, 60 * MS);
    assert_true(alb_rest_can_begin(csa_pair_live(c, 1)));
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

static void rest__is_forgotten_with_the_peers_life(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    pause(c);
    alb_assoc_restart(c->engines[0], c->csa[0]->assoc, 4711);
    assert_int_equal(c->csa[0]->assoc->rest, 0);
    assert_int_equal(c->engines[0]->csa->rests.count, 0);
    assert_int_equal(alb_buddy_used(&c->engines[0]->csa->pool), 0);
}

// Nothing is in flight while a message waits for its receive.
static void rest__while_the_peer_has_no_receive(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, set_times);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    pause(c);
    assert_true(c->csa[0]->is_waiting_rnr);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 2, 0, 64), 0);
    for (uint32_t i = 0; i < 20; i++) {
        pair_pass(c->pair, 50 * MS);
        pair_settle(c->pair);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 1, 2, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

// ---- many of them ---------------------------------------------------------------------------------------------------

static void allow_crowd(struct alb_engine_config *config)
{
    config->peer_max = CROWD_PLACES;
    config->csa_pool_bytes = 4 << 20;
}

static struct alb_addr peer_at(uint32_t i)
{
    return alb_addr_from_ipv4((const uint8_t[]){11, 0, (uint8_t)(i >> 8), (uint8_t)i});
}

static uint32_t wake_crowd(struct csa_pair *c, struct alb_assoc **crowd)
{
    uint32_t awake = 0;
    for (uint32_t i = 0; i < CROWD; i++) {
        struct alb_addr peer = peer_at(i);
        crowd[i] = alb_assoc_get(c->engines[0], &c->pair->hosts[0].addr, &peer, 0);
        assert_non_null(crowd[i]);
        awake += alb_assoc_wake(c->engines[0], crowd[i]) != NULL;
    }
    return awake;
}

static uint32_t count_live(const struct csa_pair *c)
{
    uint32_t count = 0;
    ALB_LIST_FOR_EACH (&c->engines[0]->csa->live, node)
        count++;
    return count;
}

static void sweep__looks_at_so_many_at_a_time(void **state)
{
    struct csa_pair *c = csa_pair_new(allow_crowd, NULL);
    struct alb_assoc **crowd = calloc(CROWD, sizeof(struct alb_assoc *));
    pair_settle(c->pair);
    assert_int_equal(wake_crowd(c, crowd), CROWD);
    uint32_t before = count_live(c), most = 0;
    for (uint32_t i = 0; i < 20; i++) {
        pair_pass(c->pair, 50 * MS);
        uint32_t now = count_live(c);
        most = ALB_MAX(most, before - now);
        before = now;
    }
    assert_int_equal(before, 0);
    assert_true(most > 0 && most <= 512);
    // In all of them together what one costs is what state_sizes says.
    assert_true(alb_buddy_used(&c->engines[0]->csa->pool) <=
                (size_t)(CROWD + 64) * alb_rest_cost_bytes(&c->engines[0]->config));
    for (uint32_t i = 0; i < CROWD; i++)
        alb_assoc_put(c->engines[0], crowd[i]);
    assert_int_equal(c->engines[0]->csa->rests.count, 0);
    assert_int_equal(alb_buddy_used(&c->engines[0]->csa->pool), 0);
    free(crowd);
    csa_pair_free(c);
}

// Memories make room for what is in use.
static void wake__forgets_others_when_the_pool_is_empty(void **state)
{
    struct csa_pair *c = *state;
    struct alb_buddy *pool = &c->engines[0]->csa->pool;
    void *taken[1 << 12];
    uint32_t count = 0;
    csa_pair_greet(c);
    pause(c);
    struct alb_addr peer = peer_at(1);
    struct alb_assoc *other = alb_assoc_get(c->engines[0], &c->pair->hosts[0].addr, &peer, 0);
    while (count < ALB_COUNT(taken) && (taken[count] = alb_buddy_get(pool, ALB_BUDDY_BLOCK_BYTES_MIN)))
        count++;
    assert_true(count < ALB_COUNT(taken));
    assert_non_null(alb_assoc_wake(c->engines[0], other));
    assert_int_equal(c->csa[0]->assoc->rest, 0);
    while (count > 0)
        alb_buddy_put(pool, taken[--count], ALB_BUDDY_BLOCK_BYTES_MIN);
    alb_assoc_put(c->engines[0], other);
    ask(c, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(rest__gives_back_what_is_for_packets_in_flight),
        CSA_PAIR_TEST(rest__keeps_window_times_and_paths),
        CSA_PAIR_TEST(rest__keeps_that_no_time_was_measured),
        CSA_PAIR_TEST(rest__a_loss_right_behind_it_is_seen),
        CSA_PAIR_TEST(rest__ends_after_two_seconds),
        CSA_PAIR_TEST(rest__begins_anew_with_each_use),
        cmocka_unit_test(rest__not_while_a_gap_waits),
        CSA_PAIR_TEST(rest__is_forgotten_with_the_peers_life),
        cmocka_unit_test(rest__while_the_peer_has_no_receive),
        cmocka_unit_test(sweep__looks_at_so_many_at_a_time),
        CSA_PAIR_TEST(wake__forgets_others_when_the_pool_is_empty),
    };
    return cmocka_run_group_tests_name("csa_rest", tests, NULL, NULL);
}
