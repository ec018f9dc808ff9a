// SPDX-License-Identifier: BSD-2-Clause
// The attributes of a queue pair, and the flow that follows from its address vector.
#include "engine/delivery.h"
#include "engine/impl.h"
#include "engine/policy.h"

#include <errno.h>
#include <string.h>

static bool mtu_is_valid(const struct alb_engine *engine, uint32_t bytes)
{
    return bytes >= 256 && bytes <= 4096 && (bytes & (bytes - 1)) == 0 && bytes <= engine->config.mtu_max_bytes;
}

// Attributes that the mask names are in range.
static int check_attributes(const struct alb_qp *qp, const struct alb_qp_attr *attr, uint32_t mask)
{
    const struct alb_engine *engine = qp->engine;
    const uint32_t access = ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ |
                            ALB_ACCESS_REMOTE_ATOMIC | ALB_ACCESS_MW_BIND | ALB_ACCESS_RELAXED_ORDERING;
    if (mask & (ALB_QP_ALT_PATH | ALB_QP_PATH_MIG_STATE))
        return EOPNOTSUPP;
    if ((mask & ALB_QP_PORT && attr->port != 1) || (mask & ALB_QP_PKEY_INDEX && attr->pkey_index != 0) ||
        (mask & ALB_QP_ACCESS_FLAGS && attr->access & ~access) ||
        (mask & ALB_QP_AV && alb_addr_is_multicast(&attr->av.peer)) ||
        (mask & ALB_QP_PATH_MTU && !mtu_is_valid(engine, attr->path_mtu_bytes)) ||
        (mask & ALB_QP_TIMEOUT && attr->timeout > 31) || (mask & ALB_QP_RETRY_CNT && attr->retry_cnt > 7) ||
        (mask & ALB_QP_RNR_RETRY && attr->rnr_retry > 7) || (mask & ALB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31) ||
        (mask & ALB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > engine->config.rd_atomic_max) ||
        (mask & ALB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > engine->config.rd_atomic_max))
        return EINVAL;
    return 0;
}

#define TAKE(flag, field)                 \
    do {                                  \
        if (mask & (flag))                \
            qp->attr.field = attr->field; \
    } while (0)

static void take_attributes(struct alb_qp *qp, const struct alb_qp_attr *attr, uint32_t mask)
{
    TAKE(ALB_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
    TAKE(ALB_QP_ACCESS_FLAGS, access);
    TAKE(ALB_QP_PKEY_INDEX, pkey_index);
    TAKE(ALB_QP_PORT, port);
    TAKE(ALB_QP_QKEY, qkey);
    TAKE(ALB_QP_AV, av);
    TAKE(ALB_QP_PATH_MTU, path_mtu_bytes);
    TAKE(ALB_QP_TIMEOUT, timeout);
    TAKE(ALB_QP_RETRY_CNT, retry_cnt);
    TAKE(ALB_QP_RNR_RETRY, rnr_retry);
    TAKE(ALB_QP_MIN_RNR_TIMER, min_rnr_timer);
    TAKE(ALB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    TAKE(ALB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    TAKE(ALB_QP_RQ_PSN, rq_psn);
    TAKE(ALB_QP_SQ_PSN, sq_psn);
    TAKE(ALB_QP_DEST_QPN, dest_qpn);
    qp->attr.rq_psn &= ALB_PSN_MASK;
    qp->attr.sq_psn &= ALB_PSN_MASK;
    qp->attr.dest_qpn &= ALB_QPN_MASK;
}

// The UDP port behind a QPN: its process slot's, if the peer is on this host or of our kind; another knows only the
// well-known one.
static uint16_t port_of(const struct alb_av *av, alb_qpn qpn)
{
    return (uint16_t)(ALB_ROCE_PORT + (av->same_host || av->peer_has_slots ? qpn >> 16 : 0));
}

void alb_flow_from_av(struct alb_flow *flow, const struct alb_av *av, alb_qpn qpn)
{
    *flow = (struct alb_flow){
        .peer = {av->peer, port_of(av, qpn)},
        .local = {av->local, 0},
        .traffic_class = av->traffic_class,
        .hop_limit = av->hop_limit,
    };
}

static void learn_flow(struct alb_qp *qp)
{
    alb_flow_from_av(&qp->flow, &qp->attr.av, qp->attr.dest_qpn);
    uint32_t hash = qp->number * 2654435761u ^ qp->attr.dest_qpn;
    // Policies without it choose anew for each burst, among the paths of an association.
    if (qp->engine->path->choose)
        qp->flow.path = qp->engine->path->choose(hash);
}

static void show_flow(struct alb_qp *qp)
{
    qp->stats->dest_qpn = qp->attr.dest_qpn;
    qp->stats->path_mtu_bytes = (uint16_t)qp->attr.path_mtu_bytes;
    memcpy(qp->stats->peer, qp->attr.av.peer.bytes, sizeof(qp->stats->peer));
}

int alb_qp_modify(struct alb_qp *qp, const struct alb_qp_attr *attr, uint32_t mask, alb_time now)
{
    enum alb_qp_state from = alb_qp_state_of(qp);
    enum alb_qp_state to = mask & ALB_QP_STATE ? attr->state : from;
    if (mask & ALB_QP_CUR_STATE && attr->cur_state != from)
        return EINVAL;
    if (!alb_qp_state_can_move(qp->type, from, to, mask))
        return EINVAL;
    int error = check_attributes(qp, attr, mask);
    if (error)
        return error;
    struct alb_qp_attr before = qp->attr;
    struct alb_flow flow_before = qp->flow;
    if (from != ALB_QPS_SQD && to == ALB_QPS_SQD) // each drain asks for its own event
        qp->attr.en_sqd_async_notify = false;
    take_attributes(qp, attr, mask);
    if (mask & ALB_QP_AV && qp->type != ALB_QPT_UD)
        learn_flow(qp);
    error = qp->delivery->modify(qp, mask, to);
    if (error) {
        qp->attr = before;
        qp->flow = flow_before;
        return error;
    }
    if (mask & ALB_QP_AV)
        show_flow(qp);
    if (to != from || to == ALB_QPS_RESET)
        alb_qp_set_state(qp, to, now);
    return 0;
}

void alb_qp_query(const struct alb_qp *qp, struct alb_qp_attr *attr, struct alb_qp_init *init)
{
    *attr = qp->attr;
    attr->state = alb_qp_state_of(qp);
    attr->cur_state = attr->state;
    attr->sq_draining = attr->state == ALB_QPS_SQD && !qp->drain_raised;
    qp->delivery->query(qp, attr);
    *init = (struct alb_qp_init){
        .type = qp->type,
        .send_cq = qp->send_cq,
        .recv_cq = qp->recv_cq,
        .srq = qp->srq,
        .xrcd = qp->xrcd,
        .cap = qp->cap,
        .sq_sig_all = qp->sq_sig_all,
        .user = qp->user,
        .qpn = qp->number,
    };
}
