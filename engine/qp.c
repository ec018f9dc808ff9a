// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs: their life and state.
#include "engine/csa_loose.h"
#include "engine/impl.h"

#include <errno.h>

#define ACK_TIMEOUT_LONG_NS (4096ull << 16) // is not stretched; four times what code 14 says, the most usual one

// ---- create and destroy ---------------------------------------------------------------------------------------------

static const struct alb_delivery_ops *delivery_of(const struct alb_engine *engine, enum alb_qp_type type)
{
    switch (type) {
    case ALB_QPT_RC:
    case ALB_QPT_XRC_SEND:
    case ALB_QPT_XRC_RECV:
        return engine->csa ? &alb_csa_ops : &alb_rc_ops;
    case ALB_QPT_UC:
        return engine->csa ? &alb_csa_uc_ops : &alb_uc_ops;
    case ALB_QPT_UD:
        return engine->csa ? &alb_csa_ud_ops : &alb_ud_ops;
    }
    return NULL;
}

static int check_init(const struct alb_engine *engine, const struct alb_qp_init *init)
{
    const struct alb_engine_config *config = &engine->config;
    const struct alb_qp_cap *cap = &init->cap;
    if (!delivery_of(engine, init->type))
        return EOPNOTSUPP;
    if (init->type == ALB_QPT_XRC_RECV)
        return init->xrcd ? 0 : EINVAL;
    bool receives = init->type != ALB_QPT_XRC_SEND;
    if (!init->send_cq || (receives && (!init->recv_cq || (init->srq && init->srq->xrcd))))
        return EINVAL;
    if (cap->send_wr_max > config->send_wr_max || cap->send_sge_max > config->sge_max ||
        cap->inline_max_bytes > config->inline_max_bytes)
        return EINVAL;
    if (receives && !init->srq && (cap->recv_wr_max > config->recv_wr_max || cap->recv_sge_max > config->sge_max))
        return EINVAL;
    return 0;
}

static enum alb_build_result build_nothing(struct alb_source *source, struct alb_tx_builder *builder, alb_time now)
{
    return ALB_BUILD_IDLE;
}

static void attach_stats(struct alb_qp *qp)
{
    struct alb_qp_stats *shared = qp->engine->config.qp_stats;
    qp->stats = shared ? &shared[qp->number & 0xffff] : &qp->own_stats;
    memset(qp->stats, 0, sizeof(*qp->stats));
    qp->stats->type = (uint8_t)qp->type;
    qp->stats->qpn = qp->number;
}

// How many entries a receive may have that comes in by this queue pair.
static uint32_t recv_sge_max_of(const struct alb_qp *qp)
{
    if (qp->type == ALB_QPT_XRC_RECV) // whichever of the domain's queues a message names
        return qp->engine->config.sge_max;
    return qp->srq ? qp->srq->queue.sge_max : qp->cap.recv_sge_max;
}

static int create_queues(struct alb_qp *qp)
{
    struct alb_engine *engine = qp->engine;
    int error = alb_send_queue_init(engine, &qp->sq, &qp->cap);
    if (error)
        return error;
    error = alb_recv_queue_init(engine, &qp->rq, qp->cap.recv_wr_max, qp->cap.recv_sge_max);
    if (error)
        return error;
    qp->cap.recv_wr_max = qp->rq.capacity;
    qp->cap.send_wr_max = qp->sq.capacity;
    qp->cap.send_sge_max = qp->sq.sge_max;
    qp->cap.inline_max_bytes = qp->sq.inline_max_bytes;
    qp->recv = alb_engine_get_memory(engine, alb_recv_wqe_bytes(recv_sge_max_of(qp)));
    return qp->recv ? 0 : ENOMEM;
}

static void destroy_queues(struct alb_qp *qp)
{
    struct alb_engine *engine = qp->engine;
    alb_engine_put_memory(engine, qp->recv, alb_recv_wqe_bytes(recv_sge_max_of(qp)));
    alb_recv_queue_fini(engine, &qp->rq);
    alb_send_queue_fini(engine, &qp->sq);
}

// What a queue pair is made of beside its numbers: only the half of an XRC connection that it is.
static void take_objects(struct alb_qp *qp, struct alb_pd *pd, const struct alb_qp_init *init)
{
    alb_list_init(&qp->of_xrcd);
    if (qp->type == ALB_QPT_XRC_RECV) {
        qp->xrcd = init->xrcd;
        return;
    }
    qp->pd = pd;
    qp->keys_pd = pd;
    qp->cap = init->cap;
    qp->send_cq = init->send_cq;
    if (qp->type != ALB_QPT_XRC_SEND) {
        qp->recv_cq = init->recv_cq;
        qp->srq = init->srq;
    }
    if (!qp->recv_cq || qp->srq)
        qp->cap.recv_wr_max = qp->cap.recv_sge_max = 0;
}

static struct alb_qp *new_qp(struct alb_engine *engine, struct alb_pd *pd, const struct alb_qp_init *init,
                             uint32_t index)
{
    struct alb_qp *qp = alb_engine_get_memory(engine, sizeof(*qp));
    if (!qp)
        return NULL;
    qp->engine = engine;
    qp->user = init->user;
    qp->type = init->type;
    qp->number = (uint32_t)engine->config.slot << 16 | index;
    qp->sq_sig_all = init->sq_sig_all;
    take_objects(qp, pd, init);
    qp->delivery = delivery_of(engine, init->type);
    alb_source_init(&qp->source, build_nothing);
    alb_event_node_init(&qp->event, ALB_EVENT_OF_QP);
    alb_list_init(&qp->windows);
    alb_list_init(&qp->groups);
    return qp;
}

// Counts the queue pair with what it uses, or no longer.
static void refer(struct alb_qp *qp, uint32_t one)
{
    if (qp->pd)
        qp->pd->refs += one;
    if (qp->send_cq)
        qp->send_cq->refs += one;
    if (qp->recv_cq)
        qp->recv_cq->refs += one;
    if (qp->srq)
        qp->srq->refs += one;
    if (qp->xrcd)
        qp->xrcd->refs += one;
}

int alb_qp_create(struct alb_pd *pd, struct alb_qp_init *init, struct alb_qp **out)
{
    if (!pd && !(init->type == ALB_QPT_XRC_RECV && init->xrcd))
        return EINVAL;
    struct alb_engine *engine = pd ? pd->engine : init->xrcd->engine;
    int error = check_init(engine, init);
    if (error)
        return error;
    uint32_t index = alb_qpn_pick(engine, init->qpn);
    if (!index)
        return init->qpn ? EADDRINUSE : ENOMEM;
    struct alb_qp *qp = new_qp(engine, pd, init, index);
    if (!qp)
        return ENOMEM;
    error = create_queues(qp);
    if (!error)
        error = qp->delivery->create(qp);
    if (error) {
        destroy_queues(qp);
        alb_engine_put_memory(engine, qp, sizeof(*qp));
        return error;
    }
    attach_stats(qp);
    engine->qps[index] = qp;
    engine->qp_count++;
    refer(qp, 1);
    if (qp->xrcd)
        alb_list_push_back(&qp->xrcd->qps, &qp->of_xrcd);
    init->cap = qp->cap;
    *out = qp;
    return 0;
}

// Takes the queue pair off the stack of rung bells.
static void silence_bell(struct alb_qp *qp)
{
    if (atomic_load_explicit(&qp->bell_is_rung, memory_order_seq_cst))
        alb_engine_bells(qp->engine, qp->engine->now);
}

int alb_qp_destroy(struct alb_qp *qp)
{
    struct alb_engine *engine = qp->engine;
    if (!alb_list_is_empty(&qp->groups))
        return EBUSY;
    alb_qp_set_state(qp, ALB_QPS_RESET, engine->now);
    silence_bell(qp); // in RESET nothing rings it any more
    alb_region_release_qp(qp);
    qp->delivery->destroy(qp);
    alb_scheduler_remove(&qp->source);
    alb_event_node_fini(&qp->event);
    engine->qps[qp->number & 0xffff] = NULL;
    alb_qpn_retire(engine, qp->number & 0xffff);
    engine->qp_count--;
    refer(qp, (uint32_t)-1);
    alb_list_remove(&qp->of_xrcd);
    qp->stats->qpn = 0;
    destroy_queues(qp);
    alb_engine_put_memory(engine, qp, sizeof(*qp));
    return 0;
}

// ---- state ----------------------------------------------------------------------------------------------------------

static void forget_everything(struct alb_qp *qp)
{
    if (qp->send_cq)
        alb_cq_forget_qp(qp->send_cq, qp);
    if (qp->recv_cq && qp->recv_cq != qp->send_cq)
        alb_cq_forget_qp(qp->recv_cq, qp);
    alb_send_queue_clear(&qp->sq);
    alb_recv_queue_clear(&qp->rq);
    qp->named_srq = NULL;
    qp->recv_is_taken = false;
    qp->is_established = false;
    qp->last_wqe_raised = false;
    qp->drain_raised = false;
    memset(&qp->attr, 0, sizeof(qp->attr));
    memset(&qp->failure, 0, sizeof(qp->failure));
}

static void enter_error(struct alb_qp *qp, alb_time now)
{
    alb_qp_flush_receive(qp, now);
    alb_qp_flush_send(qp, now);
    if (qp->srq && !qp->last_wqe_raised) {
        qp->last_wqe_raised = true;
        alb_event_raise(qp->engine, &qp->event, ALB_EVENT_QP_LAST_WQE_REACHED);
    }
}

void alb_qp_set_state(struct alb_qp *qp, enum alb_qp_state state, alb_time now)
{
    enum alb_qp_state old = alb_qp_state_of(qp);
    atomic_store_explicit(&qp->state, state, memory_order_seq_cst);
    qp->stats->state = (uint8_t)state;
    alb_trace_add(qp->engine, ALB_TRACE_state, qp->number, 0, old, state, now);
    qp->delivery->on_state(qp, old, now);
    switch (state) {
    case ALB_QPS_RESET:
        forget_everything(qp);
        break;
    case ALB_QPS_RTS:
        qp->is_established = true;
        qp->drain_raised = false;
        qp->delivery->work(qp, now);
        break;
    case ALB_QPS_SQE:
        alb_qp_flush_send(qp, now);
        break;
    case ALB_QPS_ERR:
        enter_error(qp, now);
        break;
    default:
        break;
    }
}

// Of a transaction only its end completes to the program: its parts, which come before that, fail with it.
static void complete_oldest(struct alb_qp *qp, enum alb_wc_status status, alb_time now)
{
    enum alb_wr_opcode opcode;
    do {
        uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
        opcode = alb_send_queue_at(&qp->sq, head)->opcode;
        alb_qp_complete_send(qp, status, now);
    } while (opcode == ALB_WR_TXN_WRITE);
}

void alb_qp_fail(struct alb_qp *qp, struct alb_send_wqe *wqe, const struct alb_qp_failure *failure, alb_time now)
{
    qp->failure = *failure;
    qp->failure.peer = qp->flow.peer;
    qp->failure.dest_qpn = qp->attr.dest_qpn;
    qp->failure.hop_limit = qp->attr.av.hop_limit;
    qp->failure.is_idle = !wqe && !failure->at_responder;
    if (wqe) {
        qp->failure.opcode = wqe->opcode;
        complete_oldest(qp, failure->status, now);
    }
    alb_event_raise(qp->engine, &qp->event, ALB_EVENT_QP_FAILED);
    // The completion queue may have overrun by the failure: that was an error already.
    bool only_sends_fail = wqe && !alb_qp_is_reliable(qp) && alb_qp_state_of(qp) != ALB_QPS_ERR;
    alb_qp_set_state(qp, only_sends_fail ? ALB_QPS_SQE : ALB_QPS_ERR, now);
}

alb_time alb_qp_ack_timeout_ns(const struct alb_qp *qp, uint32_t stretch)
{
    alb_time t = alb_ack_timeout_ns(qp->attr.timeout);
    if (t == ALB_TIME_NEVER)
        return ALB_TIME_NEVER;
    alb_assert(stretch <= ALB_ACK_TIMEOUT_STRETCH_MAX);
    t = ALB_MAX(t, qp->engine->config.ack_timeout_min_ns);
    return ALB_MAX(t, ALB_MIN(t * stretch, ACK_TIMEOUT_LONG_NS));
}

alb_qpn alb_qp_number(const struct alb_qp *qp)
{
    return qp->number;
}

enum alb_qp_state alb_qp_current_state(const struct alb_qp *qp)
{
    return alb_qp_state_of(qp);
}

enum alb_qp_type alb_qp_kind(const struct alb_qp *qp)
{
    return qp->type;
}

void *alb_qp_user(const struct alb_qp *qp)
{
    return qp->user;
}

void alb_qp_farewell(struct alb_qp *qp)
{
    if (qp->delivery->farewell)
        qp->delivery->farewell(qp);
}

bool alb_qp_is_quiet(const struct alb_qp *qp)
{
    return qp->delivery->is_quiet(qp);
}
