// SPDX-License-Identifier: BSD-2-Clause
// The sending half of a stream: what it remembers of what has left. Side 0 sends, the reports of side 1 are made by
// hand. Offsets are from the first PSN of the stream.
#include "engine/tests/csa_pair.h"

#define MS   ALB_NS_PER_MS
#define ACK  ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT)
#define COST CSA_PAIR_SMALL_CHARGE

// ---- records --------------------------------------------------------------------------------------------------------

static void sent__is_remembered_with_its_packet(void **state)
{
    struct csa_pair *c = *state;
    alb_psn sequence = csa_pair_live(c, 0)->paths->path[0].next;
    pair_pass(c->pair, MS);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 2 * CSA_PAIR_SEGMENT);
    pair_send(c->pair, 0);
    for (int32_t i = 0; i < 2; i++) {
        const struct alb_sent *sent = alb_stream_out_at(csa_pair_out(c), alb_psn_add(csa_pair_psn(0), 1 + i));
        assert_int_equal(sent->sequence, alb_psn_add(sequence, i));
        assert_int_equal(sent->at_64ns, (uint32_t)(c->pair->now >> 6));
        assert_int_equal(sent->bytes, CSA_PAIR_CHARGE);
        assert_int_equal(sent->times, 1);
        assert_int_equal(sent->state, ALB_SENT_FLYING);
    }
    csa_pair_expect_inflight(c, 2 * CSA_PAIR_CHARGE);
    pair_settle(c->pair);
    csa_pair_expect_inflight(c, 0);
}

// From a few records of its own to the window, and back.
static void records__grow_and_are_given_back(void **state)
{
    struct csa_pair *c = *state;
    size_t before = alb_buddy_used(&c->engines[0]->csa->pool);
    assert_int_equal(csa_pair_out(c)->capacity, ALB_STREAM_OUT_OWN);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, (CSA_PAIR_WINDOW + 20) * CSA_PAIR_SEGMENT);
    while (pair_send(c->pair, 0) > 0)
        ;
    assert_int_equal(alb_stream_out_count(csa_pair_out(c)), CSA_PAIR_WINDOW);
    assert_int_equal(csa_pair_out(c)->capacity, CSA_PAIR_WINDOW);
    for (int32_t i = 1; i <= CSA_PAIR_WINDOW; i++)
        assert_int_equal(csa_pair_state(c, i), ALB_SENT_FLYING);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_out(c)->capacity, ALB_STREAM_OUT_OWN);
    assert_int_equal(alb_buddy_used(&c->engines[0]->csa->pool), before);
}

// Without memory there are fewer in flight, and all the same all of it leaves.
static void records__do_without_memory(void **state)
{
    struct csa_pair *c = *state;
    struct alb_buddy *pool = &c->engines[0]->csa->pool;
    void *blocks[4096];
    uint32_t taken = 0;
    while ((blocks[taken] = alb_buddy_get(pool, 64)))
        taken++;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 20 * CSA_PAIR_SEGMENT);
    pair_send(c->pair, 0);
    assert_int_equal(alb_stream_out_count(csa_pair_out(c)), ALB_STREAM_OUT_OWN);
    for (uint32_t i = 0; i < 50; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, 2 * MS);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    while (taken > 0)
        alb_buddy_put(pool, blocks[--taken], 64);
}

// ---- what is lost ---------------------------------------------------------------------------------------------------

static void mark_lost__only_what_flies(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_send_lost(c, 3);
    csa_pair_arrive_report(c, 1, 50, 1, 2, ACK);
    assert_int_equal(alb_stream_out_mark_lost(csa_pair_out(c), alb_psn_add(csa_pair_psn(0), 2)), 0); // held
    uint32_t bytes = alb_stream_out_mark_lost(csa_pair_out(c), alb_psn_add(csa_pair_psn(0), 1));
    assert_int_equal(bytes, COST);
    alb_assoc_release(csa_pair_live(c, 0), bytes);
    assert_int_equal(alb_stream_out_mark_lost(csa_pair_out(c), alb_psn_add(csa_pair_psn(0), 1)), 0); // lost already
    assert_int_equal(csa_pair_out(c)->lost_count, 1);
}

static void lost__and_acknowledged_before_it_goes_again(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_send_lost(c, 4);
    for (int32_t i = 1; i <= 4; i++)
        alb_assoc_release(csa_pair_live(c, 0),
                          alb_stream_out_mark_lost(csa_pair_out(c), alb_psn_add(csa_pair_psn(0), i)));
    assert_int_equal(csa_pair_out(c)->lost_count, 4);
    csa_pair_arrive_report(c, 1, 50, 2, 2, ACK); // 1 is executed, 3 is held
    assert_int_equal(csa_pair_out(c)->lost_count, 2);
    alb_psn psn;
    assert_true(alb_stream_out_next_lost(csa_pair_out(c), &psn));
    assert_int_equal(psn, alb_psn_add(csa_pair_psn(0), 2));
    csa_pair_arrive_report(c, 1, 51, 5, 0, ACK);
    assert_int_equal(csa_pair_out(c)->lost_count, 0);
    assert_false(alb_stream_out_next_lost(csa_pair_out(c), &psn));
    csa_pair_expect_inflight(c, 0);
}

// Of four segments in flight the first left before the gap, the third by another path, and of the fourth nobody knows.
static void lose_path__only_what_has_left_there_and_is_settled(void **state)
{
    struct csa_pair *c = *state;
    struct alb_stream_out *out = csa_pair_out(c);
    struct alb_sent *sent[5];
    for (int32_t i = 1; i <= 4; i++) { // each in a packet of its own
        csa_pair_send_lost(c, 1);
        sent[i] = alb_stream_out_at(out, alb_psn_add(csa_pair_psn(0), i));
    }
    csa_pair_live(c, 0)->paths->path[0].settled = sent[4]->sequence;
    sent[3]->path = 1;
    alb_stream_out_lose_path(out, 0, sent[2]->sequence, c->pair->now);
    assert_int_equal(csa_pair_state(c, 1), ALB_SENT_FLYING);
    assert_int_equal(csa_pair_state(c, 2), ALB_SENT_LOST);
    assert_int_equal(csa_pair_state(c, 3), ALB_SENT_FLYING);
    assert_int_equal(csa_pair_state(c, 4), ALB_SENT_FLYING);
    sent[3]->path = 0;
    csa_pair_expect_inflight(c, 3 * COST);
}

// ---- long streams ---------------------------------------------------------------------------------------------------

static void begin_before_the_wrap(struct alb_qp_attr *attr, int side)
{
    attr->sq_psn = attr->rq_psn = 0xffffe0;
}

static void psn__wraps_in_the_middle_of_a_message(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, begin_before_the_wrap);
    for (uint32_t i = 0; i < 3; i++) {
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 20 * CSA_PAIR_SEGMENT);
        csa_pair_ask(c, ALB_WR_RDMA_READ, 10 + i, ALB_SEND_SIGNALED, 20 * CSA_PAIR_SEGMENT);
        pair_send(c->pair, 0);
        pair_lose(c->pair, 0);
        for (uint32_t k = 0; k < 5; k++) {
            pair_settle(c->pair);
            pair_pass(c->pair, 2 * MS);
        }
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
        csa_pair_expect(c, 0, 10 + i, ALB_WC_SUCCESS);
    }
    assert_true(csa_pair_out(c)->next < 100);
    assert_true(c->csa[1]->responses.next < 100);
    csa_pair_free(c);
}

// ---- while the association sleeps -----------------------------------------------------------------------------------

static void wait_long_for_receives(struct alb_qp_attr *attr, int side)
{
    attr->timeout = 0;
    attr->min_rnr_timer = 0; // 655 ms
}

// Side 1 goes on and hears nothing until its association sleeps.
static void leave_alone(struct csa_pair *c)
{
    for (uint32_t ms = 0; csa_pair_live(c, 1); ms++) {
        assert_true(ms < 10000);
        pair_pass(c->pair, MS);
        for (int side = 0; side < 2; side++)
            pair_send(c->pair, side);
        pair_deliver_all(c->pair, 1);
        while (pair_count(c->pair, 0))
            pair_lose(c->pair, 0);
    }
}

// Side 1 does not learn that side 0 holds an answer, but from a later request, which waits behind one that lacks a
// receive. That comes when the answer, of which nothing was heard, counts toward no window, and keeps nobody awake.
static void acked__while_the_association_sleeps(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, wait_long_for_receives);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 64);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    pair_send(c->pair, 0);
    while (pair_count(c->pair, 0))
        pair_lose(c->pair, 0);
    csa_pair_ask(c, ALB_WR_SEND, 2, ALB_SEND_SIGNALED, 64);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 3, ALB_SEND_SIGNALED, 64);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    leave_alone(c);
    const struct alb_stream_out *answers = &c->csa[1]->responses;
    assert_int_equal(alb_stream_out_count(answers), 1);
    assert_int_equal(alb_stream_out_at(answers, answers->una)->state, ALB_SENT_FLYING);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 9, 8192, 64), 0);
    pair_send(c->pair, 1);
    csa_pair_expect(c, 1, 9, ALB_WC_SUCCESS);
    assert_int_equal(answers->una, alb_psn_add(csa_pair_psn(0), 1));
    for (uint32_t i = 0; i < 1000; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, MS);
    }
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 3, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

// ---- the end --------------------------------------------------------------------------------------------------------

static void wait_for_ever(struct alb_qp_attr *attr, int side)
{
    attr->timeout = 0;
    attr->min_rnr_timer = 1;
}

// While the peer is not ready nothing of it counts as in flight, and nothing is left behind.
static void stop__while_the_peer_is_not_ready(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, wait_for_ever);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    pair_deliver(c->pair, 0); // the SEND
    pair_lose(c->pair, 0);
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    assert_true(c->csa[0]->is_waiting_rnr);
    csa_pair_expect_inflight(c, 0);
    struct alb_assoc_live *live = csa_pair_live(c, 0);
    live->assoc->refs++;
    assert_int_equal(alb_qp_destroy(c->qps[0]), 0);
    assert_int_equal(live->inflight_bytes, 0);
    assert_int_equal(alb_path_load(live->paths, 0)->inflight_bytes, 0);
    alb_assoc_put(c->engines[0], live->assoc);
    csa_pair_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(sent__is_remembered_with_its_packet),
        CSA_GREETED_TEST(records__grow_and_are_given_back),
        CSA_GREETED_TEST(records__do_without_memory),
        CSA_GREETED_TEST(lost__and_acknowledged_before_it_goes_again),
        CSA_GREETED_TEST(lose_path__only_what_has_left_there_and_is_settled),
        CSA_GREETED_TEST(mark_lost__only_what_flies),
        cmocka_unit_test(psn__wraps_in_the_middle_of_a_message),
        cmocka_unit_test(acked__while_the_association_sleeps),
        cmocka_unit_test(stop__while_the_peer_is_not_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
