// SPDX-License-Identifier: BSD-2-Clause
// The paths of an association: the table of the incoming ones, as large as the peer's numbers ask for, and what follows
// when an outgoing one is silent.
#include "engine/impl.h"

void alb_assoc_note_path_in(struct alb_assoc_live *live, uint32_t path)
{
    const struct alb_path_in *in = &live->paths_in[path];
    alb_path_set_put(&live->paths_in_gaps, path, in->ahead > 0);
    alb_path_set_put(&live->paths_in_news, path, alb_path_in_has_news(in));
}

struct alb_path_in *alb_assoc_path_in(struct alb_assoc_live *live, uint8_t path)
{
    if (alb_likely(path < live->paths_in_count))
        return &live->paths_in[path];
    if (path >= ALB_PATHS_MAX)
        return NULL;
    struct alb_buddy *pool = &live->engine->csa->pool;
    uint32_t count = ALB_MAX(live->paths_in_count, 1u);
    while (count <= path)
        count *= 2;
    struct alb_path_in *paths = alb_buddy_get(pool, count * sizeof(*paths));
    if (!paths)
        return NULL;
    memset(paths, 0, count * sizeof(*paths));
    if (live->paths_in) {
        memcpy(paths, live->paths_in, live->paths_in_count * sizeof(*paths));
        alb_buddy_put(pool, live->paths_in, live->paths_in_count * sizeof(*paths));
    }
    live->paths_in = paths;
    live->paths_in_count = count;
    return &paths[path];
}

// Which streams used it is not recorded.
static void lose_path(struct alb_assoc_live *live, uint16_t path, alb_psn from, alb_time now)
{
    struct alb_engine *engine = live->engine;
    uint32_t left = engine->qp_count;
    for (uint32_t i = 0; left > 0 && i < engine->config.qp_max; i++) {
        const struct alb_qp *qp = engine->qps[i];
        left -= qp != NULL;
        if (!qp || qp->delivery != &alb_csa_ops || alb_csa_of(qp)->assoc != live->assoc)
            continue;
        alb_stream_out_lose_path(&alb_csa_of(qp)->requests, path, from, now);
        alb_stream_out_lose_path(&alb_csa_of(qp)->responses, path, from, now);
    }
}

void alb_assoc_judge_paths(struct alb_assoc_live *live, const struct alb_path_scope *scope, alb_time now)
{
    struct alb_paths_out *paths = live->paths;
    struct alb_path_set silent;
    alb_psn settled[ALB_PATHS_MAX];
    if (alb_likely(!alb_paths_find_silent(paths, scope, &silent)))
        return;
    for (uint32_t i = alb_path_set_next(&silent, 0); i < ALB_PATHS_MAX; i = alb_path_set_next(&silent, i + 1)) {
        settled[i] = paths->path[i].settled;
        alb_path_silent(paths, live->engine->path, (uint16_t)i, now);
    }
    if (!live->engine->csa->loss.ops->reports_settled)
        return;
    for (uint32_t i = alb_path_set_next(&silent, 0); i < ALB_PATHS_MAX; i = alb_path_set_next(&silent, i + 1))
        lose_path(live, (uint16_t)i, settled[i], now);
}
