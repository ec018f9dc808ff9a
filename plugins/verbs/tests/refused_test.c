// SPDX-License-Identifier: BSD-2-Clause
// What this device has not: refused with the errno of the manual page, never accepted.
#include "fixture.h"

#include <dlfcn.h>
#include <stdlib.h>

static void refused__pointers(void **state)
{
    struct fixture *f = *state;
    struct ibv_alloc_dm_attr dm = {.length = 4096};
    struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ};
    struct ibv_rwq_ind_table_init_attr table = {0};
    struct ibv_counters_init_attr counters = {0};
    struct ibv_srq_init_attr_ex tag_matching = {.attr = {.max_wr = 1},
                                                .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
                                                .srq_type = IBV_SRQT_TM,
                                                .pd = f->pd};
#define REFUSED(call)                        \
    do {                                     \
        errno = 0;                           \
        assert_null(call);                   \
        assert_int_equal(errno, EOPNOTSUPP); \
    } while (0)
    REFUSED(ibv_alloc_dm(f->context, &dm));
    REFUSED(ibv_create_wq(f->context, &wq));
    REFUSED(ibv_create_rwq_ind_table(f->context, &table));
    REFUSED(ibv_create_counters(f->context, &counters));
    REFUSED(ibv_create_srq_ex(f->context, &tag_matching));
    REFUSED(ibv_alloc_null_mr(f->pd));
    REFUSED(ibv_reg_dmabuf_mr(f->pd, 0, 4096, 0, 0, 0));
    REFUSED(ibv_import_device(f->context->cmd_fd));
    REFUSED(ibv_import_pd(f->context, f->pd->handle));
    REFUSED(ibv_import_mr(f->pd, f->mr->handle));
    REFUSED(ibv_import_dm(f->context, 0));
}

static void refused__numbers(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_UD);
    struct ibv_sge sge = fixture_sge(f, 0, 10);
    struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE};
    struct ibv_qp_rate_limit_attr rate = {0};
    struct ibv_ece ece = {0};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    assert_int_equal(ibv_advise_mr(f->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
    assert_int_equal(ibv_modify_cq(f->cq, &moderate), EOPNOTSUPP);
    assert_int_equal(ibv_modify_qp_rate_limit(qp, &rate), EOPNOTSUPP);
    assert_int_equal(ibv_query_ece(qp, &ece), EOPNOTSUPP);
    assert_int_equal(ibv_set_ece(qp, &ece), EOPNOTSUPP);
    assert_int_equal(ibv_query_ece(qp, NULL), EINVAL);
    assert_int_equal(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
    fixture_to_init(qp);
    fixture_to_rtr(qp, 0);
    assert_int_not_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RATE_LIMIT), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

// RDMA FLUSH, by the numbers of later headers.
static void refused__flush(void **state)
{
    enum { WITH_FLUSH = 1 << 11, WR_FLUSH = 14, ACCESS_FLUSH_GLOBAL = 1 << 8 };
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_init_attr_ex init = {.send_cq = f->cq,
                                       .recv_cq = f->cq,
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = f->pd,
                                       .send_ops_flags = WITH_FLUSH};
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ | ACCESS_FLUSH_GLOBAL};
    struct ibv_send_wr wr = {.opcode = (enum ibv_wr_opcode)WR_FLUSH}, *bad;
    int mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
    errno = 0;
    assert_null(ibv_create_qp_ex(f->context, &init));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0); // drivers ignore it, so that programs ask without looking
    assert_int_equal(ibv_query_qp(qp, &attr, mask, &(struct ibv_qp_init_attr){0}), 0);
    assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ);
    fixture_to_rtr(qp, qp->qp_num);
    fixture_to_rts(qp);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

// ---- errno ----------------------------------------------------------------------------------------------------------

// What a call returns, whichever sign it has, is in errno.
#define SAYS(error, call)                    \
    do {                                     \
        errno = 0;                           \
        assert_int_equal((call), (error));   \
        assert_int_equal(errno, abs(error)); \
    } while (0)

static void errno__of_queue_pairs_and_groups(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_UD);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    struct ibv_qp_init_attr init;
    struct ibv_ece ece = {0};
    union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 77}};
    SAYS(EINVAL, ibv_modify_qp(qp, &attr, IBV_QP_STATE)); // not from RESET
    SAYS(EINVAL, ibv_modify_qp(qp, &attr, 1 << 30));
    SAYS(EINVAL, ibv_modify_qp(qp, NULL, 0));
    SAYS(EINVAL, ibv_query_qp(qp, NULL, 0, &init));
    SAYS(EINVAL, ibv_attach_mcast(qp, NULL, 0));
    SAYS(EINVAL, ibv_attach_mcast(qp, &(union ibv_gid){.raw = {1}}, 0)); // no group
    SAYS(EINVAL, ibv_detach_mcast(qp, &group, 0));                       // it is in none
    SAYS(EOPNOTSUPP, ibv_query_ece(qp, &ece));
    SAYS(EOPNOTSUPP, ibv_set_ece(qp, &ece));
    SAYS(EINVAL, ibv_set_ece(qp, NULL));
    SAYS(EINVAL, ibv_destroy_qp(NULL));
    errno = 7;
    assert_int_equal(ibv_query_qp(qp, &attr, 0, &init), 0);
    assert_int_equal(errno, 7); // success leaves it alone
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void errno__of_other_queues(void **state)
{
    struct fixture *f = *state;
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(f->pd, &init);
    struct ibv_srq_attr attr = {.srq_limit = UINT32_MAX - 1};
    uint32_t number;
    SAYS(EINVAL, ibv_resize_cq(f->cq, 0));
    SAYS(EINVAL, ibv_resize_cq(f->cq, INT32_MAX));
    SAYS(EINVAL, ibv_destroy_cq(NULL));
    SAYS(EINVAL, ibv_modify_srq(srq, &attr, 1 << 10));
    SAYS(EINVAL, ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
    SAYS(EINVAL, ibv_query_srq(srq, NULL));
    SAYS(EINVAL, ibv_get_srq_num(srq, &number));
    SAYS(EINVAL, ibv_destroy_srq(NULL));
    SAYS(EINVAL, ibv_destroy_comp_channel(NULL));
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void errno__of_memory(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {
        .wr_id = 5,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = {
            .mr = f->mr, .addr = (uintptr_t)f->memory, .length = 8, .mw_access_flags = IBV_ACCESS_REMOTE_READ}};
    fixture_connect(a, b);
    assert_int_equal(ibv_bind_mw(a, mw, &bind), 0);
    assert_int_equal(fixture_wait_for(f->cq, 5).status, IBV_WC_SUCCESS);
    SAYS(EBUSY, ibv_dereg_mr(f->mr)); // the window is bound to it
    SAYS(EINVAL, ibv_dereg_mr(NULL));
    SAYS(EBUSY, ibv_dealloc_pd(f->pd));
    SAYS(EINVAL, ibv_dealloc_pd(NULL));
    SAYS(EINVAL, ibv_destroy_ah(NULL));
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

static void errno__of_devices_and_ports(void **state)
{
    struct fixture *f = *state;
    struct verbs_context *verbs = verbs_get_ctx(f->context);
    struct ibv_query_device_ex_input input = {.comp_mask = 1};
    struct ibv_device_attr_ex device;
    struct ibv_port_attr port;
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RESERVED};
    struct ibv_gid_entry entry;
    struct ibv_ah_attr ah = fixture_ah_attr(f);
    uint8_t mac[ETHERNET_LL_SIZE];
    int (*query_speed)(struct ibv_context *, uint32_t, uint64_t *) =
        (int (*)(struct ibv_context *, uint32_t, uint64_t *))dlvsym(RTLD_DEFAULT, "ibv_query_port_speed",
                                                                    "IBVERBS_1.16");
    int (*later)(void) = (int (*)(void))dlvsym(RTLD_DEFAULT, "ibv_read_comp_cntr", "IBVERBS_1.18");
    assert_true(query_speed && later);
    SAYS(EINVAL, ibv_query_device(f->context, NULL));
    SAYS(EINVAL, verbs->query_device_ex(f->context, &input, &device, sizeof(device)));
    SAYS(EINVAL, ibv_query_port(f->context, 2, &port));
    SAYS(EINVAL, (ibv_query_port)(NULL, 1, (struct _compat_ibv_port_attr *)&port));
    SAYS(EINVAL, query_speed(f->context, 2, NULL));
    SAYS(EINVAL, verbs->query_rt_values(f->context, &values));
    SAYS(EINVAL, ibv_query_gid_ex(f->context, 1, 1000, &entry, 0));
    SAYS(ENODATA, ibv_query_gid_ex(f->context, 1, 15, &entry, 0)); // empty
    SAYS(-EINVAL, ibv_query_gid_table(f->context, &entry, 0, 0));
    SAYS(-EINVAL, ibv_query_gid_table(f->context, &entry, 1, 1));
    SAYS(-EOPNOTSUPP, ibv_resolve_eth_l2_from_gid(f->context, &ah, mac, NULL));
    SAYS(EOPNOTSUPP, later());
    SAYS(EINVAL, ibv_close_device(NULL));
}

// ---- names ----------------------------------------------------------------------------------------------------------

// The names that provider libraries import can be found and called.
static void private_names__by_node(void **state)
{
    static const char *const nodes[] = {"IBVERBS_PRIVATE_34", "IBVERBS_PRIVATE_57", "IBVERBS_PRIVATE_59",
                                        "IBVERBS_PRIVATE_64", "IBVERBS_PRIVATE_65"};
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        int (*create)(void) = (int (*)(void))dlvsym(RTLD_DEFAULT, "ibv_cmd_create_qp_ex2", nodes[i]);
        assert_non_null(create);
        assert_int_equal(create(), EOPNOTSUPP);
        void *(*open_device)(void) = (void *(*)(void))dlvsym(RTLD_DEFAULT, "verbs_open_device", nodes[i]);
        assert_non_null(open_device);
        assert_null(open_device());
        assert_non_null(dlvsym(RTLD_DEFAULT, "verbs_allow_disassociate_destroy", nodes[i]));
    }
    void (*register_driver)(const void *) =
        (void (*)(const void *))dlvsym(RTLD_DEFAULT, "verbs_register_driver_34", "IBVERBS_PRIVATE_34");
    assert_non_null(register_driver);
    register_driver(NULL);
}

static void wr_opcode_str__in_the_words_of_rdma_core(void **state)
{
    const char *(*word)(int) = (const char *(*)(int))dlvsym(RTLD_DEFAULT, "ibv_wr_opcode_str", "IBVERBS_PRIVATE_34");
    assert_non_null(word);
    assert_string_equal(word(IBV_WR_RDMA_WRITE), "rdma-write");
    assert_string_equal(word(IBV_WR_SEND_WITH_INV), "send-with-inv");
    assert_string_equal(word(IBV_WR_TSO), "tso");
    assert_string_equal(word(IBV_WR_ATOMIC_WRITE), "atomic-write");
    assert_string_equal(word(13), "unknown"); // no operation has that number
    assert_string_equal(word(16), "unknown");
    assert_string_equal(word(-1), "unknown");
}

// Names of releases later than the one this was built with.
static void later_names__refuse(void **state)
{
    void *(*reg_mr_ex)(void) = (void *(*)(void))dlvsym(RTLD_DEFAULT, "ibv_reg_mr_ex", "IBVERBS_1.15");
    int (*export_fd)(void) = (int (*)(void))dlvsym(RTLD_DEFAULT, "ibv_dm_export_dmabuf_fd", "IBVERBS_1.16");
    void *(*create_comp_cntr)(void) = (void *(*)(void))dlvsym(RTLD_DEFAULT, "ibv_create_comp_cntr", "IBVERBS_1.18");
    int (*query_comp_cntr_caps)(void) =
        (int (*)(void))dlvsym(RTLD_DEFAULT, "_ibv_query_comp_cntr_caps", "IBVERBS_1.18");
    assert_true(reg_mr_ex && export_fd && create_comp_cntr && query_comp_cntr_caps);
    errno = 0;
    assert_null(reg_mr_ex());
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(export_fd(), -1);
    assert_null(create_comp_cntr());
    assert_int_equal(query_comp_cntr_caps(), EOPNOTSUPP);
}

static void query_gid_type__as_devinfo_asks(void **state)
{
    struct fixture *f = *state;
    int type = -1;
    int (*query)(struct ibv_context *, uint8_t, unsigned int, int *) =
        (int (*)(struct ibv_context *, uint8_t, unsigned int, int *))dlvsym(RTLD_DEFAULT, "ibv_query_gid_type",
                                                                            "IBVERBS_PRIVATE_34");
    assert_non_null(query);
    assert_int_equal(query(f->context, 1, 0, &type), 0);
    assert_int_equal(type, 1);
    assert_int_equal(query(f->context, 1, 15, &type), 0); // empty
    assert_int_equal(query(f->context, 1, 99, &type), -1);
    assert_int_equal(query(f->context, 3, 0, &type), -1);
}

// A program of 2006, linked with the structures of that time, finds no device.
static void compat_1_0__no_device(void **state)
{
    int count = 7;
    void **(*get_list)(int *) = (void **(*)(int *))dlvsym(RTLD_DEFAULT, "ibv_get_device_list", "IBVERBS_1.0");
    void (*free_list)(void **) = (void (*)(void **))dlvsym(RTLD_DEFAULT, "ibv_free_device_list", "IBVERBS_1.0");
    assert_non_null(get_list);
    void **list = get_list(&count);
    assert_int_equal(count, 0);
    assert_null(list[0]);
    free_list(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(refused__pointers),
        FIXTURE_TEST(refused__numbers),
        FIXTURE_TEST(refused__flush),
        FIXTURE_TEST(errno__of_queue_pairs_and_groups),
        FIXTURE_TEST(errno__of_other_queues),
        FIXTURE_TEST(errno__of_memory),
        FIXTURE_TEST(errno__of_devices_and_ports),
        cmocka_unit_test(private_names__by_node),
        cmocka_unit_test(wr_opcode_str__in_the_words_of_rdma_core),
        cmocka_unit_test(later_names__refuse),
        FIXTURE_TEST(query_gid_type__as_devinfo_asks),
        cmocka_unit_test(compat_1_0__no_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
