// SPDX-License-Identifier: BSD-2-Clause
#include "engine/unreliable.h"

#include "engine/impl.h"
#include "engine/outbound.h"
#include "engine/segmenter.h"

#include <errno.h>

#define PACKET_OVERHEAD 64 // what a packet counts toward the rate beside its payload

static uint32_t head_of(const struct alb_unreliable *u)
{
    return atomic_load_explicit(&u->qp->sq.head, memory_order_relaxed);
}

// ---- completion -----------------------------------------------------------------------------------------------------

static const char *text_of(enum alb_wc_status status)
{
    switch (status) {
    case ALB_WC_LOC_LEN_ERR:
        return "the message is longer than the path MTU allows";
    case ALB_WC_LOC_PROT_ERR:
        return "a local key does not cover the request's memory";
    default:
        return "the request failed before it was sent";
    }
}

static void retire(struct alb_unreliable *u, alb_time now)
{
    struct alb_qp *qp = u->qp;
    while (head_of(u) != u->cursor && alb_qp_state_of(qp) != ALB_QPS_ERR)
        alb_qp_complete_send(qp, ALB_WC_SUCCESS, now);
    if (u->is_blocked && head_of(u) == u->cursor) {
        struct alb_send_wqe *wqe = alb_send_queue_at(&qp->sq, u->cursor);
        struct alb_qp_failure failure = {.status = wqe->status, .reason = text_of(wqe->status)};
        alb_qp_fail(qp, wqe, &failure, now);
        return;
    }
    bool is_drained = head_of(u) == u->cursor && !u->is_open;
    if (alb_qp_state_of(qp) == ALB_QPS_SQD && is_drained && !qp->drain_raised) {
        qp->drain_raised = true;
        if (qp->attr.en_sqd_async_notify)
            alb_event_raise(qp->engine, &qp->event, ALB_EVENT_SQ_DRAINED);
    }
}

void alb_unreliable_retire_all(struct alb_engine *engine, alb_time now)
{
    struct alb_list *node;
    while ((node = alb_list_pop(&engine->unsent)))
        retire(ALB_LIST_ENTRY(node, struct alb_unreliable, unsent), now);
}

static void retire_soon(struct alb_unreliable *u)
{
    if (!alb_list_is_linked(&u->unsent))
        alb_list_push_back(&u->qp->engine->unsent, &u->unsent);
}

// ---- sending --------------------------------------------------------------------------------------------------------

static void finish_request(struct alb_unreliable *u)
{
    u->cursor++;
    u->sent = 0;
    u->is_open = false;
    retire_soon(u);
}

static void block(struct alb_unreliable *u, struct alb_send_wqe *wqe, enum alb_wc_status status)
{
    wqe->status = (uint8_t)status;
    u->is_blocked = true;
    retire_soon(u);
}

// Looks at the request at the cursor before its first packet. False if it has none: executed here, or failed.
static bool open_request(struct alb_unreliable *u, struct alb_send_wqe *wqe)
{
    struct alb_qp *qp = u->qp;
    bool is_local = alb_outbound_is_local(wqe);
    enum alb_wc_status status = is_local ? alb_outbound_execute(qp, wqe) : alb_outbound_check(qp, wqe);
    wqe->packets = 0; // of what never reaches the wire
    if (!is_local) {
        wqe->segment_bytes = u->cut ? u->cut(qp, wqe) : u->mtu_bytes;
        wqe->packets = alb_segmenter_packets(wqe->length, wqe->segment_bytes);
    }
    if (status == ALB_WC_SUCCESS && qp->type == ALB_QPT_UD && wqe->packets > 1)
        status = ALB_WC_LOC_LEN_ERR;
    if (status != ALB_WC_SUCCESS) {
        block(u, wqe, status);
        return false;
    }
    if (is_local) {
        finish_request(u);
        return false;
    }
    alb_outbound_change_source(qp, wqe);
    wqe->first_psn = u->next;
    u->is_open = true;
    return true;
}

// csa: all of its segments have told how many there are. Were the next message numbered among those that do not come,
// it would be taken for a late part of this one.
static void skip_rest(struct alb_unreliable *u, const struct alb_send_wqe *wqe)
{
    if (u->cut && u->sent > 0 && !wqe->is_resend)
        u->next = alb_psn_add(wqe->first_psn, (int32_t)wqe->packets);
}

bool alb_unreliable_gather(struct alb_unreliable *u, struct alb_send_wqe *wqe, struct alb_tx_builder *builder,
                           uint32_t bytes)
{
    if (alb_outbound_gather(u->qp, wqe, builder, (uint64_t)u->sent * wqe->segment_bytes, bytes))
        return true;
    skip_rest(u, wqe);
    block(u, wqe, ALB_WC_LOC_PROT_ERR);
    return false;
}

void alb_unreliable_sent(struct alb_unreliable *u, struct alb_send_wqe *wqe, uint32_t bytes, alb_time now)
{
    struct alb_qp *qp = u->qp;
    alb_trace_add(qp->engine, ALB_TRACE_send, qp->number, u->next, wqe->opcode, bytes, now);
    alb_pacer_charge(qp->engine, bytes + PACKET_OVERHEAD);
    if (!wqe->is_resend)
        u->next = alb_psn_next(u->next);
    if (++u->sent == wqe->packets)
        finish_request(u);
}

bool alb_unreliable_send_packet(struct alb_unreliable *u, struct alb_send_wqe *wqe, struct alb_tx_builder *builder,
                                alb_time now)
{
    uint32_t bytes = alb_segmenter_bytes(wqe->length, wqe->segment_bytes, u->sent, 1);
    struct alb_roce roce;
    struct alb_flow flow;
    if (!alb_tx_has_room(builder, alb_outbound_refs(wqe)))
        return false;
    u->fill(u->qp, wqe, u->sent, &roce, &flow);
    roce.psn = u->next;
    alb_tx_begin(builder, &flow, &roce, bytes);
    if (!alb_unreliable_gather(u, wqe, builder, bytes)) {
        alb_tx_cancel(builder);
        return true;
    }
    alb_tx_end(builder);
    alb_unreliable_sent(u, wqe, bytes, now);
    return true;
}

static bool may_send(const struct alb_unreliable *u)
{
    enum alb_qp_state state = alb_qp_state_of(u->qp);
    return (state == ALB_QPS_RTS || (state == ALB_QPS_SQD && u->is_open)) && !u->is_blocked;
}

static uint32_t tail_of(const struct alb_unreliable *u)
{
    return atomic_load_explicit(&u->qp->sq.tail, memory_order_acquire);
}

bool alb_unreliable_has_more(const struct alb_unreliable *u)
{
    return u->cursor != tail_of(u) && may_send(u);
}

struct alb_send_wqe *alb_unreliable_next(struct alb_unreliable *u, alb_time now)
{
    struct alb_qp *qp = u->qp;
    while (alb_unreliable_has_more(u)) {
        struct alb_send_wqe *wqe = alb_send_queue_at(&qp->sq, u->cursor);
        if (!u->is_open && !open_request(u, wqe))
            continue;
        if (u->skip)
            u->sent = u->skip(u, wqe);
        if (u->sent == wqe->packets) {
            finish_request(u);
            continue;
        }
        if (alb_pacer_permits(qp->engine, now))
            return wqe;
        alb_pacer_wait(qp->engine, &qp->source, now);
        return NULL;
    }
    return NULL;
}

static enum alb_build_result build_packets(struct alb_unreliable *u, struct alb_tx_builder *builder, alb_time now)
{
    uint32_t turn = builder->tx->burst_segments_max;
    for (uint32_t i = 0; i < turn; i++) {
        struct alb_send_wqe *wqe = alb_unreliable_next(u, now);
        if (!wqe)
            return ALB_BUILD_IDLE;
        if (!alb_unreliable_send_packet(u, wqe, builder, now))
            return ALB_BUILD_FULL;
    }
    return alb_unreliable_has_more(u) ? ALB_BUILD_MORE : ALB_BUILD_IDLE;
}

static enum alb_build_result build(struct alb_source *source, struct alb_tx_builder *builder, alb_time now)
{
    struct alb_qp *qp = ALB_CONTAINER_OF(source, struct alb_qp, source);
    uint32_t segments_before = builder->tx->segment_count;
    enum alb_build_result result = build_packets(alb_unreliable_of(qp), builder, now);
    alb_qp_count_sent(qp, builder->tx, segments_before);
    return result;
}

// ---- receiving ------------------------------------------------------------------------------------------------------

enum alb_drop alb_unreliable_drop_of(enum alb_outcome outcome)
{
    switch (outcome) {
    case ALB_OUTCOME_OK:
        return ALB_DROP_NONE;
    case ALB_OUTCOME_RNR:
        return ALB_DROP_NO_RECEIVE;
    case ALB_OUTCOME_ACCESS:
        return ALB_DROP_ACCESS;
    case ALB_OUTCOME_TOO_LONG:
        return ALB_DROP_RECEIVE_TOO_SHORT;
    default:
        return ALB_DROP_BAD_REQUEST;
    }
}

enum alb_drop alb_unreliable_break_receive(struct alb_qp *qp, alb_time now)
{
    struct alb_qp_failure failure = {
        .status = ALB_WC_LOC_PROT_ERR,
        .at_responder = true,
        .reason = "a local key does not cover the posted receive",
    };
    alb_inbound_fail(qp, ALB_OUTCOME_OPERATIONAL, now);
    if (alb_qp_state_of(qp) != ALB_QPS_ERR)
        alb_qp_fail(qp, NULL, &failure, now);
    return ALB_DROP_ACCESS;
}

// ---- life -----------------------------------------------------------------------------------------------------------

static void on_pace(struct alb_deadline *deadline, alb_time now)
{
    alb_unreliable_work(ALB_CONTAINER_OF(deadline, struct alb_unreliable, pace_timer)->qp, now);
}

int alb_unreliable_create(struct alb_qp *qp, size_t bytes, alb_unreliable_fill *fill)
{
    struct alb_unreliable *u = alb_engine_get_memory(qp->engine, bytes);
    if (!u)
        return ENOMEM;
    u->qp = qp;
    u->bytes = bytes;
    u->fill = fill;
    alb_list_init(&u->unsent);
    alb_deadline_init(&u->pace_timer, on_pace);
    qp->delivery_state = u;
    qp->source.build = build;
    return 0;
}

void alb_unreliable_destroy(struct alb_qp *qp)
{
    struct alb_unreliable *u = alb_unreliable_of(qp);
    alb_list_remove(&u->unsent);
    alb_engine_put_memory(qp->engine, u, u->bytes);
}

static void stop(struct alb_unreliable *u)
{
    alb_scheduler_remove(&u->qp->source);
    alb_wheel_disarm(&u->qp->engine->wheel, &u->pace_timer.timer);
    alb_list_remove(&u->unsent);
    u->cursor = atomic_load_explicit(&u->qp->sq.tail, memory_order_relaxed);
    u->sent = 0;
    u->is_open = false;
    u->is_blocked = false;
}

void alb_unreliable_on_state(struct alb_qp *qp, enum alb_qp_state old, alb_time now)
{
    struct alb_unreliable *u = alb_unreliable_of(qp);
    switch (alb_qp_state_of(qp)) {
    case ALB_QPS_RESET:
        stop(u);
        u->cursor = 0;
        u->next = u->expected = 0;
        u->is_lost = false;
        u->assembly = (struct alb_assembly){0};
        break;
    case ALB_QPS_ERR:
        alb_assembly_abandon(&u->assembly);
        stop(u);
        break;
    case ALB_QPS_SQE:
        stop(u);
        break;
    case ALB_QPS_SQD:
        retire_soon(u);
        break;
    case ALB_QPS_RTS:
        if (old == ALB_QPS_SQE) // what was posted meanwhile has been flushed
            u->cursor = head_of(u);
        break;
    default:
        break;
    }
}

void alb_unreliable_work(struct alb_qp *qp, alb_time now)
{
    alb_scheduler_wake(&qp->engine->scheduler, &qp->source);
}

bool alb_unreliable_is_quiet(const struct alb_qp *qp)
{
    const struct alb_unreliable *u = alb_unreliable_of(qp);
    enum alb_qp_state state = alb_qp_state_of(qp);
    return state != ALB_QPS_RTS || (u->cursor == tail_of(u) && !alb_list_is_linked(&u->unsent));
}

void alb_unreliable_query(const struct alb_qp *qp, struct alb_qp_attr *attr)
{
    const struct alb_unreliable *u = alb_unreliable_of(qp);
    if (alb_qp_state_of(qp) >= ALB_QPS_RTR)
        attr->rq_psn = u->expected;
    if (alb_qp_state_of(qp) >= ALB_QPS_RTS)
        attr->sq_psn = u->next;
}
