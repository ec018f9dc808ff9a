// SPDX-License-Identifier: BSD-2-Clause
#include "flow.h"

#include "sim/network.h"

static void post(struct flow *flow)
{
    uint32_t length = (uint32_t)ALB_MIN(flow->message_bytes, flow->end_bytes - flow->posted_bytes);
    struct alb_sge sge = {flow->from, length, flow->lkey};
    struct alb_send_wr wr = {
        .wr_id = length,
        .opcode = ALB_WR_RDMA_WRITE,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = flow->to,
        .rkey = flow->rkey,
    };
    int error = alb_qp_send_stage(flow->qp, &wr);
    alb_assert(error == 0);
    flow->posted_bytes += length;
}

static void fill(struct flow *flow)
{
    uint64_t open_max = (uint64_t)flow->depth * flow->message_bytes;
    bool has_posted = false;
    while (flow->posted_bytes < flow->end_bytes && flow->posted_bytes - flow->done_bytes < open_max) {
        post(flow);
        has_posted = true;
    }
    if (!has_posted)
        return;
    alb_qp_send_commit(flow->qp);
    alb_engine_bell_ring(flow->qp);
    alb_sim_host_ring(flow->host);
}

static void go_on(struct alb_sim_host *host, alb_sim_time now)
{
    struct flow *flow = host->user;
    for (const struct alb_wc *wc; (wc = alb_cq_peek(flow->cq)); alb_cq_pop(flow->cq)) {
        alb_assert(wc->status == ALB_WC_SUCCESS);
        flow->done_bytes += wc->wr_id;
    }
    fill(flow);
}

void flow_start(struct flow *flow)
{
    flow->host->user = flow;
    flow->host->after = go_on;
    flow->posted_bytes = flow->done_bytes = 0;
    fill(flow);
}

void flow_stop(struct flow *flow)
{
    flow->end_bytes = ALB_MIN(flow->end_bytes, flow->posted_bytes);
}
