// SPDX-License-Identifier: BSD-2-Clause
// Posting what has a number: all of it or nothing.
#include "engine/tests/reflect_pair.h"

static int stage(struct csa_pair *c, const struct reflect_made *made)
{
    uint64_t number;
    return alb_qp_txn_stage(c->qps[0], &made->wr, &number);
}

static void stage__refuses_what_makes_no_sense(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 8);
    made.wr.level = ALB_LEVEL_VISIBLE;
    assert_int_equal(stage(c, &made), EINVAL);
    made.wr.level = ALB_LEVEL_COMMITTED;
    made.wr.flags = ALB_SEND_INLINE;
    assert_int_equal(stage(c, &made), EINVAL);
    made.wr.flags = 0;
    made.wr.write_count = 0;
    assert_int_equal(stage(c, &made), EINVAL);
    made.wr.write_count = ALB_TXN_WRITES_MAX + 1;
    assert_int_equal(stage(c, &made), EINVAL);
    made.wr.write_count = 1;
    made.wr.compare_count = ALB_TXN_COMPARES_MAX + 1;
    assert_int_equal(stage(c, &made), EINVAL);
    made.wr.compare_count = 0;
    made.writes[0].sge_count = 99;
    assert_int_equal(stage(c, &made), EINVAL);
    made.writes[0].sge_count = 1;
    made.sge[0].lkey ^= 0x100;
    assert_int_equal(stage(c, &made), EINVAL);
    made.sge[0].lkey ^= 0x100;
    made.sge[0].addr += PAIR_MEMORY_BYTES;
    assert_int_equal(stage(c, &made), EINVAL);
    made.sge[0].addr -= PAIR_MEMORY_BYTES;
    assert_int_equal(c->qps[0]->sq.staged, 0); // nothing is left of any of them
    assert_int_equal(stage(c, &made), 0);
    uint64_t number;
    assert_int_equal(alb_qp_txn_stage(c->qps[1], &made.wr, &number), EINVAL); // not enabled
}

static void stage__needs_room_for_all_of_it(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 8);
    reflect_pair_add(c, &made, 64, 8);
    reflect_pair_add(c, &made, 128, 8);
    for (uint32_t i = 0; i < 4; i++) // four places each, of sixteen
        assert_int_equal(stage(c, &made), 0);
    made.wr.write_count = 1;
    assert_int_equal(stage(c, &made), ENOMEM);
    alb_qp_send_abort(c->qps[0]);
    assert_int_equal(c->csa[0]->reflect_out->staged, 1);
    assert_int_equal(stage(c, &made), 0);
    alb_qp_send_commit(c->qps[0]);
    alb_engine_bell_ring(c->qps[0]);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
}

static void stage__only_the_end_is_reported(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 8);
    reflect_pair_add(c, &made, 64, 8);
    reflect_pair_post(c, &made);
    reflect_pair_make(c, &made, 2, 1000, 8);
    made.wr.flags = 0;
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    csa_pair_expect_none(c, 0);
}

// Its bytes are taken when it is staged, and need no key and no place in the list of pieces.
static void stage__inline_data(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    uint8_t bytes[64];
    struct alb_sge pieces[8];
    reflect_pair_make(c, &made, 1, 0, 8);
    reflect_pair_add(c, &made, 4096, sizeof(bytes));
    memcpy(bytes, c->pair->hosts[0].memory + 4096, sizeof(bytes));
    for (uint32_t i = 0; i < ALB_COUNT(pieces); i++)
        pieces[i] = (struct alb_sge){.addr = (uintptr_t)&bytes[8 * i], .length = 8};
    made.writes[1].sge = pieces;
    made.writes[1].sge_count = ALB_COUNT(pieces);
    assert_int_equal(stage(c, &made), EINVAL); // too many pieces, and no key
    made.writes[1].is_inline = true;
    pieces[7].length = 9;
    assert_int_equal(stage(c, &made), EINVAL); // too long
    pieces[7].length = 8;
    assert_int_equal(c->qps[0]->sq.staged, 0);
    reflect_pair_post(c, &made);
    memset(bytes, 0, sizeof(bytes));
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_true(reflect_pair_is_exposed(c, 0, 8));
    assert_true(reflect_pair_is_exposed(c, 4096, sizeof(bytes)));
}

static void fence__waits_for_a_transaction(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 8);
    made.wr.hold = true;
    uint64_t number = reflect_pair_post(c, &made);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED | ALB_SEND_FENCE, 4096, 64),
                     0);
    pair_settle(c->pair);
    assert_false(reflect_pair_is_exposed(c, 4096, 64));
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, true, c->pair->now), 0);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    reflect_pair_expect(c, 2, ALB_TXN_OK);
    assert_true(reflect_pair_is_exposed(c, 4096, 64));
}

static void reconcile__refuses_its_own_and_nonsense(void **state)
{
    struct csa_pair *c = *state;
    struct alb_txn_token token = {.id = {.initiator = c->csa[0]->reflect_out->initiator, .number = 1}};
    assert_int_equal(alb_qp_txn_reconcile_stage(c->qps[0], 1, 0, &token, ALB_TXN_ASK), EINVAL);
    token.id.initiator++;
    assert_int_equal(alb_qp_txn_reconcile_stage(c->qps[0], 1, 0, &token, (enum alb_txn_decision)7), EINVAL);
    assert_int_equal(alb_qp_txn_reconcile_stage(c->qps[0], 1, ALB_SEND_FENCE, &token, ALB_TXN_ASK), EINVAL);
    for (uint32_t i = 0; i < REFLECT_PAIR_IN_FLIGHT; i++)
        assert_int_equal(alb_qp_txn_reconcile_stage(c->qps[0], 1, 0, &token, ALB_TXN_ASK), 0);
    assert_int_equal(alb_qp_txn_reconcile_stage(c->qps[0], 1, 0, &token, ALB_TXN_ASK), ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFLECT_PAIR_TEST(stage__refuses_what_makes_no_sense),
        REFLECT_PAIR_TEST(stage__needs_room_for_all_of_it),
        REFLECT_PAIR_TEST(stage__only_the_end_is_reported),
        REFLECT_PAIR_TEST(stage__inline_data),
        REFLECT_PAIR_TEST(fence__waits_for_a_transaction),
        REFLECT_PAIR_TEST(reconcile__refuses_its_own_and_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
