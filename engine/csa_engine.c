// SPDX-License-Identifier: BSD-2-Clause
// What an engine of this transport has once.
#include "engine/impl.h"

#include <errno.h>

uint32_t alb_csa_epoch_for(const struct alb_csa_engine *csa, const struct alb_addr *local, const struct alb_addr *peer,
                           uint8_t slot)
{
    const struct {
        struct alb_addr peer, local;
        uint32_t slot, life;
    } parties = {*peer, *local, slot, csa->life};
    _Static_assert(sizeof(parties) == 40, "no padding, whose bytes would be undefined");
    uint32_t epoch = (uint32_t)alb_siphash13(&csa->hash_key, &parties, sizeof(parties));
    return epoch ? epoch : 1;
}

int alb_csa_engine_create(struct alb_engine *engine)
{
    const struct alb_engine_config *config = &engine->config;
    const struct alb_credit_ops *credit = alb_credit_find(config->credit);
    struct alb_csa_loss loss;
    if (!credit || !alb_csa_loss_parse(config->loss, &loss))
        return EINVAL;
    struct alb_csa_engine *csa = alb_engine_get_memory(engine, sizeof(*csa));
    if (!csa)
        return ENOMEM;
    engine->csa = csa;
    csa->engine = engine;
    csa->loss = loss;
    alb_credit_pool_init(&csa->credit, credit, config);
    if (credit->prefers_short)
        engine->scheduler.compared = ALB_SCHEDULER_COMPARED;
    alb_list_init(&csa->live);
    alb_list_init(&csa->starved);
    alb_deadline_init(&csa->sweep_timer, alb_assoc_on_sweep);
    alb_list_init(&csa->expect_groups);
    alb_csa_cookies_init(&csa->cookies, &engine->rng, engine->now);
    alb_csa_replies_init(&csa->replies);
    csa->life = (uint32_t)alb_rng_u64(&engine->rng);
    alb_rng_fill(&engine->rng, &csa->hash_key, sizeof(csa->hash_key));
    csa->bucket_count = 1;
    while (csa->bucket_count < config->peer_max)
        csa->bucket_count *= 2;
    csa->assocs = alb_engine_get_memory(engine, config->peer_max * sizeof(*csa->assocs));
    csa->buckets = alb_engine_get_memory(engine, csa->bucket_count * sizeof(*csa->buckets));
    csa->arena = alb_engine_get_memory(engine, config->csa_pool_bytes);
    csa->bookkeeping = alb_engine_get_memory(engine, alb_buddy_bookkeeping_bytes(config->csa_pool_bytes));
    if (!csa->assocs || !csa->buckets || !csa->arena || !csa->bookkeeping) {
        alb_csa_engine_destroy(engine);
        return ENOMEM;
    }
    alb_buddy_init(&csa->pool, csa->arena, config->csa_pool_bytes, csa->bookkeeping);
    alb_rests_init(csa, config);
    return 0;
}

void alb_csa_engine_destroy(struct alb_engine *engine)
{
    const struct alb_engine_config *config = &engine->config;
    struct alb_csa_engine *csa = engine->csa;
    if (!csa)
        return;
    alb_engine_put_memory(engine, csa->bookkeeping, alb_buddy_bookkeeping_bytes(config->csa_pool_bytes));
    alb_engine_put_memory(engine, csa->arena, config->csa_pool_bytes);
    alb_engine_put_memory(engine, csa->buckets, csa->bucket_count * sizeof(*csa->buckets));
    alb_engine_put_memory(engine, csa->assocs, config->peer_max * sizeof(*csa->assocs));
    alb_engine_put_memory(engine, csa, sizeof(*csa));
    engine->csa = NULL;
}
