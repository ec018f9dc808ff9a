// SPDX-License-Identifier: BSD-2-Clause
// What associations show of themselves in the driver's memory (struct alb_peer_stats): written by the sweep, so that no
// packet pays for it, and where one begins, ends, or goes to rest.
#include "engine/impl.h"

_Static_assert(ALB_PATHS_MAX <= ALB_PATH_STATS_MAX, "every path has an entry");

// NULL: there are more associations than entries.
static struct alb_peer_stats *stats_of(const struct alb_engine *engine, const struct alb_assoc *assoc)
{
    size_t index = (size_t)(assoc - engine->csa->assocs);
    return engine->config.peer_stats && index < engine->config.peer_stats_max ? &engine->config.peer_stats[index]
                                                                              : NULL;
}

static void show_path(const struct alb_paths_out *paths, uint32_t i, struct alb_path_stats *stats)
{
    const struct alb_path_out *path = &paths->path[i];
    const struct alb_path_load *load = alb_path_load(paths, i);
    *stats = (struct alb_path_stats){
        .rtt_ns = path->rtt_ns,
        .rtt_min_ns = path->rtt_min_ns,
        .inflight_bytes = load->inflight_bytes,
        .arrived_pkts = path->received_seen,
        .marked_pkts = path->marked_seen,
        .recent_pkts = path->recent_sent,
        .recent_lost = path->recent_lost,
        .state = load->state,
    };
}

static void show_live(const struct alb_assoc_live *live, struct alb_peer_stats *stats)
{
    stats->rtt_ns = live->rtt_ns;
    stats->rtt_min_ns = live->rtt_min_ns;
    stats->window_bytes = live->congestion.window_bytes;
    stats->credit_bytes = live->credit_bytes;
    stats->rate_bytes_per_s = alb_congestion_rate_bytes_per_s(live->engine->congestion, &live->congestion);
    stats->inflight_bytes = live->inflight_bytes;
    stats->path_count = live->paths->count;
    for (uint32_t i = 0; i < live->paths->count; i++)
        show_path(live->paths, i, &stats->paths[i]);
}

void alb_assoc_show(const struct alb_engine *engine, const struct alb_assoc *assoc)
{
    struct alb_peer_stats *stats = stats_of(engine, assoc);
    if (!stats)
        return;
    memcpy(stats->peer, assoc->peer.bytes, sizeof(stats->peer));
    memcpy(stats->local, engine->csa->locals[assoc->local].bytes, sizeof(stats->local));
    stats->slot = assoc->slot;
    stats->epoch = assoc->peer_epoch;
    stats->payload_max = assoc->payload_max;
    stats->is_awake = assoc->live != NULL;
    if (assoc->live)
        show_live(assoc->live, stats);
    stats->is_known = true;
}

void alb_assoc_hide(const struct alb_engine *engine, const struct alb_assoc *assoc)
{
    struct alb_peer_stats *stats = stats_of(engine, assoc);
    if (stats)
        memset(stats, 0, sizeof(*stats));
}
