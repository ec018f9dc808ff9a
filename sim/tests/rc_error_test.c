// SPDX-License-Identifier: BSD-2-Clause
// RC when a request cannot be executed: which end gets which status, what is flushed in which order, and how long a
// receiver that is not ready is waited for (InfiniBand specification, volume 1, 9.7.5.2, 9.9 and 11.6.2).
#include "cases.h"

enum {
    KB = 1024,
};

// ---- receiver not ready ---------------------------------------------------------------------------------------------

static void rnr__retried_after_exactly_the_timer(void **state)
{
    for (uint8_t code = 0; code < 32; code++) {
        struct options options;
        options_default(&options);
        options.min_rnr_timer = code;
        struct world *w = world_new(&options);
        post(w, &w->a, (struct work){ALB_WR_SEND, 1, 0, 8});
        run_for(w, ALB_SIM_US(2)); // the NAK is there
        assert_int_equal(nth_sent(&w->b, ALB_RC_ACK, 1)->roce.syndrome, ALB_AETH_SYNDROME_RNR(code));
        receive(&w->b, 2, 64 * KB, 64);
        run_idle(w);
        assert_int_equal(w->a.log_count, 2);
        assert_int_equal(w->a.log[1].at, ALB_SIM_US(2) + ALB_SIM_NS(alb_rnr_timer_ns(code)));
        expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
        expect_wc(w->b.recv_cq, 2, ALB_WC_SUCCESS);
        expect_copied(&w->a, 0, &w->b, 64 * KB, 8);
        world_free(w);
    }
}

static void rnr__fails_after_exactly_rnr_retry(void **state)
{
    for (uint8_t retries = 0; retries < 7; retries++) {
        struct options options;
        options_default(&options);
        options.rnr_retry = retries;
        struct world *w = world_new(&options);
        post(w, &w->a, (struct work){ALB_WR_SEND, 1, 0, 3 * KB});
        run_idle(w);
        expect_wc(w->a.cq, 1, ALB_WC_RNR_RETRY_EXC_ERR);
        assert_int_equal(sent_of(&w->a, ALB_RC_SEND_FIRST), retries + 1);
        assert_int_equal(stat(&w->a, ALB_STAT_rcvd_rnr_err), retries + 1);
        assert_int_equal(stat(&w->a, ALB_STAT_retry_rnr_exceeded_err), 1);
        expect_state(&w->a, ALB_QPS_ERR);
        expect_state(&w->b, ALB_QPS_RTS);
        world_free(w);
    }
}

static void rnr__seven_is_for_ever(void **state)
{
    struct world *w = world_default();
    post(w, &w->a, (struct work){ALB_WR_SEND, 1, 0, 8});
    run_for(w, ALB_SIM_MS(100));
    assert_true(sent_of(&w->a, ALB_RC_SEND_ONLY) > 100);
    expect_none(w->a.cq);
    receive(&w->b, 2, 64 * KB, 64);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->b.recv_cq, 2, ALB_WC_SUCCESS);
    world_free(w);
}

static void rnr__what_was_sent_behind_is_sent_again(void **state)
{
    struct world *w = world_default();
    receive(&w->b, 10, 64 * KB, KB);
    for (uint32_t i = 0; i < 4; i++)
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, i, i * KB, KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE_WITH_IMM, 4, 8 * KB, 3 * KB, 96 * KB});
    alb_sim_host_poke(w->a.host);
    run_for(w, ALB_SIM_US(100));
    expect_wc(w->a.cq, 0, ALB_WC_SUCCESS);
    expect_none(w->a.cq);
    for (uint32_t i = 1; i < 4; i++)
        receive(&w->b, 10 + i, 64 * KB + i * KB, KB);
    run_for(w, ALB_SIM_MS(1)); // now the WRITE finds no receive for its immediate
    for (uint32_t i = 1; i < 4; i++)
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
    expect_none(w->a.cq);
    receive(&w->b, 14, 0, 0);
    run_idle(w);
    expect_wc(w->a.cq, 4, ALB_WC_SUCCESS);
    for (uint32_t i = 0; i < 4; i++)
        expect_wc(w->b.recv_cq, 10 + i, ALB_WC_SUCCESS);
    struct alb_wc wc;
    expect_wc_as(w->b.recv_cq, 14, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.opcode, ALB_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.byte_len, 3 * KB);
    expect_copied(&w->a, 0, &w->b, 64 * KB, 4 * KB);
    expect_copied(&w->a, 8 * KB, &w->b, 96 * KB, 3 * KB);
    world_free(w);
}

static void rnr__nak_lost_then_timeout(void **state)
{
    struct world *w = world_default();
    on_way_to_a(w, (struct alb_sim_rule){.by = ALB_SIM_BY_NAK, .action = ALB_SIM_DROP});
    post(w, &w->a, (struct work){ALB_WR_SEND, 1, 0, 8});
    run_for(w, ALB_SIM_US(10));
    receive(&w->b, 2, 64 * KB, 64);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    assert_int_equal(stat(&w->a, ALB_STAT_local_ack_timeout_err), 1);
    world_free(w);
}

static void nak_of_an_error_lost__the_peer_in_error_is_silent(void **state)
{
    struct world *w = world_default();
    on_way_to_a(w, (struct alb_sim_rule){.by = ALB_SIM_BY_NAK, .action = ALB_SIM_DROP});
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 8, 0, .rkey = 1});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_RETRY_EXC_ERR);
    assert_int_equal(w->b.log_count, 1);
    assert_int_equal(w->b.host->stats.dropped[ALB_DROP_WRONG_QP_STATE], 7);
    world_free(w);
}

// A request sent again whose memory is gone by then fails; nothing behind it overtakes, though it had been sent before
// too.
static void memory_gone_before_it_is_sent_again__nothing_overtakes(void **state)
{
    struct world *w = world_default();
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(w->a.pd, w->a.memory, 64 * KB, (uintptr_t)w->a.memory, 0, &mr), 0);
    struct alb_sge gone = {(uintptr_t)w->a.memory, 3 * KB, alb_region_key(mr)};
    on_way_to_b(w, (struct alb_sim_rule){.times = 8, .action = ALB_SIM_DROP});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 2 * KB, 64 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 2, .sge = &gone, .sge_count = 1, .to = 80 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 3, 0, 3 * KB, 96 * KB});
    alb_sim_host_poke(w->a.host);
    uint8_t before[3 * KB];
    memcpy(before, w->b.memory + 96 * KB, 3 * KB);
    run_for(w, ALB_SIM_US(10));
    assert_int_equal(alb_mr_destroy(mr), 0);
    on_way_to_a(w, (struct alb_sim_rule){.action = ALB_SIM_DELAY, .amount = ALB_SIM_US(50)});
    run_for(w, ALB_SIM_MS(67) + ALB_SIM_US(110)); // the first is sent again, its acknowledgement on the way
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 4, 0, KB, 100 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_LOC_PROT_ERR);
    expect_wc(w->a.cq, 3, ALB_WC_WR_FLUSH_ERR);
    expect_wc(w->a.cq, 4, ALB_WC_WR_FLUSH_ERR);
    expect_copied(&w->a, 0, &w->b, 64 * KB, 2 * KB);
    assert_memory_equal(before, w->b.memory + 96 * KB, 3 * KB);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rnr__retried_after_exactly_the_timer),
        cmocka_unit_test(rnr__fails_after_exactly_rnr_retry),
        cmocka_unit_test(rnr__seven_is_for_ever),
        cmocka_unit_test(rnr__what_was_sent_behind_is_sent_again),
        cmocka_unit_test(rnr__nak_lost_then_timeout),
        cmocka_unit_test(nak_of_an_error_lost__the_peer_in_error_is_silent),
        cmocka_unit_test(memory_gone_before_it_is_sent_again__nothing_overtakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + run_error_cases("rc");
}
