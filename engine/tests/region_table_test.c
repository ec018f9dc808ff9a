// SPDX-License-Identifier: BSD-2-Clause
#include "engine/region_table.h"

#include "engine/tests/fixture.h"

static struct alb_region regions[64];

static void start(struct fixture *f)
{
    for (size_t i = 0; i < ALB_COUNT(regions); i++)
        regions[i] = (struct alb_region){.engine = f->engine};
}

static void region_table_find__every_key_up_to_the_limit(void **state)
{
    struct fixture *f = *state;
    struct alb_region extra = {.engine = f->engine};
    start(f);
    for (size_t i = 0; i < ALB_COUNT(regions); i++)
        assert_int_equal(alb_region_table_add(f->engine, &regions[i]), 0);
    assert_int_equal(alb_region_table_add(f->engine, &extra), ENOMEM);
    for (size_t i = 0; i < ALB_COUNT(regions); i++) {
        assert_ptr_equal(alb_region_table_find(f->engine, regions[i].key), &regions[i]);
        assert_int_not_equal(regions[i].key >> 8, 0);
        for (uint32_t bit = 1; bit; bit <<= 1) // any other bit is another key
            assert_ptr_not_equal(alb_region_table_find(f->engine, regions[i].key ^ bit), &regions[i]);
    }
    for (size_t i = 0; i < ALB_COUNT(regions); i++) {
        alb_region_table_remove(&regions[i]);
        assert_null(alb_region_table_find(f->engine, regions[i].key));
    }
    assert_int_equal(f->engine->region_count, 0);
}

// In a table of one place every region follows another: no key of a predecessor's low byte comes at once.
static void region_table_add__low_byte_differs_from_the_one_before(void **state)
{
    struct fixture *f = *state;
    struct alb_engine small = {.config = f->engine->config, .rng = f->engine->rng};
    struct alb_region region = {.engine = &small};
    small.config.region_max = 1;
    assert_int_equal(alb_region_table_init(&small), 0);
    uint8_t last = 0;
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(alb_region_table_add(&small, &region), 0);
        if (i > 0)
            assert_int_not_equal((uint8_t)region.key, last);
        last = (uint8_t)region.key;
        alb_region_table_remove(&region);
    }
    alb_region_table_fini(&small);
}

static void region_table_init__without_memory(void **state)
{
    struct fixture *f = *state;
    for (uint32_t nth = 1; nth <= 2; nth++) {
        struct alb_engine other = {.config = f->engine->config};
        size_t held = f->bytes_held;
        f->refused_from = nth;
        assert_int_equal(alb_region_table_init(&other), ENOMEM);
        f->refused_from = 0;
        assert_int_equal(f->bytes_held, held);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(region_table_find__every_key_up_to_the_limit),
        FIXTURE_TEST(region_table_add__low_byte_differs_from_the_one_before),
        FIXTURE_TEST(region_table_init__without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
