// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

enum { ROUNDS = 500 };

static uint32_t create_and_destroy(struct fixture *f)
{
    struct alb_qp *qp = fixture_qp(f, ALB_QPT_RC);
    uint32_t number = alb_qp_number(qp);
    assert_int_equal(alb_qp_destroy(qp), 0);
    return number;
}

static void alb_qpn_pick__none_of_those_that_went_last(void **state)
{
    struct fixture *f = *state;
    uint32_t resting = f->engine->config.qp_max / 4, numbers[ROUNDS];
    for (uint32_t i = 0; i < ROUNDS; i++) {
        numbers[i] = create_and_destroy(f);
        for (uint32_t j = i < resting ? 0 : i - resting; j < i; j++)
            assert_int_not_equal(numbers[i], numbers[j]);
    }
}

static void alb_qpn_pick__the_longest_rested_where_all_rest(void **state)
{
    struct fixture *f = *state;
    uint32_t count = f->engine->config.qp_max - ALB_QPN_RESERVED;
    struct alb_qp *qps[64];
    uint32_t gone[3];
    for (uint32_t i = 0; i < count; i++)
        qps[i] = fixture_qp(f, ALB_QPT_RC);
    for (uint32_t i = 0; i < 3; i++) {
        gone[i] = alb_qp_number(qps[i]);
        assert_int_equal(alb_qp_destroy(qps[i]), 0);
    }
    for (uint32_t i = 0; i < 3; i++) {
        qps[i] = fixture_qp(f, ALB_QPT_RC);
        assert_int_equal(alb_qp_number(qps[i]), gone[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(alb_qp_destroy(qps[i]), 0);
}

// A number that is asked for explicitly is not delayed.
static void alb_qpn_pick__a_resting_one_that_is_wanted(void **state)
{
    struct fixture *f = *state;
    uint32_t number = create_and_destroy(f);
    assert_int_equal(alb_qpn_pick(f->engine, number), number & 0xffff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alb_qpn_pick__none_of_those_that_went_last, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(alb_qpn_pick__the_longest_rested_where_all_rest, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(alb_qpn_pick__a_resting_one_that_is_wanted, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
