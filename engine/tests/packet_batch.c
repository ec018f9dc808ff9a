// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/packet_batch.h"

static void put(struct packet_batch *batch, const struct pair_packet *packet)
{
    uint32_t i = batch->count++;
    alb_assert(packet->datagram.length <= PACKET_BATCH_BYTES);
    batch->datagrams[i] = packet->datagram;
    batch->datagrams[i].bytes = memcpy(batch->bytes[i], packet->bytes, packet->datagram.length);
}

void packet_batch_collect(struct packet_batch *batch, struct pair *pair, int side)
{
    const struct pair_packet *packet;
    batch->count = 0;
    while (batch->count < PACKET_BATCH_MAX && (packet = pair_peek(pair, side, 0))) {
        put(batch, packet);
        pair_lose(pair, side);
    }
}

static void swap(struct packet_batch *batch, uint32_t a, uint32_t b)
{
    struct alb_datagram datagram = batch->datagrams[a];
    batch->datagrams[a] = batch->datagrams[b];
    batch->datagrams[b] = datagram;
}

static void leave_out(struct packet_batch *batch, uint32_t at)
{
    batch->count--;
    memmove(&batch->datagrams[at], &batch->datagrams[at + 1], (batch->count - at) * sizeof(batch->datagrams[0]));
}

// The same bit of that byte, of so many packets.
static void flip(struct packet_batch *batch, uint32_t first, uint32_t count, uint32_t byte, uint32_t bit)
{
    for (uint32_t i = first; i < first + count; i++)
        if (byte < batch->datagrams[i].length)
            *((uint8_t *)(uintptr_t)batch->datagrams[i].bytes + byte) ^= (uint8_t)(1u << bit);
}

void packet_batch_spoil(struct packet_batch *batch, struct alb_prng prng, uint32_t header_bytes, uint32_t flags_at)
{
    uint32_t at = alb_prng_below(&prng, batch->count), other = alb_prng_below(&prng, batch->count);
    struct alb_datagram *datagram = &batch->datagrams[at];
    uint8_t *bytes = (uint8_t *)(uintptr_t)datagram->bytes;
    switch (alb_prng_below(&prng, 10)) {
    case 0:
        swap(batch, at, other);
        break;
    case 1:
        leave_out(batch, at);
        break;
    case 2: // again
        *datagram = batch->datagrams[other];
        break;
    case 3:
        bytes[alb_prng_below(&prng, ALB_MIN(header_bytes, datagram->length))] ^=
            (uint8_t)(1 + alb_prng_below(&prng, 255));
        break;
    case 4:
        flip(batch, at, 1, flags_at, (uint32_t)alb_prng_below(&prng, 6));
        break;
    case 7:
        flip(batch, at, batch->count - at, flags_at, (uint32_t)alb_prng_below(&prng, 6));
        break;
    case 8:
        datagram->length = (uint32_t)alb_prng_below(&prng, ALB_MIN(header_bytes, datagram->length));
        break;
    case 5:
        datagram->traffic_class = ALB_ECN_CE;
        break;
    case 6:
        if (datagram->length > header_bytes)
            datagram->length -= 4;
        break;
    default: // another peer's
        datagram->peer.addr.bytes[15] ^= 1;
        break;
    }
}

void packet_batch_arrive(const struct packet_batch *batch, struct pair *pair, int side)
{
    alb_engine_rx(pair->hosts[!side].engine, batch->datagrams, batch->count, pair->now);
}

void packet_batch_arrive_apart(const struct packet_batch *batch, struct pair *pair, int side)
{
    for (uint32_t i = 0; i < batch->count; i++)
        alb_engine_rx(pair->hosts[!side].engine, &batch->datagrams[i], 1, pair->now);
}
