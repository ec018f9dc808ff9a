// SPDX-License-Identifier: BSD-2-Clause
// Everything that wire/ does with bytes from outside: decoding headers, checking an ICRC, reading a capture.
//
// Input: a byte of flags, the IPv4 identification (2), the source port (2), and the datagram with its ICRC.
#include "fuzz/fuzz.h"

#include "wire/icrc.h"
#include "wire/pcap.h"
#include "wire/roce.h"

#include <endian.h>

enum flag {
    FLAG_IPV6 = 1,
    FLAG_REVERSE = 2, // from the captures' second host to their first
};

// Clears the bits that no field of struct alb_roce stands for.
static void clear_reserved(uint8_t *bytes, unsigned headers)
{
    bytes[4] &= 0xc0;
    bytes[8] &= 0x80;
    if (headers & ALB_HEADER_DETH)
        bytes[16] = 0;
    if (headers & ALB_HEADER_XRCETH)
        bytes[12] = 0;
    if (headers & ALB_HEADER_CNP)
        memset(bytes + ALB_BTH_BYTES, 0, 16);
}

static void check_headers(const uint8_t *bytes, uint32_t length)
{
    struct alb_roce roce = {0};
    uint32_t offset, payload;
    enum alb_drop drop = alb_roce_decode(bytes, length, &roce, &offset, &payload);
    alb_assert(drop < ALB_DROP_COUNT);
    if (drop != ALB_DROP_NONE)
        return;
    alb_assert(offset <= length && payload <= length - offset && offset + payload + roce.pad == length);

    uint8_t encoded[ALB_ROCE_HEADER_MAX], expected[ALB_ROCE_HEADER_MAX];
    alb_assert(alb_roce_encode(&roce, encoded) == offset);
    memcpy(expected, bytes, offset);
    clear_reserved(expected, alb_opcode_info(roce.opcode)->headers);
    alb_assert(memcmp(encoded, expected, offset) == 0);
}

static struct alb_endpoint endpoint(bool is_ipv6, uint8_t host, uint16_t port)
{
    struct alb_endpoint result = {.port = port};
    const char *text = is_ipv6 ? (host == 2 ? "fd99::2" : "fd99::3") : (host == 2 ? "10.99.0.2" : "10.99.0.3");
    alb_assert(alb_addr_parse(text, &result.addr));
    return result;
}

// As it is, and then with the ICRC that it should have: the latter passes, and gives the identification it was made
// with.
static void check_icrc(struct alb_datagram datagram, uint16_t identification)
{
    struct alb_icrc_peer peer = {0};
    struct alb_icrc_flow flow = {0};
    uint16_t found = 0;
    alb_icrc_check(&flow, &datagram, &peer, &found, 0);

    uint8_t copy[ALB_ROCE_HEADER_MAX + ALB_ROCE_PAYLOAD_MAX + ALB_ICRC_BYTES];
    if (datagram.length % 4 || datagram.length < ALB_BTH_BYTES + ALB_ICRC_BYTES || datagram.length > sizeof(copy))
        return;
    struct alb_icrc_prefix prefix;
    uint32_t length = datagram.length - ALB_ICRC_BYTES;
    struct iovec iov = {.iov_base = copy, .iov_len = length};
    memcpy(copy, datagram.bytes, length);
    alb_icrc_prefix_init(&prefix, &datagram.peer, &datagram.local);
    uint32_t icrc = htole32(alb_icrc_compute(&prefix, identification, &iov, length));
    memcpy(copy + length, &icrc, sizeof(icrc));
    datagram.bytes = copy;
    peer = (struct alb_icrc_peer){0};
    alb_assert(alb_icrc_check(&flow, &datagram, &peer, &found, 0));
    alb_assert(found == (prefix.is_ipv4 ? identification : 0));
}

static void check_capture(const uint8_t *data, size_t size)
{
    struct alb_pcap_reader reader;
    struct alb_pcap_packet packet;
    const uint8_t *payload;
    uint32_t length;
    if (alb_pcap_reader_init(&reader, data, size))
        while (alb_pcap_next(&reader, &packet, &payload, &length))
            alb_assert(payload >= data && payload + length <= data + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_capture(data, size);
    if (size < 5)
        return 0;
    bool is_ipv6 = data[0] & FLAG_IPV6, is_reverse = data[0] & FLAG_REVERSE;
    uint16_t identification = (uint16_t)(data[1] << 8 | data[2]), port = (uint16_t)(data[3] << 8 | data[4]);
    struct alb_datagram datagram = {
        .peer = endpoint(is_ipv6, is_reverse ? 3 : 2, port),
        .local = endpoint(is_ipv6, is_reverse ? 2 : 3, ALB_ROCE_PORT),
        .bytes = data + 5,
        .length = (uint32_t)(size - 5),
    };
    check_headers(datagram.bytes, datagram.length);
    check_icrc(datagram, identification);
    return 0;
}
