// SPDX-License-Identifier: BSD-2-Clause
// What acknowledgements and silence do to the requests in flight.
#include "engine/tests/rc_completer.h"

// ---- acknowledgements -----------------------------------------------------------------------------------------------

static void completer__one_acknowledgement_for_many(void **state)
{
    struct pair_qps *c = *state;
    for (uint64_t i = 0; i < 5; i++)
        ask(c, ALB_WR_RDMA_WRITE, i, 8);
    pair_send(c->pair, 0);
    acknowledge(c, 2, ACK);
    for (uint64_t i = 0; i < 3; i++)
        pair_expect(c->pair, 0, i, ALB_WC_SUCCESS);
    pair_expect_none(c->pair, 0);
    acknowledge(c, 4, ACK);
    pair_expect(c->pair, 0, 3, ALB_WC_SUCCESS);
    pair_expect(c->pair, 0, 4, ALB_WC_SUCCESS);
    assert_int_equal(c->qps[0]->peer->inflight_bytes, 0);
}

static void completer__part_of_a_message_does_not_complete_it(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_WRITE, 1, 3 * MTU);
    pair_send(c->pair, 0);
    acknowledge(c, 1, ACK);
    pair_expect_none(c->pair, 0);
    assert_int_equal(c->qps[0]->peer->inflight_bytes, MTU + ALB_RC_PACKET_OVERHEAD);
    acknowledge(c, 2, ACK);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
}

// Of the window as much as the packets took that it covers, whole messages and parts of one; the other queue pairs of
// the peer may use it.
static void completer__gives_back_what_is_acknowledged(void **state)
{
    struct pair_qps *c = *state;
    const uint64_t *inflight_bytes = &c->qps[0]->peer->inflight_bytes;
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    ask(c, ALB_WR_RDMA_WRITE, 2, 3 * MTU);
    ask(c, ALB_WR_RDMA_WRITE, 3, 100);
    ask(c, ALB_WR_RDMA_WRITE, 4, 200);
    pair_send(c->pair, 0);
    assert_int_equal(*inflight_bytes, 8 + 3 * MTU + 100 + 200 + 6 * ALB_RC_PACKET_OVERHEAD);
    acknowledge(c, 2, ACK);
    assert_int_equal(*inflight_bytes, MTU + 100 + 200 + 3 * ALB_RC_PACKET_OVERHEAD);
    acknowledge(c, 4, ACK);
    assert_int_equal(*inflight_bytes, 200 + ALB_RC_PACKET_OVERHEAD);
    acknowledge(c, 5, ACK);
    assert_int_equal(*inflight_bytes, 0);
}

static void completer__the_window_grows_where_it_was_in_the_way(void **state)
{
    struct pair_qps *c = *state;
    const uint32_t *window_bytes = &c->qps[0]->peer->congestion.window_bytes;
    uint32_t before = *window_bytes;
    for (uint64_t i = 0; i * 16 * MTU < before; i++)
        ask(c, ALB_WR_RDMA_WRITE, i, 16 * MTU);
    pair_send(c->pair, 0);
    acknowledge(c, 3, ACK);
    assert_int_equal(*window_bytes, before + 4 * (MTU + ALB_RC_PACKET_OVERHEAD));
    pair_send(c->pair, 0); // the rest, and then there is room left
    acknowledge(c, 7, ACK);
    acknowledge(c, 11, ACK);
    assert_int_equal(*window_bytes, before + 4 * (MTU + ALB_RC_PACKET_OVERHEAD));
}

// Late ones, and those of what was never sent, change nothing.
static void completer__acknowledges_what_is_not_in_flight(void **state)
{
    struct pair_qps *c = *state;
    acknowledge(c, 0, ACK);
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    ask(c, ALB_WR_RDMA_WRITE, 2, 8);
    pair_send(c->pair, 0);
    acknowledge(c, -1, ACK);
    acknowledge(c, 2, ACK);
    acknowledge(c, 0x7fffff, ACK);
    acknowledge(c, -0x800000, NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
    pair_expect_none(c->pair, 0);
    acknowledge(c, 0, ACK);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    acknowledge(c, 0, ACK);
    acknowledge(c, 0, NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    pair_expect_none(c->pair, 0);
    assert_int_equal(dropped(c, ALB_DROP_STALE_RESPONSE), 7);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_RTS);
    assert_int_equal(pair_send(c->pair, 0), 0);
}

static void completer__acknowledged_while_it_was_to_be_sent_again(void **state)
{
    struct pair_qps *c = *state;
    for (uint64_t i = 0; i < 4; i++)
        ask(c, ALB_WR_RDMA_WRITE, i, 8);
    pair_send(c->pair, 0);
    lose_all(c, 0);
    pair_pass(c->pair, 2 * TIMEOUT_NS); // back to the first
    acknowledge(c, 2, ACK);             // and yet three of them had arrived
    assert_int_equal(pair_send(c->pair, 0), 1);
    assert_int_equal(pair_peek(c->pair, 0, 0)->roce.psn, alb_psn_add(PAIR_PSN, 3));
    acknowledge(c, 3, ACK);
    for (uint64_t i = 0; i < 4; i++)
        pair_expect(c->pair, 0, i, ALB_WC_SUCCESS);
    assert_int_equal(c->qps[0]->peer->inflight_bytes, 0);
}

static void completer__reserved_syndrome(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    pair_send(c->pair, 0);
    acknowledge(c, 0, 0x5f);
    assert_int_equal(dropped(c, ALB_DROP_BAD_RESPONSE), 1);
    pair_expect_none(c->pair, 0);
}

// ---- NAKs -----------------------------------------------------------------------------------------------------------

// What was sent before the refused request has succeeded, what was sent behind it is flushed.
static void completer__naks_that_end_it(void **state)
{
    static const struct {
        uint8_t code;
        enum alb_wc_status status;
        enum alb_stat stat;
    } rows[] = {
        {ALB_NAK_INVALID_REQUEST, ALB_WC_REM_INV_REQ_ERR, ALB_STAT_req_remote_invalid_request},
        {ALB_NAK_REMOTE_ACCESS_ERROR, ALB_WC_REM_ACCESS_ERR, ALB_STAT_req_remote_access_errors},
        {ALB_NAK_REMOTE_OPERATIONAL_ERROR, ALB_WC_REM_OP_ERR, ALB_STAT_req_remote_op_errors},
        {17, ALB_WC_BAD_RESP_ERR, ALB_STAT_COUNT},
    };
    struct pair_qps *c = *state;
    for (size_t i = 0; i < ALB_COUNT(rows); i++) {
        struct alb_event event;
        pair_connect(c->pair, ALB_QPT_RC, c->qps, NULL);
        ask(c, ALB_WR_RDMA_WRITE, 1, 8);
        ask(c, ALB_WR_RDMA_WRITE, 2, 2 * MTU);
        ask(c, ALB_WR_RDMA_WRITE, 3, 8);
        pair_send(c->pair, 0);
        acknowledge(c, 1, NAK(rows[i].code));
        pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
        pair_expect(c->pair, 0, 2, rows[i].status);
        pair_expect(c->pair, 0, 3, ALB_WC_WR_FLUSH_ERR);
        pair_expect_none(c->pair, 0);
        assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_ERR);
        if (rows[i].stat != ALB_STAT_COUNT)
            assert_int_equal(counted(c, rows[i].stat), 1);
        assert_true(pair_event(c->pair, 0, ALB_EVENT_QP_FAILED, &event));
        assert_int_equal(event.failure.status, rows[i].status);
        assert_int_equal(event.failure.syndrome, NAK(rows[i].code));
        assert_int_equal(event.failure.awaited_psn, alb_psn_add(PAIR_PSN, 1));
        assert_int_equal(event.failure.last_psn, alb_psn_add(PAIR_PSN, 3));
        assert_int_equal(event.failure.opcode, ALB_WR_RDMA_WRITE);
        assert_false(event.failure.at_responder);
        assert_int_equal(c->qps[0]->peer->inflight_bytes, 0);
        lose_all(c, 0);
    }
}

static void one_retry(struct alb_qp_attr *attr, int side)
{
    attr->retry_cnt = 1;
}

static void completer__sequence_errors_cost_retries_until_something_moves(void **state)
{
    struct pair_qps *c = *state;
    pair_connect(c->pair, ALB_QPT_RC, c->qps, one_retry);
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    ask(c, ALB_WR_RDMA_WRITE, 2, 8);
    pair_send(c->pair, 0);
    acknowledge(c, 0, NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    assert_int_equal(pair_send(c->pair, 0), 2);
    acknowledge(c, 1, NAK(ALB_NAK_PSN_SEQUENCE_ERROR)); // acknowledges the first: a retry again
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(pair_send(c->pair, 0), 1);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_RTS);
    acknowledge(c, 1, NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    pair_expect(c->pair, 0, 2, ALB_WC_RETRY_EXC_ERR);
    assert_int_equal(counted(c, ALB_STAT_packet_seq_err), 3);
    assert_int_equal(counted(c, ALB_STAT_retry_exceeded_err), 1);
}

// The network may deliver one twice, and nothing that it could be about was sent in between.
static void completer__a_sequence_error_that_comes_twice_costs_one_retry(void **state)
{
    struct pair_qps *c = *state;
    pair_connect(c->pair, ALB_QPT_RC, c->qps, one_retry);
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    ask(c, ALB_WR_RDMA_WRITE, 2, 8);
    pair_send(c->pair, 0);
    acknowledge(c, 0, NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    acknowledge(c, 0, NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    pair_expect_none(c->pair, 0);
    assert_int_equal(counted(c, ALB_STAT_packet_seq_err), 2);
    assert_int_equal(pair_send(c->pair, 0), 2);
    acknowledge(c, 1, ACK);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
}

// ---- silence --------------------------------------------------------------------------------------------------------

// What is in flight is lost, and nothing happens before so many timeouts have passed.
static void lose_for(struct pair_qps *c, uint32_t timeouts)
{
    assert_int_equal(pair_send(c->pair, 0), 1);
    lose_all(c, 0);
    pair_pass(c->pair, timeouts * TIMEOUT_NS - 1);
    assert_int_equal(pair_send(c->pair, 0), 0);
    pair_expect_none(c->pair, 0);
    pair_pass(c->pair, 1);
}

static void completer__silence_costs_retries_and_each_waits_longer(void **state)
{
    static const uint32_t timeouts[] = {1, 2, 4, 4, 4, 4, 4, 4};
    struct pair_qps *c = *state;
    struct alb_event event;
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    for (size_t i = 0; i < ALB_COUNT(timeouts); i++)
        lose_for(c, timeouts[i]);
    pair_expect(c->pair, 0, 1, ALB_WC_RETRY_EXC_ERR);
    assert_int_equal(counted(c, ALB_STAT_local_ack_timeout_err), 8);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_QP_FAILED, &event));
    assert_int_equal(event.failure.retries, 7);
    assert_int_equal(event.failure.retry_limit, 7);
    assert_string_equal(event.failure.reason, "no acknowledgement");
    assert_int_equal(alb_engine_deadline(c->pair->hosts[0].engine), ALB_TIME_NEVER);
}

// A peer that answers is there: what is missing then is a packet.
static void completer__a_sign_of_life_makes_timeouts_short_again(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    lose_for(c, 1);
    lose_for(c, 2);
    pair_send(c->pair, 0);
    acknowledge(c, 0, NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    lose_all(c, 0);
    lose_for(c, 1);
    lose_for(c, 2);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    ask(c, ALB_WR_RDMA_WRITE, 2, 8);
    lose_for(c, 1);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
}

static void completer__receiver_not_ready_is_a_sign_of_life(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_SEND, 1, 8);
    lose_for(c, 1);
    lose_for(c, 2);
    pair_send(c->pair, 0);
    lose_all(c, 0);
    acknowledge(c, 0, RNR(14));
    pair_pass(c->pair, alb_rnr_timer_ns(14));
    lose_for(c, 1);
}

// However many packets are lost while the peer is there, and waited for.
static void completer__receiver_not_ready_gives_retries_back(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_SEND, 1, 8);
    for (int i = 0; i < 10; i++) {
        lose_for(c, 1);
        pair_send(c->pair, 0);
        lose_all(c, 0);
        acknowledge(c, 0, RNR(14));
        pair_pass(c->pair, alb_rnr_timer_ns(14));
    }
    pair_expect_none(c->pair, 0);
    assert_int_equal(counted(c, ALB_STAT_local_ack_timeout_err), 10);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_RTS);
}

static void no_retry(struct alb_qp_attr *attr, int side)
{
    attr->retry_cnt = 0;
}

static void completer__no_retries_at_all(void **state)
{
    struct pair_qps *c = *state;
    pair_connect(c->pair, ALB_QPT_RC, c->qps, no_retry);
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    pair_send(c->pair, 0);
    pair_pass(c->pair, TIMEOUT_NS);
    pair_expect(c->pair, 0, 1, ALB_WC_RETRY_EXC_ERR);
}

// The time counts from the last packet received, not from when the timer was armed.
static void completer__what_is_heard_gives_more_time(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_WRITE, 1, 3 * MTU);
    pair_send(c->pair, 0);
    pair_pass(c->pair, TIMEOUT_NS - 1);
    acknowledge(c, 0, ACK);
    pair_pass(c->pair, TIMEOUT_NS - 1);
    acknowledge(c, 1, ACK);
    pair_pass(c->pair, TIMEOUT_NS - 1);
    assert_int_equal(counted(c, ALB_STAT_local_ack_timeout_err), 0);
    pair_pass(c->pair, 1);
    assert_int_equal(counted(c, ALB_STAT_local_ack_timeout_err), 1);
}

// A timer that runs when all is acknowledged fires once more, and means nothing.
static void completer__nothing_in_flight_needs_no_timer(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    pair_settle(c->pair);
    pair_pass(c->pair, 10 * ALB_NS_PER_S);
    assert_int_equal(alb_engine_deadline(c->pair->hosts[0].engine), ALB_TIME_NEVER);
    assert_int_equal(counted(c, ALB_STAT_local_ack_timeout_err), 0);
}

// Packets that leave while a timer of earlier ones runs have as much time as those before them.
static void completer__each_packet_has_its_time(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    pair_settle(c->pair);
    alb_time timer = alb_engine_deadline(c->pair->hosts[0].engine);
    assert_true(timer != ALB_TIME_NEVER);
    pair_pass(c->pair, timer - c->pair->now - 1);
    ask(c, ALB_WR_RDMA_WRITE, 2, 8);
    alb_time sent_at = c->pair->now;
    pair_send(c->pair, 0); // and is lost
    pair_pass(c->pair, timer - sent_at);
    assert_int_equal(counted(c, ALB_STAT_local_ack_timeout_err), 0);
    alb_time next = alb_engine_deadline(c->pair->hosts[0].engine);
    pair_pass(c->pair, next - c->pair->now);
    assert_int_equal(counted(c, ALB_STAT_local_ack_timeout_err), 1);
}

// While nothing is in flight: the timer that was left running is by the old time.
static void completer__another_timeout_while_idle(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    pair_settle(c->pair);
    alb_time before = alb_engine_deadline(c->pair->hosts[0].engine);
    struct alb_qp_attr attr = {.state = ALB_QPS_SQD, .timeout = 1};
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE | ALB_QP_TIMEOUT, c->pair->now), 0);
    attr.state = ALB_QPS_RTS;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    ask(c, ALB_WR_RDMA_WRITE, 2, 8);
    pair_send(c->pair, 0); // and is lost
    assert_true(alb_engine_deadline(c->pair->hosts[0].engine) < before);
}

static void infinite(struct alb_qp_attr *attr, int side)
{
    attr->timeout = 0;
}

static void completer__for_ever(void **state)
{
    struct pair_qps *c = *state;
    pair_connect(c->pair, ALB_QPT_RC, c->qps, infinite);
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    pair_send(c->pair, 0);
    assert_int_equal(alb_engine_deadline(c->pair->hosts[0].engine), ALB_TIME_NEVER);
}

// The time to wait is changed while something is in flight.
static void completer__another_timeout_while_draining(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp_attr attr = {.state = ALB_QPS_SQD};
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    pair_send(c->pair, 0);
    lose_all(c, 0);
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE | ALB_QP_TIMEOUT, c->pair->now), 0);
    pair_pass(c->pair, 100ull * TIMEOUT_NS);
    pair_expect_none(c->pair, 0);
    assert_int_equal(counted(c, ALB_STAT_local_ack_timeout_err), 0);
    attr.timeout = 5;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE | ALB_QP_TIMEOUT, c->pair->now), 0);
    pair_pass(c->pair, 100ull * TIMEOUT_NS);
    assert_int_equal(pair_send(c->pair, 0), 1); // there is a timer again
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
}

// ---- receiver not ready ---------------------------------------------------------------------------------------------

static void completer__waits_as_long_as_the_receiver_says(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_SEND, 1, 8);
    ask(c, ALB_WR_SEND, 2, 8);
    pair_send(c->pair, 0);
    lose_all(c, 0);
    acknowledge(c, 0, RNR(14)); // 1.28 ms... of table 45: 0.96 ms is 13
    alb_time wait = alb_rnr_timer_ns(14);
    pair_pass(c->pair, wait - 1);
    assert_int_equal(pair_send(c->pair, 0), 0);
    pair_pass(c->pair, 1);
    assert_int_equal(pair_send(c->pair, 0), 2); // with what stands behind it
    assert_int_equal(pair_peek(c->pair, 0, 0)->roce.psn, PAIR_PSN);
    assert_int_equal(counted(c, ALB_STAT_rcvd_rnr_err), 1);
}

static void completer__rnr_acknowledges_what_was_before(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    ask(c, ALB_WR_SEND, 2, 8);
    pair_send(c->pair, 0);
    acknowledge(c, 1, RNR(1));
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(c->qps[0]->peer->inflight_bytes, 0);
}

static void two_rnr_retries(struct alb_qp_attr *attr, int side)
{
    attr->rnr_retry = 2;
}

static void completer__rnr_retries(void **state)
{
    struct pair_qps *c = *state;
    pair_connect(c->pair, ALB_QPT_RC, c->qps, two_rnr_retries);
    ask(c, ALB_WR_SEND, 1, 8);
    for (int i = 0; i < 3; i++) {
        pair_expect_none(c->pair, 0);
        assert_int_equal(pair_send(c->pair, 0), 1);
        lose_all(c, 0);
        acknowledge(c, 0, RNR(1));
        acknowledge(c, 0, RNR(1)); // the same answer twice costs one
        pair_pass(c->pair, alb_rnr_timer_ns(1));
    }
    pair_expect(c->pair, 0, 1, ALB_WC_RNR_RETRY_EXC_ERR);
    assert_int_equal(counted(c, ALB_STAT_retry_rnr_exceeded_err), 1);
}

static void completer__progress_gives_rnr_retries_back(void **state)
{
    struct pair_qps *c = *state;
    pair_connect(c->pair, ALB_QPT_RC, c->qps, two_rnr_retries);
    for (uint64_t i = 0; i < 3; i++)
        ask(c, ALB_WR_SEND, i, 8);
    pair_send(c->pair, 0);
    lose_all(c, 0);
    for (int32_t i = 0; i < 3; i++) {
        for (int j = 0; j < 2; j++) {
            acknowledge(c, i, RNR(1));
            pair_pass(c->pair, alb_rnr_timer_ns(1));
            assert_int_equal(pair_send(c->pair, 0), 3 - i);
            lose_all(c, 0);
        }
        acknowledge(c, i, ACK);
        pair_expect(c->pair, 0, (uint64_t)i, ALB_WC_SUCCESS);
    }
}

static void completer__seven_means_for_ever(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_SEND, 1, 8);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(pair_send(c->pair, 0), 1);
        lose_all(c, 0);
        acknowledge(c, 0, RNR(1));
        pair_pass(c->pair, alb_rnr_timer_ns(1));
    }
    pair_expect_none(c->pair, 0);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_RTS);
}

// The time in which the receiver wants to be left alone is not silence.
static void completer__waiting_for_the_receiver_is_no_timeout(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_SEND, 1, 8);
    pair_send(c->pair, 0);
    acknowledge(c, 0, RNR(31)); // 491 ms, against a timeout of 4
    pair_pass(c->pair, 400 * ALB_NS_PER_MS);
    assert_int_equal(counted(c, ALB_STAT_local_ack_timeout_err), 0);
    assert_int_equal(pair_send(c->pair, 0), 0);
}

// The packets behind the one that was not ready for are missed by some receivers, which says nothing new: all of them
// will be sent again.
static void completer__missed_packets_while_it_waits(void **state)
{
    struct pair_qps *c = *state;
    pair_connect(c->pair, ALB_QPT_RC, c->qps, no_retry);
    ask(c, ALB_WR_SEND, 1, 8);
    ask(c, ALB_WR_SEND, 2, 8);
    pair_send(c->pair, 0);
    lose_all(c, 0);
    acknowledge(c, 0, RNR(14));
    acknowledge(c, 0, NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    assert_int_equal(counted(c, ALB_STAT_packet_seq_err), 1);
    assert_int_equal(pair_send(c->pair, 0), 0);
    pair_pass(c->pair, alb_rnr_timer_ns(14));
    assert_int_equal(pair_send(c->pair, 0), 2);
    acknowledge(c, 1, ACK);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
}

// The same with an answer that was lost: a late copy of the SEND found a receive, and the READ behind it was executed.
static void completer__a_missed_answer_while_it_waits(void **state)
{
    struct pair_qps *c = *state;
    pair_connect(c->pair, ALB_QPT_RC, c->qps, no_retry);
    ask(c, ALB_WR_SEND, 1, 8);
    ask(c, ALB_WR_RDMA_READ, 2, 8);
    ask(c, ALB_WR_SEND, 3, 8);
    pair_send(c->pair, 0);
    lose_all(c, 0);
    acknowledge(c, 0, RNR(14));
    acknowledge(c, 2, ACK);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect_none(c->pair, 0);
    assert_int_equal(counted(c, ALB_STAT_implied_nak_seq_err), 1);
    pair_pass(c->pair, alb_rnr_timer_ns(14));
    assert_int_equal(pair_send(c->pair, 0), 2);
    assert_int_equal(pair_peek(c->pair, 0, 0)->roce.opcode, ALB_RC_READ_REQUEST);
}

// An acknowledgement of everything comes while it waits: what is posted next goes when the wait is over.
static void completer__acknowledged_while_it_waits(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_SEND, 1, 8);
    pair_send(c->pair, 0);
    acknowledge(c, 0, RNR(1));
    acknowledge(c, 0, ACK);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    ask(c, ALB_WR_SEND, 2, 8);
    pair_pass(c->pair, alb_rnr_timer_ns(1));
    assert_int_equal(pair_send(c->pair, 0), 1);
    assert_int_equal(pair_peek(c->pair, 0, 1)->roce.psn, alb_psn_add(PAIR_PSN, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_RC_TEST(completer__one_acknowledgement_for_many),
        PAIR_RC_TEST(completer__part_of_a_message_does_not_complete_it),
        PAIR_RC_TEST(completer__gives_back_what_is_acknowledged),
        PAIR_RC_TEST(completer__the_window_grows_where_it_was_in_the_way),
        PAIR_RC_TEST(completer__acknowledges_what_is_not_in_flight),
        PAIR_RC_TEST(completer__acknowledged_while_it_was_to_be_sent_again),
        PAIR_RC_TEST(completer__reserved_syndrome),
        PAIR_RC_TEST(completer__naks_that_end_it),
        PAIR_RC_TEST(completer__sequence_errors_cost_retries_until_something_moves),
        PAIR_RC_TEST(completer__a_sequence_error_that_comes_twice_costs_one_retry),
        PAIR_RC_TEST(completer__silence_costs_retries_and_each_waits_longer),
        PAIR_RC_TEST(completer__a_sign_of_life_makes_timeouts_short_again),
        PAIR_RC_TEST(completer__receiver_not_ready_is_a_sign_of_life),
        PAIR_RC_TEST(completer__receiver_not_ready_gives_retries_back),
        PAIR_RC_TEST(completer__no_retries_at_all),
        PAIR_RC_TEST(completer__what_is_heard_gives_more_time),
        PAIR_RC_TEST(completer__nothing_in_flight_needs_no_timer),
        PAIR_RC_TEST(completer__each_packet_has_its_time),
        PAIR_RC_TEST(completer__another_timeout_while_idle),
        PAIR_RC_TEST(completer__for_ever),
        PAIR_RC_TEST(completer__another_timeout_while_draining),
        PAIR_RC_TEST(completer__waits_as_long_as_the_receiver_says),
        PAIR_RC_TEST(completer__rnr_acknowledges_what_was_before),
        PAIR_RC_TEST(completer__rnr_retries),
        PAIR_RC_TEST(completer__progress_gives_rnr_retries_back),
        PAIR_RC_TEST(completer__seven_means_for_ever),
        PAIR_RC_TEST(completer__waiting_for_the_receiver_is_no_timeout),
        PAIR_RC_TEST(completer__missed_packets_while_it_waits),
        PAIR_RC_TEST(completer__a_missed_answer_while_it_waits),
        PAIR_RC_TEST(completer__acknowledged_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
