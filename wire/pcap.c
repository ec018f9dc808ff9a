// SPDX-License-Identifier: BSD-2-Clause
// Building captures: IP and UDP headers as they stood around a datagram.
#include "wire/pcap.h"

#include "wire/pcap_format.h"

static void put16(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

// The file and record headers are in the byte order of their writer.
static void put_native(uint8_t *p, uint32_t value)
{
    memcpy(p, &value, sizeof(value));
}

// The Internet checksum's sum (RFC 1071) of bytes that begin at an even or odd place of the message.
static uint32_t add_bytes(uint32_t sum, const uint8_t *p, size_t length, bool is_odd)
{
    for (size_t i = 0; i < length; i++) {
        sum += (i & 1) != is_odd ? p[i] : (uint32_t)p[i] << 8;
        if (sum >> 31)
            sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static uint16_t fold(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static uint8_t *put_ipv4(uint8_t *p, const struct alb_pcap_packet *packet, uint32_t udp_bytes)
{
    p[0] = 0x45;
    p[1] = packet->traffic_class;
    put16(p + 2, PCAP_IPV4_BYTES + udp_bytes);
    put16(p + 4, packet->identification);
    put16(p + 6, 0x4000); // do not fragment
    p[8] = packet->hop_limit ? packet->hop_limit : 64;
    p[9] = PCAP_PROTOCOL_UDP;
    put16(p + 10, 0);
    memcpy(p + 12, packet->source.addr.bytes + 12, 4);
    memcpy(p + 16, packet->destination.addr.bytes + 12, 4);
    put16(p + 10, fold(add_bytes(0, p, PCAP_IPV4_BYTES, false)));
    return p + PCAP_IPV4_BYTES;
}

static uint8_t *put_ipv6(uint8_t *p, const struct alb_pcap_packet *packet, uint32_t udp_bytes)
{
    put16(p, 6u << 12 | (uint32_t)packet->traffic_class << 4);
    put16(p + 2, 0); // flow label
    put16(p + 4, udp_bytes);
    p[6] = PCAP_PROTOCOL_UDP;
    p[7] = packet->hop_limit ? packet->hop_limit : 64;
    memcpy(p + 8, packet->source.addr.bytes, 16);
    memcpy(p + 24, packet->destination.addr.bytes, 16);
    return p + PCAP_IPV6_BYTES;
}

// Over addresses, length and protocol, which lie in the IPv6 header before udp, the UDP header and the datagram.
static uint16_t checksum_ipv6(const uint8_t *udp, const struct iovec *iov, uint32_t length)
{
    uint32_t sum = PCAP_PROTOCOL_UDP + PCAP_UDP_BYTES + length;
    sum = add_bytes(sum, udp - 32, 32, false);
    sum = add_bytes(sum, udp, PCAP_UDP_BYTES, false);
    for (uint32_t done = 0; done < length; iov++) {
        uint32_t part = (uint32_t)ALB_MIN(iov->iov_len, (size_t)(length - done));
        sum = add_bytes(sum, iov->iov_base, part, done & 1);
        done += part;
    }
    uint16_t checksum = fold(sum);
    return checksum ? checksum : 0xffff;
}

void alb_pcap_file_header(uint8_t out[ALB_PCAP_FILE_HEADER_BYTES])
{
    put_native(out, PCAP_MAGIC_NS);
    memcpy(out + 4, &(uint16_t){2}, 2); // version 2.4
    memcpy(out + 6, &(uint16_t){4}, 2);
    put_native(out + 8, 0); // times are UTC
    put_native(out + 12, 0);
    put_native(out + 16, PCAP_SNAP_BYTES);
    put_native(out + 20, PCAP_LINKTYPE_RAW);
}

uint32_t alb_pcap_head(uint8_t out[ALB_PCAP_HEAD_MAX], const struct alb_pcap_packet *packet, const struct iovec *iov,
                       uint32_t length)
{
    bool is_ipv4 = alb_addr_is_ipv4(&packet->source.addr) && alb_addr_is_ipv4(&packet->destination.addr);
    uint32_t udp_bytes = PCAP_UDP_BYTES + length;
    alb_assert(udp_bytes + (is_ipv4 ? PCAP_IPV4_BYTES : 0) <= UINT16_MAX);

    uint8_t *ip = out + PCAP_RECORD_BYTES;
    uint8_t *udp = is_ipv4 ? put_ipv4(ip, packet, udp_bytes) : put_ipv6(ip, packet, udp_bytes);
    put16(udp, packet->source.port);
    put16(udp + 2, packet->destination.port);
    put16(udp + 4, udp_bytes);
    put16(udp + 6, 0);
    if (!is_ipv4)
        put16(udp + 6, checksum_ipv6(udp, iov, length));

    uint32_t captured = (uint32_t)(udp - ip) + udp_bytes;
    put_native(out, (uint32_t)(packet->time / ALB_NS_PER_S));
    put_native(out + 4, (uint32_t)(packet->time % ALB_NS_PER_S));
    put_native(out + 8, captured);
    put_native(out + 12, captured);
    return PCAP_RECORD_BYTES + captured - length;
}
