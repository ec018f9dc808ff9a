// SPDX-License-Identifier: BSD-2-Clause
// Congestion policies that nothing moves: "fixed" holds the largest window, "none" knows no bound.
#include "engine/engine.h"
#include "engine/policy.h"

static void fixed_init(struct alb_congestion *congestion, const struct alb_engine_config *config)
{
    *congestion = (struct alb_congestion){.config = config, .window_bytes = config->window_max_bytes};
}

static void none_init(struct alb_congestion *congestion, const struct alb_engine_config *config)
{
    *congestion = (struct alb_congestion){.config = config, .window_bytes = UINT32_MAX};
}

const struct alb_congestion_ops alb_congestion_fixed = {
    .name = "fixed",
    .init = fixed_init,
};

const struct alb_congestion_ops alb_congestion_none = {
    .name = "none",
    .init = none_init,
};
