// SPDX-License-Identifier: BSD-2-Clause
// Path policies. "single" sends everything on path 0: RoCEv2 peers expect the packets of a queue pair in order.
#include "engine/policy.h"

static uint16_t choose(uint32_t flow_hash)
{
    return 0;
}

const struct alb_path_ops alb_path_single = {
    .name = "single",
    .choose = choose,
};
