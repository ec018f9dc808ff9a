// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_snapshot.h"

#include "engine/impl.h"
#include "engine/region_version.h"

// All queue pairs are looked through for it, so not for each READ that finds no room.
#define ROOM_NS ALB_NS_PER_MS

#define RESERVE_PART 4 // of the limit, what there is beyond it for peers that find it reached

static uint64_t limit_of(const struct alb_engine *engine)
{
    const struct alb_engine_config *config = &engine->config;
    return ALB_MIN(config->reflect_snapshot_bytes_max, config->csa_pool_bytes / 2);
}

// Takes the copies that are kept for requesters which have been silent for so long that nothing goes to them any more.
static void make_room(struct alb_engine *engine)
{
    uint32_t left = engine->qp_count;
    if (engine->now < engine->csa->room_made_at + ROOM_NS)
        return;
    engine->csa->room_made_at = engine->now;
    for (uint32_t i = 0; left > 0 && i < engine->config.qp_max; i++) {
        struct alb_qp *qp = engine->qps[i];
        left -= qp != NULL;
        if (qp && qp->delivery == &alb_csa_ops && alb_csa_has_given_up_answers(alb_csa_of(qp)))
            alb_csa_forget_snapshots(alb_csa_of(qp));
    }
}

// One peer may have all up to the limit, for as long as it takes to acknowledge it. Of what is beyond that each may
// have as much as it leaves, so that there is always some for the next one.
static bool may_have(const struct alb_csa *csa, uint64_t bytes)
{
    const struct alb_engine *engine = csa->qp->engine;
    uint64_t limit = limit_of(engine), all = engine->csa->snapshot_bytes + bytes;
    uint64_t own = csa->assoc->snapshot_bytes + bytes;
    return all <= limit || all + own <= limit + limit / RESERVE_PART;
}

// Whole blocks count, since that is what the pool is short of.
static uint8_t *try_to_get(struct alb_csa *csa, uint32_t bytes)
{
    return may_have(csa, alb_buddy_block_bytes(bytes)) ? alb_buddy_get(&csa->qp->engine->csa->pool, bytes) : NULL;
}

static uint8_t *get(struct alb_csa *csa, uint32_t bytes)
{
    uint8_t *snapshot = try_to_get(csa, bytes);
    if (snapshot)
        return snapshot;
    make_room(csa->qp->engine);
    return try_to_get(csa, bytes);
}

static void count(struct alb_csa *csa, uint32_t bytes)
{
    csa->qp->engine->csa->snapshot_bytes += alb_buddy_block_bytes(bytes);
    csa->assoc->snapshot_bytes += (uint32_t)alb_buddy_block_bytes(bytes);
}

static void discount(struct alb_csa *csa, uint32_t bytes)
{
    csa->qp->engine->csa->snapshot_bytes -= alb_buddy_block_bytes(bytes);
    csa->assoc->snapshot_bytes -= (uint32_t)alb_buddy_block_bytes(bytes);
}

// The range may have millions of version words, and its length is the peer's choice: they are looked through last.
static enum alb_outcome copy(struct alb_csa *csa, struct alb_region *region, const uint8_t *bytes,
                             struct alb_csa_answer *answer)
{
    struct alb_engine *engine = csa->qp->engine;
    if (alb_buddy_block_bytes(answer->length) > limit_of(engine))
        return ALB_OUTCOME_TOO_LARGE;
    uint8_t *snapshot = get(csa, answer->length);
    if (!snapshot)
        return ALB_OUTCOME_RNR;
    if (alb_region_holds_readers(region, answer->va, answer->length)) {
        alb_buddy_put(&engine->csa->pool, snapshot, answer->length);
        return ALB_OUTCOME_RNR;
    }
    memcpy(snapshot, bytes, answer->length);
    answer->snapshot = snapshot;
    count(csa, answer->length);
    alb_qp_count(csa->qp, ALB_STAT_read_snapshots, 1);
    return ALB_OUTCOME_OK;
}

enum alb_outcome alb_csa_snapshot_take(struct alb_csa *csa, struct alb_csa_answer *answer)
{
    const uint8_t *bytes;
    struct alb_region *transactional;
    enum alb_outcome outcome =
        alb_inbound_begin_read(csa->qp, answer->rkey, answer->va, answer->length, &bytes, &transactional);
    if (outcome == ALB_OUTCOME_OK && transactional)
        outcome = copy(csa, transactional, bytes, answer);
    if (outcome == ALB_OUTCOME_RNR)
        alb_qp_count(csa->qp, ALB_STAT_read_snapshot_waits, 1);
    return outcome;
}

void alb_csa_snapshot_put(struct alb_csa *csa, struct alb_csa_answer *answer)
{
    if (answer->op != ALB_CSA_READ || !answer->snapshot)
        return;
    alb_buddy_put(&csa->qp->engine->csa->pool, answer->snapshot, answer->length);
    discount(csa, answer->length);
    answer->snapshot = NULL;
}
