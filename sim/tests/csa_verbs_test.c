// SPDX-License-Identifier: BSD-2-Clause
// What verbs promise, and how requests fail, over CSA; and a receiver that is not ready.
#include "cases.h"

enum {
    KB = 1024,
};

static struct world *new_world(uint8_t rnr_retry)
{
    struct options options;
    options_default(&options);
    options.rnr_retry = rnr_retry;
    return world_new(&options);
}

static void rnr__waited_for(void **state)
{
    struct world *w = new_world(7);
    for (uint32_t i = 0; i < 4; i++)
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, i, i * 8 * KB, 6 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 4, 0, 8 * KB, 128 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, 5, 64 * KB, 8 * KB, 128 * KB});
    alb_sim_host_poke(w->a.host);
    run_for(w, ALB_SIM_MS(50));
    expect_none(w->a.cq);
    for (uint32_t i = 0; i < 4; i++) {
        receive(&w->b, 10 + i, i * 8 * KB, 6 * KB);
        run_for(w, ALB_SIM_MS(10));
        expect_wc(w->b.recv_cq, 10 + i, ALB_WC_SUCCESS);
        expect_copied(&w->a, i * 8 * KB, &w->b, i * 8 * KB, 6 * KB);
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
    }
    run_idle(w);
    expect_wc(w->a.cq, 4, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 5, ALB_WC_SUCCESS);
    expect_copied(&w->a, 0, &w->b, 128 * KB, 8 * KB);
    expect_copied(&w->a, 0, &w->a, 64 * KB, 8 * KB); // the READ came behind the WRITE
    world_free(w);
}

static void rnr__retries_are_counted(void **state)
{
    for (uint8_t retries = 0; retries < 3; retries++) {
        struct world *w = new_world(retries);
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, 1, 0, KB});
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, 2, 0, KB});
        alb_sim_host_poke(w->a.host);
        run_idle(w);
        struct alb_wc wc;
        expect_wc_as(w->a.cq, 1, ALB_WC_RNR_RETRY_EXC_ERR, &wc);
        expect_wc(w->a.cq, 2, ALB_WC_WR_FLUSH_ERR);
        expect_state(&w->a, ALB_QPS_ERR);
        expect_state(&w->b, ALB_QPS_RTS);
        assert_true(wc.timestamp >= retries * alb_rnr_timer_ns(12));
        assert_int_equal(w->a.host->failure.status, ALB_WC_RNR_RETRY_EXC_ERR);
        assert_int_equal(stat(&w->a, ALB_STAT_retry_rnr_exceeded_err), 1);
        world_free(w);
    }
}

static void nobody_answers__retries_exceeded(void **state)
{
    for (uint8_t retries = 0; retries <= 7; retries += 7) {
        struct options options;
        options_default(&options);
        options.retry_cnt = retries;
        struct world *w = world_new(&options);
        alb_sim_pair_set_partition(&w->pair, true);
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 8, 64 * KB, .is_unsignaled = true});
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, 2, 0, 8, 64 * KB});
        receive(&w->a, 4, 0, 64);
        alb_sim_host_poke(w->a.host);
        run_idle(w);
        struct alb_wc wc;
        expect_wc_as(w->a.cq, 1, ALB_WC_RETRY_EXC_ERR, &wc);
        assert_int_equal(wc.timestamp, 4 * (retries + 1ull) * (4096ull << 14));
        expect_wc(w->a.cq, 2, ALB_WC_WR_FLUSH_ERR);
        expect_wc(w->a.recv_cq, 4, ALB_WC_WR_FLUSH_ERR);
        expect_state(&w->a, ALB_QPS_ERR);
        expect_state(&w->b, ALB_QPS_RTS);
        assert_int_equal(w->a.host->failure.status, ALB_WC_RETRY_EXC_ERR);
        assert_int_equal(w->a.host->failure.silence_ns, wc.timestamp);
        world_free(w);
    }
}

static void partition__survived_if_it_is_short(void **state)
{
    struct world *w = new_world(7);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 8 * KB, 64 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    for (uint32_t i = 0; i < 5; i++) {
        alb_sim_pair_set_partition(&w->pair, true);
        fill(&w->a, 100 + i);
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 2, 0, 64 * KB, 64 * KB});
        run_for(w, ALB_SIM_MS(300));
        expect_none(w->a.cq);
        alb_sim_pair_set_partition(&w->pair, false);
        run_idle(w);
        expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
        expect_copied(&w->a, 0, &w->b, 64 * KB, 64 * KB);
    }
    world_free(w);
}

// A request sent again whose memory is gone by then fails; what stands before it completes, and nothing behind it
// overtakes, though it had been sent before too.
static void memory_gone_before_it_is_sent_again__nothing_overtakes(void **state)
{
    struct world *w = new_world(7);
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(w->a.pd, w->a.memory, 64 * KB, (uintptr_t)w->a.memory, 0, &mr), 0);
    struct alb_sge gone = {(uintptr_t)w->a.memory, 3 * KB, alb_region_key(mr)};
    alb_sim_pair_set_partition(&w->pair, true);
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 2 * KB, 64 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 2, .sge = &gone, .sge_count = 1, .to = 80 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 3, 0, 3 * KB, 96 * KB});
    alb_sim_host_poke(w->a.host);
    uint8_t before[3 * KB];
    memcpy(before, w->b.memory + 96 * KB, 3 * KB);
    run_for(w, ALB_SIM_US(10));
    assert_int_equal(alb_mr_destroy(mr), 0);
    alb_sim_pair_set_partition(&w->pair, false);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_LOC_PROT_ERR);
    expect_wc(w->a.cq, 3, ALB_WC_WR_FLUSH_ERR);
    expect_none(w->a.cq);
    expect_copied(&w->a, 0, &w->b, 64 * KB, 2 * KB);
    assert_memory_equal(before, w->b.memory + 96 * KB, 3 * KB);
    world_free(w);
}

int main(void)
{
    world_transport = "csa";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rnr__waited_for),
        cmocka_unit_test(rnr__retries_are_counted),
        cmocka_unit_test(nobody_answers__retries_exceeded),
        cmocka_unit_test(partition__survived_if_it_is_short),
        cmocka_unit_test(memory_gone_before_it_is_sent_again__nothing_overtakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + run_verbs_cases("csa") + run_error_cases("csa");
}
