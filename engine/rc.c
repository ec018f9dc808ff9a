// SPDX-License-Identifier: BSD-2-Clause
// The delivery layer rc, which carries RC and XRC, as the verbs layer sees it: its life with the queue pair, and the
// switch between the three roles.
#include "engine/rc.h"

#include "engine/impl.h"
#include "engine/segmenter.h"

#include <errno.h>

// What is to be sent may be the answer of a program to what the peer's has sent: that one should know before that it
// has arrived. Some count on this order, which a NIC's acknowledgements keep. Behind one request the acknowledgement
// leaves in the same message, and the peer takes it first (device/rx.c); behind more it would mostly need its own.
static bool ack_goes_first(const struct alb_rc *rc)
{
    uint32_t tail = alb_rc_tail(rc);
    return tail - rc->started > 1 && alb_rc_owes(rc) && !alb_rc_owes_more_than_ack(rc) &&
           alb_wqe_takes_receive(alb_rc_wqe(rc, tail - 1));
}

// Answering and asking take turns, so that a peer that asks without end leaves room for what was posted here. A bare
// acknowledgement is shorter than any request, so it can end a burst and not begin one: behind requests it leaves in
// the same message as they (LESSONS 15).
static enum alb_build_result build_packets(struct alb_rc *rc, struct alb_tx_builder *builder, alb_time now)
{
    enum alb_build_result requests, answers = ALB_BUILD_IDLE;
    if (ack_goes_first(rc) && alb_rc_build_answers(rc, builder) == ALB_BUILD_FULL)
        return ALB_BUILD_FULL;
    if (alb_rc_owes_more_than_ack(rc) && !rc->asks_next) {
        answers = alb_rc_build_answers(rc, builder);
        rc->asks_next = answers != ALB_BUILD_IDLE;
        if (rc->asks_next)
            return answers;
    }
    requests = alb_rc_build_requests(rc, builder, now);
    rc->asks_next = false;
    if (requests == ALB_BUILD_MORE && alb_rc_owes_more_than_ack(rc))
        return requests;
    if (requests != ALB_BUILD_FULL && alb_rc_owes(rc))
        answers = alb_rc_build_answers(rc, builder);
    return ALB_MAX(requests, answers);
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
    rc->service = qp->type == ALB_QPT_RC ? ALB_SERVICE_RC : ALB_SERVICE_XRC;
    rc->opcode_base = qp->type == ALB_QPT_RC ? ALB_RC_SEND_FIRST : ALB_XRC_SEND_FIRST;
    alb_deadline_init(&rc->ack_timer, alb_rc_on_ack_timeout);
    alb_deadline_init(&rc->rnr_timer, alb_rc_on_rnr_timeout);
    qp->delivery_state = rc;
    qp->source.build = build;
    return 0;
}

static void disconnect(struct alb_qp *qp)
{
    if (qp->peer)
        alb_peer_put(qp->engine, qp->peer);
    qp->peer = NULL;
}

// The rings whose size is an attribute.
struct rings {
    struct alb_rc_answer *answers;
    struct alb_rc_replay *replays;
    alb_psn *requested_ends;
    uint32_t answer_capacity, requested_capacity;
};

static void free_rings(struct alb_engine *engine, const struct rings *rings)
{
    alb_engine_put_memory(engine, rings->requested_ends, rings->requested_capacity * sizeof(*rings->requested_ends));
    alb_engine_put_memory(engine, rings->answers, rings->answer_capacity * sizeof(*rings->answers));
    alb_engine_put_memory(engine, rings->replays, rings->answer_capacity * sizeof(*rings->replays));
}

// New rings for what the mask names. At least one place each: a duplicate needs one too.
static int get_rings(const struct alb_rc *rc, uint32_t mask, struct rings *rings)
{
    struct alb_engine *engine = rc->qp->engine;
    const struct alb_qp_attr *attr = &rc->qp->attr;
    bool is_complete = true;
    *rings = (struct rings){0};
    if (mask & ALB_QP_MAX_DEST_RD_ATOMIC) { // of READs and atomics that the peer may have outstanding here
        rings->answer_capacity = ALB_MAX(attr->max_dest_rd_atomic, 1);
        rings->answers = alb_engine_get_memory(engine, rings->answer_capacity * sizeof(*rings->answers));
        rings->replays = alb_engine_get_memory(engine, rings->answer_capacity * sizeof(*rings->replays));
        is_complete = rings->answers && rings->replays;
    }
    if (mask & ALB_QP_MAX_QP_RD_ATOMIC) { // of READ pieces and atomics outstanding there
        rings->requested_capacity = ALB_MAX(attr->max_rd_atomic, 1);
        rings->requested_ends =
            alb_engine_get_memory(engine, rings->requested_capacity * sizeof(*rings->requested_ends));
        is_complete = is_complete && rings->requested_ends;
    }
    if (is_complete)
        return 0;
    free_rings(engine, rings);
    return ENOMEM;
}

// The latest results, oldest first: the peer may still ask for them.
static void keep_replays(const struct alb_rc *rc, struct rings *rings)
{
    uint32_t kept = ALB_MIN(rc->answer_capacity, rings->answer_capacity);
    for (uint32_t i = 0; i < kept; i++)
        rings->replays[i] = rc->replays[(rc->replay_next + rc->answer_capacity - kept + i) % rc->answer_capacity];
}

// Takes new rings in place of those in use, in which nothing is outstanding.
static void take_rings(struct alb_rc *rc, struct rings *rings)
{
    struct rings old = {0};
    if (rings->answers) {
        uint32_t kept = ALB_MIN(rc->answer_capacity, rings->answer_capacity);
        keep_replays(rc, rings);
        old.answers = rc->answers;
        old.replays = rc->replays;
        old.answer_capacity = rc->answer_capacity;
        rc->answers = rings->answers;
        rc->replays = rings->replays;
        rc->answer_capacity = rings->answer_capacity;
        rc->answer_first = 0;
        rc->replay_next = kept % rc->answer_capacity;
    }
    if (rings->requested_ends) {
        old.requested_ends = rc->requested_ends;
        old.requested_capacity = rc->requested_capacity;
        rc->requested_ends = rings->requested_ends;
        rc->requested_capacity = rings->requested_capacity;
        rc->requested_first = 0;
    }
    free_rings(rc->qp->engine, &old);
}

// What is in flight counts toward the new peer from now on, and a queue pair that waited for the old one's window tries
// again.
static void move_to_peer(struct alb_rc *rc, struct alb_peer *peer)
{
    struct alb_qp *qp = rc->qp;
    if (qp->peer) {
        qp->peer->unasked_bytes -= rc->unasked_bytes;
        qp->peer->unasked_qps -= rc->unasked_bytes > 0;
        alb_peer_release(qp->engine, qp->peer, rc->inflight_bytes);
        alb_scheduler_wake(&qp->engine->scheduler, &qp->source);
    }
    disconnect(qp);
    qp->peer = peer;
    alb_peer_charge(peer, rc->inflight_bytes);
    peer->unasked_bytes += rc->unasked_bytes;
    peer->unasked_qps += rc->unasked_bytes > 0;
}

static void destroy(struct alb_qp *qp)
{
    struct alb_rc *rc = alb_rc_of(qp);
    struct rings rings = {rc->answers, rc->replays, rc->requested_ends, rc->answer_capacity, rc->requested_capacity};
    disconnect(qp);
    free_rings(qp->engine, &rings);
    alb_engine_put_memory(qp->engine, rc, sizeof(*rc));
}

static int modify(struct alb_qp *qp, uint32_t mask, enum alb_qp_state next)
{
    struct alb_rc *rc = alb_rc_of(qp);
    struct rings rings;
    // While draining, a ring in use keeps its place: the limits may change only with nothing outstanding.
    if ((mask & ALB_QP_MAX_DEST_RD_ATOMIC && rc->answer_count > 0) ||
        (mask & ALB_QP_MAX_QP_RD_ATOMIC && rc->requested_count > 0))
        return EBUSY;
    struct alb_peer *peer = NULL;
    if (mask & ALB_QP_AV) {
        peer = alb_peer_get(qp->engine, &qp->flow.peer);
        if (!peer)
            return ENOMEM;
    }
    int error = get_rings(rc, mask, &rings);
    if (error) {
        if (peer)
            alb_peer_put(qp->engine, peer);
        return error;
    }
    if (peer)
        move_to_peer(rc, peer);
    take_rings(rc, &rings);
    if (mask & ALB_QP_RQ_PSN) {
        rc->expected = qp->attr.rq_psn;
        rc->behind_ack = 0;
    }
    if (mask & ALB_QP_SQ_PSN)
        rc->una = rc->next = rc->high = qp->attr.sq_psn;
    if (mask & ALB_QP_TIMEOUT && (rc->una != rc->next || rc->is_held))
        alb_rc_watch(rc);
    else if (mask & ALB_QP_TIMEOUT) // the next packet arms it, by the new one
        alb_wheel_disarm(&qp->engine->wheel, &rc->ack_timer.timer);
    if (mask & ALB_QP_RETRY_CNT) {
        rc->retries_left = qp->attr.retry_cnt;
        rc->timeouts = rc->held_timeouts = 0;
        rc->exceeds_window = false;
    }
    if (mask & ALB_QP_RNR_RETRY)
        rc->rnr_retries_left = qp->attr.rnr_retry;
    return 0;
}

static void reset(struct alb_rc *rc)
{
    rc->cursor = rc->started = 0;
    rc->una = rc->next = rc->high = rc->expected = 0;
    rc->is_blocked = false;
    rc->answered_open = 0;
    alb_rc_note_asked(rc);
    rc->msn = 0;
    rc->loss_receiver = (struct alb_loss_receiver){0};
    rc->loss_sender = (struct alb_loss_sender){0};
    rc->assembly = (struct alb_assembly){0};
    rc->answer_first = rc->answer_count = 0;
    for (uint32_t i = 0; i < rc->answer_capacity; i++)
        rc->replays[i].is_valid = false;
    rc->ack_is_due = rc->nak_is_due = rc->cnp_is_due = false;
    rc->np = (struct alb_dcqcn_np){0};
    rc->asks_next = false;
    rc->farewells = 0;
}

// In error a NAK that says why, and the answers owed before it, are still sent; without one, the acknowledgement of
// what came before, unless that would acknowledge what is not answered any more.
static void end_answers(struct alb_rc *rc)
{
    if (rc->nak_is_due || rc->answer_count) {
        rc->ack_is_due = false;
        rc->farewells = 0;
    }
    if (!rc->nak_is_due && !rc->is_completing)
        rc->answer_count = 0;
    rc->cnp_is_due = false;
}

static void on_state(struct alb_qp *qp, enum alb_qp_state old, alb_time now)
{
    struct alb_rc *rc = alb_rc_of(qp);
    switch (alb_qp_state_of(qp)) {
    case ALB_QPS_RESET:
        alb_rc_requester_stop(rc);
        reset(rc);
        alb_scheduler_remove(&qp->source);
        disconnect(qp);
        break;
    case ALB_QPS_ERR:
        alb_rc_requester_stop(rc);
        alb_assembly_abandon(&rc->assembly);
        end_answers(rc);
        if (!alb_rc_owes(rc))
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

// Its UDP source port says nothing: RoCE uses it for entropy.
enum alb_drop alb_rc_check_peer(const struct alb_qp *qp, const struct alb_datagram *datagram)
{
    if (!alb_addr_equals(&datagram->peer.addr, &qp->flow.peer.addr))
        return ALB_DROP_WRONG_PEER;
    if (!alb_addr_equals(&datagram->local.addr, &qp->flow.local.addr))
        return ALB_DROP_WRONG_LOCAL;
    return ALB_DROP_NONE;
}

// One half of an XRC connection only asks, the other only answers.
static bool takes(enum alb_qp_type type, uint32_t flags)
{
    uint32_t excluded = type == ALB_QPT_XRC_SEND   ? ALB_OPCODE_REQUEST
                        : type == ALB_QPT_XRC_RECV ? ALB_OPCODE_RESPONSE
                                                   : 0;
    return !(flags & excluded);
}

static enum alb_drop admit(const struct alb_qp *qp, const struct alb_packet *packet)
{
    enum alb_service service = packet->info->service;
    if (service != ALB_SERVICE_CNP && (service != alb_rc_of(qp)->service || !takes(qp->type, packet->info->flags)))
        return ALB_DROP_BAD_SERVICE;
    if (alb_unlikely(!qp->peer)) // reset, and in error without a connection since
        return ALB_DROP_WRONG_QP_STATE;
    return alb_rc_check_peer(qp, packet->datagram);
}

static enum alb_drop rx(struct alb_qp *qp, const struct alb_packet *packet, alb_time now)
{
    struct alb_rc *rc = alb_rc_of(qp);
    enum alb_drop drop = admit(qp, packet);
    if (drop != ALB_DROP_NONE)
        return drop;
    qp->peer->heard = now;
    if (alb_unlikely(packet->info->service == ALB_SERVICE_CNP)) {
        alb_rc_on_cnp(rc, now);
        return ALB_DROP_NONE;
    }
    if (alb_unlikely(alb_datagram_is_marked(packet->datagram)))
        alb_rc_on_mark(rc, packet, now);
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
    if (alb_qp_state_of(qp) < ALB_QPS_RTR)
        return true;
    if (alb_qp_state_of(qp) == ALB_QPS_ERR)
        return !alb_rc_owes(rc);
    // While draining, what has not begun waits for the program.
    bool is_draining = alb_qp_state_of(qp) == ALB_QPS_SQD;
    uint32_t done = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
    uint32_t wanted = is_draining ? done : atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
    return rc->una == rc->high && !alb_rc_owes(rc) && rc->started == wanted;
}

// With independent losses of 1 %, three acknowledgements leave one peer in a million waiting.
#define FAREWELLS 2

static void farewell(struct alb_qp *qp)
{
    struct alb_rc *rc = alb_rc_of(qp);
    enum alb_qp_state state = alb_qp_state_of(qp);
    bool is_connected = state == ALB_QPS_RTR || state == ALB_QPS_RTS || state == ALB_QPS_SQD;
    if (!is_connected || alb_rc_ack_end(rc) == qp->attr.rq_psn || rc->behind_ack == ALB_RC_ACK_REACH)
        return;
    rc->farewells = FAREWELLS;
    alb_scheduler_wake(&qp->engine->scheduler, &qp->source);
}

static void query(const struct alb_qp *qp, struct alb_qp_attr *attr)
{
    const struct alb_rc *rc = alb_rc_of(qp);
    if (alb_qp_state_of(qp) >= ALB_QPS_RTR)
        attr->rq_psn = rc->expected;
    if (alb_qp_state_of(qp) >= ALB_QPS_RTS)
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
    .rx_usual = alb_rc_rx_usual,
    .farewell = farewell,
    .is_quiet = is_quiet,
    .query = query,
};
