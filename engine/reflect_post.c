// SPDX-License-Identifier: BSD-2-Clause
// Posting what has a number: runs beside the engine, as engine/post.c does. The digest is taken here, from the
// program's memory: taken later, it would say nothing about what the program meant.
#include "engine/impl.h"
#include "engine/post.h"

#include <errno.h>

// The queue pair's ring, or NULL: it is not enabled.
static struct alb_reflect_out *ring_of(const struct alb_qp *qp)
{
    return qp->delivery == &alb_csa_ops ? alb_csa_of(qp)->reflect_out : NULL;
}

static bool has_number(const struct alb_reflect_out *out)
{
    return out->staged - atomic_load_explicit(&out->ended, memory_order_acquire) < out->capacity;
}

static void clear(struct alb_txn_out *txn, const struct alb_txn_out *clean)
{
    const size_t from = offsetof(struct alb_txn_out, out);
    // Who still reads of the one before finds its number gone. An exchange, so that nothing below comes before it.
    atomic_exchange_explicit(&txn->number, 0, memory_order_acquire);
    memcpy((uint8_t *)txn + from, (const uint8_t *)clean + from, sizeof(*txn) - from);
}

// The next number's place, all anew but for what leads back to its ring.
static struct alb_txn_out *take_number(struct alb_reflect_out *out)
{
    uint64_t number = out->staged++;
    struct alb_txn_out *txn = alb_txn_out_at(out, number);
    const struct alb_txn_out clean = {
        .out = out,
        .asked = {.initiator = out->initiator, .number = number},
        .stages = {.submitted = ALB_TIME_NEVER,
                   .placed = ALB_TIME_NEVER,
                   .transmitted = ALB_TIME_NEVER,
                   .remote_placed = ALB_TIME_NEVER,
                   .delivered = ALB_TIME_NEVER,
                   .visible = ALB_TIME_NEVER,
                   .agreed = ALB_TIME_NEVER,
                   .clock_error_ns = UINT64_MAX},
    };
    clear(txn, &clean);
    alb_list_init(&txn->due);
    atomic_store_explicit(&txn->number, number, memory_order_release);
    return txn;
}

// ---- digests of the program's memory --------------------------------------------------------------------------------

static bool add_inline(struct alb_digest_state *state, const struct alb_sge *sge, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        alb_digest_add(state, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
    return true;
}

// False: a local key does not cover the entry. This looks into the table of keys beside the engine: the place of the
// region and the region itself stay as they are, whatever other regions come and go, since who posts with a region
// deregisters it afterwards. The engine may poison it.
static bool add_sges(struct alb_digest_state *state, const struct alb_qp *qp, const struct alb_sge *sge, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *host;
        if (sge[i].length == 0)
            continue;
        if (alb_region_local(qp->engine, qp->pd, sge[i].lkey, sge[i].addr, sge[i].length, 0, &host) != ALB_ACCESS_OK)
            return false;
        alb_digest_add(state, host, sge[i].length);
    }
    return true;
}

static uint64_t length_of(const struct alb_sge *sge, uint32_t count)
{
    uint64_t length = 0;
    for (uint32_t i = 0; i < count; i++)
        length += sge[i].length;
    return length;
}

static bool take_digest(const struct alb_qp *qp, const struct alb_txn_wr *wr, const struct alb_csa_proposal *proposal,
                        struct alb_digest *digest)
{
    const struct alb_txn_id id = {.initiator = proposal->id.initiator, .number = proposal->id.number};
    struct alb_digest_state state;
    alb_txn_digest_begin(&state, &id);
    for (uint32_t i = 0; i < wr->write_count; i++) {
        const struct alb_txn_write *write = &wr->writes[i];
        alb_txn_digest_part(&state, write->rkey, write->remote_addr, length_of(write->sge, write->sge_count));
        if (!(write->is_inline ? add_inline(&state, write->sge, write->sge_count)
                               : add_sges(&state, qp, write->sge, write->sge_count)))
            return false;
    }
    *digest = alb_txn_digest_end(&state, proposal);
    return true;
}

// ---- transactions ---------------------------------------------------------------------------------------------------

static bool is_valid(const struct alb_qp *qp, const struct alb_txn_wr *wr, uint64_t *bytes)
{
    if (wr->write_count == 0 || wr->write_count > ALB_TXN_WRITES_MAX || wr->compare_count > ALB_TXN_COMPARES_MAX ||
        (wr->level != ALB_LEVEL_REFLECTED && wr->level != ALB_LEVEL_COMMITTED) ||
        wr->flags & ~(uint32_t)(ALB_SEND_SIGNALED | ALB_SEND_FENCE | ALB_SEND_SOLICITED))
        return false;
    *bytes = 0;
    for (uint32_t i = 0; i < wr->write_count; i++) {
        const struct alb_txn_write *write = &wr->writes[i];
        if (!write->is_inline && write->sge_count > qp->sq.sge_max)
            return false;
        uint64_t length = length_of(write->sge, write->sge_count);
        if (length > (write->is_inline ? qp->sq.inline_max_bytes : ALB_MAX_MESSAGE))
            return false;
        *bytes += length;
    }
    return true;
}

static struct alb_csa_proposal propose(const struct alb_reflect_out *out, const struct alb_txn_wr *wr, uint64_t bytes)
{
    struct alb_csa_proposal proposal = {
        .id = {.initiator = out->initiator, .number = out->staged},
        .low_water = atomic_load_explicit(&out->ended, memory_order_relaxed),
        .bytes = bytes,
        .lease_us = (uint32_t)ALB_MIN(wr->lease_ns / 1000 + (wr->lease_ns % 1000 != 0), (uint64_t)UINT32_MAX),
        .part_count = wr->write_count,
        .imm_be = wr->imm_data,
        .is_in_place = wr->in_place,
        .notifies = wr->notify,
        .is_solicited = wr->flags & ALB_SEND_SOLICITED,
        .level = (uint8_t)wr->level,
        .compare_count = wr->compare_count,
    };
    for (uint32_t i = 0; i < wr->compare_count; i++)
        proposal.compares[i] = (struct alb_csa_compare){
            .va = wr->compares[i].remote_addr,
            .expected = wr->compares[i].expected,
            .mask = wr->compares[i].mask,
            .rkey = wr->compares[i].rkey,
        };
    return proposal;
}

static void stage_write(struct alb_qp *qp, const struct alb_txn_wr *wr, uint32_t i, uint64_t number)
{
    const struct alb_txn_write *write = &wr->writes[i];
    const struct alb_send_wr part = {
        .opcode = ALB_WR_TXN_WRITE,
        .flags = (i == 0 ? wr->flags & ALB_SEND_FENCE : 0) | (write->is_inline ? ALB_SEND_INLINE : 0),
        .sge = write->sge,
        .sge_count = write->sge_count,
        .remote_addr = write->remote_addr,
        .rkey = write->rkey,
        .compare_add = number,
        .swap = wr->in_place ? ALB_CSA_TXN_IN_PLACE : 0,
    };
    struct alb_send_wqe *wqe = alb_post_fill(qp, &part, length_of(write->sge, write->sge_count));
    wqe->flags &= (uint8_t)~ALB_SEND_SIGNALED; // of the transaction only the end is reported
}

// The request that ends what has that number: its completion is that of the whole.
static void stage_end(struct alb_qp *qp, struct alb_txn_out *txn, enum alb_wr_opcode opcode, uint64_t wr_id,
                      uint32_t flags, uint32_t length)
{
    const struct alb_send_wr end = {.wr_id = wr_id, .opcode = opcode, .flags = flags & ALB_SEND_SIGNALED};
    txn->wqe_index = qp->sq.staged;
    alb_post_fill(qp, &end, length)->txn_number = txn->number;
}

int alb_qp_txn_stage(struct alb_qp *qp, const struct alb_txn_wr *wr, uint64_t *number)
{
    struct alb_reflect_out *out = ring_of(qp);
    uint64_t bytes;
    if (!out || !is_valid(qp, wr, &bytes))
        return EINVAL;
    int error = alb_post_may_stage(qp, wr->write_count + 1);
    if (error)
        return error;
    if (!has_number(out))
        return ENOMEM;
    struct alb_csa_proposal proposal = propose(out, wr, bytes);
    struct alb_digest digest;
    if (!take_digest(qp, wr, &proposal, &digest))
        return EINVAL;
    proposal.digest = alb_digest_to_wire(digest);
    struct alb_txn_out *txn = take_number(out);
    txn->level = (uint8_t)wr->level;
    txn->holds = wr->hold;
    txn->digest = digest;
    txn->deadline_ns = wr->deadline_ns;
    txn->lease_ns = wr->lease_ns ? wr->lease_ns : qp->engine->config.txn_lease_ns;
    txn->lease_ns = ALB_MIN(txn->lease_ns, qp->engine->config.txn_lease_ns_max); // as its target does
    txn->stages.submitted = wr->submitted;
    txn->proposal_bytes = alb_csa_encode_proposal(&proposal, txn->proposal);
    for (uint32_t i = 0; i < wr->write_count; i++)
        stage_write(qp, wr, i, txn->number);
    stage_end(qp, txn, ALB_WR_TXN_END, wr->wr_id, wr->flags, txn->proposal_bytes);
    *number = txn->number;
    return 0;
}

int alb_qp_txn_reconcile_stage(struct alb_qp *qp, uint64_t wr_id, uint32_t flags, const struct alb_txn_token *token,
                               enum alb_txn_decision decision)
{
    static const uint8_t commands[] = {
        [ALB_TXN_ASK] = ALB_CSA_TXN_ASK,
        [ALB_TXN_COMMIT] = ALB_CSA_TXN_COMMIT,
        [ALB_TXN_ABORT] = ALB_CSA_TXN_ABORT,
    };
    struct alb_reflect_out *out = ring_of(qp);
    if (!out || (unsigned)decision >= ALB_COUNT(commands) || flags & ~(uint32_t)ALB_SEND_SIGNALED ||
        token->id.initiator == out->initiator)
        return EINVAL;
    int error = alb_post_may_stage(qp, 1);
    if (error)
        return error;
    if (!has_number(out))
        return ENOMEM;
    struct alb_txn_out *txn = take_number(out);
    txn->level = ALB_LEVEL_COMMITTED;
    txn->is_question = true;
    txn->asked = token->id;
    txn->keeper = token->keeper;
    txn->command = commands[decision];
    stage_end(qp, txn, ALB_WR_TXN_ASK, wr_id, flags, 0);
    return 0;
}

// ---- messages with a level ------------------------------------------------------------------------------------------

// What a level claims is checked against this; for stages alone nothing is.
static bool take_message_digest(const struct alb_qp *qp, const struct alb_send_wr *wr, uint64_t length,
                                const struct alb_txn_id *id, struct alb_digest *digest)
{
    bool is_write = wr->opcode == ALB_WR_RDMA_WRITE || wr->opcode == ALB_WR_RDMA_WRITE_WITH_IMM;
    struct alb_digest_state state;
    alb_txn_digest_begin(&state, id);
    alb_txn_digest_part(&state, is_write ? wr->rkey : 0, is_write ? wr->remote_addr : 0, length);
    if (!(wr->flags & ALB_SEND_INLINE ? add_inline(&state, wr->sge, wr->sge_count)
                                      : add_sges(&state, qp, wr->sge, wr->sge_count)))
        return false;
    *digest = alb_digest_end(&state);
    return true;
}

static bool may_have_level(const struct alb_send_wr *wr)
{
    bool places = wr->opcode <= ALB_WR_SEND_WITH_IMM || wr->opcode == ALB_WR_SEND_WITH_INV;
    return places && (wr->level == ALB_LEVEL_DELIVERED || wr->level == ALB_LEVEL_VISIBLE);
}

int alb_reflect_stage_message(struct alb_qp *qp, const struct alb_send_wr *wr, uint64_t length)
{
    struct alb_reflect_out *out = ring_of(qp);
    struct alb_digest digest = {0, 0};
    if (!out || !may_have_level(wr))
        return EINVAL;
    if (!has_number(out))
        return ENOMEM;
    const struct alb_txn_id id = {.initiator = out->initiator, .number = out->staged};
    if (wr->level != ALB_LEVEL_DELIVERED && !take_message_digest(qp, wr, length, &id, &digest))
        return EINVAL;
    struct alb_txn_out *txn = take_number(out);
    txn->is_message = true;
    txn->level = wr->level;
    txn->digest = digest;
    txn->stages.submitted = wr->submitted;
    txn->wqe_index = qp->sq.staged;
    alb_post_fill(qp, wr, length)->txn_number = txn->number;
    return 0;
}

void alb_reflect_commit(struct alb_qp *qp)
{
    struct alb_reflect_out *out = ring_of(qp);
    if (out)
        atomic_store_explicit(&out->posted, out->staged, memory_order_release);
}

void alb_reflect_abort(struct alb_qp *qp)
{
    struct alb_reflect_out *out = ring_of(qp);
    if (out)
        out->staged = atomic_load_explicit(&out->posted, memory_order_relaxed);
}
