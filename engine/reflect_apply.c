// SPDX-License-Identifier: BSD-2-Clause
// From staging to the regions, and back. Readers are held out of all of a transaction's ranges while any of them is
// changed, and the digest is read back from the memory that they will read.
#include "base/corruption.h"
#include "engine/impl.h"
#include "engine/inbound.h"
#include "engine/region_version.h"

// What is written: not what is only compared, and not what is empty.
static bool is_written(const struct alb_txn_range *range)
{
    return !range->is_compare && range->length > 0;
}

struct alb_digest alb_txn_in_digest(const struct alb_txn_in *txn, bool is_exposed)
{
    struct alb_csa_proposal proposal = {
        .is_in_place = txn->is_in_place,
        .notifies = txn->notifies,
        .is_solicited = txn->is_solicited,
        .imm_be = txn->imm_be,
    };
    struct alb_digest_state state;
    alb_txn_digest_begin(&state, &txn->id);
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        const struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (range->is_compare) {
            proposal.compares[proposal.compare_count++] = (struct alb_csa_compare){
                .rkey = range->rkey, .va = range->va, .expected = range->expected, .mask = range->mask};
            continue;
        }
        alb_txn_digest_part(&state, range->rkey, range->va, range->length);
        alb_digest_add(&state, is_exposed || txn->is_in_place ? range->host : range->bytes, range->length);
    }
    return alb_txn_digest_end(&state, &proposal);
}

void alb_txn_in_corrupt(struct alb_txn_in *txn)
{
    struct alb_corruption *corruption = txn->engine->config.corruption;
    if (alb_likely(!corruption))
        return;
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (is_written(range))
            alb_corrupt(corruption, ALB_CORRUPT_STAGE, txn->is_in_place ? range->host : range->bytes, range->length);
    }
}

// The address that the initiator gave may be a window's that has gone, or one of a former life of this process.
static uint64_t va_in_root(const struct alb_txn_range *range)
{
    const struct alb_region *root = alb_region_root(range->region);
    return root->iova + (uint64_t)(range->host - root->host);
}

void alb_txn_range_hold_readers(const struct alb_txn_range *range)
{
    alb_region_hold_readers(alb_region_root(range->region), va_in_root(range), range->length);
}

static void let_readers_of(const struct alb_txn_range *range)
{
    alb_region_let_readers(alb_region_root(range->region), va_in_root(range), range->length);
}

bool alb_txn_range_claim_root(struct alb_txn_range *range)
{
    struct alb_region *root = alb_region_root(range->region);
    if (root == range->region)
        return false;
    range->is_claimed = alb_region_claim(root, &range->claim, va_in_root(range), range->length);
    range->region = root;
    return range->is_claimed;
}

static void hold_readers(struct alb_txn_in *txn)
{
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (is_written(range))
            alb_txn_range_hold_readers(range);
    }
}

static void let_readers(struct alb_txn_in *txn)
{
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (is_written(range) && range->is_claimed)
            let_readers_of(range);
    }
}

static void copy(struct alb_txn_in *txn)
{
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (!is_written(range))
            continue;
        alb_store_release(range->host, range->bytes, range->length);
        alb_corrupt(txn->engine->config.corruption, ALB_CORRUPT_COPY, range->host, range->length);
    }
}

static bool is_as_agreed(struct alb_txn_in *txn)
{
    struct alb_digest exposed = alb_txn_in_digest(txn, true);
    return alb_digest_is_equal(&exposed, &txn->digest);
}

static void poison(struct alb_txn_in *txn)
{
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (is_written(range))
            alb_region_poison(range->region);
    }
}

bool alb_txn_in_apply(struct alb_txn_in *txn)
{
    alb_txn_in_corrupt(txn);
    if (txn->is_in_place) { // it has been there since it came, and readers are held out
        bool is_good = is_as_agreed(txn);
        if (is_good)
            let_readers(txn);
        return is_good;
    }
    hold_readers(txn);
    for (uint32_t attempt = 0; attempt <= txn->engine->config.txn_copies_max; attempt++) {
        if (attempt > 0)
            txn->engine->stats->sum.counter[ALB_STAT_txn_copied_again]++;
        copy(txn);
        if (is_as_agreed(txn)) {
            let_readers(txn);
            return true;
        }
    }
    poison(txn); // and readers stay held out
    return false;
}

// The newest part first: what stood under it may be of an older one.
void alb_txn_in_undo(struct alb_txn_in *txn)
{
    for (struct alb_list *node = txn->ranges.prev; node != &txn->ranges; node = node->prev) {
        struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (!range->is_placed)
            continue;
        range->is_placed = false;
        alb_store_release(range->host, range->bytes, range->length);
        let_readers_of(range);
    }
}
