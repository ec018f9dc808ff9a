// SPDX-License-Identifier: BSD-2-Clause
// UD over CSA: each datagram a frame, to the engine of the slot that its destination's number names. Groups are still
// reached by RoCE packets.
#include "engine/csa_loose.h"
#include "engine/impl.h"

void alb_csa_ud_parcel(const struct alb_unreliable *u, const struct alb_send_wqe *wqe, struct alb_csa_parcel *parcel)
{
    const struct alb_qp *qp = u->qp;
    const struct alb_av *av = &wqe->av;
    *parcel = (struct alb_csa_parcel){
        .type = ALB_CSA_DATAGRAM,
        .segment =
            {
                .op = wqe->opcode == ALB_WR_SEND_WITH_IMM ? ALB_CSA_SEND_IMM : ALB_CSA_SEND,
                .flags = wqe->flags & ALB_SEND_SOLICITED ? ALB_CSA_SOLICITED : 0,
                .dest_qpn = wqe->remote_qpn,
                .imm_be = wqe->imm_data,
                .qkey = alb_ud_qkey(qp, wqe),
                .src_qpn = qp->number,
            },
        .local = &av->local,
        .peer = &av->peer,
        .slot = (uint8_t)(wqe->remote_qpn >> 16),
        .traffic_class = av->traffic_class,
        .hop_limit = av->hop_limit,
        .payload_max = av->path_payload_max,
    };
}

enum alb_drop alb_csa_ud_rx(struct alb_csa_arrival *arrival, const struct alb_csa_segment *segment, alb_time now)
{
    struct alb_qp *qp = alb_engine_find_qp(arrival->engine, segment->dest_qpn);
    if (!qp)
        return ALB_DROP_UNKNOWN_QP;
    if (qp->delivery != &alb_csa_ud_ops)
        return ALB_DROP_BAD_SERVICE;
    const struct alb_ud_message message = {
        .datagram = arrival->datagram,
        .payload = segment->payload,
        .payload_bytes = segment->payload_bytes,
        .qkey = segment->qkey,
        .src_qpn = segment->src_qpn,
        .imm_be = segment->imm_be,
        .has_imm = segment->op == ALB_CSA_SEND_IMM,
        .solicited = segment->flags & ALB_CSA_SOLICITED,
    };
    alb_csa_count_received(qp, segment);
    alb_trace_add(arrival->engine, ALB_TRACE_receive, qp->number, arrival->header.sequence,
                  ALB_TRACE_CSA_OP(segment->op), segment->payload_bytes, now);
    return alb_ud_take(qp, &message, now);
}

static int create(struct alb_qp *qp)
{
    int error = alb_ud_ops.create(qp);
    qp->source.build = error ? qp->source.build : alb_csa_loose_build;
    return error;
}

static int modify(struct alb_qp *qp, uint32_t mask, enum alb_qp_state next)
{
    return alb_ud_ops.modify(qp, mask, next);
}

// A RoCE packet: those to a group are.
static enum alb_drop rx(struct alb_qp *qp, const struct alb_packet *packet, alb_time now)
{
    return alb_addr_is_multicast(&packet->datagram->local.addr) ? alb_ud_ops.rx(qp, packet, now) : ALB_DROP_BAD_SERVICE;
}

const struct alb_delivery_ops alb_csa_ud_ops = {
    .name = "csa-ud",
    .create = create,
    .destroy = alb_unreliable_destroy,
    .modify = modify,
    .on_state = alb_unreliable_on_state,
    .work = alb_unreliable_work,
    .rx = rx,
    .is_quiet = alb_unreliable_is_quiet,
    .query = alb_unreliable_query,
};
