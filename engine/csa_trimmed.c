// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_trimmed.h"

#include "engine/csa_admit.h"
#include "engine/impl.h"

// ---- in -------------------------------------------------------------------------------------------------------------

static struct alb_assoc *find_sender(struct alb_engine *engine, const struct alb_datagram *datagram,
                                     const struct alb_csa_header *header)
{
    if (header->dest_slot != engine->config.slot || header->source_slot > UINT8_MAX)
        return NULL;
    struct alb_assoc *assoc =
        alb_assoc_find(engine, &datagram->local.addr, &datagram->peer.addr, (uint8_t)header->source_slot);
    bool may_be_for_us =
        assoc && (header->destination_epoch == 0 || header->destination_epoch == alb_assoc_epoch(engine->csa, assoc));
    return may_be_for_us ? assoc : NULL; // 0: it does not know us yet
}

static struct alb_csa *find_qp(struct alb_engine *engine, const struct alb_assoc *assoc, alb_qpn qpn)
{
    const struct alb_qp *qp = alb_engine_find_qp(engine, qpn);
    if (!qp || qp->delivery != &alb_csa_ops || alb_qp_state_of(qp) < ALB_QPS_RTR || alb_qp_state_of(qp) == ALB_QPS_ERR)
        return NULL;
    struct alb_csa *csa = alb_csa_of(qp);
    return csa->assoc == assoc ? csa : NULL;
}

// The queue pair is bound to that life of the sender; or to none yet, and the segment is of the first message, by the
// number that was agreed: that proves its sender when it comes whole (csa_admit.c).
static bool is_believed(const struct alb_csa *csa, const struct alb_csa_header *header,
                        const struct alb_csa_trimmed *trimmed)
{
    alb_psn first = csa->qp->attr.rq_psn;
    if (trimmed->is_response && !alb_csa_has_begun_to_ask(csa))
        return false;
    if (csa->bound_epoch != 0)
        return csa->bound_epoch == header->source_epoch;
    return !trimmed->is_response && csa->in_requests.cumulative == first &&
           alb_psn_add(trimmed->psn, -(int32_t)trimmed->index) == first;
}

static bool is_missing(const struct alb_stream_in *in, alb_psn psn)
{
    if (!alb_psn_is_within(psn, in->cumulative, in->csa->qp->engine->config.csa_window_segments))
        return false;
    uint32_t distance = (uint32_t)alb_psn_diff(psn, in->cumulative);
    return distance >= in->capacity || !alb_bitmap_test(in->held, psn & (in->capacity - 1));
}

static bool is_waiting(const struct alb_trimmed_in *in, const struct alb_csa_trimmed *trimmed)
{
    for (uint32_t i = 0; i < in->count; i++) {
        const struct alb_csa_trimmed *other = &in->waiting[(in->first + i) % ALB_TRIMMED_MAX];
        if (other->path == trimmed->path && other->sequence == trimmed->sequence)
            return true;
    }
    return false;
}

// With the next packet to the peer.
static bool tell(struct alb_assoc_live *live, const struct alb_csa_trimmed *trimmed)
{
    struct alb_trimmed_in *in = &live->trimmed;
    if (in->count == ALB_TRIMMED_MAX || is_waiting(in, trimmed))
        return false;
    in->waiting[(in->first + in->count++) % ALB_TRIMMED_MAX] = *trimmed;
    live->trimmed_is_due = true;
    alb_csa_turn_tell(live);
    return true;
}

static bool note(struct alb_engine *engine, const struct alb_datagram *datagram)
{
    struct alb_csa_header header;
    struct alb_csa_trimmed trimmed;
    if (!engine->csa || datagram->length < ALB_BTH_BYTES || !alb_csa_is_packet(datagram->bytes, datagram->length) ||
        alb_csa_decode_trimmed(datagram->bytes, datagram->length, &header, &trimmed) != ALB_DROP_NONE)
        return false;
    const struct alb_assoc *assoc = find_sender(engine, datagram, &header);
    const struct alb_csa *csa = assoc ? find_qp(engine, assoc, trimmed.dest_qpn) : NULL;
    if (!csa || !is_believed(csa, &header, &trimmed) ||
        !is_missing(trimmed.is_response ? &csa->in_responses : &csa->in_requests, trimmed.psn))
        return false;
    trimmed.dest_qpn = csa->qp->attr.dest_qpn;
    if (assoc->peer_epoch == 0)
        return alb_csa_reply_trimmed(engine, datagram, &header, &trimmed);
    return assoc->peer_epoch == header.source_epoch && assoc->live && tell(assoc->live, &trimmed);
}

void alb_engine_rx_trimmed(struct alb_engine *engine, const struct alb_datagram *datagram, alb_time now)
{
    engine->now = now;
    alb_engine_count_drop(engine, ALB_DROP_TRUNCATED);
    if (note(engine, datagram))
        engine->stats->sum.counter[ALB_STAT_trimmed_reported]++;
}

// ---- out ------------------------------------------------------------------------------------------------------------

// Its path has not lost it: that there is congestion is all it says of the network.
static void note_congestion(struct alb_assoc_live *live, const struct alb_csa_trimmed *trimmed, uint32_t bytes,
                            alb_time now)
{
    const struct alb_congestion_ops *ops = live->engine->congestion;
    uint32_t inflight_bytes = (uint32_t)live->inflight_bytes;
    alb_path_trimmed(live->paths, trimmed->path, trimmed->sequence, now);
    alb_congestion_on_mark(ops, &live->congestion, inflight_bytes, now);
    alb_congestion_on_loss(ops, &live->congestion, inflight_bytes, bytes, ALB_LOSS_TRIMMED, now);
}

enum alb_drop alb_csa_on_trimmed(struct alb_csa_arrival *arrival, const struct alb_csa_trimmed *trimmed, alb_time now)
{
    struct alb_csa *csa;
    uint32_t bytes = 0;
    if (!arrival->is_proven)
        return ALB_DROP_NOT_PROVEN;
    enum alb_drop drop = alb_csa_find_qp(arrival, trimmed->dest_qpn, &csa);
    if (drop != ALB_DROP_NONE)
        return drop;
    struct alb_stream_out *out = trimmed->is_response ? &csa->responses : &csa->requests;
    if (csa->bound_epoch != arrival->header.source_epoch && csa->bound_epoch != 0)
        return ALB_DROP_BAD_EPOCH;
    alb_psn psn = trimmed->psn;
    if (!alb_stream_out_trimmed(out, psn, trimmed->path, trimmed->sequence, &bytes))
        return ALB_DROP_STALE_RESPONSE;
    do // those behind it that were in the same packet
        psn = alb_psn_next(psn);
    while (alb_stream_out_trimmed(out, psn, trimmed->path, trimmed->sequence, &bytes));
    alb_qp_count(csa->qp, ALB_STAT_trimmed_pkts, 1);
    alb_csa_heard(csa, now);
    note_congestion(arrival->live, trimmed, bytes, now);
    if (bytes)
        alb_assoc_release(arrival->live, bytes);
    alb_stream_out_wake(out);
    return ALB_DROP_NONE;
}
