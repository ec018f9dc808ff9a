// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

static const int window_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

// The status of an 8-byte WRITE through a key, to the byte at 1024 of the fixture's memory.
static enum ibv_wc_status write_through(struct fixture *f, struct ibv_qp *qp, uint32_t rkey)
{
    struct ibv_sge sge = fixture_sge(f, 0, 8);
    struct ibv_send_wr wr = {.wr_id = 99,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = (uintptr_t)f->memory + 1024, .rkey = rkey}},
                       *bad;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    return fixture_wait_for(f->cq, 99).status;
}

static struct ibv_mw_bind bind_of(struct fixture *f, uint64_t length)
{
    return (struct ibv_mw_bind){.wr_id = 5,
                                .send_flags = IBV_SEND_SIGNALED,
                                .bind_info = {.mr = f->mr,
                                              .addr = (uintptr_t)f->memory + 1024,
                                              .length = length,
                                              .mw_access_flags = length ? (unsigned int)window_access : 0}};
}

static void bind_mw__type_1(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = bind_of(f, 8);
    assert_non_null(mw);
    fixture_connect(a, b);
    uint32_t first = mw->rkey;
    assert_int_equal(ibv_bind_mw(b, mw, &bind), 0);
    assert_int_equal(mw->rkey, ibv_inc_rkey(first)); // known at once
    struct ibv_wc wc = fixture_wait_for(f->cq, 5);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
    assert_int_equal(write_through(f, a, mw->rkey), IBV_WC_SUCCESS);

    bind = bind_of(f, 0);
    uint32_t bound = mw->rkey;
    assert_int_equal(ibv_bind_mw(b, mw, &bind), 0);
    assert_int_equal(fixture_wait_for(f->cq, 5).status, IBV_WC_SUCCESS);
    assert_int_equal(write_through(f, a, bound), IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

static void bind_mw__type_2(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_2);
    struct ibv_send_wr wr = {.wr_id = 6,
                             .opcode = IBV_WR_BIND_MW,
                             .send_flags = IBV_SEND_SIGNALED,
                             .bind_mw = {.mw = mw,
                                         .rkey = ibv_inc_rkey(mw->rkey),
                                         .bind_info = bind_of(f, 8).bind_info}},
                       *bad;
    fixture_connect(a, b);
    assert_int_equal(ibv_post_send(b, &wr, &bad), 0);
    assert_int_equal(fixture_wait_for(f->cq, 6).status, IBV_WC_SUCCESS);
    assert_int_equal(write_through(f, a, wr.bind_mw.rkey), IBV_WC_SUCCESS);
    uint32_t bound = wr.bind_mw.rkey;
    wr = (struct ibv_send_wr){
        .wr_id = 7, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = bound};
    assert_int_equal(ibv_post_send(b, &wr, &bad), 0);
    struct ibv_wc wc = fixture_wait_for(f->cq, 7);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_LOCAL_INV);
    assert_int_equal(write_through(f, a, bound), IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

// What a request says of the key beside its low byte is any.
static void bind_mw__the_window_knows_its_key(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_2);
    uint32_t key = ibv_inc_rkey(mw->rkey);
    struct ibv_send_wr wr = {.wr_id = 6,
                             .opcode = IBV_WR_BIND_MW,
                             .send_flags = IBV_SEND_SIGNALED,
                             .bind_mw = {.mw = mw, .rkey = key ^ 0xffff00, .bind_info = bind_of(f, 8).bind_info}},
                       *bad;
    assert_int_not_equal(ibv_post_send(b, &wr, &bad), 0); // not connected yet
    assert_int_not_equal(mw->rkey, key);
    fixture_connect(a, b);
    assert_int_equal(ibv_post_send(b, &wr, &bad), 0);
    assert_int_equal(mw->rkey, key);
    assert_int_equal(fixture_wait_for(f->cq, 6).status, IBV_WC_SUCCESS);
    assert_int_equal(write_through(f, a, key), IBV_WC_SUCCESS);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

static void bind_mw__refused(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC), *peer = fixture_qp(f, IBV_QPT_RC);
    struct ibv_mw *one = ibv_alloc_mw(f->pd, IBV_MW_TYPE_1), *two = ibv_alloc_mw(f->pd, IBV_MW_TYPE_2);
    struct ibv_mw_bind bind = bind_of(f, 8);
    fixture_connect(qp, peer);
    assert_null(ibv_alloc_mw(f->pd, 7));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_bind_mw(qp, two, &bind), EINVAL); // by a work request only
    bind.send_flags = IBV_SEND_INLINE;
    uint32_t key = one->rkey;
    assert_int_equal(ibv_bind_mw(qp, one, &bind), EINVAL);
    assert_int_equal(one->rkey, key);
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .bind_mw = {.mw = one, .bind_info = bind.bind_info}},
                       *bad = NULL;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr);
    wr.bind_mw.mw = NULL;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    assert_int_equal(ibv_dealloc_mw(one), 0);
    assert_int_equal(ibv_dealloc_mw(two), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_qp(peer), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(bind_mw__type_1), FIXTURE_TEST(bind_mw__type_2),
                                       FIXTURE_TEST(bind_mw__the_window_knows_its_key), FIXTURE_TEST(bind_mw__refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
