// SPDX-License-Identifier: BSD-2-Clause
// Congestion notifications: side 0 sends, the network marks, side 1 notifies.
#include "engine/rc.h"

#include "engine/tests/pair_expect.h"

enum {
    MTU = 1024,
};

static uint64_t counted(const struct pair_qps *c, int side, enum alb_stat stat)
{
    return c->pair->hosts[side].stats.sum.counter[stat];
}

static uint32_t window_of(const struct pair_qps *c, int side)
{
    return c->qps[side]->peer->congestion.window_bytes;
}

// What a side has on the wire arrives, each packet with a mark.
static void deliver_marked(struct pair_qps *c, int side)
{
    while (pair_count(c->pair, side) > 0) {
        pair_peek(c->pair, side, 0)->datagram.traffic_class = ALB_ECN_CE;
        pair_deliver(c->pair, side);
    }
}

// So does a WRITE of so many packets of side 0.
static void write_marked(struct pair_qps *c, uint32_t packets)
{
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_WRITE, 1, 0, 0, packets * MTU), 0);
    assert_int_equal(pair_send(c->pair, 0), packets);
    deliver_marked(c, 0);
}

// CNPs among what a side has on the wire.
static uint32_t cnps(const struct pair_qps *c, int side)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pair_count(c->pair, side); i++)
        count += pair_peek(c->pair, side, i)->roce.opcode == ALB_CNP;
    return count;
}

static void mark__is_answered_by_a_notification(void **state)
{
    struct pair_qps *c = *state;
    write_marked(c, 1);
    assert_int_equal(pair_send(c->pair, 1), 2);
    const struct pair_packet *packet = pair_peek(c->pair, 1, 0);
    assert_int_equal(packet->roce.opcode, ALB_CNP);
    assert_true(packet->roce.becn);
    assert_false(packet->roce.ackreq);
    assert_int_equal(packet->roce.psn, 0);
    assert_int_equal(packet->roce.dest_qpn, alb_qp_number(c->qps[0]));
    assert_int_equal(packet->datagram.traffic_class, 48 << 2);
    assert_int_equal(pair_peek(c->pair, 1, 1)->roce.opcode, ALB_RC_ACK);
    assert_int_equal(counted(c, 1, ALB_STAT_ecn_marked_pkts), 1);
    assert_int_equal(counted(c, 1, ALB_STAT_np_cnp_sent), 1);
}

static void mark__is_answered_once_in_so_long(void **state)
{
    struct pair_qps *c = *state;
    const alb_time apart = c->pair->hosts[1].engine->config.dcqcn.cnp_ns;
    write_marked(c, 4);
    pair_send(c->pair, 1);
    assert_int_equal(cnps(c, 1), 1);
    pair_deliver_all(c->pair, 1);
    pair_pass(c->pair, apart - 1);
    write_marked(c, 1);
    pair_send(c->pair, 1);
    assert_int_equal(cnps(c, 1), 0);
    pair_deliver_all(c->pair, 1);
    pair_pass(c->pair, 1);
    write_marked(c, 1);
    pair_send(c->pair, 1);
    assert_int_equal(cnps(c, 1), 1);
}

// Between two that notify each other there would be no end.
static void mark__of_what_carries_nothing_is_not_answered(void **state)
{
    struct pair_qps *c = *state;
    write_marked(c, 1);
    pair_send(c->pair, 1);
    deliver_marked(c, 1);
    assert_int_equal(counted(c, 0, ALB_STAT_ecn_marked_pkts), 2);
    assert_int_equal(pair_send(c->pair, 0), 0);
}

static void notification__slows_who_gets_it(void **state)
{
    struct pair_qps *c = *state;
    uint32_t before[2] = {window_of(c, 0), window_of(c, 1)};
    write_marked(c, 4);
    assert_int_equal(window_of(c, 1), before[1]); // it does not send toward the congestion
    pair_send(c->pair, 1);
    pair_deliver(c->pair, 1);
    assert_int_equal(window_of(c, 0), before[0] / 2);
    assert_int_equal(counted(c, 0, ALB_STAT_rp_cnp_handled), 1);
    pair_settle(c->pair);
    assert_int_equal(counted(c, 0, ALB_STAT_retransmitted_pkts), 0);
}

// How much of an answer is under way is for the reader's window to say: a NIC would slow its answer for the CNP.
static void mark__of_an_answer_slows_the_reader(void **state)
{
    struct pair_qps *c = *state;
    uint32_t before = window_of(c, 0);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 0, 4 * MTU), 0);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(pair_send(c->pair, 1), 4);
    deliver_marked(c, 1);
    assert_int_equal(window_of(c, 0), before / 2);
    pair_send(c->pair, 0);
    assert_int_equal(cnps(c, 0), 1);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
}

static void notification__of_a_stranger_changes_nothing(void **state)
{
    struct pair_qps *c = *state;
    uint32_t before = window_of(c, 0);
    write_marked(c, 1);
    pair_send(c->pair, 1);
    pair_peek(c->pair, 1, 0)->datagram.peer.addr = c->pair->hosts[0].addr;
    pair_deliver(c->pair, 1);
    assert_int_equal(c->pair->hosts[0].stats.dropped[ALB_DROP_WRONG_PEER], 1);
    assert_int_equal(window_of(c, 0), before);
}

static void notification__ends_with_the_connection(void **state)
{
    struct pair_qps *c = *state;
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    write_marked(c, 1);
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    pair_pass(c->pair, c->pair->hosts[1].engine->config.dcqcn.cnp_ns);
    write_marked(c, 1);
    pair_send(c->pair, 1);
    assert_int_equal(cnps(c, 1), 0);
}

// The next connection's first mark is not silenced by the one before, nor is its CNP sent.
static void notification__begins_anew_with_the_connection(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    write_marked(c, 1);
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    attr = pair_attr(c->pair, 1, c->qps[0]);
    attr.rq_psn = alb_psn_next(attr.rq_psn);
    assert_int_equal(pair_move(c->pair, c->qps[1], ALB_QPS_RTS, &attr), 0);
    assert_int_equal(pair_send(c->pair, 1), 0);
    write_marked(c, 1);
    pair_send(c->pair, 1);
    assert_int_equal(cnps(c, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_RC_TEST(mark__is_answered_by_a_notification),
        PAIR_RC_TEST(mark__is_answered_once_in_so_long),
        PAIR_RC_TEST(mark__of_what_carries_nothing_is_not_answered),
        PAIR_RC_TEST(mark__of_an_answer_slows_the_reader),
        PAIR_RC_TEST(notification__slows_who_gets_it),
        PAIR_RC_TEST(notification__of_a_stranger_changes_nothing),
        PAIR_RC_TEST(notification__ends_with_the_connection),
        PAIR_RC_TEST(notification__begins_anew_with_the_connection),
    };
    return cmocka_run_group_tests_name("rc_cnp", tests, NULL, NULL);
}
