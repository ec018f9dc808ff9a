// SPDX-License-Identifier: BSD-2-Clause
#include "engine/stats.h"

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
