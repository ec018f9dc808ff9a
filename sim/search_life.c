// SPDX-License-Identifier: BSD-2-Clause
// A side that has begun anew and is connected again while packets of its former life are under way. Its peer's PSNs and
// its own may be the former ones where epochs alone tell the two lives apart (docs/PROTOCOL.md, section 13): every
// packet under way names the life that it was meant for, and the peer has learnt that this one is over. What a peer has
// not heard of is not over for it, but takes a cookie to be believed in place of the present one.
#include "sim/search_world.h"

// UC takes what is left of its former life for new.
static bool is_reliable(const struct alb_search *search, uint32_t index)
{
    return alb_model_is_reliable(search->sides[0].qps[index].model->type);
}

static bool draws(struct alb_search *search, uint32_t percent)
{
    return alb_prng_below(&search->more, 100) < percent;
}

// An engine forgets a peer with the last queue pair that is connected to it.
static bool is_last(const struct alb_search *search, uint32_t side, uint32_t index)
{
    for (uint32_t i = 0; i < search->qp_count; i++) {
        const struct alb_search_qp *qp = &search->sides[side].qps[i];
        if (i != index && qp->model->type == ALB_QPT_RC && alb_qp_current_state(qp->qp) >= ALB_QPS_RTR)
            return false;
    }
    return true;
}

void alb_search_life_begin_phase(struct alb_search *search)
{
    search->has_repeated = false;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        struct alb_search_side *s = &search->sides[side];
        s->knew_life = s->knows_life;
        s->may_learn = s->has_learnt = false;
        for (uint32_t i = 0; i < search->qp_count; i++)
            s->qps[i].is_over = false;
    }
}

void alb_search_life_answered(struct alb_search *search, const struct alb_search_qp *qp)
{
    struct alb_search_side *s = &search->sides[qp->model->side];
    if (qp->is_over || !alb_model_is_reliable(qp->model->type))
        return;
    s->knows_life = true;
    s->has_learnt |= s->may_learn;
}

void alb_search_life_reset(struct alb_search *search, uint32_t side, uint32_t index)
{
    struct alb_search_side *s = &search->sides[side];
    if (is_last(search, side, index))
        s->knows_life = s->knew_life = s->may_learn = s->has_learnt = false;
}

// The side has begun anew: nothing that its peer hears now is from the life that it knows.
static void end_life(struct alb_search *search, uint32_t side)
{
    struct alb_search_side *own = &search->sides[side], *peer = &search->sides[1 - side];
    peer->may_learn = peer->knew_life;
    own->may_learn = own->has_learnt = peer->has_learnt = false;
    for (uint32_t i = 0; i < ALB_MODEL_SIDES; i++) {
        search->sides[i].knows_life = search->sides[i].knew_life = false;
        for (uint32_t k = 0; k < search->qp_count; k++)
            search->sides[i].qps[k].is_over = true;
    }
}

void alb_search_life_end(struct alb_search *search, uint32_t side)
{
    end_life(search, side);
    for (uint32_t i = 0; search->comes_back && i < search->qp_count; i++)
        if (is_reliable(search, i) && draws(search, 50))
            alb_search_connect(search, i, false);
}

static void set_faults(struct alb_search *search, const struct alb_faults_spec *faults)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        alb_sim_link_set_faults(&search->pair.out[side], faults, alb_prng_u64(&search->more));
}

static void work(struct alb_search *search, uint32_t index)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        (void)alb_search_post_recv(search, side, index, true);
        alb_search_post(search, side, index);
        alb_search_post(search, side, index);
        alb_sim_host_poke(search->sides[side].host);
    }
}

// Much is under way, and some of it twice and late.
static void be_late(struct alb_search *search)
{
    const struct alb_faults_spec late = {.duplicate = 500000000, .delay_ns_max = 400000};
    set_faults(search, &late);
    for (uint32_t i = 0; i < search->qp_count; i++)
        work(search, i);
    alb_sim_network_run_for(&search->pair.network, ALB_SIM_NS(alb_prng_below(&search->more, 50000)));
    set_faults(search, &search->faults);
}

// What is not bound to the life that is over would be sent again, to the present one. What that flushes is seen before
// anything is reset: a shared receive queue's completions stay (XRC).
static void fall_silent(struct alb_search *search, uint32_t side)
{
    struct alb_search_side *s = &search->sides[side];
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    for (uint32_t i = 0; i < search->qp_count; i++)
        if (is_reliable(search, i) && alb_qp_current_state(s->qps[i].qp) != ALB_QPS_RESET) {
            alb_model_on_break(s->qps[i].model);
            alb_search_must(alb_qp_modify(s->qps[i].qp, &attr, ALB_QP_STATE, alb_sim_host_now(s->host)));
        }
    alb_sim_host_poke(s->host);
    alb_search_poll(search, side);
}

static bool learns(struct alb_search *search, uint32_t side)
{
    const uint32_t rounds = 20;
    uint32_t index = 0;
    while (index < search->qp_count && !is_reliable(search, index))
        index++;
    if (index == search->qp_count)
        return false;
    alb_search_connect(search, index, false);
    for (uint32_t i = 0; i < rounds && !search->sides[side].has_learnt; i++) {
        if (i < 2)
            work(search, index);
        alb_sim_network_run_for(&search->pair.network, ALB_SIM_US(5));
        alb_search_poll(search, side);
    }
    return search->sides[side].has_learnt;
}

void alb_search_life_come_back(struct alb_search *search)
{
    uint32_t side = (uint32_t)alb_prng_below(&search->more, ALB_MODEL_SIDES);
    if (!search->comes_back || !search->sides[1 - side].knew_life || !draws(search, 10))
        return;
    be_late(search);
    alb_search_restart(search, side);
    end_life(search, side);
    fall_silent(search, 1 - side);
    if (!learns(search, 1 - side))
        return;
    alb_search_poll(search, 0);
    alb_search_poll(search, 1);
    search->repeats = search->has_repeated = true;
    for (uint32_t i = 0; i < search->qp_count; i++)
        if (search->sides[side].qps[i].is_over && is_reliable(search, i)) {
            alb_search_connect(search, i, false);
            work(search, i);
        }
    search->repeats = false;
}

bool alb_search_life_repeats(const struct alb_search *search, uint32_t index)
{
    return search->repeats && search->sides[0].qps[index].is_over && is_reliable(search, index);
}
