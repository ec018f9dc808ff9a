// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_non_null(list);
    f->context = ibv_open_device(list[0]);
    assert_non_null(f->context);
    ibv_free_device_list(list);
    f->pd = ibv_alloc_pd(f->context);
    assert_non_null(f->pd);
    f->cq = ibv_create_cq(f->context, 64, f, NULL, 0);
    assert_non_null(f->cq);
    f->memory = aligned_alloc(4096, FIXTURE_BYTES);
    memset(f->memory, 0, FIXTURE_BYTES);
    f->mr = ibv_reg_mr(f->pd, f->memory, FIXTURE_BYTES,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    assert_non_null(f->mr);
    *state = f;
    return 0;
}

// Destroying everything must be possible: a test gives back what it made.
int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ibv_dereg_mr(f->mr), 0);
    assert_int_equal(ibv_destroy_cq(f->cq), 0);
    assert_int_equal(ibv_dealloc_pd(f->pd), 0);
    assert_int_equal(ibv_close_device(f->context), 0);
    free(f->memory);
    free(f);
    return 0;
}

struct ibv_qp_init_attr fixture_qp_init(struct fixture *f, enum ibv_qp_type type)
{
    return (struct ibv_qp_init_attr){
        .qp_context = f,
        .send_cq = f->cq,
        .recv_cq = f->cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64},
        .qp_type = type,
    };
}

struct ibv_qp *fixture_qp(struct fixture *f, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = fixture_qp_init(f, type);
    struct ibv_qp *qp = ibv_create_qp(f->pd, &init);
    assert_non_null(qp);
    return qp;
}

struct ibv_qp_ex *fixture_qp_ex(struct fixture *f, enum ibv_qp_type type, uint64_t ops)
{
    struct ibv_qp_init_attr base = fixture_qp_init(f, type);
    struct ibv_qp_init_attr_ex init = {
        .qp_context = f,
        .send_cq = f->cq,
        .recv_cq = f->cq,
        .cap = base.cap,
        .qp_type = type,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = f->pd,
        .send_ops_flags = ops,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(f->context, &init);
    assert_non_null(qp);
    return ibv_qp_to_qp_ex(qp);
}

static void own_gid(struct ibv_context *context, union ibv_gid *gid)
{
    assert_int_equal(ibv_query_gid(context, 1, 0, gid), 0);
}

void fixture_to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qkey = 0x1234,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    mask |= qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

void fixture_to_rtr(struct ibv_qp *qp, uint32_t dest_qpn)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .rq_psn = 77,
        .dest_qp_num = dest_qpn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}},
    };
    int mask = IBV_QP_STATE;
    own_gid(qp->context, &attr.ah_attr.grh.dgid);
    if (qp->qp_type != IBV_QPT_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

void fixture_to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS, .sq_psn = 77, .timeout = 17, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (qp->qp_type == IBV_QPT_XRC_RECV)
        mask |= IBV_QP_TIMEOUT;
    if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

void fixture_connect(struct ibv_qp *a, struct ibv_qp *b)
{
    fixture_to_init(a);
    fixture_to_init(b);
    fixture_to_rtr(a, b->qp_num);
    fixture_to_rtr(b, a->qp_num);
    fixture_to_rts(a);
    fixture_to_rts(b);
}

struct ibv_ah_attr fixture_ah_attr(struct fixture *f)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
    own_gid(f->context, &attr.grh.dgid);
    return attr;
}

struct ibv_sge fixture_sge(const struct fixture *f, size_t offset, uint32_t length)
{
    return (struct ibv_sge){.addr = (uintptr_t)f->memory + offset, .length = length, .lkey = f->mr->lkey};
}

void fixture_post_recv(struct fixture *f, struct ibv_qp *qp, uint64_t wr_id, size_t offset, uint32_t length)
{
    struct ibv_sge sge = fixture_sge(f, offset, length);
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

void fixture_post_send(struct fixture *f, struct ibv_qp *qp, uint64_t wr_id, size_t offset, uint32_t length)
{
    struct ibv_sge sge = fixture_sge(f, offset, length);
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

// The test's own time limit ends one that never comes.
struct ibv_wc fixture_wait(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int count;
    while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    assert_int_equal(count, 1);
    return wc;
}

struct ibv_wc fixture_wait_for(struct ibv_cq *cq, uint64_t wr_id)
{
    for (;;) {
        struct ibv_wc wc = fixture_wait(cq);
        if (wc.wr_id == wr_id)
            return wc;
    }
}

char fixture_thread_state(pid_t thread)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    return strrchr(text, ')')[2];
}
