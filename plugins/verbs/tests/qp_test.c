// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

static void modify_qp__comes_back_in_query(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    union ibv_gid gid;
    fixture_connect(a, b);
    assert_int_equal(a->state, IBV_QPS_RTS);
    assert_int_equal(ibv_query_qp(a, &attr, 0, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_RTS);
    assert_int_equal(attr.cur_qp_state, IBV_QPS_RTS);
    assert_int_equal(attr.path_mtu, IBV_MTU_1024);
    assert_int_equal(attr.dest_qp_num, b->qp_num);
    assert_int_equal(attr.timeout, 17);
    assert_int_equal(attr.retry_cnt, 7);
    assert_int_equal(attr.rnr_retry, 7);
    assert_int_equal(attr.min_rnr_timer, 12);
    assert_int_equal(attr.max_rd_atomic, 4);
    assert_int_equal(attr.port_num, 1);
    assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    assert_int_equal(ibv_query_gid(f->context, 1, 0, &gid), 0);
    assert_memory_equal(&attr.ah_attr.grh.dgid, &gid, sizeof(gid));
    assert_int_equal(attr.ah_attr.is_global, 1);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

// DLSlime asks for 32, which a NIC's driver writes to a field of five bits.
static void modify_qp__takes_five_bits_of_the_rnr_timer(void **state)
{
    struct ibv_qp *a = fixture_qp(*state, IBV_QPT_RC), *b = fixture_qp(*state, IBV_QPT_RC);
    struct ibv_qp_attr attr = {.min_rnr_timer = 32 + 13};
    struct ibv_qp_init_attr init;
    fixture_connect(a, b);
    assert_int_equal(ibv_modify_qp(a, &attr, IBV_QP_MIN_RNR_TIMER), 0);
    assert_int_equal(ibv_query_qp(a, &attr, 0, &init), 0);
    assert_int_equal(attr.min_rnr_timer, 13);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

static void modify_qp__refused(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    const int init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    assert_int_equal(ibv_modify_qp(NULL, &attr, init_mask), EINVAL);
    assert_int_equal(ibv_modify_qp(qp, NULL, init_mask), EINVAL);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);           // attributes missing
    assert_int_equal(ibv_modify_qp(qp, &attr, init_mask | 1 << 30), EINVAL);    // unknown attribute
    assert_int_equal(ibv_modify_qp(qp, &attr, init_mask | IBV_QP_AV), EINVAL);  // not in this move
    assert_int_equal(ibv_modify_qp(qp, &attr, init_mask | IBV_QP_CAP), EINVAL); // in none
    assert_int_equal(ibv_modify_qp(qp, &attr, init_mask | IBV_QP_RATE_LIMIT), EINVAL);
    attr.port_num = 2;
    assert_int_equal(ibv_modify_qp(qp, &attr, init_mask), EINVAL);
    attr.port_num = 1;
    attr.pkey_index = 1;
    assert_int_equal(ibv_modify_qp(qp, &attr, init_mask), EINVAL);
    attr.pkey_index = 0;
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), EINVAL); // no such move
    attr.qp_state = 99;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
    assert_int_equal(qp->state, IBV_QPS_RESET);

    fixture_to_init(qp);
    const int rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = fixture_ah_attr(f)};
    attr.ah_attr.is_global = 0;
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr_mask), EINVAL);
    attr.ah_attr = fixture_ah_attr(f);
    attr.ah_attr.grh.sgid_index = 99;
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr_mask), EINVAL);
    attr.ah_attr = fixture_ah_attr(f);
    attr.path_mtu = 0;
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr_mask), EINVAL);
    attr.path_mtu = 6;
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr_mask), EINVAL);
    attr.path_mtu = IBV_MTU_1024;
    attr.max_dest_rd_atomic = 255;
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr_mask), EINVAL);
    attr.max_dest_rd_atomic = 1;
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr_mask), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void modify_qp__reset_forgets(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_wc wc;
    fixture_to_init(qp);
    fixture_post_recv(f, qp, 1, 0, 10);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RESET;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0); // the flushed receive went with the old life
    fixture_to_init(qp);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

// The peer of a queue pair that is reset right after its last completion still gets its acknowledgement.
static void modify_qp__reset_owes_nothing(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    for (int round = 0; round < 20; round++) {
        struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
        fixture_connect(a, b);
        fixture_post_recv(f, b, 1, 4096, 100);
        fixture_post_send(f, a, 2, 0, 100);
        struct ibv_wc wc = fixture_wait(f->cq);
        assert_int_equal(ibv_modify_qp(b, &attr, IBV_QP_STATE), 0);
        if (wc.wr_id == 1)
            wc = fixture_wait(f->cq);
        assert_int_equal(wc.wr_id, 2);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(ibv_destroy_qp(a), 0);
        assert_int_equal(ibv_destroy_qp(b), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(modify_qp__comes_back_in_query),
        FIXTURE_TEST(modify_qp__takes_five_bits_of_the_rnr_timer),
        FIXTURE_TEST(modify_qp__refused),
        FIXTURE_TEST(modify_qp__reset_forgets),
        FIXTURE_TEST(modify_qp__reset_owes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
