// SPDX-License-Identifier: BSD-2-Clause
// Path policy "single": a flow stays on one path, whatever becomes of it. RoCEv2 peers expect the packets of a queue
// pair in order, so those have path 0; on the paths of an association each flow has the one that its hash names, as
// ECMP places flows (RFC 2992).
#include "engine/csa_path.h"

static uint16_t choose(uint32_t flow_hash)
{
    return 0;
}

static uint16_t pick(struct alb_paths_out *paths, uint32_t flow_hash, uint32_t bytes, alb_time now)
{
    return (uint16_t)(flow_hash % paths->count);
}

const struct alb_path_ops alb_path_single = {
    .name = "single",
    .choose = choose,
    .pick = pick,
};
