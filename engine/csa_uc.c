// SPDX-License-Identifier: BSD-2-Clause
// UC over CSA: segments of an unacknowledged stream. A queue pair's packets keep to one path, so that they keep their
// order.
#include "engine/csa_cut.h"
#include "engine/csa_loose.h"
#include "engine/impl.h"

#include <errno.h>

// ---- sending --------------------------------------------------------------------------------------------------------

static void describe(const struct alb_qp *qp, const struct alb_send_wqe *wqe, struct alb_csa_segment *segment)
{
    static const uint8_t ops[] = {
        [ALB_WR_RDMA_WRITE] = ALB_CSA_WRITE,
        [ALB_WR_RDMA_WRITE_WITH_IMM] = ALB_CSA_WRITE_IMM,
        [ALB_WR_SEND] = ALB_CSA_SEND,
        [ALB_WR_SEND_WITH_IMM] = ALB_CSA_SEND_IMM,
    };
    *segment = (struct alb_csa_segment){
        .op = ops[wqe->opcode],
        .flags = ALB_CSA_UC,
        .dest_qpn = qp->attr.dest_qpn,
        .total_bytes = wqe->length,
        .imm_be = wqe->imm_data,
        .va = wqe->remote_addr,
        .rkey = wqe->rkey,
    };
}

void alb_csa_uc_control(const struct alb_unreliable *u, struct alb_csa_parcel *parcel)
{
    const struct alb_qp *qp = u->qp;
    *parcel = (struct alb_csa_parcel){
        .type = ALB_CSA_REQUEST,
        .local = &qp->flow.local.addr,
        .peer = &qp->flow.peer.addr,
        .slot = (uint8_t)(qp->attr.dest_qpn >> 16),
        .traffic_class = qp->flow.traffic_class,
        .hop_limit = qp->flow.hop_limit,
    };
}

void alb_csa_uc_parcel(const struct alb_unreliable *u, const struct alb_send_wqe *wqe, struct alb_csa_parcel *parcel)
{
    const struct alb_qp *qp = u->qp;
    alb_csa_uc_control(u, parcel);
    describe(qp, wqe, &parcel->segment);
    parcel->segment.psn = u->next;
    if (wqe->partial) {
        alb_csa_partial_describe(alb_csa_uc_of(qp), wqe, u->sent, &parcel->segment);
        return;
    }
    parcel->segment.index = u->sent;
    if (u->sent == wqe->packets - 1)
        parcel->segment.flags |=
            ALB_CSA_LAST |
            (wqe->flags & ALB_SEND_SOLICITED && wqe->opcode != ALB_WR_RDMA_WRITE ? ALB_CSA_SOLICITED : 0);
}

static uint32_t cut(const struct alb_qp *qp, const struct alb_send_wqe *wqe)
{
    struct alb_csa_uc *uc = alb_csa_uc_of(qp);
    struct alb_csa_segment segment;
    describe(qp, wqe, &segment);
    if (!wqe->partial)
        return alb_csa_cut(qp->engine, wqe->length, alb_csa_loose_payload(uc->assoc, &segment), 0);
    segment.op = ALB_CSA_PARTIAL_WRITE_IMM; // the longer one, so that a message is cut the same way again
    return alb_csa_partial_open(uc, wqe, alb_csa_loose_payload(uc->assoc, &segment));
}

static uint32_t skip(const struct alb_unreliable *u, const struct alb_send_wqe *wqe)
{
    return wqe->partial ? alb_csa_partial_skip(alb_csa_uc_of(u->qp), wqe, u->sent) : u->sent;
}

// ---- receiving ------------------------------------------------------------------------------------------------------

static bool is_known_op(uint8_t op)
{
    return op == ALB_CSA_SEND || op == ALB_CSA_SEND_IMM || op == ALB_CSA_WRITE || op == ALB_CSA_WRITE_IMM ||
           op == ALB_CSA_PARTIAL_WRITE || op == ALB_CSA_PARTIAL_WRITE_IMM;
}

static enum alb_drop check(const struct alb_csa_arrival *arrival, const struct alb_qp *qp,
                           const struct alb_csa_frame *frame)
{
    if (!qp)
        return ALB_DROP_UNKNOWN_QP;
    if (qp->delivery != &alb_csa_uc_ops || frame->type != ALB_CSA_REQUEST || !is_known_op(frame->segment.op) ||
        (frame->segment.flags & (ALB_CSA_UC | ALB_CSA_XRC)) != ALB_CSA_UC)
        return ALB_DROP_BAD_SERVICE;
    enum alb_qp_state state = alb_qp_state_of(qp);
    if (state < ALB_QPS_RTR || state == ALB_QPS_ERR)
        return ALB_DROP_WRONG_QP_STATE;
    return alb_csa_uc_of(qp)->assoc == arrival->assoc ? ALB_DROP_NONE : ALB_DROP_WRONG_PEER;
}

// The first message proves its sender for all of the association, as with RC. It may be lost, and nothing brings it
// again: what comes behind it is dropped until a cookie has proved the peer. Else anyone could write the peer's address
// into a packet, with a number that all that is genuine is behind.
static enum alb_drop admit(struct alb_csa_arrival *arrival, struct alb_csa_uc *uc,
                           const struct alb_csa_segment *segment)
{
    uint32_t epoch = arrival->header.source_epoch;
    if (alb_likely(uc->bound_epoch == epoch))
        return ALB_DROP_NONE;
    if (uc->bound_epoch != 0)
        return ALB_DROP_BAD_EPOCH;
    if (!arrival->is_proven) {
        alb_psn first = alb_psn_add(segment->psn, -(int32_t)segment->index);
        bool is_new = uc->in.first == uc->in.past && first == uc->u.qp->attr.rq_psn;
        if (!is_new || alb_csa_is_another_life(arrival))
            return ALB_DROP_NOT_PROVEN;
        arrival->live = alb_assoc_wake(arrival->engine, arrival->assoc);
        if (!arrival->live)
            return ALB_DROP_NO_RESOURCES;
        alb_csa_believe(arrival);
    }
    uc->bound_epoch = epoch;
    return ALB_DROP_NONE;
}

// Of a message of which nothing has come there is nothing to say.
static void owe(struct alb_csa_uc *uc, uint32_t message)
{
    struct alb_csa_partial *partial = message ? alb_csa_partial_find(uc, ALB_PARTIAL_RECEIVING, message) : NULL;
    if (partial)
        alb_csa_partial_owe(uc, partial);
}

// A sender that is not verified is not answered.
static enum alb_drop take_partial(struct alb_csa_arrival *arrival, struct alb_csa_uc *uc,
                                  const struct alb_csa_segment *segment, alb_time now)
{
    enum alb_drop drop = alb_csa_partial_take(uc, segment, now);
    if (uc->partials && segment->flags & ALB_CSA_REPORT_NOW && arrival->is_proven)
        owe(uc, segment->message);
    return drop;
}

enum alb_drop alb_csa_uc_rx(struct alb_csa_arrival *arrival, const struct alb_csa_frame *frame, alb_time now)
{
    const struct alb_csa_segment *segment = &frame->segment;
    struct alb_qp *qp = alb_engine_find_qp(arrival->engine, segment->dest_qpn);
    enum alb_drop drop = check(arrival, qp, frame);
    if (drop == ALB_DROP_NONE)
        drop = admit(arrival, alb_csa_uc_of(qp), segment);
    if (drop != ALB_DROP_NONE)
        return drop;
    alb_csa_count_received(qp, segment);
    alb_trace_add(arrival->engine, ALB_TRACE_receive, qp->number, segment->psn, ALB_TRACE_CSA_OP(segment->op),
                  segment->payload_bytes, now);
    if (!qp->is_established) {
        qp->is_established = true;
        alb_event_raise(qp->engine, &qp->event, ALB_EVENT_COMM_EST);
    }
    bool is_partial = segment->op == ALB_CSA_PARTIAL_WRITE || segment->op == ALB_CSA_PARTIAL_WRITE_IMM;
    return is_partial ? take_partial(arrival, alb_csa_uc_of(qp), segment, now)
                      : alb_csa_uc_take(alb_csa_uc_of(qp), segment, now);
}

enum alb_drop alb_csa_uc_on_holds(struct alb_csa_arrival *arrival, const struct alb_csa_holds *holds)
{
    struct alb_qp *qp = alb_engine_find_qp(arrival->engine, holds->dest_qpn);
    if (!qp)
        return ALB_DROP_UNKNOWN_QP;
    if (qp->delivery != &alb_csa_uc_ops || !alb_csa_uc_of(qp)->partials)
        return ALB_DROP_BAD_SERVICE;
    struct alb_csa_uc *uc = alb_csa_uc_of(qp);
    enum alb_qp_state state = alb_qp_state_of(qp);
    if (state < ALB_QPS_RTR || state == ALB_QPS_ERR)
        return ALB_DROP_WRONG_QP_STATE;
    if (uc->assoc != arrival->assoc)
        return ALB_DROP_WRONG_PEER;
    if (!arrival->is_proven)
        return ALB_DROP_NOT_PROVEN;
    if (uc->bound_epoch != 0 && uc->bound_epoch != arrival->header.source_epoch)
        return ALB_DROP_BAD_EPOCH;
    if (!holds->is_question)
        return alb_csa_partial_heard(uc, holds);
    owe(uc, holds->message);
    return ALB_DROP_NONE;
}

// ---- life -----------------------------------------------------------------------------------------------------------

static int create(struct alb_qp *qp)
{
    int error = alb_unreliable_create(qp, sizeof(struct alb_csa_uc), NULL);
    if (error)
        return error;
    qp->source.build = alb_csa_loose_build;
    alb_unreliable_of(qp)->cut = cut;
    alb_unreliable_of(qp)->skip = skip;
    return 0;
}

static void disconnect(struct alb_qp *qp)
{
    struct alb_csa_uc *uc = alb_csa_uc_of(qp);
    if (uc->assoc)
        alb_assoc_put(qp->engine, uc->assoc);
    uc->assoc = NULL;
    uc->bound_epoch = 0;
}

static void destroy(struct alb_qp *qp)
{
    alb_csa_uc_close(alb_csa_uc_of(qp));
    alb_csa_partials_destroy(alb_csa_uc_of(qp));
    disconnect(qp);
    alb_unreliable_destroy(qp);
}

// The peer's engine is that of the slot in its QPN.
static int connect(struct alb_qp *qp)
{
    const struct alb_av *av = &qp->attr.av;
    struct alb_csa_uc *uc = alb_csa_uc_of(qp);
    struct alb_assoc *assoc = alb_assoc_get(qp->engine, &av->local, &av->peer, (uint8_t)(qp->attr.dest_qpn >> 16));
    if (!assoc)
        return ENOMEM;
    if (av->path_payload_max)
        alb_mtu_set_route(qp->engine, assoc, av->path_payload_max);
    if (assoc == uc->assoc) {
        alb_assoc_put(qp->engine, assoc);
        return 0;
    }
    disconnect(qp);
    uc->assoc = assoc;
    return 0;
}

static int modify(struct alb_qp *qp, uint32_t mask, enum alb_qp_state next)
{
    struct alb_csa_uc *uc = alb_csa_uc_of(qp);
    int error = mask & ALB_QP_AV ? connect(qp) : 0;
    if (error)
        return error;
    if (mask & ALB_QP_RQ_PSN)
        alb_csa_uc_begin(uc, qp->attr.rq_psn);
    if (mask & ALB_QP_SQ_PSN)
        uc->u.next = qp->attr.sq_psn;
    return 0;
}

static void on_state(struct alb_qp *qp, enum alb_qp_state old, alb_time now)
{
    enum alb_qp_state state = alb_qp_state_of(qp);
    alb_unreliable_on_state(qp, old, now);
    if (state == ALB_QPS_RESET || state == ALB_QPS_ERR) {
        alb_csa_uc_close(alb_csa_uc_of(qp));
        alb_csa_partials_clear(alb_csa_uc_of(qp));
    }
    if (state == ALB_QPS_RESET)
        disconnect(qp);
}

// Packets are counted where the association is awake, and where memory for that is short they leave uncounted.
static void work(struct alb_qp *qp, alb_time now)
{
    struct alb_assoc *assoc = alb_csa_uc_of(qp)->assoc;
    if (assoc && assoc->peer_epoch)
        alb_assoc_wake(qp->engine, assoc);
    alb_unreliable_work(qp, now);
}

const struct alb_delivery_ops alb_csa_uc_ops = {
    .name = "csa-uc",
    .create = create,
    .destroy = destroy,
    .modify = modify,
    .on_state = on_state,
    .work = work,
    .rx = alb_csa_rx_foreign,
    .is_quiet = alb_unreliable_is_quiet,
    .query = alb_unreliable_query,
};
