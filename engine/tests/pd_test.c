// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

static void pd_create__limits(void **state)
{
    struct fixture *f = *state;
    struct alb_pd *pd;
    f->engine->config.pd_max = 2; // the fixture has one
    assert_int_equal(alb_pd_create(f->engine, &pd), 0);
    struct alb_pd *third;
    assert_int_equal(alb_pd_create(f->engine, &third), ENOMEM);
    assert_int_equal(alb_pd_destroy(pd), 0);
    f->refused_from = 1;
    assert_int_equal(alb_pd_create(f->engine, &pd), ENOMEM);
    f->refused_from = 0;
    assert_int_equal(alb_pd_create(f->engine, &pd), 0);
    assert_int_equal(alb_pd_destroy(pd), 0);
}

static void pd_destroy__busy_while_anything_belongs_to_it(void **state)
{
    static uint8_t memory[8];
    struct fixture *f = *state;
    struct alb_av av = {.sl = 1};
    struct alb_ah *ah;
    struct alb_srq *srq;
    struct alb_region *region;
    assert_int_equal(alb_ah_create(f->pd, &av, &ah), 0);
    assert_int_equal(alb_pd_destroy(f->pd), EBUSY);
    assert_int_equal(alb_ah_destroy(ah), 0);
    assert_int_equal(alb_srq_create(f->pd, 1, 1, 0, NULL, &srq), 0);
    assert_int_equal(alb_pd_destroy(f->pd), EBUSY);
    assert_int_equal(alb_srq_destroy(srq), 0);
    region = fixture_region(f, memory, 8);
    assert_int_equal(alb_pd_destroy(f->pd), EBUSY);
    assert_int_equal(alb_mr_destroy(region), 0);
    assert_int_equal(alb_mw_create(f->pd, ALB_MW_TYPE_1, &region), 0);
    assert_int_equal(alb_pd_destroy(f->pd), EBUSY);
    assert_int_equal(alb_mw_destroy(region), 0);
    struct alb_qp *qp = fixture_qp(f, ALB_QPT_UD);
    assert_int_equal(alb_pd_destroy(f->pd), EBUSY);
    assert_int_equal(alb_qp_destroy(qp), 0);
    assert_int_equal(f->pd->refs, 0);
}

static void ah_create__keeps_the_vector(void **state)
{
    struct fixture *f = *state;
    struct alb_av av = {.peer = {{1, 2, 3}}, .traffic_class = 9, .flow_label = 77, .same_host = true};
    struct alb_ah *ah, *second;
    f->engine->config.ah_max = 1;
    assert_int_equal(alb_ah_create(f->pd, &av, &ah), 0);
    assert_memory_equal(&alb_ah_av(ah)->peer, &av.peer, sizeof(av.peer));
    assert_int_equal(alb_ah_av(ah)->traffic_class, 9);
    assert_int_equal(alb_ah_av(ah)->flow_label, 77);
    assert_true(alb_ah_av(ah)->same_host);
    assert_int_equal(alb_ah_create(f->pd, &av, &second), ENOMEM);
    assert_int_equal(alb_ah_destroy(ah), 0);
    f->refused_from = 1;
    assert_int_equal(alb_ah_create(f->pd, &av, &ah), ENOMEM);
    f->refused_from = 0;
    assert_int_equal(alb_ah_create(f->pd, &av, &ah), 0);
    assert_int_equal(alb_ah_destroy(ah), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(pd_create__limits),
        FIXTURE_TEST(pd_destroy__busy_while_anything_belongs_to_it),
        FIXTURE_TEST(ah_create__keeps_the_vector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
