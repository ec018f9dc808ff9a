// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(destroy_qp__owes_nothing),
        FIXTURE_TEST(destroy_qp__without_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
