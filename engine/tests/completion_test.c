// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/pair_expect.h"

static int setup(void **state)
{
    *state = pair_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    pair_free(*state);
    return 0;
}

static void post(struct pair *pair, struct alb_qp *qp, uint64_t wr_id, uint32_t flags)
{
    struct alb_sge sge = pair_sge(pair, 0, 0, 100);
    struct alb_send_wr wr = {.wr_id = wr_id, .opcode = ALB_WR_SEND, .flags = flags, .sge = &sge, .sge_count = 1};
    assert_int_equal(pair_post(pair, qp, &wr), 0);
}

static void to_error(struct pair *pair, struct alb_qp *qp)
{
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(qp, &attr, ALB_QP_STATE, pair->now), 0);
}

static void alb_qp_complete_send__in_the_order_of_posting(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qps[2];
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(pair_receive(pair, qps[1], 100 + i, i * 128, 128), 0);
        post(pair, qps[0], i, ALB_SEND_SIGNALED);
    }
    pair_settle(pair);
    for (uint32_t i = 0; i < 8; i++) {
        pair_expect(pair, 0, i, ALB_WC_SUCCESS);
        pair_expect(pair, 1, 100 + i, ALB_WC_SUCCESS);
    }
    pair_expect_none(pair, 0);
    pair_expect_none(pair, 1);
}

static void alb_qp_complete_send__success_only_if_signaled(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qps[2];
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(pair_receive(pair, qps[1], 100 + i, i * 128, 128), 0);
        post(pair, qps[0], i, i % 2 ? ALB_SEND_SIGNALED : 0);
    }
    pair_settle(pair);
    pair_expect(pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect(pair, 0, 3, ALB_WC_SUCCESS);
    pair_expect_none(pair, 0);
    assert_int_equal(pair->hosts[0].stats.sum.counter[ALB_STAT_rdma_sends], 4);
    assert_int_equal(pair->hosts[1].stats.sum.counter[ALB_STAT_rdma_recvs], 4);
}

static void alb_qp_complete_send__all_with_sq_sig_all(void **state)
{
    struct pair *pair = *state;
    struct alb_qp_init init = {.type = ALB_QPT_UC, .sq_sig_all = true, .cap = {.send_wr_max = 4, .send_sge_max = 1}};
    struct alb_qp *qp = pair_qp_with(pair, 0, &init);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    post(pair, qp, 9, 0);
    pair_settle(pair);
    pair_expect(pair, 0, 9, ALB_WC_SUCCESS);
}

// What the program reads in a completion of each side.
static void alb_qp_complete_receive__fields(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qps[2];
    struct alb_wc wc;
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    assert_int_equal(pair_receive(pair, qps[1], 55, 0, 128), 0);
    struct alb_sge sge = pair_sge(pair, 0, 0, 100);
    struct alb_send_wr wr = {
        .wr_id = 44,
        .opcode = ALB_WR_SEND_WITH_IMM,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .imm_data = 0xdeadbeef,
    };
    assert_int_equal(pair_post(pair, qps[0], &wr), 0);
    pair_settle(pair);
    assert_true(pair_poll(pair, 0, &wc));
    assert_int_equal(wc.wr_id, 44);
    assert_int_equal(wc.opcode, ALB_WC_SEND);
    assert_int_equal(wc.qpn, alb_qp_number(qps[0]));
    assert_ptr_equal(wc.qp, qps[0]);
    assert_int_equal(wc.timestamp, pair->now);
    assert_true(pair_poll(pair, 1, &wc));
    assert_int_equal(wc.wr_id, 55);
    assert_int_equal(wc.opcode, ALB_WC_RECV);
    assert_int_equal(wc.byte_len, 100);
    assert_int_equal(wc.flags, ALB_WC_WITH_IMM);
    assert_int_equal(wc.imm_data, 0xdeadbeef);
    assert_int_equal(wc.qpn, alb_qp_number(qps[1]));
    assert_int_equal(wc.src_qpn, alb_qp_number(qps[0]));
}

// The move to ERR completes every request, unsignaled ones too, each queue in its order, and notifies (10.3.1,
// COMPATIBILITY 4).
static void alb_qp_flush_send__in_error_everything_is_flushed(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qps[2];
    struct alb_event event;
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(pair_receive(pair, qps[0], 200 + i, 0, 128), 0);
        post(pair, qps[0], i, 0);
    }
    pair_send(pair, 0); // some are on the wire, one is posted and not yet seen
    post(pair, qps[0], 3, 0);
    alb_cq_arm(pair->hosts[0].cq, ALB_CQ_ARM_SOLICITED);
    to_error(pair, qps[0]);
    for (uint32_t i = 0; i < 3; i++)
        pair_expect(pair, 0, 200 + i, ALB_WC_WR_FLUSH_ERR);
    for (uint32_t i = 0; i < 4; i++)
        pair_expect(pair, 0, i, ALB_WC_WR_FLUSH_ERR);
    pair_expect_none(pair, 0);
    assert_true(pair_event(pair, 0, ALB_EVENT_CQ_NOTIFY, &event));
    pair_settle(pair); // acknowledgements of what was on the wire change nothing
    pair_expect_none(pair, 0);
}

static void alb_qp_flush_send__posted_in_error_too(void **state)
{
    static const enum alb_qp_type types[] = {ALB_QPT_RC, ALB_QPT_UC};
    struct pair *pair = *state;
    for (size_t i = 0; i < ALB_COUNT(types); i++) {
        struct alb_qp *qps[2];
        pair_connect(pair, types[i], qps, NULL);
        to_error(pair, qps[0]);
        post(pair, qps[0], 1, 0);
        assert_int_equal(pair_receive(pair, qps[0], 2, 0, 128), 0);
        alb_engine_bells(qps[0]->engine, pair->now);
        pair_expect(pair, 0, 2, ALB_WC_WR_FLUSH_ERR);
        pair_expect(pair, 0, 1, ALB_WC_WR_FLUSH_ERR);
        pair_expect_none(pair, 0);
        assert_int_equal(pair_send(pair, 0), 0);
    }
}

static void alb_qp_flush_receive__not_of_a_shared_queue(void **state)
{
    struct pair *pair = *state;
    struct alb_srq *srq;
    struct alb_event event;
    struct alb_sge sge = pair_sge(pair, 0, 0, 64);
    assert_int_equal(alb_srq_create(pair->hosts[0].pd, 4, 1, 0, NULL, &srq), 0);
    assert_int_equal(alb_srq_post(srq, 1, &sge, 1), 0);
    struct alb_qp_init init = {.type = ALB_QPT_RC, .srq = srq};
    struct alb_qp *qp = pair_qp_with(pair, 0, &init);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    to_error(pair, qp);
    pair_expect_none(pair, 0);
    assert_true(pair_event(pair, 0, ALB_EVENT_QP_LAST_WQE_REACHED, &event));
    assert_ptr_equal(event.qp, qp);
    assert_int_equal(alb_qp_destroy(qp), 0);
    assert_int_equal(alb_srq_destroy(srq), 0);
}

static void alb_qp_set_state__reset_forgets_without_a_completion(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qps[2];
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    post(pair, qps[0], 1, ALB_SEND_SIGNALED);
    pair_send(pair, 0);
    post(pair, qps[0], 2, ALB_SEND_SIGNALED);
    assert_int_equal(pair_receive(pair, qps[0], 3, 0, 128), 0);
    assert_int_equal(alb_qp_modify(qps[0], &attr, ALB_QP_STATE, pair->now), 0);
    pair_settle(pair);
    pair_pass(pair, ALB_NS_PER_S);
    pair_expect_none(pair, 0);
}

// A connection that is set up once more starts from nothing.
static void alb_qp_set_state__works_again_after_reset(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qps[2];
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    post(pair, qps[0], 1, ALB_SEND_SIGNALED);
    pair_send(pair, 0);
    to_error(pair, qps[0]);
    pair_expect(pair, 0, 1, ALB_WC_WR_FLUSH_ERR);
    while (pair_count(pair, 0) > 0)
        pair_lose(pair, 0);
    for (int side = 0; side < 2; side++) {
        struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
        assert_int_equal(alb_qp_modify(qps[side], &attr, ALB_QP_STATE, pair->now), 0);
        attr = pair_attr(pair, side, qps[!side]);
        assert_int_equal(pair_move(pair, qps[side], ALB_QPS_RTS, &attr), 0);
    }
    assert_int_equal(pair_receive(pair, qps[1], 7, 0, 128), 0);
    post(pair, qps[0], 2, ALB_SEND_SIGNALED);
    pair_settle(pair);
    pair_expect(pair, 0, 2, ALB_WC_SUCCESS);
    pair_expect(pair, 1, 7, ALB_WC_SUCCESS);
}

static struct alb_qp *qp_on_small_cq(struct pair *pair, enum alb_qp_type type, struct alb_cq **cq)
{
    assert_int_equal(alb_cq_create(pair->hosts[0].engine, 2, NULL, cq), 0);
    struct alb_qp_init init = {.type = type,
                               .send_cq = *cq,
                               .recv_cq = *cq,
                               .cap = {.send_wr_max = 8, .recv_wr_max = 8, .send_sge_max = 1, .recv_sge_max = 1}};
    struct alb_qp *qp = pair_qp_with(pair, 0, &init);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    return qp;
}

// One completion too many: the queue says that it has overrun, and its queue pair is in error, whatever it was doing
// (11.6.3.5).
static void alb_cq_push__overrun_stops_the_queue_pair(void **state)
{
    static const enum alb_qp_type types[] = {ALB_QPT_RC, ALB_QPT_UC};
    struct pair *pair = *state;
    for (size_t i = 0; i < ALB_COUNT(types); i++) {
        struct alb_cq *cq;
        struct alb_event event;
        struct alb_qp *qp = qp_on_small_cq(pair, types[i], &cq);
        struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
        for (uint32_t k = 0; k < 4; k++)
            post(pair, qp, k, ALB_SEND_SIGNALED);
        if (types[i] == ALB_QPT_RC)
            assert_int_equal(alb_qp_modify(qp, &attr, ALB_QP_STATE, pair->now), 0);
        else
            pair_send(pair, 0);
        assert_int_equal(alb_qp_current_state(qp), ALB_QPS_ERR);
        assert_true(alb_cq_is_overrun(cq));
        assert_true(pair_event(pair, 0, ALB_EVENT_CQ_ERR, &event));
        assert_ptr_equal(event.cq, cq);
        assert_int_equal(alb_qp_destroy(qp), 0);
        assert_int_equal(alb_cq_destroy(cq), 0);
    }
}

// The failing request itself finds no room: then the queue pair is in ERR, and SQE is no way out of it.
static void alb_qp_fail__overrun_by_the_failure_is_an_error_for_uc(void **state)
{
    struct pair *pair = *state;
    struct alb_cq *cq;
    struct alb_qp *qp = qp_on_small_cq(pair, ALB_QPT_UC, &cq);
    post(pair, qp, 1, ALB_SEND_SIGNALED);
    post(pair, qp, 2, ALB_SEND_SIGNALED);
    struct alb_sge sge = {.addr = 1, .length = 8, .lkey = 1};
    struct alb_send_wr bad = {.wr_id = 3, .opcode = ALB_WR_SEND, .sge = &sge, .sge_count = 1};
    assert_int_equal(pair_post(pair, qp, &bad), 0);
    pair_send(pair, 0);
    assert_true(alb_cq_is_overrun(cq));
    assert_int_equal(alb_qp_current_state(qp), ALB_QPS_ERR);
    assert_int_equal(alb_qp_destroy(qp), 0);
    assert_int_equal(alb_cq_destroy(cq), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alb_qp_complete_send__in_the_order_of_posting, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_complete_send__success_only_if_signaled, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_complete_send__all_with_sq_sig_all, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_complete_receive__fields, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_flush_send__in_error_everything_is_flushed, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_flush_send__posted_in_error_too, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_flush_receive__not_of_a_shared_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_set_state__reset_forgets_without_a_completion, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_set_state__works_again_after_reset, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_cq_push__overrun_stops_the_queue_pair, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_fail__overrun_by_the_failure_is_an_error_for_uc, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
