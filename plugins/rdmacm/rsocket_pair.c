// SPDX-License-Identifier: BSD-2-Clause
// What a stream needs to be connected: completion queue, queue pair, and the memory that both ends use.
#include "plugins/rdmacm/rsocket_stream.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    QUEUE_MIN = 16,
    BYTES_MIN = 8192,
    BYTES_MAX = 1 << 30,
    RECEIVE_BATCH = 32,
};

static uint32_t bounded(uint32_t value, uint32_t low, uint32_t high)
{
    return ALB_MIN(ALB_MAX(value, low), high);
}

// What was asked for, within what there is.
static int fit_settings(struct rsocket_stream *stream)
{
    struct rsocket_settings *settings = &stream->rs.settings;
    struct ibv_device_attr attr;
    int error = ibv_query_device(stream->id->verbs, &attr);
    if (error)
        return error;
    uint32_t most = ALB_MIN((uint32_t)attr.max_qp_wr, (uint32_t)attr.max_cqe / 2) - RSOCKET_CONTROL_SLOTS;
    settings->receive_queue = bounded(settings->receive_queue, QUEUE_MIN, ALB_MIN(most, 0xfffeu));
    settings->send_queue = bounded(settings->send_queue, QUEUE_MIN, most);
    settings->receive_bytes = bounded(settings->receive_bytes, BYTES_MIN, BYTES_MAX) & ~1u;
    settings->send_bytes = bounded(settings->send_bytes, BYTES_MIN, BYTES_MAX);
    return 0;
}

// Those that the peer is granted, and some for its messages about the stream itself, which must arrive though nobody
// here takes what was sent.
static uint32_t receives(const struct rsocket_settings *settings)
{
    return settings->receive_queue + RSOCKET_CONTROL_SLOTS;
}

static int open_cq(struct rsocket_stream *stream)
{
    const struct rsocket_settings *settings = &stream->rs.settings;
    stream->completions = ibv_create_comp_channel(stream->id->verbs);
    if (!stream->completions)
        return errno;
    rsocket_set_blocking(stream->completions->fd, false);
    stream->cq = ibv_create_cq(stream->id->verbs, (int)(receives(settings) + settings->send_queue), NULL,
                               stream->completions, 0);
    return stream->cq ? rsocket_listen_to(&stream->rs, stream->completions->fd) : errno;
}

static int open_qp(struct rsocket_stream *stream)
{
    struct rsocket_settings *settings = &stream->rs.settings;
    struct ibv_qp_init_attr attr = {
        .send_cq = stream->cq,
        .recv_cq = stream->cq,
        .cap = {.max_send_wr = settings->send_queue,
                .max_recv_wr = receives(settings),
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = ALB_MAX(settings->inline_bytes, (uint32_t)RSOCKET_INLINE_MIN)},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    if (rdma_create_qp(stream->id, NULL, &attr))
        return errno;
    settings->inline_bytes = attr.cap.max_inline_data;
    stream->slots = settings->send_queue - RSOCKET_CONTROL_SLOTS;
    stream->control_slots = RSOCKET_CONTROL_SLOTS;
    return 0;
}

static struct ibv_mr *get_memory(struct rsocket_stream *stream, size_t bytes, int access, void **memory)
{
    long page = sysconf(_SC_PAGESIZE);
    size_t whole = (bytes + (size_t)page - 1) / (size_t)page * (size_t)page;
    *memory = aligned_alloc((size_t)page, whole);
    if (!*memory)
        return NULL;
    return ibv_reg_mr(stream->id->pd, *memory, bytes, access);
}

static int open_memory(struct rsocket_stream *stream)
{
    const struct rsocket_settings *settings = &stream->rs.settings;
    size_t table_bytes =
        RSOCKET_TARGETS * sizeof(struct rsocket_place) + settings->iomap_count * sizeof(struct rsocket_mapping);
    void *inbox, *outbox, *table;
    int by_peer = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    stream->inbox_mr = get_memory(stream, settings->receive_bytes, by_peer, &inbox);
    if (inbox)
        rsocket_inbox_init(&stream->inbox, inbox, settings->receive_bytes);
    stream->outbox_mr = get_memory(stream, settings->send_bytes, IBV_ACCESS_LOCAL_WRITE, &outbox);
    stream->outbox = (struct rsocket_outbox){.bytes = outbox, .size = settings->send_bytes};
    stream->table_mr = get_memory(stream, table_bytes, by_peer, &table);
    stream->shared = table;
    if (!stream->inbox_mr || !stream->outbox_mr || !stream->table_mr)
        return ENOMEM;
    stream->mappings = stream->shared + RSOCKET_TARGETS * sizeof(struct rsocket_place) / sizeof(uint64_t);
    for (size_t i = 0; i < table_bytes / sizeof(uint64_t); i++)
        atomic_init(&stream->shared[i], 0);
    return 0;
}

int rsocket_pair_receive(struct rsocket_stream *stream, uint32_t count)
{
    struct ibv_recv_wr batch[RECEIVE_BATCH], *bad;
    while (count > 0) {
        uint32_t now = ALB_MIN(count, (uint32_t)RECEIVE_BATCH);
        for (uint32_t i = 0; i < now; i++)
            batch[i] = (struct ibv_recv_wr){.wr_id = (uint64_t)RSOCKET_WORK_RECEIVE << 32,
                                            .next = i + 1 < now ? &batch[i + 1] : NULL};
        int error = ibv_post_recv(stream->id->qp, batch, &bad);
        if (error)
            return error;
        count -= now;
    }
    return 0;
}

int rsocket_pair_open(struct rsocket_stream *stream)
{
    int error = fit_settings(stream);
    if (!error)
        error = open_cq(stream);
    if (!error)
        error = open_qp(stream);
    if (!error)
        error = open_memory(stream);
    return error ? error : rsocket_pair_receive(stream, receives(&stream->rs.settings));
}

static void put_memory(struct ibv_mr *mr, void *memory)
{
    if (mr)
        ibv_dereg_mr(mr);
    free(memory);
}

void rsocket_pair_close(struct rsocket_stream *stream)
{
    if (stream->id && stream->id->qp)
        rdma_destroy_qp(stream->id);
    if (stream->cq)
        ibv_destroy_cq(stream->cq);
    if (stream->completions)
        ibv_destroy_comp_channel(stream->completions);
    rsocket_iomap_free(stream);
    put_memory(stream->inbox_mr, stream->inbox.bytes);
    put_memory(stream->outbox_mr, stream->outbox.bytes);
    put_memory(stream->table_mr, stream->shared);
}
