// SPDX-License-Identifier: BSD-2-Clause
// Multicast as a program sees it: attach, send to the group, detach, destroy.
#include "fixture.h"

// Groups that no other test uses.
static const union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 96, [14] = 1, [15] = 1}};

static struct ibv_qp *ready_qp(struct fixture *f)
{
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_UD);
    fixture_to_init(qp);
    fixture_to_rtr(qp, 0);
    fixture_to_rts(qp);
    return qp;
}

static struct ibv_ah *group_ah(struct fixture *f)
{
    struct ibv_ah_attr attr = fixture_ah_attr(f);
    attr.grh.dgid = group;
    attr.dlid = 0xc000; // as a subnet administrator would give it
    struct ibv_ah *ah = ibv_create_ah(f->pd, &attr);
    assert_non_null(ah);
    return ah;
}

static void send_to_group(struct fixture *f, struct ibv_qp *qp, struct ibv_ah *ah)
{
    struct ibv_sge sge = fixture_sge(f, 0, 64);
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = 1,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.ud = {.ah = ah, .remote_qpn = 0xffffff},
                             };
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_QKEY, &init), 0);
    wr.wr.ud.remote_qkey = attr.qkey;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    assert_int_equal(fixture_wait_for(f->cq, 1).status, IBV_WC_SUCCESS);
}

static void attach_mcast__every_member_receives(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *sender = ready_qp(f), *members[] = {ready_qp(f), ready_qp(f)};
    struct ibv_ah *ah = group_ah(f);
    memset(f->memory, 0x77, 64);
    memset(f->memory + 1024, 0, 1024);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ibv_attach_mcast(members[i], &group, 0), 0);
        fixture_post_recv(f, members[i], 7, 1024 + 512 * (size_t)i, 104);
    }
    send_to_group(f, sender, ah);
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = fixture_wait_for(f->cq, 7);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.byte_len, 104);
        assert_true(wc.wc_flags & IBV_WC_GRH);
        assert_int_equal(wc.src_qp, sender->qp_num);
    }
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(f->memory + 1024 + 512 * i + 40, f->memory, 64);
        assert_memory_equal(f->memory + 1024 + 512 * i + 36, group.raw + 12, 4);
        assert_int_equal(ibv_detach_mcast(members[i], &group, 0), 0);
        assert_int_equal(ibv_destroy_qp(members[i]), 0);
    }
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_qp(sender), 0);
}

static void attach_mcast__refusals(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *ud = ready_qp(f), *rc = fixture_qp(f, IBV_QPT_RC);
    const union ibv_gid unicast = {.raw = {0xfd}};
    assert_int_equal(ibv_attach_mcast(NULL, &group, 0), EINVAL);
    assert_int_equal(ibv_attach_mcast(ud, NULL, 0), EINVAL);
    assert_int_equal(ibv_attach_mcast(ud, &unicast, 0), EINVAL);
    assert_int_equal(ibv_attach_mcast(rc, &group, 0), EINVAL);
    assert_int_equal(ibv_detach_mcast(ud, &group, 0), EINVAL);
    assert_int_equal(ibv_attach_mcast(ud, &group, 0), 0);
    assert_int_equal(ibv_attach_mcast(ud, &group, 0xc000), 0); // twice is once, and LIDs mean nothing
    assert_int_equal(ibv_destroy_qp(ud), EBUSY);
    assert_int_equal(ibv_detach_mcast(ud, &group, 0), 0);
    assert_int_equal(ibv_detach_mcast(ud, &group, 0), EINVAL);
    assert_int_equal(ibv_destroy_qp(ud), 0);
    assert_int_equal(ibv_destroy_qp(rc), 0);
}

// A connection has one other end.
static void modify_qp__no_connection_to_a_group(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *rc = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = fixture_ah_attr(f)};
    const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    fixture_to_init(rc);
    attr.ah_attr.grh.dgid = group;
    assert_int_equal(ibv_modify_qp(rc, &attr, mask), EINVAL);
    attr.ah_attr = fixture_ah_attr(f);
    assert_int_equal(ibv_modify_qp(rc, &attr, mask), 0);
    assert_int_equal(ibv_destroy_qp(rc), 0);
}

// What a program leaves attached goes with its context.
static void close_device__leaves_groups(void **state)
{
    struct fixture *f = *state;
    struct ibv_context *context = ibv_open_device(f->context->device);
    assert_non_null(context);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    assert_non_null(qp);
    assert_int_equal(ibv_attach_mcast(qp, &group, 0), 0);
    assert_int_equal(ibv_close_device(context), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(attach_mcast__every_member_receives),
        FIXTURE_TEST(attach_mcast__refusals),
        FIXTURE_TEST(modify_qp__no_connection_to_a_group),
        FIXTURE_TEST(close_device__leaves_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
