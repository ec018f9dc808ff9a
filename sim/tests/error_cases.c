// SPDX-License-Identifier: BSD-2-Clause
// How requests fail, whatever carries them: what stands before completes, the rest is flushed in order, and nothing
// behind the one that failed is executed.
#include "cases.h"

enum {
    KB = 1024,
};

// ---- remote errors --------------------------------------------------------------------------------------------------

// A WRITE before and two requests behind, receives at both ends: what stands before completes, the rest is flushed in
// order.
static void refused(struct world *w, struct work bad, enum alb_wc_status status, enum alb_event_type event)
{
    bad.id = 2;
    receive(&w->a, 11, 200 * KB, KB);
    receive(&w->a, 12, 201 * KB, KB);
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 2 * KB, 64 * KB, .is_unsignaled = true});
    assert_int_equal(stage_on(w, &w->a, w->a.qp, bad), 0);
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 3, 4 * KB, KB, 68 * KB, .is_unsignaled = true});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, 4, 8 * KB, KB, 72 * KB});
    uint8_t behind[KB];
    memcpy(behind, w->b.memory + 68 * KB, KB);
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    expect_wc(w->a.cq, 2, status);
    expect_wc(w->a.cq, 3, ALB_WC_WR_FLUSH_ERR);
    expect_wc(w->a.cq, 4, ALB_WC_WR_FLUSH_ERR);
    expect_none(w->a.cq);
    expect_wc(w->a.recv_cq, 11, ALB_WC_WR_FLUSH_ERR);
    expect_wc(w->a.recv_cq, 12, ALB_WC_WR_FLUSH_ERR);
    expect_none(w->a.recv_cq);
    expect_copied(&w->a, 0, &w->b, 64 * KB, 2 * KB);
    assert_memory_equal(behind, w->b.memory + 68 * KB, KB); // nothing behind it is executed
    expect_state(&w->a, ALB_QPS_ERR);
    expect_state(&w->b, ALB_QPS_ERR);
    assert_int_equal(w->b.host->events[event], 1);
    assert_int_equal(w->a.host->failure.status, status);
    assert_true(w->b.host->failure.at_responder);
}

static void refused_and_free(struct world *w, struct work bad, enum alb_wc_status status, enum alb_event_type event)
{
    refused(w, bad, status, event);
    world_free(w);
}

static const enum alb_wr_opcode remote_opcodes[] = {
    ALB_WR_RDMA_WRITE,         ALB_WR_RDMA_WRITE_WITH_IMM,  ALB_WR_RDMA_READ,
    ALB_WR_ATOMIC_CMP_AND_SWP, ALB_WR_ATOMIC_FETCH_AND_ADD, ALB_WR_ATOMIC_WRITE,
};

static void bad_key__remote_access_error(void **state)
{
    for (uint32_t i = 0; i < ALB_COUNT(remote_opcodes); i++) {
        struct world *w = world_default();
        if (remote_opcodes[i] == ALB_WR_RDMA_WRITE_WITH_IMM)
            receive(&w->b, 21, 100 * KB, KB);
        uint32_t key = alb_region_key(w->b.mr) ^ 0x5500;
        refused(w, (struct work){remote_opcodes[i], .to = 80 * KB, .length = 8, .rkey = key}, ALB_WC_REM_ACCESS_ERR,
                ALB_EVENT_QP_ACCESS_ERR);
        assert_int_equal(stat(&w->a, ALB_STAT_req_remote_access_errors), 1);
        assert_int_equal(stat(&w->b, ALB_STAT_resp_remote_access_errors), 1);
        world_free(w);
    }
}

static void beyond_the_region__remote_access_error(void **state)
{
    for (uint32_t i = 0; i < ALB_COUNT(remote_opcodes); i++) {
        if (remote_opcodes[i] == ALB_WR_RDMA_WRITE_WITH_IMM)
            continue; // takes a receive first: below
        struct world *w = world_default();
        refused_and_free(w, (struct work){remote_opcodes[i], .to = MEMORY, .length = 8}, ALB_WC_REM_ACCESS_ERR,
                         ALB_EVENT_QP_ACCESS_ERR);
    }
    struct world *w = world_default();
    uint8_t last[16];
    memcpy(last, w->b.memory + MEMORY - 16, 16);
    refused(w, (struct work){ALB_WR_RDMA_WRITE, .to = MEMORY - 3 * KB, .length = 3 * KB + 1}, ALB_WC_REM_ACCESS_ERR,
            ALB_EVENT_QP_ACCESS_ERR);
    assert_memory_equal(last, w->b.memory + MEMORY - 16, 16); // checked as a whole, before the first byte
    world_free(w);
}

static void no_right_in_the_region__remote_access_error(void **state)
{
    for (uint32_t i = 0; i < ALB_COUNT(remote_opcodes); i++) {
        struct world *w = world_default();
        if (remote_opcodes[i] == ALB_WR_RDMA_WRITE_WITH_IMM)
            receive(&w->b, 21, 100 * KB, KB);
        struct alb_region *mr;
        assert_int_equal(alb_mr_create(w->b.pd, w->b.memory, KB, 0, ALB_ACCESS_LOCAL_WRITE, &mr), 0);
        refused(w, (struct work){remote_opcodes[i], .remote_addr = 8, .length = 8, .rkey = alb_region_key(mr)},
                ALB_WC_REM_ACCESS_ERR, ALB_EVENT_QP_ACCESS_ERR);
        assert_int_equal(alb_mr_destroy(mr), 0);
        world_free(w);
    }
}

static void no_right_in_the_queue_pair__invalid_request(void **state)
{
    for (uint32_t i = 0; i < ALB_COUNT(remote_opcodes); i++) {
        struct options options;
        options_default(&options);
        // The WRITE in front needs its right.
        options.access = remote_opcodes[i] == ALB_WR_RDMA_READ ? ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_ATOMIC
                                                               : ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ;
        bool is_write = remote_opcodes[i] == ALB_WR_RDMA_WRITE || remote_opcodes[i] == ALB_WR_RDMA_WRITE_WITH_IMM ||
                        remote_opcodes[i] == ALB_WR_ATOMIC_WRITE;
        if (is_write)
            continue;
        struct world *w = world_new(&options);
        refused_and_free(w, (struct work){remote_opcodes[i], .to = 80 * KB, .length = 8}, ALB_WC_REM_INV_REQ_ERR,
                         ALB_EVENT_QP_REQ_ERR);
    }
}

static void unaligned_atomic__invalid_request(void **state)
{
    struct world *w = world_default();
    refused_and_free(w, (struct work){ALB_WR_ATOMIC_FETCH_AND_ADD, .to = 80 * KB + 4, .length = 8},
                     ALB_WC_REM_INV_REQ_ERR, ALB_EVENT_QP_REQ_ERR);
}

static void region_of_another_domain__remote_access_error(void **state)
{
    struct world *w = world_default();
    struct alb_pd *pd;
    struct alb_region *mr;
    assert_int_equal(alb_pd_create(w->b.host->engine, &pd), 0);
    assert_int_equal(alb_mr_create(pd, w->b.memory, KB, (uintptr_t)w->b.memory, ACCESS_ALL, &mr), 0);
    refused(w, (struct work){ALB_WR_RDMA_WRITE, .to = 0, .length = 8, .rkey = alb_region_key(mr)},
            ALB_WC_REM_ACCESS_ERR, ALB_EVENT_QP_ACCESS_ERR);
    alb_mr_destroy(mr);
    alb_pd_destroy(pd);
    world_free(w);
}

static void send_too_long__invalid_request_and_local_length_error(void **state)
{
    for (uint32_t extra = 1; extra <= 2 * KB; extra += 1023) {
        struct world *w = world_default();
        receive(&w->b, 21, 100 * KB, 2 * KB);
        receive(&w->b, 22, 110 * KB, 2 * KB);
        refused(w, (struct work){ALB_WR_SEND, .from = 0, .length = 2 * KB + extra}, ALB_WC_REM_INV_REQ_ERR,
                ALB_EVENT_QP_REQ_ERR);
        expect_wc(w->b.recv_cq, 21, ALB_WC_LOC_LEN_ERR);
        expect_wc(w->b.recv_cq, 22, ALB_WC_WR_FLUSH_ERR);
        expect_none(w->b.recv_cq);
        world_free(w);
    }
}

static void receive_of_bad_key__operational_and_local_protection_error(void **state)
{
    struct world *w = world_default();
    struct alb_sge sge = {(uintptr_t)w->b.memory, KB, alb_region_key(w->b.mr) ^ 0x100};
    bool bell;
    assert_int_equal(alb_qp_recv_post(w->b.qp, 21, &sge, 1, &bell), 0);
    refused(w, (struct work){ALB_WR_SEND, .length = 64}, ALB_WC_REM_OP_ERR, ALB_EVENT_QP_FATAL);
    expect_wc(w->b.recv_cq, 21, ALB_WC_LOC_PROT_ERR);
    world_free(w);
}

static void reads_not_agreed_on__local_operation_error(void **state)
{
    struct options options;
    options_default(&options);
    options.rd_atomic = 0;
    struct world *w = world_new(&options);
    post(w, &w->a, (struct work){ALB_WR_RDMA_READ, 1, 0, 8, 0});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_LOC_QP_OP_ERR);
    world_free(w);
}

// ---- local errors ---------------------------------------------------------------------------------------------------

static void bad_local_key__what_stands_before_completes_first(void **state)
{
    struct world *w = world_default();
    struct alb_sge bad = {(uintptr_t)w->a.memory, 64, 77};
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 8 * KB, 64 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, 2, .sge = &bad, .sge_count = 1, .is_unsignaled = true});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, 3, 0, 8, .is_unsignaled = true});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_LOC_PROT_ERR);
    expect_wc(w->a.cq, 3, ALB_WC_WR_FLUSH_ERR);
    expect_none(w->a.cq);
    expect_copied(&w->a, 0, &w->b, 64 * KB, 8 * KB);
    world_free(w);
}

static void read_into_memory_that_may_not_be_written__local_protection_error(void **state)
{
    struct world *w = world_default();
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(w->a.pd, w->a.memory, KB, (uintptr_t)w->a.memory, ALB_ACCESS_REMOTE_READ, &mr), 0);
    struct alb_sge sge = {(uintptr_t)w->a.memory, 64, alb_region_key(mr)};
    post(w, &w->a, (struct work){ALB_WR_RDMA_READ, 1, .sge = &sge, .sge_count = 1, .to = 0});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_LOC_PROT_ERR);
    assert_int_equal(w->a.log_count, 0);
    alb_mr_destroy(mr);
    world_free(w);
}

static void posts_in_error__are_flushed(void **state)
{
    struct world *w = world_default();
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    receive(&w->a, 1, 0, 64);
    assert_int_equal(alb_qp_modify(w->a.qp, &attr, ALB_QP_STATE, 0), 0);
    expect_wc(w->a.recv_cq, 1, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(post(w, &w->a, (struct work){ALB_WR_SEND, 2, 0, 8, .is_unsignaled = true}), 0);
    receive(&w->a, 3, 0, 64);
    run_idle(w);
    expect_wc(w->a.cq, 2, ALB_WC_WR_FLUSH_ERR);
    expect_wc(w->a.recv_cq, 3, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(w->a.host->events[ALB_EVENT_QP_FAILED], 0); // nothing failed by itself
    world_free(w);
}

static void error_then_reset__connects_again(void **state)
{
    struct world *w = world_default();
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    for (uint32_t i = 0; i < 3; i++) {
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 8, 0, .rkey = 1});
        run_idle(w);
        expect_wc(w->a.cq, 1, ALB_WC_REM_ACCESS_ERR);
        assert_int_equal(alb_qp_modify(w->a.qp, &attr, ALB_QP_STATE, 0), 0);
        assert_int_equal(alb_qp_modify(w->b.qp, &attr, ALB_QP_STATE, 0), 0);
        connect_qps(w, w->a.qp, w->b.qp);
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 2, 0, 5 * KB, 64 * KB});
        run_idle(w);
        expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    }
    world_free(w);
}

int run_error_cases(const char *transport)
{
    world_transport = transport;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_key__remote_access_error),
        cmocka_unit_test(beyond_the_region__remote_access_error),
        cmocka_unit_test(no_right_in_the_region__remote_access_error),
        cmocka_unit_test(no_right_in_the_queue_pair__invalid_request),
        cmocka_unit_test(unaligned_atomic__invalid_request),
        cmocka_unit_test(region_of_another_domain__remote_access_error),
        cmocka_unit_test(send_too_long__invalid_request_and_local_length_error),
        cmocka_unit_test(receive_of_bad_key__operational_and_local_protection_error),
        cmocka_unit_test(reads_not_agreed_on__local_operation_error),
        cmocka_unit_test(bad_local_key__what_stands_before_completes_first),
        cmocka_unit_test(read_into_memory_that_may_not_be_written__local_protection_error),
        cmocka_unit_test(posts_in_error__are_flushed),
        cmocka_unit_test(error_then_reset__connects_again),
    };
    return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
