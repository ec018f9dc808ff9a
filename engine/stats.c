// SPDX-License-Identifier: BSD-2-Clause
#include "engine/stats.h"

#include "engine/csa_path.h"

const char *alb_stat_name(enum alb_stat stat)
{
    static const char *const names[] = {
#define X(name, text) [ALB_STAT_##name] = #name,
        ALB_STATS(X)
#undef X
    };
    return stat < ALB_STAT_COUNT ? names[stat] : "invalid";
}

const char *alb_stat_text(enum alb_stat stat)
{
    static const char *const texts[] = {
#define X(name, text) [ALB_STAT_##name] = text,
        ALB_STATS(X)
#undef X
    };
    return stat < ALB_STAT_COUNT ? texts[stat] : "invalid";
}

const char *alb_path_state_name(uint8_t state)
{
    static const char *const names[] = {
        [ALB_PATH_GOOD] = "good",
        [ALB_PATH_LEFT] = "left",
        [ALB_PATH_TRYING] = "trying",
    };
    return state < ALB_COUNT(names) ? names[state] : "?";
}

const char *alb_stage_gap_name(uint32_t gap)
{
    static const char *const names[ALB_STAGE_GAPS] = {
        "submitted_placed",        "placed_transmitted", "transmitted_remote_placed",
        "remote_placed_delivered", "delivered_visible",  "visible_agreed",
    };
    return gap < ALB_STAGE_GAPS ? names[gap] : "?";
}
