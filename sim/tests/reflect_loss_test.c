// SPDX-License-Identifier: BSD-2-Clause
// A transaction when something of it is lost, doubled or late, when its lease ends, when its queue pair or the target's
// program begins anew. Times are bounded in round trips.
#include "reflect.h"

#include <errno.h>

enum {
    KB = 1024,
    PACKETS_MAX = 64,
};

static const struct reflect usual = {.id = 7, .from = 100, .length = 6 * KB, .to = 40 * KB};

static alb_time rtts(const struct world *w, alb_sim_time since)
{
    return (now_of(w) - since) / (2 * REFLECT_DELAY);
}

typedef void (*way)(struct world *world, struct alb_sim_rule rule);

// Its packet number nth on that way meets that. False: it has no such packet.
static bool meet(way on_way, enum alb_sim_side sender, uint32_t nth, enum alb_sim_action action, bool in_place)
{
    struct world *w = reflect_world();
    struct reflect what = usual;
    what.in_place = in_place;
    uint32_t before = end_of(w, sender)->log_count;
    on_way(w, (struct alb_sim_rule){NTH(nth), .action = action, .amount = ALB_SIM_MS(3)});
    alb_sim_time since = now_of(w);
    uint64_t number = reflect_post(w, &w->a, what);
    struct alb_wc wc;
    while (!alb_cq_peek(w->a.cq) && now_of(w) < since + ALB_SIM_MS(1000))
        run_for(w, REFLECT_DELAY / 4);
    assert_in_range(rtts(w, since), 1, 9);
    run_idle(w);
    expect_wc_as(w->a.cq, what.id, ALB_WC_SUCCESS, &wc);
    assert_int_equal(reflect_state(&w->a, number), ALB_TXN_COMMITTED);
    assert_true(reflect_is_exposed(w, &what));
    assert_int_equal(stat(&w->b, ALB_STAT_txn_applied), 1);
    bool has_met = end_of(w, sender)->log_count - before >= nth;
    world_free(w);
    return has_met;
}

static void each_packet(enum alb_sim_action action)
{
    for (uint32_t in_place = 0; in_place < 2; in_place++) {
        uint32_t nth = 1;
        while (meet(on_way_to_b, ALB_SIM_A, nth, action, in_place))
            assert_true(++nth < PACKETS_MAX);
        assert_true(nth > 4); // it had parts, a proposal, a decision
        nth = 1;
        while (meet(on_way_to_a, ALB_SIM_B, nth, action, in_place))
            assert_true(++nth < PACKETS_MAX);
        assert_true(nth > 2); // it had two verdicts
    }
}

static void packet_lost__it_commits_within_a_few_round_trips(void **state)
{
    each_packet(ALB_SIM_DROP);
}

static void packet_doubled__it_commits_once(void **state)
{
    each_packet(ALB_SIM_DUPLICATE);
}

static void packet_late__it_commits_once(void **state)
{
    each_packet(ALB_SIM_DELAY);
}

// The decision never arrives: the target withdraws, and says so when asked.
static void lease_ends__aborted_and_nothing_exposed(void **state)
{
    struct world *w = reflect_world();
    struct reflect what = usual;
    what.lease_ns = 20 * ALB_NS_PER_MS;
    on_way_to_b(w, (struct alb_sim_rule){.by = ALB_SIM_BY_FRAME, .frame = ALB_CSA_TXN, .from = 1, .times = 2});
    what.hold = true;
    uint64_t number = reflect_post(w, &w->a, what);
    run_for(w, ALB_SIM_MS(10));
    assert_int_equal(reflect_state(&w->a, number), ALB_TXN_REFLECTING);
    run_for(w, ALB_SIM_MS(30));
    assert_int_equal(alb_qp_txn_decide(w->a.qp, number, true, alb_sim_host_now(w->a.host)), EALREADY);
    run_idle(w);
    struct alb_wc wc;
    expect_wc_as(w->a.cq, what.id, ALB_WC_REM_ABORT_ERR, &wc);
    assert_int_equal(wc.vendor_err, ALB_TXN_LEASE);
    assert_false(reflect_is_exposed(w, &what));
    assert_int_equal(stat(&w->b, ALB_STAT_txn_expired), 1);
    world_free(w);
}

static void begin_anew(struct world *w)
{
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    assert_int_equal(alb_qp_modify(w->a.qp, &attr, ALB_QP_STATE, alb_sim_host_now(w->a.host)), 0);
    assert_int_equal(alb_qp_modify(w->b.qp, &attr, ALB_QP_STATE, alb_sim_host_now(w->b.host)), 0);
    connect_qps(w, w->a.qp, w->b.qp);
}

// What the queue pair knew of its former life must not keep it from asking.
static void queue_pair_begins_anew__a_lost_verdict_is_asked_for(void **state)
{
    struct world *w = reflect_world();
    for (uint32_t i = 0; i < 5; i++) {
        reflect_post(w, &w->a, usual);
        run_idle(w);
        expect_wc(w->a.cq, usual.id, ALB_WC_SUCCESS);
    }
    begin_anew(w);
    on_way_to_a(w, (struct alb_sim_rule){.by = ALB_SIM_BY_FRAME, .frame = ALB_CSA_VERDICT, NTH(1)});
    alb_sim_time since = now_of(w);
    reflect_post(w, &w->a, usual);
    while (!alb_cq_peek(w->a.cq) && now_of(w) < since + ALB_SIM_MS(1000))
        run_for(w, REFLECT_DELAY / 4);
    assert_in_range(rtts(w, since), 2, 9);
    expect_wc(w->a.cq, usual.id, ALB_WC_SUCCESS);
    run_idle(w);
    world_free(w);
}

// The queue pair fails when COMMIT has been sent: committed or not is found out by the next one.
static void doubt(bool has_arrived)
{
    struct world *w = reflect_world();
    if (!has_arrived)
        on_way_to_b(w, (struct alb_sim_rule){.by = ALB_SIM_BY_FRAME, .frame = ALB_CSA_TXN, ALWAYS});
    uint64_t number = reflect_post(w, &w->a, usual);
    while (reflect_state(&w->a, number) != ALB_TXN_REFLECTING)
        run_for(w, REFLECT_DELAY / 4);
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(w->a.qp, &attr, ALB_QP_STATE, alb_sim_host_now(w->a.host)), 0);
    struct alb_wc wc;
    expect_wc_as(w->a.cq, usual.id, ALB_WC_WR_FLUSH_ERR, &wc);
    assert_int_equal(wc.vendor_err, ALB_TXN_LOST);
    assert_int_equal(reflect_state(&w->a, number), ALB_TXN_IN_DOUBT);
    struct alb_txn_token token = reflect_token(&w->a, number);
    run_for(w, ALB_SIM_MS(5));
    begin_anew(w);
    alb_sim_script_clear(alb_sim_link_script(&w->pair.out[ALB_SIM_A]));
    reflect_ask(&w->a, 9, &token, ALB_TXN_ASK);
    run_idle(w);
    expect_wc(w->a.cq, 9, has_arrived ? ALB_WC_SUCCESS : ALB_WC_REM_ABORT_ERR);
    assert_int_equal(reflect_is_exposed(w, &usual), has_arrived);
    world_free(w);
}

static void queue_pair_fails__what_was_committed_is_found_out(void **state)
{
    doubt(true);
}

static void queue_pair_fails__what_was_not_ends_with_its_lease(void **state)
{
    doubt(false);
}

// A volatile target has forgotten, and says so.
static void target_restarts__nobody_knows(void **state)
{
    struct world *w = reflect_world();
    uint64_t number = reflect_post(w, &w->a, usual);
    while (reflect_state(&w->a, number) != ALB_TXN_REFLECTING)
        run_for(w, REFLECT_DELAY / 4);
    struct alb_txn_token token = reflect_token(&w->a, number);
    assert_true(token.keeper != 0);
    world_restart(w, &w->b);
    run_idle(w);
    const struct alb_wc *wc = alb_cq_peek(w->a.cq);
    assert_non_null(wc);
    assert_true(wc->status != ALB_WC_SUCCESS);
    alb_cq_pop(w->a.cq);
    assert_int_equal(reflect_state(&w->a, number), ALB_TXN_IN_DOUBT);
    begin_anew(w);
    reflect_ask(&w->a, 9, &token, ALB_TXN_COMMIT);
    run_idle(w);
    expect_wc(w->a.cq, 9, ALB_WC_RESP_TIMEOUT_ERR);
    assert_false(reflect_is_exposed(w, &usual));
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packet_lost__it_commits_within_a_few_round_trips),
        cmocka_unit_test(packet_doubled__it_commits_once),
        cmocka_unit_test(packet_late__it_commits_once),
        cmocka_unit_test(lease_ends__aborted_and_nothing_exposed),
        cmocka_unit_test(queue_pair_begins_anew__a_lost_verdict_is_asked_for),
        cmocka_unit_test(queue_pair_fails__what_was_committed_is_found_out),
        cmocka_unit_test(queue_pair_fails__what_was_not_ends_with_its_lease),
        cmocka_unit_test(target_restarts__nobody_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
