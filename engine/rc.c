// SPDX-License-Identifier: BSD-2-Clause
// The delivery layer rc as the verbs layer sees it: its life with the queue pair, and the switch between the three roles.
#include "engine/rc.h"

#include "engine/impl.h"

#include <errno.h>

static enum alb_build_result build_packets(struct alb_rc *rc, struct alb_tx_builder *builder, alb_time now)
{
    if (alb_rc_owes(rc)) {
        enum alb_build_result result = alb_rc_build_answers(rc, builder, now);
        if (result != ALB_BUILD_IDLE)
            return result;
    }
    return alb_rc_build_requests(rc, builder, now);
}

static enum alb_build_result build(struct alb_source *source, struct alb_tx_builder *builder, alb_time now)
{
    struct alb_qp *qp = ALB_CONTAINER_OF(source, struct alb_qp, source);
    uint32_t segments_before = builder->tx->segment_count;
    enum alb_build_result result = build_packets(alb_rc_of(qp), builder, now);
    alb_qp_count_sent(qp, builder->tx, segments_before);
    return result;
}

static int create(struct alb_qp *qp)
{
    struct alb_rc *rc = alb_engine_get_memory(qp->engine, sizeof(*rc));
    if (!rc)
        return ENOMEM;
    rc->qp = qp;
    alb_deadline_init(&rc->ack_timer, alb_rc_on_ack_timeout);
    alb_deadline_init(&rc->rnr_timer, alb_rc_on_rnr_timeout);
    qp->delivery_state = rc;
    qp->source.build = build;
    return 0;
}

static void free_rings(struct alb_rc *rc)
{
    struct alb_engine *engine = rc->qp->engine;
    alb_engine_put_memory(engine, rc->requested_ends, rc->requested_capacity * sizeof(*rc->requested_ends));
    alb_engine_put_memory(engine, rc->answers, rc->answer_capacity * sizeof(*rc->answers));
    alb_engine_put_memory(engine, rc->replays, rc->answer_capacity * sizeof(*rc->replays));
    rc->requested_ends = NULL;
    rc->answers = NULL;
    rc->replays = NULL;
    rc->requested_capacity = 0;
    rc->answer_capacity = 0;
}

static void disconnect(struct alb_qp *qp)
{
    if (qp->peer)
        alb_peer_put(qp->engine, qp->peer);
    qp->peer = NULL;
}

static void destroy(struct alb_qp *qp)
{
    struct alb_rc *rc = alb_rc_of(qp);
    disconnect(qp);
    free_rings(rc);
    alb_engine_put_memory(qp->engine, rc, sizeof(*rc));
}

// Resources for the READs and atomics that the peer may have outstanding here. At least one: a duplicate needs a place too.
static int size_answers(struct alb_rc *rc)
{
    struct alb_engine *engine = rc->qp->engine;
    uint32_t count = ALB_MAX(rc->qp->attr.max_dest_rd_atomic, 1);
    struct alb_rc_answer *answers = alb_engine_get_memory(engine, count * sizeof(*answers));
    struct alb_rc_replay *replays = alb_engine_get_memory(engine, count * sizeof(*replays));
    if (!answers || !replays) {
        alb_engine_put_memory(engine, answers, count * sizeof(*answers));
        alb_engine_put_memory(engine, replays, count * sizeof(*replays));
        return ENOMEM;
    }
    alb_engine_put_memory(engine, rc->answers, rc->answer_capacity * sizeof(*rc->answers));
    alb_engine_put_memory(engine, rc->replays, rc->answer_capacity * sizeof(*rc->replays));
    rc->answers = answers;
    rc->replays = replays;
    rc->answer_capacity = count;
    rc->answer_first = rc->answer_count = 0;
    rc->replay_next = 0;
    return 0;
}

// Room to note the READ pieces and atomics outstanding there.
static int size_requests(struct alb_rc *rc)
{
    struct alb_engine *engine = rc->qp->engine;
    uint32_t count = ALB_MAX(rc->qp->attr.max_rd_atomic, 1);
    alb_psn *ends = alb_engine_get_memory(engine, count * sizeof(*ends));
    if (!ends)
        return ENOMEM;
    alb_engine_put_memory(engine, rc->requested_ends, rc->requested_capacity * sizeof(*rc->requested_ends));
    rc->requested_ends = ends;
    rc->requested_capacity = count;
    rc->requested_first = rc->requested_count = rc->requested_again = 0;
    return 0;
}

// What is in flight counts toward the new peer from now on, and whoever waited for the old one's window looks again.
static void move_to_peer(struct alb_rc *rc, struct alb_peer *peer)
{
    struct alb_qp *qp = rc->qp;
    if (qp->peer) {
        alb_peer_release(qp->engine, qp->peer, rc->inflight_bytes);
        alb_scheduler_wake(&qp->engine->scheduler, &qp->source);
    }
    disconnect(qp);
    qp->peer = peer;
    alb_peer_charge(peer, rc->inflight_bytes);
}

static int modify(struct alb_qp *qp, uint32_t mask, enum alb_qp_state next)
{
    struct alb_rc *rc = alb_rc_of(qp);
    int error = 0;
    if (mask & ALB_QP_AV) {
        struct alb_peer *peer = alb_peer_get(qp->engine, &qp->flow.peer);
        if (!peer)
            return ENOMEM;
        move_to_peer(rc, peer);
    }
    // While draining, a ring in use keeps its place: the limits may change only with nothing outstanding.
    if (mask & ALB_QP_MAX_DEST_RD_ATOMIC)
        error = rc->answer_count ? EBUSY : size_answers(rc);
    if (!error && mask & ALB_QP_MAX_QP_RD_ATOMIC)
        error = rc->requested_count ? EBUSY : size_requests(rc);
    if (error)
        return error;
    if (mask & ALB_QP_RQ_PSN)
        rc->expected = qp->attr.rq_psn;
    if (mask & ALB_QP_SQ_PSN)
        rc->una = rc->next = rc->high = qp->attr.sq_psn;
    if (mask & ALB_QP_TIMEOUT && rc->una != rc->next)
        alb_rc_watch(rc);
    if (mask & ALB_QP_RETRY_CNT)
        rc->retries_left = qp->attr.retry_cnt;
    if (mask & ALB_QP_RNR_RETRY)
        rc->rnr_retries_left = qp->attr.rnr_retry;
    return 0;
}

static void reset(struct alb_rc *rc)
{
    rc->cursor = rc->started = 0;
    rc->is_blocked = false;
    rc->answered_open = 0;
    rc->unasked_bytes = 0;
    rc->msn = 0;
    rc->loss_receiver = (struct alb_loss_receiver){0};
    rc->loss_sender = (struct alb_loss_sender){0};
    rc->assembly = (struct alb_assembly){0};
    rc->answer_first = rc->answer_count = 0;
    rc->ack_is_due = rc->nak_is_due = false;
}

static void on_state(struct alb_qp *qp, enum alb_qp_state old, alb_time now)
{
    struct alb_rc *rc = alb_rc_of(qp);
    switch (alb_qp_current_state(qp)) {
    case ALB_QPS_RESET:
        alb_rc_requester_stop(rc);
        reset(rc);
        alb_scheduler_remove(&qp->source);
        disconnect(qp);
        break;
    case ALB_QPS_ERR: // a NAK that says why, and the answers owed before it, are still sent
        alb_rc_requester_stop(rc);
        alb_assembly_abandon(&rc->assembly);
        rc->ack_is_due = false;
        if (rc->nak_is_due)
            break;
        rc->answer_count = 0;
        alb_scheduler_remove(&qp->source);
        break;
    case ALB_QPS_SQD:
        alb_rc_retire(rc, now);
        alb_rc_requester_drain(rc, now);
        break;
    default:
        break;
    }
}

static void work(struct alb_qp *qp, alb_time now)
{
    alb_scheduler_wake(&qp->engine->scheduler, &qp->source);
}

// Only the connected queue pair's address may speak. Its UDP source port says nothing: RoCE uses it for entropy.
static enum alb_drop check_peer(const struct alb_qp *qp, const struct alb_datagram *datagram)
{
    if (!alb_addr_equals(&datagram->peer.addr, &qp->flow.peer.addr))
        return ALB_DROP_WRONG_PEER;
    if (!alb_addr_equals(&datagram->local.addr, &qp->flow.local.addr))
        return ALB_DROP_WRONG_LOCAL;
    return ALB_DROP_NONE;
}

static enum alb_drop rx(struct alb_qp *qp, const struct alb_packet *packet, alb_time now)
{
    struct alb_rc *rc = alb_rc_of(qp);
    if (packet->info->service != ALB_SERVICE_RC)
        return ALB_DROP_BAD_SERVICE;
    enum alb_drop drop = check_peer(qp, packet->datagram);
    if (drop != ALB_DROP_NONE)
        return drop;
    if (alb_unlikely(!qp->is_established)) {
        qp->is_established = true;
        alb_event_raise(qp->engine, &qp->event, ALB_EVENT_COMM_EST);
    }
    if (packet->info->flags & ALB_OPCODE_RESPONSE)
        return alb_rc_on_response(rc, packet, now);
    return alb_rc_on_request(rc, packet, now);
}

static bool is_quiet(const struct alb_qp *qp)
{
    const struct alb_rc *rc = alb_rc_of(qp);
    if (rc->nak_is_due)
        return false;
    if (alb_qp_current_state(qp) < ALB_QPS_RTR || alb_qp_current_state(qp) == ALB_QPS_ERR)
        return true;
    return rc->una == rc->high && !alb_rc_owes(rc) &&
           rc->started == atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
}

static void query(const struct alb_qp *qp, struct alb_qp_attr *attr)
{
    const struct alb_rc *rc = alb_rc_of(qp);
    if (alb_qp_current_state(qp) >= ALB_QPS_RTR)
        attr->rq_psn = rc->expected;
    if (alb_qp_current_state(qp) >= ALB_QPS_RTS)
        attr->sq_psn = rc->high;
}

const struct alb_delivery_ops alb_rc_ops = {
    .name = "rc",
    .create = create,
    .destroy = destroy,
    .modify = modify,
    .on_state = on_state,
    .work = work,
    .rx = rx,
    .is_quiet = is_quiet,
    .query = query,
};
