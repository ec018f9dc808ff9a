// SPDX-License-Identifier: BSD-2-Clause
// A bounded search for broken promises, in as many seeds as a test may take; alb_search --seeds tries more. A failure
// names its seed, which does it again.
#include "sim/search.h"

#include "base/tests/test.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    SEEDS = TEST_SOME(3000),
    SEEDS_SHORT = TEST_SOME(3000),
    SEEDS_TWICE = 50,
};

static void keeps_every_promise(const char *transport, bool is_short, uint64_t seeds)
{
    const struct alb_search_options options = {.transport = transport, .is_short = is_short};
    struct alb_search_result result, sum = {0};
    for (uint64_t seed = 0; seed < seeds; seed++) {
        if (!alb_search_run(seed, &options, &result))
            fail_msg("seed %" PRIu64 ": %s", seed, result.failure);
        sum.requests += result.requests;
        sum.lost += result.lost;
        sum.retransmitted += result.retransmitted;
        sum.failed_qps += result.failed_qps;
    }
    // It has tried something.
    assert_true(sum.requests > seeds * (is_short ? 10 : 20));
    assert_true(sum.lost > (is_short ? seeds / 4 : seeds));
    assert_true(sum.retransmitted > (is_short ? seeds / 4 : seeds));
    assert_true(sum.failed_qps > seeds / 10);
}

static void run__keeps_every_promise(void **state)
{
    keeps_every_promise("rc", false, SEEDS);
    keeps_every_promise("rc", true, SEEDS_SHORT);
}

static void run__csa_keeps_every_promise(void **state)
{
    keeps_every_promise("csa", false, SEEDS);
    keeps_every_promise("csa", true, SEEDS_SHORT);
}

// They did break one, each for a reason of its own.
static void run__csa_seeds_that_found_something(void **state)
{
    static const uint64_t seeds[] = {24186,   28472,   31117,   100669,  200658,  322178,  1001793, 1002753,
                                     1016907, 1020425, 1029467, 1043840, 1088532, 2007849, 2008563, 7710344};
    const struct alb_search_options options = {.transport = "csa"};
    struct alb_search_result result;
    for (uint32_t i = 0; i < ALB_COUNT(seeds); i++)
        if (!alb_search_run(seeds[i], &options, &result))
            fail_msg("seed %" PRIu64 ": %s", seeds[i], result.failure);
    const struct alb_search_options short_options = {.transport = "csa", .is_short = true};
    if (!alb_search_run(131135, &short_options, &result))
        fail_msg("short seed 131135: %s", result.failure);
}

static void same_seed_same_trace(const char *transport, bool is_short)
{
    const struct alb_search_options options = {.transport = transport, .is_short = is_short};
    struct alb_search_result first, second;
    uint64_t before = 0;
    for (uint64_t seed = 0; seed < SEEDS_TWICE; seed++) {
        assert_true(alb_search_run(seed, &options, &first));
        void *shift = malloc(1000 * seed + 1); // memory lies elsewhere the second time
        assert_true(alb_search_run(seed, &options, &second));
        free(shift);
        assert_true(first.trace_hash == second.trace_hash);
        assert_true(first.virtual_ns == second.virtual_ns);
        assert_true(first.trace_hash != before);
        before = first.trace_hash;
    }
}

static void run__same_seed_same_trace(void **state)
{
    same_seed_same_trace("rc", false);
    same_seed_same_trace("csa", false);
    same_seed_same_trace("csa", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run__keeps_every_promise),
        cmocka_unit_test(run__csa_keeps_every_promise),
        cmocka_unit_test(run__csa_seeds_that_found_something),
        cmocka_unit_test(run__same_seed_same_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
