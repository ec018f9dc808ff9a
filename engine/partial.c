// SPDX-License-Identifier: BSD-2-Clause
// The bitmap of a message as programs read it: that of UC is kept for them, that of RC is what its streams go by.
#include "engine/partial.h"

#include "engine/csa_loose.h"
#include "engine/impl.h"

#include <errno.h>

// Where the bits of a message's segments are.
struct bits {
    uint32_t total_bytes, segment_bytes, packets;
    const uint64_t *words; // UC
    const struct alb_stream_in *in;
    const struct alb_stream_out *out;
    alb_psn first;
};

static bool out_holds(const struct alb_stream_out *out, alb_psn psn)
{
    if (alb_psn_is_before(psn, out->una))
        return true;
    return alb_psn_is_before(psn, out->next) && alb_stream_out_at(out, psn)->state == ALB_SENT_HELD;
}

static bool in_holds(const struct alb_stream_in *in, alb_psn psn)
{
    if (alb_psn_is_before(psn, in->cumulative))
        return true;
    return alb_psn_is_before(psn, in->highest) && alb_bitmap_test(in->held, psn & (in->capacity - 1));
}

static bool is_held(const struct bits *bits, uint32_t segment)
{
    if (bits->words)
        return alb_bitmap_test(bits->words, segment);
    alb_psn psn = alb_psn_add(bits->first, (int32_t)segment);
    return bits->in ? in_holds(bits->in, psn) : out_holds(bits->out, psn);
}

// ---- chunks of segments ---------------------------------------------------------------------------------------------

// The chunks that lie in bytes [from, past) as a whole, from past on; the last one may be shorter.
struct chunks {
    uint32_t first, past;
};

static struct chunks chunks_within(const struct bits *bits, uint32_t chunk_bytes, uint64_t from, uint64_t past)
{
    bool is_last = past >= bits->total_bytes;
    return (struct chunks){
        .first = (uint32_t)((from + chunk_bytes - 1) / chunk_bytes),
        .past = is_last ? (bits->total_bytes - 1) / chunk_bytes + 1 : (uint32_t)(past / chunk_bytes),
    };
}

static int fold(const struct bits *bits, struct alb_partial *partial, uint64_t *bitmap, uint32_t words)
{
    uint32_t chunk_bytes = partial->chunk_bytes ? partial->chunk_bytes : bits->segment_bytes;
    uint32_t segments = bits->total_bytes ? (bits->total_bytes - 1) / bits->segment_bytes + 1 : 0;
    partial->total_bytes = bits->total_bytes;
    partial->chunk_bytes = chunk_bytes;
    partial->chunks = bits->total_bytes ? (bits->total_bytes - 1) / chunk_bytes + 1 : 0;
    partial->held = 0;
    bool has_room = !bitmap || (uint32_t)ALB_BITMAP_WORDS(partial->chunks) <= words;
    if (bitmap && has_room)
        memset(bitmap, 0, ALB_BITMAP_WORDS(partial->chunks) * sizeof(*bitmap));
    for (uint32_t from = 0, past; from < segments; from = past + 1) { // stretches of segments that are held
        for (past = from; past < segments && is_held(bits, past); past++)
            ;
        struct chunks held = chunks_within(bits, chunk_bytes, (uint64_t)from * bits->segment_bytes,
                                           (uint64_t)past * bits->segment_bytes);
        if (past == from || held.past <= held.first)
            continue;
        partial->held += held.past - held.first;
        if (bitmap && has_room)
            alb_bitmap_set_range(bitmap, held.first, held.past);
    }
    return has_room ? 0 : ENOSPC;
}

// ---- UC -------------------------------------------------------------------------------------------------------------

static int query_uc(const struct alb_csa_uc *uc, bool is_receiving, uint32_t number, struct alb_partial *partial,
                    uint64_t *bitmap, uint32_t words)
{
    if (!uc->partials)
        return EINVAL;
    struct alb_csa_partial *message =
        alb_csa_partial_find(uc, is_receiving ? ALB_PARTIAL_RECEIVING : ALB_PARTIAL_SENDING, number);
    if (!message)
        return ENOENT;
    alb_csa_partial_clear(message);
    const struct bits bits = {
        .total_bytes = message->total_bytes,
        .segment_bytes = message->segment_bytes,
        .packets = message->packets,
        .words = message->held,
    };
    partial->number = message->number;
    partial->remote_addr = message->va;
    partial->is_complete = message->is_complete;
    return fold(&bits, partial, bitmap, words);
}

int alb_qp_partial_enable(struct alb_qp *qp, uint32_t messages_max)
{
    uint32_t capacity = 1;
    if (qp->delivery != &alb_csa_uc_ops)
        return EOPNOTSUPP;
    if (messages_max == 0 || messages_max > ALB_PARTIAL_MESSAGES_MAX || alb_csa_uc_of(qp)->partials)
        return EINVAL;
    while (capacity < messages_max)
        capacity *= 2;
    return alb_csa_partials_create(alb_csa_uc_of(qp), capacity);
}

int alb_qp_partial_ask(struct alb_qp *qp, uint32_t number, alb_time now)
{
    (void)now;
    if (qp->delivery != &alb_csa_uc_ops || !alb_csa_uc_of(qp)->partials || number == 0)
        return EINVAL;
    struct alb_csa_partial *message = alb_csa_partial_find(alb_csa_uc_of(qp), ALB_PARTIAL_SENDING, number);
    if (!message || alb_qp_state_of(qp) != ALB_QPS_RTS)
        return ENOENT;
    if (!message->is_complete)
        alb_csa_partial_owe(alb_csa_uc_of(qp), message);
    return 0;
}

// ---- RC -------------------------------------------------------------------------------------------------------------

static bool is_message(const struct alb_send_wqe *wqe)
{
    switch (wqe->opcode) {
    case ALB_WR_RDMA_WRITE:
    case ALB_WR_RDMA_WRITE_WITH_IMM:
    case ALB_WR_SEND:
    case ALB_WR_SEND_WITH_IMM:
    case ALB_WR_SEND_WITH_INV:
        return !wqe->is_done;
    default:
        return false;
    }
}

static int query_sending(const struct alb_csa *csa, struct alb_partial *partial, uint64_t *bitmap, uint32_t words)
{
    const struct alb_stream_out *out = &csa->requests;
    uint32_t head = atomic_load_explicit(&csa->qp->sq.head, memory_order_relaxed);
    for (uint32_t i = head; i != csa->started; i++) {
        const struct alb_send_wqe *wqe = alb_csa_wqe(csa, i);
        if (!is_message(wqe) || !alb_psn_is_before(out->una, alb_psn_add(wqe->first_psn, (int32_t)wqe->packets)))
            continue;
        const struct bits bits = {
            .total_bytes = wqe->length,
            .segment_bytes = wqe->segment_bytes,
            .packets = wqe->packets,
            .out = out,
            .first = wqe->first_psn,
        };
        bool is_write = wqe->opcode == ALB_WR_RDMA_WRITE || wqe->opcode == ALB_WR_RDMA_WRITE_WITH_IMM;
        partial->remote_addr = is_write ? wqe->remote_addr : 0;
        return fold(&bits, partial, bitmap, words);
    }
    return ENOENT;
}

static int query_receiving(const struct alb_csa *csa, struct alb_partial *partial, uint64_t *bitmap, uint32_t words)
{
    const struct alb_stream_in *in = &csa->in_requests;
    uint32_t packets = (uint32_t)alb_psn_diff(in->past, in->first);
    if (!in->is_open || !alb_csa_is_message(in->op) || (in->segment_bytes == 0 && packets > 1))
        return ENOENT; // or only its last segment has come
    const struct bits bits = {
        .total_bytes = in->total_bytes,
        .segment_bytes = in->segment_bytes ? in->segment_bytes : ALB_MAX(in->total_bytes, 1u),
        .packets = packets,
        .in = in,
        .first = in->first,
    };
    partial->remote_addr = csa->target.kind == ALB_TARGET_REGION ? csa->target.va : 0;
    return fold(&bits, partial, bitmap, words);
}

int alb_qp_partial(const struct alb_qp *qp, bool is_receiving, uint32_t number, struct alb_partial *partial,
                   uint64_t *bitmap, uint32_t words)
{
    *partial = (struct alb_partial){.chunk_bytes = partial->chunk_bytes};
    if (qp->delivery == &alb_csa_uc_ops)
        return query_uc(alb_csa_uc_of(qp), is_receiving, number, partial, bitmap, words);
    if (qp->delivery != &alb_csa_ops || qp->type != ALB_QPT_RC)
        return EOPNOTSUPP;
    if (number != 0)
        return EINVAL;
    return is_receiving ? query_receiving(alb_csa_of(qp), partial, bitmap, words)
                        : query_sending(alb_csa_of(qp), partial, bitmap, words);
}
