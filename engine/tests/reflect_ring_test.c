// SPDX-License-Identifier: BSD-2-Clause
// What an initiator keeps: enabled once, asked by number, forgotten when its place is taken again.
#include "engine/tests/reflect_pair.h"

static void enable__limits(void **state)
{
    struct csa_pair *c = *state;
    assert_int_equal(alb_qp_txn_enable(c->qps[0], 4), EINVAL); // it is
    assert_int_equal(alb_qp_txn_enable(c->qps[1], 0), EINVAL);
    assert_int_equal(alb_qp_txn_enable(c->qps[1], c->engines[1]->config.txn_out_max + 1), EINVAL);
    assert_int_equal(alb_qp_txn_enable(c->qps[1], 5), 0);
    assert_int_equal(c->csa[1]->reflect_out->capacity, 8);
    struct alb_qp *uc = pair_qp(c->pair, 0, ALB_QPT_UC);
    assert_int_equal(alb_qp_txn_enable(uc, 4), EOPNOTSUPP);
}

static void enable__without_memory(void **state)
{
    struct csa_pair *c = *state;
    c->pair->hosts[1].refused_from = 1;
    assert_int_equal(alb_qp_txn_enable(c->qps[1], 4), ENOMEM);
    c->pair->hosts[1].refused_from = 0;
    assert_int_equal(alb_qp_txn_enable(c->qps[1], 4), 0);
}

static void query__until_the_place_is_another_s(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_txn_status status;
    reflect_pair_make(c, &made, 1, 0, 8);
    uint64_t first = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    for (uint32_t i = 1; i < REFLECT_PAIR_IN_FLIGHT; i++) {
        assert_int_equal(alb_qp_txn_query(c->qps[0], first, &status), 0);
        assert_int_equal(status.token.id.number, first);
        assert_int_equal(status.state, ALB_TXN_COMMITTED);
        reflect_pair_make(c, &made, 1, 0, 8);
        reflect_pair_post(c, &made);
        pair_settle(c->pair);
    }
    reflect_pair_make(c, &made, 1, 0, 8);
    reflect_pair_post(c, &made);
    assert_int_equal(alb_qp_txn_query(c->qps[0], first, &status), ENOENT);
    assert_int_equal(alb_qp_txn_query(c->qps[0], 0, &status), ENOENT);
    assert_int_equal(alb_qp_txn_query(c->qps[1], 1, &status), EINVAL);
}

// Places that were never used have that number.
static void find__nobody_has_number_0(void **state)
{
    struct csa_pair *c = *state;
    struct alb_txn_status status;
    assert_null(alb_txn_out_find(c->csa[0]->reflect_out, 0));
    assert_int_equal(alb_qp_txn_query(c->qps[0], 0, &status), ENOENT);
}

static void low_water__stays_before_what_has_not_ended(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 8);
    made.wr.hold = true;
    uint64_t held = reflect_pair_post(c, &made);
    for (uint32_t i = 0; i < 3; i++) {
        reflect_pair_make(c, &made, 2, 1000 * (i + 1), 8);
        reflect_pair_post(c, &made);
    }
    pair_settle(c->pair);
    assert_int_equal(c->csa[0]->reflect_out->ended, held);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], held, true, c->pair->now), 0);
    pair_settle(c->pair);
    assert_int_equal(c->csa[0]->reflect_out->ended, held + 4);
}

static void reset__is_another_initiator(void **state)
{
    struct csa_pair *c = *state;
    struct alb_reflect_out *out = c->csa[0]->reflect_out;
    uint64_t initiator = out->initiator;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 8);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    const struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_true(out->initiator != initiator && out->initiator != 0);
    assert_int_equal(out->staged, 1);
    struct alb_txn_status status;
    assert_int_equal(alb_qp_txn_query(c->qps[0], 1, &status), ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFLECT_PAIR_TEST(enable__limits),
        REFLECT_PAIR_TEST(enable__without_memory),
        REFLECT_PAIR_TEST(query__until_the_place_is_another_s),
        REFLECT_PAIR_TEST(find__nobody_has_number_0),
        REFLECT_PAIR_TEST(low_water__stays_before_what_has_not_ended),
        REFLECT_PAIR_TEST(reset__is_another_initiator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
