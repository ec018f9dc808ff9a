// SPDX-License-Identifier: BSD-2-Clause
// Either side of tests/e2e/crash.py: a target with a region of slots, and an initiator that writes to them by
// transactions and keeps a log of what was reported to it, both to be killed at any moment.
//
//   crash_worker target PORT FILE safe|cached|volatile
//   crash_worker initiator PORT LOG COUNT
//
// The initiator first finds out what became of what its predecessor had posted. Each transaction writes its number to
// two places, all over them. The log has a line per event, written before what it speaks of can be known elsewhere:
//   P v initiator number keeper   posted      C v   committed      A v reason   aborted      U v   unknown
#include <albedo/albedodv.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SLOTS = 32, BLOCK = 2048, WINDOW = 8, UNRESOLVED_MAX = 4096 };

#define REGION_BYTES ((size_t)2 * (SLOTS + 1) * BLOCK) // the last slot is for the first transaction of a connection
#define LEASE_NS     500000000ull // does not end only because a busy machine keeps a thread waiting

struct hello {
    union ibv_gid gid;
    uint64_t address;
    uint32_t qpn, rkey;
};

struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct albdv_qp_ex *dv;
    struct hello peer;
    int stream; // to the peer: closed when it dies
};

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static void open_device(struct end *end)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    end->context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
    end->pd = end->context ? ibv_alloc_pd(end->context) : NULL;
    end->cq = end->pd ? ibv_create_cq(end->context, 256, NULL, NULL, 0) : NULL;
    if (!end->cq)
        die("device");
}

static bool exchange(int stream, const struct hello *mine, struct hello *theirs)
{
    return send(stream, mine, sizeof(*mine), MSG_NOSIGNAL) == sizeof(*mine) &&
           recv(stream, theirs, sizeof(*theirs), MSG_WAITALL) == sizeof(*theirs);
}

static bool to_rts(struct end *end)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
    };
    if (ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return false;
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = end->peer.qpn,
        .max_dest_rd_atomic = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = end->peer.gid, .hop_limit = 1}},
    };
    if (ibv_modify_qp(end->qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return false;
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    return ibv_modify_qp(end->qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

// A queue pair that is connected over the stream. False: the peer is gone.
static bool meet(struct end *end)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .send_cq = end->cq,
        .recv_cq = end->cq,
        .cap = {.max_send_wr = 4 * WINDOW, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct albdv_qp_attr attr = {.in_flight_max = 2 * WINDOW};
    struct hello mine = {.address = (uintptr_t)end->mr->addr, .rkey = end->mr->rkey};
    uint8_t ready = 0;
    end->qp = ibv_create_qp(end->pd, &init);
    end->dv = end->qp ? albdv_extend_qp(end->qp, &attr) : NULL;
    if (!end->dv || ibv_query_gid(end->context, 1, 0, &mine.gid))
        die("queue pair");
    mine.qpn = end->qp->qp_num;
    return exchange(end->stream, &mine, &end->peer) && to_rts(end) && send(end->stream, &ready, 1, MSG_NOSIGNAL) == 1 &&
           recv(end->stream, &ready, 1, MSG_WAITALL) == 1;
}

static struct sockaddr_in address_of(const char *port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

// ---- target ---------------------------------------------------------------------------------------------------------

static struct ibv_mr *map_volatile(struct end *end, const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, REGION_BYTES) != 0)
        die(path);
    void *memory = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return ibv_reg_mr(end->pd, memory, REGION_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static _Noreturn void be_target(const char *port, const char *path, const char *mode)
{
    struct end end = {0};
    struct sockaddr_in address = address_of(port);
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    open_device(&end);
    end.mr = strcmp(mode, "volatile") == 0
                 ? map_volatile(&end, path)
                 : albdv_reg_durable(end.pd, path, REGION_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                                     strcmp(mode, "cached") == 0 ? ALBDV_DURABLE_PAGE_CACHE : 0);
    if (!end.mr)
        die(path);
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 8) != 0)
        die("listen");
    puts("ready");
    fflush(stdout);
    while (true) {
        uint8_t byte;
        end.stream = accept(listener, NULL, NULL);
        if (end.stream >= 0 && meet(&end))
            while (recv(end.stream, &byte, 1, 0) > 0)
                ;
        close(end.stream);
        ibv_destroy_qp(end.qp);
    }
}

// ---- initiator ------------------------------------------------------------------------------------------------------

struct posted {
    uint64_t v;
    struct albdv_token token;
};

struct initiator {
    struct end end;
    const char *port;
    int log;
    uint64_t next;             // v of the next transaction
    struct posted *unresolved; // of earlier connections
    uint32_t unresolved_count;
    struct posted flying[WINDOW]; // v 0: free
    uint32_t flying_count;
    struct albdv_token token; // of this connection's first transaction
    uint64_t *blocks;         // WINDOW + 1 of them
    bool is_lost;
};

static void note(struct initiator *i, const char *format, uint64_t v, const struct albdv_token *token, int reason)
{
    char line[160];
    int length = format[0] == 'P'
                     ? snprintf(line, sizeof(line), "P %llu %llu %llu %llu\n", (unsigned long long)v,
                                (unsigned long long)token->initiator, (unsigned long long)token->number,
                                (unsigned long long)token->keeper)
                     : snprintf(line, sizeof(line), "%c %llu %d\n", format[0], (unsigned long long)v, reason);
    if (write(i->log, line, (size_t)length) != length)
        die("log");
}

static void forget(struct initiator *i, uint64_t v)
{
    for (uint32_t k = 0; k < i->unresolved_count; k++)
        if (i->unresolved[k].v == v)
            i->unresolved[k] = i->unresolved[--i->unresolved_count];
}

static void read_log(struct initiator *i, const char *path)
{
    char line[160], kind;
    FILE *file = fopen(path, "r");
    i->next = 1;
    while (file && fgets(line, sizeof(line), file)) {
        unsigned long long v, a = 0, b = 0, c = 0;
        if (!strchr(line, '\n') || sscanf(line, "%c %llu %llu %llu %llu", &kind, &v, &a, &b, &c) < 2)
            continue; // the last lines of a killed process
        if (kind != 'P')
            forget(i, v);
        else if (i->unresolved_count < UNRESOLVED_MAX)
            i->unresolved[i->unresolved_count++] =
                (struct posted){.v = v, .token = {.initiator = a, .number = b, .keeper = c}};
        if (v >= i->next)
            i->next = v + 1;
    }
    if (file)
        fclose(file);
}

static bool is_peer_gone(struct initiator *i)
{
    struct pollfd ready = {.fd = i->end.stream, .events = POLLIN};
    return poll(&ready, 1, 0) > 0;
}

// The next completion. False: the peer is gone, and there is none.
static bool wait_completion(struct initiator *i, struct ibv_wc *wc)
{
    for (uint32_t idle = 0;; idle++) {
        int count = ibv_poll_cq(i->end.cq, 1, wc);
        if (count > 0)
            return true;
        if (idle % 64 == 63 && !i->is_lost && is_peer_gone(i)) {
            struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
            ibv_modify_qp(i->end.qp, &attr, IBV_QP_STATE); // what is in flight ends now
            i->is_lost = true;
            idle = 0;
        }
        if (i->is_lost && idle > 2000)
            return false;
        if (idle > 500)
            usleep(50);
    }
}

static void post(struct initiator *i, uint32_t place, uint64_t v)
{
    struct end *end = &i->end;
    struct ibv_qp_ex *qp = end->dv->qp;
    uint64_t *block = i->blocks + (size_t)place * BLOCK / 8, slot = v ? v % SLOTS : SLOTS;
    for (size_t k = 0; k < BLOCK / 8; k++)
        block[k] = v;
    ibv_wr_start(qp);
    qp->wr_id = place;
    qp->wr_flags = IBV_SEND_SIGNALED;
    albdv_wr_txn(end->dv, ALBDV_COMMITTED, 0);
    for (uint64_t copy = 0; copy < 2; copy++) {
        albdv_wr_txn_write(end->dv, end->peer.rkey, end->peer.address + (copy * (SLOTS + 1) + slot) * BLOCK);
        ibv_wr_set_sge(qp, end->mr->lkey, (uintptr_t)block, BLOCK);
    }
    albdv_wr_txn_lease(end->dv, LEASE_NS);
    uint64_t number = albdv_wr_txn_end(end->dv);
    if (v) {
        struct posted *posted = &i->flying[place];
        *posted = (struct posted){.v = v, .token = i->token};
        posted->token.number = number;
        i->flying_count++;
        note(i, "P", v, &posted->token, 0);
    }
    if (ibv_wr_complete(qp) == 0)
        return;
    i->is_lost = true; // the queue pair has failed already, and has taken nothing
    if (v) {
        note(i, "A", v, NULL, 0);
        i->flying[place].v = 0;
        i->flying_count--;
    }
}

// What a completion says became of a transaction; it stays open if that is in doubt.
static void conclude(struct initiator *i, const struct posted *posted, const struct ibv_wc *wc, bool is_answer)
{
    enum albdv_reason reason = albdv_wc_reason(wc);
    if (wc->status == IBV_WC_SUCCESS)
        note(i, "C", posted->v, NULL, 0);
    else if (wc->status == IBV_WC_REM_ABORT_ERR)
        note(i, "A", posted->v, NULL, (int)reason);
    else if (is_answer)
        note(i, "U", posted->v, NULL, (int)reason);
    else if (!is_answer)
        i->unresolved[i->unresolved_count++] = *posted;
}

static void take_one(struct initiator *i)
{
    struct ibv_wc wc;
    if (!wait_completion(i, &wc)) {
        for (uint32_t k = 0; k < WINDOW; k++) {
            if (i->flying[k].v)
                i->unresolved[i->unresolved_count++] = i->flying[k];
            i->flying[k].v = 0;
        }
        i->flying_count = 0;
        return;
    }
    struct posted *posted = &i->flying[wc.wr_id];
    conclude(i, posted, &wc, false);
    posted->v = 0;
    i->flying_count--;
}

// Connects, and learns the queue pair's name by a first transaction.
static bool connect_again(struct initiator *i)
{
    struct sockaddr_in address = address_of(i->port);
    struct albdv_txn_status status;
    struct ibv_wc wc;
    if (i->end.qp)
        ibv_destroy_qp(i->end.qp);
    if (i->end.stream > 0)
        close(i->end.stream);
    i->end.qp = NULL;
    i->is_lost = false;
    i->end.stream = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(i->end.stream, (struct sockaddr *)&address, sizeof(address)) != 0 || !meet(&i->end))
        return false;
    post(i, WINDOW, 0);
    if (!wait_completion(i, &wc) || wc.status != IBV_WC_SUCCESS)
        return false;
    if (albdv_query_txn(i->end.dv, albdv_wc_number(&wc), &status, sizeof(status)) != 0)
        die("query");
    i->token = status.token;
    return true;
}

static bool is_in_rts(struct initiator *i)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    return ibv_query_qp(i->end.qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_RTS;
}

static void resolve_one(struct initiator *i)
{
    struct posted posted = i->unresolved[i->unresolved_count - 1];
    struct ibv_qp_ex *qp = i->end.dv->qp;
    struct ibv_wc wc;
    ibv_wr_start(qp);
    qp->wr_id = WINDOW + 1;
    qp->wr_flags = IBV_SEND_SIGNALED;
    albdv_wr_reconcile(i->end.dv, &posted.token, posted.v % 3 ? ALBDV_ASK : ALBDV_ABORT);
    if (ibv_wr_complete(qp) != 0 || !wait_completion(i, &wc)) {
        i->is_lost = true;
        return;
    }
    // The queue pair's own end is no answer; what it says of a transaction it does not know either.
    bool is_answer = wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_ABORT_ERR ||
                     (wc.status == IBV_WC_RESP_TIMEOUT_ERR && !i->is_lost && is_in_rts(i));
    if (!is_answer) {
        i->is_lost = true;
        return;
    }
    conclude(i, &posted, &wc, true);
    i->unresolved_count--;
}

static uint32_t free_place(const struct initiator *i)
{
    uint32_t place = 0;
    while (i->flying[place].v)
        place++;
    return place;
}

static int be_initiator(const char *port, const char *path, uint64_t count)
{
    struct initiator i = {.port = port, .is_lost = true};
    i.unresolved = calloc(UNRESOLVED_MAX + WINDOW, sizeof(*i.unresolved));
    i.blocks = calloc(WINDOW + 1, BLOCK);
    if (!i.unresolved || !i.blocks)
        die("memory");
    read_log(&i, path);
    i.log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (i.log < 0)
        die(path);
    dprintf(i.log, "\n"); // ends what a predecessor may have begun to write
    open_device(&i.end);
    i.end.mr = ibv_reg_mr(i.end.pd, i.blocks, (WINDOW + 1) * BLOCK, IBV_ACCESS_LOCAL_WRITE);
    uint64_t last = i.next + count;
    for (uint32_t attempts = 0; attempts < 3000;) {
        if (i.is_lost && i.flying_count == 0 && !connect_again(&i)) {
            i.is_lost = true;
            attempts++;
            usleep(10000);
        } else if (!i.is_lost && i.flying_count == 0 && i.unresolved_count > 0) {
            resolve_one(&i);
        } else if (!i.is_lost && i.next < last && i.flying_count < WINDOW) {
            uint64_t v = i.next++;
            post(&i, free_place(&i), v);
        } else if (i.flying_count > 0) {
            take_one(&i);
        } else if (!i.is_lost) {
            return 0;
        }
    }
    fputs("nobody is there\n", stderr);
    return 3;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "target") == 0)
        be_target(argv[2], argv[3], argv[4]);
    if (argc == 5 && strcmp(argv[1], "initiator") == 0)
        return be_initiator(argv[2], argv[3], strtoull(argv[4], NULL, 10));
    fputs("usage: crash_worker target PORT FILE MODE | initiator PORT LOG COUNT\n", stderr);
    return 2;
}
