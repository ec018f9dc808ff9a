// SPDX-License-Identifier: BSD-2-Clause
// Which configurations make an engine.
#include "engine/tests/csa_pair.h"

static void engine__refuses_what_can_not_be(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_engine_config good = c->engines[0]->config;
    struct alb_engine_config bad[7];
    for (uint32_t i = 0; i < ALB_COUNT(bad); i++)
        bad[i] = good;
    bad[0].csa_window_segments = 2;
    bad[1].csa_window_segments = 100; // no power of two
    bad[2].csa_payload_bytes = 508;
    bad[3].csa_payload_bytes = 65508;
    bad[4].csa_payload_bytes = 1001;
    bad[5].path_max = ALB_PATHS_MAX + 1;
    bad[6].loss = "irn:few=many";
    for (uint32_t i = 0; i < ALB_COUNT(bad); i++) {
        struct alb_engine *engine;
        assert_int_equal(alb_engine_create(&bad[i], &engine), EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(engine__refuses_what_can_not_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
