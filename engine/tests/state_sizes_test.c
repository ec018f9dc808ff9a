// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

#include <errno.h>

static void state_sizes__of_each_transport(void **state)
{
    static const char *const transports[] = {"rc", "csa"};
    for (size_t i = 0; i < ALB_COUNT(transports); i++) {
        struct alb_engine_config config;
        struct alb_engine_state_sizes sizes, more;
        alb_engine_config_default(&config);
        assert_int_equal(alb_engine_config_transport(&config, transports[i]), 0);
        assert_int_equal(alb_engine_state_sizes(&config, &sizes), 0);
        assert_in_range(sizes.association_idle_bytes, 1, sizes.association_resting_bytes);
        assert_in_range(sizes.association_resting_bytes, 1, sizes.association_active_bytes);
        assert_true(sizes.qp_bytes > 0);
        config.path_max = 64;
        assert_int_equal(alb_engine_state_sizes(&config, &more), 0);
        assert_int_equal(more.association_idle_bytes, sizes.association_idle_bytes);
        assert_true(more.association_active_bytes >= sizes.association_active_bytes);
    }
}

// What each queue pair has for transactions, begun or not.
static void state_sizes__queue_pairs_with_transactions_are_larger(void **state)
{
    struct alb_engine_config config;
    struct alb_engine_state_sizes with, without;
    alb_engine_config_default(&config);
    alb_engine_config_transport(&config, "csa");
    alb_engine_state_sizes(&config, &with);
    config.txn_staging_bytes = 0;
    alb_engine_state_sizes(&config, &without);
    assert_true(with.qp_bytes > without.qp_bytes);
}

// What the design promises.
static void state_sizes__associations_without_data_in_flight_are_small(void **state)
{
    struct alb_engine_config config;
    struct alb_engine_state_sizes sizes;
    alb_engine_config_default(&config);
    alb_engine_config_transport(&config, "csa");
    alb_engine_state_sizes(&config, &sizes);
    assert_in_range(sizes.association_idle_bytes, 1, 64);
    assert_in_range(sizes.association_resting_bytes, sizes.association_idle_bytes + 1, 512);
}

static void state_sizes__no_such_transport(void **state)
{
    struct alb_engine_config config;
    struct alb_engine_state_sizes sizes;
    alb_engine_config_default(&config);
    config.transport = "tcp";
    assert_int_equal(alb_engine_state_sizes(&config, &sizes), EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_sizes__of_each_transport),
        cmocka_unit_test(state_sizes__queue_pairs_with_transactions_are_larger),
        cmocka_unit_test(state_sizes__associations_without_data_in_flight_are_small),
        cmocka_unit_test(state_sizes__no_such_transport),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
