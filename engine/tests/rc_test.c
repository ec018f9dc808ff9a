// SPDX-License-Identifier: BSD-2-Clause
// The life of rc with its queue pair: what it takes from attributes, what it gives back, when it is quiet.
#include "engine/rc.h"

#include "engine/tests/pair.h"
#include "engine/tests/pair_expect.h"

#include "base/tests/test.h"

enum {
    MTU = 1024,
};

static void ask(struct pair_qps *c, enum alb_wr_opcode opcode, uint32_t length)
{
    assert_int_equal(pair_ask(c->pair, c->qps[0], opcode, 1, ALB_SEND_SIGNALED, 0, length), 0);
}

static void expect(struct pair_qps *c, enum alb_wc_status status)
{
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, status);
}

static void rc__numbers_are_told_when_asked(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp_attr attr;
    struct alb_qp_init init;
    ask(c, ALB_WR_RDMA_READ, 3 * MTU);
    pair_settle(c->pair);
    alb_qp_query(c->qps[0], &attr, &init);
    assert_int_equal(attr.sq_psn, alb_psn_add(PAIR_PSN, 3));
    alb_qp_query(c->qps[1], &attr, &init);
    assert_int_equal(attr.rq_psn, alb_psn_add(PAIR_PSN, 3));
    assert_int_equal(attr.sq_psn, PAIR_PSN ^ 0x800000);
}

// It has no peer any more, though the former one may not know, and still sends.
static void rc__reset_and_in_error_hears_nobody(void **state)
{
    static const uint8_t opcodes[] = {ALB_RC_WRITE_ONLY, ALB_RC_ACK, ALB_CNP};
    struct pair_qps *c = *state;
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    attr = pair_attr(c->pair, 1, NULL);
    assert_int_equal(pair_move(c->pair, c->qps[1], ALB_QPS_INIT, &attr), 0);
    attr.state = ALB_QPS_ERR;
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    for (uint32_t i = 0; i < ALB_COUNT(opcodes); i++) {
        const struct alb_roce roce = {
            .opcode = opcodes[i], .pkey = 0xffff, .dest_qpn = alb_qp_number(c->qps[1]), .psn = PAIR_PSN};
        pair_inject(c->pair, 0, &roce, NULL, 0);
    }
    assert_int_equal(c->pair->hosts[1].stats.dropped[ALB_DROP_WRONG_QP_STATE], ALB_COUNT(opcodes));
    assert_int_equal(pair_send(c->pair, 1), 0);
}

static void assert_migrated(struct pair *pair, int side, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_true(pair_peek(pair, side, i)->roce.migreq);
    pair_deliver_all(pair, side);
}

// A NIC takes a packet without MigReq for the wish to migrate, and some of them handle that slowly.
static void rc__packets_say_that_their_path_is_the_one(void **state)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_SEND, ALB_WR_RDMA_WRITE, ALB_WR_RDMA_READ,
                                                 ALB_WR_ATOMIC_FETCH_AND_ADD};
    struct pair_qps *c = *state;
    for (uint32_t i = 0; i < ALB_COUNT(opcodes); i++) {
        assert_int_equal(pair_receive(c->pair, c->qps[1], 2, 0, 4 * MTU), 0);
        ask(c, opcodes[i], i == 3 ? 8 : 2 * MTU);
        for (uint32_t count; (count = pair_send(c->pair, 0)) > 0;)
            assert_migrated(c->pair, 0, count);
        uint32_t answers = pair_send(c->pair, 1);
        assert_int_equal(answers, opcodes[i] == ALB_WR_RDMA_READ ? 2 : 1);
        assert_migrated(c->pair, 1, answers);
    }
}

static void rc__quiet(void **state)
{
    struct pair_qps *c = *state;
    struct alb_engine *engines[] = {c->pair->hosts[0].engine, c->pair->hosts[1].engine};
    assert_true(alb_qp_is_quiet(c->qps[0]));
    pair_send(c->pair, 0);
    assert_true(alb_engine_is_quiet(engines[0]));
    ask(c, ALB_WR_RDMA_WRITE, 8);
    assert_false(alb_qp_is_quiet(c->qps[0]));
    assert_false(alb_engine_is_quiet(engines[0]));
    pair_send(c->pair, 0);
    assert_false(alb_engine_is_quiet(engines[0]));
    pair_deliver_all(c->pair, 0);
    assert_false(alb_qp_is_quiet(c->qps[1])); // owes an acknowledgement
    assert_false(alb_engine_is_quiet(engines[1]));
    pair_settle(c->pair);
    assert_true(alb_engine_is_quiet(engines[0]));
    assert_true(alb_engine_is_quiet(engines[1]));
}

// The peer's program may have waited for it, and gets its own acknowledged before the answer comes. With one request it
// ends the burst instead, and the edge brings it forward.
static void rc__acknowledgement_goes_before_an_answer_of_several_requests(void **state)
{
    struct pair_qps *c = *state;
    for (uint32_t requests = 1; requests <= 2; requests++) {
        assert_int_equal(pair_receive(c->pair, c->qps[0], 2, 0, MTU), 0);
        assert_int_equal(pair_receive(c->pair, c->qps[1], 2, 0, MTU), 0);
        ask(c, ALB_WR_SEND, 8);
        pair_send(c->pair, 0);
        pair_deliver_all(c->pair, 0);
        if (requests == 2)
            assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_RDMA_WRITE, 3, 0, 0, 64), 0);
        assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_SEND, 3, 0, 0, 8), 0);
        assert_int_equal(pair_send(c->pair, 1), requests + 1);
        for (uint32_t i = 0; i <= requests; i++)
            assert_int_equal(pair_peek(c->pair, 1, i)->roce.opcode == ALB_RC_ACK, i == (requests == 1 ? 1 : 0));
        pair_settle(c->pair);
        pair_expect(c->pair, 1, 2, ALB_WC_SUCCESS);
        struct alb_wc wc;
        while (pair_poll(c->pair, 0, &wc) || pair_poll(c->pair, 1, &wc))
            continue;
    }
}

// What has not begun when draining begins waits for the program, not for the peer.
static void rc__quiet_when_drained(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp_attr attr = {.state = ALB_QPS_SQD};
    ask(c, ALB_WR_RDMA_WRITE, 8);
    pair_send(c->pair, 0);
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    ask(c, ALB_WR_RDMA_WRITE, 8);
    assert_false(alb_qp_is_quiet(c->qps[0])); // the first is not acknowledged
    pair_settle(c->pair);
    expect(c, ALB_WC_SUCCESS);
    assert_true(alb_qp_is_quiet(c->qps[0]));
    attr.state = ALB_QPS_RTS;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_false(alb_qp_is_quiet(c->qps[0]));
    pair_settle(c->pair);
    expect(c, ALB_WC_SUCCESS);
    assert_true(alb_qp_is_quiet(c->qps[0]));
}

static void few_peers(struct alb_engine_config *config)
{
    config->peer_max = 2;
}

static struct alb_qp_attr attr_to(struct pair *pair, uint8_t last_byte)
{
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    attr.av.peer.bytes[15] = last_byte;
    return attr;
}

// The table of peers is full: the move is refused, and possible as soon as another queue pair has gone.
static void rc__peers_are_limited(void **state)
{
    struct pair *pair = pair_new(few_peers);
    struct alb_qp *qps[3];
    for (uint8_t i = 0; i < 3; i++) {
        qps[i] = pair_qp(pair, 0, ALB_QPT_RC);
        struct alb_qp_attr attr = attr_to(pair, 50 + i);
        assert_int_equal(pair_move(pair, qps[i], ALB_QPS_RTR, &attr), i < 2 ? 0 : ENOMEM);
    }
    assert_int_equal(alb_qp_current_state(qps[2]), ALB_QPS_INIT);
    assert_int_equal(alb_qp_destroy(qps[0]), 0);
    struct alb_qp_attr attr = attr_to(pair, 52);
    attr.state = ALB_QPS_RTR;
    assert_int_equal(alb_qp_modify(qps[2], &attr, pair_mask(ALB_QPT_RC, ALB_QPS_RTR), pair->now), 0);
    attr.state = ALB_QPS_RESET; // gives its peer back
    assert_int_equal(alb_qp_modify(qps[2], &attr, ALB_QP_STATE, pair->now), 0);
    attr = attr_to(pair, 53);
    assert_int_equal(pair_move(pair, qps[2], ALB_QPS_RTS, &attr), 0);
    pair_free(pair);
}

static int to_sqd(struct pair_qps *c)
{
    struct alb_qp_attr attr = {.state = ALB_QPS_SQD};
    return alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now);
}

// While it drains a queue pair may be given another address: what is in flight is in flight toward that one.
static void rc__another_address_while_draining(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp *other[2];
    pair_connect(c->pair, ALB_QPT_RC, other, NULL); // keeps the old peer alive
    ask(c, ALB_WR_RDMA_WRITE, 3 * MTU);
    pair_send(c->pair, 0);
    struct alb_peer *old = c->qps[0]->peer;
    assert_true(old->inflight_bytes > 0);
    assert_int_equal(to_sqd(c), 0);
    struct alb_qp_attr attr = {.state = ALB_QPS_SQD, .av = c->qps[0]->attr.av};
    attr.av.same_host = true;
    c->qps[0]->attr.dest_qpn |= 3 << 16; // as if the peer were in slot 3: another port
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE | ALB_QP_AV, c->pair->now), 0);
    assert_ptr_not_equal(c->qps[0]->peer, old);
    assert_int_equal(old->inflight_bytes, 0);
    pair_settle(c->pair);
    expect(c, ALB_WC_SUCCESS);
    assert_int_equal(c->qps[0]->peer->inflight_bytes, 0);
}

// A refused change changes nothing.
static void rc__limits_change_only_with_nothing_outstanding(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_READ, 8);
    pair_send(c->pair, 0);
    assert_int_equal(to_sqd(c), 0);
    struct alb_peer *peer = c->qps[0]->peer;
    struct alb_flow flow = c->qps[0]->flow;
    struct alb_qp_attr attr = pair_attr(c->pair, 0, NULL);
    attr.state = ALB_QPS_SQD;
    attr.max_rd_atomic = 1;
    attr.av.peer.bytes[15] = 99;
    uint32_t mask = ALB_QP_STATE | ALB_QP_AV | ALB_QP_MAX_QP_RD_ATOMIC;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, mask, c->pair->now), EBUSY);
    assert_ptr_equal(c->qps[0]->peer, peer);
    assert_memory_equal(&c->qps[0]->flow, &flow, sizeof(flow));
    assert_int_equal(c->qps[0]->attr.max_rd_atomic, 4);
    assert_int_equal(c->qps[0]->attr.av.peer.bytes[15], 2);
    pair_settle(c->pair);
    expect(c, ALB_WC_SUCCESS);
    mask &= ~(uint32_t)ALB_QP_AV;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, mask, c->pair->now), 0);
    attr.state = ALB_QPS_RTS;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    ask(c, ALB_WR_RDMA_READ, 8);
    ask(c, ALB_WR_RDMA_READ, 8);
    assert_int_equal(pair_send(c->pair, 0), 1);
}

// Memory runs out at each of the requests that a move makes: it is refused, and can be repeated.
static void rc__no_memory_for_a_move(void **state)
{
    struct pair_qps *c = *state;
    struct pair_host *host = &c->pair->hosts[0];
    for (enum alb_qp_state next = ALB_QPS_RTR; next <= ALB_QPS_RTS; next++) {
        struct alb_qp *qp = pair_qp(c->pair, 0, ALB_QPT_RC);
        struct alb_qp_attr attr = pair_attr(c->pair, 0, NULL);
        assert_int_equal(pair_move(c->pair, qp, next - 1, &attr), 0);
        size_t held = host->bytes_held;
        int error = ENOMEM;
        attr.state = next;
        for (uint64_t i = 1; error; i++) {
            assert_true(i < 10);
            host->refused_from = i;
            error = alb_qp_modify(qp, &attr, pair_mask(ALB_QPT_RC, next), c->pair->now);
            host->refused_from = 0;
            if (!error)
                break;
            assert_int_equal(error, ENOMEM);
            assert_int_equal(host->bytes_held, held);
            assert_int_equal(alb_qp_current_state(qp), next - 1);
        }
        assert_int_equal(alb_qp_current_state(qp), next);
    }
}

static void rc__ends_in_the_middle_of_everything(void **state)
{
    struct pair_qps *c = *state;
    for (int k = 0; k < 3; k++) {
        if (k > 0)
            pair_connect(c->pair, ALB_QPT_RC, c->qps, NULL);
        struct alb_qp *waiting[2];
        pair_connect(c->pair, ALB_QPT_RC, waiting, NULL);
        ask(c, ALB_WR_RDMA_WRITE, 100 * MTU);
        assert_int_equal(pair_ask(c->pair, waiting[0], ALB_WR_RDMA_WRITE, 7, ALB_SEND_SIGNALED, 0, 100 * MTU), 0);
        pair_send(c->pair, 0);
        if (k == 1)
            pair_pass(c->pair, ALB_NS_PER_S);
        struct alb_qp_attr attr = {.state = k == 2 ? ALB_QPS_ERR : ALB_QPS_RESET};
        assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
        assert_int_equal(alb_qp_destroy(c->qps[0]), 0);
        pair_settle(c->pair); // the other one that shared its window gets what it had
        struct alb_wc wc;
        bool is_done = false;
        for (int round = 0; round < 10; round++) {
            pair_settle(c->pair);
            pair_pass(c->pair, 5 * ALB_NS_PER_MS);
        }
        while (pair_poll(c->pair, 0, &wc))
            is_done |= wc.wr_id == 7 && wc.status == ALB_WC_SUCCESS;
        assert_true(is_done);
        assert_int_equal(alb_qp_destroy(waiting[0]), 0);
    }
}

// Packets of the next batch of side 0, which takes sixteen in turns of four: requests, and answers.
static void count_batch(struct pair_qps *c, uint32_t *requests, uint32_t *answers)
{
    struct pair_host *host = &c->pair->hosts[0];
    host->tx.burst_segments_max = 4;
    host->tx.segment_capacity = 16;
    alb_engine_bells(host->engine, c->pair->now);
    alb_engine_tx(host->engine, &host->tx, c->pair->now);
    *requests = *answers = 0;
    for (uint32_t i = 0; i < host->tx.segment_count; i++) {
        const uint8_t *bytes = host->iov[host->segments[i].iov_first].iov_base;
        ++*(alb_opcode_info(bytes[0])->flags & ALB_OPCODE_REQUEST ? requests : answers);
    }
}

static void rc__answering_and_asking_take_turns(void **state)
{
    struct pair_qps *c = *state;
    uint32_t requests, answers;
    assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_RDMA_READ, 1, 0, 0, 50 * MTU), 0);
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    ask(c, ALB_WR_RDMA_WRITE, 50 * MTU);
    for (int batch = 0; batch < 3; batch++) {
        count_batch(c, &requests, &answers);
        assert_int_equal(requests, 8);
        assert_int_equal(answers, 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_RC_TEST(rc__numbers_are_told_when_asked),
        PAIR_RC_TEST(rc__reset_and_in_error_hears_nobody),
        PAIR_RC_TEST(rc__packets_say_that_their_path_is_the_one),
        PAIR_RC_TEST(rc__quiet),
        PAIR_RC_TEST(rc__acknowledgement_goes_before_an_answer_of_several_requests),
        PAIR_RC_TEST(rc__quiet_when_drained),
        PAIR_RC_TEST(rc__answering_and_asking_take_turns),
        cmocka_unit_test(rc__peers_are_limited),
        PAIR_RC_TEST(rc__another_address_while_draining),
        PAIR_RC_TEST(rc__limits_change_only_with_nothing_outstanding),
        PAIR_RC_TEST(rc__no_memory_for_a_move),
        PAIR_RC_TEST(rc__ends_in_the_middle_of_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
