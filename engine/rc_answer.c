// SPDX-License-Identifier: BSD-2-Clause
// rc, what the responder sends: answers to READs and atomics in PSN order, acknowledgements (merged as far as they go),
// NAKs behind the answers that were owed before them (9.7.5).
#include "engine/impl.h"
#include "engine/outbound.h"
#include "engine/rc.h"
#include "engine/segmenter.h"
#include "engine/xrc.h"

#define SYNDROME_ACK ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT)

static struct alb_rc_answer *answer_at(const struct alb_rc *rc, uint32_t i)
{
    return &rc->answers[(rc->answer_first + i) % rc->answer_capacity];
}

bool alb_rc_make_room(struct alb_rc *rc)
{
    if (rc->answer_count < rc->answer_capacity)
        return true;
    uint32_t i = 0;
    while (i < rc->answer_count && !answer_at(rc, i)->is_repeated)
        i++;
    if (i == rc->answer_count)
        return false;
    rc->answer_count--;
    for (; i < rc->answer_count; i++)
        *answer_at(rc, i) = *answer_at(rc, i + 1);
    return true;
}

bool alb_rc_owe_answer(struct alb_rc *rc, const struct alb_rc_answer *answer)
{
    if (!alb_rc_make_room(rc))
        return false;
    *answer_at(rc, rc->answer_count++) = *answer;
    alb_scheduler_wake(&rc->qp->engine->scheduler, &rc->qp->source);
    return true;
}

// One past an answer's last PSN.
static alb_psn end_of(const struct alb_rc_answer *answer)
{
    return alb_psn_add(answer->psn, (int32_t)answer->packets);
}

// What was owed from psn on is answered by a NAK.
static void disown_answers(struct alb_rc *rc, alb_psn psn)
{
    while (rc->answer_count > 0) {
        const struct alb_rc_answer *last = answer_at(rc, rc->answer_count - 1);
        if (!alb_psn_is_before(psn, end_of(last)))
            break;
        rc->answer_count--;
    }
}

static void disown_overlapping(struct alb_rc *rc, const struct alb_rc_answer *answer)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rc->answer_count; i++) {
        struct alb_rc_answer owed = *answer_at(rc, i);
        if (!alb_psn_is_before(answer->psn, end_of(&owed)) || !alb_psn_is_before(owed.psn, end_of(answer)))
            *answer_at(rc, kept++) = owed;
    }
    rc->answer_count = kept;
}

void alb_rc_owe_again(struct alb_rc *rc, const struct alb_rc_answer *answer)
{
    disown_overlapping(rc, answer);
    if (!alb_rc_make_room(rc))
        return;
    uint32_t i = rc->answer_count++;
    for (; i > 0 && alb_psn_is_before(answer->psn, answer_at(rc, i - 1)->psn); i--)
        *answer_at(rc, i) = *answer_at(rc, i - 1);
    *answer_at(rc, i) = *answer;
    answer_at(rc, i)->is_repeated = true;
    alb_scheduler_wake(&rc->qp->engine->scheduler, &rc->qp->source);
}

void alb_rc_owe_nak(struct alb_rc *rc, uint8_t syndrome, alb_psn psn)
{
    rc->nak_is_due = true;
    rc->nak_syndrome = syndrome;
    rc->nak_psn = psn;
    alb_scheduler_wake(&rc->qp->engine->scheduler, &rc->qp->source);
}

static void fill(const struct alb_rc *rc, struct alb_roce *roce, uint8_t opcode, alb_psn psn, uint8_t syndrome)
{
    *roce = (struct alb_roce){
        .opcode = (uint8_t)(rc->opcode_base + opcode),
        .migreq = true,
        .pkey = ALB_PKEY_DEFAULT,
        .dest_qpn = rc->qp->attr.dest_qpn,
        .psn = psn,
        .syndrome = syndrome,
        .msn = rc->msn,
    };
}

// What was sent acknowledges all before end.
static void note_acknowledged(struct alb_rc *rc, alb_psn end)
{
    if (alb_psn_diff(rc->expected, end) <= (int32_t)rc->behind_ack)
        rc->ack_is_due = false;
}

static void send_bare(struct alb_rc *rc, struct alb_tx_builder *builder, const struct alb_roce *roce)
{
    struct alb_roce copy = *roce;
    alb_tx_begin(builder, &rc->qp->flow, &copy, 0);
    alb_tx_end(builder);
}

static uint8_t read_opcode(const struct alb_rc_answer *answer)
{
    if (answer->packets == 1)
        return ALB_RC_READ_RESPONSE_ONLY;
    if (answer->sent == 0)
        return ALB_RC_READ_RESPONSE_FIRST;
    return answer->sent == answer->packets - 1 ? ALB_RC_READ_RESPONSE_LAST : ALB_RC_READ_RESPONSE_MIDDLE;
}

static enum alb_outcome read_memory(struct alb_qp *qp, const struct alb_rc_answer *answer, uint64_t offset,
                                    uint32_t bytes, const uint8_t **source)
{
    if (qp->xrcd && alb_xrc_name_keys(qp, answer->xrc_srqn) != ALB_OUTCOME_OK)
        return ALB_OUTCOME_ACCESS;
    return alb_inbound_read(qp, answer->rkey, answer->va + offset, bytes, source);
}

// One packet of a READ's answer. False if its memory is gone since: a NAK is sent instead.
static bool send_read(struct alb_rc *rc, const struct alb_rc_answer *answer, struct alb_tx_builder *builder)
{
    struct alb_qp *qp = rc->qp;
    uint32_t mtu = qp->attr.path_mtu_bytes;
    uint32_t bytes = alb_segmenter_bytes(answer->length, mtu, answer->sent, 1);
    const uint8_t *source;
    alb_psn psn = alb_psn_add(answer->psn, (int32_t)answer->sent);
    if (read_memory(qp, answer, (uint64_t)answer->sent * mtu, bytes, &source) != ALB_OUTCOME_OK) {
        alb_qp_count(qp, ALB_STAT_resp_remote_access_errors, 1);
        disown_answers(rc, psn);
        rc->ack_is_due = false; // it would acknowledge what is not answered
        alb_rc_owe_nak(rc, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR), psn);
        return false;
    }
    struct alb_roce roce;
    fill(rc, &roce, read_opcode(answer), psn, SYNDROME_ACK);
    alb_tx_begin(builder, &qp->flow, &roce, bytes);
    if (bytes)
        alb_outbound_add_answer(qp->engine, builder, source, bytes);
    alb_tx_end(builder);
    return true;
}

static void send_result(struct alb_rc *rc, const struct alb_rc_answer *answer, struct alb_tx_builder *builder)
{
    struct alb_roce roce;
    bool is_write = answer->opcode == ALB_RC_ATOMIC_WRITE;
    fill(rc, &roce, is_write ? ALB_RC_READ_RESPONSE_ONLY : ALB_RC_ATOMIC_ACK, answer->psn, SYNDROME_ACK);
    roce.atomic_original = answer->original;
    send_bare(rc, builder, &roce);
}

// The next packet of the oldest answer owed. True if more of that answer is still owed.
static bool send_answer(struct alb_rc *rc, struct alb_tx_builder *builder)
{
    struct alb_rc_answer *answer = answer_at(rc, 0);
    if (answer->opcode != ALB_RC_READ_REQUEST)
        send_result(rc, answer, builder);
    else if (!send_read(rc, answer, builder))
        return false;
    if (++answer->sent < answer->packets)
        return true;
    note_acknowledged(rc, end_of(answer));
    rc->answer_first = (rc->answer_first + 1) % rc->answer_capacity;
    rc->answer_count--;
    return false;
}

// The packets of an answer's middle differ in nothing but the PSN, so those behind one that was just sent, of the
// oldest answer owed, are made from it. Returns how many, at most so many.
static uint32_t repeat_middle(struct alb_rc *rc, struct alb_tx_builder *builder, uint32_t packets_max)
{
    struct alb_qp *qp = rc->qp;
    struct alb_rc_answer *answer = answer_at(rc, 0);
    uint32_t mtu = qp->attr.path_mtu_bytes, count = 0;
    const uint8_t *source;
    if (answer->sent < 2 || qp->engine->config.corruption || !alb_tx_can_repeat(builder, mtu))
        return 0;
    packets_max = ALB_MIN(packets_max, answer->packets - 1 - answer->sent);
    if (read_memory(qp, answer, (uint64_t)answer->sent * mtu, packets_max * mtu, &source) != ALB_OUTCOME_OK)
        return 0;
    for (uint8_t *header; count < packets_max && (header = alb_tx_repeat(builder, source + (size_t)count * mtu));
         count++)
        alb_bth_number(header, alb_psn_add(answer->psn, (int32_t)answer->sent++), false);
    return count;
}

static void send_ack(struct alb_rc *rc, struct alb_tx_builder *builder)
{
    const struct alb_qp *qp = rc->qp;
    uint8_t *header = alb_tx_begin_header(builder, &qp->flow, ALB_BTH_BYTES + ALB_AETH_BYTES, 0);
    alb_bth_encode(header, (uint8_t)(rc->opcode_base + ALB_RC_ACK), 0, qp->attr.dest_qpn,
                   alb_psn_add(alb_rc_ack_end(rc), -1), false);
    alb_put_be32(header + ALB_BTH_BYTES, (uint32_t)SYNDROME_ACK << 24 | rc->msn);
    alb_tx_end(builder);
    if (!rc->ack_is_due)
        rc->farewells--;
    rc->ack_is_due = false;
    alb_qp_count(rc->qp, ALB_STAT_ack_sent, 1);
}

// A NAK acknowledges all before it, so it stands for an acknowledgement that is due as well.
static void send_nak(struct alb_rc *rc, struct alb_tx_builder *builder)
{
    struct alb_roce roce;
    fill(rc, &roce, ALB_RC_ACK, rc->nak_psn, rc->nak_syndrome);
    send_bare(rc, builder, &roce);
    rc->nak_is_due = false;
    note_acknowledged(rc, rc->nak_psn);
}

enum alb_build_result alb_rc_build_answers(struct alb_rc *rc, struct alb_tx_builder *builder)
{
    uint32_t turn = builder->tx->burst_segments_max;
    for (uint32_t i = 0; i < turn && alb_rc_owes(rc); i++) {
        if (!alb_tx_has_room(builder, 1))
            return ALB_BUILD_FULL;
        if (rc->cnp_is_due) {
            alb_rc_send_cnp(rc, builder);
        } else if (rc->answer_count > 0) {
            if (send_answer(rc, builder))
                i += repeat_middle(rc, builder, turn - i - 1);
        } else if (rc->nak_is_due) {
            send_nak(rc, builder);
        } else {
            send_ack(rc, builder);
        }
    }
    return alb_rc_owes(rc) ? ALB_BUILD_MORE : ALB_BUILD_IDLE;
}
