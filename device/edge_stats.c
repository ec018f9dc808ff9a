// SPDX-License-Identifier: BSD-2-Clause
// Names of the edge's counters.
#include "device/edge_stats.h"

static const struct {
    const char *name;
    const char *text;
} table[ALB_EDGE_COUNT] = {
#define X(name, text) {#name, text},
    ALB_EDGE_STATS(X)
#undef X
};

const char *alb_edge_stat_name(enum alb_edge_stat stat)
{
    alb_assert((unsigned)stat < ALB_EDGE_COUNT);
    return table[stat].name;
}

const char *alb_edge_stat_text(enum alb_edge_stat stat)
{
    alb_assert((unsigned)stat < ALB_EDGE_COUNT);
    return table[stat].text;
}
