// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

static void dealloc_pd__busy(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ibv_dealloc_pd(f->pd), EBUSY); // the fixture's region is in it
    struct ibv_pd *pd = ibv_alloc_pd(f->context);
    assert_non_null(pd);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_dealloc_pd(NULL), EINVAL);
    assert_null(ibv_alloc_pd(NULL));
}

static void parent_domain__stands_for_its_pd(void **state)
{
    struct fixture *f = *state;
    struct ibv_td_init_attr td_attr = {0};
    struct ibv_td *td = ibv_alloc_td(f->context, &td_attr);
    struct ibv_pd *pd = ibv_alloc_pd(f->context);
    struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};
    struct ibv_pd *parent = ibv_alloc_parent_domain(f->context, &attr);
    assert_non_null(parent);

    struct ibv_mr *mr = ibv_reg_mr(parent, f->memory, 100, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    assert_ptr_equal(mr->pd, parent);
    assert_int_equal(ibv_dealloc_td(td), EBUSY);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
    assert_int_equal(ibv_dealloc_td(td), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void *no_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
    return NULL;
}

static void parent_domain__refused(void **state)
{
    struct fixture *f = *state;
    struct ibv_parent_domain_init_attr attr = {.pd = NULL};
    assert_null(ibv_alloc_parent_domain(f->context, &attr));
    assert_int_equal(errno, EINVAL);
    attr = (struct ibv_parent_domain_init_attr){
        .pd = f->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS, .alloc = no_alloc};
    assert_null(ibv_alloc_parent_domain(f->context, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
    attr = (struct ibv_parent_domain_init_attr){.pd = f->pd};
    struct ibv_pd *parent = ibv_alloc_parent_domain(f->context, &attr);
    attr.pd = parent; // not of another parent domain
    assert_null(ibv_alloc_parent_domain(f->context, &attr));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
    struct ibv_td_init_attr td_attr = {.comp_mask = 1};
    assert_null(ibv_alloc_td(f->context, &td_attr));
    assert_int_equal(errno, EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(dealloc_pd__busy),
        FIXTURE_TEST(parent_domain__stands_for_its_pd),
        FIXTURE_TEST(parent_domain__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
