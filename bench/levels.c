// SPDX-License-Identifier: BSD-2-Clause
// levels: how long operations take, and how many a second there can be, when their completions mean more than an
// acknowledgement. One side is the target and does nothing; the other writes blocks to its memory, place after place:
// what is reflected only is still bound when its place comes again too soon. Prints a line of JSON (reflect.py).
#include "bench/flow.h"
#include "bench/parse.h"

#include <albedo/albedodv.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WARM_OPERATIONS 200
#define PLACES          4 // for each operation in flight
#define ACCESS          (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct hello {
    union ibv_gid gid;
    uint32_t qpn, rkey;
    uint64_t address;
};

struct level {
    const char *name;
    enum albdv_level level;
    uint32_t txn_flags;
    bool is_transaction;
};

static const struct level levels[] = {
    {"delivered", ALBDV_DELIVERED, 0, false},
    {"visible", ALBDV_VISIBLE, 0, false},
    {"reflected", ALBDV_REFLECTED, 0, true},
    {"committed", ALBDV_COMMITTED, 0, true},
    {"committed-in-place", ALBDV_COMMITTED, ALBDV_TXN_IN_PLACE, true},
};

static struct alb_flow_options options = {.device = "albedo0", .window = 1, .bytes = 8, .measure_s = 1};
static const struct level *level = &levels[0];
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct albdv_qp_ex *extended;
static struct ibv_mr *mr;
static uint8_t *memory;
static struct hello mine, theirs;
static uint64_t *started_ns; // of the operation in each place

static void check(bool is_good, const char *what)
{
    if (!is_good)
        alb_flow_die(what);
}

static void check_error(int error, const char *what)
{
    errno = error;
    check(error == 0, what);
}

// ---- set-up ---------------------------------------------------------------------------------------------------------

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    for (int i = 0; list && list[i]; i++)
        if (strcmp(ibv_get_device_name(list[i]), options.device) == 0)
            context = ibv_open_device(list[i]);
    check(context != NULL, options.device);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    check(pd && channel, "protection domain, completion channel");
    cq = ibv_create_cq(context, 2 * (int)options.window + 2, NULL, channel, 0);
    check(cq != NULL, "completion queue");
    check(ibv_query_gid(context, 1, 0, &mine.gid) == 0, "ibv_query_gid");
}

static void make_memory(void)
{
    size_t bytes = ((size_t)options.bytes * options.window * PLACES + 4095) / 4096 * 4096;
    memory = aligned_alloc(4096, bytes);
    started_ns = calloc((size_t)options.window * PLACES, sizeof(*started_ns));
    check(memory && started_ns, "memory");
    memset(memory, options.peer ? 0x5a : 0, bytes);
    mr = ibv_reg_mr(pd, memory, bytes, ACCESS);
    check(mr != NULL, "ibv_reg_mr");
    if (!options.peer) // readers are held out as in a program that has some
        check(albdv_create_region(mr, NULL) != NULL, "albdv_create_region");
}

static void make_qp(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 2 * options.window + 2, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    const struct albdv_qp_attr attr = {.in_flight_max = options.window + 1};
    qp = ibv_create_qp(pd, &init);
    check(qp != NULL, "ibv_create_qp");
    extended = albdv_extend_qp(qp, &attr);
    check(extended != NULL, "albdv_extend_qp");
    mine.qpn = qp->qp_num;
    mine.rkey = mr->rkey;
    mine.address = (uintptr_t)memory;
}

static void connect_qp(void)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    check_error(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_4096,
        .rq_psn = 1,
        .dest_qp_num = theirs.qpn,
        .min_rnr_timer = 12,
        .max_dest_rd_atomic = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = theirs.gid, .hop_limit = 64}},
    };
    check_error(ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
                "RTR");
    // The timeout: a peer that gets no processor for seconds is not dead.
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .sq_psn = 1, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    check_error(ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_MAX_QP_RD_ATOMIC),
                "RTS");
}

static int meet(void)
{
    struct alb_flow_blob out = {.bytes = sizeof(mine)}, in;
    int fd;
    if (options.peer) {
        fd = alb_flow_dial(&options, options.port);
    } else {
        int listener = alb_flow_listen(&options, options.port);
        fd = alb_flow_accept(listener);
        close(listener);
    }
    memcpy(out.data, &mine, sizeof(mine));
    alb_flow_exchange(fd, &out, &in);
    memcpy(&theirs, in.data, sizeof(theirs));
    connect_qp();
    alb_flow_exchange(fd, &out, &in); // both can receive
    return fd;
}

// ---- operations -----------------------------------------------------------------------------------------------------

static int try_post(uint32_t place)
{
    uint64_t from = (uintptr_t)memory + (uint64_t)place * options.bytes;
    uint64_t to = theirs.address + (uint64_t)place * options.bytes;
    ibv_wr_start(extended->qp);
    extended->qp->wr_id = place;
    extended->qp->wr_flags = IBV_SEND_SIGNALED;
    if (level->is_transaction) {
        albdv_wr_txn(extended, level->level, level->txn_flags);
        albdv_wr_txn_write(extended, theirs.rkey, to);
        ibv_wr_set_sge(extended->qp, mr->lkey, from, options.bytes);
        albdv_wr_txn_end(extended);
    } else {
        ibv_wr_rdma_write(extended->qp, theirs.rkey, to);
        ibv_wr_set_sge(extended->qp, mr->lkey, from, options.bytes);
        if (level->level != ALBDV_DELIVERED)
            albdv_wr_set_level(extended, level->level);
    }
    return ibv_wr_complete(extended->qp);
}

// What completed at REFLECTED keeps its number until it is exposed: there may be none left for a moment.
static void post(uint32_t place)
{
    int error;
    started_ns[place] = alb_flow_now();
    while ((error = try_post(place)) == ENOMEM && level->level == ALBDV_REFLECTED)
        sched_yield();
    check_error(error, "post");
}

static void sleep_for_completion(void)
{
    struct ibv_cq *which;
    void *context_of_cq;
    check(ibv_get_cq_event(channel, &which, &context_of_cq) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
}

static struct ibv_wc wait_completion(void)
{
    struct ibv_wc wc;
    bool is_armed = false;
    int count;
    while ((count = ibv_poll_cq(cq, 1, &wc)) == 0) {
        if (!options.is_event)
            continue;
        if (is_armed)
            sleep_for_completion();
        else
            check_error(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
        is_armed = !is_armed; // and look once more before it sleeps
    }
    check(count > 0, "ibv_poll_cq");
    if (wc.status != IBV_WC_SUCCESS)
        alb_flow_fail(ibv_wc_status_str(wc.status), albdv_reason_str(albdv_wc_reason(&wc)));
    return wc;
}

static void initiate(int fd)
{
    struct alb_flow_times times = {0};
    uint64_t done = 0;
    uint32_t places = options.window * PLACES, place = 0;
    while (place < options.window)
        post(place++);
    for (uint32_t i = 0; i < WARM_OPERATIONS; i++) {
        wait_completion();
        post(place++ % places);
    }
    uint64_t begin_ns = alb_flow_now(), end_ns = begin_ns + (uint64_t)(options.measure_s * 1e9), now_ns;
    do {
        uint32_t ended = (uint32_t)wait_completion().wr_id;
        now_ns = alb_flow_now();
        alb_flow_times_add(&times, now_ns - started_ns[ended]);
        done++;
        post(place++ % places);
    } while (now_ns < end_ns);
    double seconds = (double)(now_ns - begin_ns) * 1e-9;
    for (uint32_t i = 0; i < options.window; i++)
        wait_completion();
    printf("{\"level\": \"%s\", \"bytes\": %u, \"window\": %u, \"operations\": %llu, \"bytes_in_all\": %.0f, "
           "\"bytes_per_s\": %.0f",
           level->name, options.bytes, options.window, (unsigned long long)done,
           (double)(done + WARM_OPERATIONS + options.window) * options.bytes, (double)done * options.bytes / seconds);
    alb_flow_times_print(&times, "time");
    printf("}\n");
    check(write(fd, "", 1) == 1, "end");
}

static void be_target(int fd)
{
    char end;
    check(read(fd, &end, 1) >= 0, "end"); // whichever way the other side ends
}

// ---- options --------------------------------------------------------------------------------------------------------

static void set_level(const char *name)
{
    for (uint32_t i = 0; i < ALB_COUNT(levels); i++)
        if (strcmp(levels[i].name, name) == 0) {
            level = &levels[i];
            return;
        }
    alb_flow_fail(name, "delivered, visible, reflected, committed or committed-in-place");
}

static uint32_t number(const char *text, uint32_t most)
{
    uint32_t value;
    if (!alb_bench_parse_number(text, 1, most, &value))
        alb_flow_fail(text, "not such a number");
    return value;
}

static void take_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"device", required_argument, NULL, 'd'},
        {"local", required_argument, NULL, 'l'},
        {"peer", required_argument, NULL, 'p'},
        {"port", required_argument, NULL, 'P'},
        {"bytes", required_argument, NULL, 'b'},
        {"window", required_argument, NULL, 'w'},
        {"ms", required_argument, NULL, 'm'},
        {"level", required_argument, NULL, 'L'},
        {"sleep", no_argument, NULL, 's'}, // for completions; else poll
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'd':
            options.device = optarg;
            break;
        case 'l':
            options.local = optarg;
            break;
        case 'p':
            options.peer = optarg;
            break;
        case 'P':
            options.port = (uint16_t)number(optarg, UINT16_MAX);
            break;
        case 'b':
            options.bytes = number(optarg, 1u << 26);
            break;
        case 'w':
            options.window = number(optarg, 1024);
            break;
        case 'm':
            options.measure_s = number(optarg, 600000) / 1e3;
            break;
        case 'L':
            set_level(optarg);
            break;
        case 's':
            options.is_event = true;
            break;
        default:
            exit(2);
        }
    }
    if (!options.local || !options.port)
        alb_flow_fail("options", "--local ADDRESS and --port NUMBER are needed");
}

int main(int argc, char **argv)
{
    take_options(argc, argv);
    open_device();
    make_memory();
    make_qp();
    int fd = meet();
    if (options.peer)
        initiate(fd);
    else
        be_target(fd);
    return 0;
}
