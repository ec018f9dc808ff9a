// SPDX-License-Identifier: BSD-2-Clause
// What a target keeps is bounded, and what it forgets it does not make up.
#include "engine/tests/reflect_pair.h"

static struct alb_txn_initiator *orphan(struct alb_engine *engine, uint64_t id)
{
    return alb_txn_initiator_get(engine, id, NULL);
}

static struct alb_txn_in *record(struct alb_engine *engine, struct alb_txn_initiator *initiator, uint64_t number)
{
    struct alb_txn_in *txn = alb_txn_in_create(engine);
    assert_non_null(txn);
    assert_int_equal(alb_txn_in_name(txn, initiator, number), ALB_TXN_OK);
    return txn;
}

static void initiators__beyond_the_limit_forget_the_oldest(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    uint32_t limit = engine->config.txn_record_max;
    for (uint64_t id = 1; id <= 3 * (uint64_t)limit; id++)
        assert_non_null(orphan(engine, id));
    assert_int_equal(alb_map_count(engine->reflect->initiators), limit);
    assert_null(alb_txn_initiator_find(engine, 1));
    assert_non_null(alb_txn_initiator_find(engine, 3 * (uint64_t)limit));
}

static void initiators__with_something_open_stay(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    struct alb_txn_in *open = record(engine, orphan(engine, 1), 1);
    alb_txn_in_bind(open, c->pair->now);
    for (uint64_t id = 2; id <= 3 * (uint64_t)engine->config.txn_record_max; id++)
        assert_non_null(orphan(engine, id));
    assert_ptr_equal(alb_txn_in_find(engine, &open->id), open);
    assert_null(alb_txn_initiator_find(engine, 2));
}

static void initiators__are_connected_once(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    struct alb_reflect_in *in = alb_reflect_in_get(c->csa[1]);
    assert_non_null(alb_txn_initiator_get(engine, 5, in));
    assert_null(alb_txn_initiator_get(engine, 5, NULL)); // one that comes with another's number
    assert_ptr_equal(alb_txn_initiator_get(engine, 5, in), alb_txn_initiator_find(engine, 5));
}

static void records__of_one_number_once(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    struct alb_txn_initiator *initiator = orphan(engine, 1);
    record(engine, initiator, 5);
    struct alb_txn_in *again = alb_txn_in_create(engine);
    assert_int_equal(alb_txn_in_name(again, initiator, 5), ALB_TXN_MALFORMED);
    assert_int_equal(alb_txn_in_name(again, initiator, 4), ALB_TXN_MALFORMED);
    assert_int_equal(alb_txn_in_name(again, initiator, 6), ALB_TXN_OK);
}

// A proposal for whose record there is no room is nothing that its sender has done wrong.
static void records__no_room_for_another(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    struct alb_txn_initiator *initiator = orphan(engine, 1);
    struct reflect_made made;
    for (uint32_t i = 0; i < engine->config.txn_record_max; i++)
        record(engine, initiator, 1 + i);
    reflect_pair_make(c, &made, 1, 0, 64);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_NO_MEMORY);
    assert_false(reflect_pair_is_exposed(c, 0, 64));
}

// As many as connections have left behind that are silent now: what is staged needs large blocks that are whole.
static void records__are_not_among_what_is_staged(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    struct alb_txn_initiator *initiator = orphan(engine, 1);
    for (uint32_t i = 0; i < engine->config.txn_record_max; i++)
        record(engine, initiator, 1 + i);
    assert_int_equal(alb_buddy_used(&engine->reflect->staging.buddy), 0);
}

// They know, or would have asked; that nobody may ask any more is not the same as that it was aborted.
static void records__of_the_connected_and_silent_give_way(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    struct alb_txn_initiator *silent = alb_txn_initiator_get(engine, 5, alb_reflect_in_get(c->csa[1]));
    for (uint32_t i = 0; i < engine->config.txn_record_max; i++) {
        struct alb_txn_in *txn = record(engine, silent, 1 + i);
        if (i == 40)
            alb_txn_in_bind(txn, c->pair->now);
        else
            alb_txn_in_finish(txn, ALB_TXN_COMMITTED, ALB_TXN_OK, c->pair->now);
    }
    struct alb_txn_in *txn = alb_txn_in_create(engine);
    assert_int_equal(alb_txn_in_name(txn, orphan(engine, 6), 1), ALB_TXN_NO_MEMORY);
    engine->now += 11 * ALB_NS_PER_S;
    assert_int_equal(alb_txn_in_name(txn, orphan(engine, 6), 1), ALB_TXN_OK);
    assert_int_equal(silent->low_water, 41); // behind that it is another one that it has to tell of
    assert_non_null(alb_txn_in_find(engine, &(struct alb_txn_id){5, 41}));
    const struct alb_csa_txn command = {
        .command = ALB_CSA_TXN_ASK, .id = {.initiator = 5, .number = 7}, .keeper = engine->reflect->keeper};
    alb_reflect_in_command(c->csa[1], &command, engine->now);
    assert_int_equal(c->csa[1]->reflect_in->stray_count, 1);
    assert_int_equal(c->csa[1]->reflect_in->strays[0].state, ALB_CSA_VERDICT_UNKNOWN);
}

// Its program had it in hand when the initiator passed it, and let go of it behind that.
static void records__that_were_taken_when_they_were_passed_give_way(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    struct alb_txn_initiator *silent = alb_txn_initiator_get(engine, 5, alb_reflect_in_get(c->csa[1]));
    struct alb_txn_initiator *other = orphan(engine, 6);
    struct alb_txn_in *taken = record(engine, silent, 1);
    taken->is_taken = true;
    alb_txn_in_finish(taken, ALB_TXN_ABORTED, ALB_TXN_LEASE, c->pair->now);
    alb_txn_initiator_pass(silent, 2);
    taken->is_taken = false;
    for (uint32_t i = 1; i < engine->config.txn_record_max; i++)
        alb_txn_in_bind(record(engine, other, i), c->pair->now);
    engine->now += 11 * ALB_NS_PER_S;
    struct alb_txn_in *txn = alb_txn_in_create(engine);
    assert_int_equal(alb_txn_in_name(txn, other, 1000), ALB_TXN_OK);
    assert_null(alb_txn_in_find(engine, &(struct alb_txn_id){5, 1}));
    txn = alb_txn_in_create(engine);
    assert_int_equal(alb_txn_in_name(txn, other, 1001), ALB_TXN_NO_MEMORY);
}

static void low_water__drops_what_has_ended(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    struct alb_txn_initiator *initiator = orphan(engine, 1);
    for (uint64_t number = 1; number <= 4; number++)
        alb_txn_in_finish(record(engine, initiator, number), ALB_TXN_ABORTED, ALB_TXN_BUSY, c->pair->now);
    alb_txn_initiator_pass(initiator, 3);
    assert_null(alb_txn_in_find(engine, &(struct alb_txn_id){1, 2}));
    assert_non_null(alb_txn_in_find(engine, &(struct alb_txn_id){1, 3}));
    alb_txn_initiator_pass(initiator, 2); // never back
    assert_int_equal(initiator->low_water, 3);
    alb_txn_initiator_pass(initiator, 99); // nor beyond what there is
    assert_int_equal(initiator->low_water, 3);
    alb_txn_initiator_pass(initiator, 5);
    assert_int_equal(alb_map_count(engine->reflect->records), 0);
}

static void memory__all_comes_back(void **state)
{
    struct csa_pair *c = *state;
    struct alb_reflect_engine *reflect = c->engines[1]->reflect;
    struct reflect_made made;
    for (uint32_t round = 0; round < 20; round++) {
        reflect_pair_make(c, &made, 1, 0, 3000);
        reflect_pair_add(c, &made, 4096, 100);
        made.wr.in_place = round % 3 == 0;
        made.wr.hold = round % 2;
        uint64_t number = reflect_pair_post(c, &made);
        pair_settle(c->pair);
        if (round % 2)
            assert_int_equal(alb_qp_txn_decide(c->qps[0], number, round % 4 == 1, c->pair->now), 0);
        pair_settle(c->pair);
        struct alb_wc wc;
        assert_true(pair_poll(c->pair, 0, &wc));
    }
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    for (uint64_t id = 1; id <= 2 * (uint64_t)c->engines[1]->config.txn_record_max; id++)
        orphan(c->engines[1], id); // the real one is forgotten, too
    assert_int_equal(alb_map_count(reflect->records), 0);
    assert_int_equal(alb_buddy_used(&reflect->staging.buddy), 0);
    assert_true(alb_buddy_used(&reflect->table.buddy) <= c->engines[1]->config.txn_record_max * 128);
}

// Whoever asks is answered, however full the memory for transactions, and no memory is taken, nothing forgotten for it.
static void command__is_answered_where_there_is_no_memory_for_transactions(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    alb_txn_in_finish(record(engine, orphan(engine, 77), 1), ALB_TXN_ABORTED, ALB_TXN_BUSY, c->pair->now);
    reflect_pair_fill_staging(c);
    uint64_t gets = c->pair->hosts[1].gets;
    const struct alb_csa_txn command = {.command = ALB_CSA_TXN_ASK, .id = {.initiator = 77, .number = 1}};
    alb_reflect_in_command(c->csa[1], &command, c->pair->now);
    assert_int_equal(c->pair->hosts[1].gets, gets);
    assert_int_equal(alb_map_count(engine->reflect->records), 1);
    assert_false(alb_list_is_empty(&c->csa[1]->reflect_in->due));
}

// What an initiator has passed it says with the next question.
static void command__drops_what_its_initiator_has_passed(void **state)
{
    struct csa_pair *c = *state;
    struct alb_engine *engine = c->engines[1];
    struct alb_txn_initiator *initiator = orphan(engine, 77);
    for (uint64_t number = 1; number <= 3; number++)
        alb_txn_in_finish(record(engine, initiator, number), ALB_TXN_ABORTED, ALB_TXN_BUSY, c->pair->now);
    struct alb_csa_txn command = {.command = ALB_CSA_TXN_ASK, .id = {.initiator = 77, .number = 3}};
    alb_reflect_in_command(c->csa[1], &command, c->pair->now); // 0 says nothing
    assert_int_equal(alb_map_count(engine->reflect->records), 3);
    command.low_water = 3;
    alb_reflect_in_command(c->csa[1], &command, c->pair->now);
    assert_int_equal(alb_map_count(engine->reflect->records), 1);
    assert_non_null(alb_txn_in_find(engine, &(struct alb_txn_id){77, 3}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFLECT_PAIR_TEST(initiators__beyond_the_limit_forget_the_oldest),
        REFLECT_PAIR_TEST(initiators__with_something_open_stay),
        REFLECT_PAIR_TEST(initiators__are_connected_once),
        REFLECT_PAIR_TEST(records__of_one_number_once),
        REFLECT_PAIR_TEST(records__no_room_for_another),
        REFLECT_PAIR_TEST(records__are_not_among_what_is_staged),
        REFLECT_PAIR_TEST(records__of_the_connected_and_silent_give_way),
        REFLECT_PAIR_TEST(records__that_were_taken_when_they_were_passed_give_way),
        REFLECT_PAIR_TEST(low_water__drops_what_has_ended),
        REFLECT_PAIR_TEST(memory__all_comes_back),
        REFLECT_PAIR_TEST(command__is_answered_where_there_is_no_memory_for_transactions),
        REFLECT_PAIR_TEST(command__drops_what_its_initiator_has_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
