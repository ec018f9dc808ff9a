// SPDX-License-Identifier: BSD-2-Clause
// The queue pairs of a datagram rsocket and their buffers. A datagram stays in the buffer of its receive until the
// program reads it; while all are taken, what comes is lost, as with UDP.
#include "plugins/rdmacm/rsocket_datagram.h"
#include "wire/aeth.h"

#include <stdlib.h>
#include <string.h>

enum {
    GRH_BYTES = 40,
    RECEIVE_STRIDE = GRH_BYTES + RSOCKET_DATAGRAM_MAX,
    QUEUE_MIN = 16,
    QUEUE_MAX = 1024,
    COMPLETIONS = 16,
    ROUNDS_MAX = 256,
};

#define SEND_MARK (1ull << 32)

static uint8_t *send_buffer(const struct rsocket_dpair *pair, uint32_t index)
{
    return pair->memory + (size_t)pair->receive_count * RECEIVE_STRIDE + (size_t)index * RSOCKET_DATAGRAM_MAX;
}

static int post_receive(struct rsocket_dpair *pair, uint32_t index)
{
    struct ibv_sge sge = {.addr = (uintptr_t)(pair->memory + (size_t)index * RECEIVE_STRIDE),
                          .length = RECEIVE_STRIDE,
                          .lkey = pair->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1};
    return ibv_post_recv(pair->id->qp, &wr, &bad);
}

static int open_memory(struct rsocket_dpair *pair)
{
    size_t bytes = (size_t)pair->receive_count * RECEIVE_STRIDE + (size_t)pair->send_count * RSOCKET_DATAGRAM_MAX;
    pair->memory = calloc(1, bytes);
    pair->receives = calloc(pair->receive_count, sizeof(*pair->receives));
    pair->free_sends = calloc(pair->send_count, sizeof(*pair->free_sends));
    if (!pair->memory || !pair->receives || !pair->free_sends)
        return ENOMEM;
    pair->mr = ibv_reg_mr(pair->id->pd, pair->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!pair->mr)
        return errno;
    for (uint32_t i = 0; i < pair->send_count; i++)
        pair->free_sends[pair->free_send_count++] = i;
    return 0;
}

static int open_queues(struct rsocket_datagram *datagram, struct rsocket_dpair *pair)
{
    struct rsocket_settings *settings = &datagram->rs.settings;
    pair->completions = ibv_create_comp_channel(pair->id->verbs);
    if (!pair->completions)
        return errno;
    rsocket_set_blocking(pair->completions->fd, false);
    pair->cq =
        ibv_create_cq(pair->id->verbs, (int)(pair->receive_count + pair->send_count), NULL, pair->completions, 0);
    if (!pair->cq)
        return errno;
    struct ibv_qp_init_attr attr = {
        .send_cq = pair->cq,
        .recv_cq = pair->cq,
        .cap = {.max_send_wr = pair->send_count,
                .max_recv_wr = pair->receive_count,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = settings->inline_bytes},
        .qp_type = IBV_QPT_UD,
        .sq_sig_all = 1,
    };
    if (rdma_create_qp(pair->id, NULL, &attr))
        return errno;
    return rsocket_listen_to(&datagram->rs, pair->completions->fd);
}

static int learn_limits(struct rsocket_datagram *datagram, struct rsocket_dpair *pair)
{
    const struct rsocket_settings *settings = &datagram->rs.settings;
    struct ibv_port_attr port;
    int error = ibv_query_port(pair->id->verbs, pair->id->port_num, &port);
    if (error)
        return error;
    pair->payload_max_bytes = ALB_MIN(alb_mtu_bytes(port.active_mtu), (uint32_t)RSOCKET_DATAGRAM_MAX);
    uint32_t receives = ALB_MAX(settings->receive_queue, (uint32_t)QUEUE_MIN);
    uint32_t sends = ALB_MAX(settings->send_queue, (uint32_t)QUEUE_MIN);
    pair->receive_count = ALB_MIN(receives, (uint32_t)QUEUE_MAX);
    pair->send_count = ALB_MIN(sends, (uint32_t)QUEUE_MAX);
    return 0;
}

static int open_pair(struct rsocket_datagram *datagram, struct rsocket_dpair *pair)
{
    int error = learn_limits(datagram, pair);
    if (!error)
        error = open_memory(pair);
    if (!error)
        error = open_queues(datagram, pair);
    for (uint32_t i = 0; !error && i < pair->receive_count; i++)
        error = post_receive(pair, i);
    return error;
}

int rsocket_dpair_open(struct rsocket_datagram *datagram, struct rdma_cm_id *id, struct rsocket_dpair **out)
{
    struct rsocket_dpair *pair = calloc(1, sizeof(*pair));
    if (!pair)
        return ENOMEM;
    pair->id = id;
    int error = open_pair(datagram, pair);
    if (error) {
        pair->id = NULL; // it stays the caller's
        if (id->qp)
            rdma_destroy_qp(id);
        rsocket_dpair_close(pair);
        return error;
    }
    alb_list_push_back(&datagram->pairs, &pair->link);
    *out = pair;
    return 0;
}

void rsocket_dpair_close(struct rsocket_dpair *pair)
{
    if (pair->id) {
        rdma_destroy_qp(pair->id);
        alb_list_remove(&pair->link);
    }
    if (pair->cq)
        ibv_destroy_cq(pair->cq);
    if (pair->completions)
        ibv_destroy_comp_channel(pair->completions);
    if (pair->mr)
        ibv_dereg_mr(pair->mr);
    if (pair->id)
        rdma_destroy_id(pair->id);
    free(pair->memory);
    free(pair->receives);
    free(pair->free_sends);
    free(pair);
}

// ---- what comes

static bool is_wanted(const struct rsocket_datagram *datagram, const struct rsocket_datagram_header *from)
{
    return !datagram->is_connected ||
           (alb_addr_equals(&from->source, &datagram->connected.addr) && from->port == datagram->connected.port);
}

// False: it is nothing that an rsocket sends.
static bool take_receive(struct rsocket_datagram *datagram, struct rsocket_dpair *pair, const struct ibv_wc *wc)
{
    uint32_t index = (uint32_t)wc->wr_id;
    struct rsocket_arrival *arrival = &pair->receives[index];
    uint8_t *bytes = pair->memory + (size_t)index * RECEIVE_STRIDE + GRH_BYTES;
    if (wc->status != IBV_WC_SUCCESS || wc->byte_len < GRH_BYTES)
        return false;
    uint32_t length = wc->byte_len - GRH_BYTES;
    size_t skip = rsocket_datagram_header_decode(bytes, length, &arrival->from);
    if (skip == 0 || !is_wanted(datagram, &arrival->from))
        return false;
    arrival->pair = pair;
    arrival->bytes = bytes + skip;
    arrival->length = length - (uint32_t)skip;
    alb_list_push_back(&datagram->arrivals, &arrival->link);
    return true;
}

static void on_completion(struct rsocket_datagram *datagram, struct rsocket_dpair *pair, const struct ibv_wc *wc)
{
    if (wc->wr_id & SEND_MARK)
        pair->free_sends[pair->free_send_count++] = (uint32_t)wc->wr_id;
    else if (!take_receive(datagram, pair, wc))
        post_receive(pair, (uint32_t)wc->wr_id);
}

bool rsocket_dpair_progress(struct rsocket_datagram *datagram, struct rsocket_dpair *pair)
{
    struct ibv_wc wc[COMPLETIONS];
    struct ibv_cq *cq;
    void *context;
    bool has_changed = false;
    int count = COMPLETIONS;
    if (pair->is_armed && !ibv_get_cq_event(pair->completions, &cq, &context)) {
        ibv_ack_cq_events(cq, 1);
        pair->is_armed = false;
    }
    for (int round = 0; round < ROUNDS_MAX && count == COMPLETIONS; round++) {
        count = ibv_poll_cq(pair->cq, COMPLETIONS, wc);
        for (int i = 0; i < count; i++)
            on_completion(datagram, pair, &wc[i]);
        has_changed |= count > 0;
    }
    return has_changed;
}

void rsocket_dpair_again(struct rsocket_datagram *datagram, struct rsocket_arrival *arrival)
{
    if (arrival->pair) {
        post_receive(arrival->pair, (uint32_t)(arrival - arrival->pair->receives));
        return;
    }
    datagram->udp_arrivals--;
    free(arrival);
}

// ---- sending

int rsocket_dpair_send(struct rsocket_dpair *pair, const struct rsocket_peer *peer,
                       const struct rsocket_datagram_header *header, struct rsocket_cursor *from)
{
    uint32_t index = pair->free_sends[pair->free_send_count - 1];
    uint8_t *buffer = send_buffer(pair, index);
    size_t skip = rsocket_datagram_header_encode(header, buffer), length = from->left;
    rsocket_cursor_gather(from, buffer + skip, length);
    struct ibv_sge sge = {.addr = (uintptr_t)buffer, .length = (uint32_t)(skip + length), .lkey = pair->mr->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = SEND_MARK | index,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .wr.ud = {.ah = peer->ah, .remote_qpn = peer->qpn, .remote_qkey = RDMA_UDP_QKEY},
                             };
    int error = ibv_post_send(pair->id->qp, &wr, &bad);
    if (!error)
        pair->free_send_count--;
    return error;
}
