// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

static void five_records(struct alb_engine_config *config)
{
    config->trace_records = 5;
}

static int setup(void **state)
{
    *state = fixture_new_with(five_records);
    return 0;
}

static void add(struct fixture *f, uint32_t i)
{
    alb_trace_add(f->engine, ALB_TRACE_ack, i, i + 1, i + 2, i + 3, i + 4);
}

static void expect(struct fixture *f, uint32_t i)
{
    struct alb_trace_record record;
    assert_true(alb_engine_trace(f->engine, &record));
    assert_int_equal(record.kind, ALB_TRACE_ack);
    assert_int_equal(record.qpn, i);
    assert_int_equal(record.psn, i + 1);
    assert_int_equal(record.a, i + 2);
    assert_int_equal(record.b, i + 3);
    assert_int_equal(record.at, i + 4);
}

static void trace_add__comes_out_in_order(void **state)
{
    struct fixture *f = *state;
    struct alb_trace_record record;
    uint32_t in = 0, out = 0;
    for (int round = 0; round < 7; round++) {
        for (int i = 0; i < 3; i++)
            add(f, in++);
        for (int i = 0; i < 3; i++)
            expect(f, out++);
        assert_false(alb_engine_trace(f->engine, &record));
    }
    assert_int_equal(alb_engine_trace_lost(f->engine), 0);
}

static void trace_add__full_ring_loses_the_newest(void **state)
{
    struct fixture *f = *state;
    struct alb_trace_record record;
    add(f, 0);
    expect(f, 0);
    for (uint32_t i = 1; i <= 8; i++)
        add(f, i);
    assert_int_equal(alb_engine_trace_lost(f->engine), 3);
    for (uint32_t i = 1; i <= 5; i++)
        expect(f, i);
    assert_false(alb_engine_trace(f->engine, &record));
    add(f, 9);
    expect(f, 9);
}

static void trace_add__switched_off(void **state)
{
    struct fixture *f = *state; // the default: no records
    struct alb_trace_record record;
    add(f, 1);
    assert_false(alb_engine_trace(f->engine, &record));
    assert_int_equal(alb_engine_trace_lost(f->engine), 0);
}

static void trace_init__without_memory(void **state)
{
    struct fixture *f = *state;
    struct alb_engine other = {.config = f->engine->config};
    other.config.trace_records = 10;
    f->refused_from = 1;
    assert_int_equal(alb_trace_init(&other), ENOMEM);
    f->refused_from = 0;
    alb_trace_fini(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(trace_add__comes_out_in_order, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(trace_add__full_ring_loses_the_newest, setup, fixture_teardown),
        FIXTURE_TEST(trace_add__switched_off),
        FIXTURE_TEST(trace_init__without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
