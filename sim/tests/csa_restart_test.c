// SPDX-License-Identifier: BSD-2-Clause
// CSA when an engine's program ends and begins anew: the new one is not taken for the old one, whatever number of a
// queue pair, PSN or packet of the former life comes along.
#include "world.h"

enum {
    KB = 1024,
    NUMBER = 77, // of every queue pair: the new one has that of the old one
};

static struct world *new_world(void)
{
    struct options options;
    world_transport = "csa";
    options_default(&options);
    options.qpn_index = NUMBER;
    options.timeout = 10; // 4 ms, eight times
    return world_new(&options);
}

static void reset(struct world *w, struct end *end)
{
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    assert_int_equal(alb_qp_modify(end->qp, &attr, ALB_QP_STATE, alb_sim_host_now(end->host)), 0);
}

static void work_once(struct world *w, struct end *from)
{
    struct end *to = peer_of(w, from);
    receive(to, 9, 128 * KB, 8 * KB);
    assert_int_equal(post(w, from, (struct work){ALB_WR_SEND, 1, 0, 8 * KB}), 0);
    run_idle(w);
    expect_wc(from->cq, 1, ALB_WC_SUCCESS);
    expect_wc(to->recv_cq, 9, ALB_WC_SUCCESS);
    expect_copied(from, 0, to, 128 * KB, 8 * KB);
}

static void idle_peer_restarts__the_next_request_fails(void **state)
{
    struct world *w = new_world();
    work_once(w, &w->a);
    world_restart(w, &w->b);
    post(w, &w->a, (struct work){ALB_WR_SEND, 3, 0, 100});
    post(w, &w->a, (struct work){ALB_WR_SEND, 4, 0, 100});
    run_idle(w);
    expect_wc(w->a.cq, 3, ALB_WC_RETRY_EXC_ERR);
    expect_wc(w->a.cq, 4, ALB_WC_WR_FLUSH_ERR);
    expect_none(w->b.recv_cq);
    expect_state(&w->a, ALB_QPS_ERR);
    world_free(w);
}

static void peer_restarts_in_the_middle__requests_fail(void **state)
{
    for (uint32_t ns = 0; ns < 12000; ns += 500) {
        struct world *w = new_world();
        work_once(w, &w->a);
        for (uint32_t i = 0; i < 4; i++)
            receive(&w->b, 20 + i, 64 * KB + i * 8 * KB, 8 * KB);
        for (uint32_t i = 0; i < 4; i++)
            stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, i, 0, 8 * KB});
        alb_sim_host_poke(w->a.host);
        run_for(w, ALB_SIM_NS(ns));
        world_restart(w, &w->b);
        uint8_t before[32 * KB];
        memcpy(before, w->b.memory + 64 * KB, sizeof(before));
        run_idle(w);
        bool has_failed = false;
        for (uint32_t i = 0; i < 4; i++) { // in order: done, then failed, then flushed
            const struct alb_wc *wc = alb_cq_peek(w->a.cq);
            assert_non_null(wc);
            assert_int_equal(wc->wr_id, i);
            if (has_failed)
                assert_int_equal(wc->status, ALB_WC_WR_FLUSH_ERR);
            else if (wc->status != ALB_WC_SUCCESS)
                assert_int_equal(wc->status, ALB_WC_RETRY_EXC_ERR);
            has_failed |= wc->status != ALB_WC_SUCCESS;
            alb_cq_pop(w->a.cq);
        }
        expect_none(w->b.recv_cq);
        assert_memory_equal(before, w->b.memory + 64 * KB, sizeof(before));
        world_free(w);
    }
}

// Only the program of B could move it on, and what it was connected to is gone.
static void peer_restarts__who_only_receives_fails_too(void **state)
{
    struct options options;
    world_transport = "csa";
    options_default(&options);
    options.qps = 2;
    options.is_b_in_rtr = true;
    struct world *w = world_new(&options);
    work_once(w, &w->a);
    expect_state(&w->b, ALB_QPS_RTR);
    receive(&w->b, 10, 64 * KB, 8 * KB);
    world_restart(w, &w->a);
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    assert_int_equal(alb_qp_modify(w->b.qps[1], &attr, ALB_QP_STATE, alb_sim_host_now(w->b.host)), 0);
    connect_qps(w, w->a.qps[1], w->b.qps[1]);
    receive_on(&w->b, w->b.qps[1], 11, 128 * KB, 8 * KB);
    assert_int_equal(post_on(w, &w->a, w->a.qps[1], (struct work){ALB_WR_SEND, 1, 0, 8 * KB}), 0);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->b.recv_cq, 10, ALB_WC_WR_FLUSH_ERR);
    expect_wc(w->b.recv_cq, 11, ALB_WC_SUCCESS);
    expect_state(&w->b, ALB_QPS_ERR);
    world_free(w);
}

static void connected_again__works(void **state)
{
    struct world *w = new_world();
    for (uint32_t i = 0; i < 4; i++) {
        struct end *end = i % 2 ? &w->a : &w->b;
        work_once(w, &w->a);
        work_once(w, &w->b);
        world_restart(w, end);
        reset(w, peer_of(w, end));
        connect_qps(w, w->a.qp, w->b.qp);
    }
    work_once(w, &w->b);
    world_free(w);
}

static void both_restart__connected_again(void **state)
{
    struct world *w = new_world();
    work_once(w, &w->a);
    world_restart(w, &w->a);
    world_restart(w, &w->b);
    connect_qps(w, w->a.qp, w->b.qp);
    work_once(w, &w->a);
    work_once(w, &w->b);
    world_free(w);
}

// Packets of the old life come when the new one stands where the old one stood: same numbers, same PSNs.
static void old_packets_come_late__have_no_effect(void **state)
{
    for (uint32_t side = 0; side < 2; side++) {
        struct world *w = new_world();
        work_once(w, &w->a);
        on_way_to_b(w, (struct alb_sim_rule){ALWAYS, .action = ALB_SIM_DELAY, .amount = ALB_SIM_S(3)});
        for (uint32_t i = 0; i < 4; i++)
            stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, i, 0, 4 * KB, 64 * KB});
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_ATOMIC_FETCH_AND_ADD, 5, 0, 8, 96 * KB, .compare_add = 1});
        alb_sim_host_poke(w->a.host);
        run_for(w, ALB_SIM_US(20));
        alb_sim_script_clear(alb_sim_link_script(&w->pair.out[A]));
        if (side == 0)
            world_restart(w, &w->a);
        else
            reset(w, &w->a);
        if (side == 1)
            world_restart(w, &w->b);
        else
            reset(w, &w->b);
        while (alb_cq_peek(w->a.cq))
            alb_cq_pop(w->a.cq);
        connect_qps(w, w->a.qp, w->b.qp);
        if (side == 0) // B can know of A's new life only from A
            work_once(w, &w->a);
        receive(&w->b, 9, 128 * KB, 8 * KB);
        fill(&w->b, 99);
        uint8_t before[40 * KB];
        memcpy(before, w->b.memory + 64 * KB, sizeof(before));
        run_for(w, ALB_SIM_S(4)); // they have come
        assert_memory_equal(before, w->b.memory + 64 * KB, sizeof(before));
        expect_none(w->b.recv_cq);
        expect_state(&w->b, ALB_QPS_RTS);
        assert_true(w->b.host->stats.dropped[ALB_DROP_BAD_EPOCH] + w->b.host->stats.dropped[ALB_DROP_NOT_PROVEN] > 0);
        assert_int_equal(post(w, &w->a, (struct work){ALB_WR_SEND, 1, 0, 8 * KB}), 0);
        run_idle(w);
        expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
        expect_wc(w->b.recv_cq, 9, ALB_WC_SUCCESS);
        world_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_peer_restarts__the_next_request_fails),
        cmocka_unit_test(peer_restarts_in_the_middle__requests_fail),
        cmocka_unit_test(peer_restarts__who_only_receives_fails_too),
        cmocka_unit_test(connected_again__works),
        cmocka_unit_test(both_restart__connected_again),
        cmocka_unit_test(old_packets_come_late__have_no_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
