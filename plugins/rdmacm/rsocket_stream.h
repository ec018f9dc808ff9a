// SPDX-License-Identifier: BSD-2-Clause
// Streams: SOCK_STREAM over a reliable connection. Data is written into the peer's inbox with immediate data that says
// how much it was; the peer's table of receive buffers, in our memory, says where it may go, and its grants how many
// messages may be under way (rsocket_wire.h).
#pragma once

#include "plugins/rdmacm/rsocket.h"
#include "plugins/rdmacm/rsocket_wire.h"

enum rsocket_state {
    RSOCKET_NEW,
    RSOCKET_LISTENING,
    RSOCKET_CONNECTING,
    RSOCKET_ACCEPTING, // the program has not seen it yet
    RSOCKET_OPEN,
    RSOCKET_ENDED,  // in order, both ways
    RSOCKET_FAILED, // rs.error says why, until it was reported
    RSOCKET_STATES,
};

enum {
    RSOCKET_CONTROL_SLOTS = 4, // messages about the stream itself, for which the peer's queue has room beyond its grant
    RSOCKET_INLINE_MIN = 32,   // its tables' entries are sent inline
};

// A buffer of the program that the peer may write to, and its entry in the peer's table.
struct rsocket_iomap {
    struct ibv_mr *mr; // NULL: free
    uint64_t offset;
    bool is_news; // to be sent to the peer
};

struct rsocket_stream {
    struct rsocket rs;
    enum rsocket_state state;
    bool has_ended_in, has_ended_out; // no more data comes; no more will be sent
    bool is_peer_gone;                // nothing will be acknowledged any more
    bool is_outcome_due;              // rconnect has begun, and not yet said how it went
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id; // NULL: a listener that was closed

    // The queue pair and what it works with, once there is something to connect to.
    struct ibv_comp_channel *completions;
    struct ibv_cq *cq;
    bool is_armed;
    struct rsocket_inbox inbox;
    struct rsocket_outbox outbox;
    struct ibv_mr *inbox_mr, *outbox_mr, *table_mr;
    uint32_t slots, control_slots; // free places of the send queue
    _Atomic uint64_t *shared;      // RSOCKET_TARGETS places that the peer writes, and the mappings behind them
    _Atomic uint64_t *mappings;    // settings.iomap_count, that the peer writes too
    struct rsocket_place targets[RSOCKET_TARGETS]; // what was taken from there: where data goes next
    uint32_t target_index;

    // What the peer has said.
    struct rsocket_hello peer;
    bool is_swapped;               // its tables are written in the other byte order
    uint32_t peer_index;           // the entry of its table that is written next
    uint16_t sent, allowed;        // messages, in all, modulo 2^16
    uint16_t received, granted_at; // likewise: received; received when credits were last granted

    struct rsocket_iomap *iomaps; // peer.iomap_count
    bool has_iomap_news;
    struct alb_list local_iomaps; // buffers that are registered and not announced to the peer

    // Of a listener.
    struct alb_list accepted; // struct rsocket_stream, that the program has not taken
    uint32_t backlog, queued; // accepted, and on the way to it
    // Of one that a listener has accepted.
    struct rsocket_stream *listener; // with a reference, while RSOCKET_ACCEPTING
    struct alb_list link;
};

static inline struct rsocket_stream *rsocket_stream(struct rsocket *rs)
{
    return ALB_CONTAINER_OF(rs, struct rsocket_stream, rs);
}

// ---- rsocket_stream.c

void rsocket_stream_set_state(struct rsocket_stream *stream, enum rsocket_state state);
// Ends it with an error for the program.
void rsocket_stream_fail(struct rsocket_stream *stream, int error);
struct rsocket_stream *rsocket_stream_new(int domain, const struct rsocket_settings *settings);
// Connected, or as good as: not on the way any more.
bool rsocket_stream_is_settled(struct rsocket *rs);

// The error number for a program whose stream bears no more: it has ended in that direction, or at all.
int rsocket_stream_why_not_sent(struct rsocket *rs);

// ---- rsocket_pair.c: queue pair and memory

// For stream->id, whose device is known. An error number; what there is by then goes with rsocket_pair_close.
int rsocket_pair_open(struct rsocket_stream *stream);
void rsocket_pair_close(struct rsocket_stream *stream);
int rsocket_pair_receive(struct rsocket_stream *stream, uint32_t count);

// ---- rsocket_flow.c: messages

enum rsocket_work {
    RSOCKET_WORK_RECEIVE,
    RSOCKET_WORK_BYTES,  // out of the outbox
    RSOCKET_WORK_INLINE, // that needed no memory
    RSOCKET_WORK_CONTROL,
};

void rsocket_flow_greet(const struct rsocket_stream *stream, uint8_t bytes[RSOCKET_HELLO_BYTES]);
// False: no stream can be had with such a peer.
bool rsocket_flow_meet(struct rsocket_stream *stream, const void *bytes, size_t length);
bool rsocket_flow_progress(struct rsocket *rs);
bool rsocket_flow_arm(struct rsocket *rs);
bool rsocket_flow_can_send(struct rsocket *rs);
bool rsocket_flow_can_control(struct rsocket *rs);
bool rsocket_flow_is_all_sent(const struct rsocket_stream *stream);
// Sends as much as one message bears; rsocket_flow_can_send holds. Failure is the stream's.
void rsocket_flow_send(struct rsocket_stream *stream, struct rsocket_cursor *from);
// A write without notice to an address of the peer's; rsocket_flow_can_write holds.
bool rsocket_flow_can_write(struct rsocket *rs);
void rsocket_flow_write(struct rsocket_stream *stream, struct rsocket_cursor *from, uint32_t length, uint64_t addr,
                        uint32_t key);
// Tells the peer of a mapping; rsocket_flow_can_announce holds.
bool rsocket_flow_can_announce(struct rsocket *rs);
void rsocket_flow_announce(struct rsocket_stream *stream, uint32_t index, struct rsocket_mapping mapping);
void rsocket_flow_control(struct rsocket_stream *stream, enum rsocket_control control);
// A write of nothing, if nothing else is under way: only an answer to it is wanted.
void rsocket_flow_probe(struct rsocket *rs);
// A place as the peer has written it: its last eight bytes, key and length, are stored at once and after the others,
// which are looked at only then.
struct rsocket_place rsocket_place_load(const _Atomic uint64_t words[2]);
// Gives the peer what it may send into by now.
void rsocket_flow_grant(struct rsocket_stream *stream);

// ---- rsocket_connect.c

int rsocket_stream_bind(struct rsocket *rs, const struct sockaddr *address, socklen_t length);
int rsocket_stream_connect(struct rsocket *rs, const struct sockaddr *address, socklen_t length);
bool rsocket_stream_serve(struct rsocket *rs);
// What the program has not accepted, in a list of its own.
void rsocket_stream_take_accepted(struct rsocket_stream *listener, struct alb_list *taken);
// A stream that will never be used.
void rsocket_stream_abandon(struct rsocket_stream *stream);

// ---- rsocket_stream_options.c

int rsocket_stream_set_option(struct rsocket *rs, int level, int name, const void *value, socklen_t length);
int rsocket_stream_get_option(struct rsocket *rs, int level, int name, void *value, socklen_t *length);

// ---- rsocket_iomap.c

// Tells the peer of mappings, so that data sent afterwards comes after them. An error number; 0 also if the stream has
// ended, which is for what is sent afterwards to say.
int rsocket_iomap_flush(struct rsocket_stream *stream, int flags);
void rsocket_iomap_free(struct rsocket_stream *stream);
