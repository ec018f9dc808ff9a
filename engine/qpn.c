// SPDX-License-Identifier: BSD-2-Clause
#include "engine/qpn.h"

#include "engine/impl.h"

#include <errno.h>

int alb_qpn_init(struct alb_engine *engine)
{
    struct alb_qpn_rest *rest = &engine->qpn_rest;
    rest->capacity = ALB_MIN(engine->config.qp_max / 4, (uint32_t)ALB_QPN_REST_MAX);
    if (rest->capacity == 0)
        return 0;
    rest->indexes = alb_engine_get_memory(engine, rest->capacity * sizeof(*rest->indexes));
    return rest->indexes ? 0 : ENOMEM;
}

void alb_qpn_fini(struct alb_engine *engine)
{
    struct alb_qpn_rest *rest = &engine->qpn_rest;
    alb_engine_put_memory(engine, rest->indexes, rest->capacity * sizeof(*rest->indexes));
}

void alb_qpn_retire(struct alb_engine *engine, uint32_t index)
{
    struct alb_qpn_rest *rest = &engine->qpn_rest;
    if (rest->capacity == 0)
        return;
    if (rest->count == rest->capacity) {
        rest->oldest = (rest->oldest + 1) % rest->capacity;
        rest->count--;
    }
    rest->indexes[(rest->oldest + rest->count) % rest->capacity] = (uint16_t)index;
    rest->count++;
}

static bool rests(const struct alb_qpn_rest *rest, uint32_t index)
{
    for (uint32_t i = 0; i < rest->count; i++)
        if (rest->indexes[(rest->oldest + i) % rest->capacity] == index)
            return true;
    return false;
}

// No queue pair has that index yet, and may have it.
static bool is_free(const struct alb_engine *engine, uint32_t index)
{
    alb_qpn qpn = (uint32_t)engine->config.slot << 16 | index;
    return index < engine->config.qp_max && !engine->qps[index] && qpn != ALB_MULTICAST_QPN;
}

static uint32_t pick_rested(const struct alb_engine *engine)
{
    const struct alb_qpn_rest *rest = &engine->qpn_rest;
    for (uint32_t i = 0; i < rest->count; i++) {
        uint32_t index = rest->indexes[(rest->oldest + i) % rest->capacity];
        if (index >= ALB_QPN_RESERVED && is_free(engine, index))
            return index;
    }
    return 0;
}

uint32_t alb_qpn_pick(struct alb_engine *engine, alb_qpn wanted)
{
    if (wanted) {
        uint32_t index = wanted & 0xffff;
        return wanted >> 16 == engine->config.slot && is_free(engine, index) ? index : 0;
    }
    uint32_t count = engine->config.qp_max - ALB_QPN_RESERVED;
    uint32_t start = alb_rng_below(&engine->rng, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = ALB_QPN_RESERVED + (start + i) % count;
        if (is_free(engine, index) && !rests(&engine->qpn_rest, index))
            return index;
    }
    return pick_rested(engine);
}
