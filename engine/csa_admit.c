// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_admit.h"

#include "engine/impl.h"

// ---- the end of a life ----------------------------------------------------------------------------------------------

// The peer is another one than the queue pairs bound to that epoch were connected with: it knows nothing of them.
static void fail_bound(struct alb_engine *engine, const struct alb_assoc *assoc, uint32_t epoch, alb_time now)
{
    uint32_t left = engine->qp_count;
    for (uint32_t i = 0; left > 0 && i < engine->config.qp_max; i++) {
        struct alb_qp *qp = engine->qps[i];
        if (!qp)
            continue;
        left--;
        if (qp->delivery != &alb_csa_ops)
            continue;
        struct alb_csa *csa = alb_csa_of(qp);
        enum alb_qp_state state = alb_qp_state_of(qp);
        if (csa->assoc != assoc || csa->bound_epoch != epoch)
            continue;
        alb_stream_in_forget_report(&csa->in_requests);
        alb_stream_in_forget_report(&csa->in_responses);
        if (state == ALB_QPS_RTR || state == ALB_QPS_RTS || state == ALB_QPS_SQD)
            alb_csa_fail(csa, ALB_WC_RETRY_EXC_ERR, 0, "the peer's device was restarted", now);
        if (csa->is_refusing) // it was in error, and still answered what came before
            alb_csa_stop_answering(csa);
        csa->is_refusing = false;
    }
}

static uint32_t our_epoch(const struct alb_csa_arrival *arrival)
{
    const struct alb_csa_engine *csa = arrival->engine->csa;
    const struct alb_datagram *datagram = arrival->datagram;
    if (alb_likely(arrival->assoc))
        return alb_assoc_epoch(csa, arrival->assoc);
    return alb_csa_epoch_for(csa, &datagram->local.addr, &datagram->peer.addr, (uint8_t)arrival->header.source_slot);
}

// Only a reader of the packet that is refused knows both epochs: the one it came from and the one it named.
static enum alb_drop on_reset(struct alb_csa_arrival *arrival, const struct alb_csa_frame *frame, alb_time now)
{
    struct alb_assoc *assoc = arrival->assoc;
    uint32_t epoch = frame->reset.epoch;
    if (!assoc || arrival->header.destination_epoch != our_epoch(arrival) || epoch == 0 || epoch != assoc->peer_epoch ||
        frame->reset.reason != ALB_CSA_RESET_EPOCH)
        return ALB_DROP_NOT_PROVEN;
    alb_assoc_restart(arrival->engine, assoc, 0);
    fail_bound(arrival->engine, assoc, epoch, now);
    return ALB_DROP_NONE;
}

// ---- a packet -------------------------------------------------------------------------------------------------------

static bool wake(struct alb_csa_arrival *arrival)
{
    arrival->live = alb_assoc_wake(arrival->engine, arrival->assoc);
    return arrival->live != NULL;
}

// True if the first frame is RESET or COOKIE, and can be understood: such a packet has no other.
static bool ends_here(struct alb_csa_cursor cursor, struct alb_csa_frame *frame)
{
    enum alb_drop drop = ALB_DROP_NONE;
    if (alb_likely(cursor.at == cursor.end || (cursor.at[0] != ALB_CSA_RESET && cursor.at[0] != ALB_CSA_COOKIE)))
        return false;
    return alb_csa_next(&cursor, frame, &drop);
}

enum alb_drop alb_csa_admit_packet(struct alb_csa_arrival *arrival, struct alb_csa_cursor cursor, bool *ends,
                                   alb_time now)
{
    struct alb_engine *engine = arrival->engine;
    const struct alb_csa_header *header = &arrival->header;
    const struct alb_datagram *datagram = arrival->datagram;
    struct alb_csa_frame frame;
    *ends = false;
    if (header->dest_slot != engine->config.slot || header->source_slot > UINT8_MAX || header->source_epoch == 0)
        return ALB_DROP_WRONG_PEER;
    struct alb_assoc *assoc =
        alb_assoc_find(engine, &datagram->local.addr, &datagram->peer.addr, (uint8_t)header->source_slot);
    arrival->assoc = assoc;
    if (ends_here(cursor, &frame)) {
        *ends = true;
        return frame.type == ALB_CSA_RESET ? on_reset(arrival, &frame, now) : alb_csa_on_cookie(arrival, &frame);
    }
    bool knows_us = header->destination_epoch != 0 && header->destination_epoch == our_epoch(arrival);
    if (header->destination_epoch != 0 && !knows_us) {
        alb_csa_reply_reset(engine, datagram, header);
        return ALB_DROP_BAD_EPOCH;
    }
    if (!assoc) // frame by frame: a datagram is taken of anyone
        return ALB_DROP_NONE;
    if (header->source_epoch == assoc->dead_epoch)
        return ALB_DROP_BAD_EPOCH;
    if (knows_us && assoc->peer_epoch == 0)
        assoc->peer_epoch = header->source_epoch;
    arrival->is_proven = knows_us && header->source_epoch == assoc->peer_epoch;
    return arrival->is_proven && !wake(arrival) ? ALB_DROP_NO_RESOURCES : ALB_DROP_NONE;
}

// ---- a queue pair ---------------------------------------------------------------------------------------------------

// The first message that the queue pair gets, with the number that it was given when it was connected.
static bool is_proof(const struct alb_csa *csa, const struct alb_csa_segment *segment)
{
    alb_psn first = alb_psn_add(segment->psn, -(int32_t)segment->index);
    return first == csa->qp->attr.rq_psn && csa->in_requests.cumulative == first;
}

void alb_csa_believe(struct alb_csa_arrival *arrival)
{
    struct alb_assoc *assoc = arrival->assoc;
    uint32_t epoch = arrival->header.source_epoch;
    if (assoc->peer_epoch != 0 && assoc->peer_epoch != epoch) {
        alb_assoc_restart(arrival->engine, assoc, epoch);
        fail_bound(arrival->engine, assoc, assoc->dead_epoch, arrival->engine->now);
    }
    assoc->peer_epoch = epoch;
    arrival->is_proven = true;
}

enum alb_drop alb_csa_admit(struct alb_csa_arrival *arrival, struct alb_csa *csa, const struct alb_csa_segment *segment,
                            bool fits)
{
    uint32_t epoch = arrival->header.source_epoch;
    if (alb_likely(csa->bound_epoch == epoch && arrival->live))
        return ALB_DROP_NONE;
    if (csa->bound_epoch != 0 && csa->bound_epoch != epoch)
        return ALB_DROP_BAD_EPOCH;
    if (csa->bound_epoch == 0 && !fits)
        return ALB_DROP_NOT_PROVEN;
    bool must_prove = !arrival->is_proven && csa->bound_epoch == 0;
    if (must_prove && (!segment || !is_proof(csa, segment) || alb_csa_is_another_life(arrival)))
        return ALB_DROP_NOT_PROVEN;
    if (!arrival->live && !wake(arrival))
        return ALB_DROP_NO_RESOURCES;
    if (must_prove) // whoever is proven has an association that is awake
        alb_csa_believe(arrival);
    csa->bound_epoch = epoch;
    return ALB_DROP_NONE;
}
