// SPDX-License-Identifier: BSD-2-Clause
// Whose turn it is, among streams that share a window.
#include "engine/tests/csa_pair.h"

enum {
    CROWD = 32, // streams that have more to send than a window holds of each
    CROWD_SEGMENTS = 4,
};

static void line__is_not_kept_by_streams_that_wait_for_their_turn_to_ask(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    struct alb_qp *qps[CROWD][2];
    live->congestion.window_bytes = CROWD * CSA_PAIR_CHARGE;
    for (uint32_t i = 0; i < CROWD; i++) {
        pair_connect(c->pair, ALB_QPT_RC, qps[i], NULL);
        assert_int_equal(
            pair_ask(c->pair, qps[i][0], ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 0, CROWD_SEGMENTS * CSA_PAIR_SEGMENT),
            0);
    }
    assert_int_equal(pair_send(c->pair, 0), CROWD);
    assert_int_equal(live->inflight_bytes, CROWD * CSA_PAIR_CHARGE);
    assert_int_equal(live->in_line, CROWD);
    pair_deliver_together(c->pair, 0, CROWD);
    pair_send(c->pair, 1);
    while (pair_count(c->pair, 1) > 0)
        pair_deliver(c->pair, 1);
    assert_int_equal(live->inflight_bytes, 0);
    pair_settle(c->pair);
    assert_int_equal(live->in_line, 0);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 0);
}

// So many segments of each have left.
static void expect_sent(struct alb_qp *qps[CROWD][2], uint32_t from, uint32_t past, uint32_t segments)
{
    for (uint32_t i = from; i < past; i++) {
        const struct alb_stream_out *out = &alb_csa_of(qps[i][0])->requests;
        assert_int_equal(alb_psn_diff(out->next, csa_pair_psn(0)), segments);
    }
}

// What is on its way arrives, and is reported.
static void land(struct csa_pair *c)
{
    pair_deliver_together(c->pair, 0, pair_count(c->pair, 0));
    pair_send(c->pair, 1);
    while (pair_count(c->pair, 1) > 0)
        pair_deliver(c->pair, 1);
}

// Likewise, and what the window has room for leaves.
static void exchange(struct csa_pair *c, uint32_t window_bytes)
{
    land(c);
    csa_pair_live(c, 0)->congestion.window_bytes = window_bytes; // the policy may have changed it
    pair_send(c->pair, 0);
}

static void line__lets_senders_in_by_turns_and_no_more_than_the_window_has_room_for(void **state)
{
    enum { ROOM = 4, LATE = CROWD - 1 };
    struct csa_pair *c = *state;
    struct alb_qp *qps[CROWD][2];
    uint64_t stalls = 0;
    alb_assoc_wake(c->engines[0], c->csa[0]->assoc)->congestion.window_bytes = ROOM * CSA_PAIR_CHARGE;
    for (uint32_t i = 0; i < CROWD; i++)
        pair_connect(c->pair, ALB_QPT_RC, qps[i], NULL);
    for (uint32_t i = 0; i < LATE; i++)
        assert_int_equal(pair_ask(c->pair, qps[i][0], ALB_WR_RDMA_WRITE, i, 0, 0, CROWD_SEGMENTS * CSA_PAIR_SEGMENT),
                         0);
    pair_send(c->pair, 0);
    assert_int_equal(pair_ask(c->pair, qps[LATE][0], ALB_WR_RDMA_WRITE, 0, 0, 0, CSA_PAIR_SEGMENT), 0);
    for (uint32_t sent = ROOM; sent < CROWD; sent += ROOM) {
        expect_sent(qps, 0, ALB_MIN(sent, (uint32_t)LATE), 1);
        expect_sent(qps, sent, CROWD, 0);
        exchange(c, ROOM * CSA_PAIR_CHARGE);
    }
    expect_sent(qps, 0, 1, 2); // it stood before the one that came late
    expect_sent(qps, 1, LATE, 1);
    expect_sent(qps, LATE, CROWD, 0);
    exchange(c, ROOM * CSA_PAIR_CHARGE);
    expect_sent(qps, 1, ROOM, 2);
    expect_sent(qps, LATE, CROWD, 1);
    for (uint32_t i = 0; i < CROWD; i++)
        stalls += qps[i][0]->stats->stats.counter[ALB_STAT_window_stalls];
    assert_in_range(stalls, CROWD, 3 * CROWD); // not each of them at each exchange
}

// A link that is slower than the window is wide: one packet leaves at a time, and there is always one more to send.
static void line__lets_in_those_that_wait_though_others_are_never_done(void **state)
{
    enum { BUSY = 4, ALL = 12, MUCH = 200 };
    struct csa_pair *c = *state;
    struct alb_qp *qps[ALL][2];
    alb_assoc_wake(c->engines[0], c->csa[0]->assoc)->congestion.window_bytes = 2 * CSA_PAIR_CHARGE;
    for (uint32_t i = 0; i < ALL; i++) {
        uint32_t segments = i < BUSY ? MUCH : 1;
        pair_connect(c->pair, ALB_QPT_RC, qps[i], NULL);
        assert_int_equal(pair_ask(c->pair, qps[i][0], ALB_WR_RDMA_WRITE, i, 0, 0, segments * CSA_PAIR_SEGMENT), 0);
        if (i == BUSY - 1)
            assert_int_equal(pair_send(c->pair, 0), 2); // and all of these wait, before those that come now
    }
    pair_send(c->pair, 0);
    c->pair->hosts[0].tx.segment_capacity = 1;
    for (uint32_t i = 0; i < 4 * ALL; i++) {
        land(c);
        assert_int_equal(pair_send_batch(c->pair, 0), 1);
        csa_pair_live(c, 0)->congestion.window_bytes = CSA_PAIR_WINDOW * CSA_PAIR_CHARGE;
    }
    for (uint32_t i = BUSY; i < ALL; i++)
        assert_int_equal(alb_csa_of(qps[i][0])->requests.next, alb_psn_next(csa_pair_psn(0)));
}

static void line__lets_what_was_lost_go_before_others_that_wait(void **state)
{
    enum { ROOM = 4 };
    struct csa_pair *c = *state;
    struct alb_qp *qps[CROWD][2];
    alb_assoc_wake(c->engines[0], c->csa[0]->assoc)->congestion.window_bytes = ROOM * CSA_PAIR_CHARGE;
    for (uint32_t i = 0; i < CROWD; i++) {
        pair_connect(c->pair, ALB_QPT_RC, qps[i], NULL);
        assert_int_equal(pair_ask(c->pair, qps[i][0], ALB_WR_RDMA_WRITE, i, 0, 0, CROWD * CSA_PAIR_SEGMENT), 0);
    }
    pair_send(c->pair, 0);
    pair_lose(c->pair, 0);
    const struct alb_stats *stats = &qps[0][0]->stats->stats;
    for (uint32_t i = 0; i < CROWD && !stats->counter[ALB_STAT_retransmitted_pkts]; i++) {
        exchange(c, ROOM * CSA_PAIR_CHARGE);
        assert_int_equal(alb_csa_of(qps[0][0])->requests.lost_count, 0); // once it is known to be lost it leaves
    }
    assert_int_equal(stats->counter[ALB_STAT_retransmitted_pkts], 1);
}

static void line__one_that_goes_on_stands_in_it_once(void **state)
{
    enum { ALL = 3 };
    static const uint32_t order[ALL] = {2, 0, 1};
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    struct alb_stream_out *out[ALL];
    for (uint32_t i = 0; i < ALL; i++) {
        struct alb_qp *qps[2];
        pair_connect(c->pair, ALB_QPT_RC, qps, NULL);
        out[i] = &alb_csa_of(qps[0])->requests;
        alb_line_join(out[i], false);
    }
    alb_line_go_on(out[2]);
    for (uint32_t i = 0; i < ALL; i++) {
        assert_ptr_equal(alb_line_next(live), out[order[i]]);
        alb_line_leave(out[order[i]]);
    }
    assert_null(alb_line_next(live));
    assert_int_equal(live->in_line, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(line__is_not_kept_by_streams_that_wait_for_their_turn_to_ask),
        CSA_GREETED_TEST(line__lets_senders_in_by_turns_and_no_more_than_the_window_has_room_for),
        CSA_GREETED_TEST(line__lets_in_those_that_wait_though_others_are_never_done),
        CSA_GREETED_TEST(line__lets_what_was_lost_go_before_others_that_wait),
        CSA_GREETED_TEST(line__one_that_goes_on_stands_in_it_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
