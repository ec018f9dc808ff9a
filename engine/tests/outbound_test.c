// SPDX-License-Identifier: BSD-2-Clause
#include "engine/outbound.h"

#include "base/corruption.h"
#include "engine/tests/fixture.h"

static _Alignas(64) uint8_t memory[1024];
static uint8_t bytes[1024];
static const struct alb_flow flow;

struct scene {
    struct alb_qp *qp;
    struct alb_region *mr;
    struct alb_send_wqe *wqe; // three entries: 10 bytes at 100, none, 20 bytes at 200
};

static struct scene scene(void **state, enum alb_wr_opcode opcode, uint32_t access)
{
    struct fixture *f = *state;
    struct scene s = {.qp = fixture_qp(f, ALB_QPT_RC), .mr = fixture_region_with(f, memory, sizeof(memory), access)};
    memset(memory, 0xcc, sizeof(memory));
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i + 1);
    s.wqe = alb_send_queue_at(&s.qp->sq, 0);
    s.wqe->opcode = (uint8_t)opcode;
    s.wqe->length = 30;
    s.wqe->sge_count = 3;
    s.wqe->sge[0] = (struct alb_sge){.addr = (uintptr_t)memory + 100, .length = 10, .lkey = s.mr->key};
    s.wqe->sge[1] = (struct alb_sge){.addr = 0, .length = 0, .lkey = 0};
    s.wqe->sge[2] = (struct alb_sge){.addr = (uintptr_t)memory + 200, .length = 20, .lkey = s.mr->key};
    return s;
}

static void outbound_check__reading_and_writing(void **state)
{
    static const struct {
        enum alb_wr_opcode opcode;
        bool is_written;
    } cases[] = {
        {ALB_WR_SEND, false},     {ALB_WR_RDMA_WRITE, false},        {ALB_WR_ATOMIC_WRITE, false},
        {ALB_WR_RDMA_READ, true}, {ALB_WR_ATOMIC_CMP_AND_SWP, true}, {ALB_WR_ATOMIC_FETCH_AND_ADD, true},
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        struct scene s = scene(state, cases[i].opcode, 0);
        assert_int_equal(alb_outbound_check(s.qp, s.wqe), cases[i].is_written ? ALB_WC_LOC_PROT_ERR : ALB_WC_SUCCESS);
        s = scene(state, cases[i].opcode, ALB_ACCESS_LOCAL_WRITE);
        assert_int_equal(alb_outbound_check(s.qp, s.wqe), ALB_WC_SUCCESS);
        s.wqe->sge[2].lkey ^= 1;
        assert_int_equal(alb_outbound_check(s.qp, s.wqe), ALB_WC_LOC_PROT_ERR);
        s.wqe->flags = ALB_SEND_INLINE; // inline data has no keys
        assert_int_equal(alb_outbound_check(s.qp, s.wqe), ALB_WC_SUCCESS);
    }
}

// Gathers [offset, offset + length) and returns what the segment would carry in bytes[512 ...]; false if it could not.
static bool gather(struct fixture *f, const struct scene *s, uint64_t offset, uint32_t length, uint8_t *out)
{
    struct alb_tx_builder builder;
    struct alb_roce roce = {.opcode = ALB_RC_SEND_ONLY};
    f->tx.burst_count = f->tx.segment_count = f->tx.iov_count = f->tx.bytes_count = 0;
    alb_tx_builder_init(&builder, &f->tx);
    assert_true(alb_tx_has_room(&builder, alb_outbound_refs(s->wqe)));
    alb_tx_begin(&builder, &flow, &roce, length);
    if (!alb_outbound_gather(s->qp, s->wqe, &builder, offset, length))
        return false;
    alb_tx_end(&builder);
    assert_true(f->segments[0].iov_count <= 2 + alb_outbound_refs(s->wqe));
    for (uint32_t i = 1; i < f->segments[0].iov_count - 1u; i++) {
        memcpy(out, f->iov[i].iov_base, f->iov[i].iov_len);
        out += f->iov[i].iov_len;
    }
    return true;
}

static void outbound_gather__any_stretch(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(state, ALB_WR_SEND, 0);
    uint8_t out[64], whole[30];
    memcpy(memory + 100, bytes, 10);
    memcpy(memory + 200, bytes + 10, 20);
    memcpy(whole, bytes, 30);
    for (uint32_t offset = 0; offset < 30; offset++)
        for (uint32_t length = 0; length <= 30 - offset; length++) {
            assert_true(gather(f, &s, offset, length, out));
            assert_memory_equal(out, whole + offset, length);
        }
}

static void outbound_gather__inline(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(state, ALB_WR_SEND, 0);
    uint8_t out[64];
    s.wqe->flags = ALB_SEND_INLINE;
    s.wqe->sge_count = 0;
    memcpy(s.wqe->inline_data, bytes, 30);
    assert_true(gather(f, &s, 7, 20, out));
    assert_memory_equal(out, bytes + 7, 20);
    assert_ptr_equal(f->iov[1].iov_base, s.wqe->inline_data + 7);
}

static void outbound_gather__a_key_that_went(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(state, ALB_WR_SEND, 0);
    uint8_t out[64];
    assert_int_equal(alb_mr_destroy(s.mr), 0);
    assert_false(gather(f, &s, 0, 30, out));
    assert_int_equal(f->tx.segment_count, 0);
}

static void outbound_scatter__any_stretch(void **state)
{
    struct scene s = scene(state, ALB_WR_RDMA_READ, ALB_ACCESS_LOCAL_WRITE);
    for (uint32_t offset = 0; offset < 30; offset++)
        for (uint32_t length = 0; length <= 30 - offset; length++) {
            uint8_t whole[30];
            memset(memory, 0xcc, sizeof(memory));
            memset(whole, 0xcc, sizeof(whole));
            memcpy(whole + offset, bytes, length);
            assert_int_equal(alb_outbound_scatter(s.qp, s.wqe, offset, bytes, length), ALB_WC_SUCCESS);
            assert_memory_equal(memory + 100, whole, 10);
            assert_memory_equal(memory + 200, whole + 10, 20);
            assert_int_equal(memory[110], 0xcc);
            assert_int_equal(memory[220], 0xcc);
        }
    assert_int_equal(alb_outbound_scatter(s.qp, s.wqe, 29, bytes, 2), ALB_WC_LOC_LEN_ERR);
    assert_int_equal(alb_outbound_scatter(s.qp, s.wqe, UINT64_MAX, bytes, 2), ALB_WC_LOC_LEN_ERR);
    assert_int_equal(alb_mr_destroy(s.mr), 0);
    assert_int_equal(alb_outbound_scatter(s.qp, s.wqe, 0, bytes, 30), ALB_WC_LOC_PROT_ERR);
}

static void outbound_execute__local_operations(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(state, ALB_WR_SEND, ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_MW_BIND);
    struct alb_region *mw;
    struct alb_send_wqe *wqe = s.wqe;
    assert_false(alb_outbound_is_local(wqe));
    assert_int_equal(alb_mw_create(f->pd, ALB_MW_TYPE_2, &mw), 0);
    wqe->opcode = ALB_WR_BIND_MW;
    wqe->sge_count = 0;
    wqe->bind = (struct alb_queued_bind){.mw_key = mw->key,
                                         .mr_key = s.mr->key,
                                         .addr = (uintptr_t)memory,
                                         .length = 8,
                                         .rkey = mw->key,
                                         .access = ALB_ACCESS_REMOTE_READ};
    assert_true(alb_outbound_is_local(wqe));
    assert_int_equal(alb_outbound_check(s.qp, wqe), ALB_WC_SUCCESS);
    assert_int_equal(alb_outbound_execute(s.qp, wqe), ALB_WC_SUCCESS);
    assert_true(mw->is_valid);
    wqe->opcode = ALB_WR_LOCAL_INV;
    wqe->invalidate_rkey = mw->key;
    assert_true(alb_outbound_is_local(wqe));
    assert_int_equal(alb_outbound_execute(s.qp, wqe), ALB_WC_SUCCESS);
    assert_false(mw->is_valid);
    assert_int_equal(alb_outbound_execute(s.qp, wqe), ALB_WC_MW_BIND_ERR);
}

static void outbound_execute__a_window_or_region_that_is_gone(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(state, ALB_WR_SEND, ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_MW_BIND);
    struct alb_region *mw;
    struct alb_send_wqe *wqe = s.wqe;
    assert_int_equal(alb_mw_create(f->pd, ALB_MW_TYPE_1, &mw), 0);
    wqe->opcode = ALB_WR_BIND_MW;
    wqe->sge_count = 0;
    wqe->bind = (struct alb_queued_bind){.mw_key = mw->key,
                                         .mr_key = s.mr->key,
                                         .addr = (uintptr_t)memory,
                                         .length = 8,
                                         .access = ALB_ACCESS_REMOTE_READ};
    assert_int_equal(alb_mr_destroy(s.mr), 0);
    assert_int_equal(alb_outbound_execute(s.qp, wqe), ALB_WC_MW_BIND_ERR);
    assert_int_equal(alb_mw_destroy(mw), 0);
    assert_int_equal(alb_outbound_execute(s.qp, wqe), ALB_WC_MW_BIND_ERR);
}

// ---- corruption on demand -------------------------------------------------------------------------------------------

static void corrupt(struct fixture *f, enum alb_corrupt place)
{
    static struct alb_corruption corruption;
    static uint64_t struck[ALB_CORRUPT_PLACES];
    struct alb_corruption_spec spec = {{0}};
    spec.chance[place] = 1000000000;
    alb_corruption_init(&corruption, &spec, 3, struck);
    f->engine->config.corruption = &corruption;
}

static uint32_t differences(const uint8_t *at, uint32_t length)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < length; i++)
        count += at[i] != 0xcc;
    return count;
}

static void outbound_gather__read_wrongly(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(state, ALB_WR_SEND, 0);
    uint8_t out[64];
    corrupt(f, ALB_CORRUPT_READ);
    assert_true(gather(f, &s, 0, 30, out));
    assert_int_equal(differences(out, 30), 2); // one in each piece
    assert_int_equal(differences(memory, sizeof(memory)), 0);
    s.wqe->flags = ALB_SEND_INLINE;
    memset(s.wqe->inline_data, 0xcc, 30);
    assert_true(gather(f, &s, 0, 30, out));
    assert_int_equal(differences(out, 30), 1);
    assert_int_equal(differences(s.wqe->inline_data, 30), 0);
}

static void change_source__of_what_is_carried(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(state, ALB_WR_RDMA_WRITE, ALB_ACCESS_LOCAL_WRITE);
    alb_outbound_change_source(s.qp, s.wqe);
    assert_int_equal(differences(memory, sizeof(memory)), 0); // not asked for
    corrupt(f, ALB_CORRUPT_SOURCE);
    alb_outbound_change_source(s.qp, s.wqe);
    assert_int_equal(differences(memory, sizeof(memory)), 1);
    assert_int_equal(differences(memory + 100, 10) + differences(memory + 200, 20), 1);
}

// What may be mapped for reading only, what is no source, and what cannot be reached any more.
static void change_source__leaves_the_rest(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(state, ALB_WR_RDMA_WRITE, 0);
    corrupt(f, ALB_CORRUPT_SOURCE);
    alb_outbound_change_source(s.qp, s.wqe);
    s = scene(state, ALB_WR_RDMA_READ, ALB_ACCESS_LOCAL_WRITE);
    alb_outbound_change_source(s.qp, s.wqe);
    s = scene(state, ALB_WR_SEND, ALB_ACCESS_LOCAL_WRITE);
    s.wqe->length = 0;
    alb_outbound_change_source(s.qp, s.wqe);
    s.wqe->length = 30;
    s.wqe->flags = ALB_SEND_INLINE;
    memset(s.wqe->inline_data, 0xcc, 30);
    alb_outbound_change_source(s.qp, s.wqe);
    assert_int_equal(differences(memory, sizeof(memory)), 0);
    assert_int_equal(differences(s.wqe->inline_data, 30), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(outbound_check__reading_and_writing),
        FIXTURE_TEST(outbound_execute__a_window_or_region_that_is_gone),
        FIXTURE_TEST(outbound_gather__any_stretch),
        FIXTURE_TEST(outbound_gather__inline),
        FIXTURE_TEST(outbound_gather__a_key_that_went),
        FIXTURE_TEST(outbound_scatter__any_stretch),
        FIXTURE_TEST(outbound_execute__local_operations),
        FIXTURE_TEST(outbound_gather__read_wrongly),
        FIXTURE_TEST(change_source__of_what_is_carried),
        FIXTURE_TEST(change_source__leaves_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
