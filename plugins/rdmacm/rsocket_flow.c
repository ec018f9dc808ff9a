// SPDX-License-Identifier: BSD-2-Clause
// The messages of a stream: what is sent, and what comes. What the peer writes into our tables is looked at when a
// message says so, copied, and used for nothing but addresses in the peer's own memory; what it claims to have sent is
// held against what it was given.
#include "plugins/rdmacm/rsocket_stream.h"

#include <arpa/inet.h>
#include <string.h>

enum {
    CHUNK_MAX_BYTES = 65536, // of a message: the peer can read the first while we copy the next
    ROOM_MIN_BYTES = 2048,   // below that it is not worth to begin
    COMPLETIONS = 16,        // taken at once
    ROUNDS_MAX = 256,
};

// ---- set-up

void rsocket_flow_greet(const struct rsocket_stream *stream, uint8_t bytes[RSOCKET_HELLO_BYTES])
{
    struct rsocket_hello hello = {
        .is_big_endian = rsocket_host_is_big_endian(),
        .has_iomap = true,
        .credits = (uint16_t)stream->rs.settings.receive_queue,
        .iomap_count = stream->rs.settings.iomap_count,
        .targets = {(uintptr_t)stream->shared, stream->table_mr->rkey, RSOCKET_TARGETS},
        .buffer = {(uintptr_t)stream->inbox.bytes, stream->inbox_mr->rkey, stream->inbox.size / 2},
    };
    rsocket_hello_encode(&hello, bytes);
}

bool rsocket_flow_meet(struct rsocket_stream *stream, const void *bytes, size_t length)
{
    if (!bytes || !rsocket_hello_decode(bytes, length, &stream->peer))
        return false;
    stream->is_swapped = stream->peer.is_big_endian != rsocket_host_is_big_endian();
    stream->peer_index = 1; // the first entry is the buffer of the greeting
    stream->targets[0] = stream->peer.buffer;
    stream->allowed = stream->peer.credits;
    return true;
}

// ---- sending

struct posting {
    enum rsocket_work work;
    uint32_t bytes; // of the outbox
    enum ibv_wr_opcode opcode;
    uint32_t immediate;
    uint64_t addr;
    uint32_t key;
    struct ibv_sge sge[2];
    int sge_count;
};

static void post(struct rsocket_stream *stream, const struct posting *posting)
{
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = (uint64_t)posting->work << 32 | posting->bytes,
                                 .sg_list = (struct ibv_sge *)posting->sge,
                                 .num_sge = posting->sge_count,
                                 .opcode = posting->opcode,
                                 .send_flags = posting->work != RSOCKET_WORK_BYTES ? IBV_SEND_INLINE : 0,
                                 .imm_data = htonl(posting->immediate),
                                 .wr.rdma = {.remote_addr = posting->addr, .rkey = posting->key},
                             };
    uint32_t *slots = posting->work == RSOCKET_WORK_CONTROL ? &stream->control_slots : &stream->slots;
    alb_assert(*slots > 0);
    int error = ibv_post_send(stream->id->qp, &wr, &bad);
    if (error)
        rsocket_stream_fail(stream, error);
    else
        (*slots)--;
}

static uint32_t room_wanted(const struct rsocket_stream *stream)
{
    return ALB_MIN((uint32_t)ROOM_MIN_BYTES, stream->outbox.size);
}

bool rsocket_flow_can_write(struct rsocket *rs)
{
    const struct rsocket_stream *stream = rsocket_stream(rs);
    return stream->state == RSOCKET_OPEN && !stream->has_ended_out && stream->slots > 0 &&
           rsocket_outbox_room(&stream->outbox) >= room_wanted(stream);
}

bool rsocket_flow_can_announce(struct rsocket *rs)
{
    const struct rsocket_stream *stream = rsocket_stream(rs);
    return stream->state == RSOCKET_OPEN && stream->slots > 0 && stream->sent != stream->allowed;
}

bool rsocket_flow_can_send(struct rsocket *rs)
{
    const struct rsocket_stream *stream = rsocket_stream(rs);
    return rsocket_flow_can_write(rs) && stream->sent != stream->allowed &&
           stream->targets[stream->target_index].length > 0;
}

bool rsocket_flow_can_control(struct rsocket *rs)
{
    const struct rsocket_stream *stream = rsocket_stream(rs);
    return stream->state == RSOCKET_OPEN && stream->control_slots > 0;
}

bool rsocket_flow_is_all_sent(const struct rsocket_stream *stream)
{
    return stream->slots == stream->rs.settings.send_queue - RSOCKET_CONTROL_SLOTS &&
           stream->control_slots == RSOCKET_CONTROL_SLOTS;
}

// Fills in where the payload lies: small ones are handed over with the request, others lie in the outbox.
static void post_payload(struct rsocket_stream *stream, struct posting *posting, struct rsocket_cursor *from,
                         uint32_t length)
{
    uint8_t small[ALB_MAX_INLINE];
    if (length <= ALB_MIN(stream->rs.settings.inline_bytes, (uint32_t)sizeof(small))) {
        rsocket_cursor_gather(from, small, length);
        posting->work = RSOCKET_WORK_INLINE;
        posting->sge[0] = (struct ibv_sge){.addr = (uintptr_t)small, .length = length};
        posting->sge_count = 1;
        post(stream, posting);
        return;
    }
    struct rsocket_pieces pieces = rsocket_outbox_put(&stream->outbox, from, length);
    for (int i = 0; i < pieces.count; i++)
        posting->sge[i] = (struct ibv_sge){(uintptr_t)pieces.piece[i].iov_base, (uint32_t)pieces.piece[i].iov_len,
                                           stream->outbox_mr->lkey};
    posting->sge_count = pieces.count;
    posting->work = RSOCKET_WORK_BYTES;
    posting->bytes = length;
    post(stream, posting);
}

void rsocket_flow_send(struct rsocket_stream *stream, struct rsocket_cursor *from)
{
    struct rsocket_place *target = &stream->targets[stream->target_index];
    uint32_t most = ALB_MIN(target->length, rsocket_outbox_room(&stream->outbox));
    most = ALB_MIN(most, (uint32_t)CHUNK_MAX_BYTES);
    uint32_t length = (uint32_t)ALB_MIN((size_t)most, from->left);
    struct posting posting = {
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .immediate = rsocket_message_encode(RSOCKET_OP_DATA, length),
        .addr = target->addr,
        .key = target->key,
    };
    target->addr += length;
    target->length -= length;
    if (target->length == 0)
        stream->target_index = (stream->target_index + 1) % RSOCKET_TARGETS;
    stream->sent++;
    post_payload(stream, &posting, from, length);
}

void rsocket_flow_write(struct rsocket_stream *stream, struct rsocket_cursor *from, uint32_t length, uint64_t addr,
                        uint32_t key)
{
    uint32_t most = ALB_MIN((uint32_t)CHUNK_MAX_BYTES, rsocket_outbox_room(&stream->outbox));
    struct posting posting = {.opcode = IBV_WR_RDMA_WRITE, .addr = addr, .key = key};
    post_payload(stream, &posting, from, ALB_MIN(length, most));
}

void rsocket_flow_announce(struct rsocket_stream *stream, uint32_t index, struct rsocket_mapping mapping)
{
    if (stream->is_swapped)
        mapping = rsocket_mapping_swapped(mapping);
    // Its mappings stand behind its receive buffers.
    uint64_t offset =
        (uint64_t)stream->peer.targets.length * sizeof(struct rsocket_place) + (uint64_t)index * sizeof(mapping);
    struct posting posting = {
        .work = RSOCKET_WORK_INLINE,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .immediate = rsocket_message_encode(RSOCKET_OP_IOMAP, index),
        .addr = stream->peer.targets.addr + offset,
        .key = stream->peer.targets.key,
        .sge = {{.addr = (uintptr_t)&mapping, .length = sizeof(mapping)}},
        .sge_count = 1,
    };
    stream->sent++;
    post(stream, &posting);
}

void rsocket_flow_control(struct rsocket_stream *stream, enum rsocket_control control)
{
    struct posting posting = {
        .work = RSOCKET_WORK_CONTROL,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .immediate = rsocket_message_encode(RSOCKET_OP_CONTROL, control),
    };
    post(stream, &posting);
}

void rsocket_flow_probe(struct rsocket *rs)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    struct posting posting = {
        .work = RSOCKET_WORK_CONTROL,
        .opcode = IBV_WR_RDMA_WRITE,
        .addr = stream->peer.targets.addr,
        .key = stream->peer.targets.key,
    };
    rsocket_progress(rs);
    if (stream->state == RSOCKET_OPEN && rsocket_flow_is_all_sent(stream))
        post(stream, &posting);
}

static bool is_grant_due(const struct rsocket_stream *stream)
{
    uint16_t unannounced = (uint16_t)(stream->received - stream->granted_at);
    return rsocket_inbox_can_grant(&stream->inbox) || unannounced >= stream->rs.settings.receive_queue / 2;
}

// One message gives half of the inbox, if that is free, and says how many messages may come.
static void grant_once(struct rsocket_stream *stream)
{
    struct posting posting = {
        .work = RSOCKET_WORK_CONTROL,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .immediate =
            rsocket_message_encode(RSOCKET_OP_GRANT, (uint16_t)(stream->received + stream->rs.settings.receive_queue)),
    };
    struct rsocket_place place;
    if (rsocket_inbox_can_grant(&stream->inbox)) {
        uint32_t at = rsocket_inbox_grant(&stream->inbox);
        place =
            (struct rsocket_place){(uintptr_t)stream->inbox.bytes + at, stream->inbox_mr->rkey, stream->inbox.size / 2};
        if (stream->is_swapped)
            place = rsocket_place_swapped(place);
        posting.sge[0] = (struct ibv_sge){.addr = (uintptr_t)&place, .length = sizeof(place)};
        posting.sge_count = 1;
        posting.addr = stream->peer.targets.addr + (uint64_t)stream->peer_index * sizeof(place);
        posting.key = stream->peer.targets.key;
        stream->peer_index = (stream->peer_index + 1) % stream->peer.targets.length;
    }
    stream->granted_at = stream->received;
    post(stream, &posting);
}

void rsocket_flow_grant(struct rsocket_stream *stream)
{
    while (rsocket_flow_can_control(&stream->rs) && !stream->has_ended_in && is_grant_due(stream))
        grant_once(stream);
}

// ---- what comes

struct rsocket_place rsocket_place_load(const _Atomic uint64_t words[2])
{
    struct rsocket_place place;
    uint64_t copy[2];
    copy[1] = atomic_load_explicit(&words[1], memory_order_acquire);
    copy[0] = copy[1] ? atomic_load_explicit(&words[0], memory_order_relaxed) : 0;
    memcpy(&place, copy, sizeof(place));
    return place;
}

// New receive buffers of the peer. It writes an entry only after it has received everything that we sent into what
// stood there.
static void take_targets(struct rsocket_stream *stream)
{
    for (uint32_t i = 0; i < RSOCKET_TARGETS; i++) {
        _Atomic uint64_t *shared = &stream->shared[2 * i];
        if (stream->targets[i].length > 0)
            continue;
        stream->targets[i] = rsocket_place_load(shared);
        if (stream->targets[i].length > 0)
            atomic_store_explicit(&shared[1], 0, memory_order_relaxed);
    }
}

static void on_control(struct rsocket_stream *stream, uint32_t control)
{
    if (control == RSOCKET_CONTROL_SHUTDOWN)
        stream->has_ended_in = true;
    if (control == RSOCKET_CONTROL_DISCONNECT)
        stream->is_peer_gone = true;
    if (stream->is_peer_gone || (stream->has_ended_in && stream->has_ended_out))
        rsocket_stream_set_state(stream, RSOCKET_ENDED);
}

static void on_message(struct rsocket_stream *stream, uint32_t immediate)
{
    struct rsocket_message message;
    if (!rsocket_message_decode(immediate, &message)) {
        rsocket_stream_fail(stream, EPROTO);
        return;
    }
    switch (message.op) {
    case RSOCKET_OP_DATA:
        stream->received++;
        if (!rsocket_inbox_take(&stream->inbox, message.value))
            rsocket_stream_fail(stream, EPROTO);
        break;
    case RSOCKET_OP_GRANT:
        stream->allowed = (uint16_t)message.value;
        take_targets(stream);
        break;
    case RSOCKET_OP_IOMAP:
        stream->received++;
        break;
    case RSOCKET_OP_CONTROL:
        on_control(stream, message.value);
        break;
    }
}

// Since the completions of what was sent come in its order, so does the release.
static void on_sent(struct rsocket_stream *stream, const struct ibv_wc *wc)
{
    if (wc->wr_id >> 32 == RSOCKET_WORK_CONTROL)
        stream->control_slots++;
    else
        stream->slots++;
    if (wc->wr_id >> 32 == RSOCKET_WORK_BYTES)
        rsocket_outbox_release(&stream->outbox, (uint32_t)wc->wr_id);
    if (wc->status != IBV_WC_SUCCESS && stream->state == RSOCKET_OPEN)
        rsocket_stream_fail(stream, ECONNRESET);
}

// After both ends: what is still on its way needs receives, or its sender could not tell that all is delivered, and
// nothing of it counts but the peer's farewell. True: a receive was used up.
static bool take_rest(struct rsocket_stream *stream, const struct ibv_wc *wc)
{
    struct rsocket_message message;
    if (wc->status != IBV_WC_SUCCESS)
        return false;
    if (wc->wc_flags & IBV_WC_WITH_IMM && rsocket_message_decode(ntohl(wc->imm_data), &message) &&
        message.op == RSOCKET_OP_CONTROL && message.value == RSOCKET_CONTROL_DISCONNECT)
        stream->is_peer_gone = true;
    return true;
}

// True: a receive was used up.
static bool on_completion(struct rsocket_stream *stream, const struct ibv_wc *wc)
{
    if (wc->wr_id >> 32 != RSOCKET_WORK_RECEIVE) {
        on_sent(stream, wc);
        return false;
    }
    if (stream->state == RSOCKET_ENDED)
        return take_rest(stream, wc);
    if (stream->state != RSOCKET_OPEN)
        return false;
    if (wc->status != IBV_WC_SUCCESS)
        rsocket_stream_fail(stream, ECONNRESET);
    else if (!(wc->wc_flags & IBV_WC_WITH_IMM))
        rsocket_stream_fail(stream, EPROTO); // a send, which no rsocket makes
    else
        on_message(stream, ntohl(wc->imm_data));
    return true;
}

// Notifications are nothing but a reason to look.
static void take_notification(struct rsocket_stream *stream)
{
    struct ibv_cq *cq;
    void *context;
    if (!stream->is_armed || ibv_get_cq_event(stream->completions, &cq, &context))
        return;
    ibv_ack_cq_events(cq, 1);
    stream->is_armed = false;
}

// Before it has met its peer a stream leaves what has come where it is.
static bool is_at_work(const struct rsocket_stream *stream)
{
    return stream->cq &&
           (stream->state == RSOCKET_OPEN || stream->state == RSOCKET_ENDED || stream->state == RSOCKET_FAILED);
}

bool rsocket_flow_progress(struct rsocket *rs)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    struct ibv_wc wc[COMPLETIONS];
    int count = 0;
    bool has_changed = false;
    if (!is_at_work(stream))
        return false;
    take_notification(stream);
    for (int round = 0; round < ROUNDS_MAX && (count = ibv_poll_cq(stream->cq, COMPLETIONS, wc)) > 0; round++) {
        uint32_t used = 0;
        for (int i = 0; i < count; i++)
            used += on_completion(stream, &wc[i]);
        int error = stream->state != RSOCKET_FAILED ? rsocket_pair_receive(stream, used) : 0;
        if (error && stream->state == RSOCKET_OPEN)
            rsocket_stream_fail(stream, error);
        has_changed = true;
        if (count < COMPLETIONS)
            break;
    }
    rsocket_flow_grant(stream);
    return has_changed;
}

bool rsocket_flow_arm(struct rsocket *rs)
{
    struct rsocket_stream *stream = rsocket_stream(rs);
    if (!is_at_work(stream) || stream->is_armed)
        return true;
    stream->is_armed = ibv_req_notify_cq(stream->cq, 0) == 0;
    return !rsocket_flow_progress(rs);
}
