// SPDX-License-Identifier: BSD-2-Clause
// Multicast groups: which queue pairs of UD get a copy of what comes in at a group's address (InfiniBand specification,
// volume 1, 10.5; RoCEv2 carries the group as the IP destination address).
#pragma once

#include "engine/qp.h"

struct alb_group {
    struct alb_addr addr;
    struct alb_list members; // struct alb_membership, never empty
    uint32_t member_count;
};

// One queue pair in one group.
struct alb_membership {
    struct alb_group *group;
    struct alb_qp *qp;
    struct alb_list in_group;
    struct alb_list in_qp;
};

// NULL if no queue pair is attached to it.
const struct alb_group *alb_group_find(const struct alb_engine *engine, const struct alb_addr *addr);
