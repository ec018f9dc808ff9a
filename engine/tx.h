// SPDX-License-Identifier: BSD-2-Clause
// Build: puts segments into the driver's batch and joins those that can leave in one burst.
#pragma once

#include "wire/datagram.h"
#include "wire/roce.h"

// Where packets go and how they are marked: what all segments of a burst share.
struct alb_flow {
    struct alb_endpoint peer;
    struct alb_endpoint local;
    uint16_t path;
    uint8_t traffic_class;
    uint8_t hop_limit;
    bool is_whole;   // never to be cut by IP: it is there to try the size
    bool may_be_cut; // by IP: it is longer than the path carries
};

struct alb_tx_builder {
    struct alb_tx *tx;
    struct alb_burst *burst;     // the one that may grow, or NULL
    struct alb_segment *segment; // the one being built
    uint32_t payload_bytes;      // of it, still to come
    uint32_t trailer_bytes;
    bool may_change; // what is being built has payload that may change

    // A packet of frames (below).
    bool copies_short;     // short payload is copied behind the headers, which saves references
    uint32_t packet_bytes; // of it so far
    uint8_t *at;           // where in tx->bytes it goes on
    struct iovec *last;    // its last reference so far
    uint8_t *at_end;       // what it may take of the batch: one past the last
    struct iovec *last_end;
    struct alb_tx_mark {
        uint32_t packet_bytes;
        uint8_t *at;
        struct iovec *last;
        size_t last_bytes;
    } mark; // before the last frame with payload
};

void alb_tx_builder_init(struct alb_tx_builder *builder, struct alb_tx *tx);

// True if a segment with that many payload references fits into the batch, even if it cannot join the open burst. So
// the last burst of a batch stays short, unless the driver has as many bursts as segments.
bool alb_tx_has_room(const struct alb_tx_builder *builder, uint32_t iov_count);

// True if there is an open burst that another segment like its own could not join.
bool alb_tx_burst_is_full(const struct alb_tx_builder *builder);
// Bytes of the longest packet that way that may join the open burst; 0: any begins another one.
uint32_t alb_tx_burst_room(const struct alb_tx_builder *builder, const struct alb_flow *flow);

// Begins a segment: encodes its headers (pad follows from payload_bytes). The caller has asked alb_tx_has_room and adds
// exactly payload_bytes of payload before alb_tx_end. A segment that is begun but not ended is given up: the next one
// takes its place.
void alb_tx_begin(struct alb_tx_builder *builder, const struct alb_flow *flow, struct alb_roce *roce,
                  uint32_t payload_bytes);
// Likewise, with headers of so many bytes that the caller writes where it is told to, pad included.
uint8_t *alb_tx_begin_header(struct alb_tx_builder *builder, const struct alb_flow *flow, uint32_t header_bytes,
                             uint32_t payload_bytes);
void alb_tx_payload(struct alb_tx_builder *builder, const void *bytes, uint32_t length);
// The same of memory that the program writes to as it likes: what a READ asks for.
void alb_tx_payload_that_may_change(struct alb_tx_builder *builder, const void *bytes, uint32_t length);
void alb_tx_end(struct alb_tx_builder *builder);
// Gives up the segment begun last.
void alb_tx_cancel(struct alb_tx_builder *builder);

// ---- packets whose length shows when they are complete --------------------------------------------------------------

// Begins a packet with header_bytes to be written by the caller before alb_tx_packet_end; NULL: no room in the batch.
uint8_t *alb_tx_packet_begin(struct alb_tx_builder *builder, uint32_t header_bytes);
// A frame: bytes for the caller to write at once. payload_bytes more follow in at most refs pieces (alb_tx_payload).
// NULL: no room in the batch.
uint8_t *alb_tx_packet_bytes(struct alb_tx_builder *builder, uint32_t bytes, uint32_t payload_bytes, uint32_t refs);
// Takes the last frame, which has payload, back, as far as it has come.
void alb_tx_packet_undo(struct alb_tx_builder *builder);
// Pads to a multiple of four, adds the trailer, counts the packet. Returns its length.
uint32_t alb_tx_packet_end(struct alb_tx_builder *builder, const struct alb_flow *flow);
// True if the open burst's last packet has one reference of that much payload, and alb_tx_repeat may follow.
bool alb_tx_can_repeat(const struct alb_tx_builder *builder, uint32_t payload_bytes);
// One more like it, headers and all, with other payload. Returns its header, where the numbers are to be changed; NULL:
// the burst or the batch has no room.
uint8_t *alb_tx_repeat(struct alb_tx_builder *builder, const void *payload);
void alb_tx_packet_cancel(struct alb_tx_builder *builder);
