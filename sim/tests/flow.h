// SPDX-License-Identifier: BSD-2-Clause
// A flow of WRITEs from one host to another: so many of them are always posted, and what has completed is posted anew.
#pragma once

#include "sim/host.h"

struct flow {
    struct alb_sim_host *host; // its hooks are the flow's
    struct alb_qp *qp;
    struct alb_cq *cq; // nothing else completes there
    uint64_t from, to; // addresses here and at the peer, the same for every WRITE
    uint32_t lkey, rkey;
    uint32_t message_bytes, depth;
    uint64_t end_bytes; // nothing more is posted then; UINT64_MAX: before flow_stop
    uint64_t posted_bytes, done_bytes;
};

// Fills in what has been asked for and begins.
void flow_start(struct flow *flow);
void flow_stop(struct flow *flow);
static inline bool flow_is_done(const struct flow *flow)
{
    return flow->done_bytes == flow->end_bytes;
}
