// SPDX-License-Identifier: BSD-2-Clause
// Congestion notification of RoCEv2 (InfiniBand specification, annex A17.9.3), for RC and XRC. Who receives a packet
// with an ECN mark notifies its sender, which slows down toward that peer; so often at most as DCQCN has it (dcqcn.h).
#include "engine/impl.h"
#include "engine/rc.h"

#define CNP_CLASS (48 << 2) // DSCP CS6, as NICs send it; not ECN-capable, since it is not to be marked in turn

static void slow_down(struct alb_rc *rc, alb_time now)
{
    struct alb_peer *peer = rc->qp->peer;
    alb_congestion_on_mark(rc->qp->engine->congestion, &peer->congestion, (uint32_t)peer->inflight_bytes, now);
}

void alb_rc_on_mark(struct alb_rc *rc, const struct alb_packet *packet, alb_time now)
{
    struct alb_engine *engine = rc->qp->engine;
    if (packet->payload_bytes == 0) // or two would notify each other without end
        return;
    if (packet->info->flags & ALB_OPCODE_RESPONSE) // of a READ, which our own window bounds
        slow_down(rc, now);
    if (alb_qp_state_of(rc->qp) == ALB_QPS_ERR || !alb_dcqcn_np_on_mark(&rc->np, &engine->config.dcqcn, now))
        return;
    rc->cnp_is_due = true;
    alb_scheduler_wake(&engine->scheduler, &rc->qp->source);
}

void alb_rc_send_cnp(struct alb_rc *rc, struct alb_tx_builder *builder)
{
    struct alb_flow flow = rc->qp->flow;
    struct alb_roce roce = {
        .opcode = ALB_CNP,
        .migreq = true,
        .becn = true,
        .pkey = ALB_PKEY_DEFAULT,
        .dest_qpn = rc->qp->attr.dest_qpn,
    };
    flow.traffic_class = CNP_CLASS;
    alb_tx_begin(builder, &flow, &roce, 0);
    alb_tx_end(builder);
    rc->cnp_is_due = false;
    alb_qp_count(rc->qp, ALB_STAT_np_cnp_sent, 1);
}

void alb_rc_on_cnp(struct alb_rc *rc, alb_time now)
{
    alb_qp_count(rc->qp, ALB_STAT_rp_cnp_handled, 1);
    slow_down(rc, now);
}
