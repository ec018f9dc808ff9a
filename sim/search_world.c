// SPDX-License-Identifier: BSD-2-Clause
// Draws a world from the seed and builds it.
#include "sim/search_world.h"

#include "wire/roce.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t iova_base =
    0x100000000ull; // addresses on the wire must not depend on where memory happens to lie

static uint32_t pick(struct alb_search *search, const uint32_t *from, uint32_t count)
{
    return from[alb_search_below(search, count)];
}

#define PICK(search, ...) \
    pick((search), (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

// ---- what the network does ------------------------------------------------------------------------------------------

static void draw_faults(struct alb_search *search)
{
    const uint32_t percent = 10000000; // parts per billion
    uint32_t kind = alb_search_below(search, 10);
    if (kind < 2)
        return;
    bool is_rough = kind >= 7;
    bool is_wild = kind == 9;
    uint32_t scale = is_wild ? 40 * percent : is_rough ? 10 * percent : percent;
    struct alb_faults_spec *faults = &search->faults;
    if (alb_search_percent(search, 80))
        faults->loss = alb_search_below(search, scale);
    if (alb_search_percent(search, 50))
        faults->duplicate = alb_search_below(search, scale);
    if (alb_search_percent(search, 50))
        faults->reorder = alb_search_below(search, scale);
    if (alb_search_percent(search, 30))
        faults->corrupt = alb_search_below(search, scale / 2);
    if (alb_search_percent(search, 30))
        faults->delay_ns_max = 1 + alb_search_below(search, is_wild ? 2000000 : is_rough ? 20000 : 3000);
    search->may_lose_much = is_rough;
    search->may_duplicate = faults->duplicate || faults->reorder || faults->delay_ns_max;
}

static void draw_links(struct alb_search *search, struct alb_sim_pair_config *config)
{
    for (uint32_t side = 0; side < ALB_SIM_SIDES; side++) {
        struct alb_sim_link_config *link = &config->out[side];
        link->bits_per_s = PICK(search, 0, 0, 1000, 10000, 100000) * 1000000ull;
        link->delay = ALB_SIM_NS(PICK(search, 0, 100, 1000, 5000));
        if (link->bits_per_s && alb_search_percent(search, 30))
            link->queue_bytes_max = 16384 + alb_search_below(search, 65536);
        if (link->bits_per_s && alb_search_percent(search, 30))
            link->mark_above_bytes = 1 + alb_search_below(search, 32768);
        config->host[side].burst_segments_max = PICK(search, 1, 2, 8, 64);
        config->host[side].ahead_bytes = PICK(search, 0, 4096, 16384);
    }
}

// ---- limits ---------------------------------------------------------------------------------------------------------

static void draw_engine(struct alb_search *search, struct alb_engine_config *config)
{
    config->slot = (uint8_t)alb_search_below(search, 256);
    config->qp_max = 16 + search->qp_count + alb_search_below(search, 4);
    config->region_max = 16;
    config->pd_max = 2;
    config->cq_max = 1;
    config->srq_max = 1 + ALB_MODEL_NAMED;
    config->xrcd_max = 1;
    config->ah_max = 1;
    config->peer_max = 1 + alb_search_below(search, 3);
    config->window_min_bytes = PICK(search, 1024, 4096, 16384);
    config->window_start_bytes = config->window_min_bytes + alb_search_below(search, 32768);
    config->window_max_bytes = config->window_start_bytes + alb_search_below(search, 65536);
    config->congestion = ((const char *[]){"aimd", "aimd", "fixed", "none"})[alb_search_below(search, 4)];
    if (alb_search_percent(search, 20))
        config->unreliable_bytes_per_s = 10000000 + alb_search_below(search, 1000000000);
    config->trace_records = search->is_short ? 64 : 4096;
    if (search->is_short) // no transactions
        config->txn_staging_bytes = 0;
}

static void draw_engines(struct alb_search *search, struct alb_sim_pair_config *config)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        draw_engine(search, &config->host[side].engine);
    if (search->is_csa)
        alb_search_draw_csa(search, config);
}

static void draw_limits(struct alb_search *search)
{
    search->qp_count = 1 + alb_search_below(search, ALB_MODEL_QPS_MAX);
    for (uint32_t i = 0; i < search->qp_count; i++)
        search->types[i] = (enum alb_qp_type)PICK(search, ALB_QPT_RC, ALB_QPT_RC, ALB_QPT_RC, ALB_QPT_UC, ALB_QPT_UD,
                                                  ALB_QPT_XRC_SEND, ALB_QPT_XRC_RECV);
    search->mtu_bytes = search->is_short ? 256 : PICK(search, 256, 256, 256, 256, 512, 512, 1024, 2048, 4096);
    search->message_max = search->mtu_bytes * (search->mtu_bytes > 512 ? 3 : 6) + 13;
    search->is_same_host = alb_search_percent(search, 50);
    search->is_shared = alb_search_percent(search, 25);
    search->send_wr_max = PICK(search, 1, 2, 3, 8, 16);
    search->recv_wr_max = PICK(search, 1, 2, 3, 8, 16);
    search->sge_max = 1 + alb_search_below(search, ALB_MODEL_SGE_MAX);
    search->inline_max = PICK(search, 0, 16, 64, 300);
    search->rd_atomic = PICK(search, 1, 1, 2, 4, 16);
    search->has_errors = alb_search_percent(search, 40);
    search->has_short_recvs = search->has_errors && alb_search_percent(search, 30);
    search->has_lifecycle = alb_search_percent(search, 30);
}

static void lay_out(struct alb_search *search)
{
    const uint32_t guard = 64;
    search->source_bytes = ALB_MAX(search->message_max * 2, 4096u) & ~63u;
    search->words_at = search->source_bytes + guard;
    search->slices_at = search->words_at + ALB_MODEL_WORDS * 8 + guard;
    search->slice_bytes = (search->message_max * 2 + 63) & ~63u;
    search->slice_stride = search->slice_bytes + guard;
    search->slots_at = search->slices_at + search->qp_count * search->slice_stride;
    search->slot_bytes = (search->message_max + ALB_GRH_BYTES + ALB_MODEL_SGE_MAX * SEARCH_GAP + guard + 63) & ~63u;
    search->slot_count = search->is_short ? SEARCH_SLOTS_SHORT : SEARCH_SLOTS;
    search->arena_bytes = (search->slots_at + search->slot_count * search->slot_bytes + 63) & ~63u;
}

// ---- objects --------------------------------------------------------------------------------------------------------

static enum alb_qp_type type_of(const struct alb_search *search, uint32_t side, uint32_t index)
{
    enum alb_qp_type type = search->types[index];
    if (side == 0 || !alb_model_is_xrc(type))
        return type;
    return type == ALB_QPT_XRC_SEND ? ALB_QPT_XRC_RECV : ALB_QPT_XRC_SEND;
}

static void create_qp(struct alb_search *search, uint32_t side, uint32_t index)
{
    struct alb_search_side *s = &search->sides[side];
    struct alb_search_qp *qp = &s->qps[index];
    struct alb_qp_init init = {
        .type = type_of(search, side, index),
        .send_cq = s->cq,
        .recv_cq = s->cq,
        .srq = s->srq,
        .xrcd = s->xrcd,
        .cap = {search->send_wr_max, search->recv_wr_max, search->sge_max, search->sge_max, search->inline_max},
        .user = qp,
    };
    alb_search_must(alb_qp_create(init.type == ALB_QPT_XRC_RECV ? NULL : s->pd, &init, &qp->qp));
    qp->cap = init.cap;
    qp->model = &search->model.qps[side][index];
    qp->model->number = alb_qp_number(qp->qp);
    qp->is_connected = false;
}

static const uint32_t all_rights = ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ |
                                   ALB_ACCESS_REMOTE_ATOMIC | ALB_ACCESS_MW_BIND;

static uint32_t rights(const struct alb_search *search)
{
    return all_rights | (search->model.is_relaxed ? ALB_ACCESS_RELAXED_ORDERING : 0);
}

void alb_search_renew_fleeting(struct alb_search *search, uint32_t side)
{
    struct alb_search_side *s = &search->sides[side];
    if (s->fleeting_mr)
        alb_search_must(alb_mr_destroy(s->fleeting_mr));
    alb_search_must(alb_mr_create(s->pd, s->arena, search->arena_bytes, s->iova, rights(search), &s->fleeting_mr));
}

static void create_narrow_regions(struct alb_search *search, uint32_t side)
{
    struct alb_search_side *s = &search->sides[side];
    const uint32_t local = rights(search) & (ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_RELAXED_ORDERING);
    alb_search_must(alb_mr_create(s->other_pd, s->arena, search->arena_bytes, s->iova, rights(search), &s->foreign_mr));
    alb_search_must(
        alb_mr_create(s->pd, s->arena, search->arena_bytes, s->iova, local | ALB_ACCESS_REMOTE_READ, &s->read_mr));
    alb_search_must(
        alb_mr_create(s->pd, s->arena, search->arena_bytes, s->iova, local | ALB_ACCESS_REMOTE_WRITE, &s->written_mr));
}

static void create_objects(struct alb_search *search, uint32_t side)
{
    struct alb_search_side *s = &search->sides[side];
    struct alb_engine *engine = s->host->engine;
    struct alb_av av = {.local = s->host->addr,
                        .peer = search->pair.host[1 - side].addr,
                        .hop_limit = 64,
                        .same_host = search->is_same_host,
                        .peer_has_slots = search->is_csa,
                        .path_payload_max = search->path_payload_max};
    s->iova = iova_base * (side + 1);
    alb_search_must(alb_pd_create(engine, &s->pd));
    alb_search_must(alb_pd_create(engine, &s->other_pd));
    alb_search_must(alb_cq_create(engine, search->is_short ? 1024 : 4096, NULL, &s->cq));
    alb_search_must(alb_ah_create(s->pd, &av, &s->ah));
    alb_search_must(alb_mr_create(s->pd, s->arena, search->arena_bytes, s->iova, rights(search), &s->mr));
    alb_search_must(
        alb_mr_create(s->pd, s->arena, search->arena_bytes, s->iova, ALB_ACCESS_LOCAL_WRITE, &s->closed_mr));
    alb_search_renew_fleeting(search, side);
    create_narrow_regions(search, side);
    if (search->is_shared)
        alb_search_must(alb_srq_create(s->pd, search->recv_wr_max, search->sge_max, 0, NULL, &s->srq));
    alb_search_must(alb_xrcd_create(engine, &s->xrcd));
    for (uint32_t i = 0; i < ALB_MODEL_NAMED; i++)
        alb_search_must(
            alb_srq_create_xrc(s->pd, s->xrcd, s->cq, search->recv_wr_max, search->sge_max, 0, NULL, &s->named[i]));
    for (uint32_t i = 0; i < search->qp_count; i++)
        create_qp(search, side, i);
}

static void add_to_model(struct alb_search *search)
{
    alb_model_init(&search->model, (uint8_t *[]){search->sides[0].arena, search->sides[1].arena}, search->arena_bytes);
    search->model.may_duplicate = search->may_duplicate;
    search->model.may_lose_much = search->may_lose_much;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        alb_model_set_words(&search->model, side, search->words_at);
        for (uint32_t i = 0; i < search->qp_count; i++)
            alb_model_add_qp(
                &search->model, side, i, type_of(search, side, i), search->is_shared,
                (struct alb_model_span){search->slices_at + i * search->slice_stride, search->slice_bytes});
    }
}

static uint8_t *new_arena(struct alb_search *search)
{
    uint8_t *arena = aligned_alloc(64, search->arena_bytes);
    alb_assert(arena);
    for (uint32_t i = 0; i < search->arena_bytes; i += 8) {
        uint64_t word = alb_prng_u64(&search->prng);
        memcpy(arena + i, &word, 8);
    }
    return arena;
}

// By a generator of its own, so that what else a seed draws stays as it is.
static bool draws_relaxed(uint64_t seed)
{
    struct alb_prng prng;
    alb_prng_init(&prng, ~seed);
    return alb_prng_below(&prng, 2) == 1;
}

void alb_search_draw(struct alb_search *search, uint64_t seed, struct alb_sim_pair_config *config)
{
    alb_prng_init(&search->prng, seed);
    alb_prng_init(&search->more, ~seed * 3);
    draw_limits(search);
    draw_faults(search);
    lay_out(search);
    alb_sim_pair_config_default(config, alb_search_percent(search, 40));
    config->seed = seed;
    draw_links(search, config);
    draw_engines(search, config);
}

void alb_search_build(struct alb_search *search, uint64_t seed, const struct alb_sim_pair_config *config)
{
    alb_search_must(alb_sim_pair_init(&search->pair, config));
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        search->sides[side].host = &search->pair.host[side];
        search->sides[side].arena = new_arena(search);
    }
    add_to_model(search);
    search->model.is_relaxed = search->is_csa && draws_relaxed(seed);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        create_objects(search, side);
}

void alb_search_open(struct alb_search *search, uint64_t seed)
{
    struct alb_sim_pair_config config;
    alb_search_draw(search, seed, &config);
    alb_search_build(search, seed, &config);
}

static void destroy_objects(struct alb_search *search, uint32_t side)
{
    struct alb_search_side *s = &search->sides[side];
    for (uint32_t i = 0; i < search->qp_count; i++) {
        alb_search_window_end(&s->qps[i].window);
        alb_search_must(alb_qp_destroy(s->qps[i].qp));
    }
    if (s->srq)
        alb_search_must(alb_srq_destroy(s->srq));
    for (uint32_t i = 0; i < ALB_MODEL_NAMED; i++)
        alb_search_must(alb_srq_destroy(s->named[i]));
    alb_search_must(alb_xrcd_destroy(s->xrcd));
    alb_search_must(alb_mr_destroy(s->mr));
    alb_search_must(alb_mr_destroy(s->closed_mr));
    alb_search_must(alb_mr_destroy(s->fleeting_mr));
    s->fleeting_mr = NULL;
    alb_search_must(alb_mr_destroy(s->foreign_mr));
    alb_search_must(alb_mr_destroy(s->read_mr));
    alb_search_must(alb_mr_destroy(s->written_mr));
    alb_search_must(alb_ah_destroy(s->ah));
    alb_search_must(alb_cq_destroy(s->cq));
    alb_search_must(alb_pd_destroy(s->pd));
    alb_search_must(alb_pd_destroy(s->other_pd));
    if (s->host->memory.data_path_calls)
        alb_model_fail(&search->model, "side %u took memory on the data path", side);
}

void alb_search_restart(struct alb_search *search, uint32_t side)
{
    alb_search_poll(search, 0);
    alb_search_poll(search, 1);
    for (uint32_t i = 0; i < search->qp_count; i++)
        alb_model_on_reset(&search->model, &search->model.qps[side][i]);
    alb_model_on_restart(&search->model, side);
    destroy_objects(search, side);
    alb_search_must(alb_sim_host_restart(search->sides[side].host));
    alb_search_reclaim_slots(&search->sides[side]);
    create_objects(search, side);
    search->result->restarts++;
}

void alb_search_close(struct alb_search *search)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        destroy_objects(search, side);
    alb_sim_pair_fini(&search->pair); // asserts that no memory is left
    alb_model_fini(&search->model);
    free(search->sides[0].arena);
    free(search->sides[1].arena);
}

// ---- connecting -----------------------------------------------------------------------------------------------------

static void reset(struct alb_search *search, uint32_t side, uint32_t index, bool keeps_number)
{
    struct alb_search_qp *qp = &search->sides[side].qps[index];
    alb_search_life_reset(search, side, index);
    alb_model_on_reset(&search->model, qp->model);
    alb_search_window_end(&qp->window);
    alb_search_reclaim_slots(&search->sides[side]);
    if (alb_search_percent(search, 30) && !keeps_number) {
        alb_search_must(alb_qp_destroy(qp->qp));
        create_qp(search, side, index);
        return;
    }
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    alb_search_must(alb_qp_modify(qp->qp, &attr, ALB_QP_STATE, alb_sim_host_now(search->sides[side].host)));
}

static uint32_t rtr_mask(enum alb_qp_type type)
{
    const uint32_t connected = ALB_QP_STATE | ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN;
    switch (type) {
    case ALB_QPT_RC:
    case ALB_QPT_XRC_RECV:
        return connected | ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_MIN_RNR_TIMER;
    case ALB_QPT_UC:
    case ALB_QPT_XRC_SEND:
        return connected;
    default:
        return ALB_QP_STATE;
    }
}

static uint32_t rts_mask(enum alb_qp_type type)
{
    const uint32_t reliable = ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_MAX_QP_RD_ATOMIC;
    bool asks = type == ALB_QPT_RC || type == ALB_QPT_XRC_SEND;
    return ALB_QP_STATE | ALB_QP_SQ_PSN | (asks ? reliable : type == ALB_QPT_XRC_RECV ? ALB_QP_TIMEOUT : 0);
}

// Most often all of it.
static uint32_t draw_access(struct alb_search *search)
{
    const uint32_t all[] = {ALB_ACCESS_REMOTE_WRITE, ALB_ACCESS_REMOTE_READ, ALB_ACCESS_REMOTE_ATOMIC};
    uint32_t without = (uint32_t)alb_prng_below(&search->more, 20);
    uint32_t access = all[0] | all[1] | all[2];
    return search->has_errors && !search->is_elsewhere && without < ALB_COUNT(all) ? access & ~all[without] : access;
}

static void bring_up(struct alb_search *search, uint32_t side, uint32_t index, const uint32_t psn[ALB_MODEL_SIDES])
{
    struct alb_search_side *s = &search->sides[side];
    const struct alb_search_side *peer = &search->sides[1 - side];
    struct alb_search_qp *qp = &s->qps[index];
    alb_time now = alb_sim_host_now(s->host);
    enum alb_qp_type type = type_of(search, side, index);
    struct alb_qp_attr attr = {
        .state = ALB_QPS_INIT,
        .port = 1,
        .access = draw_access(search),
        .qkey = 0x11,
        .path_mtu_bytes = search->mtu_bytes,
        .dest_qpn = alb_qp_number(peer->qps[index].qp),
        .rq_psn = psn[1 - side],
        .sq_psn = psn[side],
        .max_dest_rd_atomic = (uint8_t)search->rd_atomic,
        .max_rd_atomic = (uint8_t)(1 + alb_search_below(search, search->rd_atomic)),
        .min_rnr_timer = (uint8_t)(1 + alb_search_below(search, 12)),
        .timeout = (uint8_t)(8 + alb_search_below(search, 4) + search->patience), // 1 to 8 ms
        .retry_cnt = (uint8_t)(search->may_lose_much ? 3 + alb_search_below(search, 5) : 7),
        .rnr_retry = (uint8_t)(alb_search_percent(search, 85) ? 7 : 1 + alb_search_below(search, 6)),
        .av = {.local = s->host->addr,
               .peer = peer->host->addr,
               .hop_limit = 64,
               .traffic_class = ALB_ECN_ECT0,
               .same_host = search->is_same_host,
               .peer_has_slots = search->is_csa,
               .path_payload_max = search->path_payload_max},
    };
    uint32_t rights = type == ALB_QPT_UD ? ALB_QP_QKEY : ALB_QP_ACCESS_FLAGS;
    alb_search_must(alb_qp_modify(qp->qp, &attr, ALB_QP_STATE | ALB_QP_PKEY_INDEX | ALB_QP_PORT | rights, now));
    attr.state = ALB_QPS_RTR;
    alb_search_must(alb_qp_modify(qp->qp, &attr, rtr_mask(type), now));
    attr.state = ALB_QPS_RTS;
    alb_search_must(alb_qp_modify(qp->qp, &attr, rts_mask(type), now));
    qp->model->rnr_retry = attr.rnr_retry;
    qp->model->may_fail = qp->model->has_failed = qp->model->may_break = false;
    qp->is_connected = true;
    qp->is_over = false;
    qp->access = attr.access;
    qp->psn = psn[side];
}

void alb_search_connect(struct alb_search *search, uint32_t index, bool is_quiet)
{
    uint32_t psn[ALB_MODEL_SIDES];
    bool repeats = !is_quiet && alb_search_life_repeats(search, index);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        psn[side] = (uint32_t)alb_prng_u64(&search->prng) & ALB_PSN_MASK;
        if (is_quiet && alb_search_percent(search, 30))
            psn[side] = (0u - alb_search_below(search, 64)) & ALB_PSN_MASK; // wraps soon
        if (repeats)
            psn[side] = search->sides[side].qps[index].psn;
        reset(search, side, index, repeats);
    }
    alb_model_on_new_life(&search->model, index);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        bring_up(search, side, index, psn);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        alb_sim_host_poke(search->sides[side].host);
}
