// SPDX-License-Identifier: BSD-2-Clause
// A parser that sets what is named and within its bounds.
#include "engine/policy_text.h"

#include "base/tests/test.h"

struct target {
    uint64_t wait_ns, bytes_per_s, times;
    uint32_t steps, window_bytes;
};

#define AT(member) offsetof(struct target, member)

static const struct alb_parameter all[] = {
    {"a", "wait", "1us..1s", AT(wait_ns), ALB_PARAMETER_TIME, 1000, ALB_NS_PER_S},
    {"a", "rate", "8b/s..", AT(bytes_per_s), ALB_PARAMETER_RATE, 1, UINT64_MAX},
    {"a", "times", "1..9", AT(times), ALB_PARAMETER_COUNT, 1, 9},
    {"b", "steps", "0..4294967295", AT(steps), ALB_PARAMETER_COUNT_32, 0, UINT32_MAX},
    {"b", "window", "1..1GiB", AT(window_bytes), ALB_PARAMETER_BYTES_32, 1, 1 << 30},
};

static const struct alb_parameters parameters = {all, ALB_COUNT(all)};

static void policy_text_is__the_name_alone_or_before_a_colon(void **state)
{
    assert_true(alb_policy_text_is("a", "a"));
    assert_true(alb_policy_text_is("a:wait=1us", "a"));
    assert_false(alb_policy_text_is("ab", "a"));
    assert_false(alb_policy_text_is("a", "ab"));
    assert_false(alb_policy_text_is("", "a"));
}

static void policy_text_set__each_kind(void **state)
{
    struct target target = {0};
    assert_true(alb_policy_text_set("a:wait=5us,times=0x9,rate=80kb/s", "a", &parameters, &target));
    assert_int_equal(target.wait_ns, 5000);
    assert_int_equal(target.bytes_per_s, 10000);
    assert_int_equal(target.times, 9);
    assert_true(alb_policy_text_set("b:window=4KiB,steps=4294967295", "b", &parameters, &target));
    assert_int_equal(target.steps, UINT32_MAX);
    assert_int_equal(target.window_bytes, 4096);
}

static void policy_text_set__leaves_what_is_not_named(void **state)
{
    struct target target = {.wait_ns = 3, .times = 4};
    assert_true(alb_policy_text_set("a", "a", &parameters, &target));
    assert_true(alb_policy_text_set("a:times=5", "a", &parameters, &target));
    assert_int_equal(target.wait_ns, 3);
    assert_int_equal(target.times, 5);
}

static void policy_text_set__refuses(void **state)
{
    static const char *const texts[] = {
        "a:",
        "a:wait",
        "a:wait=",
        "a:wait=5",            // no unit
        "a:wait=1ns",          // too short
        "a:wait=2s",           // too long
        "a:wait=5us,",         // nothing behind the comma
        "a:wait=5us,wait=5us", // twice
        "a:times=0",
        "a:times=10",
        "a:times=-1",
        "a:rate=10",   // no unit
        "a:rate=1b/s", // less than a byte
        "a:steps=1",   // of another policy
        "a:=1",
        "a:waaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaait=1us",
        "a:times=000000000000000000000000000000000000000001",
    };
    for (size_t i = 0; i < ALB_COUNT(texts); i++) {
        struct target target = {0};
        assert_false(alb_policy_text_set(texts[i], "a", &parameters, &target));
    }
}

static void policy_text_parameter__of_that_policy(void **state)
{
    const char *bounds;
    assert_string_equal(alb_policy_text_parameter("b", &parameters, 1, &bounds), "window");
    assert_string_equal(bounds, "1..1GiB");
    assert_null(alb_policy_text_parameter("b", &parameters, 2, &bounds));
    assert_null(alb_policy_text_parameter("c", &parameters, 0, &bounds));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy_text_is__the_name_alone_or_before_a_colon),
        cmocka_unit_test(policy_text_set__each_kind),
        cmocka_unit_test(policy_text_set__leaves_what_is_not_named),
        cmocka_unit_test(policy_text_set__refuses),
        cmocka_unit_test(policy_text_parameter__of_that_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
