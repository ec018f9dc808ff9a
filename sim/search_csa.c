// SPDX-License-Identifier: BSD-2-Clause
// What a search for CSA draws besides: policies, paths, lanes between the hosts, partitions and restarts.
#include "sim/search_world.h"

#define SLOW_BITS_PER_S 1000000000ull

enum {
    PATIENCE = 4,
};

static const char *draw_policy(struct alb_search *search, enum alb_policy policy)
{
    uint32_t count = 0;
    while (alb_engine_policy_name("csa", policy, count))
        count++;
    // The first one is the default, and gets half of the tries.
    uint32_t index = alb_search_percent(search, 50) ? 0 : alb_search_below(search, count);
    return alb_engine_policy_name("csa", policy, index);
}

static void draw_engine(struct alb_search *search, struct alb_engine_config *config, uint32_t path_max)
{
    struct alb_engine_config drawn = *config;
    int error = alb_engine_config_transport(config, "csa");
    alb_assert(error == 0);
    if (alb_search_percent(search, 50)) { // small windows
        config->window_min_bytes = drawn.window_min_bytes;
        config->window_start_bytes = drawn.window_start_bytes;
        config->window_max_bytes = drawn.window_max_bytes;
    }
    config->loss = draw_policy(search, ALB_POLICY_LOSS);
    config->congestion = draw_policy(search, ALB_POLICY_CONGESTION);
    config->path = draw_policy(search, ALB_POLICY_PATH);
    config->credit = draw_policy(search, ALB_POLICY_CREDIT);
    config->path_max = path_max;
    config->csa_pool_bytes = 16384u << alb_search_below(search, 6);
    config->csa_early_bytes_max = alb_search_below(search, config->csa_pool_bytes);
    config->csa_window_segments = 4u << alb_search_below(search, 8);
}

// How long packets may be.
static void draw_payload(struct alb_search *search, struct alb_sim_pair_config *config)
{
    uint32_t most = ((const uint32_t[]){1472, 4200, 8972, 65507})[alb_search_below(search, 4)];
    if (search->is_short && most > 1472) // so that messages have several segments
        most = 548;
    config->packet_bytes_max = ALB_MAX(most, 8192u);
    for (uint32_t side = 0; side < ALB_SIM_SIDES; side++)
        config->out[side].payload_bytes_max = most;
    search->path_payload_max = most;
}

// Lanes of different length, so that paths overtake each other.
static void draw_lanes(struct alb_search *search, struct alb_sim_pair_config *config)
{
    config->lane_count = 1 + alb_search_below(search, 4);
    config->spread = alb_search_percent(search, 50) ? ALB_SIM_SPREAD_HASH : ALB_SIM_SPREAD_EXACT;
    for (uint32_t side = 0; side < ALB_SIM_SIDES; side++)
        for (uint32_t i = 0; i < config->lane_count; i++) {
            struct alb_sim_link_config *lane = &config->lanes[side][i];
            lane->delay = ALB_SIM_NS(alb_search_below(search, 20000));
            if (alb_search_percent(search, 30))
                lane->bits_per_s = 100000000ull * (1 + alb_search_below(search, 100));
            if (lane->bits_per_s && lane->bits_per_s < SLOW_BITS_PER_S)
                search->patience = PATIENCE;
            if (lane->bits_per_s && alb_search_percent(search, 30))
                lane->queue_bytes_max = 16384 + alb_search_below(search, 65536);
        }
    search->may_duplicate = true; // what is sent again by another lane may come after the first copy
}

void alb_search_draw_csa(struct alb_search *search, struct alb_sim_pair_config *config)
{
    uint32_t path_max = ((const uint32_t[]){1, 1, 2, 4, 16})[alb_search_below(search, 5)];
    for (uint32_t side = 0; side < ALB_SIM_SIDES; side++) {
        draw_engine(search, &config->host[side].engine, path_max);
        config->host[side].engine.sends_bursts = config->host[side].burst_segments_max > 1;
    }
    draw_payload(search, config);
    if (alb_search_percent(search, 50))
        draw_lanes(search, config);
    search->has_partitions = alb_search_percent(search, 15);
    search->has_restarts = alb_search_percent(search, 15);
    search->comes_back = search->has_restarts && alb_prng_below(&search->more, 2) == 1;
    search->may_duplicate |= search->comes_back;
    search->may_lose_much |= search->has_partitions;
}
