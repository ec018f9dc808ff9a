// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs of ids, which are moved through their states as the connection goes.
#include "plugins/rdmacm/door.h"

#include <stdlib.h>
#include <string.h>

static struct ibv_ah_attr ah_attr_of(const struct rdmacm_id *id)
{
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = RDMACM_PORT,
        .grh = {.sgid_index = (uint8_t)id->gid_index, .hop_limit = RDMACM_HOP_LIMIT, .traffic_class = id->tos},
    };
    memcpy(attr.grh.dgid.raw, id->av.peer.bytes, 16);
    return attr;
}

// The attributes of a move, and their mask: what rdma_init_qp_attr shows.
static int attributes(struct rdmacm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *attr, int *mask)
{
    enum ibv_qp_type type = id->id.qp_type;
    bool is_ud = type == IBV_QPT_UD;
    bool asks = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND,
         answers = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
    *mask = IBV_QP_STATE;
    attr->qp_state = state;
    switch (state) {
    case IBV_QPS_INIT:
        attr->port_num = RDMACM_PORT;
        attr->pkey_index = 0;
        attr->qkey = id->qkey ? id->qkey : RDMA_UDP_QKEY;
        attr->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                (asks || answers ? IBV_ACCESS_REMOTE_ATOMIC : 0);
        *mask |= IBV_QP_PORT | IBV_QP_PKEY_INDEX | (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
        return 0;
    case IBV_QPS_RTR:
        if (is_ud)
            return 0;
        attr->ah_attr = ah_attr_of(id);
        attr->path_mtu = (enum ibv_mtu)id->mtu_code;
        attr->dest_qp_num = id->remote_qpn;
        attr->rq_psn = id->rq_psn;
        attr->max_dest_rd_atomic = id->dest_rd_atomic;
        attr->min_rnr_timer = 12;
        *mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                 (answers ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
        return 0;
    case IBV_QPS_RTS:
        attr->sq_psn = id->sq_psn;
        attr->timeout = id->has_ack_timeout ? id->ack_timeout : id->timeout_code; // it may be set until now
        attr->retry_cnt = id->retry_count;
        attr->rnr_retry = id->rnr_retry_count;
        attr->max_rd_atomic = id->rd_atomic;
        *mask |= IBV_QP_SQ_PSN | (asks || answers ? IBV_QP_TIMEOUT : 0) |
                 (asks ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
        return 0;
    default:
        return EINVAL;
    }
}

static int move(struct rdmacm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {0};
    int mask, error = attributes(id, state, &attr, &mask);
    return error ? error : ibv_modify_qp(qp, &attr, mask);
}

// EINVAL before the peer has said what its queue pair is, as from the kernel: of one that is connected the moves beyond
// INIT need it.
int rdma_init_qp_attr(struct rdma_cm_id *outer, struct ibv_qp_attr *attr, int *mask)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (!outer->verbs)
        return rdmacm_fail(EINVAL);
    rdmacm_lock();
    bool is_early = outer->qp_type != IBV_QPT_UD && attr->qp_state != IBV_QPS_INIT && !id->knows_peer;
    int error = is_early ? EINVAL : attributes(id, attr->qp_state, attr, mask);
    rdmacm_unlock();
    return rdmacm_result(error);
}

// As it is until it is connected; one of UD is connected to nobody, and ready.
static int make_ready(struct rdmacm_id *id, struct ibv_qp *qp)
{
    int error = move(id, qp, IBV_QPS_INIT);
    if (!error && id->id.qp_type == IBV_QPT_UD) {
        error = move(id, qp, IBV_QPS_RTR);
        error = error ? error : move(id, qp, IBV_QPS_RTS);
    }
    return error;
}

int rdmacm_qp_connect(struct rdmacm_id *id)
{
    if (!id->id.qp)
        return 0;
    int error = move(id, id->id.qp, IBV_QPS_RTR);
    return error ? error : move(id, id->id.qp, IBV_QPS_RTS);
}

int rdmacm_qp_error(struct rdmacm_id *id)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    int cancel = rdmacm_qp_lock(id);
    int error = id->id.qp ? ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE) : 0;
    rdmacm_qp_unlock(id, cancel);
    return error;
}

uint32_t rdmacm_qp_number(const struct rdmacm_id *id, const struct rdma_conn_param *param)
{
    return id->id.qp ? id->id.qp->qp_num : param ? param->qp_num : 0;
}

bool rdmacm_qp_has_srq(const struct rdmacm_id *id, const struct rdma_conn_param *param)
{
    return id->id.qp ? id->id.qp->srq != NULL : param && param->srq;
}

// ---- creating -------------------------------------------------------------------------------------------------------

static int create_cq(struct rdmacm_id *id, uint32_t entries, struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
    *channel = ibv_create_comp_channel(id->id.verbs);
    if (!*channel)
        return errno;
    *cq = ibv_create_cq(id->id.verbs, (int)ALB_MAX(entries, 1u), &id->id, *channel, 0);
    return *cq ? 0 : errno;
}

static void destroy_cqs(struct rdmacm_id *id)
{
    struct rdma_cm_id *outer = &id->id;
    if (outer->recv_cq && id->owns_cqs && outer->recv_cq != id->srq_cq)
        ibv_destroy_cq(outer->recv_cq);
    if (outer->recv_cq_channel && id->owns_cqs && outer->recv_cq_channel != id->srq_channel)
        ibv_destroy_comp_channel(outer->recv_cq_channel);
    if (outer->send_cq && id->owns_cqs)
        ibv_destroy_cq(outer->send_cq);
    if (outer->send_cq_channel && id->owns_cqs)
        ibv_destroy_comp_channel(outer->send_cq_channel);
    outer->recv_cq = id->srq_cq;
    outer->recv_cq_channel = id->srq_channel;
    outer->send_cq = NULL;
    outer->send_cq_channel = NULL;
    id->owns_cqs = false;
}

// Queues for a caller that brought none.
static int find_cqs(struct rdmacm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    int error = 0;
    if (attr->qp_type == IBV_QPT_XRC_RECV) // completions are those of shared receive queues
        return 0;
    bool receives = attr->qp_type != IBV_QPT_XRC_SEND;
    id->owns_cqs = (receives && !attr->recv_cq) || !attr->send_cq;
    if (receives && !attr->recv_cq) {
        error = create_cq(id, attr->cap.max_recv_wr, &id->id.recv_cq_channel, &id->id.recv_cq);
        attr->recv_cq = id->id.recv_cq;
    }
    if (!error && !attr->send_cq) {
        error = create_cq(id, attr->cap.max_send_wr, &id->id.send_cq_channel, &id->id.send_cq);
        attr->send_cq = id->id.send_cq;
    }
    return error;
}

// The program may try again with the same attributes, which do not name what is gone.
static void take_back_cqs(struct rdmacm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    if (id->owns_cqs && attr->send_cq == id->id.send_cq)
        attr->send_cq = NULL;
    if (id->owns_cqs && attr->recv_cq == id->id.recv_cq && attr->recv_cq != id->srq_cq)
        attr->recv_cq = NULL;
    destroy_cqs(id);
}

// The id has it once it is ready.
static int create_qp(struct rdmacm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp *qp = ibv_create_qp_ex(id->id.verbs, attr);
    if (!qp)
        return errno;
    int error = make_ready(id, qp);
    if (error) {
        ibv_destroy_qp(qp);
        return error;
    }
    int cancel = rdmacm_qp_lock(id);
    id->id.qp = qp;
    rdmacm_qp_unlock(id, cancel);
    return 0;
}

static bool names_other_cqs(const struct rdma_cm_id *outer, const struct ibv_qp_init_attr_ex *attr)
{
    return (attr->send_cq && outer->send_cq && attr->send_cq != outer->send_cq) ||
           (attr->recv_cq && outer->recv_cq && attr->recv_cq != outer->recv_cq);
}

// What the id has already stands for what the caller did not name. <rdma/rdma_verbs.h> posts receives to the id's
// shared queue, if there is one.
static void take_from_id(const struct rdma_cm_id *outer, struct ibv_qp_init_attr_ex *attr)
{
    bool is_xrc = attr->qp_type == IBV_QPT_XRC_SEND || attr->qp_type == IBV_QPT_XRC_RECV;
    if (is_xrc)
        return;
    if (!attr->srq)
        attr->srq = outer->srq;
    if (!attr->recv_cq)
        attr->recv_cq = outer->recv_cq;
    if (!attr->send_cq)
        attr->send_cq = outer->send_cq;
}

static int create(struct rdmacm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    if (rdmacm_is_forked(id))
        return ENODEV;
    if (!id->id.verbs || id->id.qp)
        return EINVAL;
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
        attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
        attr->pd = id->id.pd;
    }
    if (attr->pd->context != id->id.verbs || names_other_cqs(&id->id, attr))
        return EINVAL;
    if ((attr->qp_type == IBV_QPT_UD) != (id->id.qp_type == IBV_QPT_UD)) // its port space says which
        return EINVAL;
    if (attr->qp_type == IBV_QPT_XRC_RECV && (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)) {
        attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
        attr->xrcd = rdmacm_default_xrcd();
    }
    enum ibv_qp_type type_before = id->id.qp_type;
    id->id.qp_type = attr->qp_type; // the moves of the queue pair go by it
    take_from_id(&id->id, attr);
    int error = find_cqs(id, attr);
    if (!error)
        error = create_qp(id, attr);
    if (error) {
        id->id.qp_type = type_before;
        take_back_cqs(id, attr);
        return error;
    }
    id->id.pd = attr->pd;
    return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *outer, struct ibv_qp_init_attr_ex *attr)
{
    return rdmacm_result(create(rdmacm_id(outer), attr));
}

int rdma_create_qp(struct rdma_cm_id *outer, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex ex = {
        .qp_context = attr->qp_context,
        .send_cq = attr->send_cq,
        .recv_cq = attr->recv_cq,
        .srq = attr->srq,
        .cap = attr->cap,
        .qp_type = attr->qp_type,
        .sq_sig_all = attr->sq_sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = pd,
    };
    int error = create(rdmacm_id(outer), &ex);
    if (!error)
        *attr = (struct ibv_qp_init_attr){
            .qp_context = ex.qp_context,
            .send_cq = ex.send_cq,
            .recv_cq = ex.recv_cq,
            .srq = ex.srq,
            .cap = ex.cap,
            .qp_type = ex.qp_type,
            .sq_sig_all = ex.sq_sig_all,
        };
    return rdmacm_result(error);
}

// Nobody finds it from here on.
static struct ibv_qp *take_qp(struct rdmacm_id *id)
{
    int cancel = rdmacm_qp_lock(id);
    rdmacm_multicast_detach(id);
    struct ibv_qp *qp = id->id.qp;
    id->id.qp = NULL;
    rdmacm_qp_unlock(id, cancel);
    return qp;
}

// Another thread may be taking an event of the id. Destroying waits for acknowledgements of the program, so it is done
// without the lock.
void rdma_destroy_qp(struct rdma_cm_id *outer)
{
    if (rdmacm_is_forked(rdmacm_id(outer)))
        return;
    struct ibv_qp *qp = take_qp(rdmacm_id(outer));
    if (qp)
        ibv_destroy_qp(qp);
    destroy_cqs(rdmacm_id(outer));
}
