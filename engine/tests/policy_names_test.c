// SPDX-License-Identifier: BSD-2-Clause
// What is listed can be configured.
#include "engine/tests/fixture.h"

#include <string.h>

static void policy_name__nobody_knows_others(void **state)
{
    assert_null(alb_engine_policy_name("tcp", ALB_POLICY_LOSS, 0));
    assert_null(alb_engine_policy_name("rc", ALB_POLICIES, 0));
    assert_null(alb_engine_policy_name("rc", ALB_POLICY_LOSS, 1));
    assert_null(alb_engine_policy_name("csa", ALB_POLICY_LOSS, 1000));
}

static void policy_name__default_first(void **state)
{
    static const char *const transports[] = {"rc", "csa"};
    for (size_t t = 0; t < ALB_COUNT(transports); t++) {
        struct alb_engine_config config;
        alb_engine_config_default(&config);
        assert_int_equal(alb_engine_config_transport(&config, transports[t]), 0);
        const char *const defaults[ALB_POLICIES] = {config.loss, config.congestion, config.path, config.credit};
        for (unsigned p = 0; p < ALB_POLICIES; p++)
            assert_string_equal(alb_engine_policy_name(transports[t], p, 0), defaults[p]);
    }
}

static void policy_name__each_once(void **state)
{
    for (unsigned p = 0; p < ALB_POLICIES; p++) {
        const char *name, *other;
        uint32_t count = 0;
        for (; (name = alb_engine_policy_name("csa", p, count)); count++)
            for (uint32_t i = 0; i < count && (other = alb_engine_policy_name("csa", p, i)); i++)
                assert_string_not_equal(name, other);
        assert_true(count >= 2);
    }
}

static void policy_is_valid__names_and_parameters(void **state)
{
    static const char *const transports[] = {"rc", "csa"};
    for (size_t t = 0; t < ALB_COUNT(transports); t++) {
        const char *name;
        for (unsigned p = 0; p < ALB_POLICIES; p++)
            for (uint32_t i = 0; (name = alb_engine_policy_name(transports[t], p, i)); i++)
                assert_true(alb_engine_policy_is_valid(transports[t], p, name));
    }
    assert_true(alb_engine_policy_is_valid("csa", ALB_POLICY_LOSS, "fixed:interval=200us"));
    assert_false(alb_engine_policy_is_valid("csa", ALB_POLICY_LOSS, "fixed:interval=soon"));
    assert_false(alb_engine_policy_is_valid("csa", ALB_POLICY_LOSS, "fixed:few=2"));
    assert_false(alb_engine_policy_is_valid("csa", ALB_POLICY_LOSS, "fix"));
    assert_false(alb_engine_policy_is_valid("csa", ALB_POLICY_PATH, "spray:few=2"));
    assert_false(alb_engine_policy_is_valid("rc", ALB_POLICY_LOSS, "irn"));
    assert_false(alb_engine_policy_is_valid("tcp", ALB_POLICY_PATH, "single"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy_name__nobody_knows_others),
        cmocka_unit_test(policy_name__default_first),
        cmocka_unit_test(policy_name__each_once),
        cmocka_unit_test(policy_is_valid__names_and_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
