// SPDX-License-Identifier: BSD-2-Clause
// What each level costs in round trips, where the way is all that counts: delivered, visible and reflected one,
// committed two.
#include "reflect.h"

// Percent of what an ordinary WRITE of 8 bytes takes from post to completion.
static uint32_t percent(alb_time took_ns, alb_time unit_ns)
{
    return (uint32_t)(100 * took_ns / unit_ns);
}

static alb_time took(struct world *w, uint64_t id, alb_time posted)
{
    struct alb_wc wc;
    run_idle(w);
    expect_wc_as(w->a.cq, id, ALB_WC_SUCCESS, &wc);
    return wc.timestamp - posted;
}

static alb_time write_takes(struct world *w, enum alb_level level)
{
    alb_time posted = alb_sim_host_now(w->a.host);
    struct alb_sge sge = {(uintptr_t)w->a.memory, 8, alb_region_key(w->a.mr)};
    struct alb_send_wr wr = {
        .wr_id = 2,
        .opcode = ALB_WR_RDMA_WRITE,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = (uintptr_t)w->b.memory,
        .rkey = alb_region_key(w->b.mr),
        .level = level,
        .submitted = posted,
    };
    assert_int_equal(alb_qp_send_stage(w->a.qp, &wr), 0);
    alb_qp_send_commit(w->a.qp);
    alb_engine_bell_ring(w->a.qp);
    alb_sim_host_poke(w->a.host);
    return took(w, 2, posted);
}

static alb_time transaction_takes(struct world *w, struct reflect what)
{
    alb_time posted = alb_sim_host_now(w->a.host);
    what.id = 3;
    reflect_post(w, &w->a, what);
    alb_time ns = took(w, 3, posted);
    assert_true(reflect_is_exposed(w, &what));
    return ns;
}

static void level__costs_its_round_trips(void **state)
{
    static const uint32_t lengths[] = {64, 4 << 10, 16 << 10};
    struct world *w = reflect_world();
    alb_time unit_ns = write_takes(w, ALB_LEVEL_DELIVERED);
    assert_in_range(unit_ns, 2 * alb_sim_to_ns(REFLECT_DELAY), 2 * alb_sim_to_ns(REFLECT_DELAY) + 10000);
    assert_in_range(percent(write_takes(w, ALB_LEVEL_VISIBLE), unit_ns), 99, 110);
    for (uint32_t i = 0; i < ALB_COUNT(lengths); i++) {
        struct reflect what = {.from = 1000 * i, .length = lengths[i], .to = 70000 * i};
        what.level = ALB_LEVEL_REFLECTED;
        assert_in_range(percent(transaction_takes(w, what), unit_ns), 99, 110);
        what.level = ALB_LEVEL_COMMITTED;
        what.to += 1;
        assert_in_range(percent(transaction_takes(w, what), unit_ns), 199, 220);
        what.in_place = true;
        what.to += 1;
        assert_in_range(percent(transaction_takes(w, what), unit_ns), 199, 220);
    }
    world_free(w);
}

// Five at a time cost what one does.
static void level__many_cost_no_more(void **state)
{
    struct world *w = reflect_world();
    alb_time unit_ns = write_takes(w, ALB_LEVEL_DELIVERED), posted = alb_sim_host_now(w->a.host);
    for (uint32_t i = 0; i < 5; i++)
        reflect_post(w, &w->a, (struct reflect){.id = i, .from = 500 * i, .length = 400, .to = 1000 * i});
    run_idle(w);
    for (uint32_t i = 0; i < 5; i++) {
        struct alb_wc wc;
        expect_wc_as(w->a.cq, i, ALB_WC_SUCCESS, &wc);
        assert_in_range(percent(wc.timestamp - posted, unit_ns), 199, 220);
    }
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(level__costs_its_round_trips),
        cmocka_unit_test(level__many_cost_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
