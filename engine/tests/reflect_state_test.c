// SPDX-License-Identifier: BSD-2-Clause
// Names, and which moves there are.
#include "engine/tests/reflect_pair.h"

static void names__are_there_for_every_state_and_reason(void **state)
{
    for (uint32_t i = 0; i < ALB_TXN_STATES; i++)
        assert_string_not_equal(alb_txn_state_name((enum alb_txn_state)i), "?");
    assert_string_equal(alb_txn_state_name(ALB_TXN_STATES), "?");
    for (uint32_t i = 0; i < ALB_TXN_REASONS; i++)
        assert_string_not_equal(alb_txn_reason_text((enum alb_txn_reason)i), "an unknown reason");
    assert_string_equal(alb_txn_reason_text(ALB_TXN_REASONS), "an unknown reason");
}

static void ends__are_four(void **state)
{
    uint32_t ends = 0;
    for (uint32_t i = 0; i < ALB_TXN_STATES; i++)
        ends += alb_txn_state_is_end((enum alb_txn_state)i);
    assert_int_equal(ends, 4);
    assert_true(alb_txn_state_is_end(ALB_TXN_COMMITTED) && alb_txn_state_is_end(ALB_TXN_ABORTED));
    assert_false(alb_txn_state_is_end(ALB_TXN_IN_DOUBT)); // it can still be asked about
}

static void moves__leave_a_trace(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_trace_record record;
    static const enum alb_txn_state out[] = {ALB_TXN_TENTATIVE, ALB_TXN_REFLECTING, ALB_TXN_COMMITTED};
    static const enum alb_txn_state in[] = {ALB_TXN_REFLECTING, ALB_TXN_COMMITTED};
    reflect_pair_make(c, &made, 1, 0, 8);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    uint32_t seen = 0;
    while (alb_engine_trace(c->engines[0], &record))
        if (record.kind == ALB_TRACE_txn_out)
            assert_int_equal(record.b, out[seen++]);
    assert_int_equal(seen, ALB_COUNT(out));
    seen = 0;
    while (alb_engine_trace(c->engines[1], &record))
        if (record.kind == ALB_TRACE_txn_in)
            assert_int_equal(record.b, in[seen++]);
    assert_int_equal(seen, ALB_COUNT(in));
}

static void trace(struct alb_engine_config *config)
{
    config->trace_records = 256;
}

static int traced_setup(void **state)
{
    struct csa_pair *c = csa_pair_new(trace, NULL);
    *state = c;
    return alb_qp_txn_enable(c->qps[0], REFLECT_PAIR_IN_FLIGHT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names__are_there_for_every_state_and_reason),
        cmocka_unit_test(ends__are_four),
        cmocka_unit_test_setup_teardown(moves__leave_a_trace, traced_setup, csa_pair_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
