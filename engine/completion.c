// SPDX-License-Identifier: BSD-2-Clause
// How work requests end: completions of sends and receives, and the flush of a queue pair in error.
#include "engine/impl.h"

static const uint8_t wc_opcodes[] = {
    [ALB_WR_RDMA_WRITE] = ALB_WC_RDMA_WRITE,
    [ALB_WR_RDMA_WRITE_WITH_IMM] = ALB_WC_RDMA_WRITE,
    [ALB_WR_SEND] = ALB_WC_SEND,
    [ALB_WR_SEND_WITH_IMM] = ALB_WC_SEND,
    [ALB_WR_RDMA_READ] = ALB_WC_RDMA_READ,
    [ALB_WR_ATOMIC_CMP_AND_SWP] = ALB_WC_COMP_SWAP,
    [ALB_WR_ATOMIC_FETCH_AND_ADD] = ALB_WC_FETCH_ADD,
    [ALB_WR_LOCAL_INV] = ALB_WC_LOCAL_INV,
    [ALB_WR_BIND_MW] = ALB_WC_BIND_MW,
    [ALB_WR_SEND_WITH_INV] = ALB_WC_SEND,
    [ALB_WR_ATOMIC_WRITE] = ALB_WC_ATOMIC_WRITE,
    [ALB_WR_TXN_WRITE] = ALB_WC_RDMA_WRITE,
    [ALB_WR_TXN_END] = ALB_WC_RDMA_WRITE,
    [ALB_WR_TXN_ASK] = ALB_WC_RDMA_WRITE,
};

static void count_send(struct alb_qp *qp, uint32_t wc_opcode)
{
    switch (wc_opcode) {
    case ALB_WC_SEND:
        alb_qp_count(qp, ALB_STAT_rdma_sends, 1);
        break;
    case ALB_WC_RDMA_WRITE:
        alb_qp_count(qp, ALB_STAT_rdma_writes, 1);
        break;
    case ALB_WC_RDMA_READ:
        alb_qp_count(qp, ALB_STAT_rdma_reads, 1);
        break;
    case ALB_WC_COMP_SWAP:
    case ALB_WC_FETCH_ADD:
    case ALB_WC_ATOMIC_WRITE:
        alb_qp_count(qp, ALB_STAT_rdma_atomics, 1);
        break;
    default:
        break;
    }
}

// A queue pair whose completion queue has overrun can no longer tell its program anything: it is in error (11.6.3.5).
static void push(struct alb_qp *qp, struct alb_cq *cq, struct alb_wc *wc, bool solicited, alb_time now)
{
    wc->qp = qp->type == ALB_QPT_XRC_RECV ? NULL : qp;
    wc->qpn = qp->number;
    if (alb_cq_push(cq, wc, solicited, now))
        return;
    alb_qp_count(qp, ALB_STAT_resp_cqe_error, 1);
    if (alb_qp_state_of(qp) != ALB_QPS_ERR) {
        alb_event_raise(qp->engine, &qp->event, ALB_EVENT_QP_FATAL);
        alb_qp_set_state(qp, ALB_QPS_ERR, now);
    }
}

void alb_qp_complete_send(struct alb_qp *qp, enum alb_wc_status status, alb_time now)
{
    struct alb_send_queue *sq = &qp->sq;
    uint32_t head = atomic_load_explicit(&sq->head, memory_order_relaxed);
    const struct alb_send_wqe *wqe = alb_send_queue_at(sq, head);
    uint32_t opcode = wc_opcodes[wqe->opcode];
    // Parts of a transaction end with it, and are nothing to the program by themselves.
    bool is_wanted = wqe->opcode != ALB_WR_TXN_WRITE && (wqe->flags & ALB_SEND_SIGNALED || status != ALB_WC_SUCCESS);
    struct alb_wc wc = {.wr_id = wqe->wr_id, .status = status, .opcode = opcode, .byte_len = wqe->length};
    if (alb_unlikely(wqe->txn_number)) { // of an operation with a number
        wc.imm_data = (uint32_t)wqe->txn_number;
        wc.src_qpn = (alb_qpn)(wqe->txn_number >> 32);
        bool may_not_have_begun =
            status == ALB_WC_WR_FLUSH_ERR || (wqe->opcode == ALB_WR_TXN_END && status != ALB_WC_SUCCESS);
        bool has_not_begun = may_not_have_begun && !wqe->is_answered && !wqe->vendor_err;
        wc.vendor_err = has_not_begun ? ALB_TXN_PEER_GONE : wqe->vendor_err;
    }
    alb_trace_add(qp->engine, ALB_TRACE_complete_send, qp->number, wqe->first_psn, status, wc.wr_id, now);
    // Of a transaction its writes count.
    if (status == ALB_WC_SUCCESS && wqe->opcode != ALB_WR_TXN_END && wqe->opcode != ALB_WR_TXN_ASK)
        count_send(qp, opcode);
    if (!is_wanted) {
        uint32_t silent = atomic_load_explicit(&sq->silent, memory_order_relaxed);
        atomic_store_explicit(&sq->silent, silent + 1, memory_order_release);
    }
    atomic_store_explicit(&sq->head, head + 1, memory_order_release);
    if (is_wanted)
        push(qp, qp->send_cq, &wc, status != ALB_WC_SUCCESS, now);
}

void alb_qp_note_drained(struct alb_qp *qp, uint32_t started)
{
    bool is_drained = atomic_load_explicit(&qp->sq.head, memory_order_relaxed) == started;
    if (alb_qp_state_of(qp) != ALB_QPS_SQD || qp->drain_raised || !is_drained)
        return;
    qp->drain_raised = true;
    if (qp->attr.en_sqd_async_notify)
        alb_event_raise(qp->engine, &qp->event, ALB_EVENT_SQ_DRAINED);
}

bool alb_qp_take_receive(struct alb_qp *qp)
{
    struct alb_srq *srq = alb_qp_srq(qp);
    if (!qp->recv_is_taken)
        qp->recv_is_taken = srq ? alb_srq_take(srq, qp->recv) : alb_recv_queue_take(&qp->rq, qp->recv);
    return qp->recv_is_taken;
}

void alb_qp_complete_receive(struct alb_qp *qp, struct alb_wc *wc, bool solicited, alb_time now)
{
    qp->recv_is_taken = false;
    wc->wr_id = qp->recv->wr_id;
    alb_trace_add(qp->engine, ALB_TRACE_complete_receive, qp->number, 0, wc->status, wc->wr_id, now);
    if (wc->status == ALB_WC_SUCCESS)
        alb_qp_count(qp, ALB_STAT_rdma_recvs, 1);
    push(qp, qp->named_srq ? qp->named_srq->cq : qp->recv_cq, wc, solicited || wc->status != ALB_WC_SUCCESS, now);
}

void alb_qp_flush_send(struct alb_qp *qp, alb_time now)
{
    uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
    while ((int32_t)(tail - atomic_load_explicit(&qp->sq.head, memory_order_relaxed)) > 0)
        alb_qp_complete_send(qp, ALB_WC_WR_FLUSH_ERR, now);
}

void alb_qp_flush_receive(struct alb_qp *qp, alb_time now)
{
    while (qp->recv_is_taken || (!alb_qp_srq(qp) && alb_qp_take_receive(qp))) {
        struct alb_wc wc = {.status = ALB_WC_WR_FLUSH_ERR, .opcode = ALB_WC_RECV};
        alb_qp_complete_receive(qp, &wc, true, now);
    }
}
