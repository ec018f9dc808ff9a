// SPDX-License-Identifier: BSD-2-Clause
// Walking through captures.
#include "wire/pcap.h"

#include "wire/pcap_format.h"

#include <byteswap.h>

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get_native(const struct alb_pcap_reader *reader, const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof(value));
    return reader->is_swapped ? bswap_32(value) : value;
}

bool alb_pcap_reader_init(struct alb_pcap_reader *reader, const void *bytes, size_t length)
{
    if (length < ALB_PCAP_FILE_HEADER_BYTES)
        return false;
    *reader = (struct alb_pcap_reader){.next = bytes, .end = (const uint8_t *)bytes + length};
    uint32_t magic = get_native(reader, bytes);
    if (magic != PCAP_MAGIC_US && magic != PCAP_MAGIC_NS) {
        magic = bswap_32(magic);
        reader->is_swapped = true;
    }
    reader->is_nanoseconds = magic == PCAP_MAGIC_NS;
    reader->linktype = get_native(reader, reader->next + 20);
    reader->next += ALB_PCAP_FILE_HEADER_BYTES;
    return (magic == PCAP_MAGIC_US || magic == PCAP_MAGIC_NS) &&
           (reader->linktype == PCAP_LINKTYPE_ETHERNET || reader->linktype == PCAP_LINKTYPE_RAW);
}

static bool parse_udp(const uint8_t *p, uint32_t captured, struct alb_pcap_packet *packet, const uint8_t **payload,
                      uint32_t *length)
{
    if (captured < PCAP_UDP_BYTES)
        return false;
    uint32_t udp_bytes = get16(p + 4);
    if (udp_bytes < PCAP_UDP_BYTES || udp_bytes > captured)
        return false;
    packet->source.port = get16(p);
    packet->destination.port = get16(p + 2);
    *payload = p + PCAP_UDP_BYTES;
    *length = udp_bytes - PCAP_UDP_BYTES;
    return true;
}

static bool parse_ipv4(const uint8_t *p, uint32_t captured, struct alb_pcap_packet *packet, const uint8_t **payload,
                       uint32_t *length)
{
    // Options and fragments have no place in RoCEv2.
    if (captured < PCAP_IPV4_BYTES || p[0] != 0x45 || p[9] != PCAP_PROTOCOL_UDP || get16(p + 6) & 0x3fff)
        return false;
    packet->traffic_class = p[1];
    packet->identification = get16(p + 4);
    packet->hop_limit = p[8];
    packet->source.addr = alb_addr_from_ipv4(p + 12);
    packet->destination.addr = alb_addr_from_ipv4(p + 16);
    return parse_udp(p + PCAP_IPV4_BYTES, captured - PCAP_IPV4_BYTES, packet, payload, length);
}

static bool parse_ipv6(const uint8_t *p, uint32_t captured, struct alb_pcap_packet *packet, const uint8_t **payload,
                       uint32_t *length)
{
    if (captured < PCAP_IPV6_BYTES || p[0] >> 4 != 6 || p[6] != PCAP_PROTOCOL_UDP)
        return false;
    packet->traffic_class = (uint8_t)(get16(p) >> 4);
    packet->hop_limit = p[7];
    memcpy(packet->source.addr.bytes, p + 8, 16);
    memcpy(packet->destination.addr.bytes, p + 24, 16);
    return parse_udp(p + PCAP_IPV6_BYTES, captured - PCAP_IPV6_BYTES, packet, payload, length);
}

static bool parse_frame(const struct alb_pcap_reader *reader, const uint8_t *p, uint32_t captured,
                        struct alb_pcap_packet *packet, const uint8_t **payload, uint32_t *length)
{
    if (reader->linktype == PCAP_LINKTYPE_RAW) {
        if (captured == 0)
            return false;
        return p[0] >> 4 == 4 ? parse_ipv4(p, captured, packet, payload, length)
                              : parse_ipv6(p, captured, packet, payload, length);
    }
    if (captured < PCAP_ETHER_BYTES)
        return false;
    uint16_t ethertype = get16(p + 12);
    p += PCAP_ETHER_BYTES;
    captured -= PCAP_ETHER_BYTES;
    if (ethertype == PCAP_ETHERTYPE_IPV4)
        return parse_ipv4(p, captured, packet, payload, length);
    return ethertype == PCAP_ETHERTYPE_IPV6 && parse_ipv6(p, captured, packet, payload, length);
}

bool alb_pcap_next(struct alb_pcap_reader *reader, struct alb_pcap_packet *packet, const uint8_t **payload,
                   uint32_t *length)
{
    while (reader->end - reader->next >= PCAP_RECORD_BYTES) {
        const uint8_t *record = reader->next;
        const uint8_t *frame = record + PCAP_RECORD_BYTES;
        uint32_t captured = get_native(reader, record + 8);
        if (captured > (size_t)(reader->end - frame))
            return false;
        reader->next = frame + captured;
        *packet = (struct alb_pcap_packet){
            .time = get_native(reader, record) * ALB_NS_PER_S +
                    get_native(reader, record + 4) * (reader->is_nanoseconds ? 1 : ALB_NS_PER_US),
        };
        if (parse_frame(reader, frame, captured, packet, payload, length))
            return true;
    }
    return false;
}
