// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/path_reported.h"

#include <stdlib.h>

struct alb_paths_out *path_reported_new(uint32_t count)
{
    struct alb_paths_out *paths = malloc(alb_paths_out_bytes(count));
    assert_non_null(paths);
    alb_paths_out_init(paths, count, 0);
    return paths;
}

void path_reported(struct alb_paths_out *paths, uint8_t path, uint32_t sent, uint32_t lost, alb_time now)
{
    struct alb_path_out *out = &paths->path[path];
    for (uint32_t i = 0; i < sent; i++)
        alb_path_sent(paths, path, 0, now);
    struct alb_csa_path_entry entry = {
        .path = path,
        .settled = out->next,
        .received = out->received_seen + sent - lost,
        .echo = (uint32_t)now,
        .delay_ns = UINT32_MAX,
    };
    alb_path_heard(paths, &alb_path_adaptive, &entry, now);
}

void path_reported_rtt(struct alb_paths_out *paths, uint32_t first, uint32_t past, uint32_t rtt_ns)
{
    for (uint32_t p = first; p < past; p++)
        alb_path_set_recent_ns(paths, alb_path_pace(paths, p), rtt_ns);
}

void path_reported_inflight(struct alb_paths_out *paths, uint8_t path, uint32_t bytes)
{
    alb_path_done(paths, path, alb_path_load(paths, path)->inflight_bytes);
    alb_path_charge(paths, path, bytes);
}

void path_reported_recount(const struct alb_paths_out *paths)
{
    uint32_t loaded = 0, paced = 0, good = 0;
    for (uint32_t p = 0; p < paths->count; p++) {
        const struct alb_path_pace *pace = alb_path_pace(paths, p);
        loaded += alb_path_load(paths, p)->inflight_bytes > 0;
        paced += pace && pace->recent_ns > 0;
        good += alb_path_load(paths, p)->state == ALB_PATH_GOOD;
    }
    assert_int_equal(paths->loaded, loaded);
    assert_true(paths->is_paced || paced == 0);
    assert_int_equal(paths->good, good);
}
