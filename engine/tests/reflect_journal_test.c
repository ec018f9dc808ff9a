// SPDX-License-Identifier: BSD-2-Clause
// Durable regions: nothing is said before it is written, and what a restart finds is taken up.
#include "engine/tests/reflect_pair.h"

#include "base/corruption.h"
#include "engine/region_version.h"

#include <stdlib.h>

#define KEEPER 0x1234

static int store; // opaque to the engine

static int durable_setup(void **state)
{
    reflect_pair_setup(state);
    struct csa_pair *c = *state;
    return alb_mr_set_store(c->pair->hosts[1].mr, &store, KEEPER);
}
#define DURABLE_TEST(test) cmocka_unit_test_setup_teardown(test, durable_setup, csa_pair_teardown)

static struct alb_journal_request take(struct csa_pair *c, enum alb_journal_kind kind)
{
    struct alb_journal_request request;
    assert_true(alb_engine_journal(c->engines[1], &request));
    assert_int_equal(request.kind, kind);
    assert_ptr_equal(request.store, &store);
    return request;
}

// True: the engine says that what is committed stands in its region.
static bool written(struct csa_pair *c, const struct alb_journal_request *request, int error)
{
    bool is_placed = alb_engine_journaled(c->engines[1], &request->id, request->kind, error, c->pair->now);
    pair_settle(c->pair);
    return is_placed;
}

static uint64_t begin(struct csa_pair *c, bool hold)
{
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 64);
    made.wr.hold = hold;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    return number;
}

static void prepare__is_written_before_it_is_said(void **state)
{
    struct csa_pair *c = *state;
    struct alb_event event;
    uint64_t number = begin(c, false);
    assert_true(pair_event(c->pair, 1, ALB_EVENT_JOURNAL, &event));
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_TENTATIVE);
    struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
    assert_int_equal(request.part_count, 1);
    assert_ptr_equal(request.parts[0].region, c->pair->hosts[1].mr);
    assert_int_equal(request.parts[0].offset, 0);
    assert_memory_equal(request.parts[0].bytes, c->pair->hosts[0].memory, 64);
    written(c, &request, 0);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_REFLECTING);
    assert_false(reflect_pair_is_exposed(c, 0, 64));
    request = take(c, ALB_JOURNAL_COMMIT);
    assert_true(written(c, &request, 0));
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_true(reflect_pair_is_exposed(c, 0, 64));
    assert_int_equal(reflect_pair_record(c, number)->keeper, KEEPER);
}

// Its program may have written down what it decided, and ask for that.
static void new_life__of_the_initiator_leaves_it_bound(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = begin(c, true);
    struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
    written(c, &request, 0);
    alb_assoc_restart(c->engines[1], c->csa[1]->assoc, c->csa[1]->bound_epoch + 1);
    assert_int_equal(alb_qp_modify(c->qps[1], &(struct alb_qp_attr){.state = ALB_QPS_ERR}, ALB_QP_STATE, c->pair->now),
                     0);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_REFLECTING);
    pair_pass(c->pair, c->engines[1]->config.txn_lease_ns + 1);
    request = take(c, ALB_JOURNAL_ABORT);
    written(c, &request, 0);
    assert_int_equal(reflect_pair_record(c, number)->reason, ALB_TXN_LEASE);
    assert_false(reflect_pair_is_exposed(c, 0, 64));
}

static void abort__is_written_before_it_is_said(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = begin(c, true);
    struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
    written(c, &request, 0);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, false, c->pair->now), 0);
    pair_settle(c->pair);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTING);
    request = take(c, ALB_JOURNAL_ABORT);
    written(c, &request, 0);
    reflect_pair_expect(c, 1, ALB_TXN_WITHDRAWN);
}

static void abort__while_it_is_prepared(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = begin(c, false);
    struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, false, c->pair->now), 0);
    pair_settle(c->pair);
    written(c, &request, 0);
    request = take(c, ALB_JOURNAL_ABORT);
    written(c, &request, 0);
    reflect_pair_expect(c, 1, ALB_TXN_WITHDRAWN);
    assert_false(reflect_pair_is_exposed(c, 0, 64));
}

// A durable region beside the pair's, and a transaction to it.
static struct alb_region *begin_aside(struct csa_pair *c)
{
    struct alb_region *mr;
    struct pair_host *host = &c->pair->hosts[1];
    struct reflect_made made;
    assert_int_equal(alb_mr_create(host->pd, host->memory, 4096, (uintptr_t)host->memory, PAIR_ACCESS_ALL, &mr), 0);
    assert_int_equal(alb_mr_set_store(mr, &store, KEEPER), 0);
    reflect_pair_make(c, &made, 1, 0, 64);
    made.writes[0].rkey = alb_region_key(mr);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    return mr;
}

// The journal has it and the region has not: the journal's keeper must not forget it.
static void region__gone_while_commit_is_written(void **state)
{
    struct csa_pair *c = *state;
    struct alb_region *mr = begin_aside(c);
    struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
    assert_false(written(c, &request, 0));
    request = take(c, ALB_JOURNAL_COMMIT);
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_false(written(c, &request, 0));
    assert_false(reflect_pair_is_exposed(c, 0, 64));
    reflect_pair_expect(c, 1, ALB_TXN_LOST);
}

static struct alb_region *bind_window(struct csa_pair *c)
{
    struct pair_host *host = &c->pair->hosts[1];
    struct alb_region *mw;
    assert_int_equal(alb_mw_create(host->pd, ALB_MW_TYPE_1, &mw), 0);
    const struct alb_mw_bind bind = {
        .mw = mw, .mr = host->mr, .addr = pair_va(c->pair, 1, 0), .length = 4096, .access = ALB_ACCESS_REMOTE_WRITE};
    assert_int_equal(alb_mw_bind(c->qps[1], &bind), ALB_WC_SUCCESS);
    return mw;
}

// A window gives the right to begin. What was decided is finished without it, and nothing comes in between: what the
// journal has later would otherwise be overwritten with it at the next opening.
static void window__gone_while_commit_is_written(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_region *mw = bind_window(c);
    reflect_pair_make(c, &made, 1, 100, 64);
    reflect_pair_add(c, &made, 1000, 64);
    made.writes[0].rkey = made.writes[1].rkey = alb_region_key(mw);
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
    written(c, &request, 0);
    request = take(c, ALB_JOURNAL_COMMIT);
    assert_int_equal(alb_mw_destroy(mw), 0);
    // What is left to do is done in the region, which stays.
    ALB_LIST_FOR_EACH (&reflect_pair_record(c, number)->ranges, node)
        assert_ptr_equal(ALB_LIST_ENTRY(node, struct alb_txn_range, link)->region, c->pair->hosts[1].mr);
    reflect_pair_make(c, &made, 2, 1063, 1);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_true(written(c, &request, 0));
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    reflect_pair_expect(c, 2, ALB_TXN_BUSY);
    assert_true(reflect_pair_is_exposed(c, 100, 64));
    assert_true(reflect_pair_is_exposed(c, 1000, 64));
    assert_false(alb_region_is_claimed(c->pair->hosts[1].mr, pair_va(c->pair, 1, 0), 4096));
}

// Bound, it goes with the window.
static void window__gone_before_the_decision(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_region *mw = bind_window(c);
    reflect_pair_make(c, &made, 1, 100, 64);
    made.writes[0].rkey = alb_region_key(mw);
    made.wr.hold = true;
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
    written(c, &request, 0);
    assert_int_equal(alb_mw_destroy(mw), 0);
    pair_settle(c->pair);
    request = take(c, ALB_JOURNAL_ABORT);
    written(c, &request, 0);
    reflect_pair_expect(c, 1, ALB_TXN_REGION_GONE);
    assert_false(reflect_pair_is_exposed(c, 100, 64));
}

static void corrupt__when_it_is_copied(void **state)
{
    struct csa_pair *c = *state;
    struct alb_corruption corruption;
    struct alb_corruption_spec spec = {{0}};
    uint64_t counts[ALB_CORRUPT_PLACES] = {0};
    spec.chance[ALB_CORRUPT_COPY] = 1000000000;
    alb_corruption_init(&corruption, &spec, 1, counts);
    begin(c, false);
    struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
    written(c, &request, 0);
    request = take(c, ALB_JOURNAL_COMMIT);
    c->engines[1]->config.corruption = &corruption;
    assert_false(written(c, &request, 0));
    c->engines[1]->config.corruption = NULL;
    reflect_pair_expect(c, 1, ALB_TXN_COPY);
}

static void region__gone_before_anybody_writes(void **state)
{
    struct csa_pair *c = *state;
    struct alb_journal_request request;
    struct alb_region *mr = begin_aside(c);
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_false(alb_engine_journal(c->engines[1], &request)); // which would name memory that is gone
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_REGION_GONE);
}

static void error__at_prepare_aborts(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = begin(c, false);
    struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
    written(c, &request, ENOSPC);
    reflect_pair_expect(c, 1, ALB_TXN_JOURNAL);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTED);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_ABORTED);
}

// The driver says so only when it is certain that nothing of it is there.
static void error__at_commit_takes_back_what_was_prepared(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = begin(c, false);
    struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
    written(c, &request, 0);
    request = take(c, ALB_JOURNAL_COMMIT);
    written(c, &request, EIO);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_REFLECTING);
    request = take(c, ALB_JOURNAL_ABORT);
    written(c, &request, 0);
    reflect_pair_expect(c, 1, ALB_TXN_JOURNAL);
    assert_false(reflect_pair_is_exposed(c, 0, 64));
}

static void unsupported__in_place(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 64);
    made.wr.in_place = true;
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_UNSUPPORTED);
}

static void unsupported__durable_and_volatile(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_region *mr;
    struct pair_host *host = &c->pair->hosts[1];
    assert_int_equal(alb_mr_create(host->pd, host->memory, 4096, (uintptr_t)host->memory, PAIR_ACCESS_ALL, &mr), 0);
    for (uint32_t i = 0; i < 2; i++) {
        reflect_pair_make(c, &made, 1, 0, 64);
        reflect_pair_add(c, &made, 1000, 64);
        made.writes[i].rkey = alb_region_key(mr);
        reflect_pair_post(c, &made);
        pair_settle(c->pair);
        reflect_pair_expect(c, 1, ALB_TXN_UNSUPPORTED);
    }
}

// ---- which journals are open ----------------------------------------------------------------------------------------

static struct alb_region *create_region(struct csa_pair *c)
{
    struct pair_host *host = &c->pair->hosts[1];
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(host->pd, host->memory, 4096, (uintptr_t)host->memory, PAIR_ACCESS_ALL, &mr), 0);
    return mr;
}

static void has_journal__as_long_as_one_region_has_it(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    struct alb_region *second = create_region(c), *third = create_region(c);
    assert_int_equal(alb_mr_set_store(second, &store, KEEPER), 0);
    assert_int_equal(alb_mr_set_store(third, &store, KEEPER + 1), 0);
    assert_true(alb_reflect_has_journal(engine, KEEPER));
    assert_true(alb_reflect_has_journal(engine, KEEPER + 1));
    assert_false(alb_reflect_has_journal(engine, KEEPER + 2));
    assert_false(alb_reflect_has_journal(engine, 0));
    assert_int_equal(alb_mr_set_store(c->pair->hosts[1].mr, &store, KEEPER + 2), 0);
    assert_true(alb_reflect_has_journal(engine, KEEPER));
    assert_true(alb_reflect_has_journal(engine, KEEPER + 2));
    assert_int_equal(alb_mr_destroy(second), 0);
    assert_false(alb_reflect_has_journal(engine, KEEPER));
    assert_int_equal(alb_mr_set_store(third, NULL, 0), 0);
    assert_false(alb_reflect_has_journal(engine, KEEPER + 1));
    assert_int_equal(alb_mr_destroy(third), 0);
    assert_true(alb_reflect_has_journal(engine, KEEPER + 2));
}

// A peer may ask in every frame, and there may be places for 2^18 regions: the answer does not come from them.
static void has_journal__looks_at_no_region(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    struct alb_region **regions = engine->regions;
    engine->regions = calloc(engine->region_table_size, sizeof(*regions));
    assert_non_null(engine->regions);
    bool is_found = alb_reflect_has_journal(engine, KEEPER);
    free(engine->regions);
    engine->regions = regions;
    assert_true(is_found);
}

static void set_store__no_memory(void **state)
{
    struct csa_pair *c = *state;
    struct alb_region *mr = c->pair->hosts[1].mr;
    c->pair->hosts[1].refused_from = 1;
    assert_int_equal(alb_mr_set_store(mr, &store, KEEPER), ENOMEM);
    c->pair->hosts[1].refused_from = 0;
    assert_false(alb_reflect_has_journal(c->engines[1], KEEPER));
    assert_null(mr->store);
    assert_int_equal(alb_mr_set_store(mr, &store, KEEPER), 0);
    assert_true(alb_reflect_has_journal(c->engines[1], KEEPER));
}

// What the journal had of a transaction when its process ended.
static void restore_part(struct csa_pair *c, const struct alb_txn_id *id, bool is_committed,
                         const struct alb_txn_condition *condition, const struct alb_txn_part *given, uint64_t keeper)
{
    const struct alb_txn_part part = *given;
    struct alb_digest_state digest;
    alb_txn_digest_begin(&digest, id);
    alb_txn_digest_part(&digest, part.rkey, part.va, part.length);
    alb_digest_add(&digest, part.bytes, part.length);
    const struct alb_csa_proposal proposal = {.part_count = 1};
    struct alb_journal_request prepared = {
        .kind = ALB_JOURNAL_PREPARE,
        .store = &store,
        .id = *id,
        .digest = alb_txn_digest_end(&digest, &proposal),
        .lease_ns = ALB_NS_PER_S,
        .part_count = 1,
        .parts = &part,
    };
    if (condition)
        prepared.conditions[prepared.condition_count++] = *condition;
    assert_int_equal(alb_engine_restore(c->engines[1], &prepared, is_committed, keeper, c->pair->now), 0);
}

static struct alb_txn_part first_bytes(struct csa_pair *c)
{
    struct pair_host *host = &c->pair->hosts[1];
    return (struct alb_txn_part){
        .region = host->mr,
        .offset = 0,
        .length = 64,
        .va = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(host->mr),
        .bytes = c->pair->hosts[0].memory,
    };
}

static void restore_upon(struct csa_pair *c, const struct alb_txn_id *id, bool is_committed,
                         const struct alb_txn_condition *condition)
{
    const struct alb_txn_part part = first_bytes(c);
    restore_part(c, id, is_committed, condition, &part, KEEPER);
}

static void restore(struct csa_pair *c, const struct alb_txn_id *id, bool is_committed)
{
    restore_upon(c, id, is_committed, NULL);
}

static void wait(struct csa_pair *c)
{
    for (uint32_t i = 0; i < 20; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, ALB_NS_PER_MS);
    }
    pair_settle(c->pair);
}

static void question_to(struct csa_pair *c, const struct alb_txn_id *id, enum alb_txn_decision decision,
                        uint64_t keeper)
{
    const struct alb_txn_token token = {.id = *id, .keeper = keeper};
    assert_int_equal(alb_qp_txn_reconcile_stage(c->qps[0], 9, ALB_SEND_SIGNALED, &token, decision), 0);
    alb_qp_send_commit(c->qps[0]);
    alb_engine_bell_ring(c->qps[0]);
    wait(c); // the first question comes from a stranger, and is answered by a cookie
}

static void question(struct csa_pair *c, const struct alb_txn_id *id, enum alb_txn_decision decision)
{
    question_to(c, id, decision, KEEPER);
}

static void restart__bound_one_is_bound_again(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_txn_id id = {.initiator = 77, .number = 3};
    restore(c, &id, false);
    assert_true(alb_region_is_claimed(c->pair->hosts[1].mr, pair_va(c->pair, 1, 0), 64));
    question(c, &id, ALB_TXN_COMMIT);
    struct alb_journal_request request = take(c, ALB_JOURNAL_COMMIT);
    written(c, &request, 0);
    wait(c); // asked again, by another queue pair
    reflect_pair_expect(c, 9, ALB_TXN_OK);
    assert_true(reflect_pair_is_exposed(c, 0, 64));
}

// The part says the address that its initiator used, by which the memory does not stand any more, or never did.
static void restart__readers_are_held_out_where_the_bytes_are(void **state)
{
    enum { STRIDE = 64, WORDS = PAIR_MEMORY_BYTES / STRIDE };
    static _Atomic uint64_t words[WORDS];
    struct csa_pair *c = *state;
    const struct alb_txn_id id = {.initiator = 77, .number = 3};
    struct alb_txn_part part = first_bytes(c);
    part.offset = 2 * STRIDE;
    part.va = pair_va(c->pair, 1, 9 * STRIDE); // still within the region here: of the process before it need not be
    memset(words, 0, sizeof(words));
    assert_int_equal(alb_mr_set_versions(c->pair->hosts[1].mr, words, STRIDE), 0);
    restore_part(c, &id, false, NULL, &part, KEEPER);
    question(c, &id, ALB_TXN_COMMIT);
    struct alb_journal_request request = take(c, ALB_JOURNAL_COMMIT);
    assert_true(written(c, &request, 0));
    for (uint32_t i = 0; i < WORDS; i++)
        assert_int_equal(words[i], i == 2 ? ALB_VERSION_STEP : 0);
    assert_int_equal(alb_mr_set_versions(c->pair->hosts[1].mr, NULL, 0), 0);
}

// The machine has lost what a plain WRITE had put there, and with it what the transaction was agreed to upon.
static void restart__bound_one_upon_what_was_lost(void **state)
{
    struct csa_pair *c = *state;
    struct alb_region *mr = c->pair->hosts[1].mr;
    for (uint64_t i = 0; i < 2; i++) {
        const struct alb_txn_id id = {.initiator = 77, .number = 3 + i};
        const bool is_lost = i > 0;
        struct alb_txn_condition condition = {
            .region = mr,
            .offset = 4096,
            .va = pair_va(c->pair, 1, 4096),
            .mask = UINT64_MAX,
            .rkey = alb_region_key(mr),
        };
        memcpy(&condition.expected, c->pair->hosts[1].memory + 4096, 8);
        condition.expected += is_lost;
        restore_upon(c, &id, false, &condition);
        enum alb_txn_state state_now = alb_txn_in_find(c->engines[1], &id)->state;
        assert_int_equal(state_now, is_lost ? ALB_TXN_ABORTING : ALB_TXN_REFLECTING);
        if (!is_lost)
            alb_txn_in_abort(alb_txn_in_find(c->engines[1], &id), ALB_TXN_LEASE, c->pair->now);
        struct alb_journal_request request = take(c, ALB_JOURNAL_ABORT);
        written(c, &request, 0);
        assert_int_equal(alb_txn_in_find(c->engines[1], &id)->state, ALB_TXN_ABORTED);
        assert_int_equal(alb_txn_in_find(c->engines[1], &id)->reason, is_lost ? ALB_TXN_PRECONDITION : ALB_TXN_LEASE);
    }
    assert_false(reflect_pair_is_exposed(c, 0, 64));
}

static void restart__committed_one_is_known(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_txn_id id = {.initiator = 77, .number = 3};
    restore(c, &id, true);
    question(c, &id, ALB_TXN_ASK);
    reflect_pair_expect(c, 9, ALB_TXN_OK);
}

// The journal is opened again by the process that had it open.
static void reopening__tells_what_became_of_it(void **state)
{
    struct csa_pair *c = *state;
    struct alb_buddy *staging = &c->engines[1]->reflect->staging.buddy;
    struct alb_region *mr = begin_aside(c);
    struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
    assert_false(written(c, &request, 0));
    size_t used_bytes = alb_buddy_used(staging);
    request = take(c, ALB_JOURNAL_COMMIT);
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_false(written(c, &request, 0));
    assert_true(alb_buddy_used(staging) < used_bytes); // what was staged is in the journal
    reflect_pair_expect(c, 1, ALB_TXN_LOST);
    const struct alb_txn_in *txn = alb_txn_in_find(c->engines[1], &request.id);
    assert_int_equal(txn->state, ALB_TXN_UNKNOWN);
    restore(c, &request.id, true);
    assert_int_equal(txn->state, ALB_TXN_COMMITTED);
}

// The journal was closed with the disk in trouble: what it has of the transaction nobody knew.
static void closing__leaves_unknown_what_was_not_answered(void **state)
{
    struct csa_pair *c = *state;
    struct alb_buddy *staging = &c->engines[1]->reflect->staging.buddy;
    for (uint32_t i = 0; i < 3; i++) {
        struct alb_region *mr = begin_aside(c);
        struct alb_journal_request request = take(c, ALB_JOURNAL_PREPARE);
        const struct alb_txn_in *txn = alb_txn_in_find(c->engines[1], &request.id);
        size_t used_bytes = alb_buddy_used(staging);
        assert_int_equal(alb_mr_destroy(mr), 0);
        alb_engine_journal_unknown(c->engines[1], &request.id, c->pair->now);
        assert_int_equal(txn->state, ALB_TXN_UNKNOWN);
        assert_true(alb_buddy_used(staging) < used_bytes);
        pair_settle(c->pair);
        if (i == 0) { // it was written
            restore(c, &request.id, false);
            txn = alb_txn_in_find(c->engines[1], &request.id);
            assert_int_equal(txn->state, ALB_TXN_REFLECTING);
            alb_txn_in_abort(alb_txn_in_find(c->engines[1], &request.id), ALB_TXN_LEASE, c->pair->now);
            request = take(c, ALB_JOURNAL_ABORT);
            written(c, &request, 0);
            continue;
        }
        uint64_t low_water = i == 1 ? request.id.number : request.id.number + 1;
        assert_int_equal(alb_engine_restore_initiator(c->engines[1], request.id.initiator, low_water, KEEPER), EBUSY);
        txn = alb_txn_in_find(c->engines[1], &request.id);
        if (i == 1)
            assert_int_equal(txn->state, ALB_TXN_ABORTED);
        else
            assert_null(txn); // its initiator knows
    }
}

static void restart__what_the_journal_does_not_have_was_aborted(void **state)
{
    struct csa_pair *c = *state;
    struct alb_txn_id id = {.initiator = 77, .number = 3};
    assert_int_equal(alb_engine_restore_initiator(c->engines[1], 77, 3, KEEPER), 0);
    question(c, &id, ALB_TXN_ASK);
    reflect_pair_expect(c, 9, ALB_TXN_PEER_GONE);
    id.number = 2; // dropped when its initiator had passed it
    question(c, &id, ALB_TXN_ASK);
    reflect_pair_expect(c, 9, ALB_TXN_LOST);
    id.initiator = 78;
    question(c, &id, ALB_TXN_ASK);
    reflect_pair_expect(c, 9, ALB_TXN_LOST);
}

// One queue pair had transactions upon two regions, the journals of which are read one after the other.
static void restart__of_two_journals_in_any_order(void **state)
{
    struct csa_pair *c = *state;
    struct alb_region *second = create_region(c);
    const struct alb_txn_part later = first_bytes(c);
    struct alb_txn_part sooner = later;
    sooner.region = second;
    sooner.rkey = alb_region_key(second);
    sooner.va = (uintptr_t)second->host;
    assert_int_equal(alb_mr_set_store(second, &store, KEEPER + 1), 0);
    restore_part(c, &(struct alb_txn_id){77, 5}, true, NULL, &later, KEEPER);
    assert_int_equal(alb_engine_restore_initiator(c->engines[1], 77, 1, KEEPER), 0);
    const struct alb_txn_id committed = {77, 4}, bound = {77, 3}, absent = {77, 2};
    question_to(c, &absent, ALB_TXN_ASK, KEEPER + 1); // what that one had is not known yet
    reflect_pair_expect(c, 9, ALB_TXN_LOST);
    restore_part(c, &committed, true, NULL, &sooner, KEEPER + 1);
    restore_part(c, &bound, false, NULL, &sooner, KEEPER + 1);
    assert_int_equal(alb_engine_restore_initiator(c->engines[1], 77, 1, KEEPER + 1), 0);
    question_to(c, &committed, ALB_TXN_ASK, KEEPER + 1);
    reflect_pair_expect(c, 9, ALB_TXN_OK);
    assert_int_equal(alb_txn_in_find(c->engines[1], &bound)->state, ALB_TXN_REFLECTING);
    question_to(c, &absent, ALB_TXN_ASK, KEEPER + 1);
    reflect_pair_expect(c, 9, ALB_TXN_PEER_GONE);
    alb_txn_initiator_pass(alb_txn_initiator_find(c->engines[1], 77), 5); // records stand in their order
    assert_null(alb_txn_in_find(c->engines[1], &committed));
    assert_non_null(alb_txn_in_find(c->engines[1], &bound));
}

// It was forgotten, with all that it had done, and one of two journals brings it back.
static void forgotten__one_journal_does_not_speak_for_all(void **state)
{
    struct csa_pair *c = *state;
    struct alb_region *second = create_region(c);
    const struct alb_txn_id id = {77, 3};
    assert_int_equal(alb_mr_set_store(second, &store, KEEPER + 1), 0);
    assert_int_equal(alb_engine_restore_initiator(c->engines[1], 77, 1, KEEPER + 1), 0);
    const uint64_t keepers[] = {KEEPER, c->engines[1]->reflect->keeper};
    for (size_t i = 0; i < ALB_COUNT(keepers); i++) {
        question_to(c, &id, ALB_TXN_ASK, keepers[i]);
        reflect_pair_expect(c, 9, ALB_TXN_LOST);
    }
    question_to(c, &id, ALB_TXN_ASK, KEEPER + 1);
    reflect_pair_expect(c, 9, ALB_TXN_PEER_GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DURABLE_TEST(prepare__is_written_before_it_is_said),
        DURABLE_TEST(new_life__of_the_initiator_leaves_it_bound),
        DURABLE_TEST(abort__is_written_before_it_is_said),
        DURABLE_TEST(abort__while_it_is_prepared),
        DURABLE_TEST(region__gone_before_anybody_writes),
        DURABLE_TEST(region__gone_while_commit_is_written),
        DURABLE_TEST(window__gone_while_commit_is_written),
        DURABLE_TEST(window__gone_before_the_decision),
        DURABLE_TEST(corrupt__when_it_is_copied),
        DURABLE_TEST(error__at_prepare_aborts),
        DURABLE_TEST(error__at_commit_takes_back_what_was_prepared),
        DURABLE_TEST(unsupported__in_place),
        DURABLE_TEST(unsupported__durable_and_volatile),
        DURABLE_TEST(has_journal__as_long_as_one_region_has_it),
        DURABLE_TEST(has_journal__looks_at_no_region),
        REFLECT_PAIR_TEST(set_store__no_memory),
        DURABLE_TEST(reopening__tells_what_became_of_it),
        DURABLE_TEST(closing__leaves_unknown_what_was_not_answered),
        DURABLE_TEST(restart__bound_one_is_bound_again),
        DURABLE_TEST(restart__readers_are_held_out_where_the_bytes_are),
        DURABLE_TEST(restart__bound_one_upon_what_was_lost),
        DURABLE_TEST(restart__committed_one_is_known),
        DURABLE_TEST(restart__what_the_journal_does_not_have_was_aborted),
        DURABLE_TEST(restart__of_two_journals_in_any_order),
        DURABLE_TEST(forgotten__one_journal_does_not_speak_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
