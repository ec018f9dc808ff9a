// SPDX-License-Identifier: BSD-2-Clause
// What the name of a congestion policy sets in an engine's configuration.
#include "engine/tests/fixture.h"

static struct alb_engine_config with(const char *text)
{
    struct alb_engine_config config;
    alb_engine_config_default(&config);
    alb_engine_config_transport(&config, "csa");
    config.congestion = text;
    return config;
}

static void congestion_set__window(void **state)
{
    struct alb_engine_config config = with("window:start=8KiB,min=1KiB,max=1MiB,rtt_target=200us");
    assert_true(alb_congestion_set(&config));
    assert_int_equal(config.window_start_bytes, 8 << 10);
    assert_int_equal(config.window_min_bytes, 1 << 10);
    assert_int_equal(config.window_max_bytes, 1 << 20);
    assert_int_equal(config.rtt_target_ns, 200 * ALB_NS_PER_US);
}

static void congestion_set__dcqcn(void **state)
{
    struct alb_engine_config config =
        with("dcqcn:rate_max=1Gb/s,rate_min=8Mb/s,additive=16Mb/s,hyper=80Mb/s,gain_log2=4,recovery=3,counter=1M,"
             "increase=1ms,alpha=2ms,cnp=10us,burst=1ms");
    assert_true(alb_congestion_set(&config));
    const struct alb_dcqcn_config *dcqcn = &config.dcqcn;
    assert_int_equal(dcqcn->rate_max_bytes_per_s, 125000000);
    assert_int_equal(dcqcn->rate_min_bytes_per_s, 1000000);
    assert_int_equal(dcqcn->additive_bytes_per_s, 2000000);
    assert_int_equal(dcqcn->hyper_bytes_per_s, 10000000);
    assert_int_equal(dcqcn->gain_log2, 4);
    assert_int_equal(dcqcn->recovery_steps, 3);
    assert_int_equal(dcqcn->counter_bytes, 1 << 20);
    assert_int_equal(dcqcn->increase_ns, ALB_NS_PER_MS);
    assert_int_equal(dcqcn->alpha_ns, 2 * ALB_NS_PER_MS);
    assert_int_equal(dcqcn->cnp_ns, 10 * ALB_NS_PER_US);
    assert_int_equal(dcqcn->burst_ns, ALB_NS_PER_MS);
}

static void congestion_set__fixed(void **state)
{
    static const struct {
        const char *text;
        uint32_t bytes;
    } cases[] = {{"fixed:window=1KiB", 1 << 10}, {"fixed:window=64MiB", 64 << 20}};
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        struct alb_engine_config config = with(cases[i].text);
        struct alb_congestion congestion;
        assert_true(alb_congestion_set(&config));
        alb_congestion_find(cases[i].text)->init(&congestion, &config);
        assert_int_equal(congestion.window_bytes, cases[i].bytes);
    }
}

static void congestion_set__refuses_what_a_policy_has_not(void **state)
{
    static const char *const texts[] = {
        "window:start=0", // nothing could leave
        "none:window=1M", // it has no parameters
        "fixed:max=1M",   // of another policy
        "cubic",
    };
    for (size_t i = 0; i < ALB_COUNT(texts); i++) {
        struct alb_engine_config config = with(texts[i]);
        assert_false(alb_congestion_set(&config));
        assert_false(alb_engine_policy_is_known("csa", ALB_POLICY_CONGESTION, texts[i]));
        assert_false(alb_engine_policy_is_valid("csa", ALB_POLICY_CONGESTION, texts[i]));
    }
}

// It would agree with other values of what is not given.
static void congestion_agrees__only_as_a_whole(void **state)
{
    static const char *const texts[] = {
        "window:max=32KiB",       // it begins with more
        "window:min=128KiB",      // and with less
        "dcqcn:rate_max=100Mb/s", // one step is more
        "dcqcn:rate_min=100Gb/s", // more than the greatest
    };
    for (size_t i = 0; i < ALB_COUNT(texts); i++) {
        struct alb_engine_config config = with(texts[i]);
        assert_true(alb_congestion_set(&config));
        assert_false(alb_congestion_agrees(&config));
        assert_true(alb_engine_policy_is_known("csa", ALB_POLICY_CONGESTION, texts[i]));
        assert_false(alb_engine_policy_is_valid("csa", ALB_POLICY_CONGESTION, texts[i]));
    }
}

static void with_parameters(struct alb_engine_config *config)
{
    alb_engine_config_transport(config, "csa");
    config->congestion = "fixed:window=96KiB";
}

static void create__with_parameters(void **state)
{
    struct fixture *f = fixture_new_with(with_parameters);
    struct alb_engine_config config = f->engine->config;
    struct alb_engine *engine;
    assert_int_equal(config.window_max_bytes, 96 << 10);
    config.congestion = "fixed:window=none";
    assert_int_equal(alb_engine_create(&config, &engine), EINVAL);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(congestion_set__window),
        cmocka_unit_test(congestion_set__dcqcn),
        cmocka_unit_test(congestion_set__fixed),
        cmocka_unit_test(congestion_set__refuses_what_a_policy_has_not),
        cmocka_unit_test(congestion_agrees__only_as_a_whole),
        cmocka_unit_test(create__with_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
