// SPDX-License-Identifier: BSD-2-Clause
#include "engine/region_claim.h"

#include "base/prng.h"
#include "engine/inbound.h"
#include "engine/tests/fixture.h"

static _Alignas(64) uint8_t memory[4096];
static const char ann, bob; // owners

static uint64_t at(uint64_t offset)
{
    return (uintptr_t)memory + offset;
}

static bool claim(struct alb_region *mr, struct alb_claim *it, const void *owner, uint64_t offset, uint64_t length)
{
    alb_claim_init(it, owner, NULL);
    return alb_region_claim(mr, it, at(offset), length);
}

static void claim__refuses_another_owners_range(void **state)
{
    struct alb_region *mr = fixture_region(*state, memory, sizeof(memory));
    struct alb_claim first, other, last;
    assert_true(claim(mr, &first, &ann, 100, 50));
    assert_false(claim(mr, &other, &bob, 149, 1));
    assert_false(claim(mr, &other, &bob, 0, 101));
    assert_false(claim(mr, &other, &bob, 0, 4096));
    assert_false(claim(mr, &other, &bob, 120, 1));
    assert_null(other.region);
    assert_true(claim(mr, &other, &bob, 150, 10));
    assert_true(claim(mr, &last, &bob, 50, 50));
    alb_region_unclaim(&first);
    alb_region_unclaim(&first); // as often as one likes
    assert_true(claim(mr, &first, &bob, 100, 50));
    alb_region_unclaim(&first);
    alb_region_unclaim(&other);
    alb_region_unclaim(&last);
    assert_null(mr->claim_root);
}

static void claim__of_one_owner_may_overlap(void **state)
{
    struct alb_region *mr = fixture_region(*state, memory, sizeof(memory));
    struct alb_claim a, b, c, d;
    assert_true(claim(mr, &a, &ann, 100, 100));
    assert_true(claim(mr, &b, &ann, 100, 100));
    assert_true(claim(mr, &c, &ann, 150, 100));
    alb_region_unclaim(&a);
    assert_false(claim(mr, &d, &bob, 199, 1)); // the others stand
    alb_region_unclaim(&b);
    assert_true(claim(mr, &d, &bob, 100, 50));
    assert_true(alb_region_is_claimed(mr, at(249), 1));
    alb_region_unclaim(&c);
    assert_false(alb_region_is_claimed(mr, at(150), 1000));
    alb_region_unclaim(&d);
}

static void claim__of_nothing_overlaps_nothing(void **state)
{
    struct alb_region *mr = fixture_region(*state, memory, sizeof(memory));
    struct alb_claim a, b;
    assert_true(claim(mr, &a, &ann, 0, 100));
    assert_true(claim(mr, &b, &bob, 50, 0));
    assert_false(alb_region_is_claimed(mr, at(50), 0));
    alb_region_unclaim(&a);
    assert_false(alb_region_is_claimed(mr, at(0), 4096));
    alb_region_unclaim(&b);
}

// ---- against a model ------------------------------------------------------------------------------------------------

enum {
    CLAIMS = 200,
    PLACES = 512, // bytes of the region that take part
    ROUNDS = 40000,
};

struct model {
    const void *owner[PLACES]; // of each byte
    uint32_t count[PLACES];
    struct alb_claim claims[CLAIMS];
};

static bool model_has(const struct model *m, uint64_t first, uint64_t length, const void *spared)
{
    for (uint64_t i = first; i < first + length; i++)
        if (m->count[i] && m->owner[i] != spared)
            return true;
    return false;
}

static void model_change(struct model *m, const struct alb_claim *it, int32_t by)
{
    for (uint64_t i = it->first; i < it->past; i++) {
        m->owner[i] = it->owner;
        m->count[i] = (uint32_t)((int32_t)m->count[i] + by);
    }
}

static void claim__as_a_model_says(void **state)
{
    struct alb_region *mr = fixture_region(*state, memory, sizeof(memory));
    static const char owners[3];
    static struct model m;
    struct alb_prng prng;
    uint32_t made = 0, refused = 0;
    alb_prng_init(&prng, 11);
    for (int i = 0; i < CLAIMS; i++)
        alb_claim_init(&m.claims[i], &ann, NULL);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct alb_claim *it = &m.claims[alb_prng_below(&prng, CLAIMS)];
        uint64_t first = alb_prng_below(&prng, PLACES), length = alb_prng_below(&prng, 12);
        length = ALB_MIN(length, PLACES - first);
        assert_int_equal(alb_region_is_claimed(mr, at(first), length), model_has(&m, first, length, NULL));
        if (it->region) {
            model_change(&m, it, -1);
            alb_region_unclaim(it);
            continue;
        }
        const void *owner = &owners[alb_prng_below(&prng, 3)];
        bool is_free = !model_has(&m, first, length, owner);
        assert_int_equal(claim(mr, it, owner, first, length), is_free);
        if (is_free)
            model_change(&m, it, 1);
        made += is_free;
        refused += !is_free;
    }
    assert_true(made > 1000 && refused > 1000);
    for (int i = 0; i < CLAIMS; i++)
        alb_region_unclaim(&m.claims[i]);
    assert_null(mr->claim_root);
}

static uint32_t depth(const struct alb_claim *node)
{
    return node ? 1 + ALB_MAX(depth(node->left), depth(node->right)) : 0;
}

// In order, which is what a plain tree is worst at, and all at one place, which one of intervals is worst at.
static void claim__thousands_keep_the_tree_flat(void **state)
{
    enum { MANY = 16384 };
    static struct alb_claim many[MANY];
    static uint8_t large[8 * MANY];
    struct alb_region *mr = fixture_region(*state, large, sizeof(large));
    for (uint32_t same = 0; same < 2; same++) {
        for (uint64_t i = 0; i < MANY; i++) {
            alb_claim_init(&many[i], same ? &ann : (void *)&many[i], NULL);
            assert_true(alb_region_claim(mr, &many[i], (uintptr_t)large + (same ? 0 : 8 * i), 8));
        }
        assert_true(depth(mr->claim_root) < 80); // 2 ln n on the average
        for (uint64_t i = 0; i < MANY; i++)
            alb_region_unclaim(&many[i]);
        assert_null(mr->claim_root);
    }
}

// ---- windows --------------------------------------------------------------------------------------------------------

struct scene {
    struct alb_qp *qp;
    struct alb_region *mr, *mw;
};

// A window over bytes 1024 to 2047, whose addresses begin at 0.
static struct scene windowed(struct fixture *f)
{
    struct scene s = {
        .qp = fixture_qp(f, ALB_QPT_RC),
        .mr = fixture_region_with(f, memory, sizeof(memory), FIXTURE_ACCESS_ALL | ALB_ACCESS_MW_BIND),
    };
    assert_int_equal(alb_mw_create(f->pd, ALB_MW_TYPE_2, &s.mw), 0);
    struct alb_mw_bind bind = {s.mw, s.mr, at(1024), 1024, ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_ZERO_BASED, s.mw->key};
    assert_int_equal(alb_mw_bind(s.qp, &bind), ALB_WC_SUCCESS);
    return s;
}

static void claim__through_a_window_is_the_regions(void **state)
{
    struct scene s = windowed(*state);
    struct alb_claim a, b;
    alb_claim_init(&a, &ann, NULL);
    assert_true(alb_region_claim(s.mw, &a, 100, 10));
    assert_true(alb_region_is_claimed(s.mr, at(1124), 1));
    assert_false(alb_region_is_claimed(s.mr, at(100), 10));
    assert_false(claim(s.mr, &b, &bob, 1120, 5));
    assert_true(claim(s.mr, &b, &bob, 1024, 100));
    assert_true(alb_region_is_claimed(s.mw, 0, 1));
    alb_region_unclaim(&a);
    alb_region_unclaim(&b);
}

// ---- the memory goes ------------------------------------------------------------------------------------------------

struct told {
    struct alb_claim claim, also;
    uint32_t times;
};

static void on_gone(struct alb_claim *gone)
{
    struct told *told = (struct told *)gone->owner;
    told->times++;
    assert_null(gone->region);
    memory[gone->first] = 1; // still there
    alb_region_unclaim(&told->also);
}

static struct told *tell(struct alb_region *region, uint64_t va)
{
    static struct told told;
    told.times = 0;
    alb_claim_init(&told.claim, &told, on_gone);
    alb_claim_init(&told.also, &told, on_gone);
    assert_true(alb_region_claim(region, &told.claim, va, 8));
    assert_true(alb_region_claim(region, &told.also, va + 64, 8));
    return &told;
}

static void gone__when_the_region_is_destroyed_or_changed(void **state)
{
    struct alb_region *mr = fixture_region(*state, memory, sizeof(memory));
    struct told *told = tell(mr, at(0));
    assert_int_equal(alb_mr_change(mr, NULL, NULL, 0, 0, 1u << 31), EINVAL);
    assert_int_equal(told->times, 0);
    assert_int_equal(alb_mr_change(mr, NULL, NULL, 0, 0, ALB_ACCESS_LOCAL_WRITE), 0);
    assert_int_equal(told->times, 1);
    tell(mr, at(0));
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_int_equal(told->times, 1);
}

static void gone__when_the_window_is_unbound(void **state)
{
    struct scene s = windowed(*state);
    struct alb_claim other;
    struct told *told = tell(s.mw, 0);
    assert_true(claim(s.mr, &other, &bob, 2000, 8));
    assert_int_equal(alb_mr_destroy(s.mr), EBUSY);
    assert_int_equal(told->times, 0);
    assert_true(alb_region_invalidate_remote(s.qp, s.mw->key));
    assert_int_equal(told->times, 1);
    assert_false(alb_region_is_claimed(s.mr, at(1024), 256));
    assert_true(alb_region_is_claimed(s.mr, at(2000), 1)); // not made through the window
    alb_region_unclaim(&other);
}

static void gone__when_the_window_is_destroyed_or_its_queue_pair(void **state)
{
    struct scene s = windowed(*state);
    struct told *told = tell(s.mw, 0);
    alb_region_release_qp(s.qp);
    assert_int_equal(told->times, 1);
    struct alb_mw_bind bind = {s.mw, s.mr, at(0), 1024, ALB_ACCESS_REMOTE_WRITE, s.mw->key};
    assert_int_equal(alb_mw_bind(s.qp, &bind), ALB_WC_SUCCESS);
    tell(s.mw, at(0));
    assert_int_equal(alb_mw_destroy(s.mw), 0);
    assert_int_equal(told->times, 1);
    assert_null(s.mr->claim_root);
}

// ---- waiting --------------------------------------------------------------------------------------------------------

static void inbound__what_would_change_a_claimed_range_waits(void **state)
{
    struct alb_region *mr = fixture_region(*state, memory, sizeof(memory));
    struct alb_qp *qp = fixture_qp(*state, ALB_QPT_RC);
    static const uint8_t bytes[64] = {7};
    struct alb_target target;
    struct alb_claim it;
    const uint8_t *source;
    uint64_t original;
    qp->attr.access = FIXTURE_ACCESS_ALL;
    memset(memory, 0, sizeof(memory));
    assert_int_equal(alb_inbound_write(qp, mr->key, at(0), 256, &target), ALB_OUTCOME_OK);
    assert_true(claim(mr, &it, &ann, 100, 8));
    assert_int_equal(alb_place(qp, &target, 64, bytes, 64), ALB_OUTCOME_RNR); // also one that has begun
    assert_int_equal(memory[64], 0);
    assert_int_equal(alb_place(qp, &target, 128, bytes, 64), ALB_OUTCOME_OK);
    assert_int_equal(alb_inbound_write(qp, mr->key, at(0), 101, &target), ALB_OUTCOME_RNR);
    assert_int_equal(alb_inbound_write(qp, mr->key, at(0), 100, &target), ALB_OUTCOME_OK);
    assert_int_equal(alb_inbound_write(qp, mr->key, at(0), 0, &target), ALB_OUTCOME_OK);
    for (enum alb_atomic atomic = ALB_ATOMIC_CMP_SWAP; atomic <= ALB_ATOMIC_WRITE; atomic++) {
        assert_int_equal(alb_inbound_atomic(qp, atomic, mr->key, at(104), 1, 0, &original), ALB_OUTCOME_RNR);
        assert_int_equal(alb_inbound_atomic(qp, atomic, mr->key, at(108), 1, 0, &original),
                         ALB_OUTCOME_INVALID_REQUEST);
    }
    assert_int_equal(memory[104], 0);
    assert_int_equal(alb_inbound_read(qp, mr->key, at(0), 256, &source), ALB_OUTCOME_OK); // nothing has changed yet
    assert_int_equal(alb_inbound_write(qp, mr->key + 1, at(100), 8, &target), ALB_OUTCOME_ACCESS);
    alb_region_unclaim(&it);
    assert_int_equal(alb_inbound_write(qp, mr->key, at(0), 256, &target), ALB_OUTCOME_OK);
}

static void poison__refuses_everybody(void **state)
{
    struct fixture *f = *state;
    struct scene s = windowed(f);
    struct alb_region *other = fixture_region(f, memory, sizeof(memory));
    uint8_t *host;
    assert_false(alb_region_is_poisoned(s.mr));
    alb_region_poison(s.mw); // what it shows
    assert_true(alb_region_is_poisoned(s.mr) && alb_region_is_poisoned(s.mw));
    assert_int_equal(fixture_find_remote(s.qp, s.mr->key, at(0), 1, ALB_ACCESS_REMOTE_READ, &host),
                     ALB_ACCESS_POISONED);
    assert_int_equal(fixture_find_remote(s.qp, s.mw->key, 0, 1, ALB_ACCESS_REMOTE_WRITE, &host), ALB_ACCESS_POISONED);
    assert_int_equal(alb_region_local(f->engine, f->pd, s.mr->key, at(0), 1, 0, &host), ALB_ACCESS_POISONED);
    assert_null(host);
    assert_int_equal(fixture_find_remote(s.qp, other->key, at(0), 1, ALB_ACCESS_REMOTE_READ, &host), ALB_ACCESS_OK);
    // Other rights do not make it right.
    assert_int_equal(alb_mw_destroy(s.mw), 0);
    assert_int_equal(alb_mr_change(s.mr, NULL, NULL, 0, 0, FIXTURE_ACCESS_ALL), 0);
    assert_int_equal(fixture_find_remote(s.qp, s.mr->key, at(0), 1, ALB_ACCESS_REMOTE_READ, &host),
                     ALB_ACCESS_POISONED);
    assert_int_equal(alb_mr_destroy(s.mr), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(claim__refuses_another_owners_range),
        FIXTURE_TEST(claim__of_one_owner_may_overlap),
        FIXTURE_TEST(claim__of_nothing_overlaps_nothing),
        FIXTURE_TEST(claim__as_a_model_says),
        FIXTURE_TEST(claim__thousands_keep_the_tree_flat),
        FIXTURE_TEST(claim__through_a_window_is_the_regions),
        FIXTURE_TEST(gone__when_the_region_is_destroyed_or_changed),
        FIXTURE_TEST(gone__when_the_window_is_unbound),
        FIXTURE_TEST(gone__when_the_window_is_destroyed_or_its_queue_pair),
        FIXTURE_TEST(inbound__what_would_change_a_claimed_range_waits),
        FIXTURE_TEST(poison__refuses_everybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
