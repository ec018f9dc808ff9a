// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_snapshot.h"

#include "engine/impl.h"

static uint64_t limit_of(const struct alb_engine *engine)
{
    const struct alb_engine_config *config = &engine->config;
    return ALB_MIN(config->reflect_snapshot_bytes_max, config->csa_pool_bytes / 2);
}

// Whole blocks count, since that is what the pool is short of.
static uint64_t block_bytes(uint32_t bytes)
{
    uint64_t block = ALB_BUDDY_BLOCK_BYTES_MIN;
    while (block < bytes)
        block *= 2;
    return block;
}

static enum alb_outcome copy(struct alb_csa *csa, const uint8_t *bytes, struct alb_csa_answer *answer)
{
    struct alb_engine *engine = csa->qp->engine;
    uint64_t block = block_bytes(answer->length), limit = limit_of(engine);
    if (block > limit)
        return ALB_OUTCOME_TOO_LARGE;
    if (engine->csa->snapshot_bytes + block > limit)
        return ALB_OUTCOME_RNR;
    answer->snapshot = alb_buddy_get(&engine->csa->pool, answer->length);
    if (!answer->snapshot)
        return ALB_OUTCOME_RNR;
    memcpy(answer->snapshot, bytes, answer->length);
    engine->csa->snapshot_bytes += block;
    alb_qp_count(csa->qp, ALB_STAT_read_snapshots, 1);
    return ALB_OUTCOME_OK;
}

enum alb_outcome alb_csa_snapshot_take(struct alb_csa *csa, struct alb_csa_answer *answer)
{
    const uint8_t *bytes;
    bool is_transactional;
    enum alb_outcome outcome =
        alb_inbound_begin_read(csa->qp, answer->rkey, answer->va, answer->length, &bytes, &is_transactional);
    if (outcome == ALB_OUTCOME_OK && is_transactional)
        outcome = copy(csa, bytes, answer);
    if (outcome == ALB_OUTCOME_RNR)
        alb_qp_count(csa->qp, ALB_STAT_read_snapshot_waits, 1);
    return outcome;
}

void alb_csa_snapshot_put(struct alb_csa *csa, struct alb_csa_answer *answer)
{
    struct alb_csa_engine *engine = csa->qp->engine->csa;
    if (answer->op != ALB_CSA_READ || !answer->snapshot)
        return;
    alb_buddy_put(&engine->pool, answer->snapshot, answer->length);
    engine->snapshot_bytes -= block_bytes(answer->length);
    answer->snapshot = NULL;
}
