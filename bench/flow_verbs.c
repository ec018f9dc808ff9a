// SPDX-License-Identifier: BSD-2-Clause
// flow over verbs: RC queue pairs, messages are RDMA writes with immediate data into a slot of the receiver's memory.
#include "bench/flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INLINE_BYTES 64

// What the other side must know.
struct hello {
    union ibv_gid gid;
    uint32_t qpn, psn, rkey;
    uint64_t address;
};

struct verbs_link {
    struct alb_flow_link base;
    struct ibv_qp *qp;
    struct ibv_mr *region; // window slots of a message each; of a sender: one, from which all its messages are sent
    uint8_t *memory;
    struct hello mine, theirs;
    uint32_t outstanding;
};

static const struct alb_flow_options *options;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static int gid_index;

static uint32_t receives(void)
{
    return options->window + ALB_FLOW_ANSWERS;
}

static uint32_t sends(void)
{
    return options->window + ALB_FLOW_ANSWERS;
}

static uint32_t slot_bytes(void)
{
    return ALB_MAX(options->bytes, (uint32_t)ALB_FLOW_ANSWER_BYTES);
}

static void open_device(void)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; i < count; i++) {
        if (strcmp(ibv_get_device_name(list[i]), options->device) == 0)
            context = ibv_open_device(list[i]);
    }
    if (!context)
        alb_flow_fail(options->device, "there is no such device, or it cannot be opened");
    ibv_free_device_list(list);
}

// The GID that is our address.
static void find_gid(void)
{
    union ibv_gid wanted = {.raw = {[10] = 0xff, [11] = 0xff}}, gid;
    if (inet_pton(AF_INET, options->local, wanted.raw + 12) != 1 &&
        inet_pton(AF_INET6, options->local, wanted.raw) != 1)
        alb_flow_fail(options->local, "not an address");
    for (gid_index = 0; ibv_query_gid(context, 1, gid_index, &gid) == 0; gid_index++) {
        if (memcmp(&gid, &wanted, sizeof(gid)) == 0)
            return;
    }
    alb_flow_fail(options->local, "the device does not have this address");
}

static void verbs_open(const struct alb_flow_options *o)
{
    options = o;
    open_device();
    find_gid();
    pd = ibv_alloc_pd(context);
    channel = o->is_event ? ibv_create_comp_channel(context) : NULL;
    if (channel && fcntl(channel->fd, F_SETFL, O_NONBLOCK) != 0)
        alb_flow_die("fcntl");
    uint32_t links = o->peer ? 1 : o->senders;
    cq = ibv_create_cq(context, (int)(links * (sends() + receives())), NULL, channel, 0);
    if (!pd || (o->is_event && !channel) || !cq)
        alb_flow_die("open");
}

static void post_receive(struct verbs_link *l)
{
    struct ibv_recv_wr wr = {.wr_id = (uintptr_t)l}, *bad;
    errno = ibv_post_recv(l->qp, &wr, &bad);
    if (errno)
        alb_flow_die("ibv_post_recv");
}

static struct alb_flow_link *verbs_create(uint32_t number, struct alb_flow_blob *mine)
{
    struct verbs_link *l = calloc(1, sizeof(*l));
    size_t bytes = (size_t)slot_bytes() * (options->peer ? 1 : options->window);
    if (!l || !(l->memory = calloc(1, bytes)))
        alb_flow_die("create");
    l->base.number = number;
    l->base.memory = l->memory;
    l->region = ibv_reg_mr(pd, l->memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = sends(),
                                            .max_recv_wr = receives(),
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = INLINE_BYTES}};
    l->qp = l->region ? ibv_create_qp(pd, &init) : NULL;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    if (!l->qp ||
        (errno = ibv_modify_qp(l->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)))
        alb_flow_die("ibv_create_qp");
    for (uint32_t i = 0; i < receives(); i++)
        post_receive(l);
    l->mine = (struct hello){.qpn = l->qp->qp_num,
                             .psn = (uint32_t)alb_flow_now() & 0xffffff,
                             .rkey = l->region->rkey,
                             .address = (uintptr_t)l->memory};
    if (ibv_query_gid(context, 1, gid_index, &l->mine.gid) != 0)
        alb_flow_die("ibv_query_gid");
    mine->bytes = sizeof(l->mine);
    memcpy(mine->data, &l->mine, sizeof(l->mine));
    return &l->base;
}

static void verbs_connect(struct alb_flow_link *link, const struct alb_flow_blob *theirs)
{
    struct verbs_link *l = (struct verbs_link *)link;
    struct ibv_port_attr port;
    memcpy(&l->theirs, theirs->data, sizeof(l->theirs));
    if (ibv_query_port(context, 1, &port) != 0)
        alb_flow_die("ibv_query_port");
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = port.active_mtu,
        .dest_qp_num = l->theirs.qpn,
        .rq_psn = l->theirs.psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = l->theirs.gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}},
    };
    errno = ibv_modify_qp(l->qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (errno)
        alb_flow_die("ready to receive");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = options->ack_timeout,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .sq_psn = l->mine.psn,
                                .max_rd_atomic = 1};
    errno = ibv_modify_qp(l->qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                              IBV_QP_MAX_QP_RD_ATOMIC);
    if (errno)
        alb_flow_die("ready to send");
}

static bool verbs_send(struct alb_flow_link *link, uint32_t bytes, uint32_t slot, uint32_t word, uint64_t stamp)
{
    struct verbs_link *l = (struct verbs_link *)link;
    if (l->outstanding == sends())
        return false;
    // An exchange has one message in flight; the messages of a stream are all alike.
    memcpy(l->memory, &stamp, sizeof(stamp));
    struct ibv_sge sge = {(uintptr_t)l->memory, bytes, l->region->lkey};
    struct ibv_send_wr wr = {.wr_id = (uintptr_t)l,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                             .send_flags = bytes <= INLINE_BYTES ? IBV_SEND_INLINE : 0,
                             .imm_data = htonl(word),
                             .wr.rdma = {l->theirs.address + (uint64_t)slot * slot_bytes(), l->theirs.rkey}};
    struct ibv_send_wr *bad;
    errno = ibv_post_send(l->qp, &wr, &bad);
    if (errno)
        alb_flow_die("ibv_post_send");
    l->outstanding++;
    return true;
}

static uint32_t verbs_progress(struct alb_flow_event *events)
{
    struct ibv_wc wc[ALB_FLOW_EVENTS_MAX];
    int count = ibv_poll_cq(cq, ALB_FLOW_EVENTS_MAX, wc);
    if (count < 0)
        alb_flow_die("ibv_poll_cq");
    uint32_t filled = 0;
    for (int i = 0; i < count; i++) {
        struct verbs_link *l = (struct verbs_link *)(uintptr_t)wc[i].wr_id;
        if (wc[i].status != IBV_WC_SUCCESS) {
            if (l->base.is_over)
                continue;
            alb_flow_fail("completion", ibv_wc_status_str(wc[i].status));
        }
        if (wc[i].opcode & IBV_WC_RECV) {
            post_receive(l);
            events[filled++] = (struct alb_flow_event){&l->base, ALB_FLOW_CAME, ntohl(wc[i].imm_data), l->memory};
        } else {
            l->outstanding--;
            events[filled++] = (struct alb_flow_event){&l->base, ALB_FLOW_SENT, 0, NULL};
        }
    }
    return filled;
}

static int verbs_arm(void)
{
    static bool is_armed;
    struct ibv_cq *which;
    void *of;
    if (ibv_get_cq_event(channel, &which, &of) == 0) {
        ibv_ack_cq_events(which, 1);
        is_armed = false;
    }
    if (is_armed)
        return channel->fd;
    if (ibv_req_notify_cq(cq, 0) != 0)
        alb_flow_die("ibv_req_notify_cq");
    is_armed = true;
    return -1; // what came before it was armed is still to be looked at
}

const struct alb_flow_ops alb_flow_verbs = {"verbs",    verbs_open,     verbs_create, verbs_connect,
                                            verbs_send, verbs_progress, verbs_arm};
