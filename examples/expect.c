// SPDX-License-Identifier: BSD-2-Clause
// A work of steps: in each one block comes to every receiver, and none goes on before all blocks are there. The
// receivers announce each block, so that one which is lost on the way is asked for at once (albdv_expect(3)).
//
//     cc expect.c $(pkg-config --cflags --libs albedodv) -o expect
//     albedo run --device albedo0 -- ./expect
//
// To be short it is one process that sends to itself, with one queue pair for each sender and each receiver.
#include <albedo/albedodv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMBERS = 4,
    STEPS = 16,
    BLOCK = 32 * 1024,
    PSN = 1,
    GROUP = 1, // any number but 0
};

struct work {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *sent, *came;
    struct ibv_mr *mr;
    char *memory; // a block to send from, then one for each receiver
    union ibv_gid gid;
    struct ibv_qp *senders[MEMBERS], *receivers[MEMBERS];
};

static void check(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static void check_error(int error, const char *what)
{
    errno = error;
    check(error == 0, what);
}

// ---- verbs as usual -------------------------------------------------------------------------------------------------

static void open_device(struct work *w)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    check(list && list[0], "no device: start this by `albedo run --device albedo0 --`");
    w->context = ibv_open_device(list[0]);
    check(w->context != NULL, "ibv_open_device");
    ibv_free_device_list(list);
    w->pd = ibv_alloc_pd(w->context);
    w->sent = ibv_create_cq(w->context, MEMBERS, NULL, NULL, 0);
    w->came = ibv_create_cq(w->context, MEMBERS, NULL, NULL, 0);
    w->memory = calloc(1 + MEMBERS, BLOCK);
    check(w->pd && w->sent && w->came && w->memory, "resources");
    w->mr =
        ibv_reg_mr(w->pd, w->memory, (size_t)(1 + MEMBERS) * BLOCK, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    check(w->mr != NULL, "ibv_reg_mr");
    check_error(ibv_query_gid(w->context, 1, 0, &w->gid) ? errno : 0, "ibv_query_gid");
}

static struct ibv_qp *create_qp(struct work *w)
{
    struct ibv_qp_init_attr init = {
        .send_cq = w->sent,
        .recv_cq = w->came,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    struct ibv_qp *qp = ibv_create_qp(w->pd, &init);
    check(qp != NULL, "ibv_create_qp");
    return qp;
}

static void connect_qp(struct work *w, struct ibv_qp *qp, const struct ibv_qp *peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    check_error(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_4096,
        .rq_psn = PSN,
        .dest_qp_num = peer->qp_num,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = w->gid, .hop_limit = 64}},
    };
    check_error(ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
                "RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = PSN, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    check_error(ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_MAX_QP_RD_ATOMIC),
                "RTS");
}

static void send_block(struct work *w, struct ibv_qp *qp, uint64_t to, uint32_t step)
{
    struct ibv_sge block = {.addr = (uintptr_t)w->memory, .length = BLOCK, .lkey = w->mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &block,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .imm_data = step,
        .wr.rdma = {.remote_addr = to, .rkey = w->mr->rkey},
    };
    struct ibv_send_wr *bad;
    check_error(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void wait_for_all(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    for (int count = 0; count < MEMBERS;) {
        int polled = ibv_poll_cq(cq, 1, &wc);
        check(polled >= 0, "ibv_poll_cq");
        if (polled == 0)
            continue;
        if (wc.status != IBV_WC_SUCCESS) {
            fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
            exit(1);
        }
        count++;
    }
}

// ---- the work -------------------------------------------------------------------------------------------------------

// True if the device takes announcements; the work is the same without.
static int announce(struct ibv_qp *qp, uint32_t step)
{
    const struct albdv_expectation block = {
        .bytes = BLOCK, .messages = 1, .group = GROUP, .step = step, .steps = STEPS};
    int error = albdv_expect(qp, &block);
    if (error != EOPNOTSUPP)
        check_error(error, "albdv_expect");
    return error == 0;
}

int main(int argc, char **argv)
{
    struct work w = {0};
    uint32_t announced = 0;
    if (argc > 1) {
        fprintf(stderr, "Usage: %s\n", argv[0]);
        return 2;
    }
    open_device(&w);
    for (int i = 0; i < MEMBERS; i++) {
        w.senders[i] = create_qp(&w);
        w.receivers[i] = create_qp(&w);
        connect_qp(&w, w.senders[i], w.receivers[i]);
        connect_qp(&w, w.receivers[i], w.senders[i]);
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        memset(w.memory, (int)step + 1, BLOCK);
        for (int i = 0; i < MEMBERS; i++) {
            struct ibv_recv_wr wr = {0}, *bad;
            check_error(ibv_post_recv(w.receivers[i], &wr, &bad), "ibv_post_recv");
            announced += announce(w.receivers[i], step) != 0;
        }
        for (int i = 0; i < MEMBERS; i++)
            send_block(&w, w.senders[i], (uintptr_t)w.memory + (size_t)(1 + i) * BLOCK, step);
        wait_for_all(w.came);
        wait_for_all(w.sent);
        check(memcmp(w.memory, w.memory + MEMBERS * (size_t)BLOCK, BLOCK) == 0, "a block came wrong");
    }
    for (int i = 0; i < MEMBERS; i++) {
        ibv_destroy_qp(w.senders[i]);
        ibv_destroy_qp(w.receivers[i]);
    }
    printf("%d blocks came", STEPS * MEMBERS);
    if (announced)
        printf(", %u of them announced", (unsigned)announced);
    printf("\n");
    if (!announced)
        fprintf(stderr,
                "none was announced by albdv_expect, which only albedo0 has (`albedo run --device albedo0 --`), with "
                "the loss policies csa and fixed\n");
    ibv_dereg_mr(w.mr);
    ibv_destroy_cq(w.sent);
    ibv_destroy_cq(w.came);
    ibv_dealloc_pd(w.pd);
    ibv_close_device(w.context);
    free(w.memory);
    return 0;
}
