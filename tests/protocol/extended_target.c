// SPDX-License-Identifier: BSD-2-Clause
// A verbs program with what albedodv adds, that obeys commands, for tests/protocol/run.py: extended_target PORT. It
// listens at 127.0.0.1; a command is a line of words, the answer a line of JSON. It has one region, and one queue pair:
// RC, or UC with messages of partial completion.
//
//   connect KIND QPN PSN GID    whole (the region becomes transactional)    receive COUNT
//   poke OFFSET BYTE SIZE       peek OFFSET SIZE (a digit pair each)         poll COUNT MILLISECONDS
//   post SIZE ADDRESS KEY IMM   resend NUMBER SIZE ADDRESS KEY              ask NUMBER
//   held SIDE NUMBER
#include <albedo/albedodv.h>

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    BYTES = 20 << 20, // more than a READ of one version may ask for
    PSN = 0xFFFFFA,
    DEPTH = 64,
    PARTIALS = 4,
    ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct albdv_qp_ex *dv;
static uint8_t *memory;

static void check(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(2);
}

static void check_error(int error, const char *what)
{
    errno = error;
    check(error == 0, what);
}

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    check(list && list[0], "no device");
    context = ibv_open_device(list[0]);
    pd = context ? ibv_alloc_pd(context) : NULL;
    cq = pd ? ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0) : NULL;
    memory = calloc(1, BYTES);
    mr = cq && memory ? ibv_reg_mr(pd, memory, BYTES, ACCESS) : NULL;
    check(mr != NULL, "device");
}

// ---- queue pairs ----------------------------------------------------------------------------------------------------

static void to_rts(enum ibv_qp_type type, uint32_t qpn, uint32_t psn, const union ibv_gid *gid)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS};
    check_error(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .rq_psn = psn,
        .dest_qp_num = qpn,
        .min_rnr_timer = 12,
        .max_dest_rd_atomic = 4,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 64}},
    };
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    int of_rc = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    check_error(ibv_modify_qp(qp, &attr, mask | (type == IBV_QPT_RC ? of_rc : 0)), "RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .sq_psn = PSN, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    of_rc = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    check_error(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (type == IBV_QPT_RC ? of_rc : 0)), "RTS");
}

static void connect_to(const char *kind, uint32_t qpn, uint32_t psn, const char *digits)
{
    enum ibv_qp_type type = strcmp(kind, "uc") == 0 ? IBV_QPT_UC : IBV_QPT_RC;
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type,
    };
    struct albdv_qp_attr attr = {.in_flight_max = PARTIALS};
    union ibv_gid gid, own;
    for (int i = 0; i < 16; i++)
        sscanf(digits + 2 * i, "%2hhx", &gid.raw[i]);
    qp = ibv_create_qp(pd, &init);
    check(qp != NULL, "queue pair");
    dv = albdv_extend_qp(qp, &attr);
    check(dv != NULL, "albdv_extend_qp");
    to_rts(type, qpn, psn, &gid);
    check_error(ibv_query_gid(context, 1, 0, &own), "gid");
    printf("{\"qpn\": %u, \"psn\": %u, \"address\": %" PRIuPTR ", \"key\": %u, \"gid\": \"", qp->qp_num, PSN,
           (uintptr_t)memory, mr->rkey);
    for (int i = 0; i < 16; i++)
        printf("%02x", own.raw[i]);
    printf("\"}\n");
}

// ---- requests -------------------------------------------------------------------------------------------------------

static void post_receives(int count)
{
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 0, .lkey = mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    for (; count > 0; count--)
        check_error(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
    puts("null");
}

static void post(uint32_t size, uint64_t address, uint32_t key, uint32_t immediate)
{
    ibv_wr_start(dv->qp);
    dv->qp->wr_flags = IBV_SEND_SIGNALED;
    if (immediate)
        ibv_wr_rdma_write_imm(dv->qp, key, address, htobe32(immediate));
    else
        ibv_wr_rdma_write(dv->qp, key, address);
    uint32_t number = albdv_wr_set_partial(dv);
    ibv_wr_set_sge(dv->qp, mr->lkey, (uintptr_t)memory, size);
    check_error(ibv_wr_complete(dv->qp), "post");
    printf("%u\n", number);
}

static void resend(uint32_t number, uint32_t size, uint64_t address, uint32_t key)
{
    ibv_wr_start(dv->qp);
    dv->qp->wr_flags = IBV_SEND_SIGNALED;
    albdv_wr_resend(dv, number, key, address);
    ibv_wr_set_sge(dv->qp, mr->lkey, (uintptr_t)memory, size);
    check_error(ibv_wr_complete(dv->qp), "resend");
    puts("null");
}

static void tell_held(int side, uint32_t number)
{
    struct albdv_partial partial = {.chunk_bytes = 0};
    uint64_t bitmap[4] = {0};
    int error = albdv_query_partial(qp, (enum albdv_side)side, number, &partial, sizeof(partial), bitmap, 4);
    if (error) {
        check_error(error == ENOENT ? 0 : error, "albdv_query_partial");
        puts("null");
        return;
    }
    printf("{\"complete\": %u, \"held\": [", partial.is_complete);
    const char *comma = "";
    for (uint32_t i = 0; i < partial.chunks; i++) {
        if (bitmap[i / 64] >> i % 64 & 1) {
            printf("%s%u", comma, i);
            comma = ", ";
        }
    }
    printf("]}\n");
}

// [status, bytes] each.
static void poll_for(int count, int milliseconds)
{
    const char *comma = "";
    printf("[");
    while (count > 0 && milliseconds-- > 0) {
        struct ibv_wc wc;
        const struct timespec pause = {.tv_nsec = 1000000};
        if (ibv_poll_cq(cq, 1, &wc) == 1) {
            printf("%s[%d, %u]", comma, wc.status, wc.opcode & IBV_WC_RECV ? wc.byte_len : 0);
            comma = ", ";
            count--;
        } else {
            nanosleep(&pause, NULL);
        }
    }
    printf("]\n");
}

static void peek(uint64_t offset, uint64_t size)
{
    printf("\"");
    for (uint64_t i = 0; i < size; i++)
        printf("%02x", memory[offset + i]);
    printf("\"\n");
}

// ---- commands -------------------------------------------------------------------------------------------------------

static void obey(char *line)
{
    char what[16] = "", kind[4], gid[33];
    uint64_t n[4] = {0};
    int at = 0;
    check(sscanf(line, "%15s %n", what, &at) == 1, "command");
    if (strcmp(what, "connect") == 0) {
        check(sscanf(line + at, "%3s %" SCNu64 " %" SCNu64 " %32s", kind, &n[0], &n[1], gid) == 4, "connect");
        connect_to(kind, (uint32_t)n[0], (uint32_t)n[1], gid);
        return;
    }
    sscanf(line + at, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &n[0], &n[1], &n[2], &n[3]);
    if (strcmp(what, "whole") == 0) {
        check(albdv_create_region(mr, NULL) != NULL, "albdv_create_region");
        puts("null");
    } else if (strcmp(what, "receive") == 0) {
        post_receives((int)n[0]);
    } else if (strcmp(what, "poke") == 0) {
        memset(memory + n[0], (int)n[1], n[2]);
        puts("null");
    } else if (strcmp(what, "peek") == 0) {
        peek(n[0], n[1]);
    } else if (strcmp(what, "poll") == 0) {
        poll_for((int)n[0], (int)n[1]);
    } else if (strcmp(what, "post") == 0) {
        post((uint32_t)n[0], n[1], (uint32_t)n[2], (uint32_t)n[3]);
    } else if (strcmp(what, "resend") == 0) {
        resend((uint32_t)n[0], (uint32_t)n[1], n[2], (uint32_t)n[3]);
    } else if (strcmp(what, "ask") == 0) {
        printf("%d\n", albdv_ask_partial(dv, (uint32_t)n[0]));
    } else if (strcmp(what, "held") == 0) {
        tell_held((int)n[0], (uint32_t)n[1]);
    } else {
        fprintf(stderr, "what is %s?\n", what);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(argc == 2 && listener >= 0, "usage: extended_target PORT");
    address.sin_port = htons((uint16_t)atoi(argv[1]));
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    open_device();
    check(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(listener, 1) == 0, "listen");
    int stream = accept(listener, NULL, NULL);
    check(stream >= 0 && dup2(stream, 0) == 0 && dup2(stream, 1) == 1, "accept");
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    char line[256];
    while (fgets(line, sizeof(line), stdin)) {
        obey(line);
        fflush(stdout);
    }
    return 0;
}
