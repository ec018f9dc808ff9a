// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

static enum alb_build_result build_nothing(struct alb_source *source, struct alb_tx_builder *builder, alb_time now)
{
    return ALB_BUILD_IDLE;
}

// 1 GB/s: a byte is a nanosecond, and the bucket holds a million bytes.
static void gigabyte(struct alb_engine_config *config)
{
    config->unreliable_bytes_per_s = 1000000000;
}

static int setup(void **state)
{
    *state = fixture_new_with(gigabyte);
    return 0;
}

static void pacer_permits__until_in_debt(void **state)
{
    struct fixture *f = *state;
    assert_true(alb_pacer_permits(f->engine, 1000));
    alb_pacer_charge(f->engine, 999999);
    assert_true(alb_pacer_permits(f->engine, 1000));
    alb_pacer_charge(f->engine, 50001);
    assert_false(alb_pacer_permits(f->engine, 1000));
    assert_false(alb_pacer_permits(f->engine, 51000));
    assert_true(alb_pacer_permits(f->engine, 51001));
}

static void pacer_permits__bucket_has_a_bottom(void **state)
{
    struct fixture *f = *state;
    assert_true(alb_pacer_permits(f->engine, ALB_NS_PER_S * 1000));
    assert_int_equal(f->engine->pacer.credit_bytes, 1000000);
    assert_true(alb_pacer_permits(f->engine, ALB_TIME_NEVER - 1));
    assert_int_equal(f->engine->pacer.credit_bytes, 1000000);
}

// Asked again and again, it must not lose what is left of a byte each time.
static void pacer_permits__keeps_the_rate_however_often_it_is_asked(void **state)
{
    struct fixture *f = *state;
    f->engine->pacer.bytes_per_s = 3000000; // a byte every 333.3 ns
    f->engine->pacer.credit_bytes = 0;
    f->engine->pacer.last = 0;
    for (alb_time now = 0; now <= ALB_NS_PER_MS; now += 100)
        alb_pacer_permits(f->engine, now);
    assert_in_range(f->engine->pacer.credit_bytes, 2990, 3000);
}

static void pacer_permits__rate_zero_is_no_limit(void **state)
{
    struct fixture *f = *state;
    f->engine->pacer.bytes_per_s = 0;
    alb_pacer_charge(f->engine, 1u << 30);
    assert_true(alb_pacer_permits(f->engine, 0));
}

static void pacer_wait__wakes_when_the_debt_is_paid(void **state)
{
    struct fixture *f = *state;
    struct alb_source a, b;
    alb_source_init(&a, build_nothing);
    alb_source_init(&b, build_nothing);
    assert_true(alb_pacer_permits(f->engine, 500));
    alb_pacer_charge(f->engine, 1010000);
    alb_pacer_wait(f->engine, &a, 500);
    alb_pacer_wait(f->engine, &b, 600);
    assert_int_equal(alb_engine_deadline(f->engine), 10501);
    alb_engine_tick(f->engine, 10500);
    assert_false(a.is_ready);
    alb_engine_tick(f->engine, 10501);
    assert_true(a.is_ready); // one byte of credit: one may try
    assert_false(b.is_ready);
    assert_int_equal(alb_engine_deadline(f->engine), 10501 + 4096);
    alb_engine_tick(f->engine, 10501 + 4096);
    assert_true(b.is_ready);
    assert_int_equal(alb_engine_deadline(f->engine), ALB_TIME_NEVER);
    alb_scheduler_remove(&a);
    alb_scheduler_remove(&b);
}

static void pacer_wait__a_late_tick_wakes_many(void **state)
{
    struct fixture *f = *state;
    struct alb_source sources[4];
    assert_true(alb_pacer_permits(f->engine, 0));
    alb_pacer_charge(f->engine, 1000000);
    for (int i = 0; i < 4; i++) {
        alb_source_init(&sources[i], build_nothing);
        alb_pacer_wait(f->engine, &sources[i], 0);
    }
    alb_engine_tick(f->engine, 2 * 4096 + 1);
    assert_true(sources[2].is_ready);
    assert_false(sources[3].is_ready);
    for (int i = 0; i < 4; i++)
        alb_scheduler_remove(&sources[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pacer_permits__until_in_debt, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(pacer_permits__bucket_has_a_bottom, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(pacer_permits__keeps_the_rate_however_often_it_is_asked, setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(pacer_permits__rate_zero_is_no_limit, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(pacer_wait__wakes_when_the_debt_is_paid, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(pacer_wait__a_late_tick_wakes_many, setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
