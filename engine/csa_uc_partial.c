// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_uc_partial.h"

#include "engine/csa_loose.h"
#include "engine/csa_message.h"
#include "engine/impl.h"
#include "engine/segmenter.h"

#include <errno.h>

#define FRAME_BITS (64 * ALB_CSA_BITMAP_WORDS) // that one frame covers

// ---- places ---------------------------------------------------------------------------------------------------------

static uint32_t held_bytes(const struct alb_csa_partial *partial)
{
    return (uint32_t)(ALB_BITMAP_WORDS(partial->packets) * sizeof(uint64_t));
}

static struct alb_csa_partial *place_of(const struct alb_csa_partials *partials, enum alb_partial_side side,
                                        uint32_t number)
{
    return &partials->places[side][number & (partials->capacity - 1)];
}

// What we send ourselves does not count as a peer's. NULL: there is no room.
static uint64_t *get_bits(struct alb_csa_uc *uc, struct alb_csa_partial *partial)
{
    struct alb_engine *engine = uc->u.qp->engine;
    uint32_t bytes = held_bytes(partial);
    if (bytes <= sizeof(partial->own))
        return &partial->own;
    return partial->is_incoming ? alb_csa_uc_get_bits(engine, bytes) : alb_buddy_get(&engine->csa->pool, bytes);
}

static void put_bits(struct alb_csa_uc *uc, const struct alb_csa_partial *partial)
{
    struct alb_engine *engine = uc->u.qp->engine;
    if (!partial->held || partial->held == &partial->own)
        return;
    if (partial->is_incoming)
        alb_csa_uc_put_bits(engine, partial->held, held_bytes(partial));
    else
        alb_buddy_put(&engine->csa->pool, partial->held, held_bytes(partial));
}

static void free_place(struct alb_csa_uc *uc, struct alb_csa_partial *partial)
{
    put_bits(uc, partial);
    if (partial->is_due)
        uc->partials->due_count--;
    *partial = (struct alb_csa_partial){0};
}

static void clear_part(struct alb_csa_partial *partial, uint32_t index)
{
    alb_csa_uc_clear_part(partial->held, &partial->cleared, partial->packets, index);
}

void alb_csa_partial_clear(struct alb_csa_partial *partial)
{
    for (uint32_t i = 0; i < partial->packets; i += ALB_CSA_UC_PART)
        clear_part(partial, i);
}

// False: there is no room, and the message is not known.
static bool fill_place(struct alb_csa_uc *uc, struct alb_csa_partial *place, const struct alb_csa_partial *with)
{
    free_place(uc, place);
    *place = *with;
    place->held = get_bits(uc, place);
    if (!place->held) {
        *place = (struct alb_csa_partial){0};
        return false;
    }
    if (!place->is_incoming)
        alb_csa_partial_clear(place);
    return true;
}

int alb_csa_partials_create(struct alb_csa_uc *uc, uint32_t capacity)
{
    struct alb_engine *engine = uc->u.qp->engine;
    size_t bytes = ALB_PARTIAL_SIDES * (size_t)capacity * sizeof(struct alb_csa_partial);
    struct alb_csa_partials *partials = alb_engine_get_memory(engine, sizeof(*partials) + bytes);
    if (!partials)
        return ENOMEM;
    partials->capacity = capacity;
    partials->places[ALB_PARTIAL_SENDING] = (struct alb_csa_partial *)(partials + 1);
    partials->places[ALB_PARTIAL_RECEIVING] = partials->places[ALB_PARTIAL_SENDING] + capacity;
    uc->partials = partials;
    return 0;
}

void alb_csa_partials_clear(struct alb_csa_uc *uc)
{
    struct alb_csa_partials *partials = uc->partials;
    if (!partials)
        return;
    for (uint32_t side = 0; side < ALB_PARTIAL_SIDES; side++) {
        for (uint32_t i = 0; i < partials->capacity; i++)
            free_place(uc, &partials->places[side][i]);
        partials->newest[side] = 0;
    }
}

void alb_csa_partials_destroy(struct alb_csa_uc *uc)
{
    struct alb_csa_partials *partials = uc->partials;
    if (!partials)
        return;
    alb_csa_partials_clear(uc);
    size_t bytes = ALB_PARTIAL_SIDES * (size_t)partials->capacity * sizeof(struct alb_csa_partial);
    alb_engine_put_memory(uc->u.qp->engine, partials, sizeof(*partials) + bytes);
    uc->partials = NULL;
}

struct alb_csa_partial *alb_csa_partial_find(const struct alb_csa_uc *uc, enum alb_partial_side side, uint32_t number)
{
    const struct alb_csa_partials *partials = uc->partials;
    uint32_t wanted = number ? number : partials->newest[side];
    struct alb_csa_partial *partial = place_of(partials, side, wanted);
    return wanted != 0 && partial->number == wanted ? partial : NULL;
}

static bool holds_all(const struct alb_csa_partial *partial)
{
    return partial->held_count == partial->packets;
}

// ---- the sender -----------------------------------------------------------------------------------------------------

uint32_t alb_csa_partial_open(struct alb_csa_uc *uc, const struct alb_send_wqe *wqe, uint32_t segment_bytes)
{
    struct alb_csa_partials *partials = uc->partials;
    if (wqe->is_resend) {
        const struct alb_csa_partial *partial = alb_csa_partial_find(uc, ALB_PARTIAL_SENDING, wqe->partial);
        return partial ? partial->segment_bytes : segment_bytes;
    }
    const struct alb_csa_partial begun = {
        .number = wqe->partial,
        .op = wqe->opcode == ALB_WR_RDMA_WRITE_WITH_IMM ? ALB_CSA_PARTIAL_WRITE_IMM : ALB_CSA_PARTIAL_WRITE,
        .is_solicited = wqe->flags & ALB_SEND_SOLICITED,
        .total_bytes = wqe->length,
        .segment_bytes = segment_bytes,
        .packets = alb_segmenter_packets(wqe->length, segment_bytes),
        .imm_be = wqe->imm_data,
        .va = wqe->remote_addr,
        .rkey = wqe->rkey,
        .first = uc->u.next,
    };
    partials->newest[ALB_PARTIAL_SENDING] = wqe->partial;
    fill_place(uc, place_of(partials, ALB_PARTIAL_SENDING, wqe->partial), &begun);
    return segment_bytes;
}

// The message that a request sends the rest of; NULL: forgotten, or the request is about another one.
static const struct alb_csa_partial *resent(const struct alb_csa_uc *uc, const struct alb_send_wqe *wqe)
{
    const struct alb_csa_partial *partial = alb_csa_partial_find(uc, ALB_PARTIAL_SENDING, wqe->partial);
    bool is_it = partial && partial->total_bytes == wqe->length && partial->va == wqe->remote_addr;
    return is_it && !partial->is_complete ? partial : NULL;
}

uint32_t alb_csa_partial_skip(const struct alb_csa_uc *uc, const struct alb_send_wqe *wqe, uint32_t from)
{
    if (!wqe->is_resend)
        return from;
    const struct alb_csa_partial *partial = resent(uc, wqe);
    return partial ? alb_bitmap_find_zero(partial->held, partial->packets, from) : wqe->packets;
}

void alb_csa_partial_describe(const struct alb_csa_uc *uc, const struct alb_send_wqe *wqe, uint32_t index,
                              struct alb_csa_segment *segment)
{
    const struct alb_csa_partial *partial = wqe->is_resend ? resent(uc, wqe) : NULL;
    bool is_imm = wqe->opcode == ALB_WR_RDMA_WRITE_WITH_IMM;
    bool is_solicited = wqe->flags & ALB_SEND_SOLICITED;
    uint32_t next = index + 1;
    segment->message = wqe->partial;
    segment->index = index;
    if (partial) {
        is_imm = partial->op == ALB_CSA_PARTIAL_WRITE_IMM;
        is_solicited = partial->is_solicited;
        segment->imm_be = partial->imm_be;
        segment->rkey = partial->rkey;
        segment->psn = alb_psn_add(partial->first, (int32_t)index);
        next = alb_bitmap_find_zero(partial->held, partial->packets, index + 1);
    }
    segment->op = is_imm ? ALB_CSA_PARTIAL_WRITE_IMM : ALB_CSA_PARTIAL_WRITE;
    segment->flags =
        (uint8_t)(ALB_CSA_UC | (is_imm && is_solicited ? ALB_CSA_SOLICITED : 0) |
                  (index == wqe->packets - 1 ? ALB_CSA_LAST : 0) | (next == wqe->packets ? ALB_CSA_REPORT_NOW : 0));
}

static void hear_some(struct alb_csa_partial *partial, const struct alb_csa_holds *holds)
{
    uint32_t first = holds->first;
    uint32_t past = (uint32_t)ALB_MIN(first + 64ull * holds->word_count, (uint64_t)partial->packets);
    partial->held_count -= alb_bitmap_count(partial->held, first, past);
    for (uint32_t i = first; i < past; i++)
        if (alb_bitmap_test(holds->held, i - first))
            alb_bitmap_set(partial->held, i);
    partial->held_count += alb_bitmap_count(partial->held, first, past);
}

static void hear_all(struct alb_csa_partial *partial)
{
    alb_bitmap_set_range(partial->held, 0, partial->packets);
    partial->held_count = partial->packets;
    partial->is_complete = true;
}

// A frame costs as much as it says: the message may have 2^22 segments, and 4,000 frames fit into a packet.
enum alb_drop alb_csa_partial_heard(struct alb_csa_uc *uc, const struct alb_csa_holds *holds)
{
    struct alb_csa_partial *partial = alb_csa_partial_find(uc, ALB_PARTIAL_SENDING, holds->message);
    if (!partial || holds->message == 0)
        return ALB_DROP_STALE_RESPONSE;
    if (holds->first % 64 != 0)
        return ALB_DROP_BAD_LENGTH;
    if (partial->is_complete)
        return ALB_DROP_NONE;
    if (holds->is_complete)
        hear_all(partial);
    else
        hear_some(partial, holds);
    return ALB_DROP_NONE;
}

// ---- the receiver ---------------------------------------------------------------------------------------------------

// Of the segments before this last one, which are some; false: they would not be of one length that they may have.
static bool cut_before(const struct alb_csa_segment *last, uint32_t *segment_bytes)
{
    uint32_t before = last->total_bytes - last->payload_bytes;
    *segment_bytes = before / last->index;
    return before % last->index == 0 && *segment_bytes % 4 == 0 && last->payload_bytes <= *segment_bytes;
}

// What the segment says of its message; false: its numbers contradict each other.
static bool message_of(const struct alb_csa_segment *segment, struct alb_csa_partial *message)
{
    *message = (struct alb_csa_partial){
        .number = segment->message,
        .op = segment->op,
        .is_incoming = true,
        .total_bytes = segment->total_bytes,
        .segment_bytes = segment->payload_bytes,
        .packets = alb_csa_message_packets(segment),
        .imm_be = segment->imm_be,
        .va = segment->va,
        .rkey = segment->rkey,
        .first = alb_psn_add(segment->psn, -(int32_t)segment->index),
    };
    if (segment->flags & ALB_CSA_LAST && segment->index > 0 && !cut_before(segment, &message->segment_bytes))
        return false;
    return message->packets > 0;
}

static bool is_same(const struct alb_csa_partial *a, const struct alb_csa_partial *b)
{
    return a->op == b->op && a->total_bytes == b->total_bytes && a->segment_bytes == b->segment_bytes &&
           a->packets == b->packets && a->va == b->va && a->rkey == b->rkey && a->first == b->first;
}

static enum alb_drop begin(struct alb_csa_uc *uc, const struct alb_csa_partial *message)
{
    struct alb_target target;
    struct alb_csa_partials *partials = uc->partials;
    if (message->total_bytes > ALB_MAX_MESSAGE)
        return ALB_DROP_BAD_REQUEST;
    enum alb_outcome outcome = alb_inbound_write(uc->u.qp, message->rkey, message->va, message->total_bytes, &target);
    if (outcome != ALB_OUTCOME_OK)
        return alb_unreliable_drop_of(outcome);
    if (!fill_place(uc, place_of(partials, ALB_PARTIAL_RECEIVING, message->number), message))
        return ALB_DROP_NO_RESOURCES;
    uint32_t newest = partials->newest[ALB_PARTIAL_RECEIVING];
    if (newest == 0 || (int32_t)(message->number - newest) > 0)
        partials->newest[ALB_PARTIAL_RECEIVING] = message->number;
    return ALB_DROP_NONE;
}

static enum alb_drop complete(struct alb_csa_uc *uc, struct alb_csa_partial *partial, alb_time now)
{
    partial->is_complete = true;
    if (partial->op == ALB_CSA_PARTIAL_WRITE)
        return ALB_DROP_NONE;
    const struct alb_inbound_end end = {
        .opcode = ALB_WC_RECV_RDMA_WITH_IMM,
        .byte_len = partial->total_bytes,
        .solicited = partial->is_solicited,
        .src_qpn = uc->u.qp->attr.dest_qpn,
        .sl = uc->u.qp->attr.av.sl,
        .wc_flags = ALB_WC_WITH_IMM,
        .imm_data = partial->imm_be,
    };
    return alb_unreliable_drop_of(alb_inbound_complete(uc->u.qp, &end, now));
}

// A SEND that is coming in has taken one for itself.
static bool has_receive(const struct alb_csa_uc *uc)
{
    bool is_another = uc->in.is_open && uc->in.target.kind == ALB_TARGET_RECEIVE;
    return !is_another && alb_qp_take_receive(uc->u.qp);
}

// The receive that the last one to come completes is there before its bytes are.
static enum alb_drop place(struct alb_csa_uc *uc, struct alb_csa_partial *partial,
                           const struct alb_csa_segment *segment, alb_time now)
{
    const struct alb_target target = {
        .kind = ALB_TARGET_REGION, .rkey = partial->rkey, .va = partial->va, .length = partial->total_bytes};
    bool is_final = partial->held_count + 1 == partial->packets;
    if (is_final && partial->op == ALB_CSA_PARTIAL_WRITE_IMM && !has_receive(uc))
        return ALB_DROP_NO_RECEIVE;
    enum alb_outcome outcome =
        alb_place(uc->u.qp, &target, alb_csa_segment_offset(segment), segment->payload, segment->payload_bytes);
    if (outcome != ALB_OUTCOME_OK)
        return alb_unreliable_drop_of(outcome);
    alb_bitmap_set(partial->held, segment->index);
    partial->held_count++;
    partial->is_solicited |= (segment->flags & ALB_CSA_SOLICITED) != 0;
    return holds_all(partial) ? complete(uc, partial, now) : ALB_DROP_NONE;
}

enum alb_drop alb_csa_partial_take(struct alb_csa_uc *uc, const struct alb_csa_segment *segment, alb_time now)
{
    struct alb_csa_partial message;
    if (!uc->partials || segment->message == 0 || !message_of(segment, &message))
        return ALB_DROP_BAD_REQUEST;
    struct alb_csa_partial *partial = place_of(uc->partials, ALB_PARTIAL_RECEIVING, message.number);
    if (partial->number != message.number) {
        if (partial->number != 0 && (int32_t)(message.number - partial->number) < 0)
            return ALB_DROP_OUT_OF_SEQUENCE;
        enum alb_drop drop = begin(uc, &message);
        if (drop != ALB_DROP_NONE)
            return drop;
    }
    if (!is_same(partial, &message))
        return ALB_DROP_BAD_REQUEST;
    clear_part(partial, segment->index);
    if (alb_bitmap_test(partial->held, segment->index))
        return ALB_DROP_DUPLICATE;
    return place(uc, partial, segment, now);
}

// ---- what is to be said ---------------------------------------------------------------------------------------------

void alb_csa_partial_owe(struct alb_csa_uc *uc, struct alb_csa_partial *partial)
{
    struct alb_qp *qp = uc->u.qp;
    if (!partial->is_due)
        uc->partials->due_count++;
    partial->is_due = true;
    partial->due_first = 0;
    alb_scheduler_wake(&qp->engine->scheduler, &qp->source);
}

static struct alb_csa_partial *first_due(const struct alb_csa_partials *partials, enum alb_partial_side *side)
{
    for (uint32_t s = 0; s < ALB_PARTIAL_SIDES; s++)
        for (uint32_t i = 0; i < partials->capacity; i++)
            if (partials->places[s][i].is_due) {
                *side = (enum alb_partial_side)s;
                return &partials->places[s][i];
            }
    return NULL;
}

bool alb_csa_partial_next_due(struct alb_csa_uc *uc, struct alb_csa_holds *holds)
{
    enum alb_partial_side side = ALB_PARTIAL_SENDING;
    if (!uc->partials || uc->partials->due_count == 0)
        return false;
    struct alb_csa_partial *partial = first_due(uc->partials, &side);
    *holds = (struct alb_csa_holds){
        .is_question = side == ALB_PARTIAL_SENDING,
        .is_complete = partial->is_complete,
        .dest_qpn = uc->u.qp->attr.dest_qpn,
        .message = partial->number,
        .first = partial->due_first,
    };
    if (holds->is_question || partial->is_complete)
        return true;
    uint32_t words = (uint32_t)ALB_BITMAP_WORDS(partial->packets) - partial->due_first / 64;
    holds->word_count = ALB_MIN(words, (uint32_t)ALB_CSA_BITMAP_WORDS);
    clear_part(partial, partial->due_first);
    memcpy(holds->held, partial->held + partial->due_first / 64, holds->word_count * sizeof(uint64_t));
    return true;
}

void alb_csa_partial_said(struct alb_csa_uc *uc, const struct alb_csa_holds *holds)
{
    enum alb_partial_side side = holds->is_question ? ALB_PARTIAL_SENDING : ALB_PARTIAL_RECEIVING;
    struct alb_csa_partial *partial = place_of(uc->partials, side, holds->message);
    partial->due_first += FRAME_BITS;
    if (!holds->is_question && !holds->is_complete && partial->due_first < partial->packets)
        return;
    partial->is_due = false;
    uc->partials->due_count--;
}
