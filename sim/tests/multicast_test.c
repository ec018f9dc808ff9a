// SPDX-License-Identifier: BSD-2-Clause
// Multicast between two engines over the scripted network: what happens to a datagram happens to all of its copies.
#include "world.h"

enum {
    KB = 1024,
    MEMBERS = 3,
    QKEY = 0x1234,
};

struct group_world {
    struct world *w;
    struct alb_addr group;
    struct alb_ah *ah;
};

static struct group_world open_world(void)
{
    struct group_world g;
    struct options options;
    options_default(&options);
    options.type = ALB_QPT_UD;
    options.qps = MEMBERS;
    options.qkey = QKEY;
    g.w = world_new(&options);
    fill(&g.w->a, 5);
    assert_true(alb_addr_parse("239.90.0.1", &g.group));
    const struct alb_av av = {.local = g.w->a.host->addr, .peer = g.group, .hop_limit = 1};
    assert_int_equal(alb_ah_create(g.w->a.pd, &av, &g.ah), 0);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(alb_qp_attach(g.w->b.qps[i], &g.group), 0);
    return g;
}

static void close_world(struct group_world *g)
{
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(alb_qp_detach(g->w->b.qps[i], &g->group), 0);
    assert_int_equal(alb_ah_destroy(g->ah), 0);
    world_free(g->w);
}

static void receive_all(struct group_world *g, uint32_t round)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        receive_on(&g->w->b, g->w->b.qps[i], 10 * round + i, (64 + 4 * (MEMBERS * round + i)) * KB, 2 * KB);
}

static void send_one(struct group_world *g, uint32_t round)
{
    post(g->w, &g->w->a,
         (struct work){ALB_WR_SEND, round, round * KB, KB, .ah = g->ah, .remote_qpn = ALB_MULTICAST_QPN,
                       .remote_qkey = QKEY});
}

static void expect_round(struct group_world *g, uint32_t sent, uint32_t receives)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        expect_wc(g->w->b.recv_cq, 10 * receives + i, ALB_WC_SUCCESS);
        expect_copied(&g->w->a, sent * KB, &g->w->b, (64 + 4 * (MEMBERS * receives + i)) * KB + ALB_GRH_BYTES, KB);
    }
}

static void multicast__one_datagram_for_all(void **state)
{
    struct group_world g = open_world();
    receive_all(&g, 0);
    send_one(&g, 0);
    run_idle(g.w);
    expect_wc(g.w->a.cq, 0, ALB_WC_SUCCESS);
    expect_round(&g, 0, 0);
    expect_none(g.w->b.recv_cq);
    assert_int_equal(g.w->a.log_count, 1); // whatever the number of members
    assert_int_equal(g.w->b.log_count, 0);
    assert_int_equal(g.w->a.log[0].roce.dest_qpn, ALB_MULTICAST_QPN);
    close_world(&g);
}

// The first of two is lost for all, and is not sent again.
static void lost(enum alb_sim_action action, uint32_t amount)
{
    struct group_world g = open_world();
    on_way_to_b(g.w, (struct alb_sim_rule){NTH(1), .action = action, .amount = amount});
    receive_all(&g, 0);
    send_one(&g, 0);
    send_one(&g, 1);
    run_idle(g.w);
    expect_wc(g.w->a.cq, 0, ALB_WC_SUCCESS);
    expect_wc(g.w->a.cq, 1, ALB_WC_SUCCESS);
    expect_round(&g, 1, 0);
    expect_none(g.w->b.recv_cq);
    assert_int_equal(g.w->b.host->stats.dropped[ALB_DROP_BAD_ICRC], action == ALB_SIM_CORRUPT);
    close_world(&g);
}

static void multicast__a_lost_datagram_is_lost_for_all(void **state)
{
    lost(ALB_SIM_DROP, 0);
    lost(ALB_SIM_CORRUPT, 200);
}

static void multicast__a_datagram_twice_is_received_twice(void **state)
{
    struct group_world g = open_world();
    on_way_to_b(g.w, (struct alb_sim_rule){NTH(1), .action = ALB_SIM_DUPLICATE});
    receive_all(&g, 0);
    receive_all(&g, 1);
    send_one(&g, 0);
    run_idle(g.w);
    expect_round(&g, 0, 0);
    expect_round(&g, 0, 1);
    close_world(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multicast__one_datagram_for_all),
        cmocka_unit_test(multicast__a_lost_datagram_is_lost_for_all),
        cmocka_unit_test(multicast__a_datagram_twice_is_received_twice),
    };
    return cmocka_run_group_tests_name("multicast", tests, NULL, NULL);
}
