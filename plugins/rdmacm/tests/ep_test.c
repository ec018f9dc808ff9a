// SPDX-License-Identifier: BSD-2-Clause
// Endpoints and synchronous calls: one thread serves, the other calls.
#include "fixture.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct ibv_qp_init_attr wanted = {
    .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
    .sq_sig_all = 1,
};

static struct rdma_cm_id *create_ep(int flags, const char *port, bool has_qp)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *info;
    struct ibv_qp_init_attr attr = wanted;
    struct rdma_cm_id *id;
    assert_int_equal(rdma_getaddrinfo(fixture_address, port, &hints, &info), 0);
    assert_int_equal(rdma_create_ep(&id, info, NULL, has_qp ? &attr : NULL), 0);
    rdma_freeaddrinfo(info);
    return id;
}

// Takes one request, answers a message with itself, and waits for the end. Returns how often something failed.
static void *serve(void *argument)
{
    static char bytes[32];
    struct rdma_cm_id *listener = argument, *id;
    struct ibv_wc wc;
    intptr_t failed = 0;
    if (rdma_get_request(listener, &id))
        return (void *)1;
    failed += !id->event || id->event->event != RDMA_CM_EVENT_CONNECT_REQUEST; // refers to it until the answer
    struct ibv_mr *mr = rdma_reg_msgs(id, bytes, sizeof(bytes));
    failed += rdma_post_recv(id, NULL, bytes, sizeof(bytes), mr) != 0;
    failed += rdma_accept(id, NULL) != 0;
    failed += !id->event || id->event->event != RDMA_CM_EVENT_ESTABLISHED;
    failed += rdma_get_recv_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS;
    failed += rdma_post_send(id, NULL, bytes, wc.byte_len, mr, 0) != 0;
    failed += rdma_get_send_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS;
    failed += rdma_disconnect(id) != 0;
    failed += rdma_dereg_mr(mr) != 0;
    rdma_destroy_ep(id);
    return (void *)failed;
}

static void ep__a_message_there_and_back(void **state)
{
    static char sent[32] = "there", got[32];
    char port[8];
    pthread_t thread;
    struct ibv_wc wc;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct rdma_cm_id *listener = create_ep(RAI_PASSIVE, "0", true);
    assert_int_equal(rdma_listen(listener, 0), 0);
    snprintf(port, sizeof(port), "%d", ntohs(rdma_get_src_port(listener)));
    assert_int_equal(pthread_create(&thread, NULL, serve, listener), 0);

    struct rdma_cm_id *id = create_ep(0, port, true);
    struct ibv_mr *send_mr = rdma_reg_msgs(id, sent, sizeof(sent)), *recv_mr = rdma_reg_msgs(id, got, sizeof(got));
    assert_int_equal(rdma_post_recv(id, NULL, got, sizeof(got), recv_mr), 0);
    assert_int_equal(rdma_connect(id, NULL), 0);
    assert_int_equal(ibv_query_qp(id->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
    assert_true(attr.max_rd_atomic > 1); // as many as the device has, where none is asked for
    assert_int_equal(rdma_post_send(id, NULL, sent, sizeof(sent), send_mr, 0), 0);
    assert_int_equal(rdma_get_send_comp(id, &wc), 1);
    assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_string_equal(got, "there");
    void *failed;
    assert_int_equal(rdma_disconnect(id), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(rdma_dereg_mr(send_mr), 0);
    assert_int_equal(rdma_dereg_mr(recv_mr), 0);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
}

// What rdma_getaddrinfo gave goes before what the program says itself.
static void ep__connects_with_the_data_of_its_address(void **state)
{
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *info;
    struct ibv_qp_init_attr attr = wanted;
    struct rdma_conn_param param = {.private_data = "ef", .private_data_len = 3};
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *listener = create_ep(RAI_PASSIVE, "0", false), *id;
    char port[8];
    assert_int_equal(rdma_migrate_id(listener, channel), 0);
    assert_int_equal(rdma_listen(listener, 1), 0);
    snprintf(port, sizeof(port), "%d", ntohs(rdma_get_src_port(listener)));
    assert_int_equal(rdma_getaddrinfo(fixture_address, port, &hints, &info), 0);
    info->ai_connect = strdup("ABCD");
    info->ai_connect_len = 4;
    assert_int_equal(rdma_create_ep(&id, info, NULL, &attr), 0);
    rdma_freeaddrinfo(info);
    assert_non_null(attr.send_cq); // it returns what it has made
    assert_int_equal(rdma_migrate_id(id, channel), 0);
    assert_int_equal(rdma_connect(id, &param), 0);
    struct rdma_cm_event *event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_string_equal(event->param.conn.private_data, "ABCDef");
    struct rdma_cm_id *request = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    assert_int_equal(rdma_destroy_id(request), 0);
    pass_event(channel, RDMA_CM_EVENT_REJECTED);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
    rdma_destroy_event_channel(channel);
}

static void qp__of_another_kind_than_its_id(void **state)
{
    struct ibv_qp_init_attr attr = {.cap = wanted.cap, .qp_type = IBV_QPT_UD};
    struct rdma_cm_id *id = create_ep(0, "7471", false);
    expect_errno(rdma_create_qp(id, NULL, &attr), EINVAL);
    attr.qp_type = IBV_QPT_UC; // which is connected, too
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    rdma_destroy_ep(id);
}

static void ep__calls_return_what_went_wrong(void **state)
{
    struct rdma_cm_id *id = create_ep(0, "9", true), *other;
    expect_errno(rdma_connect(id, NULL), ECONNREFUSED);
    expect_errno(rdma_get_request(id, &other), EINVAL); // it does not listen
    rdma_destroy_ep(id);
    struct rdma_addrinfo foreign = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC};
    struct sockaddr_storage there = fixture_sockaddr("192.0.2.1", 0);
    foreign.ai_src_addr = (struct sockaddr *)&there;
    expect_errno(rdma_create_ep(&id, &foreign, NULL, NULL), EADDRNOTAVAIL);
}

// ---- XRC

static struct rdma_cm_id *create_xrc_ep(int flags, const char *port, enum ibv_qp_type type)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_IB, .ai_qp_type = type}, *info;
    struct ibv_qp_init_attr attr = wanted;
    struct rdma_cm_id *id;
    attr.cap.max_inline_data = 16;
    assert_int_equal(rdma_getaddrinfo(fixture_address, port, &hints, &info), 0);
    assert_int_equal(rdma_create_ep(&id, info, NULL, &attr), 0);
    rdma_freeaddrinfo(info);
    return id;
}

// Takes one request, tells its shared receive queue's number, and receives one message there.
static void *serve_xrc(void *argument)
{
    static char bytes[32];
    struct rdma_cm_id *listener = argument, *id;
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    uint32_t number = 0;
    struct rdma_conn_param param = {.private_data = &number, .private_data_len = sizeof(number)};
    struct ibv_wc wc;
    intptr_t failed = 0;
    if (rdma_get_request(listener, &id))
        return (void *)1;
    failed += id->qp_type != IBV_QPT_XRC_RECV || !id->qp || id->qp->qp_type != IBV_QPT_XRC_RECV;
    failed += rdma_create_srq(id, NULL, &attr) != 0 || ibv_get_srq_num(id->srq, &number) != 0;
    struct ibv_mr *mr = rdma_reg_msgs(id, bytes, sizeof(bytes));
    failed += rdma_post_recv(id, NULL, bytes, sizeof(bytes), mr) != 0;
    failed += rdma_accept(id, &param) != 0;
    failed += rdma_get_recv_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS || strcmp(bytes, "there") != 0;
    failed += rdma_disconnect(id) != 0;
    failed += rdma_dereg_mr(mr) != 0;
    rdma_destroy_ep(id);
    return (void *)failed;
}

static void ep__a_message_by_xrc(void **state)
{
    char port[8], there[] = "there";
    pthread_t thread;
    struct ibv_wc wc;
    void *failed;
    struct rdma_cm_id *listener = create_xrc_ep(RAI_PASSIVE, "0", IBV_QPT_XRC_RECV);
    assert_int_equal(rdma_listen(listener, 0), 0);
    snprintf(port, sizeof(port), "%d", ntohs(rdma_get_src_port(listener)));
    assert_int_equal(pthread_create(&thread, NULL, serve_xrc, listener), 0);
    struct rdma_cm_id *id = create_xrc_ep(0, port, IBV_QPT_XRC_SEND);
    assert_null(id->recv_cq);
    assert_int_equal(rdma_connect(id, NULL), 0);
    struct ibv_sge sge = {.addr = (uintptr_t)there, .length = sizeof(there)};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE}, *bad;
    memcpy(&wr.qp_type.xrc.remote_srqn, id->event->param.conn.private_data, sizeof(uint32_t));
    assert_int_equal(ibv_post_send(id->qp, &wr, &bad), 0);
    assert_int_equal(rdma_get_send_comp(id, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(rdma_disconnect(id), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
}

static void srq__belongs_to_an_id(void **state)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct rdma_cm_id *id = create_ep(0, "9", false);
    assert_int_equal(rdma_create_srq(id, NULL, &attr), 0);
    assert_non_null(id->srq);
    expect_errno(rdma_create_srq(id, NULL, &attr), EINVAL);
    rdma_destroy_srq(id);
    assert_null(id->srq);
    struct ibv_srq_init_attr_ex ex = {.attr = {.max_wr = 4, .max_sge = 1}};
    assert_int_equal(rdma_create_srq_ex(id, &ex), 0);
    rdma_destroy_ep(id);
}

// <rdma/rdma_verbs.h> posts receives there.
static void qp__takes_the_shared_queue_of_its_id(void **state)
{
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_qp_init_attr attr = {.cap = wanted.cap, .qp_type = IBV_QPT_RC};
    struct rdma_cm_id *id = create_ep(0, "7471", false);
    assert_int_equal(rdma_create_srq(id, NULL, &shared), 0);
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    assert_ptr_equal(id->qp->srq, id->srq);
    rdma_destroy_ep(id);
}

static void qp__other_completion_queues_than_those_of_its_id(void **state)
{
    struct ibv_qp_init_attr attr = {.cap = wanted.cap, .qp_type = IBV_QPT_RC};
    struct rdma_cm_id *id = create_ep(0, "7471", false);
    struct ibv_cq *own = ibv_create_cq(id->verbs, 4, NULL, NULL, 0),
                  *other = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
    id->recv_cq = own;
    attr.recv_cq = other;
    expect_errno(rdma_create_qp(id, NULL, &attr), EINVAL);
    attr.recv_cq = attr.send_cq = own;
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    assert_ptr_equal(id->qp->recv_cq, own);
    rdma_destroy_ep(id);
    assert_int_equal(ibv_destroy_cq(own), 0);
    assert_int_equal(ibv_destroy_cq(other), 0);
}

// What it was completed with is gone, and the program's attributes are as they were.
static void qp__one_that_failed_is_tried_again(void **state)
{
    struct ibv_qp_init_attr_ex attr = {.cap = wanted.cap, .qp_type = IBV_QPT_RC};
    struct rdma_cm_id *id = create_ep(0, "7471", false);
    attr.cap.max_send_sge = 1 << 20;
    expect_errno(rdma_create_qp_ex(id, &attr), EINVAL);
    assert_null(attr.send_cq);
    assert_null(attr.recv_cq);
    attr.cap.max_send_sge = 1;
    assert_int_equal(rdma_create_qp_ex(id, &attr), 0);
    assert_ptr_equal(attr.send_cq, id->send_cq);
    assert_ptr_equal(attr.recv_cq, id->recv_cq);
    rdma_destroy_ep(id);
}

// The program may let the protection domain go that it had brought: the id is as it was.
static void qp__one_that_failed_leaves_nothing_in_its_id(void **state)
{
    struct ibv_qp_init_attr attr = {.cap = wanted.cap, .qp_type = IBV_QPT_UC};
    struct rdma_cm_id *id = create_ep(0, "7471", false);
    struct ibv_pd *usual = id->pd, *pd = ibv_alloc_pd(id->verbs);
    assert_non_null(pd);
    attr.cap.max_send_sge = 1 << 20;
    expect_errno(rdma_create_qp(id, pd, &attr), EINVAL);
    assert_ptr_equal(id->pd, usual);
    assert_int_equal(id->qp_type, IBV_QPT_RC);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    attr = (struct ibv_qp_init_attr){.cap = wanted.cap, .qp_type = IBV_QPT_RC};
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    assert_ptr_equal(id->qp->pd, usual);
    rdma_destroy_ep(id);
}

static void srq__one_that_failed_is_tried_again(void **state)
{
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = 4, .max_sge = 1 << 20}, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE, .srq_type = IBV_SRQT_XRC};
    struct rdma_cm_id *id = create_ep(0, "7471", false);
    expect_errno(rdma_create_srq_ex(id, &attr), EINVAL);
    assert_null(attr.cq);
    attr.attr.max_sge = 1;
    assert_int_equal(rdma_create_srq_ex(id, &attr), 0);
    assert_ptr_equal(attr.cq, id->recv_cq);
    rdma_destroy_ep(id);
}

static void getaddrinfo__an_address_longer_than_any_is_refused(void **state)
{
    static uint8_t bytes[4096];
    struct rdma_addrinfo *info = NULL;
    struct rdma_addrinfo hints = {
        .ai_port_space = RDMA_PS_TCP, .ai_src_addr = (struct sockaddr *)bytes, .ai_src_len = sizeof(bytes)};
    assert_int_not_equal(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &info), 0);
    assert_int_not_equal(rdma_getaddrinfo(NULL, NULL, &hints, &info), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(getaddrinfo__an_address_longer_than_any_is_refused),
        cmocka_unit_test(ep__a_message_there_and_back),
        cmocka_unit_test(ep__connects_with_the_data_of_its_address),
        cmocka_unit_test(qp__of_another_kind_than_its_id),
        cmocka_unit_test(ep__calls_return_what_went_wrong),
        cmocka_unit_test(ep__a_message_by_xrc),
        cmocka_unit_test(srq__belongs_to_an_id),
        cmocka_unit_test(qp__takes_the_shared_queue_of_its_id),
        cmocka_unit_test(qp__other_completion_queues_than_those_of_its_id),
        cmocka_unit_test(qp__one_that_failed_is_tried_again),
        cmocka_unit_test(qp__one_that_failed_leaves_nothing_in_its_id),
        cmocka_unit_test(srq__one_that_failed_is_tried_again),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
