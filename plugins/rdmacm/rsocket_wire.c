// SPDX-License-Identifier: BSD-2-Clause
#include "plugins/rdmacm/rsocket_wire.h"

#include "wire/bytes.h"

#include <byteswap.h>
#include <string.h>

enum {
    HELLO_VERSION = 1,
    HELLO_BIG_ENDIAN = 1,
    HELLO_IOMAP = 2,
    SCALE_BIT = 0x80, // a count of iomap entries in units of 256

    DATAGRAM_IPV4_BYTES = 8,
    DATAGRAM_IPV6_BYTES = 24,
    UDP_IPV4_BYTES = 16,
    UDP_IPV6_BYTES = 28,
    QPN_MASK = 0xffffff,
};

#define UDP_TAG 0x55555555u

static uint8_t *put_place(uint8_t *at, const struct rsocket_place *place)
{
    alb_put_be64(at, place->addr);
    alb_put_be32(at + 8, place->key);
    alb_put_be32(at + 12, place->length);
    return at + 16;
}

static struct rsocket_place get_place(const uint8_t *at)
{
    return (struct rsocket_place){
        .addr = alb_get_be64(at), .key = alb_get_be32(at + 8), .length = alb_get_be32(at + 12)};
}

// ---- set-up

static uint8_t scale_of(uint32_t count)
{
    return (uint8_t)(count <= SCALE_BIT ? count : SCALE_BIT | (count >> 8 & (SCALE_BIT - 1)));
}

static uint32_t count_of(uint8_t scale)
{
    return scale <= SCALE_BIT ? scale : (uint32_t)(scale & (SCALE_BIT - 1)) << 8;
}

uint32_t rsocket_iomap_count_carried(uint32_t count)
{
    uint32_t most = (uint32_t)(SCALE_BIT - 1) << 8;
    return count_of(scale_of(count > most ? most : count));
}

void rsocket_hello_encode(const struct rsocket_hello *hello, uint8_t bytes[RSOCKET_HELLO_BYTES])
{
    memset(bytes, 0, RSOCKET_HELLO_BYTES);
    bytes[0] = HELLO_VERSION;
    bytes[1] = (uint8_t)((hello->is_big_endian ? HELLO_BIG_ENDIAN : 0) | (hello->has_iomap ? HELLO_IOMAP : 0));
    alb_put_be16(bytes + 2, hello->credits);
    bytes[7] = scale_of(hello->iomap_count);
    put_place(put_place(bytes + 8, &hello->targets), &hello->buffer);
}

bool rsocket_hello_decode(const uint8_t *bytes, size_t length, struct rsocket_hello *hello)
{
    if (length < RSOCKET_HELLO_BYTES || bytes[0] != HELLO_VERSION)
        return false;
    *hello = (struct rsocket_hello){
        .is_big_endian = bytes[1] & HELLO_BIG_ENDIAN,
        .has_iomap = bytes[1] & HELLO_IOMAP,
        .credits = alb_get_be16(bytes + 2),
        .targets = get_place(bytes + 8),
        .buffer = get_place(bytes + 24),
    };
    hello->iomap_count = hello->has_iomap ? count_of(bytes[7]) : 0;
    return hello->targets.length >= 2 && hello->targets.length <= RSOCKET_TARGETS_MAX && hello->buffer.length > 0;
}

bool rsocket_host_is_big_endian(void)
{
    return __BYTE_ORDER == __BIG_ENDIAN;
}

struct rsocket_place rsocket_place_swapped(struct rsocket_place place)
{
    return (struct rsocket_place){bswap_64(place.addr), bswap_32(place.key), bswap_32(place.length)};
}

struct rsocket_mapping rsocket_mapping_swapped(struct rsocket_mapping mapping)
{
    return (struct rsocket_mapping){bswap_64(mapping.offset), rsocket_place_swapped(mapping.place)};
}

// ---- immediate data

bool rsocket_message_decode(uint32_t immediate, struct rsocket_message *message)
{
    message->op = (enum rsocket_op)(immediate >> 29);
    message->value = immediate & RSOCKET_MESSAGE_VALUE_MAX;
    return message->op == RSOCKET_OP_DATA || message->op == RSOCKET_OP_GRANT || message->op == RSOCKET_OP_IOMAP ||
           message->op == RSOCKET_OP_CONTROL;
}

// ---- datagrams

size_t rsocket_datagram_header_encode(const struct rsocket_datagram_header *header,
                                      uint8_t bytes[RSOCKET_DATAGRAM_HEADER_MAX])
{
    bool is_ipv4 = alb_addr_is_ipv4(&header->source);
    size_t length = is_ipv4 ? DATAGRAM_IPV4_BYTES : DATAGRAM_IPV6_BYTES;
    memset(bytes, 0, length);
    bytes[0] = is_ipv4 ? 4 : 6;
    bytes[1] = (uint8_t)length;
    alb_put_be16(bytes + 2, header->port);
    if (is_ipv4)
        memcpy(bytes + 4, header->source.bytes + 12, 4);
    else
        memcpy(bytes + 8, header->source.bytes, 16);
    return length;
}

size_t rsocket_datagram_header_decode(const uint8_t *bytes, size_t length, struct rsocket_datagram_header *header)
{
    if (length < DATAGRAM_IPV4_BYTES || bytes[1] > length)
        return 0;
    header->port = alb_get_be16(bytes + 2);
    if (bytes[0] == 4 && bytes[1] == DATAGRAM_IPV4_BYTES)
        header->source = alb_addr_from_ipv4(bytes + 4);
    else if (bytes[0] == 6 && bytes[1] == DATAGRAM_IPV6_BYTES)
        memcpy(header->source.bytes, bytes + 8, 16);
    else
        return 0;
    return bytes[1];
}

size_t rsocket_udp_header_encode(const struct rsocket_udp_header *header, uint8_t bytes[RSOCKET_UDP_HEADER_MAX])
{
    bool is_ipv4 = alb_addr_is_ipv4(&header->source);
    size_t length = is_ipv4 ? UDP_IPV4_BYTES : UDP_IPV6_BYTES;
    memset(bytes, 0, length);
    alb_put_be32(bytes, UDP_TAG);
    bytes[4] = is_ipv4 ? 4 : 6;
    bytes[5] = (uint8_t)header->op;
    bytes[6] = (uint8_t)length;
    alb_put_be32(bytes + 8, header->qpn & QPN_MASK);
    memcpy(bytes + 12, header->source.bytes + (is_ipv4 ? 12 : 0), is_ipv4 ? 4 : 16);
    return length;
}

size_t rsocket_udp_header_decode(const uint8_t *bytes, size_t length, struct rsocket_udp_header *header)
{
    if (length < UDP_IPV4_BYTES || alb_get_be32(bytes) != UDP_TAG || bytes[6] > length)
        return 0;
    if (bytes[5] != RSOCKET_UDP_DATA && bytes[5] != RSOCKET_UDP_CONTROL)
        return 0;
    header->op = (enum rsocket_udp_op)bytes[5];
    header->qpn = alb_get_be32(bytes + 8) & QPN_MASK;
    if (bytes[4] == 4 && bytes[6] == UDP_IPV4_BYTES)
        header->source = alb_addr_from_ipv4(bytes + 12);
    else if (bytes[4] == 6 && bytes[6] == UDP_IPV6_BYTES)
        memcpy(header->source.bytes, bytes + 12, 16);
    else
        return 0;
    return bytes[6];
}
