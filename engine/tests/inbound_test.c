// SPDX-License-Identifier: BSD-2-Clause
#include "engine/inbound.h"

#include "base/corruption.h"
#include "engine/tests/fixture.h"

#include <pthread.h>

static _Alignas(64) uint8_t memory[4096];
static uint8_t source[4096];

static struct alb_qp *start(void **state)
{
    struct fixture *f = *state;
    memset(memory, 0xcc, sizeof(memory));
    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = (uint8_t)(i * 7 + 1);
    return fixture_qp(f, ALB_QPT_RC);
}

static void post(struct alb_qp *qp, uint64_t wr_id, const struct alb_sge *sge, uint32_t count)
{
    assert_int_equal(alb_recv_queue_post(&qp->rq, wr_id, sge, count), 0);
}

// ---- alb_store_release ----------------------------------------------------------------------------------------------

static void store_release__copies_every_length_and_alignment(void **state)
{
    start(state);
    for (size_t at = 0; at < 16; at++)
        for (size_t from = 0; from < 3; from++)
            for (size_t n = 0; n < 80; n++) {
                memset(memory, 0xcc, 128);
                alb_store_release(memory + 8 + at, source + from, n);
                assert_memory_equal(memory + 8 + at, source + from, n);
                for (size_t i = 0; i < 8 + at; i++)
                    assert_int_equal(memory[i], 0xcc);
                for (size_t i = 8 + at + n; i < 128; i++)
                    assert_int_equal(memory[i], 0xcc);
            }
    alb_store_release(memory + 3, source, 4000);
    assert_memory_equal(memory + 3, source, 4000);
}

enum {
    ROUNDS = 60000, // below 2^16, so that a later round is always the greater number
    WORDS = 24,
};

struct watch {
    uint64_t words[WORDS];
    _Atomic bool has_begun, is_over;
    uint32_t torn, early;
};

// Each word of a round holds its number four times. Once the last bytes show a round, all words must be of it or of a
// later one.
static void *watch(void *context)
{
    struct watch *w = context;
    const uint16_t *last = (const uint16_t *)(w->words + WORDS) - 1;
    atomic_store(&w->has_begun, true);
    while (!atomic_load(&w->is_over)) {
        uint16_t round = __atomic_load_n(last, __ATOMIC_ACQUIRE);
        for (int i = 0; i < WORDS; i++) {
            uint64_t word = __atomic_load_n(&w->words[i], __ATOMIC_ACQUIRE);
            w->torn += word != (uint16_t)word * 0x0001000100010001u;
            w->early += (uint16_t)word < round;
        }
    }
    return NULL;
}

static void store_release__last_bytes_last_and_no_word_torn(void **state)
{
    static struct watch w;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
    while (!atomic_load(&w.has_begun))
        ;
    for (uint64_t round = 1; round < ROUNDS; round++) {
        uint64_t words[WORDS];
        for (int i = 0; i < WORDS; i++)
            words[i] = round * 0x0001000100010001u;
        alb_store_release((uint8_t *)w.words, (const uint8_t *)words, sizeof(words));
    }
    atomic_store(&w.is_over, true);
    pthread_join(thread, NULL);
    assert_int_equal(w.torn, 0);
    assert_int_equal(w.early, 0);
}

// ---- SEND -----------------------------------------------------------------------------------------------------------

static void inbound_send__takes_a_receive(void **state)
{
    struct alb_qp *qp = start(state);
    struct alb_target target;
    assert_int_equal(alb_inbound_send(qp, &target), ALB_OUTCOME_RNR);
    struct alb_sge sge = {.addr = 1, .length = 10, .lkey = 5};
    post(qp, 1, &sge, 1);
    assert_int_equal(alb_inbound_send(qp, &target), ALB_OUTCOME_OK);
    assert_int_equal(target.kind, ALB_TARGET_RECEIVE);
    assert_int_equal(target.length, 10);
    assert_true(qp->recv_is_taken);
    assert_int_equal(alb_inbound_send(qp, &target), ALB_OUTCOME_OK); // the one taken, until it completes
    assert_int_equal(qp->recv->wr_id, 1);
}

static void place__scatters_over_the_receive(void **state)
{
    struct alb_qp *qp = start(state);
    struct alb_region *mr = fixture_region(*state, memory, sizeof(memory));
    uint64_t at = (uintptr_t)memory;
    struct alb_sge sge[] = {
        {.addr = at + 100, .length = 3, .lkey = mr->key},
        {.addr = at, .length = 0, .lkey = 0},
        {.addr = at + 200, .length = 10, .lkey = mr->key},
        {.addr = at + 300, .length = 7, .lkey = mr->key},
    };
    struct alb_target target;
    post(qp, 1, sge, 4);
    assert_int_equal(alb_inbound_send(qp, &target), ALB_OUTCOME_OK);
    assert_int_equal(alb_place(qp, &target, 0, source, 5), ALB_OUTCOME_OK);
    assert_int_equal(alb_place(qp, &target, 5, source + 5, 15), ALB_OUTCOME_OK);
    assert_memory_equal(memory + 100, source, 3);
    assert_memory_equal(memory + 200, source + 3, 10);
    assert_memory_equal(memory + 300, source + 13, 7);
    assert_int_equal(memory[103], 0xcc);
    assert_int_equal(memory[210], 0xcc);
    assert_int_equal(memory[307], 0xcc);
    assert_int_equal(alb_place(qp, &target, 20, source, 0), ALB_OUTCOME_OK);
    assert_int_equal(alb_place(qp, &target, 20, source, 1), ALB_OUTCOME_TOO_LONG);
    assert_int_equal(alb_place(qp, &target, 19, source, 2), ALB_OUTCOME_TOO_LONG);
    assert_int_equal(alb_place(qp, &target, UINT64_MAX, source, 2), ALB_OUTCOME_TOO_LONG);
    assert_int_equal(memory[306], source[19]);
}

static void place__a_broken_receive_is_operational(void **state)
{
    struct alb_qp *qp = start(state);
    struct alb_region *mr = fixture_region_with(*state, memory, 100, 0); // not writable
    struct alb_region *gone = fixture_region(*state, memory, 100);
    struct alb_sge sge = {.addr = (uintptr_t)memory, .length = 10, .lkey = mr->key};
    struct alb_target target;
    post(qp, 1, &sge, 1);
    assert_int_equal(alb_inbound_send(qp, &target), ALB_OUTCOME_OK);
    assert_int_equal(alb_place(qp, &target, 0, source, 10), ALB_OUTCOME_OPERATIONAL);
    qp->recv->sge[0].lkey = gone->key;
    assert_int_equal(alb_place(qp, &target, 0, source, 5), ALB_OUTCOME_OK);
    assert_int_equal(alb_mr_destroy(gone), 0); // in the middle of the message
    assert_int_equal(alb_place(qp, &target, 5, source, 5), ALB_OUTCOME_OPERATIONAL);
    assert_int_equal(memory[5], 0xcc);
}

// ---- WRITE and READ -------------------------------------------------------------------------------------------------

static void inbound_write__checks_the_whole_range_first(void **state)
{
    struct alb_qp *qp = start(state);
    struct alb_region *mr = fixture_region(*state, memory, 100);
    struct alb_target target;
    uint64_t at = (uintptr_t)memory;
    assert_int_equal(alb_inbound_write(qp, mr->key, at, 101, &target), ALB_OUTCOME_ACCESS);
    assert_int_equal(alb_inbound_write(qp, mr->key ^ 1, at, 100, &target), ALB_OUTCOME_ACCESS);
    assert_int_equal(alb_inbound_write(qp, mr->key ^ 1, at, 0, &target), ALB_OUTCOME_OK);
    assert_int_equal(alb_inbound_write(qp, mr->key, at, 100, &target), ALB_OUTCOME_OK);
    assert_int_equal(alb_place(qp, &target, 0, source, 60), ALB_OUTCOME_OK);
    assert_int_equal(alb_place(qp, &target, 60, source + 60, 40), ALB_OUTCOME_OK);
    assert_memory_equal(memory, source, 100);
    assert_int_equal(memory[100], 0xcc);
    assert_int_equal(alb_place(qp, &target, 100, source, 1), ALB_OUTCOME_INVALID_REQUEST);
    qp->attr.access &= ~(uint32_t)ALB_ACCESS_REMOTE_WRITE;
    assert_int_equal(alb_inbound_write(qp, mr->key, at, 100, &target), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(alb_inbound_write(qp, mr->key, at, 0, &target), ALB_OUTCOME_INVALID_REQUEST);
}

static void place__memory_deregistered_in_the_middle_is_not_touched(void **state)
{
    struct alb_qp *qp = start(state);
    struct alb_region *mr = fixture_region(*state, memory, 100);
    struct alb_target target;
    assert_int_equal(alb_inbound_write(qp, mr->key, (uintptr_t)memory, 100, &target), ALB_OUTCOME_OK);
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_int_equal(alb_place(qp, &target, 0, source, 100), ALB_OUTCOME_ACCESS);
    assert_int_equal(memory[0], 0xcc);
}

static void place__without_a_target(void **state)
{
    struct alb_qp *qp = start(state);
    struct alb_target none = {.kind = ALB_TARGET_NONE, .length = 10};
    assert_int_equal(alb_place(qp, &none, 0, source, 0), ALB_OUTCOME_OK);
    assert_int_equal(alb_place(qp, &none, 0, source, 1), ALB_OUTCOME_INVALID_REQUEST);
}

static void inbound_read__rights_of_queue_pair_and_region(void **state)
{
    struct alb_qp *qp = start(state);
    struct alb_region *mr = fixture_region_with(*state, memory, 100, ALB_ACCESS_REMOTE_READ);
    struct alb_region *closed = fixture_region_with(*state, memory, 100, ALB_ACCESS_LOCAL_WRITE);
    const uint8_t *bytes;
    uint64_t at = (uintptr_t)memory;
    assert_int_equal(alb_inbound_read(qp, mr->key, at + 1, 99, &bytes), ALB_OUTCOME_OK);
    assert_ptr_equal(bytes, memory + 1);
    assert_int_equal(alb_inbound_read(qp, mr->key, at + 1, 100, &bytes), ALB_OUTCOME_ACCESS);
    assert_int_equal(alb_inbound_read(qp, closed->key, at, 1, &bytes), ALB_OUTCOME_ACCESS);
    assert_int_equal(alb_inbound_read(qp, 0, 0, 0, &bytes), ALB_OUTCOME_OK);
    qp->attr.access = ALB_ACCESS_REMOTE_WRITE;
    assert_int_equal(alb_inbound_read(qp, mr->key, at, 1, &bytes), ALB_OUTCOME_INVALID_REQUEST);
}

// ---- atomics --------------------------------------------------------------------------------------------------------

static void inbound_atomic__each_operation(void **state)
{
    struct alb_qp *qp = start(state);
    uint64_t *word = (uint64_t *)(void *)memory;
    uint64_t original, at = (uintptr_t)memory;
    uint32_t key = fixture_region(*state, memory, 64)->key;
    *word = 5;
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_CMP_SWAP, key, at, 9, 4, &original), ALB_OUTCOME_OK);
    assert_int_equal(original, 5);
    assert_int_equal(*word, 5);
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_CMP_SWAP, key, at, 9, 5, &original), ALB_OUTCOME_OK);
    assert_int_equal(original, 5);
    assert_int_equal(*word, 9);
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_FETCH_ADD, key, at, UINT64_MAX, 0, &original), ALB_OUTCOME_OK);
    assert_int_equal(original, 9);
    assert_int_equal(*word, 8);
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_WRITE, key, at, 77, 0, &original), ALB_OUTCOME_OK);
    assert_int_equal(*word, 77);
    assert_int_equal(original, 0); // the right to write is none to read
}

static void inbound_atomic__refuses(void **state)
{
    struct fixture *f = *state;
    struct alb_qp *qp = start(state);
    uint64_t original, at = (uintptr_t)memory;
    uint32_t key = fixture_region(f, memory, 64)->key;
    uint32_t written = fixture_region_with(f, memory, 64, ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE)->key;
    struct alb_region *skewed; // iova 0 stands for an odd address
    assert_int_equal(alb_mr_create(f->pd, memory + 1, 64, 0, FIXTURE_ACCESS_ALL, &skewed), 0);
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_FETCH_ADD, key, at + 4, 1, 0, &original),
                     ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_FETCH_ADD, skewed->key, 8, 1, 0, &original),
                     ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_FETCH_ADD, key, at + 64, 1, 0, &original), ALB_OUTCOME_ACCESS);
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_FETCH_ADD, written, at, 1, 0, &original), ALB_OUTCOME_ACCESS);
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_WRITE, written, at, 1, 0, &original), ALB_OUTCOME_OK);
    qp->attr.access = ALB_ACCESS_REMOTE_WRITE;
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_CMP_SWAP, key, at, 1, 0, &original),
                     ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_WRITE, key, at, 3, 0, &original), ALB_OUTCOME_OK);
    qp->attr.access = ALB_ACCESS_REMOTE_ATOMIC;
    assert_int_equal(alb_inbound_atomic(qp, ALB_ATOMIC_WRITE, key, at, 4, 0, &original), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(*(uint64_t *)(void *)memory, 3);
}

// ---- completions ----------------------------------------------------------------------------------------------------

static void take(struct alb_qp *qp, uint64_t wr_id)
{
    struct alb_target target;
    post(qp, wr_id, NULL, 0);
    assert_int_equal(alb_inbound_send(qp, &target), ALB_OUTCOME_OK);
}

static void inbound_complete__tells_what_came(void **state)
{
    struct fixture *f = *state;
    struct alb_qp *qp = start(state);
    struct alb_inbound_end end = {.opcode = ALB_WC_RECV_RDMA_WITH_IMM,
                                  .byte_len = 123,
                                  .imm_data = 0xabcd,
                                  .wc_flags = ALB_WC_WITH_IMM,
                                  .src_qpn = 0x77,
                                  .sl = 3};
    take(qp, 9);
    assert_int_equal(alb_inbound_complete(qp, &end, 1000), ALB_OUTCOME_OK);
    assert_false(qp->recv_is_taken);
    const struct alb_wc *wc = alb_cq_peek(f->cq);
    assert_non_null(wc);
    assert_int_equal(wc->wr_id, 9);
    assert_int_equal(wc->status, ALB_WC_SUCCESS);
    assert_int_equal(wc->opcode, ALB_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc->byte_len, 123);
    assert_int_equal(wc->imm_data, 0xabcd);
    assert_int_equal(wc->flags, ALB_WC_WITH_IMM);
    assert_int_equal(wc->src_qpn, 0x77);
    assert_int_equal(wc->sl, 3);
    assert_int_equal(wc->timestamp, 1000);
    assert_ptr_equal(wc->qp, qp);
}

static void inbound_complete__invalidates(void **state)
{
    struct fixture *f = *state;
    struct alb_qp *qp = start(state);
    struct alb_region *mr = fixture_region_with(f, memory, 100, FIXTURE_ACCESS_ALL | ALB_ACCESS_MW_BIND), *mw;
    assert_int_equal(alb_mw_create(f->pd, ALB_MW_TYPE_2, &mw), 0);
    struct alb_mw_bind bind = {
        .mw = mw, .mr = mr, .addr = (uintptr_t)memory, .length = 8, .rkey = mw->key, .access = ALB_ACCESS_REMOTE_READ};
    assert_int_equal(alb_mw_bind(qp, &bind), ALB_WC_SUCCESS);
    struct alb_inbound_end end = {.opcode = ALB_WC_RECV, .wc_flags = ALB_WC_WITH_INV, .invalidate_rkey = mr->key};
    take(qp, 1);
    assert_int_equal(alb_inbound_complete(qp, &end, 0), ALB_OUTCOME_ACCESS);
    assert_true(qp->recv_is_taken);
    assert_null(alb_cq_peek(f->cq));
    end.invalidate_rkey = mw->key;
    assert_int_equal(alb_inbound_complete(qp, &end, 0), ALB_OUTCOME_OK);
    assert_int_equal(alb_cq_peek(f->cq)->invalidated_rkey, mw->key);
    assert_int_equal(alb_cq_peek(f->cq)->flags, ALB_WC_WITH_INV);
    assert_false(mw->is_valid);
}

static void inbound_fail__status_of_the_receive(void **state)
{
    struct fixture *f = *state;
    struct alb_qp *qp = start(state);
    static const struct {
        enum alb_outcome outcome;
        enum alb_wc_status status;
    } cases[] = {
        {ALB_OUTCOME_TOO_LONG, ALB_WC_LOC_LEN_ERR},
        {ALB_OUTCOME_OPERATIONAL, ALB_WC_LOC_PROT_ERR},
        {ALB_OUTCOME_ACCESS, ALB_WC_LOC_ACCESS_ERR},
        {ALB_OUTCOME_INVALID_REQUEST, ALB_WC_REM_INV_REQ_ERR},
    };
    alb_inbound_fail(qp, ALB_OUTCOME_ACCESS, 0);
    assert_null(alb_cq_peek(f->cq)); // none was taken
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        take(qp, 40 + i);
        alb_inbound_fail(qp, cases[i].outcome, 0);
        assert_int_equal(alb_cq_peek(f->cq)->wr_id, 40 + i);
        assert_int_equal(alb_cq_peek(f->cq)->status, cases[i].status);
        alb_cq_pop(f->cq);
        assert_false(qp->recv_is_taken);
    }
}

// ---- corruption on demand -------------------------------------------------------------------------------------------

static uint64_t struck[ALB_CORRUPT_PLACES];

static void corrupt(struct fixture *f, enum alb_corrupt place)
{
    static struct alb_corruption corruption;
    struct alb_corruption_spec spec = {{0}};
    spec.chance[place] = 1000000000;
    memset(struck, 0, sizeof(struck));
    alb_corruption_init(&corruption, &spec, 3, struck);
    f->engine->config.corruption = &corruption;
}

static uint32_t differences(size_t from, size_t past)
{
    uint32_t count = 0;
    for (size_t i = from; i < past; i++)
        count += memory[i] != 0xcc;
    return count;
}

static void place__of_what_is_corrupted(void **state)
{
    static const enum alb_corrupt places[] = {ALB_CORRUPT_PACKET, ALB_CORRUPT_MISPLACE, ALB_CORRUPT_STALE};
    for (size_t i = 0; i < ALB_COUNT(places); i++) {
        struct alb_qp *qp = start(state);
        struct alb_region *mr = fixture_region(*state, memory + 1024, 1024);
        struct alb_target target;
        uint8_t whole[64];
        memset(whole, 0xdd, sizeof(whole));
        qp->attr.access = FIXTURE_ACCESS_ALL;
        corrupt(*state, places[i]);
        assert_int_equal(alb_inbound_write(qp, mr->key, (uintptr_t)memory + 1024, 64, &target), ALB_OUTCOME_OK);
        assert_int_equal(alb_place(qp, &target, 0, whole, 64), ALB_OUTCOME_OK);
        assert_int_equal(struck[places[i]], 1);
        assert_memory_not_equal(memory + 1024, whole, 64);
        assert_int_equal(differences(1024, 2048), places[i] == ALB_CORRUPT_STALE ? 0 : 64);
        assert_int_equal(differences(0, 1024) + differences(2048, sizeof(memory)), 0); // never beyond the region
    }
}

static void place__a_receive_is_never_left(void **state)
{
    struct alb_qp *qp = start(state);
    struct alb_region *mr = fixture_region(*state, memory, sizeof(memory));
    struct alb_sge sge = {.addr = (uintptr_t)memory + 100, .length = 32, .lkey = mr->key};
    struct alb_target target;
    post(qp, 1, &sge, 1);
    corrupt(*state, ALB_CORRUPT_MISPLACE);
    assert_int_equal(alb_inbound_send(qp, &target), ALB_OUTCOME_OK);
    assert_int_equal(alb_place(qp, &target, 0, source, 32), ALB_OUTCOME_OK);
    assert_memory_equal(memory + 100, source, 32);
    corrupt(*state, ALB_CORRUPT_PACKET);
    assert_int_equal(alb_place(qp, &target, 0, source, 32), ALB_OUTCOME_OK);
    assert_memory_not_equal(memory + 100, source, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(store_release__copies_every_length_and_alignment),
        cmocka_unit_test(store_release__last_bytes_last_and_no_word_torn),
        FIXTURE_TEST(inbound_send__takes_a_receive),
        FIXTURE_TEST(place__scatters_over_the_receive),
        FIXTURE_TEST(place__a_broken_receive_is_operational),
        FIXTURE_TEST(inbound_write__checks_the_whole_range_first),
        FIXTURE_TEST(place__memory_deregistered_in_the_middle_is_not_touched),
        FIXTURE_TEST(place__without_a_target),
        FIXTURE_TEST(inbound_read__rights_of_queue_pair_and_region),
        FIXTURE_TEST(inbound_atomic__each_operation),
        FIXTURE_TEST(inbound_atomic__refuses),
        FIXTURE_TEST(inbound_complete__tells_what_came),
        FIXTURE_TEST(inbound_complete__invalidates),
        FIXTURE_TEST(inbound_fail__status_of_the_receive),
        FIXTURE_TEST(place__of_what_is_corrupted),
        FIXTURE_TEST(place__a_receive_is_never_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
