// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

static void assert_refused(struct fixture *f, struct ibv_qp_init_attr init, int error)
{
    errno = 0;
    assert_null(ibv_create_qp(f->pd, &init));
    assert_int_equal(errno, error);
}

static void create_qp__arguments(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp_init_attr good = fixture_qp_init(f, IBV_QPT_RC), init;
    struct ibv_device_attr limits;
    assert_int_equal(ibv_query_device(f->context, &limits), 0);

    init = good;
    init.send_cq = NULL;
    assert_refused(f, init, EINVAL);
    init = good;
    init.recv_cq = NULL;
    assert_refused(f, init, EINVAL);
    init = good;
    init.cap.max_send_wr = (uint32_t)limits.max_qp_wr + 1;
    assert_refused(f, init, EINVAL);
    init = good;
    init.cap.max_recv_wr = UINT32_MAX;
    assert_refused(f, init, EINVAL);
    init = good;
    init.cap.max_send_sge = (uint32_t)limits.max_sge + 1;
    assert_refused(f, init, EINVAL);
    init = good;
    init.cap.max_inline_data = 1 << 20;
    assert_refused(f, init, EINVAL);
    static const enum ibv_qp_type absent[] = {IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER};
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        init = good;
        init.qp_type = absent[i];
        assert_refused(f, init, EOPNOTSUPP);
    }
    init = good;
    init.qp_type = 77;
    assert_refused(f, init, EINVAL);
    assert_null(ibv_create_qp(NULL, &good));
    assert_null(ibv_create_qp(f->pd, NULL));
    assert_int_equal(ibv_destroy_qp(NULL), EINVAL);
}

static void create_qp__shows_what_it_got(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp_init_attr init = fixture_qp_init(f, IBV_QPT_UC), queried;
    struct ibv_qp_attr attr;
    init.sq_sig_all = 1;
    struct ibv_qp *qp = ibv_create_qp(f->pd, &init);
    assert_non_null(qp);
    assert_true(init.cap.max_send_wr >= 16 && init.cap.max_inline_data >= 64);
    assert_ptr_equal(qp->qp_context, f);
    assert_ptr_equal(qp->pd, f->pd);
    assert_int_equal(qp->state, IBV_QPS_RESET);
    assert_in_range(qp->qp_num, 16, 0xfffffe);
    assert_null(ibv_qp_to_qp_ex(qp));
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &queried), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_RESET);
    assert_memory_equal(&attr.cap, &init.cap, sizeof(attr.cap));
    assert_memory_equal(&queried.cap, &init.cap, sizeof(attr.cap));
    assert_int_equal(queried.qp_type, IBV_QPT_UC);
    assert_int_equal(queried.sq_sig_all, 1);
    assert_ptr_equal(queried.send_cq, f->cq);
    assert_int_equal(ibv_query_qp(qp, NULL, 0, &queried), EINVAL);
    assert_int_equal(ibv_query_qp(NULL, &attr, 0, &queried), EINVAL);
    assert_int_equal(ibv_dealloc_pd(f->pd), EBUSY);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

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

static void modify_qp__refused(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    const int init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    assert_int_equal(ibv_modify_qp(NULL, &attr, init_mask), EINVAL);
    assert_int_equal(ibv_modify_qp(qp, NULL, init_mask), EINVAL);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);          // attributes missing
    assert_int_equal(ibv_modify_qp(qp, &attr, init_mask | 1 << 30), EINVAL);   // unknown attribute
    assert_int_equal(ibv_modify_qp(qp, &attr, init_mask | IBV_QP_AV), EINVAL); // not in this move
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

static void assert_ex_refused(struct fixture *f, struct ibv_qp_init_attr_ex init, int error)
{
    errno = 0;
    assert_null(ibv_create_qp_ex(f->context, &init));
    assert_int_equal(errno, error);
}

static void create_qp_ex__extensions(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp_init_attr base = fixture_qp_init(f, IBV_QPT_RC);
    const struct ibv_qp_init_attr_ex good = {.send_cq = f->cq,
                                             .recv_cq = f->cq,
                                             .cap = base.cap,
                                             .qp_type = IBV_QPT_RC,
                                             .comp_mask = IBV_QP_INIT_ATTR_PD,
                                             .pd = f->pd};
    struct ibv_qp_init_attr_ex init = good;
    struct verbs_context *verbs = verbs_get_ctx(f->context);
    assert_null(verbs->create_qp_ex(f->context, NULL));
    init.comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS; // no protection domain
    assert_ex_refused(f, init, EINVAL);
    init = good;
    init.pd = NULL;
    init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    assert_ex_refused(f, init, EINVAL);
    init = good;
    init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    assert_ex_refused(f, init, EOPNOTSUPP);
    init = good;
    init.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    assert_ex_refused(f, init, EOPNOTSUPP);
    init = good;
    init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = IBV_QP_EX_WITH_TSO;
    assert_ex_refused(f, init, EOPNOTSUPP);
    init.send_ops_flags = 1ull << 40;
    assert_ex_refused(f, init, EOPNOTSUPP);
    init.qp_type = IBV_QPT_UD;
    init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
    assert_ex_refused(f, init, EOPNOTSUPP);
    init = good;
    init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    struct ibv_qp *qp = ibv_create_qp_ex(f->context, &init);
    assert_non_null(qp);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(create_qp__arguments),           FIXTURE_TEST(create_qp__shows_what_it_got),
        FIXTURE_TEST(modify_qp__comes_back_in_query), FIXTURE_TEST(modify_qp__refused),
        FIXTURE_TEST(modify_qp__reset_forgets),       FIXTURE_TEST(destroy_qp__owes_nothing),
        FIXTURE_TEST(destroy_qp__without_an_answer),  FIXTURE_TEST(create_qp_ex__extensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
