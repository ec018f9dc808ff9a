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
        alb_path_pace(paths, p)->recent_ns = rtt_ns;
}
