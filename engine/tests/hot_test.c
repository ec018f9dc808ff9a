// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

enum {
    LINES_MAX = 48,
    LINE = 64,
};

static void use_csa(struct alb_engine_config *config)
{
    alb_engine_config_transport(config, "csa");
}

static void check_lines(const struct alb_engine *engine, uint32_t lines_max)
{
    const void *lines[LINES_MAX + 1];
    lines[lines_max] = engine;
    uint32_t count = alb_engine_hot_lines(engine, lines, lines_max);
    assert_in_range(count, 1, lines_max);
    assert_ptr_equal(lines[lines_max], engine); // nothing is written behind the end
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal((uintptr_t)lines[i] % LINE, 0);
}

static void hot_lines__whole_lines_and_no_more_than_asked_for(void **state)
{
    struct fixture *f = *state;
    check_lines(f->engine, LINES_MAX);
    check_lines(f->engine, 1);
}

static void hot_lines__csa_that_has_heard_nobody(void **state)
{
    struct fixture *f = fixture_new_with(use_csa);
    check_lines(f->engine, LINES_MAX);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hot_lines__whole_lines_and_no_more_than_asked_for, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test(hot_lines__csa_that_has_heard_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
