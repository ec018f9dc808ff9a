// SPDX-License-Identifier: BSD-2-Clause
// The target, up to the verdict: the parts of a transaction, its proposal, and what speaks against it. What goes wrong
// with a part condemns its transaction and nothing else: its bytes are dropped, and the verdict says why.
#include "engine/impl.h"
#include "engine/inbound.h"
#include "engine/region_table.h"

#include "engine/region_version.h"
#include <errno.h>

// ---- parts ----------------------------------------------------------------------------------------------------------

static void condemn(struct alb_txn_in *txn, enum alb_txn_reason reason)
{
    if (txn->reason == ALB_TXN_OK)
        txn->reason = reason;
}

// The transaction that the part belongs to; NULL: no memory for it. Numbers change only with a new transaction, and one
// that was not proposed is over then.
static struct alb_txn_in *receiving(struct alb_reflect_in *in, const struct alb_csa_segment *segment, alb_time now)
{
    struct alb_txn_in *txn = in->receiving;
    if (txn && txn->id.number == segment->txn.number)
        return txn;
    if (txn) {
        alb_txn_in_undo(txn);
        alb_txn_in_destroy(txn);
    }
    bool is_refused = in->refused_number == segment->txn.number;
    txn = in->receiving = is_refused ? NULL : alb_txn_in_create(in->csa->qp->engine);
    if (!txn) {
        in->refused_number = segment->txn.number;
        return NULL;
    }
    txn->in = in;
    txn->id.number = segment->txn.number;
    txn->is_in_place = segment->txn_mode & ALB_CSA_TXN_IN_PLACE;
    alb_wheel_arm(&txn->engine->wheel, &txn->lease.timer, now + txn->engine->config.txn_lease_ns);
    return txn;
}

static enum alb_txn_reason find(struct alb_qp *qp, struct alb_txn_range *range, uint32_t access)
{
    if (!(qp->attr.access & access))
        return ALB_TXN_ACCESS;
    enum alb_access_result result =
        alb_region_find_remote(qp, range->rkey, range->va, range->length, access, &range->region, &range->host);
    return result == ALB_ACCESS_OK ? ALB_TXN_OK : ALB_TXN_ACCESS;
}

static enum alb_txn_reason claim(struct alb_txn_range *range)
{
    if (range->length == 0)
        return ALB_TXN_OK;
    range->is_claimed = alb_region_claim(range->region, &range->claim, range->va, range->length);
    return range->is_claimed ? ALB_TXN_OK : ALB_TXN_BUSY;
}

// Readers are held out from the first byte, and what stood there is kept.
static enum alb_txn_reason begin_in_place(struct alb_qp *qp, struct alb_txn_range *range)
{
    enum alb_txn_reason reason = find(qp, range, ALB_ACCESS_REMOTE_WRITE);
    if (reason == ALB_TXN_OK && range->length && alb_region_root(range->region)->store)
        reason = ALB_TXN_UNSUPPORTED;
    if (reason == ALB_TXN_OK)
        reason = claim(range);
    if (reason != ALB_TXN_OK || range->length == 0)
        return reason;
    memcpy(range->bytes, range->host, range->length);
    alb_txn_range_hold_readers(range);
    range->is_placed = true;
    return ALB_TXN_OK;
}

// Whether an idle target would have room for its parts so far, and for the list of them that drivers look at.
static bool could_fit(const struct alb_txn_in *txn)
{
    uint64_t beside = alb_buddy_block_bytes(txn->part_count * sizeof(*txn->parts));
    return txn->block_bytes + beside <= txn->engine->config.txn_staging_bytes;
}

static enum alb_txn_reason begin_part(struct alb_qp *qp, struct alb_txn_in *txn, const struct alb_csa_segment *segment,
                                      struct alb_txn_range **out)
{
    if (++txn->part_count > ALB_TXN_WRITES_MAX || txn->is_in_place != (segment->txn_mode & ALB_CSA_TXN_IN_PLACE))
        return ALB_TXN_MALFORMED;
    txn->bytes += segment->total_bytes;
    if (txn->reason != ALB_TXN_OK)
        return txn->reason;
    txn->block_bytes += alb_buddy_block_bytes(sizeof(struct alb_txn_range) + segment->total_bytes);
    if (!could_fit(txn))
        return ALB_TXN_TOO_LARGE;
    struct alb_txn_range *range = alb_txn_range_create(txn, segment->total_bytes);
    if (!range)
        return ALB_TXN_NO_MEMORY;
    range->rkey = segment->rkey;
    range->va = segment->va;
    range->length = segment->total_bytes;
    *out = range;
    return txn->is_in_place ? begin_in_place(qp, range) : find(qp, range, ALB_ACCESS_REMOTE_WRITE);
}

static void begin_write(struct alb_reflect_in *in, const struct alb_csa_segment *segment, struct alb_target *target,
                        alb_time now)
{
    struct alb_txn_in *txn = receiving(in, segment, now);
    struct alb_txn_range *range = NULL;
    *target = (struct alb_target){.kind = ALB_TARGET_DISCARD};
    if (txn)
        condemn(txn, begin_part(in->csa->qp, txn, segment, &range));
    if (!txn || txn->reason != ALB_TXN_OK)
        return;
    in->range = range;
    *target = (struct alb_target){
        .kind = ALB_TARGET_STAGE,
        .stage = txn->is_in_place ? range->host : range->bytes,
        .length = range->length,
    };
}

enum alb_outcome alb_reflect_in_begin(struct alb_csa *csa, const struct alb_csa_segment *segment,
                                      struct alb_target *target, alb_time now)
{
    struct alb_qp *qp = csa->qp;
    if (segment->total_bytes > ALB_MAX_MESSAGE || qp->type != ALB_QPT_RC || qp->engine->config.txn_staging_bytes == 0)
        return ALB_OUTCOME_INVALID_REQUEST;
    struct alb_reflect_in *in = alb_reflect_in_get(csa);
    in->range = NULL;
    if (segment->op == ALB_CSA_TXN_WRITE) {
        begin_write(in, segment, target, now);
        return ALB_OUTCOME_OK;
    }
    if (segment->total_bytes > sizeof(in->proposal))
        return ALB_OUTCOME_INVALID_REQUEST;
    *target = (struct alb_target){.kind = ALB_TARGET_CONTROL, .stage = in->proposal, .length = segment->total_bytes};
    return ALB_OUTCOME_OK;
}

// ---- what speaks against it -----------------------------------------------------------------------------------------

// Everything in one journal, or nothing in any.
static enum alb_txn_reason check_store(struct alb_txn_in *txn, const struct alb_txn_range *range, bool is_first)
{
    const struct alb_region *root = alb_region_root(range->region);
    if ((!is_first && root->store != txn->store) || (root->store && txn->is_in_place))
        return ALB_TXN_UNSUPPORTED;
    txn->store = root->store;
    if (root->store)
        txn->keeper = root->keeper;
    return ALB_TXN_OK;
}

static enum alb_txn_reason bind_parts(struct alb_qp *qp, struct alb_txn_in *txn, bool *is_checked)
{
    bool is_first = true;
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        enum alb_txn_reason reason = find(qp, range, ALB_ACCESS_REMOTE_WRITE); // it may have gone since the part came
        if (reason == ALB_TXN_OK && !txn->is_in_place)
            reason = claim(range);
        if (reason == ALB_TXN_OK && range->length > 0) {
            reason = check_store(txn, range, is_first);
            is_first = false;
            const struct alb_region *root = alb_region_root(range->region);
            if (root->is_checked) {
                *is_checked = true;
                txn->user = root->checker;
            }
        }
        if (reason != ALB_TXN_OK)
            return reason;
    }
    return ALB_TXN_OK;
}

// As it was before any part in place came, the newest of which may lie upon older ones.
static uint64_t word_before(const struct alb_txn_in *txn, const uint8_t *host)
{
    uint64_t word = __atomic_load_n((const uint64_t *)host, __ATOMIC_ACQUIRE);
    for (const struct alb_list *node = txn->ranges.prev; node != &txn->ranges; node = node->prev) {
        const struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (!range->is_placed)
            continue;
        const uint8_t *first = ALB_MAX(host, (const uint8_t *)range->host);
        const uint8_t *past = ALB_MIN(host + sizeof(word), (const uint8_t *)range->host + range->length);
        if (first < past)
            memcpy((uint8_t *)&word + (first - host), range->bytes + (first - range->host), (size_t)(past - first));
    }
    return word;
}

static enum alb_txn_reason compare(struct alb_qp *qp, struct alb_txn_in *txn, const struct alb_csa_compare *compare)
{
    struct alb_txn_range *range = alb_txn_range_create(txn, 0);
    if (!range)
        return ALB_TXN_NO_MEMORY;
    range->is_compare = true;
    range->rkey = compare->rkey;
    range->va = compare->va;
    range->length = sizeof(uint64_t);
    range->expected = compare->expected;
    range->mask = compare->mask;
    enum alb_txn_reason reason = find(qp, range, ALB_ACCESS_REMOTE_READ);
    if (reason == ALB_TXN_OK && (uintptr_t)range->host % sizeof(uint64_t) != 0)
        reason = ALB_TXN_ACCESS;
    if (reason == ALB_TXN_OK && txn->store && alb_region_root(range->region)->store != txn->store)
        reason = ALB_TXN_UNSUPPORTED; // it has to hold over a restart, too
    if (reason == ALB_TXN_OK)
        reason = claim(range);
    if (reason != ALB_TXN_OK)
        return reason;
    return alb_txn_range_agrees(range, word_before(txn, range->host)) ? ALB_TXN_OK : ALB_TXN_PRECONDITION;
}

static enum alb_txn_reason check_digest(struct alb_txn_in *txn, const struct alb_csa_proposal *proposal)
{
    alb_txn_in_corrupt(txn);
    txn->digest = alb_txn_in_digest(txn, false);
    if (alb_digest_is_wire(&txn->digest, &proposal->digest))
        return ALB_TXN_OK;
    txn->engine->stats->sum.counter[ALB_STAT_digest_mismatches]++;
    return ALB_TXN_DIGEST;
}

static enum alb_txn_reason promise_notice(struct alb_reflect_in *in, struct alb_txn_in *txn)
{
    if (!txn->notifies)
        return ALB_TXN_OK;
    if (in->notices_promised == ALB_REFLECT_NOTICES)
        return ALB_TXN_BUSY;
    in->notices_promised++;
    txn->has_notice = true;
    return ALB_TXN_OK;
}

static enum alb_txn_reason examine(struct alb_reflect_in *in, struct alb_txn_in *txn,
                                   const struct alb_csa_proposal *proposal, bool *is_checked)
{
    struct alb_qp *qp = in->csa->qp;
    if (txn->reason != ALB_TXN_OK)
        return txn->reason;
    if (proposal->part_count != txn->part_count || proposal->bytes != txn->bytes ||
        proposal->is_in_place != txn->is_in_place)
        return ALB_TXN_MALFORMED;
    enum alb_txn_reason reason = bind_parts(qp, txn, is_checked);
    if (reason == ALB_TXN_OK && !txn->is_in_place && alb_txn_in_contradicts_itself(txn)) // in place the digest finds it
        reason = ALB_TXN_MALFORMED;
    for (uint32_t i = 0; reason == ALB_TXN_OK && i < proposal->compare_count; i++)
        reason = compare(qp, txn, &proposal->compares[i]);
    if (reason == ALB_TXN_OK)
        reason = check_digest(txn, proposal);
    if (reason == ALB_TXN_OK && (*is_checked || txn->store) && !alb_txn_in_list_parts(txn))
        reason = ALB_TXN_NO_MEMORY;
    if (reason == ALB_TXN_OK)
        reason = promise_notice(in, txn);
    return reason;
}

// ---- the proposal ---------------------------------------------------------------------------------------------------

// There is no record: said once; asked again, the answer is "unknown".
static void refuse(struct alb_reflect_in *in, struct alb_txn_in *txn, const struct alb_csa_proposal *proposal,
                   enum alb_txn_reason reason)
{
    if (txn) {
        alb_txn_in_undo(txn);
        alb_txn_in_destroy(txn);
    }
    in->csa->qp->engine->stats->sum.counter[ALB_STAT_txn_refused]++;
    alb_reflect_in_owe_stray(
        in, &(struct alb_csa_verdict){.state = ALB_CSA_VERDICT_ABORTED, .reason = reason, .id = proposal->id});
}

// The initiator whose queue pair this is: one, for as long as it is connected. NULL: another one, or no memory.
static struct alb_txn_initiator *initiator_of(struct alb_reflect_in *in, uint64_t id)
{
    if (in->initiator)
        return in->initiator->id == id ? in->initiator : NULL;
    in->initiator = alb_txn_initiator_get(in->csa->qp->engine, id, in);
    return in->initiator;
}

static alb_time lease_ns(const struct alb_engine *engine, uint32_t lease_us)
{
    alb_time asked_ns = lease_us ? lease_us * (alb_time)ALB_NS_PER_US : engine->config.txn_lease_ns;
    return ALB_MIN(asked_ns, engine->config.txn_lease_ns_max);
}

static void fill(struct alb_txn_in *txn, const struct alb_csa_proposal *proposal, alb_time now)
{
    txn->notifies = proposal->notifies;
    txn->is_solicited = proposal->is_solicited;
    txn->imm_be = proposal->imm_be;
    txn->lease_ns = lease_ns(txn->engine, proposal->lease_us);
    txn->placed_at = now;
}

static void prepare(struct alb_txn_in *txn, alb_time now)
{
    if (!txn->store) {
        alb_txn_in_bind(txn, now);
        return;
    }
    alb_txn_in_set_state(txn, ALB_TXN_PREPARING, now);
    alb_wheel_disarm(&txn->engine->wheel, &txn->lease.timer);
    alb_txn_in_request_journal(txn, ALB_JOURNAL_PREPARE);
}

static void propose_to_program(struct alb_txn_in *txn, alb_time now)
{
    struct alb_reflect_engine *reflect = txn->engine->reflect;
    alb_txn_in_set_state(txn, ALB_TXN_PROPOSED, now);
    alb_wheel_arm(&txn->engine->wheel, &txn->lease.timer, now + txn->lease_ns);
    if (alb_list_is_empty(&reflect->proposals))
        alb_event_raise(txn->engine, &reflect->event, ALB_EVENT_PROPOSAL);
    alb_list_push_back(&reflect->proposals, &txn->queue);
}

static void on_proposal(struct alb_reflect_in *in, const struct alb_csa_proposal *proposal, alb_time now)
{
    struct alb_txn_in *txn = in->receiving;
    struct alb_txn_initiator *initiator = initiator_of(in, proposal->id.initiator);
    bool is_checked = false;
    in->receiving = NULL;
    if (initiator)
        alb_txn_initiator_pass(initiator, proposal->low_water);
    if (!txn || !initiator) {
        refuse(in, txn, proposal, ALB_TXN_NO_MEMORY);
        return;
    }
    enum alb_txn_reason reason = ALB_TXN_MALFORMED;
    if (txn->id.number == proposal->id.number)
        reason = alb_txn_in_name(txn, initiator, proposal->id.number);
    if (reason != ALB_TXN_OK) {
        refuse(in, txn, proposal, reason);
        return;
    }
    fill(txn, proposal, now);
    reason = examine(in, txn, proposal, &is_checked);
    if (reason != ALB_TXN_OK)
        alb_txn_in_abort(txn, reason, now);
    else if (is_checked)
        propose_to_program(txn, now);
    else
        prepare(txn, now);
}

enum alb_outcome alb_reflect_in_end(struct alb_csa *csa, const struct alb_csa_segment *last, alb_time now)
{
    struct alb_reflect_in *in = csa->reflect_in;
    struct alb_csa_proposal proposal;
    csa->target = (struct alb_target){.kind = ALB_TARGET_NONE};
    in->range = NULL;
    if (last->op == ALB_CSA_TXN_WRITE)
        return ALB_OUTCOME_OK;
    if (!alb_csa_decode_proposal(in->proposal, last->total_bytes, &proposal))
        return ALB_OUTCOME_INVALID_REQUEST;
    on_proposal(in, &proposal, now);
    return ALB_OUTCOME_OK;
}

// ---- the program's word ---------------------------------------------------------------------------------------------

bool alb_engine_proposal(struct alb_engine *engine, struct alb_proposal *proposal)
{
    struct alb_list *node = engine->reflect ? alb_list_pop(&engine->reflect->proposals) : NULL;
    if (!node)
        return false;
    struct alb_txn_in *txn = ALB_LIST_ENTRY(node, struct alb_txn_in, queue);
    txn->is_taken = true;
    *proposal = (struct alb_proposal){
        .id = txn->id,
        .user = txn->user,
        .part_count = txn->part_count,
        .parts = txn->parts,
        .imm_data = txn->imm_be,
        .notify = txn->notifies,
    };
    return true;
}

int alb_engine_proposal_answer(struct alb_engine *engine, const struct alb_txn_id *id, bool accept, alb_time now)
{
    struct alb_txn_in *txn = alb_txn_in_find(engine, id);
    if (!txn || !txn->is_taken || txn->journal_kind)
        return ENOENT;
    txn->is_taken = false;
    if (txn->state != ALB_TXN_PROPOSED) {
        alb_txn_in_release(txn); // it has ended meanwhile
        return ENOENT;
    }
    if (accept)
        prepare(txn, now);
    else
        alb_txn_in_abort(txn, ALB_TXN_REJECTED, now);
    return 0;
}

int alb_mr_set_checked(struct alb_region *mr, bool is_checked, void *user)
{
    if (mr->kind != ALB_REGION_MR)
        return EINVAL;
    mr->is_checked = is_checked;
    mr->checker = is_checked ? user : NULL;
    return 0;
}
