// SPDX-License-Identifier: BSD-2-Clause
// Builds segments straight into the driver's arrays. A segment is written behind the counted ones and counted only when
// it is complete, so that one given up half-way costs nothing and leaves no trace. Trailers end where the next header
// begins, so that a driver may take the two for one piece.
#include "engine/tx.h"

#include <string.h>

enum {
    TRAILER_ROOM_BYTES = 8, // pad and ICRC, rounded up so that headers stay aligned
    SHORT_BYTES = 256,      // payload that is copied rather than referred to, in packets of frames
    REPEATED_IOVS = 3,      // of a packet that is like others: header, payload, trailer
    PIECES_MAX = 3,         // that a packet with one reference may have beside its trailer and the end of its frames
    PACKET_IOVS_MAX = 512,  // of a packet of frames: half of what a system call takes
};

_Static_assert(TRAILER_ROOM_BYTES >= 3 + ALB_ICRC_BYTES, "the longest trailer fits");

void alb_tx_builder_init(struct alb_tx_builder *builder, struct alb_tx *tx)
{
    *builder = (struct alb_tx_builder){.tx = tx};
}

bool alb_tx_has_room(const struct alb_tx_builder *builder, uint32_t iov_count)
{
    const struct alb_tx *tx = builder->tx;
    return tx->segment_count < tx->segment_capacity && tx->burst_count < tx->burst_capacity &&
           tx->iov_capacity - tx->iov_count >= iov_count + 2 &&
           tx->bytes_capacity - tx->bytes_count >= ALB_ROCE_HEADER_MAX + TRAILER_ROOM_BYTES;
}

static bool is_same_way(const struct alb_burst *burst, const struct alb_flow *flow)
{
    return burst->path == flow->path && alb_endpoint_equals(&burst->peer, &flow->peer) &&
           alb_endpoint_equals(&burst->local, &flow->local);
}

static bool is_same_flow(const struct alb_burst *burst, const struct alb_flow *flow)
{
    return burst->traffic_class == flow->traffic_class && burst->hop_limit == flow->hop_limit &&
           burst->is_whole == flow->is_whole && is_same_way(burst, flow);
}

static bool can_join(const struct alb_tx *tx, const struct alb_burst *burst, const struct alb_flow *flow,
                     uint32_t length)
{
    return burst && burst->segment_count > 0 && length <= burst->segment_bytes &&
           burst->segment_count < tx->burst_segments_max &&
           burst->segment_count * burst->segment_bytes + length <= tx->burst_bytes_max && is_same_flow(burst, flow);
}

bool alb_tx_burst_is_full(const struct alb_tx_builder *builder)
{
    const struct alb_tx *tx = builder->tx;
    const struct alb_burst *burst = builder->burst;
    return burst && (burst->segment_count >= tx->burst_segments_max ||
                     (burst->segment_count + 1) * burst->segment_bytes > tx->burst_bytes_max);
}

uint32_t alb_tx_burst_room(const struct alb_tx_builder *builder, const struct alb_flow *flow)
{
    const struct alb_burst *burst = builder->burst;
    return burst && is_same_way(burst, flow) && !alb_tx_burst_is_full(builder) ? burst->segment_bytes : 0;
}

static struct alb_burst *open_burst(struct alb_tx *tx, const struct alb_flow *flow, uint32_t length)
{
    struct alb_burst *burst = &tx->bursts[tx->burst_count];
    burst->peer = flow->peer;
    burst->local = flow->local;
    burst->path = flow->path;
    burst->traffic_class = flow->traffic_class;
    burst->hop_limit = flow->hop_limit;
    burst->is_whole = flow->is_whole;
    burst->may_be_cut = flow->may_be_cut;
    burst->may_change = false;
    burst->segment_first = tx->segment_count;
    burst->segment_count = 0;
    burst->segment_bytes = length;
    return burst;
}

uint8_t *alb_tx_begin_header(struct alb_tx_builder *builder, const struct alb_flow *flow, uint32_t header_bytes,
                             uint32_t payload_bytes)
{
    struct alb_tx *tx = builder->tx;
    uint8_t *header = tx->bytes + tx->bytes_count;
    uint32_t trailer_bytes = alb_roce_pad(payload_bytes) + ALB_ICRC_BYTES;
    memset(header + header_bytes, 0, TRAILER_ROOM_BYTES);

    struct alb_segment *segment = &tx->segments[tx->segment_count];
    segment->iov_first = tx->iov_count;
    segment->iov_count = 1;
    segment->length = header_bytes + payload_bytes + trailer_bytes;
    tx->iov[tx->iov_count] = (struct iovec){.iov_base = header, .iov_len = header_bytes};
    builder->segment = segment;
    builder->payload_bytes = payload_bytes;
    builder->trailer_bytes = trailer_bytes;
    builder->copies_short = builder->may_change = false;
    if (!can_join(tx, builder->burst, flow, segment->length))
        builder->burst = open_burst(tx, flow, segment->length);
    return header;
}

void alb_tx_begin(struct alb_tx_builder *builder, const struct alb_flow *flow, struct alb_roce *roce,
                  uint32_t payload_bytes)
{
    const struct alb_tx *tx = builder->tx;
    roce->pad = alb_roce_pad(payload_bytes);
    uint32_t header_bytes = alb_roce_encode(roce, tx->bytes + tx->bytes_count);
    alb_tx_begin_header(builder, flow, header_bytes, payload_bytes);
}

// Bytes of the packet behind those it has, in tx->bytes; they join the last reference if that ends there.
static uint8_t *extend(struct alb_tx_builder *builder, uint32_t length)
{
    uint8_t *at = builder->at;
    struct iovec *last = builder->last;
    if (alb_likely((uint8_t *)last->iov_base + last->iov_len == at))
        last->iov_len += length;
    else
        *++builder->last = (struct iovec){.iov_base = at, .iov_len = length};
    builder->at = at + length;
    builder->packet_bytes += length;
    return at;
}

void alb_tx_payload(struct alb_tx_builder *builder, const void *bytes, uint32_t length)
{
    if (length == 0)
        return;
    struct alb_segment *segment = builder->segment;
    alb_assert(length <= builder->payload_bytes);
    builder->payload_bytes -= length;
    if (builder->copies_short) {
        if (length <= SHORT_BYTES) {
            memcpy(extend(builder, length), bytes, length);
            return;
        }
        builder->packet_bytes += length;
        *++builder->last = (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
        return;
    }
    builder->tx->iov[segment->iov_first + segment->iov_count++] =
        (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
}

void alb_tx_payload_that_may_change(struct alb_tx_builder *builder, const void *bytes, uint32_t length)
{
    builder->may_change |= length > 0 && (!builder->copies_short || length > SHORT_BYTES);
    alb_tx_payload(builder, bytes, length);
}

void alb_tx_end(struct alb_tx_builder *builder)
{
    struct alb_tx *tx = builder->tx;
    struct alb_segment *segment = builder->segment;
    struct alb_burst *burst = builder->burst;
    struct iovec *header = &tx->iov[segment->iov_first];
    uint32_t end = (uint32_t)header->iov_len + TRAILER_ROOM_BYTES;
    alb_assert(builder->payload_bytes == 0);
    tx->iov[segment->iov_first + segment->iov_count++] = (struct iovec){
        .iov_base = tx->bytes + tx->bytes_count + end - builder->trailer_bytes, .iov_len = builder->trailer_bytes};
    tx->iov_count += segment->iov_count;
    tx->bytes_count += end;
    tx->segment_count++;
    burst->may_change |= builder->may_change;
    if (burst->segment_count++ == 0)
        tx->burst_count++;
    if (segment->length < burst->segment_bytes)
        builder->burst = NULL; // only the last one of a burst may be shorter
}

void alb_tx_cancel(struct alb_tx_builder *builder)
{
    // Nothing of it counts before alb_tx_end; only a burst opened for it has to go.
    if (builder->burst->segment_count == 0)
        builder->burst = NULL;
}

// ---- packets of frames ----------------------------------------------------------------------------------------------

uint8_t *alb_tx_packet_begin(struct alb_tx_builder *builder, uint32_t header_bytes)
{
    struct alb_tx *tx = builder->tx;
    if (!alb_tx_has_room(builder, 1))
        return NULL;
    struct alb_segment *segment = &tx->segments[tx->segment_count];
    uint8_t *header = tx->bytes + tx->bytes_count;
    segment->iov_first = tx->iov_count;
    builder->segment = segment;
    builder->payload_bytes = 0;
    builder->copies_short = true;
    builder->may_change = false;
    builder->packet_bytes = header_bytes;
    builder->at = header + header_bytes;
    builder->at_end = tx->bytes + tx->bytes_capacity - TRAILER_ROOM_BYTES;
    builder->last = tx->iov + tx->iov_count;
    builder->last_end = builder->last + ALB_MIN(tx->iov_capacity - tx->iov_count, (uint32_t)PACKET_IOVS_MAX);
    *builder->last = (struct iovec){.iov_base = header, .iov_len = header_bytes};
    return header;
}

uint8_t *alb_tx_packet_bytes(struct alb_tx_builder *builder, uint32_t bytes, uint32_t payload_bytes, uint32_t refs)
{
    // Each piece may be short, and copied, or long, and referred to.
    uint32_t copied_bytes = ALB_MIN(payload_bytes, refs * SHORT_BYTES);
    if (builder->at_end - builder->at < (ptrdiff_t)bytes + copied_bytes ||
        builder->last_end - builder->last < (ptrdiff_t)(2 * refs + 3))
        return NULL;
    if (payload_bytes > 0) {
        builder->mark = (struct alb_tx_mark){
            .packet_bytes = builder->packet_bytes,
            .at = builder->at,
            .last = builder->last,
            .last_bytes = builder->last->iov_len,
        };
        builder->payload_bytes = payload_bytes;
    }
    return extend(builder, bytes);
}

void alb_tx_packet_undo(struct alb_tx_builder *builder)
{
    const struct alb_tx_mark *mark = &builder->mark;
    builder->packet_bytes = mark->packet_bytes;
    builder->at = mark->at;
    builder->last = mark->last;
    builder->last->iov_len = mark->last_bytes;
    builder->payload_bytes = 0;
}

uint32_t alb_tx_packet_end(struct alb_tx_builder *builder, const struct alb_flow *flow)
{
    struct alb_tx *tx = builder->tx;
    struct alb_segment *segment = builder->segment;
    alb_assert(builder->payload_bytes == 0);
    uint32_t trailer_bytes = alb_roce_pad(builder->packet_bytes) + ALB_ICRC_BYTES;
    // The trailer is a reference of its own: that is where the edge seals.
    uint32_t used = (uint32_t)(builder->at - (tx->bytes + tx->bytes_count));
    uint32_t end = (used + 7) / 8 * 8 + TRAILER_ROOM_BYTES;
    uint8_t *trailer = tx->bytes + tx->bytes_count + end - trailer_bytes;
    memset(trailer + trailer_bytes - TRAILER_ROOM_BYTES, 0, TRAILER_ROOM_BYTES);
    *++builder->last = (struct iovec){.iov_base = trailer, .iov_len = trailer_bytes};
    segment->iov_count = (uint16_t)(builder->last + 1 - (tx->iov + segment->iov_first));
    segment->length = builder->packet_bytes + trailer_bytes;
    if (!can_join(tx, builder->burst, flow, segment->length))
        builder->burst = open_burst(tx, flow, segment->length);
    tx->iov_count += segment->iov_count;
    tx->bytes_count += end;
    tx->segment_count++;
    struct alb_burst *burst = builder->burst;
    burst->may_change |= builder->may_change;
    if (burst->segment_count++ == 0)
        tx->burst_count++;
    if (segment->length < burst->segment_bytes)
        builder->burst = NULL;
    return segment->length;
}

bool alb_tx_can_repeat(const struct alb_tx_builder *builder, uint32_t payload_bytes)
{
    const struct alb_tx *tx = builder->tx;
    if (!builder->burst || builder->burst->segment_count == 0)
        return false;
    const struct alb_segment *last = &tx->segments[tx->segment_count - 1];
    return last->iov_count == REPEATED_IOVS && tx->iov[last->iov_first + 1].iov_len == payload_bytes;
}

uint8_t *alb_tx_repeat(struct alb_tx_builder *builder, const void *payload)
{
    struct alb_tx *tx = builder->tx;
    struct alb_burst *burst = builder->burst;
    const struct alb_segment *last = &tx->segments[tx->segment_count - 1];
    const struct iovec *like = &tx->iov[last->iov_first];
    uint32_t header_bytes = (uint32_t)like[0].iov_len, trailer_bytes = (uint32_t)like[2].iov_len;
    uint32_t end = (header_bytes + 7) / 8 * 8 + TRAILER_ROOM_BYTES;
    // As much room as for a packet that is built piece by piece: batches end in the same place.
    if (alb_tx_burst_is_full(builder) || !alb_tx_has_room(builder, PIECES_MAX) ||
        tx->bytes_capacity - tx->bytes_count < header_bytes + SHORT_BYTES + TRAILER_ROOM_BYTES)
        return NULL;
    uint8_t *header = tx->bytes + tx->bytes_count, *trailer = header + end - trailer_bytes;
    struct iovec *iov = &tx->iov[tx->iov_count];
    memcpy(header, like[0].iov_base, header_bytes);
    memset(header + end - TRAILER_ROOM_BYTES, 0, TRAILER_ROOM_BYTES);
    iov[0] = (struct iovec){.iov_base = header, .iov_len = header_bytes};
    iov[1] = (struct iovec){.iov_base = (void *)(uintptr_t)payload, .iov_len = like[1].iov_len};
    iov[2] = (struct iovec){.iov_base = trailer, .iov_len = trailer_bytes};
    tx->segments[tx->segment_count++] =
        (struct alb_segment){.iov_first = tx->iov_count, .iov_count = REPEATED_IOVS, .length = burst->segment_bytes};
    tx->iov_count += REPEATED_IOVS;
    tx->bytes_count += end;
    burst->segment_count++;
    return header;
}

void alb_tx_packet_cancel(struct alb_tx_builder *builder)
{
    builder->segment = NULL;
}
