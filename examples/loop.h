// SPDX-License-Identifier: BSD-2-Clause
// Verbs as usual, for the examples: a device, memory, and pairs of queue pairs that one process connects with itself.
#pragma once

#include <albedo/albedodv.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOP_PSN = 1,
    LOOP_DEPTH = 64,
    LOOP_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

struct loop {
    struct ibv_context *context;
    struct ibv_pd *pd;
    union ibv_gid gid;
};

// Two connected queue pairs. What is posted to near completes in cq, and is done to the memory that far may touch.
struct pair {
    struct ibv_cq *cq, *far_cq;
    struct ibv_qp *near, *far;
};

static inline _Noreturn void give_up(const char *what)
{
    perror(what);
    exit(1);
}

static inline void check(int ok, const char *what)
{
    if (!ok)
        give_up(what);
}

static inline void check_error(int error, const char *what)
{
    errno = error;
    check(error == 0, what);
}

static inline _Noreturn void refuse_arguments(const char *program, const char *arguments)
{
    fprintf(stderr, "Usage: %s %s\n", program, arguments);
    exit(2);
}

// The first of at most count_max arguments, a number from 1; what it is if there is none.
static inline uint32_t number_argument(int argc, char **argv, int count_max, uint32_t otherwise, const char *arguments)
{
    if (argc < 2)
        return otherwise;
    char *end;
    unsigned long long number = strtoull(argv[1], &end, 10);
    bool is_number = argv[1][0] >= '0' && argv[1][0] <= '9' && *end == '\0';
    if (!is_number || number == 0 || number > INT32_MAX || argc - 1 > count_max)
        refuse_arguments(argv[0], arguments);
    return (uint32_t)number;
}

static inline void loop_open(struct loop *loop)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    if (!list || !list[0])
        give_up("no device: start this by `albedo run --device albedo0 --`");
    loop->context = ibv_open_device(list[0]);
    check(loop->context != NULL, "ibv_open_device");
    ibv_free_device_list(list);
    loop->pd = ibv_alloc_pd(loop->context);
    check(loop->pd != NULL, "ibv_alloc_pd");
    check(ibv_query_gid(loop->context, 1, 0, &loop->gid) == 0, "ibv_query_gid");
}

static inline void loop_close(struct loop *loop)
{
    ibv_dealloc_pd(loop->pd);
    ibv_close_device(loop->context);
}

static inline struct ibv_mr *loop_register(struct loop *loop, void *memory, size_t bytes)
{
    struct ibv_mr *mr = ibv_reg_mr(loop->pd, memory, bytes, LOOP_ACCESS);
    check(mr != NULL, "ibv_reg_mr");
    return mr;
}

static inline struct ibv_qp *loop_qp(struct loop *loop, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = LOOP_DEPTH, .max_recv_wr = LOOP_DEPTH, .max_send_sge = 4, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp = ibv_create_qp(loop->pd, &init);
    check(qp != NULL, "ibv_create_qp");
    return qp;
}

static inline void loop_connect_qp(struct loop *loop, struct ibv_qp *qp, const struct ibv_qp *peer)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
    };
    check_error(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_4096,
        .rq_psn = LOOP_PSN,
        .dest_qp_num = peer->qp_num,
        .min_rnr_timer = 12,
        .max_dest_rd_atomic = 16,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = loop->gid, .hop_limit = 64}},
    };
    check_error(ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
                "RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .sq_psn = LOOP_PSN,
                                .timeout = 14,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .max_rd_atomic = 16};
    check_error(ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_MAX_QP_RD_ATOMIC),
                "RTS");
}

static inline void loop_connect(struct loop *loop, struct pair *pair)
{
    pair->cq = ibv_create_cq(loop->context, 2 * LOOP_DEPTH, NULL, NULL, 0);
    pair->far_cq = ibv_create_cq(loop->context, 2 * LOOP_DEPTH, NULL, NULL, 0);
    check(pair->cq && pair->far_cq, "ibv_create_cq");
    pair->near = loop_qp(loop, pair->cq);
    pair->far = loop_qp(loop, pair->far_cq);
    loop_connect_qp(loop, pair->near, pair->far);
    loop_connect_qp(loop, pair->far, pair->near);
}

static inline void loop_disconnect(struct pair *pair)
{
    ibv_destroy_qp(pair->near);
    ibv_destroy_qp(pair->far);
    ibv_destroy_cq(pair->cq);
    ibv_destroy_cq(pair->far_cq);
}

// A WRITE or READ between local memory and an address of a region.
static inline void loop_post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_mr *local, void *at,
                             uint32_t length, struct ibv_mr *remote, const void *to)
{
    struct ibv_sge sge = {.addr = (uintptr_t)at, .length = length, .lkey = local->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = {.remote_addr = (uintptr_t)to, .rkey = remote->rkey},
    };
    struct ibv_send_wr *bad;
    check_error(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static inline struct ibv_wc loop_wait(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int polled;
    while ((polled = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    check(polled == 1, "ibv_poll_cq");
    return wc;
}

static inline void loop_check_success(const struct ibv_wc *wc)
{
    if (wc->status == IBV_WC_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", ibv_wc_status_str(wc->status), albdv_reason_str(albdv_wc_reason(wc)));
    exit(1);
}

static inline void loop_wait_success(struct ibv_cq *cq)
{
    struct ibv_wc wc = loop_wait(cq);
    loop_check_success(&wc);
}

// ---- transactions ---------------------------------------------------------------------------------------------------

// One piece of a transaction: local bytes, and where they go.
struct piece {
    struct ibv_mr *local;
    const void *at;
    uint32_t length;
    struct ibv_mr *remote;
    const void *to;
};

// Posts it. Its number.
static inline uint64_t loop_commit(struct albdv_qp_ex *qp, const struct piece *pieces, int count, uint32_t flags)
{
    ibv_wr_start(qp->qp);
    qp->qp->wr_id = 0;
    qp->qp->wr_flags = IBV_SEND_SIGNALED;
    albdv_wr_txn(qp, ALBDV_COMMITTED, flags);
    for (int i = 0; i < count; i++) {
        albdv_wr_txn_write(qp, pieces[i].remote->rkey, (uintptr_t)pieces[i].to);
        ibv_wr_set_sge(qp->qp, pieces[i].local->lkey, (uintptr_t)pieces[i].at, pieces[i].length);
    }
    uint64_t number = albdv_wr_txn_end(qp);
    check_error(ibv_wr_complete(qp->qp), "transaction");
    return number;
}

// Waits for it. False: it arrived otherwise than it was posted, nothing of it is exposed, and it may be posted again.
static inline bool loop_wait_commit(struct ibv_cq *cq)
{
    struct ibv_wc wc = loop_wait(cq);
    if (wc.status == IBV_WC_REM_ABORT_ERR && albdv_wc_reason(&wc) == ALBDV_DIGEST)
        return false;
    loop_check_success(&wc);
    return true;
}
