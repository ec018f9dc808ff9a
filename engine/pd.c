// SPDX-License-Identifier: BSD-2-Clause
// Protection domains, and the address handles that belong to them.
#include "engine/impl.h"

#include <errno.h>

int alb_pd_create(struct alb_engine *engine, struct alb_pd **out)
{
    if (engine->pd_count == engine->config.pd_max)
        return ENOMEM;
    struct alb_pd *pd = alb_engine_get_memory(engine, sizeof(*pd));
    if (!pd)
        return ENOMEM;
    pd->engine = engine;
    engine->pd_count++;
    *out = pd;
    return 0;
}

int alb_pd_destroy(struct alb_pd *pd)
{
    struct alb_engine *engine = pd->engine;
    if (pd->refs > 0)
        return EBUSY;
    alb_engine_put_memory(engine, pd, sizeof(*pd));
    engine->pd_count--;
    return 0;
}

int alb_ah_create(struct alb_pd *pd, const struct alb_av *av, struct alb_ah **out)
{
    struct alb_engine *engine = pd->engine;
    if (engine->ah_count == engine->config.ah_max)
        return ENOMEM;
    struct alb_ah *ah = alb_engine_get_memory(engine, sizeof(*ah));
    if (!ah)
        return ENOMEM;
    ah->pd = pd;
    ah->av = *av;
    pd->refs++;
    engine->ah_count++;
    *out = ah;
    return 0;
}

int alb_ah_destroy(struct alb_ah *ah)
{
    struct alb_engine *engine = ah->pd->engine;
    ah->pd->refs--;
    alb_engine_put_memory(engine, ah, sizeof(*ah));
    engine->ah_count--;
    return 0;
}

const struct alb_av *alb_ah_av(const struct alb_ah *ah)
{
    return &ah->av;
}
