// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

static const uint64_t all_of_rc = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |
                                  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE |
                                  IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;

struct pair {
    struct fixture *f;
    struct ibv_qp_ex *a;
    struct ibv_qp *b;
};

static struct pair make_pair(struct fixture *f, uint64_t ops)
{
    struct pair pair = {.f = f, .a = fixture_qp_ex(f, IBV_QPT_RC, ops), .b = fixture_qp(f, IBV_QPT_RC)};
    fixture_connect(&pair.a->qp_base, pair.b);
    return pair;
}

static void end_pair(struct pair *pair)
{
    assert_int_equal(ibv_destroy_qp(&pair->a->qp_base), 0);
    assert_int_equal(ibv_destroy_qp(pair->b), 0);
}

static uint64_t remote(struct fixture *f, size_t offset)
{
    return (uintptr_t)f->memory + offset;
}

static void start(struct pair *pair, uint64_t wr_id)
{
    ibv_wr_start(pair->a);
    pair->a->wr_id = wr_id;
    pair->a->wr_flags = IBV_SEND_SIGNALED;
}

static void set_sge(struct pair *pair, size_t offset, uint32_t length)
{
    ibv_wr_set_sge(pair->a, pair->f->mr->lkey, remote(pair->f, offset), length);
}

static void assert_done(struct pair *pair, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = fixture_wait_for(pair->f->cq, wr_id);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, opcode);
}

static void wr__only_what_was_asked_for(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp_ex *qp = fixture_qp_ex(f, IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
    assert_non_null(qp->wr_send);
    assert_null(qp->wr_rdma_write);
    assert_null(qp->wr_set_ud_addr);
    assert_ptr_equal(ibv_qp_to_qp_ex(&qp->qp_base), qp);
    assert_int_equal(ibv_destroy_qp(&qp->qp_base), 0);
}

static void wr__one_sided(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_pair(f, all_of_rc);
    uint64_t *word = (uint64_t *)(f->memory + 8192), *old = (uint64_t *)(f->memory + 512);

    memcpy(f->memory, "written", 8);
    start(&pair, 1);
    ibv_wr_rdma_write(pair.a, f->mr->rkey, remote(f, 4096));
    set_sge(&pair, 0, 8);
    assert_int_equal(ibv_wr_complete(pair.a), 0);
    assert_done(&pair, 1, IBV_WC_RDMA_WRITE);
    assert_string_equal((char *)f->memory + 4096, "written");

    start(&pair, 2);
    ibv_wr_rdma_read(pair.a, f->mr->rkey, remote(f, 4096));
    set_sge(&pair, 256, 8);
    assert_int_equal(ibv_wr_complete(pair.a), 0);
    assert_done(&pair, 2, IBV_WC_RDMA_READ);
    assert_string_equal((char *)f->memory + 256, "written");

    *word = 40;
    start(&pair, 3);
    ibv_wr_atomic_fetch_add(pair.a, f->mr->rkey, remote(f, 8192), 2);
    set_sge(&pair, 512, 8);
    assert_int_equal(ibv_wr_complete(pair.a), 0);
    assert_done(&pair, 3, IBV_WC_FETCH_ADD);
    assert_int_equal(*word, 42);
    assert_int_equal(*old, 40);

    start(&pair, 4);
    ibv_wr_atomic_cmp_swp(pair.a, f->mr->rkey, remote(f, 8192), 42, 7);
    set_sge(&pair, 512, 8);
    assert_int_equal(ibv_wr_complete(pair.a), 0);
    assert_done(&pair, 4, IBV_WC_COMP_SWAP);
    assert_int_equal(*word, 7);
    assert_int_equal(*old, 42);

    uint64_t value = 0x1122334455667788;
    start(&pair, 5);
    ibv_wr_atomic_write(pair.a, f->mr->rkey, remote(f, 8192), &value);
    value = 0; // taken already
    assert_int_equal(ibv_wr_complete(pair.a), 0);
    assert_done(&pair, 5, IBV_WC_ATOMIC_WRITE);
    assert_true(*word == 0x1122334455667788);
    end_pair(&pair);
}

static void wr__messages(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_pair(f, all_of_rc);
    for (uint64_t i = 0; i < 3; i++)
        fixture_post_recv(f, pair.b, 100 + i, 4096 + 256 * i, 256);

    struct ibv_sge list[2] = {fixture_sge(f, 0, 3), fixture_sge(f, 10, 4)};
    memcpy(f->memory, "abc", 3);
    memcpy(f->memory + 10, "defg", 4);
    start(&pair, 1);
    ibv_wr_send_imm(pair.a, 0x01020304);
    ibv_wr_set_sge_list(pair.a, 2, list);
    assert_int_equal(ibv_wr_complete(pair.a), 0);
    struct ibv_wc wc = fixture_wait_for(f->cq, 100);
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
    assert_int_equal(wc.imm_data, 0x01020304);
    assert_memory_equal(f->memory + 4096, "abcdefg", 7);

    char text[] = "inline";
    struct ibv_data_buf bufs[2] = {{text, 3}, {text + 3, 3}};
    start(&pair, 2);
    ibv_wr_send(pair.a);
    ibv_wr_set_inline_data_list(pair.a, 2, bufs);
    memset(text, 'x', sizeof(text)); // ours again
    assert_int_equal(ibv_wr_complete(pair.a), 0);
    assert_int_equal(fixture_wait_for(f->cq, 101).byte_len, 6);
    assert_memory_equal(f->memory + 4096 + 256, "inline", 6);

    start(&pair, 3);
    ibv_wr_rdma_write_imm(pair.a, f->mr->rkey, remote(f, 16384), 9);
    ibv_wr_set_inline_data(pair.a, "42", 2);
    assert_int_equal(ibv_wr_complete(pair.a), 0);
    wc = fixture_wait_for(f->cq, 102);
    assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_memory_equal(f->memory + 16384, "42", 2);
    end_pair(&pair);
}

static void wr__batch_and_setter_order(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp_ex *a = fixture_qp_ex(f, IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
    struct ibv_qp *b = fixture_qp(f, IBV_QPT_UD);
    struct ibv_ah_attr attr = fixture_ah_attr(f);
    struct ibv_ah *ah = ibv_create_ah(f->pd, &attr);
    fixture_connect(&a->qp_base, b);
    fixture_post_recv(f, b, 1, 4096, 200);
    fixture_post_recv(f, b, 2, 8192, 200);
    ibv_wr_start(a);
    a->wr_flags = 0;
    a->wr_id = 10;
    ibv_wr_send(a);
    ibv_wr_set_sge(a, f->mr->lkey, remote(f, 0), 20);
    ibv_wr_set_ud_addr(a, ah, b->qp_num, 0x1234);
    a->wr_id = 11;
    a->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(a, 5);
    ibv_wr_set_ud_addr(a, ah, b->qp_num, 0x1234);
    ibv_wr_set_sge(a, f->mr->lkey, remote(f, 0), 30);
    assert_int_equal(ibv_wr_complete(a), 0);
    assert_int_equal(fixture_wait_for(f->cq, 1).byte_len, 60);
    assert_int_equal(fixture_wait_for(f->cq, 2).byte_len, 70);
    assert_int_equal(ibv_destroy_qp(&a->qp_base), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

// A setter that belongs to no request would be a request without its data.
static void wr__setter_without_a_request(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_pair(f, all_of_rc);
    start(&pair, 10);
    set_sge(&pair, 0, 10);
    ibv_wr_send(pair.a);
    assert_int_equal(ibv_wr_complete(pair.a), EINVAL);
    start(&pair, 11);
    ibv_wr_set_inline_data(pair.a, "x", 1);
    assert_int_equal(ibv_wr_complete(pair.a), EINVAL);
    end_pair(&pair);
}

// Nothing of a batch is posted when something in it is wrong, or when it is aborted.
static void wr__all_or_nothing(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_pair(f, all_of_rc);
    struct ibv_sge list[3] = {fixture_sge(f, 0, 1), fixture_sge(f, 1, 1), fixture_sge(f, 2, 1)};
    char too_long[65] = "";
    fixture_post_recv(f, pair.b, 1, 4096, 200);

    start(&pair, 10);
    ibv_wr_send(pair.a);
    set_sge(&pair, 0, 10);
    pair.a->wr_id = 11;
    ibv_wr_send(pair.a);
    ibv_wr_set_sge_list(pair.a, 3, list); // two are allowed
    assert_int_equal(ibv_wr_complete(pair.a), EINVAL);

    start(&pair, 12);
    ibv_wr_send(pair.a);
    ibv_wr_set_inline_data(pair.a, too_long, sizeof(too_long));
    assert_int_equal(ibv_wr_complete(pair.a), EINVAL);

    start(&pair, 13);
    pair.a->wr_flags = 1 << 20;
    ibv_wr_send(pair.a);
    set_sge(&pair, 0, 10);
    assert_int_equal(ibv_wr_complete(pair.a), EINVAL);

    start(&pair, 14);
    ibv_wr_bind_mw(pair.a, NULL, 0, NULL);
    assert_int_equal(ibv_wr_complete(pair.a), EINVAL);

    start(&pair, 15);
    ibv_wr_send(pair.a);
    set_sge(&pair, 0, 10);
    ibv_wr_abort(pair.a);

    start(&pair, 16); // more than the queue holds
    for (int i = 0; i < 1000; i++) {
        ibv_wr_send(pair.a);
        set_sge(&pair, 0, 10);
    }
    assert_int_equal(ibv_wr_complete(pair.a), ENOMEM);

    start(&pair, 17);
    ibv_wr_send(pair.a);
    set_sge(&pair, 0, 33);
    assert_int_equal(ibv_wr_complete(pair.a), 0);
    struct ibv_wc wc = fixture_wait(f->cq);
    if (wc.wr_id == 1) {
        assert_int_equal(wc.byte_len, 33);
        wc = fixture_wait(f->cq);
        assert_int_equal(wc.wr_id, 17);
    } else {
        assert_int_equal(wc.wr_id, 17);
        assert_int_equal(fixture_wait(f->cq).byte_len, 33);
    }
    assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
    end_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(wr__only_what_was_asked_for),
        FIXTURE_TEST(wr__one_sided),
        FIXTURE_TEST(wr__messages),
        FIXTURE_TEST(wr__batch_and_setter_order),
        FIXTURE_TEST(wr__setter_without_a_request),
        FIXTURE_TEST(wr__all_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
