// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

enum {
    LINE = 64,
};

static void use_csa(struct alb_engine_config *config)
{
    alb_engine_config_transport(config, "csa");
}

static void check(const struct alb_engine *engine)
{
    struct alb_engine_hot hot;
    alb_engine_hot(engine, &hot);
    assert_in_range(hot.line_count, 1, ALB_COUNT(hot.lines));
    for (uint32_t i = 0; i < hot.line_count; i++)
        assert_int_equal((uintptr_t)hot.lines[i] % LINE, 0);
    assert_null(hot.paths);
}

static void hot__whole_lines(void **state)
{
    struct fixture *f = *state;
    check(f->engine);
}

static void hot__csa_that_has_heard_nobody(void **state)
{
    struct fixture *f = fixture_new_with(use_csa);
    check(f->engine);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hot__whole_lines, fixture_setup, fixture_teardown),
        cmocka_unit_test(hot__csa_that_has_heard_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
