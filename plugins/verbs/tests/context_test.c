// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include "base/tests/child.h"
#include "device/tests/user_namespace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_NAMESPACE = 77 };

static struct ibv_context *open_first(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    assert_non_null(context);
    return context;
}

static void get_device_list__all(void **state)
{
    int count = -1;
    unsetenv("ALBEDO_DEVICES");
    struct ibv_device **list = ibv_get_device_list(&count);
    assert_int_equal(count, 2);
    assert_null(list[2]);
    assert_string_equal(ibv_get_device_name(list[1]), "albedo0");
    assert_string_not_equal(list[0]->dev_name, list[1]->dev_name);
    assert_string_equal(ibv_get_device_name(list[0]), "roce0");
    assert_int_equal(list[0]->node_type, IBV_NODE_CA);
    assert_int_equal(list[0]->transport_type, IBV_TRANSPORT_IB);
    assert_true(strlen(list[0]->dev_name) > 0);
    struct ibv_device *device = list[0];
    ibv_free_device_list(list);
    assert_string_equal(ibv_get_device_name(device), "roce0"); // still there
    assert_null(ibv_get_device_name(NULL));
    assert_int_equal(ibv_get_device_index(device), -1);
}

static void get_device_list__those_chosen(void **state)
{
    int count = -1;
    setenv("ALBEDO_DEVICES", "albedo0,roce0", 1);
    struct ibv_device **list = ibv_get_device_list(&count);
    assert_int_equal(count, 2);
    assert_string_equal(ibv_get_device_name(list[0]), "albedo0");
    assert_string_equal(ibv_get_device_name(list[1]), "roce0");
    ibv_free_device_list(list);
    setenv("ALBEDO_DEVICES", "albedo0", 1);
    list = ibv_get_device_list(&count);
    assert_int_equal(count, 1);
    assert_null(list[1]);
    assert_string_equal(ibv_get_device_name(list[0]), "albedo0");
    ibv_free_device_list(list);
    setenv("ALBEDO_DEVICES", "mlx5_0", 1);
    errno = 0;
    assert_null(ibv_get_device_list(&count));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(count, 0);
    unsetenv("ALBEDO_DEVICES");
}

// Both at once, and each says which one it is.
static void open_device__each(void **state)
{
    struct ibv_device_attr attr[2];
    struct ibv_context *contexts[2];
    struct ibv_device **list = ibv_get_device_list(NULL);
    for (int i = 0; i < 2; i++) {
        contexts[i] = ibv_open_device(list[i]);
        assert_non_null(contexts[i]);
        assert_int_equal(ibv_query_device(contexts[i], &attr[i]), 0);
        assert_int_equal(attr[i].node_guid, ibv_get_device_guid(list[i]));
        assert_int_equal(attr[i].vendor_part_id, 1 + i);
    }
    assert_int_not_equal(attr[0].node_guid, attr[1].node_guid);
    assert_int_equal(attr[0].max_qp, attr[1].max_qp);
    assert_int_equal(ibv_close_device(contexts[0]), 0);
    assert_int_equal(ibv_query_device(contexts[1], &attr[1]), 0);
    assert_int_equal(ibv_close_device(contexts[1]), 0);
    ibv_free_device_list(list);
}

static void get_device_guid__stable_and_local(void **state)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    __be64 guid = ibv_get_device_guid(list[0]);
    uint8_t bytes[8];
    memcpy(bytes, &guid, sizeof(bytes));
    assert_int_not_equal(guid, 0);
    assert_int_equal(ibv_get_device_guid(list[0]), guid);
    assert_int_equal(bytes[0] & 3, 2); // locally administered, not a group
    ibv_free_device_list(list);
}

static void open_device__tables(void **state)
{
    struct ibv_context *context = open_first();
    assert_ptr_equal(context->abi_compat, (void *)UINTPTR_MAX);
    assert_true(context->num_comp_vectors >= 1);
    assert_true(fcntl(context->async_fd, F_GETFD) >= 0);
    int copy = dup(context->cmd_fd);
    assert_true(copy >= 0);
    close(copy);
    struct verbs_context *verbs = verbs_get_ctx(context);
    assert_non_null(verbs);
    assert_true(verbs->sz >= sizeof(*verbs));
    assert_non_null(verbs->create_qp_ex);
    assert_non_null(verbs->create_cq_ex);
    assert_non_null(verbs->query_port);
    assert_null(verbs->alloc_dm);
    assert_int_equal(ibv_close_device(context), 0);
}

static void open_in_an_empty_root(void *argument)
{
    if (!user_namespace_enter(0) || chroot(argument) != 0 || chdir("/") != 0)
        _exit(NO_NAMESPACE);
    struct ibv_context *context = open_first();
    int error = ibv_close_device(context);
    if (error)
        abort();
}

// Not even /dev/null, /proc and the host directory are there.
static void open_device__without_files(void **state)
{
    char root[] = "/tmp/albedo-root-XXXXXX", said[4096];
    assert_non_null(mkdtemp(root));
    int status = child_run(open_in_an_empty_root, root, said, sizeof(said));
    assert_int_equal(rmdir(root), 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACE)
        skip();
    if (status != 0)
        print_message("%s", said);
    assert_int_equal(status, 0);
}

static void open_device__twice(void **state)
{
    struct ibv_context *a = open_first(), *b = open_first();
    struct ibv_pd *pd = ibv_alloc_pd(b);
    assert_ptr_not_equal(a, b);
    assert_int_equal(ibv_close_device(a), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(b), 0);
}

static void open_device__nonsense(void **state)
{
    struct ibv_device unknown = {.name = "nobody0"};
    errno = 0;
    assert_null(ibv_open_device(NULL));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(ibv_open_device(&unknown));
    assert_int_equal(errno, ENODEV);
    assert_int_equal(ibv_close_device(NULL), EINVAL);
}

// Everything a program forgets ends with its context.
static void close_device__leftovers(void **state)
{
    struct ibv_context *context = open_first();
    static uint8_t memory[4096];
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, channel, 0);
    struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &srq_init);
    struct ibv_qp_init_attr qp_init = {
        .send_cq = cq, .recv_cq = cq, .srq = srq, .cap = {.max_send_wr = 4, .max_send_sge = 1}, .qp_type = IBV_QPT_RC};
    struct ibv_parent_domain_init_attr parent = {.pd = pd};
    assert_non_null(ibv_create_qp(pd, &qp_init));
    assert_non_null(ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
    assert_non_null(ibv_alloc_mw(pd, IBV_MW_TYPE_1));
    assert_non_null(ibv_alloc_parent_domain(context, &parent));
    assert_int_equal(ibv_close_device(context), 0);
}

// Also while the thread looks at a completion: nothing ends its look.
static void close_device__between_start_poll_and_end_poll(void **state)
{
    struct ibv_context *context = open_first();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq_init_attr_ex cq_init = {.cqe = 8};
    struct ibv_cq_ex *ex = ibv_create_cq_ex(context, &cq_init);
    struct ibv_cq *cq = ibv_cq_ex_to_cq(ex);
    struct ibv_qp_init_attr qp_init = {
        .send_cq = cq, .recv_cq = cq, .cap = {.max_recv_wr = 4, .max_recv_sge = 1}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(pd, &qp_init);
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1}, error = {.qp_state = IBV_QPS_ERR};
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
    struct ibv_poll_cq_attr attr = {0};
    int mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
    assert_int_equal(ibv_modify_qp(qp, &init, mask), 0);
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
    assert_int_equal(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0);
    alarm(60); // a deadlock ends the test
    assert_int_equal(ibv_start_poll(ex, &attr), 0);
    assert_int_equal(ex->status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(ibv_close_device(context), 0);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get_device_list__all),       cmocka_unit_test(get_device_list__those_chosen),
        cmocka_unit_test(open_device__each),          cmocka_unit_test(get_device_guid__stable_and_local),
        cmocka_unit_test(open_device__tables),        cmocka_unit_test(open_device__twice),
        cmocka_unit_test(open_device__without_files), cmocka_unit_test(open_device__nonsense),
        cmocka_unit_test(close_device__leftovers),    cmocka_unit_test(close_device__between_start_poll_and_end_poll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
