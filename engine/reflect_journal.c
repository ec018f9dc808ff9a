// SPDX-License-Identifier: BSD-2-Clause
// Durable regions: nothing is said of a transaction before the driver has written it. PREPARE goes before REFLECTED,
// COMMIT before it is exposed, and ABORT before it is said, or a restart would bind again what was given up.
#include "engine/impl.h"
#include "engine/region_table.h"

#include <errno.h>

void alb_txn_in_request_journal(struct alb_txn_in *txn, enum alb_journal_kind kind)
{
    struct alb_reflect_engine *reflect = txn->engine->reflect;
    txn->journal_kind = (uint8_t)(kind + 1);
    if (alb_list_is_empty(&reflect->journal))
        alb_event_raise(txn->engine, &reflect->event, ALB_EVENT_JOURNAL);
    alb_list_push_back(&reflect->journal, &txn->queue);
}

static void add_conditions(const struct alb_txn_in *txn, struct alb_journal_request *request)
{
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        const struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (!range->is_compare)
            continue;
        struct alb_region *root = alb_region_root(range->region);
        request->conditions[request->condition_count++] = (struct alb_txn_condition){
            .region = root,
            .offset = (uint64_t)(range->host - root->host),
            .va = range->va,
            .expected = range->expected,
            .mask = range->mask,
            .rkey = range->rkey,
        };
    }
}

bool alb_engine_journal(struct alb_engine *engine, struct alb_journal_request *request)
{
    struct alb_list *node = engine->reflect ? alb_list_pop(&engine->reflect->journal) : NULL;
    if (!node)
        return false;
    struct alb_txn_in *txn = ALB_LIST_ENTRY(node, struct alb_txn_in, queue);
    txn->is_taken = true;
    *request = (struct alb_journal_request){
        .kind = (enum alb_journal_kind)(txn->journal_kind - 1),
        .store = txn->store,
        .id = txn->id,
        .digest = txn->digest,
        .low_water = txn->initiator->low_water,
        .lease_ns = txn->lease_ns,
    };
    if (request->kind == ALB_JOURNAL_PREPARE) {
        request->part_count = txn->part_count;
        request->parts = txn->parts;
        request->imm_be = txn->imm_be;
        request->notifies = txn->notifies;
        request->is_solicited = txn->is_solicited;
        add_conditions(txn, request);
    }
    return true;
}

// The region where it belongs is gone, and what the next opening of the journal finds decides.
static void be_unsure(struct alb_txn_in *txn, alb_time now)
{
    alb_txn_in_set_state(txn, ALB_TXN_UNKNOWN, now);
    txn->reason = ALB_TXN_JOURNAL;
    alb_wheel_disarm(&txn->engine->wheel, &txn->lease.timer);
    alb_txn_in_drop_notice(txn);
    alb_txn_in_release(txn);
    alb_txn_in_owe_verdict(txn);
}

static void take_back(struct alb_txn_in *txn, alb_time now)
{
    alb_txn_in_set_state(txn, ALB_TXN_ABORTING, now);
    alb_txn_in_request_journal(txn, ALB_JOURNAL_ABORT);
}

static void on_prepared(struct alb_txn_in *txn, int error, alb_time now)
{
    if (error)
        alb_txn_in_finish(txn, ALB_TXN_ABORTED, ALB_TXN_JOURNAL, now);
    else if (txn->wants_abort)
        take_back(txn, now);
    else
        alb_txn_in_bind(txn, now);
}

// True: the region has its bytes.
static bool on_committed(struct alb_txn_in *txn, int error, alb_time now)
{
    if (error) {
        txn->reason = ALB_TXN_JOURNAL;
        take_back(txn, now);
        return false;
    }
    if (txn->lost_region) {
        be_unsure(txn, now);
        return false;
    }
    return alb_txn_in_expose(txn, now);
}

bool alb_engine_journaled(struct alb_engine *engine, const struct alb_txn_id *id, enum alb_journal_kind kind, int error,
                          alb_time now)
{
    struct alb_txn_in *txn = alb_txn_in_find(engine, id);
    if (!txn || !txn->is_taken || txn->journal_kind != kind + 1)
        return false;
    txn->is_taken = false;
    txn->journal_kind = 0;
    switch (kind) {
    case ALB_JOURNAL_PREPARE:
        on_prepared(txn, error, now);
        break;
    case ALB_JOURNAL_COMMIT:
        return on_committed(txn, error, now);
    case ALB_JOURNAL_ABORT:
        alb_txn_in_finish(txn, ALB_TXN_ABORTED, txn->reason, now);
        break;
    }
    return false;
}

void alb_engine_journal_unknown(struct alb_engine *engine, const struct alb_txn_id *id, alb_time now)
{
    struct alb_txn_in *txn = alb_txn_in_find(engine, id);
    if (!txn || !txn->is_taken)
        return;
    txn->is_taken = false;
    txn->journal_kind = 0;
    be_unsure(txn, now);
}

// ---- journals that are open -----------------------------------------------------------------------------------------

// Any peer may ask for any keeper, again in each frame: however many regions there are, the answer is one look. Room
// for as many as there may be regions, of which only what is used is touched.
static bool create_journals(struct alb_engine *engine)
{
    struct alb_reflect_engine *reflect = engine->reflect;
    uint32_t capacity = engine->config.region_max;
    struct alb_map *map;
    if (reflect->journals)
        return true;
    map = alb_engine_get_memory(engine, sizeof(*map) + alb_map_bytes(capacity, sizeof(uint64_t)));
    if (!map)
        return false;
    alb_map_init_zeroed(map, capacity, sizeof(uint64_t), map + 1, &engine->csa->hash_key);
    reflect->journals = map;
    return true;
}

static void enter_journal(struct alb_region *mr)
{
    struct alb_map *journals = mr->engine->reflect->journals;
    uint64_t regions = 0;
    alb_map_remove(journals, &mr->keeper, &regions);
    alb_map_insert(journals, &mr->keeper, regions + 1);
}

void alb_reflect_leave_journal(struct alb_region *mr)
{
    uint64_t regions = 0;
    if (!mr->store)
        return;
    struct alb_map *journals = mr->engine->reflect->journals;
    alb_map_remove(journals, &mr->keeper, &regions);
    if (regions > 1)
        alb_map_insert(journals, &mr->keeper, regions - 1);
    mr->store = NULL;
    mr->keeper = 0;
}

int alb_mr_set_store(struct alb_region *mr, void *store, uint64_t keeper)
{
    if (mr->kind != ALB_REGION_MR || (store && keeper == 0))
        return EINVAL;
    if (!mr->engine->reflect)
        return EOPNOTSUPP;
    if (store && !create_journals(mr->engine))
        return ENOMEM;
    alb_reflect_leave_journal(mr);
    if (!store)
        return 0;
    mr->store = store;
    mr->keeper = keeper;
    enter_journal(mr);
    return 0;
}

bool alb_reflect_has_journal(const struct alb_engine *engine, uint64_t keeper)
{
    const struct alb_map *journals = engine->reflect->journals;
    return journals && alb_map_find(journals, &keeper, NULL);
}

// ---- after a restart ------------------------------------------------------------------------------------------------

static bool is_unknown(const struct alb_txn_in *txn, uint64_t keeper)
{
    return txn->state == ALB_TXN_UNKNOWN && txn->keeper == keeper;
}

// What this journal was to tell and does not have was aborted; or its outcome is known to the initiator.
static void settle_unknown(struct alb_txn_initiator *initiator, uint64_t low_water, uint64_t keeper, alb_time now)
{
    ALB_LIST_FOR_EACH (&initiator->records, node) {
        struct alb_txn_in *txn = ALB_LIST_ENTRY(node, struct alb_txn_in, of_initiator);
        if (!is_unknown(txn, keeper))
            continue;
        if (txn->id.number < low_water)
            alb_txn_in_destroy(txn);
        else
            alb_txn_in_finish(txn, ALB_TXN_ABORTED, ALB_TXN_JOURNAL, now);
    }
}

int alb_engine_restore_initiator(struct alb_engine *engine, uint64_t id, uint64_t low_water, uint64_t keeper)
{
    struct alb_txn_initiator *initiator = alb_txn_initiator_find(engine, id);
    if (initiator)
        settle_unknown(initiator, low_water, keeper, engine->now);
    initiator = alb_txn_initiator_get(engine, id, NULL);
    if (!initiator)
        return alb_txn_initiator_find(engine, id) ? EBUSY : ENOMEM;
    initiator->next = ALB_MAX(initiator->next, low_water);
    alb_txn_initiator_pass(initiator, low_water);
    return alb_txn_initiator_vouch(initiator, engine, keeper);
}

static int claim_again(struct alb_txn_range *range, struct alb_region *region, uint64_t offset, uint64_t length)
{
    range->region = region;
    range->length = length;
    range->host = region->host + offset;
    range->is_claimed = alb_region_claim(region, &range->claim, region->iova + offset, length);
    return range->is_claimed ? 0 : EBUSY;
}

static bool is_within(const struct alb_region *region, uint64_t offset, uint64_t length)
{
    return offset <= region->length && length <= region->length - offset;
}

// The parts of a bound transaction as they stood in staging.
static int restore_part(struct alb_txn_in *txn, const struct alb_txn_part *part)
{
    if (!is_within(part->region, part->offset, part->length))
        return EINVAL;
    struct alb_txn_range *range = alb_txn_range_create(txn, part->length);
    if (!range)
        return ENOMEM;
    range->rkey = part->rkey;
    range->va = part->va;
    memcpy(range->bytes, part->bytes, part->length);
    return claim_again(range, part->region, part->offset, part->length);
}

static int restore_condition(struct alb_txn_in *txn, const struct alb_txn_condition *condition)
{
    if (!is_within(condition->region, condition->offset, sizeof(uint64_t)))
        return EINVAL;
    struct alb_txn_range *range = alb_txn_range_create(txn, 0);
    if (!range)
        return ENOMEM;
    range->is_compare = true;
    range->rkey = condition->rkey;
    range->va = condition->va;
    range->expected = condition->expected;
    range->mask = condition->mask;
    return claim_again(range, condition->region, condition->offset, sizeof(uint64_t));
}

// Last, since memory for the others may have been had by forgetting an initiator with nothing open. Another journal may
// have had later ones of the initiator; what that has passed it will not ask about again.
static int restore_name(struct alb_txn_in *txn, const struct alb_txn_id *id, bool is_committed)
{
    struct alb_txn_initiator *initiator = alb_txn_initiator_find(txn->engine, id->initiator);
    if (!initiator)
        initiator = alb_txn_initiator_get(txn->engine, id->initiator, NULL);
    if (!initiator)
        return ENOMEM;
    if (initiator->in && id->number >= initiator->next) // of which its queue pair knows nothing yet
        return EBUSY;
    if (is_committed && id->number < initiator->low_water)
        return EEXIST;
    return alb_txn_in_name_again(txn, initiator, id->number);
}

// A compared word that was written beside transactions may have been lost with the machine.
static bool conditions_hold(const struct alb_txn_in *txn)
{
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        const struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (!range->is_compare)
            continue;
        if (!alb_txn_range_agrees(range, __atomic_load_n((const uint64_t *)range->host, __ATOMIC_ACQUIRE)))
            return false;
    }
    return true;
}

// The region was open here before and went while COMMIT was being written: what was not known then is known now.
static bool learn(struct alb_engine *engine, const struct alb_txn_id *id, uint64_t keeper, alb_time now)
{
    struct alb_txn_in *txn = alb_txn_in_find(engine, id);
    if (!txn || !is_unknown(txn, keeper))
        return false;
    alb_txn_in_finish(txn, ALB_TXN_COMMITTED, ALB_TXN_OK, now);
    return true;
}

int alb_engine_restore(struct alb_engine *engine, const struct alb_journal_request *prepared, bool is_committed,
                       uint64_t keeper, alb_time now)
{
    int error = 0;
    if (is_committed && learn(engine, &prepared->id, keeper, now))
        return 0;
    struct alb_txn_in *txn = alb_txn_in_find(engine, &prepared->id);
    if (txn && is_unknown(txn, keeper)) // the journal has it bound
        alb_txn_in_destroy(txn);
    txn = alb_txn_in_create(engine);
    if (!txn)
        return ENOMEM;
    for (uint32_t i = 0; !error && !is_committed && i < prepared->part_count; i++)
        error = restore_part(txn, &prepared->parts[i]);
    for (uint32_t i = 0; !error && !is_committed && i < prepared->condition_count; i++)
        error = restore_condition(txn, &prepared->conditions[i]);
    if (!error)
        error = restore_name(txn, &prepared->id, is_committed);
    if (error) {
        alb_txn_in_destroy(txn);
        return error;
    }
    txn->keeper = keeper;
    txn->store = prepared->store;
    txn->digest = prepared->digest;
    txn->lease_ns = prepared->lease_ns;
    txn->part_count = prepared->part_count;
    txn->imm_be = prepared->imm_be;
    txn->notifies = prepared->notifies;
    txn->is_solicited = prepared->is_solicited;
    if (is_committed) {
        alb_txn_in_finish(txn, ALB_TXN_COMMITTED, ALB_TXN_OK, now);
        return 0;
    }
    alb_txn_in_bind(txn, now);
    if (!conditions_hold(txn))
        alb_txn_in_abort(txn, ALB_TXN_PRECONDITION, now);
    return 0;
}
