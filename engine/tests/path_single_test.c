// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_path.h"

#include "base/tests/test.h"

#include <stdlib.h>

static void single__keeps_every_flow_on_one_path(void **state)
{
    assert_int_equal(alb_path_single.choose(0), 0);
    assert_int_equal(alb_path_single.choose(0x12345678), 0);
    assert_int_equal(alb_path_single.choose(UINT32_MAX), 0);
}

static void single__flows_of_an_association_spread(void **state)
{
    struct alb_paths_out *paths = calloc(1, alb_paths_out_bytes(4));
    uint32_t seen = 0;
    alb_paths_out_init(paths, 4, 0);
    for (uint32_t hash = 0; hash < 16; hash++) {
        uint16_t path = alb_paths_choose(paths, &alb_path_single, hash, 1000, 0);
        seen |= 1u << path;
        for (alb_time now = 0; now < 5; now++)
            assert_int_equal(alb_paths_choose(paths, &alb_path_single, hash, 1000, now), path);
    }
    assert_int_equal(seen, 15);
    free(paths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single__keeps_every_flow_on_one_path),
        cmocka_unit_test(single__flows_of_an_association_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
