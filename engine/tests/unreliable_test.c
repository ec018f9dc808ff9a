// SPDX-License-Identifier: BSD-2-Clause
// The sending side of UC and UD: when requests complete, what fails them, and how a queue pair comes out of SQE and
// SQD.
#include "engine/unreliable.h"

#include "engine/tests/pair_expect.h"

enum {
    MTU = 1024,
};

static void post(struct pair_qps *c, uint64_t wr_id, uint32_t length)
{
    struct alb_sge sge = pair_sge(c->pair, 0, 0, length);
    struct alb_send_wr wr = {
        .wr_id = wr_id, .opcode = ALB_WR_SEND, .flags = ALB_SEND_SIGNALED, .sge = &sge, .sge_count = 1};
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
}

static void post_bad_key(struct pair_qps *c, uint64_t wr_id)
{
    struct alb_sge sge = {.addr = 8, .length = 8, .lkey = 999};
    struct alb_send_wr wr = {.wr_id = wr_id, .opcode = ALB_WR_SEND, .sge = &sge, .sge_count = 1};
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
}

static int move(struct pair_qps *c, enum alb_qp_state to)
{
    struct alb_qp_attr attr = {.state = to, .en_sqd_async_notify = true};
    uint32_t mask = ALB_QP_STATE | (to == ALB_QPS_SQD ? ALB_QP_EN_SQD_ASYNC_NOTIFY : 0);
    return alb_qp_modify(c->qps[0], &attr, mask, c->pair->now);
}

static bool is_draining(const struct pair_qps *c)
{
    struct alb_qp_attr attr;
    struct alb_qp_init init;
    alb_qp_query(c->qps[0], &attr, &init);
    return attr.sq_draining;
}

// The driver may still refer to the program's memory after tx; only when it comes back is the request done.
static void unreliable__completes_when_the_driver_comes_back(void **state)
{
    struct pair_qps *c = *state;
    struct pair_host *host = &c->pair->hosts[0];
    post(c, 1, 8);
    alb_engine_bells(host->engine, c->pair->now);
    assert_int_equal(alb_engine_tx(host->engine, &host->tx, c->pair->now), 1);
    pair_expect_none(c->pair, 0);
    assert_false(alb_qp_is_quiet(c->qps[0]));
    assert_true(alb_engine_wants_tx(host->engine));
    assert_int_equal(alb_engine_tx(host->engine, &host->tx, c->pair->now), 0);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    assert_true(alb_qp_is_quiet(c->qps[0]));
}

static void unreliable__numbers_packets_and_wraps(void **state)
{
    struct pair_qps *c = *state;
    for (int i = 0; i < 4; i++)
        post(c, 1, 2 * MTU);
    assert_int_equal(pair_send(c->pair, 0), 8);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(pair_peek(c->pair, 0, i)->roce.psn, (PAIR_PSN + i) & 0xffffff);
}

// What was sent before the bad request succeeds, the bad one says why, what stands behind it is flushed: SQE
// (10.3.1.6).
static void unreliable__a_bad_request_leads_to_sqe(void **state)
{
    struct pair_qps *c = *state;
    struct alb_event event;
    post(c, 1, 8);
    post_bad_key(c, 2);
    post(c, 3, 8);
    assert_int_equal(pair_send(c->pair, 0), 1);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect(c->pair, 0, 2, ALB_WC_LOC_PROT_ERR);
    pair_expect(c->pair, 0, 3, ALB_WC_WR_FLUSH_ERR);
    pair_expect_none(c->pair, 0);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_SQE);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_QP_FAILED, &event));
    assert_int_equal(event.failure.status, ALB_WC_LOC_PROT_ERR);
}

// Whatever made it so: its turn to send is over, and what is still with the driver is looked for no more.
static void unreliable__in_sqe_it_stands_in_no_line(void **state)
{
    struct pair_qps *c = *state;
    struct pair_host *host = &c->pair->hosts[0];
    struct alb_qp *qp = c->qps[0];
    post(c, 1, 8);
    alb_engine_bells(host->engine, c->pair->now);
    assert_int_equal(alb_engine_tx(host->engine, &host->tx, c->pair->now), 1);
    alb_scheduler_wake(&host->engine->scheduler, &qp->source);
    alb_qp_set_state(qp, ALB_QPS_SQE, c->pair->now);
    assert_false(alb_list_is_linked(&qp->source.link));
    assert_false(qp->source.is_ready);
    assert_false(alb_list_is_linked(&alb_unreliable_of(qp)->unsent));
    assert_true(alb_scheduler_is_idle(&host->engine->scheduler));
}

static void unreliable__in_sqe_receives_go_on(void **state)
{
    struct pair_qps *c = *state;
    struct alb_sge sge = pair_sge(c->pair, 1, 0, 8);
    struct alb_send_wr wr = {.opcode = ALB_WR_SEND, .sge = &sge, .sge_count = 1};
    post_bad_key(c, 2);
    pair_send(c->pair, 0);
    pair_expect(c->pair, 0, 2, ALB_WC_LOC_PROT_ERR);
    assert_int_equal(pair_receive(c->pair, c->qps[0], 7, 0, 64), 0);
    assert_int_equal(pair_post(c->pair, c->qps[1], &wr), 0);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 7, ALB_WC_SUCCESS);
}

// Requests posted in SQE are flushed, and are no longer there when sending goes on.
static void unreliable__back_to_rts_after_sqe(void **state)
{
    struct pair_qps *c = *state;
    post_bad_key(c, 1);
    pair_send(c->pair, 0);
    pair_expect(c->pair, 0, 1, ALB_WC_LOC_PROT_ERR);
    post(c, 2, 8);
    post(c, 3, 8);
    assert_int_equal(pair_send(c->pair, 0), 0);
    pair_expect(c->pair, 0, 2, ALB_WC_WR_FLUSH_ERR);
    pair_expect(c->pair, 0, 3, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(move(c, ALB_QPS_RTS), 0);
    assert_int_equal(pair_send(c->pair, 0), 0);
    post(c, 4, 8);
    assert_int_equal(pair_send(c->pair, 0), 1);
    pair_expect(c->pair, 0, 4, ALB_WC_SUCCESS);
    pair_expect_none(c->pair, 0);
}

// A key that goes while a long message is being sent ends it there.
static void unreliable__a_key_that_goes_in_the_middle(void **state)
{
    struct pair_qps *c = *state;
    struct pair_host *host = &c->pair->hosts[0];
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(host->pd, host->memory, 65536, 0, 0, &mr), 0);
    struct alb_sge sge = {.addr = 0, .length = 16 * MTU, .lkey = alb_region_key(mr)};
    struct alb_send_wr wr = {.wr_id = 1, .opcode = ALB_WR_SEND, .sge = &sge, .sge_count = 1};
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    post(c, 2, 8);
    alb_engine_bells(host->engine, c->pair->now);
    host->tx.segment_capacity = 4;
    assert_int_equal(alb_engine_tx(host->engine, &host->tx, c->pair->now), 1);
    host->tx.segment_capacity = PAIR_SEGMENTS;
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_int_equal(pair_send(c->pair, 0), 0);
    pair_expect(c->pair, 0, 1, ALB_WC_LOC_PROT_ERR);
    pair_expect(c->pair, 0, 2, ALB_WC_WR_FLUSH_ERR);
    pair_expect_none(c->pair, 0);
}

static void unreliable__local_operations_complete_in_order(void **state)
{
    struct pair_qps *c = *state;
    struct alb_region *mw;
    assert_int_equal(alb_mw_create(c->pair->hosts[0].pd, ALB_MW_TYPE_2, &mw), 0);
    struct alb_send_wr wr = {
        .wr_id = 2,
        .opcode = ALB_WR_BIND_MW,
        .flags = ALB_SEND_SIGNALED,
        .bind = {mw, c->pair->hosts[0].mr, pair_va(c->pair, 0, 0), 64, ALB_ACCESS_REMOTE_READ, alb_region_key(mw)},
    };
    post(c, 1, 8);
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    wr = (struct alb_send_wr){
        .wr_id = 3, .opcode = ALB_WR_LOCAL_INV, .flags = ALB_SEND_SIGNALED, .invalidate_rkey = alb_region_key(mw)};
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    post(c, 4, 8);
    assert_int_equal(pair_send(c->pair, 0), 2);
    for (uint64_t i = 1; i <= 4; i++)
        pair_expect(c->pair, 0, i, ALB_WC_SUCCESS);
}

// SQD: what was begun is finished, what was not waits, and an event says when there is nothing left to finish.
static void unreliable__drains(void **state)
{
    struct pair_qps *c = *state;
    struct alb_event event;
    struct pair_host *host = &c->pair->hosts[0];
    post(c, 1, 8 * MTU);
    post(c, 2, 8);
    alb_engine_bells(host->engine, c->pair->now);
    host->tx.segment_capacity = 4;
    assert_int_equal(alb_engine_tx(host->engine, &host->tx, c->pair->now), 1);
    host->tx.segment_capacity = PAIR_SEGMENTS;
    assert_false(is_draining(c));
    assert_int_equal(move(c, ALB_QPS_SQD), 0);
    assert_true(is_draining(c));
    assert_false(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event));
    assert_int_equal(pair_send(c->pair, 0), 4);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect_none(c->pair, 0);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event));
    assert_false(is_draining(c));
    assert_int_equal(move(c, ALB_QPS_RTS), 0);
    assert_int_equal(pair_send(c->pair, 0), 1);
    pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
}

static void unreliable__drained_at_once_if_idle(void **state)
{
    struct pair_qps *c = *state;
    struct alb_event event;
    assert_int_equal(move(c, ALB_QPS_SQD), 0);
    pair_send(c->pair, 0);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event));
}

static void limit_rate(struct alb_engine_config *config)
{
    config->unreliable_bytes_per_s = 1000000;
}

static void unreliable__held_to_its_rate(void **state)
{
    struct pair *pair = pair_new(limit_rate);
    struct alb_qp *qps[2];
    pair_connect(pair, ALB_QPT_UC, qps, NULL);
    struct alb_sge sge = pair_sge(pair, 0, 0, 200 * MTU);
    struct alb_send_wr wr = {.opcode = ALB_WR_SEND, .sge = &sge, .sge_count = 1};
    assert_int_equal(pair_post(pair, qps[0], &wr), 0);
    uint32_t sent = pair_send(pair, 0);
    assert_true(sent < 200);
    for (int i = 0; i < 10; i++) {
        pair_pass(pair, 10 * ALB_NS_PER_MS);
        sent += pair_send(pair, 0);
    }
    // 65,536 bytes at first, then 100 ms of 1 MB/s, at 1,088 bytes a packet: and it does not lag far behind.
    assert_in_range(sent, 140, (65536 + 100000) / (MTU + 64) + 2);
    pair_free(pair);
}

// Nor is it drained while a request that was begun waits for the rate: that one still leaves.
static void unreliable__drains__what_waits_for_the_rate_too(void **state)
{
    struct pair_qps c = {.pair = pair_new(limit_rate)};
    struct alb_event event;
    pair_connect(c.pair, ALB_QPT_UC, c.qps, NULL);
    post(&c, 1, 61 * MTU); // as much as leaves at once
    post(&c, 2, 8);
    assert_int_equal(pair_send(c.pair, 0), 61);
    assert_int_equal(move(&c, ALB_QPS_SQD), 0);
    assert_int_equal(pair_send(c.pair, 0), 0);
    pair_expect(c.pair, 0, 1, ALB_WC_SUCCESS);
    assert_false(pair_event(c.pair, 0, ALB_EVENT_SQ_DRAINED, &event));
    pair_pass(c.pair, 10 * ALB_NS_PER_MS);
    assert_int_equal(pair_send(c.pair, 0), 1);
    pair_expect(c.pair, 0, 2, ALB_WC_SUCCESS);
    assert_true(pair_event(c.pair, 0, ALB_EVENT_SQ_DRAINED, &event));
    pair_free(c.pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_UC_TEST(unreliable__completes_when_the_driver_comes_back),
        PAIR_UC_TEST(unreliable__numbers_packets_and_wraps),
        PAIR_UC_TEST(unreliable__a_bad_request_leads_to_sqe),
        PAIR_UC_TEST(unreliable__in_sqe_it_stands_in_no_line),
        PAIR_UC_TEST(unreliable__in_sqe_receives_go_on),
        PAIR_UC_TEST(unreliable__back_to_rts_after_sqe),
        PAIR_UC_TEST(unreliable__a_key_that_goes_in_the_middle),
        PAIR_UC_TEST(unreliable__local_operations_complete_in_order),
        PAIR_UC_TEST(unreliable__drains),
        PAIR_UC_TEST(unreliable__drained_at_once_if_idle),
        cmocka_unit_test(unreliable__held_to_its_rate),
        cmocka_unit_test(unreliable__drains__what_waits_for_the_rate_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
