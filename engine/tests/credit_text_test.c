// SPDX-License-Identifier: BSD-2-Clause
// What the name of a credit policy sets in an engine's configuration.
#include "engine/credit.h"
#include "engine/tests/fixture.h"

static struct alb_engine_config with(const char *text)
{
    struct alb_engine_config config;
    alb_engine_config_default(&config);
    alb_engine_config_transport(&config, "csa");
    config.credit = text;
    return config;
}

static void credit_set__end_to_end(void **state)
{
    struct alb_engine_config config = with("end-to-end:budget=1MiB,min=2KiB,interval=300us");
    assert_true(alb_credit_set(&config));
    assert_int_equal(config.receive_budget_bytes, 1 << 20);
    assert_int_equal(config.grant_min_bytes, 2 << 10);
    assert_int_equal(config.credit_interval_ns, 300 * ALB_NS_PER_US);
    assert_int_equal(config.credit_aging_bytes_per_s, 1000000000);
}

static void credit_set__shortest(void **state)
{
    struct alb_engine_config config = with("shortest:aging=64Gb/s,budget=0");
    config.receive_budget_bytes = 1 << 20;
    assert_true(alb_credit_set(&config));
    assert_int_equal(config.credit_aging_bytes_per_s, 8000000000);
    assert_int_equal(config.receive_budget_bytes, 0);
}

static void credit_set__without_parameters_as_it_was(void **state)
{
    static const char *const texts[] = {"end-to-end", "shortest", "off"};
    for (size_t i = 0; i < ALB_COUNT(texts); i++) {
        struct alb_engine_config config = with(texts[i]), before = config;
        assert_true(alb_credit_set(&config));
        assert_memory_equal(&config, &before, sizeof(config));
    }
}

static void credit_set__refuses(void **state)
{
    static const char *const texts[] = {
        "end-to-end:aging=1Gb/s", // of another policy
        "shortest:aging=0",       // nothing would ever be old
        "shortest:aging=9Tb/s",
        "end-to-end:interval=0s",
        "end-to-end:interval=5s",
        "end-to-end:interval=1", // of what?
        "end-to-end:budget=2GiB",
        "end-to-end:min=0",
        "off:budget=1MiB", // it has no parameters
        "longest",
    };
    for (size_t i = 0; i < ALB_COUNT(texts); i++) {
        struct alb_engine_config config = with(texts[i]);
        assert_false(alb_credit_set(&config));
        assert_false(alb_engine_policy_is_valid("csa", ALB_POLICY_CREDIT, texts[i]));
    }
}

static void with_parameters(struct alb_engine_config *config)
{
    alb_engine_config_transport(config, "csa");
    config->credit = "shortest:aging=64Gb/s";
}

static void create__with_parameters(void **state)
{
    struct fixture *f = fixture_new_with(with_parameters);
    struct alb_engine_config config = f->engine->config;
    struct alb_engine *engine;
    assert_int_equal(config.credit_aging_bytes_per_s, 8000000000);
    config.credit = "shortest:aging=old";
    assert_int_equal(alb_engine_create(&config, &engine), EINVAL);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credit_set__end_to_end),
        cmocka_unit_test(credit_set__shortest),
        cmocka_unit_test(credit_set__without_parameters_as_it_was),
        cmocka_unit_test(credit_set__refuses),
        cmocka_unit_test(create__with_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
