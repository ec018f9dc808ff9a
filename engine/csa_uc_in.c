// SPDX-License-Identifier: BSD-2-Clause
// UC over CSA, the receiving half: what has come of the newest message, segment by segment.
#include "engine/csa_loose.h"
#include "engine/csa_message.h"
#include "engine/impl.h"

#define POOL_PART 8 // of the pool, what bits may take

static uint32_t packets_of(const struct alb_csa_uc_message *message)
{
    return (uint32_t)alb_psn_diff(message->past, message->first);
}

static uint32_t held_bytes(const struct alb_csa_uc_message *message)
{
    return (packets_of(message) + 63) / 64 * 8;
}

// Whole blocks count, since that is what the pool is short of.
uint64_t *alb_csa_uc_get_bits(struct alb_engine *engine, uint32_t bytes)
{
    uint64_t counted = alb_buddy_block_bytes(bytes);
    if (engine->csa->uc_bits_bytes + counted > engine->config.csa_pool_bytes / POOL_PART)
        return NULL;
    uint64_t *bits = alb_buddy_get(&engine->csa->pool, bytes);
    if (bits)
        engine->csa->uc_bits_bytes += counted;
    return bits;
}

void alb_csa_uc_put_bits(struct alb_engine *engine, uint64_t *bits, uint32_t bytes)
{
    alb_buddy_put(&engine->csa->pool, bits, bytes);
    engine->csa->uc_bits_bytes -= alb_buddy_block_bytes(bytes);
}

void alb_csa_uc_close(struct alb_csa_uc *uc)
{
    struct alb_csa_uc_message *in = &uc->in;
    if (in->held && in->held != in->own)
        alb_csa_uc_put_bits(uc->u.qp->engine, in->held, held_bytes(in));
    in->held = NULL;
    in->is_open = false;
}

void alb_csa_uc_begin(struct alb_csa_uc *uc, alb_psn first)
{
    alb_csa_uc_close(uc);
    uc->in = (struct alb_csa_uc_message){.first = first, .past = first};
    uc->u.expected = first;
}

// Whatever is wrong, the message is dropped without a word. A receive it had taken serves the next one.
static enum alb_drop lose(struct alb_csa_uc *uc, enum alb_drop drop)
{
    alb_csa_uc_close(uc);
    return drop;
}

static enum alb_drop lose_by(struct alb_csa_uc *uc, enum alb_outcome outcome, alb_time now)
{
    if (outcome == ALB_OUTCOME_OPERATIONAL)
        return alb_unreliable_break_receive(uc->u.qp, now);
    return lose(uc, alb_unreliable_drop_of(outcome));
}

// ---- a message begins -----------------------------------------------------------------------------------------------

static bool get_bits(struct alb_csa_uc *uc)
{
    struct alb_csa_uc_message *in = &uc->in;
    uint32_t bytes = held_bytes(in);
    in->held = bytes <= sizeof(in->own) ? in->own : alb_csa_uc_get_bits(uc->u.qp->engine, bytes);
    return in->held != NULL;
}

_Static_assert(ALB_CSA_MESSAGE_PACKETS_MAX <= 64 * ALB_CSA_UC_PART, "a bit of cleared for each part");

void alb_csa_uc_clear_part(uint64_t *held, uint64_t *cleared, uint32_t packets, uint32_t index)
{
    uint32_t part = index / ALB_CSA_UC_PART, first_word = part * (ALB_CSA_UC_PART / 64);
    if (alb_likely(*cleared >> part & 1))
        return;
    uint32_t words = ALB_MIN(ALB_BITMAP_WORDS(packets) - first_word, (uint32_t)ALB_CSA_UC_PART / 64);
    memset(held + first_word, 0, words * sizeof(*held));
    *cleared |= 1ull << part;
}

static enum alb_drop open_message(struct alb_csa_uc *uc, const struct alb_csa_segment *segment, alb_psn first,
                                  alb_time now)
{
    struct alb_csa_uc_message *in = &uc->in;
    alb_csa_uc_close(uc);
    *in = (struct alb_csa_uc_message){
        .op = segment->op,
        .first = first,
        .past = alb_psn_add(first, (int32_t)alb_csa_message_packets(segment)),
        .total_bytes = segment->total_bytes,
    };
    if (segment->flags & ALB_CSA_LAST && segment->index > 0) // those before it are lost
        return ALB_DROP_OUT_OF_SEQUENCE;
    enum alb_outcome outcome = alb_csa_message_begin(uc->u.qp, segment, &in->target);
    if (outcome != ALB_OUTCOME_OK)
        return lose_by(uc, outcome, now);
    if (!get_bits(uc)) // what may not be written has cost none
        return lose(uc, ALB_DROP_NO_RESOURCES);
    in->is_open = true;
    return ALB_DROP_NONE;
}

// ---- its segments ---------------------------------------------------------------------------------------------------

// The segment says of its message what those before it said.
static bool fits_message(const struct alb_csa_uc_message *in, const struct alb_csa_segment *segment)
{
    uint32_t offset = alb_csa_segment_offset(segment);
    if (segment->op != in->op || segment->total_bytes != in->total_bytes ||
        alb_csa_message_packets(segment) != packets_of(in))
        return false;
    if (in->segment_bytes == 0) // nothing of it has come
        return offset == (uint64_t)segment->index * segment->payload_bytes;
    return offset == (uint64_t)segment->index * in->segment_bytes;
}

static enum alb_drop add_segment(struct alb_csa_uc *uc, const struct alb_csa_segment *segment, alb_time now)
{
    struct alb_csa_uc_message *in = &uc->in;
    struct alb_qp *qp = uc->u.qp;
    bool is_last = segment->flags & ALB_CSA_LAST;
    if (!fits_message(in, segment))
        return lose(uc, ALB_DROP_BAD_REQUEST);
    alb_csa_uc_clear_part(in->held, &in->cleared, packets_of(in), segment->index);
    if (alb_bitmap_test(in->held, segment->index))
        return ALB_DROP_DUPLICATE;
    if (is_last && in->placed < segment->index)
        return lose(uc, ALB_DROP_OUT_OF_SEQUENCE);
    enum alb_outcome outcome = alb_csa_message_place(qp, segment, alb_csa_segment_offset(segment), &in->target);
    if (outcome != ALB_OUTCOME_OK)
        return lose_by(uc, outcome, now);
    alb_bitmap_set(in->held, segment->index);
    in->placed++;
    if (!is_last) {
        in->segment_bytes = segment->payload_bytes;
        return ALB_DROP_NONE;
    }
    alb_csa_uc_close(uc);
    in->is_whole = true;
    return alb_unreliable_drop_of(alb_csa_message_end(qp, segment, now));
}

// A message that begins before the newest one is one that was given up, or one that is whole; also one that reaches
// into it, which contradicts itself.
static bool is_late(const struct alb_csa_uc_message *in, alb_psn first)
{
    int32_t behind = alb_psn_diff(in->past, first);
    return behind > 0 && behind <= ALB_CSA_MESSAGE_PACKETS_MAX;
}

enum alb_drop alb_csa_uc_take(struct alb_csa_uc *uc, const struct alb_csa_segment *segment, alb_time now)
{
    struct alb_csa_uc_message *in = &uc->in;
    alb_psn first = alb_psn_add(segment->psn, -(int32_t)segment->index);
    if (alb_csa_message_packets(segment) == 0)
        return ALB_DROP_BAD_LENGTH;
    if (segment->psn != uc->u.expected)
        alb_qp_count(uc->u.qp, ALB_STAT_out_of_seq_request, 1);
    if (first == in->first && in->past != in->first) {
        if (!in->is_open)
            return in->is_whole ? ALB_DROP_DUPLICATE : ALB_DROP_OUT_OF_SEQUENCE;
    } else if (is_late(in, first)) {
        return ALB_DROP_OUT_OF_SEQUENCE;
    } else {
        enum alb_drop drop = open_message(uc, segment, first, now);
        if (drop != ALB_DROP_NONE)
            return drop;
    }
    uc->u.expected = alb_psn_next(segment->psn);
    return add_segment(uc, segment, now);
}
