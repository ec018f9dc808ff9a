// SPDX-License-Identifier: BSD-2-Clause
#include "engine/region_version.h"

#include "engine/inbound.h"
#include "engine/tests/fixture.h"

#include <pthread.h>
#include <sched.h>

enum {
    BYTES = 4096,
    STRIDE = 256,
    WORDS = BYTES / STRIDE,
};

static _Alignas(64) uint8_t memory[BYTES];
static _Atomic uint64_t words[WORDS];

static void speak_csa(struct alb_engine_config *config)
{
    assert_int_equal(alb_engine_config_transport(config, "csa"), 0);
    config->csa_pool_bytes = 64 << 10;
}

static int csa_setup(void **state)
{
    *state = fixture_new_with(speak_csa);
    memset(memory, 0, sizeof(memory));
    for (int i = 0; i < WORDS; i++)
        atomic_store(&words[i], 0);
    return 0;
}
#define CSA_TEST(test) cmocka_unit_test_setup_teardown(test, csa_setup, fixture_teardown)

static struct alb_region *transactional(struct fixture *f)
{
    struct alb_region *mr = fixture_region(f, memory, sizeof(memory));
    assert_int_equal(alb_mr_set_versions(mr, words, STRIDE), 0);
    return mr;
}

static uint64_t at(uint64_t offset)
{
    return (uintptr_t)memory + offset;
}

// ---- alb_mr_set_versions --------------------------------------------------------------------------------------------

static void set_versions__strides(void **state)
{
    struct alb_region *mr = fixture_region(*state, memory, 1000), *none = fixture_region(*state, memory, 0);
    static const uint64_t bad[] = {0, 1, 32, 96, 100, 999, 1001};
    static const uint64_t good[] = {64, 128, 512, 1000, 1024, 1ull << 40};
    for (size_t i = 0; i < ALB_COUNT(bad); i++)
        assert_int_equal(alb_mr_set_versions(mr, words, bad[i]), EINVAL);
    for (size_t i = 0; i < ALB_COUNT(good); i++) {
        assert_int_equal(alb_mr_set_versions(mr, words, good[i]), 0);
        assert_true(alb_region_is_transactional(mr));
        assert_int_equal(alb_mr_set_versions(mr, NULL, 0), 0);
        assert_false(alb_region_is_transactional(mr));
    }
    assert_int_equal(alb_mr_set_versions(none, words, 0), EINVAL);
    // Readers look at a word at once: it does not lie across two lines of the cache.
    assert_int_equal(alb_mr_set_versions(mr, (void *)((uint8_t *)words + 4), STRIDE), EINVAL);
}

static void set_versions__once(void **state)
{
    struct alb_region *mr = transactional(*state);
    assert_int_equal(alb_mr_set_versions(mr, words, STRIDE), EBUSY);
    alb_region_hold_readers(mr, at(0), 1);
    assert_int_equal(alb_mr_set_versions(mr, NULL, 0), EBUSY);
    alb_region_let_readers(mr, at(0), 1);
    assert_int_equal(alb_mr_set_versions(mr, NULL, 0), 0);
}

// Its readers would be let in without having been held out.
static void set_versions__not_while_a_transaction_stands_in_place(void **state)
{
    struct alb_region *mr = fixture_region(*state, memory, sizeof(memory));
    alb_region_hold_readers(mr, at(0), 1);
    assert_int_equal(alb_mr_set_versions(mr, words, STRIDE), EBUSY);
    alb_region_let_readers(mr, at(0), 1);
    assert_int_equal(alb_mr_set_versions(mr, words, STRIDE), 0);
    assert_int_equal(words[0], 0);
}

static void set_versions__not_of_a_window_or_another_transport(void **state)
{
    struct fixture *f = *state, *rc = fixture_new();
    struct alb_region *mw, *mr = fixture_region(rc, memory, sizeof(memory));
    assert_int_equal(alb_mw_create(f->pd, ALB_MW_TYPE_1, &mw), 0);
    assert_int_equal(alb_mr_set_versions(mw, words, STRIDE), EINVAL);
    assert_int_equal(alb_mr_set_versions(mr, words, STRIDE), EOPNOTSUPP);
    fixture_free(rc);
}

// What a process left behind that ended in the middle of a change.
static void set_versions__words_of_a_life_before(void **state)
{
    atomic_store(&words[0], 7 * ALB_VERSION_STEP);
    atomic_store(&words[1], 7 * ALB_VERSION_STEP + 3);
    transactional(*state);
    assert_int_equal(words[0], 7 * ALB_VERSION_STEP);
    assert_int_equal(words[1], 8 * ALB_VERSION_STEP);
}

static void mr_change__not_the_memory_of_a_transactional_one(void **state)
{
    struct alb_region *mr = transactional(*state);
    assert_int_equal(alb_mr_change(mr, NULL, memory, BYTES / 2, at(0), UINT32_MAX), EBUSY);
    assert_int_equal(alb_mr_change(mr, NULL, memory + 64, BYTES, at(0), UINT32_MAX), EBUSY);
    assert_int_equal(alb_mr_change(mr, NULL, NULL, 0, 0, ALB_ACCESS_LOCAL_WRITE), 0);
    assert_int_equal(alb_mr_set_versions(mr, NULL, 0), 0);
    assert_int_equal(alb_mr_change(mr, NULL, memory, BYTES / 2, at(0), UINT32_MAX), 0);
}

// ---- words ----------------------------------------------------------------------------------------------------------

static void hold__just_the_strides_of_the_range(void **state)
{
    struct alb_region *mr = transactional(*state);
    alb_region_hold_readers(mr, at(STRIDE + 255), 2); // over a border
    for (int i = 0; i < WORDS; i++)
        assert_int_equal(words[i] & 1, i == 1 || i == 2);
    assert_true(alb_region_holds_readers(mr, at(0), STRIDE + 1));
    assert_false(alb_region_holds_readers(mr, at(0), STRIDE));
    assert_false(alb_region_holds_readers(mr, at(3 * STRIDE), BYTES - 3 * STRIDE));
    assert_false(alb_region_holds_readers(mr, at(STRIDE), 0));
    alb_region_let_readers(mr, at(STRIDE + 255), 2);
    for (int i = 0; i < WORDS; i++)
        assert_int_equal(words[i], i == 1 || i == 2 ? ALB_VERSION_STEP : 0);
}

static void hold__until_the_last_holder_lets(void **state)
{
    struct alb_region *mr = transactional(*state);
    alb_region_hold_readers(mr, at(0), 8);
    alb_region_hold_readers(mr, at(16), 8);
    alb_region_hold_readers(mr, at(0), 8);
    assert_int_equal(words[0], 5);
    alb_region_let_readers(mr, at(0), 8);
    alb_region_let_readers(mr, at(16), 8);
    assert_int_equal(words[0], 1);
    alb_region_let_readers(mr, at(0), 8);
    assert_int_equal(words[0], ALB_VERSION_STEP);
}

static void hold__nothing_where_nothing_is_to_be_held(void **state)
{
    struct alb_region *mr = fixture_region(*state, memory, sizeof(memory)), *other = transactional(*state);
    alb_region_hold_readers(mr, at(0), 8);
    alb_region_hold_readers(other, at(0), 0);
    assert_false(alb_region_holds_readers(mr, at(0), 8));
    assert_int_equal(words[0], 0);
}

static void hold__through_a_window(void **state)
{
    struct fixture *f = *state;
    struct alb_qp *qp = fixture_qp(f, ALB_QPT_RC);
    struct alb_region *mw,
        *mr = fixture_region_with(f, memory, sizeof(memory), FIXTURE_ACCESS_ALL | ALB_ACCESS_MW_BIND);
    assert_int_equal(alb_mr_set_versions(mr, words, STRIDE), 0);
    assert_int_equal(alb_mw_create(f->pd, ALB_MW_TYPE_2, &mw), 0);
    struct alb_mw_bind bind = {mw,     mr, at(STRIDE), 2 * STRIDE, ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_ZERO_BASED,
                               mw->key};
    assert_int_equal(alb_mw_bind(qp, &bind), ALB_WC_SUCCESS);
    assert_true(alb_region_is_transactional(mw));
    alb_region_hold_readers(mw, STRIDE + 1, 1);
    assert_int_equal(words[2], 1);
    assert_true(alb_region_holds_readers(mw, STRIDE, STRIDE));
    alb_region_let_readers(mw, STRIDE + 1, 1);
    assert_int_equal(words[2], ALB_VERSION_STEP);
}

// ---- readers --------------------------------------------------------------------------------------------------------

static void read__sees_every_change_of_its_range(void **state)
{
    struct alb_region *mr = transactional(*state);
    struct alb_versions_read read;
    for (uint64_t offset = 0; offset < BYTES; offset += 128) {
        bool is_within = offset + 8 > STRIDE && offset < 4 * STRIDE;
        assert_true(alb_versions_read_begin(words, STRIDE, STRIDE + 10, 3 * STRIDE - 10, &read));
        assert_false(alb_versions_read_retry(&read));
        alb_region_hold_readers(mr, at(offset), 8);
        assert_int_equal(alb_versions_read_retry(&read), is_within);
        alb_region_let_readers(mr, at(offset), 8);
        assert_int_equal(alb_versions_read_retry(&read), is_within);
    }
}

static void read__does_not_begin_while_readers_are_held(void **state)
{
    struct alb_region *mr = transactional(*state);
    struct alb_versions_read read;
    alb_region_hold_readers(mr, at(STRIDE), 1);
    assert_false(alb_versions_read_begin(words, STRIDE, 0, STRIDE + 1, &read));
    assert_true(alb_versions_read_begin(words, STRIDE, 0, STRIDE, &read));
    assert_true(alb_versions_read_begin(words, STRIDE, STRIDE, 0, &read));
    assert_false(alb_versions_read_retry(&read));
}

static void read__one_word_for_the_whole_length(void **state)
{
    struct alb_region *mr = fixture_region(*state, memory, 1000);
    struct alb_versions_read read;
    assert_int_equal(alb_mr_set_versions(mr, words, 1000), 0);
    assert_true(alb_versions_read_begin(words, 1000, 990, 10, &read));
    alb_region_hold_readers(mr, at(0), 1000);
    alb_region_let_readers(mr, at(0), 1000);
    assert_true(alb_versions_read_retry(&read));
    assert_int_equal(words[1], 0);
}

// ---- messages of peers ----------------------------------------------------------------------------------------------

static struct alb_qp *receiver(struct fixture *f)
{
    struct alb_qp *qp = fixture_qp(f, ALB_QPT_RC);
    qp->attr.access = FIXTURE_ACCESS_ALL;
    return qp;
}

static void place__a_write_is_a_change(void **state)
{
    struct alb_region *mr = transactional(*state);
    struct alb_qp *qp = receiver(*state);
    static const uint8_t bytes[STRIDE] = {1};
    struct alb_target target;
    assert_int_equal(alb_inbound_write(qp, mr->key, at(STRIDE), 2 * STRIDE, &target), ALB_OUTCOME_OK);
    assert_int_equal(words[1], 0);
    assert_int_equal(alb_place(qp, &target, 0, bytes, STRIDE), ALB_OUTCOME_OK);
    assert_int_equal(words[1], ALB_VERSION_STEP);
    assert_int_equal(words[2], 0);
    assert_int_equal(alb_place(qp, &target, STRIDE, bytes, STRIDE), ALB_OUTCOME_OK);
    assert_int_equal(words[2], ALB_VERSION_STEP);
}

static void atomic__is_a_change(void **state)
{
    struct alb_region *mr = transactional(*state);
    struct alb_qp *qp = receiver(*state);
    uint64_t original;
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_FETCH_ADD, mr->key, at(STRIDE + 8), 1, 0, &original),
                     ALB_OUTCOME_OK);
    assert_int_equal(words[0], 0);
    assert_int_equal(words[1], ALB_VERSION_STEP);
}

// An entry of 304 bytes that is written all the time: a reader that checks its words never sees two versions at once.
enum {
    ENTRY_WORDS = 304 / 8,
    READS = 20000,
};

struct watch {
    struct alb_region *mr;
    _Atomic bool is_over;
    _Atomic uint64_t torn, whole;
};

static bool is_torn(const uint64_t copy[ENTRY_WORDS])
{
    for (int i = 1; i < ENTRY_WORDS; i++)
        if (copy[i] != copy[0])
            return true;
    return false;
}

static void *watch(void *context)
{
    struct watch *w = context;
    const uint64_t *entry = (const uint64_t *)(memory + STRIDE);
    while (atomic_load(&w->whole) < READS) {
        struct alb_versions_read read;
        uint64_t copy[ENTRY_WORDS];
        if (!alb_versions_read_begin(words, STRIDE, STRIDE, sizeof(copy), &read)) {
            sched_yield();
            continue;
        }
        for (int i = 0; i < ENTRY_WORDS; i++)
            copy[i] = __atomic_load_n(&entry[i], __ATOMIC_RELAXED);
        if (alb_versions_read_retry(&read))
            continue;
        w->torn += is_torn(copy);
        w->whole++;
    }
    w->is_over = true;
    return NULL;
}

static void read__never_torn_beside_a_writer(void **state)
{
    struct watch w = {.mr = transactional(*state)};
    pthread_t thread;
    uint64_t round = 0;
    assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
    while (!atomic_load(&w.is_over)) {
        uint64_t entry[ENTRY_WORDS];
        round++;
        for (int i = 0; i < ENTRY_WORDS; i++)
            entry[i] = round;
        alb_region_hold_readers(w.mr, at(STRIDE), sizeof(entry));
        alb_store_release(memory + STRIDE, (const uint8_t *)entry, sizeof(entry));
        alb_region_let_readers(w.mr, at(STRIDE), sizeof(entry));
        if (round % 16 == 0)
            sched_yield();
    }
    pthread_join(thread, NULL);
    assert_int_equal(w.torn, 0);
    assert_int_equal(words[1], round * ALB_VERSION_STEP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_TEST(set_versions__strides),
        CSA_TEST(set_versions__once),
        CSA_TEST(set_versions__not_while_a_transaction_stands_in_place),
        CSA_TEST(set_versions__not_of_a_window_or_another_transport),
        CSA_TEST(set_versions__words_of_a_life_before),
        CSA_TEST(mr_change__not_the_memory_of_a_transactional_one),
        CSA_TEST(hold__just_the_strides_of_the_range),
        CSA_TEST(hold__until_the_last_holder_lets),
        CSA_TEST(hold__nothing_where_nothing_is_to_be_held),
        CSA_TEST(hold__through_a_window),
        CSA_TEST(read__sees_every_change_of_its_range),
        CSA_TEST(read__does_not_begin_while_readers_are_held),
        CSA_TEST(read__one_word_for_the_whole_length),
        CSA_TEST(place__a_write_is_a_change),
        CSA_TEST(atomic__is_a_change),
        CSA_TEST(read__never_torn_beside_a_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
