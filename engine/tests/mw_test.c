// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

static uint8_t memory[1024];

struct scene {
    struct fixture *f;
    struct alb_qp *qp;
    struct alb_region *mr, *mw;
    struct alb_mw_bind bind; // bytes 100 to 199, read and write
};

static struct scene scene(void **state, enum alb_mw_type type)
{
    struct scene s = {.f = *state};
    s.qp = fixture_qp(s.f, ALB_QPT_RC);
    s.mr = fixture_region_with(s.f, memory, sizeof(memory), ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_MW_BIND);
    assert_int_equal(alb_mw_create(s.f->pd, type, &s.mw), 0);
    s.bind = (struct alb_mw_bind){
        .mw = s.mw,
        .mr = s.mr,
        .addr = (uintptr_t)memory + 100,
        .length = 100,
        .access = ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ,
        .rkey = type == ALB_MW_TYPE_2 ? alb_region_key(s.mw) ^ 0x55 : 0,
    };
    return s;
}

static enum alb_access_result use(struct alb_qp *qp, uint32_t key, uint64_t va, uint64_t length, uint32_t access)
{
    uint8_t *host;
    return fixture_find_remote(qp, key, va, length, access, &host);
}

static void mw_bind__opens_just_its_range(void **state)
{
    for (enum alb_mw_type type = ALB_MW_TYPE_1; type <= ALB_MW_TYPE_2; type++) {
        struct scene s = scene(state, type);
        uintptr_t va = (uintptr_t)memory;
        uint32_t unbound = alb_region_key(s.mw);
        assert_int_equal(use(s.qp, unbound, va + 100, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_BAD_KEY);
        assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_SUCCESS);
        uint32_t key = alb_region_key(s.mw);
        assert_int_equal(key, type == ALB_MW_TYPE_1 ? (unbound & ~0xffu) | (uint8_t)(unbound + 1) : s.bind.rkey);
        assert_int_equal(use(s.qp, unbound, va + 100, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_BAD_KEY);
        assert_int_equal(use(s.qp, key, va + 100, 100, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_OK);
        assert_int_equal(use(s.qp, key, va + 100, 100, ALB_ACCESS_REMOTE_WRITE), ALB_ACCESS_OK);
        assert_int_equal(use(s.qp, key, va + 100, 8, ALB_ACCESS_REMOTE_ATOMIC), ALB_ACCESS_BAD_RIGHTS);
        assert_int_equal(use(s.qp, key, va + 99, 2, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_BAD_BOUNDS);
        assert_int_equal(use(s.qp, key, va + 100, 101, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_BAD_BOUNDS);
        // The region's own key gives a peer nothing, and its memory is what the window shows.
        assert_int_equal(use(s.qp, alb_region_key(s.mr), va + 100, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_BAD_RIGHTS);
        uint8_t *host;
        assert_int_equal(fixture_find_remote(s.qp, key, va + 150, 1, ALB_ACCESS_REMOTE_READ, &host), ALB_ACCESS_OK);
        assert_ptr_equal(host, memory + 150);
    }
}

static void mw_bind__region_is_busy_while_bound(void **state)
{
    struct scene s = scene(state, ALB_MW_TYPE_1);
    assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_SUCCESS);
    assert_int_equal(alb_mr_destroy(s.mr), EBUSY);
    assert_int_equal(alb_mr_change(s.mr, NULL, NULL, 0, 0, 0), EBUSY);
    assert_int_equal(alb_mr_destroy(s.mw), EINVAL);
    assert_int_equal(alb_mw_destroy(s.mw), 0);
    assert_int_equal(alb_mr_destroy(s.mr), 0);
}

static void mw_bind__type_1_again_and_away(void **state)
{
    struct scene s = scene(state, ALB_MW_TYPE_1);
    uintptr_t va = (uintptr_t)memory;
    assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_SUCCESS);
    uint32_t first = alb_region_key(s.mw);
    s.bind.addr = va + 500;
    assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_SUCCESS);
    uint32_t second = alb_region_key(s.mw);
    assert_int_not_equal(second, first);
    assert_int_equal(s.mr->window_count, 1);
    assert_int_equal(use(s.qp, first, va + 100, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_BAD_KEY);
    assert_int_equal(use(s.qp, second, va + 500, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_OK);
    struct alb_mw_bind away = {.mw = s.mw};
    assert_int_equal(alb_mw_bind(s.qp, &away), ALB_WC_SUCCESS);
    assert_int_equal(use(s.qp, second, va + 500, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_BAD_KEY);
    assert_int_equal(use(s.qp, alb_region_key(s.mw), va + 500, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_BAD_KEY);
    assert_int_equal(s.mr->window_count, 0);
    // The key that the door has promised is taken.
    s.bind.rkey = (alb_region_key(s.mw) & ~0xffu) | 0xab;
    assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_SUCCESS);
    assert_int_equal(alb_region_key(s.mw), s.bind.rkey);
}

static void mw_bind__type_1_serves_every_queue_pair_of_the_domain(void **state)
{
    struct scene s = scene(state, ALB_MW_TYPE_1);
    struct alb_qp *other = fixture_qp(s.f, ALB_QPT_RC);
    assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_SUCCESS);
    assert_int_equal(use(other, alb_region_key(s.mw), s.bind.addr, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_OK);
    // It cannot be invalidated by a work request.
    assert_int_equal(alb_region_invalidate_local(s.qp, alb_region_key(s.mw)), ALB_WC_MW_BIND_ERR);
    assert_false(alb_region_invalidate_remote(s.qp, alb_region_key(s.mw)));
}

static void mw_bind__type_2_belongs_to_its_queue_pair(void **state)
{
    struct scene s = scene(state, ALB_MW_TYPE_2);
    struct alb_qp *other = fixture_qp(s.f, ALB_QPT_RC);
    assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_SUCCESS);
    assert_int_equal(use(other, s.bind.rkey, s.bind.addr, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_BAD_KEY);
    assert_int_equal(alb_region_invalidate_local(other, s.bind.rkey), ALB_WC_MW_BIND_ERR);
    assert_false(alb_region_invalidate_remote(other, s.bind.rkey));
    assert_int_equal(use(s.qp, s.bind.rkey, s.bind.addr, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_OK);
    assert_int_equal(alb_qp_destroy(s.qp), 0);
    assert_int_equal(s.mr->window_count, 0);
    assert_int_equal(alb_mw_bind(other, &s.bind), ALB_WC_SUCCESS);
}

static void mw_bind__type_2_must_be_invalidated_before_it_is_bound_again(void **state)
{
    struct scene s = scene(state, ALB_MW_TYPE_2);
    assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_SUCCESS);
    struct alb_mw_bind again = s.bind;
    again.rkey ^= 3;
    assert_int_equal(alb_mw_bind(s.qp, &again), ALB_WC_MW_BIND_ERR);
    assert_int_equal(use(s.qp, s.bind.rkey, s.bind.addr, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_OK);
    assert_int_equal(alb_region_invalidate_local(s.qp, again.rkey), ALB_WC_MW_BIND_ERR);
    assert_int_equal(alb_region_invalidate_local(s.qp, s.bind.rkey), ALB_WC_SUCCESS);
    assert_int_equal(use(s.qp, s.bind.rkey, s.bind.addr, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_BAD_KEY);
    assert_int_equal(alb_region_invalidate_local(s.qp, s.bind.rkey), ALB_WC_MW_BIND_ERR);
    assert_int_equal(alb_mw_bind(s.qp, &again), ALB_WC_SUCCESS);
    assert_true(alb_region_invalidate_remote(s.qp, again.rkey));
    assert_false(alb_region_invalidate_remote(s.qp, again.rkey));
    assert_int_equal(s.mr->window_count, 0);
}

static void mw_bind__type_2_is_not_unbound_by_length_zero(void **state)
{
    struct scene s = scene(state, ALB_MW_TYPE_2);
    struct alb_mw_bind away = {.mw = s.mw, .mr = s.mr, .rkey = s.bind.rkey};
    assert_int_equal(alb_mw_bind(s.qp, &away), ALB_WC_MW_BIND_ERR);
    assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_SUCCESS);
    assert_int_equal(alb_mw_bind(s.qp, &away), ALB_WC_MW_BIND_ERR);
    assert_int_equal(use(s.qp, s.bind.rkey, s.bind.addr, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_OK);
}

static void mw_bind__zero_based(void **state)
{
    struct scene s = scene(state, ALB_MW_TYPE_2);
    uint8_t *host;
    s.bind.access |= ALB_ACCESS_ZERO_BASED;
    assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_SUCCESS);
    assert_int_equal(fixture_find_remote(s.qp, s.bind.rkey, 0, 100, ALB_ACCESS_REMOTE_WRITE, &host), ALB_ACCESS_OK);
    assert_ptr_equal(host, memory + 100);
    assert_int_equal(use(s.qp, s.bind.rkey, s.bind.addr, 1, ALB_ACCESS_REMOTE_WRITE), ALB_ACCESS_BAD_BOUNDS);
    s = scene(state, ALB_MW_TYPE_1);
    s.bind.access |= ALB_ACCESS_ZERO_BASED;
    assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_MW_BIND_ERR);
}

static void refuses(const struct scene *s, struct alb_mw_bind bind)
{
    assert_int_equal(alb_mw_bind(s->qp, &bind), ALB_WC_MW_BIND_ERR);
    assert_false(s->mw->is_valid);
    assert_int_equal(s->mr->window_count, 0);
}

static void mw_bind__refuses_what_the_region_does_not_give(void **state)
{
    for (enum alb_mw_type type = ALB_MW_TYPE_1; type <= ALB_MW_TYPE_2; type++) {
        struct scene s = scene(state, type);
        struct alb_mw_bind bad = s.bind;
        bad.mr = fixture_region_with(s.f, memory, sizeof(memory), ALB_ACCESS_LOCAL_WRITE); // no MW_BIND
        refuses(&s, bad);
        bad.mr = fixture_region_with(s.f, memory, sizeof(memory), ALB_ACCESS_MW_BIND); // no LOCAL_WRITE
        refuses(&s, bad);
        bad.access = ALB_ACCESS_REMOTE_ATOMIC;
        refuses(&s, bad);
        bad.mr = s.mw;
        refuses(&s, bad);
        bad = s.bind;
        bad.access |= ALB_ACCESS_LOCAL_WRITE;
        refuses(&s, bad);
        bad = s.bind;
        bad.addr = (uintptr_t)memory - 1;
        refuses(&s, bad);
        bad.addr = (uintptr_t)memory + sizeof(memory) - 99;
        refuses(&s, bad);
        bad.addr = s.bind.addr;
        bad.length = UINT64_MAX;
        refuses(&s, bad);
        bad = s.bind;
        bad.mw = s.mr;
        refuses(&s, bad);
        // Reading needs no local write.
        struct alb_mw_bind good = s.bind;
        good.mr = fixture_region_with(s.f, memory, sizeof(memory), ALB_ACCESS_MW_BIND);
        good.access = ALB_ACCESS_REMOTE_READ;
        assert_int_equal(alb_mw_bind(s.qp, &good), ALB_WC_SUCCESS);
    }
}

static void mw_bind__place_in_the_key(void **state)
{
    for (enum alb_mw_type type = ALB_MW_TYPE_1; type <= ALB_MW_TYPE_2; type++) {
        struct scene s = scene(state, type);
        uint32_t unbound = alb_region_key(s.mw);
        s.bind.rkey = ~unbound; // not the window's place
        if (type == ALB_MW_TYPE_1) {
            refuses(&s, s.bind);
            continue;
        }
        assert_int_equal(alb_mw_bind(s.qp, &s.bind), ALB_WC_SUCCESS);
        assert_int_equal(alb_region_key(s.mw), unbound ^ 0xff);
        assert_int_equal(use(s.qp, unbound ^ 0xff, s.bind.addr, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_OK);
        assert_int_equal(use(s.qp, s.bind.rkey, s.bind.addr, 1, ALB_ACCESS_REMOTE_READ), ALB_ACCESS_BAD_KEY);
    }
}

static void mw_bind__one_domain(void **state)
{
    struct scene s = scene(state, ALB_MW_TYPE_1);
    struct alb_pd *other;
    struct alb_region *mr, *mw;
    assert_int_equal(alb_pd_create(s.f->engine, &other), 0);
    assert_int_equal(alb_mr_create(other, memory, sizeof(memory), (uintptr_t)memory,
                                   ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_MW_BIND, &mr),
                     0);
    assert_int_equal(alb_mw_create(other, ALB_MW_TYPE_1, &mw), 0);
    struct alb_mw_bind bad = s.bind;
    bad.mr = mr;
    refuses(&s, bad);
    bad.mw = mw;
    refuses(&s, bad);
    assert_int_equal(alb_mw_destroy(mw), 0);
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_int_equal(alb_pd_destroy(other), 0);
}

static void mw_create__limits(void **state)
{
    struct fixture *f = *state;
    struct alb_region *mw;
    size_t held = f->bytes_held;
    assert_int_equal(alb_mw_create(f->pd, 3, &mw), EINVAL);
    f->refused_from = 1;
    assert_int_equal(alb_mw_create(f->pd, ALB_MW_TYPE_1, &mw), ENOMEM);
    f->refused_from = 0;
    f->engine->config.region_max = 0;
    assert_int_equal(alb_mw_create(f->pd, ALB_MW_TYPE_1, &mw), ENOMEM);
    f->engine->config.region_max = 64;
    assert_int_equal(f->bytes_held, held);
    assert_int_equal(f->pd->refs, 0);
}

static void region_invalidate__not_of_a_region(void **state)
{
    struct scene s = scene(state, ALB_MW_TYPE_2);
    assert_int_equal(alb_region_invalidate_local(s.qp, alb_region_key(s.mr)), ALB_WC_MW_BIND_ERR);
    assert_false(alb_region_invalidate_remote(s.qp, alb_region_key(s.mr)));
    assert_false(alb_region_invalidate_remote(s.qp, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(mw_bind__opens_just_its_range),
        FIXTURE_TEST(mw_bind__region_is_busy_while_bound),
        FIXTURE_TEST(mw_bind__type_1_again_and_away),
        FIXTURE_TEST(mw_bind__type_1_serves_every_queue_pair_of_the_domain),
        FIXTURE_TEST(mw_bind__type_2_belongs_to_its_queue_pair),
        FIXTURE_TEST(mw_bind__type_2_must_be_invalidated_before_it_is_bound_again),
        FIXTURE_TEST(mw_bind__type_2_is_not_unbound_by_length_zero),
        FIXTURE_TEST(mw_bind__zero_based),
        FIXTURE_TEST(mw_bind__refuses_what_the_region_does_not_give),
        FIXTURE_TEST(mw_bind__place_in_the_key),
        FIXTURE_TEST(mw_bind__one_domain),
        FIXTURE_TEST(mw_create__limits),
        FIXTURE_TEST(region_invalidate__not_of_a_region),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
