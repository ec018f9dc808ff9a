// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_path.h"

#include "base/tests/test.h"

#include <stdlib.h>

static void spray__takes_all_in_turn(void **state)
{
    struct alb_paths_out *paths = calloc(1, alb_paths_out_bytes(5));
    alb_paths_out_init(paths, 5, 0);
    uint16_t first = alb_paths_choose(paths, &alb_path_spray, 7, 1000, 0);
    for (unsigned i = 1; i < 20; i++)
        assert_int_equal(alb_paths_choose(paths, &alb_path_spray, 7, 1000, 0), (first + i) % 5);
    free(paths);
}

static void spray__is_not_for_rocev2(void **state)
{
    assert_null(alb_path_spray.choose);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spray__takes_all_in_turn),
        cmocka_unit_test(spray__is_not_for_rocev2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
