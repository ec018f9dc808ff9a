// SPDX-License-Identifier: BSD-2-Clause
// The world of a search for broken promises of reflection, drawn from the seed and built.
#include "sim/search_txn.h"

#include "engine/region_version.h"

#include <stdlib.h>
#include <string.h>

static bool is_held(void *context, uint32_t side, uint32_t at)
{
    struct alb_search_txn *search = context;
    struct alb_versions_read read;
    return !alb_versions_read_begin(search->sides[side].versions, SEARCH_TXN_STRIDE, at * 8, 8, &read);
}

static void after(struct alb_sim_host *host, alb_sim_time now)
{
    struct alb_search_txn *search = host->user;
    if (search->is_durable)
        alb_search_store_look(&search->sides[host == search->base.sides[1].host].store);
    alb_model_txn_observe(&search->model, host == search->base.sides[1].host);
}

void alb_search_txn_create_region(struct alb_search_txn *search, uint32_t side)
{
    struct alb_search_txn_side *own = &search->sides[side];
    const uint32_t rights = ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ;
    alb_search_must(
        alb_mr_create(search->base.sides[side].pd, own->words, SEARCH_TXN_WORDS * 8, own->iova, rights, &own->mr));
    alb_search_must(alb_mr_set_versions(own->mr, own->versions, SEARCH_TXN_STRIDE));
    alb_search_must(alb_mr_set_checked(own->mr, search->is_checked, own));
    if (search->is_durable)
        alb_search_store_open(&own->store);
}

void alb_search_txn_create_memory(struct alb_search_txn *search, uint32_t side)
{
    struct alb_search_txn_side *own = &search->sides[side];
    memset((void *)own->versions, 0, sizeof(own->versions));
    own->answer_count = 0;
    alb_search_txn_create_region(search, side);
    alb_search_must(alb_mr_create(search->base.sides[side].pd, own->scratch, SEARCH_TXN_SCRATCH_WORDS * 8,
                                  (uintptr_t)own->scratch, ALB_ACCESS_LOCAL_WRITE, &own->scratch_mr));
}

void alb_search_txn_destroy_memory(struct alb_search_txn *search, uint32_t side)
{
    alb_search_must(alb_mr_destroy(search->sides[side].mr));
    alb_search_must(alb_mr_destroy(search->sides[side].scratch_mr));
}

static void draw_reflection(struct alb_search_txn *search, struct alb_engine_config *config)
{
    struct alb_search *base = &search->base;
    config->qp_max = ALB_MAX(config->qp_max, 16 + base->qp_count);
    config->txn_out_max = SEARCH_TXN_IN_FLIGHT;
    config->txn_record_max = 64 + alb_search_below(base, 1024);
    config->txn_staging_bytes = 65536u << alb_search_below(base, 5);
    config->txn_lease_ns = ALB_NS_PER_MS << alb_search_below(base, 7);
    config->txn_lease_ns_max = 8 * config->txn_lease_ns;
    config->txn_copies_max = alb_search_below(base, 6);
    if (search->is_durable) { // what is in the journal has its place in the next life, too
        config->txn_record_max = 4096;
        config->txn_staging_bytes = 4 << 20;
    }
    config->csa_pool_bytes = ALB_MAX(config->csa_pool_bytes, 65536u);
    config->reflect_snapshot_bytes_max = config->csa_pool_bytes / 2;
}

static void draw_corruption(struct alb_search_txn *search)
{
    const uint32_t percent = 10000000; // parts per billion
    struct alb_search *base = &search->base;
    search->has_corruption = alb_search_percent(base, 25);
    if (!search->has_corruption)
        return;
    for (uint32_t place = 0; place < ALB_CORRUPT_PLACES; place++)
        if (alb_search_percent(base, 50))
            search->corruption.chance[place] = alb_search_below(base, 20 * percent);
}

// What would be said of it is not what reflection promises: a plain WRITE or READ may be wrong then, and what is placed
// at once may go anywhere.
static void draw_work(struct alb_search_txn *search)
{
    search->is_checked = alb_search_percent(&search->base, 30);
    search->has_plain = alb_search_percent(&search->base, 70) && !search->has_corruption;
    search->has_in_place = alb_search_percent(&search->base, 50) && !search->has_corruption;
    search->has_renewals = alb_search_percent(&search->base, 20) && !search->has_corruption;
}

static void draw(struct alb_search_txn *search, uint64_t seed, struct alb_sim_pair_config *config)
{
    struct alb_search *base = &search->base;
    alb_search_draw(base, seed, config);
    base->qp_count = 1 + alb_search_below(base, 3);
    for (uint32_t i = 0; i < base->qp_count; i++)
        base->types[i] = ALB_QPT_RC;
    base->is_shared = false;
    base->has_restarts |= search->is_durable;
    base->send_wr_max = 8 + alb_search_below(base, 32);
    base->recv_wr_max = 8;
    draw_corruption(search);
    draw_work(search);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        draw_reflection(search, &config->host[side].engine);
        if (search->has_corruption)
            config->host[side].engine.corruption = &search->sides[side].corruption;
        alb_corruption_init(&search->sides[side].corruption, &search->corruption, seed + side,
                            search->sides[side].corrupted);
    }
}

void alb_search_txn_open(struct alb_search_txn *search, uint64_t seed)
{
    struct alb_sim_pair_config config;
    uint64_t *words[ALB_MODEL_SIDES];
    draw(search, seed, &config);
    alb_search_build(&search->base, seed, &config);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        struct alb_search_txn_side *own = &search->sides[side];
        own->iova = 0x500000000ull + side * 0x100000000ull;
        own->words = words[side] = aligned_alloc(64, SEARCH_TXN_WORDS * 8);
        own->scratch = malloc(SEARCH_TXN_SCRATCH_WORDS * 8);
        alb_assert(own->words && own->scratch);
    }
    alb_model_txn_init(&search->model, words, SEARCH_TXN_WORDS, is_held, search);
    search->model.has_corruption = search->has_corruption;
    search->model.is_checked = search->is_checked;
    search->model.held_words = SEARCH_TXN_STRIDE / 8;
    search->model.is_durable = search->is_durable;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        if (search->is_durable)
            alb_search_store_init(&search->sides[side].store, search, side);
        alb_search_txn_create_memory(search, side);
        search->base.sides[side].host->user = search;
        search->base.sides[side].host->after = after;
    }
}

void alb_search_txn_close(struct alb_search_txn *search)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        alb_search_txn_destroy_memory(search, side);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES && search->is_durable; side++)
        alb_search_store_fini(&search->sides[side].store);
    alb_search_close(&search->base);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        free(search->sides[side].words);
        free(search->sides[side].scratch);
    }
    alb_model_txn_fini(&search->model);
    free(search->works);
}
