// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include <pthread.h>
#include <unistd.h>

// The peer of a queue pair that is destroyed right after its last completion still gets its acknowledgement.
static void destroy_qp__owes_nothing(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 20; round++) {
        struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
        fixture_connect(a, b);
        fixture_post_recv(f, b, 1, 4096, 100);
        fixture_post_send(f, a, 2, 0, 100);
        struct ibv_wc wc = fixture_wait(f->cq);
        bool is_recv = wc.wr_id == 1;
        if (is_recv)
            assert_int_equal(ibv_destroy_qp(b), 0);
        if (is_recv) {
            wc = fixture_wait(f->cq);
            assert_int_equal(wc.wr_id, 2);
            assert_int_equal(wc.status, IBV_WC_SUCCESS);
        } else {
            assert_int_equal(ibv_destroy_qp(b), 0);
        }
        assert_int_equal(ibv_destroy_qp(a), 0);
    }
}

// Many queue pairs whose peer never answers: they are not waited for one by one, which would outlast this test's time
// limit.
static void destroy_qp__without_an_answer(void **state)
{
    enum { COUNT = 1000 };
    struct fixture *f = *state;
    static struct ibv_qp *qps[COUNT];
    for (int i = 0; i < COUNT; i++) {
        qps[i] = fixture_qp(f, IBV_QPT_RC);
        fixture_to_init(qps[i]);
        fixture_to_rtr(qps[i], 0x00000f); // no queue pair has this number
        fixture_to_rts(qps[i]);
        fixture_post_send(f, qps[i], 1, 0, 10);
    }
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(ibv_destroy_qp(qps[i]), 0);
}

static struct ibv_qp *create_qp(struct fixture *f, struct ibv_cq *cq, uint32_t send_wr)
{
    struct ibv_qp_init_attr init = fixture_qp_init(f, IBV_QPT_RC);
    init.send_cq = init.recv_cq = cq;
    init.cap.max_send_wr = send_wr;
    struct ibv_qp *qp = ibv_create_qp(f->pd, &init);
    assert_non_null(qp);
    return qp;
}

static void *destroy(void *qp)
{
    return (void *)(intptr_t)ibv_destroy_qp(qp);
}

// A queue pair is there for the handler of an event that comes while it is being destroyed: here another thread is held
// up by one that reads completions.
static void destroy_qp__an_event_comes_meanwhile(void **state)
{
    struct fixture *f = *state;
    struct ibv_cq_init_attr_ex cq_init = {.cqe = 64, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(f->context, &cq_init);
    struct ibv_poll_cq_attr poll = {0};
    struct ibv_qp *qp = create_qp(f, ibv_cq_ex_to_cq(cq), 16), *peer = fixture_qp(f, IBV_QPT_RC);
    fixture_connect(qp, peer);
    fixture_post_recv(f, peer, 1, 4096, 100);
    fixture_post_send(f, qp, 2, 0, 100);
    fixture_wait_for(f->cq, 1);
    while (ibv_start_poll(cq, &poll) == ENOENT)
        ;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, destroy, qp), 0);
    usleep(50000); // it waits until the completions have been read, as a rule
    struct ibv_sge sge = fixture_sge(f, 0, 8);
    struct ibv_send_wr write = {.wr_id = 3, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    write.wr.rdma.rkey = ~f->mr->rkey;
    assert_int_equal(ibv_post_send(peer, &write, &bad), 0);
    assert_int_equal(fixture_wait_for(f->cq, 3).status, IBV_WC_REM_ACCESS_ERR);
    struct ibv_async_event event;
    assert_int_equal(ibv_get_async_event(f->context, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
    assert_ptr_equal(event.element.qp, qp);
    ibv_end_poll(cq);
    usleep(50000); // if its memory is given back now, the others get it
    struct ibv_qp *others[4];
    for (size_t i = 0; i < 4; i++)
        others[i] = create_qp(f, f->cq, 4);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
    assert_int_equal(init.cap.max_send_wr, 16);
    ibv_ack_async_event(&event);
    void *error;
    assert_int_equal(pthread_join(thread, &error), 0);
    assert_null(error);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(ibv_destroy_qp(others[i]), 0);
    assert_int_equal(ibv_destroy_qp(peer), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(destroy_qp__owes_nothing),
        FIXTURE_TEST(destroy_qp__without_an_answer),
        FIXTURE_TEST(destroy_qp__an_event_comes_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
