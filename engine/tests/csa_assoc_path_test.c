// SPDX-License-Identifier: BSD-2-Clause
// The table of incoming paths.
#include "engine/tests/csa_pair.h"

static void path_in__grows_to_the_number_that_came(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    struct alb_assoc_live *live = csa_pair_live(c, 1);
    assert_int_equal(live->paths_in_count, 1);
    uint32_t received = live->paths_in[0].received;
    struct alb_path_in *fifth = alb_assoc_path_in(live, 5);
    assert_ptr_equal(fifth, &live->paths_in[5]);
    assert_int_equal(live->paths_in_count, 8);
    assert_int_equal(live->paths_in[0].received, received);
    assert_int_equal(live->paths_in[5].received, 0);
    assert_non_null(alb_assoc_path_in(live, ALB_PATHS_MAX - 1));
    assert_null(alb_assoc_path_in(live, ALB_PATHS_MAX));
    assert_null(alb_assoc_path_in(live, 255));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(path_in__grows_to_the_number_that_came),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
