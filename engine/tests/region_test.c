// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

static uint8_t memory[4096];

static int create(struct fixture *f, void *address, uint64_t length, uint64_t iova, uint32_t access,
                  struct alb_region **mr)
{
    return alb_mr_create(f->pd, address, length, iova, access, mr);
}

static void mr_create__refuses(void **state)
{
    struct fixture *f = *state;
    struct alb_region *mr = NULL;
    assert_int_equal(create(f, memory, 1, 0, ALB_ACCESS_REMOTE_WRITE, &mr), EINVAL);
    assert_int_equal(create(f, memory, 1, 0, ALB_ACCESS_REMOTE_ATOMIC, &mr), EINVAL);
    assert_int_equal(create(f, memory, 1, 0, 1 << 6, &mr), EINVAL);
    assert_int_equal(create(f, memory, 1, 0, 1u << 31, &mr), EINVAL);
    assert_int_equal(create(f, memory, UINT64_MAX, 0, 0, &mr), EINVAL);
    assert_int_equal(create(f, memory, 2, UINT64_MAX, 0, &mr), EINVAL);
    assert_int_equal(create(f, NULL, 1, 0, 0, &mr), EINVAL);
    assert_null(mr);
    assert_int_equal(f->pd->refs, 0);
    f->refused_from = 1;
    assert_int_equal(create(f, memory, 1, 0, 0, &mr), ENOMEM);
    f->refused_from = 0;
    size_t held = f->bytes_held;
    f->engine->config.region_max = 0;
    assert_int_equal(create(f, memory, 1, 0, 0, &mr), ENOMEM);
    f->engine->config.region_max = 64;
    assert_int_equal(f->bytes_held, held);
    assert_int_equal(f->pd->refs, 0);
}

static void mr_create__holds_its_domain(void **state)
{
    struct fixture *f = *state;
    struct alb_region *mr = fixture_region(f, memory, 1);
    assert_int_equal(alb_pd_destroy(f->pd), EBUSY);
    assert_int_equal(alb_mw_destroy(mr), EINVAL);
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_int_equal(f->pd->refs, 0);
}

static enum alb_access_result local(struct fixture *f, uint32_t key, uint64_t va, uint64_t length, uint32_t access)
{
    uint8_t *host;
    enum alb_access_result result = alb_region_local(f->engine, f->pd, key, va, length, access, &host);
    assert_true(result == ALB_ACCESS_OK || host == NULL);
    return result;
}

static void region_local__bounds(void **state)
{
    struct fixture *f = *state;
    struct alb_region *mr;
    uint8_t *host;
    assert_int_equal(create(f, memory + 64, 100, 0x10000, 0, &mr), 0);
    uint32_t key = alb_region_key(mr);
    assert_int_equal(alb_region_local(f->engine, f->pd, key, 0x10000, 100, 0, &host), ALB_ACCESS_OK);
    assert_ptr_equal(host, memory + 64);
    assert_int_equal(alb_region_local(f->engine, f->pd, key, 0x10000 + 99, 1, 0, &host), ALB_ACCESS_OK);
    assert_ptr_equal(host, memory + 163);
    assert_int_equal(local(f, key, 0x10000, 101, 0), ALB_ACCESS_BAD_BOUNDS);
    assert_int_equal(local(f, key, 0xffff, 2, 0), ALB_ACCESS_BAD_BOUNDS);
    assert_int_equal(local(f, key, 0x10000 + 100, 1, 0), ALB_ACCESS_BAD_BOUNDS);
    assert_int_equal(local(f, key, 0x10000 + 50, UINT64_MAX, 0), ALB_ACCESS_BAD_BOUNDS);
    assert_int_equal(local(f, key, UINT64_MAX, 2, 0), ALB_ACCESS_BAD_BOUNDS);
    assert_int_equal(local(f, key, 0x10000, UINT64_MAX, 0), ALB_ACCESS_BAD_BOUNDS);
}

static void region_local__key_domain_and_rights(void **state)
{
    struct fixture *f = *state;
    struct alb_region *mr = fixture_region_with(f, memory, 100, 0);
    struct alb_pd *other;
    uint8_t *host;
    uintptr_t va = (uintptr_t)memory;
    uint32_t key = alb_region_key(mr);
    assert_int_equal(alb_pd_create(f->engine, &other), 0);
    assert_int_equal(local(f, key, va, 1, 0), ALB_ACCESS_OK);
    assert_int_equal(local(f, key, va, 1, ALB_ACCESS_LOCAL_WRITE), ALB_ACCESS_BAD_RIGHTS);
    assert_int_equal(local(f, key + 1, va, 1, 0), ALB_ACCESS_BAD_KEY);
    assert_int_equal(local(f, key + 1, va, 0, ALB_ACCESS_LOCAL_WRITE), ALB_ACCESS_OK); // nothing needs no key
    assert_int_equal(alb_region_local(f->engine, other, key, va, 1, 0, &host), ALB_ACCESS_BAD_KEY);
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_int_equal(local(f, key, va, 1, 0), ALB_ACCESS_BAD_KEY);
    assert_int_equal(alb_pd_destroy(other), 0);
}

static void region_local__a_window_is_no_local_key(void **state)
{
    struct fixture *f = *state;
    struct alb_region *mw;
    struct alb_region *mr = fixture_region_with(f, memory, 100, FIXTURE_ACCESS_ALL | ALB_ACCESS_MW_BIND);
    struct alb_qp *qp = fixture_qp(f, ALB_QPT_RC);
    assert_int_equal(alb_mw_create(f->pd, ALB_MW_TYPE_1, &mw), 0);
    struct alb_mw_bind bind = {
        .mw = mw, .mr = mr, .addr = (uintptr_t)memory, .length = 100, .access = ALB_ACCESS_REMOTE_READ};
    assert_int_equal(alb_mw_bind(qp, &bind), ALB_WC_SUCCESS);
    assert_int_equal(local(f, alb_region_key(mw), (uintptr_t)memory, 1, 0), ALB_ACCESS_BAD_KEY);
}

static void region_remote__rights_one_by_one(void **state)
{
    struct fixture *f = *state;
    struct alb_qp *qp = fixture_qp(f, ALB_QPT_RC);
    static const uint32_t rights[] = {ALB_ACCESS_REMOTE_WRITE, ALB_ACCESS_REMOTE_READ, ALB_ACCESS_REMOTE_ATOMIC};
    uint8_t *host;
    uintptr_t va = (uintptr_t)memory;
    for (size_t i = 0; i < ALB_COUNT(rights); i++) {
        struct alb_region *mr = fixture_region_with(f, memory, 100, ALB_ACCESS_LOCAL_WRITE | rights[i]);
        uint32_t key = alb_region_key(mr);
        for (size_t k = 0; k < ALB_COUNT(rights); k++)
            assert_int_equal(fixture_find_remote(qp, key, va, 8, rights[k], &host),
                             i == k ? ALB_ACCESS_OK : ALB_ACCESS_BAD_RIGHTS);
        assert_int_equal(fixture_find_remote(qp, key, va + 93, 8, rights[i], &host), ALB_ACCESS_BAD_BOUNDS);
        assert_int_equal(fixture_find_remote(qp, key ^ 0x100, va, 8, rights[i], &host), ALB_ACCESS_BAD_KEY);
        assert_int_equal(fixture_find_remote(qp, key ^ 0x100, va, 0, rights[i], &host), ALB_ACCESS_OK);
    }
}

static void region_remote__another_domain(void **state)
{
    struct fixture *f = *state;
    struct alb_qp *qp = fixture_qp(f, ALB_QPT_RC);
    struct alb_pd *other;
    struct alb_region *mr;
    uint8_t *host;
    assert_int_equal(alb_pd_create(f->engine, &other), 0);
    assert_int_equal(alb_mr_create(other, memory, 8, 0, FIXTURE_ACCESS_ALL, &mr), 0);
    assert_int_equal(fixture_find_remote(qp, alb_region_key(mr), 0, 8, ALB_ACCESS_REMOTE_READ, &host),
                     ALB_ACCESS_BAD_KEY);
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_int_equal(alb_pd_destroy(other), 0);
}

static void mr_create__zero_based(void **state)
{
    struct fixture *f = *state;
    struct alb_region *mr;
    uint8_t *host;
    assert_int_equal(create(f, memory + 8, 100, (uintptr_t)memory, ALB_ACCESS_ZERO_BASED, &mr), 0);
    assert_int_equal(alb_region_local(f->engine, f->pd, alb_region_key(mr), 5, 1, 0, &host), ALB_ACCESS_OK);
    assert_ptr_equal(host, memory + 13);
}

static void mr_change__each_part(void **state)
{
    struct fixture *f = *state;
    struct alb_pd *other;
    uint8_t *host;
    uintptr_t va = (uintptr_t)memory;
    struct alb_region *mr = fixture_region_with(f, memory, 100, 0);
    assert_int_equal(alb_pd_create(f->engine, &other), 0);

    uint32_t old = alb_region_key(mr);
    assert_int_equal(alb_mr_change(mr, NULL, NULL, 0, 0, ALB_ACCESS_LOCAL_WRITE), 0);
    uint32_t key = alb_region_key(mr);
    assert_int_equal(key, old);
    assert_int_equal(local(f, key, va, 100, ALB_ACCESS_LOCAL_WRITE), ALB_ACCESS_OK);

    assert_int_equal(alb_mr_change(mr, NULL, memory + 200, 50, 7, UINT32_MAX), 0);
    assert_int_equal(alb_region_local(f->engine, f->pd, key, 7, 50, ALB_ACCESS_LOCAL_WRITE, &host), ALB_ACCESS_OK);
    assert_ptr_equal(host, memory + 200);
    assert_int_equal(local(f, key, 7, 51, 0), ALB_ACCESS_BAD_BOUNDS);

    assert_int_equal(alb_mr_change(mr, other, NULL, 0, 0, UINT32_MAX), 0);
    assert_int_equal(local(f, key, 7, 1, 0), ALB_ACCESS_BAD_KEY);
    assert_int_equal(alb_region_local(f->engine, other, key, 7, 50, 0, &host), ALB_ACCESS_OK);
    assert_int_equal(f->pd->refs, 0);
    assert_int_equal(alb_pd_destroy(other), EBUSY);

    assert_int_equal(alb_mr_change(mr, f->pd, memory, UINT64_MAX, 0, UINT32_MAX), EINVAL);
    assert_int_equal(alb_mr_change(mr, f->pd, NULL, 0, 0, ALB_ACCESS_REMOTE_WRITE), EINVAL);
    assert_int_equal(alb_region_key(mr), key);
    assert_ptr_equal(mr->pd, other);
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_int_equal(alb_pd_destroy(other), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(mr_create__refuses),
        FIXTURE_TEST(mr_create__holds_its_domain),
        FIXTURE_TEST(region_local__bounds),
        FIXTURE_TEST(region_local__key_domain_and_rights),
        FIXTURE_TEST(region_local__a_window_is_no_local_key),
        FIXTURE_TEST(region_remote__rights_one_by_one),
        FIXTURE_TEST(region_remote__another_domain),
        FIXTURE_TEST(mr_create__zero_based),
        FIXTURE_TEST(mr_change__each_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
