// SPDX-License-Identifier: BSD-2-Clause
// Path policy "spray": bursts take all paths in turn, whatever becomes of them (packet spraying as in Dixit et al., "On
// the impact of packet spraying in data center networks", INFOCOM 2013, but round robin and by burst).
#include "engine/csa_path.h"

static uint16_t pick(struct alb_paths_out *paths, uint32_t flow_hash, uint32_t bytes, alb_time now)
{
    return (uint16_t)((paths->current + 1u) % paths->count);
}

const struct alb_path_ops alb_path_spray = {
    .name = "spray",
    .pick = pick,
};
