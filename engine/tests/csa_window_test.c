// SPDX-License-Identifier: BSD-2-Clause
// What may be in flight.
#include "engine/tests/csa_pair.h"

static void window__lets_one_segment_go_in_any_case(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    live->congestion.window_bytes = 1000;
    assert_true(alb_assoc_permits(live, 50000));
    alb_assoc_charge(live, 400);
    assert_true(alb_assoc_permits(live, 600));
    assert_false(alb_assoc_permits(live, 601));
    live->credit_bytes = 500; // of window and credit the smaller one
    assert_true(alb_assoc_permits(live, 100));
    assert_false(alb_assoc_permits(live, 101));
    live->credit_bytes = 0;
    assert_false(alb_assoc_permits(live, 1));
    alb_assoc_release(live, 400);
    assert_true(alb_assoc_permits(live, 50000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(window__lets_one_segment_go_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
