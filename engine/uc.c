// SPDX-License-Identifier: BSD-2-Clause
// Unreliable connected service (9.8.2): messages in packets with PSNs, nothing acknowledged. A message with a gap is
// lost whole.
#include "engine/impl.h"
#include "engine/segmenter.h"
#include "engine/unreliable.h"

static void fill(struct alb_qp *qp, const struct alb_send_wqe *wqe, uint32_t k, struct alb_roce *roce,
                 struct alb_flow *flow)
{
    alb_segmenter_header(qp, wqe, ALB_UC_SEND_FIRST, k, roce);
    *flow = qp->flow;
}

static int create(struct alb_qp *qp)
{
    return alb_unreliable_create(qp, sizeof(struct alb_unreliable), fill);
}

static int modify(struct alb_qp *qp, uint32_t mask, enum alb_qp_state next)
{
    struct alb_unreliable *u = alb_unreliable_of(qp);
    if (mask & ALB_QP_PATH_MTU)
        u->mtu_bytes = qp->attr.path_mtu_bytes;
    if (mask & ALB_QP_RQ_PSN)
        u->expected = qp->attr.rq_psn;
    if (mask & ALB_QP_SQ_PSN)
        u->next = qp->attr.sq_psn;
    return 0;
}

// Whatever is wrong, the message is dropped without a word and the next First or Only begins afresh. A receive it had
// taken serves the next message.
static enum alb_drop lose(struct alb_unreliable *u, enum alb_drop drop)
{
    u->is_lost = true;
    alb_assembly_abandon(&u->assembly);
    return drop;
}

static enum alb_drop rx(struct alb_qp *qp, const struct alb_packet *packet, alb_time now)
{
    struct alb_unreliable *u = alb_unreliable_of(qp);
    if (packet->info->service != ALB_SERVICE_UC)
        return ALB_DROP_BAD_SERVICE;
    if (alb_qp_state_of(qp) == ALB_QPS_ERR)
        return ALB_DROP_WRONG_QP_STATE;
    if (!alb_addr_equals(&packet->datagram->peer.addr, &qp->flow.peer.addr))
        return ALB_DROP_WRONG_PEER;
    if (!alb_addr_equals(&packet->datagram->local.addr, &qp->flow.local.addr))
        return ALB_DROP_WRONG_LOCAL;
    if (!qp->is_established) {
        qp->is_established = true;
        alb_event_raise(qp->engine, &qp->event, ALB_EVENT_COMM_EST);
    }
    bool is_gap = packet->roce.psn != u->expected;
    bool begins = packet->info->flags & ALB_OPCODE_FIRST;
    u->expected = alb_psn_next(packet->roce.psn);
    if (is_gap) {
        alb_qp_count(qp, ALB_STAT_out_of_seq_request, 1);
        lose(u, ALB_DROP_OUT_OF_SEQUENCE);
    }
    if (begins) { // also one that comes while another message was in progress: that one has lost its end
        u->is_lost = false;
        alb_assembly_abandon(&u->assembly);
    }
    if (u->is_lost)
        return ALB_DROP_OUT_OF_SEQUENCE;
    enum alb_outcome outcome = alb_assembly_add(qp, &u->assembly, packet, now);
    if (outcome == ALB_OUTCOME_OPERATIONAL)
        return alb_unreliable_break_receive(qp, now);
    return outcome == ALB_OUTCOME_OK ? ALB_DROP_NONE : lose(u, alb_unreliable_drop_of(outcome));
}

const struct alb_delivery_ops alb_uc_ops = {
    .name = "uc",
    .create = create,
    .destroy = alb_unreliable_destroy,
    .modify = modify,
    .on_state = alb_unreliable_on_state,
    .work = alb_unreliable_work,
    .rx = rx,
    .is_quiet = alb_unreliable_is_quiet,
    .query = alb_unreliable_query,
};
