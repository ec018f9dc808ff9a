// SPDX-License-Identifier: BSD-2-Clause
#include "reflect.h"

void reflect_enable(struct end *end)
{
    assert_int_equal(alb_qp_txn_enable(end->qp, 16), 0);
}

struct world *reflect_world(void)
{
    struct options options;
    world_transport = "csa";
    options_default(&options);
    options.path_payload_max = 1472;
    options.psn[A] = options.psn[B] = 0xC00000; // behind zero
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++) {
        options.pair.host[side].engine.path_max = 1;
        options.pair.out[side].delay = REFLECT_DELAY;
    }
    struct world *w = world_new(&options);
    fill(&w->a, 1);
    fill(&w->b, 2);
    reflect_enable(&w->a);
    for (uint32_t i = 0; i < 4; i++) {
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 8, MEMORY - 8});
        run_idle(w);
        expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    }
    return w;
}

uint64_t reflect_post(struct world *w, struct end *end, struct reflect what)
{
    const struct end *peer = peer_of(w, end);
    uint32_t first = what.length / 2;
    const struct alb_sge sges[2] = {
        {(uintptr_t)end->memory + what.from, first, alb_region_key(end->mr)},
        {(uintptr_t)end->memory + what.from + first, what.length - first, alb_region_key(end->mr)},
    };
    struct alb_txn_write writes[2];
    for (uint32_t i = 0; i < 2; i++)
        writes[i] = (struct alb_txn_write){
            .remote_addr = (uintptr_t)peer->memory + what.to + i * first,
            .rkey = alb_region_key(peer->mr),
            .sge = &sges[i],
            .sge_count = 1,
        };
    const struct alb_txn_wr wr = {
        .wr_id = what.id,
        .flags = ALB_SEND_SIGNALED,
        .writes = writes,
        .write_count = 2,
        .level = what.level ? what.level : ALB_LEVEL_COMMITTED,
        .hold = what.hold,
        .in_place = what.in_place,
        .notify = what.notify,
        .lease_ns = what.lease_ns ? what.lease_ns : REFLECT_LEASE_NS,
        .submitted = alb_sim_host_now(end->host),
    };
    uint64_t number = 0;
    assert_int_equal(alb_qp_txn_stage(end->qp, &wr, &number), 0);
    alb_qp_send_commit(end->qp);
    alb_engine_bell_ring(end->qp);
    alb_sim_host_poke(end->host);
    return number;
}

static struct alb_txn_status query(const struct end *end, uint64_t number)
{
    struct alb_txn_status status;
    assert_int_equal(alb_qp_txn_query(end->qp, number, &status), 0);
    return status;
}

enum alb_txn_state reflect_state(const struct end *end, uint64_t number)
{
    return query(end, number).state;
}

struct alb_txn_token reflect_token(const struct end *end, uint64_t number)
{
    return query(end, number).token;
}

void reflect_ask(struct end *end, uint64_t id, const struct alb_txn_token *token, enum alb_txn_decision decision)
{
    assert_int_equal(alb_qp_txn_reconcile_stage(end->qp, id, ALB_SEND_SIGNALED, token, decision), 0);
    alb_qp_send_commit(end->qp);
    alb_engine_bell_ring(end->qp);
    alb_sim_host_poke(end->host);
}

bool reflect_is_exposed(const struct world *w, const struct reflect *what)
{
    uint32_t equal = 0;
    for (uint32_t i = 0; i < what->length; i++)
        equal += w->a.memory[what->from + i] == w->b.memory[what->to + i];
    assert_true(equal == what->length || equal < what->length / 8); // by chance some are
    return equal == what->length;
}
