// SPDX-License-Identifier: BSD-2-Clause
// What verbs promise of an RC queue pair beside moving bytes, whatever carries them: fences, inline data, scatter and
// gather, memory windows and invalidation, draining, shared receive queues, completion queues.
#include "cases.h"

enum {
    KB = 1024,
};

// ---- requests -------------------------------------------------------------------------------------------------------

static void fence__waits_for_reads_and_atomics(void **state)
{
    struct world *w = world_default();
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, 1, 0, 4 * KB, 64 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, 2, 0, 4 * KB, .flags = ALB_SEND_FENCE});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 3, 0, 8, 96 * KB});
    receive(&w->b, 9, 128 * KB, 4 * KB);
    alb_sim_host_poke(w->a.host);
    assert_int_equal(w->a.log_count, 1);
    run_idle(w);
    struct alb_wc wc;
    expect_wc_as(w->b.recv_cq, 9, ALB_WC_SUCCESS, &wc);
    assert_true(wc.timestamp >= 3000); // it left when the READ's answer had come
    for (uint64_t i = 1; i <= 3; i++)
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
    expect_copied(&w->b, 64 * KB, &w->b, 128 * KB, 4 * KB); // what was read is what was sent
    world_free(w);
}

static void fence__is_not_needed_by_writes(void **state)
{
    struct world *w = world_default();
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 8, 64 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 2, 0, 8, 64 * KB, .flags = ALB_SEND_FENCE});
    alb_sim_host_poke(w->a.host);
    run_for(w, ALB_SIM_US(2));
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    run_idle(w);
    world_free(w);
}

static void inline_data__is_taken_when_posted(void **state)
{
    struct world *w = world_default();
    struct alb_sge sge[3] = {
        {(uintptr_t)w->a.memory, 30, 0}, {(uintptr_t)w->a.memory + 100, 0, 0}, {(uintptr_t)w->a.memory + 200, 33, 0}};
    uint8_t sent[63];
    memcpy(sent, w->a.memory, 30);
    memcpy(sent + 30, w->a.memory + 200, 33);
    on_way_to_b(w, (struct alb_sim_rule){.action = ALB_SIM_DROP}); // sent again long after it was posted
    post(w, &w->a,
         (struct work){ALB_WR_RDMA_WRITE, 1, .to = 64 * KB, .flags = ALB_SEND_INLINE, .sge = sge, .sge_count = 3});
    memset(w->a.memory, 0, KB);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    assert_memory_equal(w->b.memory + 64 * KB, sent, 63);
    world_free(w);
}

static void scatter_gather__pieces_of_any_size(void **state)
{
    struct world *w = world_default();
    uint32_t key_a = alb_region_key(w->a.mr), key_b = alb_region_key(w->b.mr);
    uintptr_t a = (uintptr_t)w->a.memory, b = (uintptr_t)w->b.memory;
    struct alb_sge out[4] = {{a + 3, 1, key_a}, {a + 1000, 2500, key_a}, {a, 0, 0}, {a + 8001, 777, key_a}};
    struct alb_sge in[4] = {
        {b + 5, 1025, key_b}, {b + 3001, 1, key_b}, {b + 4002, 1300, key_b}, {b + 6007, 2000, key_b}};
    uint8_t message[1 + 2500 + 777], got[sizeof(message)];
    memcpy(message, w->a.memory + 3, 1);
    memcpy(message + 1, w->a.memory + 1000, 2500);
    memcpy(message + 2501, w->a.memory + 8001, 777);
    bool bell;
    assert_int_equal(alb_qp_recv_post(w->b.qp, 9, in, 4, &bell), 0);
    post(w, &w->a, (struct work){ALB_WR_SEND, 1, .sge = out, .sge_count = 4});
    run_idle(w);
    struct alb_wc wc;
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc_as(w->b.recv_cq, 9, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.byte_len, sizeof(message));
    uint32_t at = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t part = ALB_MIN(in[i].length, (uint32_t)sizeof(message) - at);
        memcpy(got + at, (void *)(uintptr_t)in[i].addr, part);
        at += part;
    }
    assert_memory_equal(message, got, sizeof(message));
    post(w, &w->a, (struct work){ALB_WR_RDMA_READ, 2, .sge = out, .sge_count = 4, .to = 100 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    assert_memory_equal(w->a.memory + 3, w->b.memory + 100 * KB, 1);
    assert_memory_equal(w->a.memory + 1000, w->b.memory + 100 * KB + 1, 2500);
    assert_memory_equal(w->a.memory + 8001, w->b.memory + 100 * KB + 2501, 777);
    world_free(w);
}

static void zero_bytes__need_no_key(void **state)
{
    struct world *w = world_default();
    receive(&w->b, 9, 0, 0);
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_RDMA_WRITE, ALB_WR_RDMA_READ, ALB_WR_SEND};
    for (uint32_t i = 0; i < ALB_COUNT(opcodes); i++)
        post(w, &w->a, (struct work){opcodes[i], i, .rkey = 1, .remote_addr = 1});
    run_idle(w);
    for (uint32_t i = 0; i < ALB_COUNT(opcodes); i++)
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
    expect_wc(w->b.recv_cq, 9, ALB_WC_SUCCESS);
    world_free(w);
}

static void unsignalled__completes_silently(void **state)
{
    struct world *w = world_default();
    for (uint32_t i = 0; i < 200; i++) { // more than the queue holds
        assert_int_equal(
            post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, i, 0, 8, 64 * KB, .is_unsignaled = i % 50 != 49}), 0);
        run_idle(w);
    }
    for (uint32_t i = 49; i < 200; i += 50)
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
    expect_none(w->a.cq);
    world_free(w);
}

static void full_send_queue__refuses(void **state)
{
    struct world *w = world_default();
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, i, 0, 8, 0}), 0);
    assert_int_equal(stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 64, 0, 8, 0}), 12);
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    assert_int_equal(stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 64, 0, 8, 0}), 12);
    expect_wc(w->a.cq, 0, ALB_WC_SUCCESS);
    assert_int_equal(stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 64, 0, 8, 0}), 0);
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    for (uint32_t i = 1; i <= 64; i++)
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
    world_free(w);
}

// ---- memory windows -------------------------------------------------------------------------------------------------

static uint32_t bind(struct world *w, struct alb_region *mw, uint64_t at, uint64_t length, uint32_t access,
                     uint32_t rkey)
{
    struct work work = {ALB_WR_BIND_MW, 77, .bind = {mw, w->b.mr, (uintptr_t)w->b.memory + at, length, access, rkey}};
    assert_int_equal(post(w, &w->b, work), 0);
    expect_wc(w->b.cq, 77, ALB_WC_SUCCESS);
    return alb_region_key(mw);
}

static void window_type_1__opens_its_range_and_moves(void **state)
{
    struct world *w = world_default();
    struct alb_region *mw;
    assert_int_equal(alb_mw_create(w->b.pd, ALB_MW_TYPE_1, &mw), 0);
    uint32_t first = bind(w, mw, 64 * KB, KB, ALB_ACCESS_REMOTE_WRITE, 0);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, KB, 64 * KB, .rkey = first});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_copied(&w->a, 0, &w->b, 64 * KB, KB);
    assert_int_equal(alb_mr_destroy(w->b.mr), 16); // EBUSY
    uint32_t second = bind(w, mw, 80 * KB, KB, ALB_ACCESS_REMOTE_WRITE, 0);
    assert_int_not_equal(first, second);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 2, 0, KB, 80 * KB, .rkey = second});
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 3, 0, KB, 64 * KB, .rkey = first});
    run_idle(w);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 3, ALB_WC_REM_ACCESS_ERR);
    assert_int_equal(alb_mw_destroy(mw), 0);
    world_free(w);
}

static void window_access(uint64_t offset, uint32_t length, enum alb_wr_opcode opcode, enum alb_wc_status status)
{
    struct world *w = world_default();
    struct alb_region *mw;
    assert_int_equal(alb_mw_create(w->b.pd, ALB_MW_TYPE_1, &mw), 0);
    uint32_t key = bind(w, mw, 64 * KB, KB, ALB_ACCESS_REMOTE_READ, 0);
    post(w, &w->a, (struct work){opcode, 1, 0, length, (uint32_t)(64 * KB + offset), .rkey = key});
    run_idle(w);
    expect_wc(w->a.cq, 1, status);
    alb_mw_destroy(mw);
    world_free(w);
}

static void window__bounds_and_rights(void **state)
{
    window_access(0, KB, ALB_WR_RDMA_READ, ALB_WC_SUCCESS);
    window_access(1, KB, ALB_WR_RDMA_READ, ALB_WC_REM_ACCESS_ERR);
    window_access(-8ull, 8, ALB_WR_RDMA_READ, ALB_WC_REM_ACCESS_ERR);
    window_access(0, 8, ALB_WR_RDMA_WRITE, ALB_WC_REM_ACCESS_ERR);
}

static void window_type_2__invalidated_by_the_peers_send(void **state)
{
    struct world *w = world_default();
    struct alb_region *mw;
    assert_int_equal(alb_mw_create(w->b.pd, ALB_MW_TYPE_2, &mw), 0);
    uint32_t key = (alb_region_key(mw) & ~0xffu) | 0x42;
    assert_int_equal(bind(w, mw, 64 * KB, KB, ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_ZERO_BASED, key), key);
    receive(&w->b, 9, 128 * KB, KB);
    struct alb_sge sge = {(uintptr_t)w->a.memory, 100, alb_region_key(w->a.mr)};
    struct alb_send_wr wr = {.wr_id = 1,
                             .opcode = ALB_WR_RDMA_WRITE,
                             .flags = ALB_SEND_SIGNALED,
                             .sge = &sge,
                             .sge_count = 1,
                             .remote_addr = 0,
                             .rkey = key};
    assert_int_equal(alb_qp_send_stage(w->a.qp, &wr), 0);
    alb_qp_send_commit(w->a.qp);
    on_way_to_a(w, (struct alb_sim_rule){.action = ALB_SIM_DROP}); // so the SEND comes twice, and invalidates once
    post(w, &w->a, (struct work){ALB_WR_SEND_WITH_INV, 2, 0, 200, .invalidate = key});
    run_idle(w);
    struct alb_wc wc;
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    expect_wc_as(w->b.recv_cq, 9, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.flags, ALB_WC_WITH_INV);
    assert_int_equal(wc.invalidated_rkey, key);
    expect_copied(&w->a, 0, &w->b, 64 * KB, 100);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 3, 0, 8, .remote_addr = 8, .rkey = key});
    run_idle(w);
    expect_wc(w->a.cq, 3, ALB_WC_REM_ACCESS_ERR);
    alb_mw_destroy(mw);
    world_free(w);
}

static void window_type_2__invalidated_here_then_bound_again(void **state)
{
    struct world *w = world_default();
    struct alb_region *mw;
    assert_int_equal(alb_mw_create(w->b.pd, ALB_MW_TYPE_2, &mw), 0);
    uint32_t base = alb_region_key(mw) & ~0xffu;
    bind(w, mw, 64 * KB, KB, ALB_ACCESS_REMOTE_WRITE, base | 1);
    post(w, &w->b, (struct work){ALB_WR_LOCAL_INV, 5, .invalidate = base | 1});
    run_idle(w);
    struct alb_wc wc;
    expect_wc_as(w->b.cq, 5, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.opcode, ALB_WC_LOCAL_INV);
    bind(w, mw, 65 * KB, KB, ALB_ACCESS_REMOTE_WRITE, base | 2);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, KB, 65 * KB, .rkey = base | 2});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    // Bound still: a second bind fails, and with it the queue pair.
    post(w, &w->b,
         (struct work){ALB_WR_BIND_MW, 6,
                       .bind = {mw, w->b.mr, (uintptr_t)w->b.memory, KB, ALB_ACCESS_REMOTE_WRITE, base | 3}});
    expect_wc(w->b.cq, 6, ALB_WC_MW_BIND_ERR);
    expect_state(&w->b, ALB_QPS_ERR);
    run_idle(w);
    alb_mw_destroy(mw);
    world_free(w);
}

static void invalidate__of_what_is_no_window_fails(void **state)
{
    struct world *w = world_default();
    receive(&w->b, 9, 128 * KB, KB);
    post(w, &w->a, (struct work){ALB_WR_SEND_WITH_INV, 1, 0, 200, .invalidate = alb_region_key(w->b.mr)});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_REM_ACCESS_ERR);
    expect_wc(w->b.recv_cq, 9, ALB_WC_LOC_ACCESS_ERR);
    world_free(w);
}

// ---- draining -------------------------------------------------------------------------------------------------------

static void drain__finishes_what_was_started_and_holds_the_rest(void **state)
{
    struct world *w = world_default();
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 4 * KB, 64 * KB});
    struct alb_qp_attr attr = {.state = ALB_QPS_SQD, .en_sqd_async_notify = true};
    assert_int_equal(alb_qp_modify(w->a.qp, &attr, ALB_QP_STATE | ALB_QP_EN_SQD_ASYNC_NOTIFY, 0), 0);
    assert_int_equal(post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 2, 0, KB, 96 * KB}), 0);
    alb_sim_host_poke(w->a.host);
    assert_int_equal(w->a.host->events[ALB_EVENT_SQ_DRAINED], 0);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_none(w->a.cq);
    assert_int_equal(w->a.host->events[ALB_EVENT_SQ_DRAINED], 1);
    attr.state = ALB_QPS_RTS;
    assert_int_equal(alb_qp_modify(w->a.qp, &attr, ALB_QP_STATE, alb_sim_host_now(w->a.host)), 0);
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    expect_copied(&w->a, 0, &w->b, 96 * KB, KB);
    world_free(w);
}

static void drain__goes_on_answering(void **state)
{
    struct world *w = world_default();
    struct alb_qp_attr attr = {.state = ALB_QPS_SQD};
    assert_int_equal(alb_qp_modify(w->b.qp, &attr, ALB_QP_STATE, 0), 0);
    receive(&w->b, 9, 128 * KB, KB);
    post(w, &w->a, (struct work){ALB_WR_SEND, 1, 0, KB});
    post(w, &w->a, (struct work){ALB_WR_RDMA_READ, 2, 0, 4 * KB, 64 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    expect_wc(w->b.recv_cq, 9, ALB_WC_SUCCESS);
    world_free(w);
}

// ---- shared receive queues ------------------------------------------------------------------------------------------

static void srq__limit_event_once_and_last_wqe_event(void **state)
{
    struct options options;
    options_default(&options);
    options.srq_wr_max = 16;
    options.srq_limit = 3;
    options.qps = 2;
    struct world *w = world_new(&options);
    for (uint32_t i = 0; i < 6; i++)
        receive(&w->b, 10 + i, 64 * KB + i * KB, KB);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(post_on(w, &w->a, w->a.qps[i % 2], (struct work){ALB_WR_SEND, i, 0, 100}), 0);
        run_idle(w);
        expect_wc(w->b.recv_cq, 10 + i, ALB_WC_SUCCESS);
        assert_int_equal(w->b.host->events[ALB_EVENT_SRQ_LIMIT_REACHED], i >= 3); // fewer than 3 are left
    }
    uint32_t limit;
    alb_srq_query(w->b.srq, &(uint32_t){0}, &(uint32_t){0}, &limit);
    assert_int_equal(limit, 0); // disarmed
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(w->b.qps[0], &attr, ALB_QP_STATE, 0), 0);
    alb_sim_host_poke(w->b.host);
    assert_int_equal(w->b.host->events[ALB_EVENT_QP_LAST_WQE_REACHED], 1);
    expect_none(w->b.recv_cq); // what is posted to a shared queue is not flushed
    world_free(w);
}

// ---- completion queues ----------------------------------------------------------------------------------------------

static void cq__overrun_fails_its_queue_pairs(void **state)
{
    struct options options;
    options_default(&options);
    options.cq_entries = 4;
    struct world *w = world_new(&options);
    for (uint32_t i = 0; i < 5; i++)
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, i, 0, 8, 64 * KB});
    run_idle(w);
    assert_true(alb_cq_is_overrun(w->a.cq));
    assert_int_equal(w->a.host->events[ALB_EVENT_CQ_ERR], 1);
    assert_int_equal(w->a.host->events[ALB_EVENT_QP_FATAL], 1);
    expect_state(&w->a, ALB_QPS_ERR);
    for (uint32_t i = 0; i < 4; i++)
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
    world_free(w);
}

static void cq__resize_keeps_what_is_queued(void **state)
{
    struct options options;
    options_default(&options);
    options.cq_entries = 4;
    struct world *w = world_new(&options);
    for (uint32_t i = 0; i < 4; i++)
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, i, 0, 8, 64 * KB});
    run_idle(w);
    assert_int_equal(alb_cq_resize(w->a.cq, 2), 22);
    assert_int_equal(alb_cq_resize(w->a.cq, 16), 0);
    for (uint32_t i = 4; i < 8; i++)
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, i, 0, 8, 64 * KB});
    run_idle(w);
    for (uint32_t i = 0; i < 8; i++)
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
    assert_int_equal(alb_cq_resize(w->a.cq, 1), 0);
    world_free(w);
}

static void cq__notifies_once_of_what_it_was_armed_for(void **state)
{
    struct world *w = world_default();
    const uint32_t *notified = &w->b.host->events[ALB_EVENT_CQ_NOTIFY];
    for (uint32_t i = 0; i < 8; i++)
        receive(&w->b, i, 64 * KB, KB);
    alb_cq_arm(w->b.recv_cq, ALB_CQ_ARM_SOLICITED);
    post(w, &w->a, (struct work){ALB_WR_SEND, 1, 0, 2000 - KB});
    run_idle(w);
    assert_int_equal(*notified, 0);
    post(w, &w->a, (struct work){ALB_WR_SEND, 2, 0, 8, .flags = ALB_SEND_SOLICITED});
    run_idle(w);
    assert_int_equal(*notified, 1);
    post(w, &w->a, (struct work){ALB_WR_SEND, 3, 0, 8, .flags = ALB_SEND_SOLICITED});
    run_idle(w);
    assert_int_equal(*notified, 1); // not armed again
    alb_cq_arm(w->b.recv_cq, ALB_CQ_ARM_NEXT);
    post(w, &w->a, (struct work){ALB_WR_SEND, 4, 0, 8});
    run_idle(w);
    assert_int_equal(*notified, 2);
    alb_cq_arm(w->b.recv_cq, ALB_CQ_ARM_SOLICITED);
    post(w, &w->a, (struct work){ALB_WR_SEND, 5, 0, 4 * KB}); // too long: an error counts as solicited
    run_idle(w);
    assert_int_equal(*notified, 3);
    world_free(w);
}

static void established__told_once_in_rtr(void **state)
{
    for (uint32_t in_rtr = 0; in_rtr < 2; in_rtr++) {
        struct options options;
        options_default(&options);
        options.is_b_in_rtr = in_rtr;
        struct world *w = world_new(&options);
        for (uint32_t i = 0; i < 3; i++) {
            post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, i, 0, 8, 64 * KB});
            run_idle(w);
            expect_wc(w->a.cq, i, ALB_WC_SUCCESS); // RTR answers
        }
        assert_int_equal(w->b.host->events[ALB_EVENT_COMM_EST], in_rtr);
        world_free(w);
    }
}

int run_verbs_cases(const char *transport)
{
    world_transport = transport;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fence__waits_for_reads_and_atomics),
        cmocka_unit_test(fence__is_not_needed_by_writes),
        cmocka_unit_test(inline_data__is_taken_when_posted),
        cmocka_unit_test(scatter_gather__pieces_of_any_size),
        cmocka_unit_test(zero_bytes__need_no_key),
        cmocka_unit_test(unsignalled__completes_silently),
        cmocka_unit_test(full_send_queue__refuses),
        cmocka_unit_test(window_type_1__opens_its_range_and_moves),
        cmocka_unit_test(window__bounds_and_rights),
        cmocka_unit_test(window_type_2__invalidated_by_the_peers_send),
        cmocka_unit_test(window_type_2__invalidated_here_then_bound_again),
        cmocka_unit_test(invalidate__of_what_is_no_window_fails),
        cmocka_unit_test(drain__finishes_what_was_started_and_holds_the_rest),
        cmocka_unit_test(drain__goes_on_answering),
        cmocka_unit_test(srq__limit_event_once_and_last_wqe_event),
        cmocka_unit_test(cq__overrun_fails_its_queue_pairs),
        cmocka_unit_test(cq__resize_keeps_what_is_queued),
        cmocka_unit_test(cq__notifies_once_of_what_it_was_armed_for),
        cmocka_unit_test(established__told_once_in_rtr),
    };
    return cmocka_run_group_tests_name("verbs", tests, NULL, NULL);
}
