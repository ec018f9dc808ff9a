// SPDX-License-Identifier: BSD-2-Clause
// What reflection says on the wire: commands and verdicts, which are frames, and the proposal, which is a payload.
#include "wire/bytes.h"
#include "wire/csa_frame.h"

#define FLAG_IN_PLACE  1 // of the proposal
#define FLAG_NOTIFY    2
#define FLAG_SOLICITED 4

static void put_id(uint8_t *out, const struct alb_csa_txn_id *id)
{
    alb_put_be64(out, id->initiator);
    alb_put_be64(out + 8, id->number);
}

static struct alb_csa_txn_id get_id(const uint8_t *p)
{
    return (struct alb_csa_txn_id){.initiator = alb_get_be64(p), .number = alb_get_be64(p + 8)};
}

static void put_digest(uint8_t *out, const struct alb_csa_digest *digest)
{
    alb_put_be64(out, digest->low);
    alb_put_be64(out + 8, digest->high);
}

static struct alb_csa_digest get_digest(const uint8_t *p)
{
    return (struct alb_csa_digest){.low = alb_get_be64(p), .high = alb_get_be64(p + 8)};
}

// ---- TXN ------------------------------------------------------------------------------------------------------------

uint32_t alb_csa_encode_txn(const struct alb_csa_txn *txn, uint8_t *out)
{
    alb_put_be32(out, (uint32_t)ALB_CSA_TXN << 24 | (uint32_t)txn->command << 16);
    alb_put_be32(out + 4, txn->dest_qpn << 8);
    put_id(out + 8, &txn->id);
    alb_put_be64(out + 24, txn->keeper);
    alb_put_be64(out + 32, txn->low_water);
    return ALB_CSA_TXN_BYTES;
}

enum alb_drop alb_csa_decode_txn(const uint8_t *p, struct alb_csa_txn *out)
{
    *out = (struct alb_csa_txn){
        .command = p[1],
        .dest_qpn = alb_get_be24(p + 4),
        .id = get_id(p + 8),
        .keeper = alb_get_be64(p + 24),
        .low_water = alb_get_be64(p + 32),
    };
    bool is_known = out->command >= ALB_CSA_TXN_ASK && out->command <= ALB_CSA_TXN_ABORT;
    return is_known ? ALB_DROP_NONE : ALB_DROP_BAD_REQUEST;
}

// ---- VERDICT --------------------------------------------------------------------------------------------------------

uint32_t alb_csa_encode_verdict(const struct alb_csa_verdict *verdict, uint8_t *out)
{
    alb_put_be32(out, (uint32_t)ALB_CSA_VERDICT << 24 | (uint32_t)verdict->state << 16 | verdict->reason << 8);
    alb_put_be32(out + 4, verdict->dest_qpn << 8);
    put_id(out + 8, &verdict->id);
    alb_put_be64(out + 24, verdict->keeper);
    put_digest(out + 32, &verdict->digest);
    alb_put_be64(out + 48, verdict->placed_at);
    alb_put_be64(out + 56, verdict->decided_at);
    alb_put_be64(out + 64, verdict->visible_at);
    alb_put_be64(out + 72, verdict->now);
    return ALB_CSA_VERDICT_BYTES;
}

enum alb_drop alb_csa_decode_verdict(const uint8_t *p, struct alb_csa_verdict *out)
{
    *out = (struct alb_csa_verdict){
        .state = p[1],
        .reason = p[2],
        .dest_qpn = alb_get_be24(p + 4),
        .id = get_id(p + 8),
        .keeper = alb_get_be64(p + 24),
        .digest = get_digest(p + 32),
        .placed_at = alb_get_be64(p + 48),
        .decided_at = alb_get_be64(p + 56),
        .visible_at = alb_get_be64(p + 64),
        .now = alb_get_be64(p + 72),
    };
    bool is_known = out->state >= ALB_CSA_VERDICT_PENDING && out->state <= ALB_CSA_VERDICT_UNKNOWN;
    return is_known ? ALB_DROP_NONE : ALB_DROP_BAD_REQUEST;
}

// ---- the proposal ---------------------------------------------------------------------------------------------------

uint32_t alb_csa_encode_proposal(const struct alb_csa_proposal *proposal, uint8_t *out)
{
    alb_assert(proposal->compare_count <= ALB_CSA_COMPARES_MAX);
    put_id(out, &proposal->id);
    alb_put_be64(out + 16, proposal->low_water);
    put_digest(out + 24, &proposal->digest);
    alb_put_be64(out + 40, proposal->bytes);
    alb_put_be32(out + 48, proposal->lease_us);
    alb_put_be32(out + 52, proposal->part_count);
    memcpy(out + 56, &proposal->imm_be, 4);
    out[60] = (uint8_t)((proposal->is_in_place ? FLAG_IN_PLACE : 0) | (proposal->notifies ? FLAG_NOTIFY : 0) |
                        (proposal->is_solicited ? FLAG_SOLICITED : 0));
    out[61] = (uint8_t)proposal->compare_count;
    out[62] = proposal->level;
    out[63] = 0;
    for (uint32_t i = 0; i < proposal->compare_count; i++) {
        const struct alb_csa_compare *compare = &proposal->compares[i];
        uint8_t *to = out + ALB_CSA_PROPOSAL_BYTES + i * ALB_CSA_COMPARE_BYTES;
        alb_put_be64(to, compare->va);
        alb_put_be32(to + 8, compare->rkey);
        alb_put_be32(to + 12, 0);
        alb_put_be64(to + 16, compare->expected);
        alb_put_be64(to + 24, compare->mask);
    }
    return ALB_CSA_PROPOSAL_BYTES + proposal->compare_count * ALB_CSA_COMPARE_BYTES;
}

bool alb_csa_decode_proposal(const uint8_t *bytes, uint32_t length, struct alb_csa_proposal *proposal)
{
    if (length < ALB_CSA_PROPOSAL_BYTES || bytes[61] > ALB_CSA_COMPARES_MAX ||
        length != ALB_CSA_PROPOSAL_BYTES + (uint32_t)bytes[61] * ALB_CSA_COMPARE_BYTES)
        return false;
    *proposal = (struct alb_csa_proposal){
        .id = get_id(bytes),
        .low_water = alb_get_be64(bytes + 16),
        .digest = get_digest(bytes + 24),
        .bytes = alb_get_be64(bytes + 40),
        .lease_us = alb_get_be32(bytes + 48),
        .part_count = alb_get_be32(bytes + 52),
        .is_in_place = bytes[60] & FLAG_IN_PLACE,
        .notifies = bytes[60] & FLAG_NOTIFY,
        .is_solicited = bytes[60] & FLAG_SOLICITED,
        .compare_count = bytes[61],
        .level = bytes[62],
    };
    memcpy(&proposal->imm_be, bytes + 56, 4);
    for (uint32_t i = 0; i < proposal->compare_count; i++) {
        const uint8_t *p = bytes + ALB_CSA_PROPOSAL_BYTES + i * ALB_CSA_COMPARE_BYTES;
        proposal->compares[i] = (struct alb_csa_compare){
            .va = alb_get_be64(p),
            .rkey = alb_get_be32(p + 8),
            .expected = alb_get_be64(p + 16),
            .mask = alb_get_be64(p + 24),
        };
    }
    return true;
}
