// SPDX-License-Identifier: BSD-2-Clause
// Packets of one side of a pair that reach the other side together, or one by one, after this and that has happened to
// them on the way.
#pragma once

#include "engine/tests/pair.h"

enum {
    PACKET_BATCH_MAX = 256,
    PACKET_BATCH_BYTES = 1536,
};

// Copies, in some order, some of them changed.
struct packet_batch {
    uint32_t count;
    struct alb_datagram datagrams[PACKET_BATCH_MAX];
    uint8_t bytes[PACKET_BATCH_MAX][PACKET_BATCH_BYTES];
};

// Takes what that side has on the wire, as much as there is room for.
void packet_batch_collect(struct packet_batch *batch, struct pair *pair, int side);
// One thing that may happen to a packet: something to its place or to the packet as a whole, to one of the first
// header_bytes, or to a bit of the byte flags_at, of it alone or of all behind it as well. With the same prng the same
// thing happens to batches that are alike.
void packet_batch_spoil(struct packet_batch *batch, struct alb_prng prng, uint32_t header_bytes, uint32_t flags_at);
// They reach the other side in one call, or each in one of its own.
void packet_batch_arrive(const struct packet_batch *batch, struct pair *pair, int side);
void packet_batch_arrive_apart(const struct packet_batch *batch, struct pair *pair, int side);
