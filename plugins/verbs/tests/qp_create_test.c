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
        FIXTURE_TEST(create_qp__arguments),
        FIXTURE_TEST(create_qp__shows_what_it_got),
        FIXTURE_TEST(create_qp_ex__extensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
