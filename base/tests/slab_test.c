// SPDX-License-Identifier: BSD-2-Clause
// Objects that do not overlap, pages that come and go with them, and a visit that finds each of them once.
#include "base/prng.h"
#include "base/slab.h"
#include "base/tests/test.h"

#include <stdlib.h>
#include <string.h>

enum {
    ARENA = 64 << 10,
    PAGE = 4096,
    OBJECT = 420, // nine in a page
    PLACES = 9,
};

struct fixture {
    struct alb_buddy buddy;
    struct alb_slab slab;
    void *arena, *bookkeeping;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->arena = aligned_alloc(64, ARENA);
    f->bookkeeping = calloc(1, alb_buddy_bookkeeping_bytes(ARENA));
    assert_true(f->arena && f->bookkeeping);
    alb_buddy_init(&f->buddy, f->arena, ARENA, f->bookkeeping);
    alb_slab_init(&f->slab, &f->buddy, OBJECT, PAGE);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    free(f->arena);
    free(f->bookkeeping);
    free(f);
    return 0;
}
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static void get__takes_a_page_when_there_is_no_place(void **state)
{
    struct fixture *f = *state;
    void *objects[PLACES + 1];
    for (uint32_t i = 0; i <= PLACES; i++) {
        objects[i] = alb_slab_get(&f->slab);
        assert_non_null(objects[i]);
        assert_int_equal((uintptr_t)objects[i] % 8, 0);
        assert_int_equal(alb_buddy_used(&f->buddy), i < PLACES ? PAGE : 2 * PAGE);
    }
    assert_int_equal(f->slab.count, PLACES + 1);
    alb_slab_put(&f->slab, objects[3]);
    assert_ptr_equal(alb_slab_get(&f->slab), objects[3]);
    for (uint32_t i = 0; i <= PLACES; i++)
        alb_slab_put(&f->slab, objects[i]);
    assert_int_equal(alb_buddy_used(&f->buddy), 0);
    assert_int_equal(f->slab.count, 0);
}

static void get__nothing_from_an_empty_pool(void **state)
{
    struct fixture *f = *state;
    uint32_t count = 0;
    while (alb_slab_get(&f->slab))
        count++;
    assert_int_equal(count, ARENA / PAGE * PLACES);
    assert_int_equal(f->slab.count, count);
}

static void get__nothing_where_a_page_holds_none(void **state)
{
    struct fixture *f = *state;
    struct alb_slab slab;
    alb_slab_init(&slab, &f->buddy, OBJECT, 256);
    assert_null(alb_slab_get(&slab));
    assert_int_equal(alb_slab_cost_bytes(&slab), 0);
    assert_int_equal(alb_buddy_used(&f->buddy), 0);
}

static void cost__is_a_share_of_the_page(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(alb_slab_cost_bytes(&f->slab), (PAGE + PLACES - 1) / PLACES);
}

struct visits {
    uint32_t count, dropped;
};

// Each object holds how often it was visited; those with an odd first word are dropped.
static bool visit(void *object, void *context)
{
    struct visits *visits = context;
    uint32_t *words = object;
    words[1]++;
    visits->count++;
    visits->dropped += words[0] & 1;
    return words[0] & 1;
}

static void sift__visits_each_once_and_drops_some(void **state)
{
    struct fixture *f = *state;
    struct visits visits = {0};
    uint32_t *objects[5 * PLACES + 2];
    for (uint32_t i = 0; i < ALB_COUNT(objects); i++) {
        objects[i] = alb_slab_get(&f->slab);
        objects[i][0] = i / PLACES == 2 || i % 3 == 1; // all of one page, some of the others
        objects[i][1] = 0;
    }
    alb_slab_sift(&f->slab, visit, &visits);
    assert_int_equal(visits.count, ALB_COUNT(objects));
    assert_int_equal(f->slab.count, ALB_COUNT(objects) - visits.dropped);
    assert_int_equal(alb_buddy_used(&f->buddy), 5 * PAGE);
    visits = (struct visits){0};
    alb_slab_sift(&f->slab, visit, &visits);
    assert_int_equal(visits.count, f->slab.count);
    assert_int_equal(visits.dropped, 0);
    for (uint32_t i = 0; i < ALB_COUNT(objects); i++)
        if (!(i / PLACES == 2 || i % 3 == 1))
            assert_int_equal(objects[i][1], 2);
}

static void objects__do_not_overlap(void **state)
{
    struct fixture *f = *state;
    struct alb_prng prng;
    uint8_t *objects[60] = {0};
    alb_prng_init(&prng, 7);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t k = alb_prng_below(&prng, ALB_COUNT(objects));
        if (!objects[k]) {
            objects[k] = alb_slab_get(&f->slab);
            memset(objects[k], (int)k, OBJECT);
            continue;
        }
        for (uint32_t b = 0; b < OBJECT; b++)
            assert_int_equal(objects[k][b], k);
        alb_slab_put(&f->slab, objects[k]);
        objects[k] = NULL;
    }
    for (uint32_t k = 0; k < ALB_COUNT(objects); k++)
        if (objects[k])
            alb_slab_put(&f->slab, objects[k]);
    assert_int_equal(alb_buddy_used(&f->buddy), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(get__takes_a_page_when_there_is_no_place), TEST(get__nothing_from_an_empty_pool),
        TEST(get__nothing_where_a_page_holds_none),     TEST(cost__is_a_share_of_the_page),
        TEST(sift__visits_each_once_and_drops_some),    TEST(objects__do_not_overlap),
    };
    return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
