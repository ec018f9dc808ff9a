// SPDX-License-Identifier: BSD-2-Clause
// Computing, sealing and checking the ICRC. The bytes before the payload are gathered, masked, in one small buffer,
// since a call of the CRC function costs as much as a few hundred bytes of it.
#include "wire/icrc.h"

#include "wire/crc32.h"
#include "wire/roce.h"

#include <byteswap.h>
#include <endian.h>

#define ONES_BYTES   8 // stand for the LRH
#define IPV4_BYTES   20
#define IPV6_BYTES   40
#define UDP_BYTES    8
#define PROTOCOL_UDP 17
#define COPIED_MAX   72 // bytes of the packet that join the prefix in one short CRC
#define HEAD_WORDS   ((ALB_ICRC_PREFIX_MAX + COPIED_MAX) / 4)
_Static_assert(HEAD_WORDS <= ALB_CRC32_SHORT_WORDS, "prefix and short packet fit in one short CRC");

// Offsets in the prefix.
#define IPV4_TOTAL_LENGTH   (ONES_BYTES + 2)
#define IPV4_IDENTIFICATION (ONES_BYTES + 4)
#define IPV6_PAYLOAD_LENGTH (ONES_BYTES + 4)

static void put16(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static uint8_t *put_ipv4(uint8_t *p, const struct alb_addr *source, const struct alb_addr *destination)
{
    static const uint8_t fixed[12] = {
        0x45, 0xff, 0, 0, 0, 0, 0x40, 0, 0xff, PROTOCOL_UDP, 0xff, 0xff, // 0x40: do not fragment
    };
    memcpy(p, fixed, sizeof(fixed));
    memcpy(p + 12, source->bytes + 12, 4);
    memcpy(p + 16, destination->bytes + 12, 4);
    return p + IPV4_BYTES;
}

static uint8_t *put_ipv6(uint8_t *p, const struct alb_addr *source, const struct alb_addr *destination)
{
    static const uint8_t fixed[8] = {0x6f, 0xff, 0xff, 0xff, 0, 0, PROTOCOL_UDP, 0xff};
    memcpy(p, fixed, sizeof(fixed));
    memcpy(p + 8, source->bytes, 16);
    memcpy(p + 24, destination->bytes, 16);
    return p + IPV6_BYTES;
}

void alb_icrc_prefix_init(struct alb_icrc_prefix *prefix, const struct alb_endpoint *source,
                          const struct alb_endpoint *destination)
{
    uint8_t *p = (uint8_t *)prefix->words;
    prefix->is_ipv4 = alb_addr_is_ipv4(&source->addr) && alb_addr_is_ipv4(&destination->addr);
    memset(p, 0xff, ONES_BYTES);
    p += ONES_BYTES;
    p = prefix->is_ipv4 ? put_ipv4(p, &source->addr, &destination->addr)
                        : put_ipv6(p, &source->addr, &destination->addr);
    put16(p, source->port);
    put16(p + 2, destination->port);
    put16(p + 4, 0);
    put16(p + 6, 0xffff);
    prefix->size = (uint8_t)(p + UDP_BYTES - (uint8_t *)prefix->words);
}

// Sets a field of two bytes that is still zero. All stores and loads here are of whole words: a load of more than was
// just stored has to wait for the store.
static inline void set16(uint32_t *words, uint32_t offset, uint32_t value)
{
    words[offset / 4] |= htole32((uint32_t)bswap_16((uint16_t)value) << offset % 4 * 8);
}

// Length and identification of one packet, into a copy of the prefix.
static void complete_prefix(const struct alb_icrc_prefix *prefix, uint32_t *words, uint16_t identification,
                            uint32_t length)
{
    uint32_t udp_bytes = UDP_BYTES + length + ALB_ICRC_BYTES;
    if (prefix->is_ipv4) {
        set16(words, IPV4_TOTAL_LENGTH, IPV4_BYTES + udp_bytes);
        set16(words, IPV4_IDENTIFICATION, identification);
    } else {
        set16(words, IPV6_PAYLOAD_LENGTH, udp_bytes);
    }
    set16(words, prefix->size - UDP_BYTES + 4u, udp_bytes);
}

// A place among the bytes of a packet.
struct cursor {
    const struct iovec *iov;
    size_t skip;   // bytes of *iov that are behind us
    uint32_t left; // bytes to the end of the packet
};

// Copies the leading pieces that are short, and the BTH in any case. Returns the bytes copied.
static uint32_t gather_short(struct cursor *at, uint8_t *to)
{
    uint32_t copied = 0;
    while (at->left) {
        size_t part = ALB_MIN(at->iov->iov_len, (size_t)at->left);
        if (part > COPIED_MAX - copied)
            break;
        memcpy(to + copied, at->iov->iov_base, part);
        copied += (uint32_t)part;
        at->left -= (uint32_t)part;
        at->iov++;
    }
    if (copied == 0) {
        memcpy(to, at->iov->iov_base, ALB_BTH_BYTES);
        copied = ALB_BTH_BYTES;
        at->left -= ALB_BTH_BYTES;
        at->skip = ALB_BTH_BYTES;
    }
    return copied;
}

static uint32_t crc32_rest(uint32_t crc, struct cursor *at)
{
    for (; at->left; at->iov++, at->skip = 0) {
        uint32_t part = (uint32_t)ALB_MIN(at->iov->iov_len - at->skip, (size_t)at->left);
        if (part)
            crc = alb_crc32(crc, (const uint8_t *)at->iov->iov_base + at->skip, part);
        at->left -= part;
    }
    return crc;
}

uint32_t alb_icrc_compute(const struct alb_icrc_prefix *prefix, uint16_t identification, const struct iovec *iov,
                          uint32_t length)
{
    alb_assert(length >= ALB_BTH_BYTES && iov->iov_len >= ALB_BTH_BYTES);
    uint32_t head[HEAD_WORDS];
    uint32_t *bth = head + prefix->size / 4;
    struct cursor at = {.iov = iov, .left = length};

    memcpy(head, prefix->words, sizeof(prefix->words));
    complete_prefix(prefix, head, identification, length);
    uint32_t copied = gather_short(&at, (uint8_t *)bth);
    bth[1] |= htole32(0xff); // FECN, BECN and reserved bits
    uint32_t crc = alb_crc32_short(head, (prefix->size + copied) / 4);
    if (copied % 4)
        crc = alb_crc32(crc, (uint8_t *)bth + (copied & ~3u), copied % 4);
    return crc32_rest(crc, &at);
}

static void store(uint8_t *p, uint32_t icrc)
{
    icrc = htole32(icrc);
    memcpy(p, &icrc, sizeof(icrc));
}

void alb_icrc_seal(struct alb_tx *tx, const struct alb_burst *burst, const struct alb_endpoint *source,
                   enum alb_icrc_ident ident)
{
    struct alb_icrc_prefix prefix;
    alb_icrc_prefix_init(&prefix, source, &burst->peer);
    for (uint32_t place = 0; place < burst->segment_count; place++) {
        const struct alb_segment *segment = &tx->segments[burst->segment_first + place];
        const struct iovec *iov = &tx->iov[segment->iov_first];
        const struct iovec *trailer = &iov[segment->iov_count - 1];
        uint16_t identification = ident == ALB_ICRC_IDENT_PLACE ? (uint16_t)place : 0;
        uint32_t icrc = alb_icrc_compute(&prefix, identification, iov, segment->length - ALB_ICRC_BYTES);
        store((uint8_t *)trailer->iov_base + trailer->iov_len - ALB_ICRC_BYTES, icrc);
    }
}

// Of the whole IPv4 packet, the words of four bytes from the identification's to the end of what the ICRC covers.
static uint32_t words_from_identification(uint32_t length)
{
    return (IPV4_BYTES - 4 + UDP_BYTES + length) / 4;
}

bool alb_icrc_check(const struct alb_datagram *datagram, struct alb_icrc_peer *peer, uint16_t *identification,
                    alb_time now)
{
    if (datagram->length % 4 || datagram->length < ALB_BTH_BYTES + ALB_ICRC_BYTES ||
        datagram->length > ALB_ROCE_HEADER_MAX + ALB_ROCE_PAYLOAD_MAX + ALB_ICRC_BYTES)
        return false;

    struct alb_icrc_prefix prefix;
    uint32_t length = datagram->length - ALB_ICRC_BYTES;
    struct iovec iov = {.iov_base = (void *)datagram->bytes, .iov_len = length};
    alb_icrc_prefix_init(&prefix, &datagram->peer, &datagram->local);
    uint32_t received;
    memcpy(&received, datagram->bytes + length, sizeof(received));
    uint32_t difference = le32toh(received) ^ alb_icrc_compute(&prefix, 0, &iov, length);

    *identification = 0;
    if (!prefix.is_ipv4)
        return difference == 0;
    // The word that holds the identification in its first two bytes, had it differed from zero by what explains all.
    uint32_t word = alb_crc32_word_for(difference, words_from_identification(length));
    if (word > UINT16_MAX)
        return false;
    *identification = be16toh((uint16_t)word);
    return alb_icrc_peer_admits(peer, *identification, now);
}
