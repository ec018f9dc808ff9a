// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

static void post_send__refused(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC), *peer = fixture_qp(f, IBV_QPT_RC);
    struct ibv_sge sge[3] = {fixture_sge(f, 0, 8), fixture_sge(f, 0, 8), fixture_sge(f, 0, 8)};
    const struct ibv_send_wr good = {.sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_send_wr wr = good, *bad = NULL;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL); // RESET
    assert_ptr_equal(bad, &wr);
    fixture_to_init(qp);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL); // INIT
    fixture_to_rtr(qp, peer->qp_num);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL); // RTR
    fixture_to_rts(qp);

    wr = good;
    wr.num_sge = -1;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    wr = good;
    wr.sg_list = NULL;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    wr = good;
    wr.num_sge = 3;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    wr = good;
    wr.opcode = IBV_WR_TSO;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    wr = good;
    wr.opcode = 1000;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    wr = good;
    wr.send_flags = IBV_SEND_IP_CSUM;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    wr = good;
    sge[0].length = 1000;
    wr.send_flags = IBV_SEND_INLINE;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_qp(peer), 0);
}

static void post_send__ud_needs_an_address(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_UD);
    struct ibv_sge sge = fixture_sge(f, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    fixture_to_init(qp);
    fixture_to_rtr(qp, 0);
    fixture_to_rts(qp);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = 4096; // is where the address handle would be
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

// A list is posted up to the request that is wrong.
static void post_send__list_up_to_the_bad_one(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    struct ibv_sge sge = fixture_sge(f, 0, 8);
    struct ibv_send_wr wr[3], *bad = NULL;
    fixture_connect(a, b);
    fixture_post_recv(f, b, 100, 4096, 100);
    fixture_post_recv(f, b, 101, 4196, 100);
    for (uint64_t i = 0; i < 3; i++)
        wr[i] = (struct ibv_send_wr){.wr_id = i,
                                     .next = i < 2 ? &wr[i + 1] : NULL,
                                     .sg_list = &sge,
                                     .num_sge = 1,
                                     .opcode = IBV_WR_SEND,
                                     .send_flags = IBV_SEND_SIGNALED};
    wr[1].opcode = 1000;
    assert_int_equal(ibv_post_send(a, wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr[1]);
    assert_int_equal(fixture_wait_for(f->cq, 0).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_post_send(a, NULL, &bad), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

static void post_send__full(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    fixture_connect(a, b); // and no receive posted: nothing completes
    assert_int_equal(ibv_query_qp(a, &attr, IBV_QP_CAP, &init), 0);
    for (uint32_t i = 0; i < init.cap.max_send_wr; i++)
        fixture_post_send(f, a, i, 0, 8);
    struct ibv_sge sge = fixture_sge(f, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    assert_int_equal(ibv_post_send(a, &wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &wr);
    attr.qp_state = IBV_QPS_ERR; // flushes them all
    assert_int_equal(ibv_modify_qp(a, &attr, IBV_QP_STATE), 0);
    for (uint32_t i = 0; i < init.cap.max_send_wr; i++) {
        struct ibv_wc wc = fixture_wait(f->cq);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

static void post_recv__refused_and_full(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct ibv_sge sge[3] = {fixture_sge(f, 0, 8), fixture_sge(f, 0, 8), fixture_sge(f, 0, 8)};
    const struct ibv_recv_wr good = {.sg_list = sge, .num_sge = 1};
    struct ibv_recv_wr wr = good, *bad = NULL;
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL); // RESET
    assert_ptr_equal(bad, &wr);
    fixture_to_init(qp);
    wr.num_sge = 3;
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
    wr.num_sge = -1;
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
    wr = good;
    wr.sg_list = NULL;
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
    wr.num_sge = 0;
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
    for (uint32_t i = 1; i < init.cap.max_recv_wr; i++)
        assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), ENOMEM);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

// A receive posted to a queue pair in error comes back flushed.
static void post_recv__in_error(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    fixture_to_init(qp);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    fixture_post_recv(f, qp, 8, 0, 10);
    struct ibv_wc wc = fixture_wait(f->cq);
    assert_int_equal(wc.wr_id, 8);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void srq__arguments(void **state)
{
    struct fixture *f = *state;
    struct ibv_device_attr limits;
    struct ibv_srq_init_attr init = {.srq_context = f, .attr = {.max_wr = 10, .max_sge = 2, .srq_limit = 1000}};
    struct ibv_srq_attr attr;
    assert_int_equal(ibv_query_device(f->context, &limits), 0);
    struct ibv_srq *srq = ibv_create_srq(f->pd, &init); // the limit is ignored at creation
    assert_non_null(srq);
    assert_true(init.attr.max_wr >= 10 && init.attr.max_sge >= 2);
    assert_ptr_equal(srq->srq_context, f);
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 0);

    attr.srq_limit = 5;
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
    attr.srq_limit = attr.max_wr + 1;
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    attr.max_wr = 100;
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_true(attr.max_wr >= 100);
    assert_int_equal(attr.srq_limit, 5);
    attr.max_wr = 0;
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
    assert_int_equal(ibv_modify_srq(srq, &attr, 1 << 9), EINVAL);
    assert_int_equal(ibv_modify_srq(srq, NULL, IBV_SRQ_LIMIT), EINVAL);
    assert_int_equal(ibv_modify_srq(NULL, &attr, IBV_SRQ_LIMIT), EINVAL);
    assert_int_equal(ibv_query_srq(srq, NULL), EINVAL);

    struct ibv_sge sge[3] = {fixture_sge(f, 0, 1), fixture_sge(f, 0, 1), fixture_sge(f, 0, 1)};
    struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 3}, *bad = NULL;
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr);
    wr.num_sge = -1;
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
    assert_int_equal(ibv_destroy_srq(srq), 0);

    init.attr = (struct ibv_srq_attr){.max_wr = (uint32_t)limits.max_srq_wr + 1, .max_sge = 1};
    assert_null(ibv_create_srq(f->pd, &init));
    assert_int_equal(errno, EINVAL);
    init.attr = (struct ibv_srq_attr){.max_wr = 1, .max_sge = (uint32_t)limits.max_srq_sge + 1};
    assert_null(ibv_create_srq(f->pd, &init));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_create_srq(NULL, &init));
    assert_int_equal(ibv_destroy_srq(NULL), EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(post_send__refused),
        FIXTURE_TEST(post_send__ud_needs_an_address),
        FIXTURE_TEST(post_send__list_up_to_the_bad_one),
        FIXTURE_TEST(post_send__full),
        FIXTURE_TEST(post_recv__refused_and_full),
        FIXTURE_TEST(post_recv__in_error),
        FIXTURE_TEST(srq__arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
