// SPDX-License-Identifier: BSD-2-Clause
// Computing, sealing and checking the ICRC. What is the same for all packets of a flow, and of one length, is taken
// from what one before has left.
#include "wire/icrc.h"

#include "wire/crc32.h"
#include "wire/roce.h"

#include <byteswap.h>
#include <endian.h>

#define ONES_BYTES   8 // stand for the LRH
#define IPV4_BYTES   20
#define IPV6_BYTES   40
#define UDP_BYTES    8
#define PORTS_BYTES  4
#define PROTOCOL_UDP 17
#define PREFIX_MAX   (ONES_BYTES + IPV6_BYTES + PORTS_BYTES)
#define SHORT_MAX    72 // bytes of a packet whose CRC is taken word by word
_Static_assert(SHORT_MAX / 4 <= ALB_CRC32_SHORT_WORDS && PREFIX_MAX / 4 <= ALB_CRC32_SHORT_WORDS, "one short CRC");

// How many words before the end of the prefix a field's word begins.
#define IPV4_TOTAL_LENGTH   ((IPV4_BYTES + PORTS_BYTES) / 4)
#define IPV4_IDENTIFICATION (IPV4_TOTAL_LENGTH - 1)
#define IPV6_PAYLOAD_LENGTH ((IPV6_BYTES + PORTS_BYTES) / 4 - 1)

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
    uint32_t words[PREFIX_MAX / 4];
    uint8_t *p = (uint8_t *)words;
    prefix->is_ipv4 = alb_addr_is_ipv4(&source->addr) && alb_addr_is_ipv4(&destination->addr);
    memset(p, 0xff, ONES_BYTES);
    p += ONES_BYTES;
    p = prefix->is_ipv4 ? put_ipv4(p, &source->addr, &destination->addr)
                        : put_ipv6(p, &source->addr, &destination->addr);
    put16(p, source->port);
    put16(p + 2, destination->port);
    prefix->crc = alb_crc32_short(0, words, (uint32_t)(p + PORTS_BYTES - (uint8_t *)words) / 4);
}

static void recall(struct alb_icrc_flow *flow, const struct alb_endpoint *source,
                   const struct alb_endpoint *destination)
{
    if (alb_unlikely(!flow->is_known || !alb_endpoint_equals(&flow->source, source) ||
                     !alb_endpoint_equals(&flow->destination, destination))) {
        flow->source = *source;
        flow->destination = *destination;
        flow->is_known = true;
        memset(flow->lengths, 0, sizeof(flow->lengths));
        alb_icrc_prefix_init(&flow->prefix, source, destination);
    }
}

// A field of two bytes as it lies in the first or second half of a word.
static uint32_t first_half(uint32_t value)
{
    return htole32(bswap_16((uint16_t)value));
}

static uint32_t second_half(uint32_t value)
{
    return htole32((uint32_t)bswap_16((uint16_t)value) << 16);
}

// The word of UDP length and checksum: the checksum is taken as ones.
static uint32_t udp_word(uint32_t udp_bytes)
{
    return first_half(udp_bytes) | htole32(0xffff0000);
}

// By how much an identification, other than 0, changes the CRC of all that is before the BTH. Those of places in a
// burst are kept.
static uint32_t changes[ALB_ICRC_BURST_IDENT];

static uint32_t change_by(uint16_t identification)
{
    if (alb_likely(identification < ALB_COUNT(changes)))
        return changes[identification];
    return alb_crc32_change(first_half(identification), IPV4_IDENTIFICATION + 1);
}

__attribute__((constructor(ALB_CRC32_INIT + 1))) static void init(void)
{
    for (uint16_t identification = 0; identification < ALB_COUNT(changes); identification++)
        changes[identification] = alb_crc32_change(first_half(identification), IPV4_IDENTIFICATION + 1);
}

// The CRC of all that is before the BTH of one packet.
static uint32_t completed(const struct alb_icrc_prefix *prefix, uint16_t identification, uint32_t udp_bytes)
{
    uint32_t crc = prefix->crc, word = udp_word(udp_bytes);
    if (prefix->is_ipv4)
        crc ^= alb_crc32_change(second_half(IPV4_BYTES + udp_bytes), IPV4_TOTAL_LENGTH);
    else
        crc ^= alb_crc32_change(first_half(udp_bytes), IPV6_PAYLOAD_LENGTH);
    crc = alb_crc32_short(crc, &word, 1);
    return prefix->is_ipv4 && identification != 0 ? crc ^ change_by(identification) : crc;
}

// The same, from what a packet before has left that had the same length. Places in a burst differ.
static uint32_t completed_again(struct alb_icrc_flow *flow, uint16_t identification, uint32_t udp_bytes)
{
    struct alb_icrc_length *length = &flow->lengths[udp_bytes / 4 % ALB_ICRC_LENGTHS];
    uint16_t kept = identification == UINT16_MAX ? UINT16_MAX : 0;
    if (alb_unlikely(length->udp_bytes != udp_bytes || length->identification != kept)) {
        length->udp_bytes = udp_bytes;
        length->identification = kept;
        length->crc = completed(&flow->prefix, kept, udp_bytes);
    }
    if (identification == kept || !flow->prefix.is_ipv4)
        return length->crc;
    return length->crc ^ change_by(identification);
}

static uint32_t udp_bytes_of(uint32_t length)
{
    return UDP_BYTES + length + ALB_ICRC_BYTES;
}

#define BTH_CHANGING htole32(0xff) // of its second word: FECN, BECN and reserved bits

// Headers have just been written by words: what reads two of them at once waits until they have left the processor
// (LESSONS 74), and so does the ICRC.
static void copy_words(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    uint32_t word, at = 0;
    for (; at + sizeof(word) <= bytes; at += sizeof(word)) {
        memcpy(&word, from + at, sizeof(word));
        memcpy(to + at, &word, sizeof(word));
    }
    for (; at < bytes; at++)
        to[at] = from[at];
}

// A short packet that lies in one piece, or is to: nothing of it is gathered to be masked.
static uint32_t compute_short(uint32_t crc, const struct iovec *iov, uint32_t length, uint8_t *copy)
{
    uint32_t copied = 0;
    for (; copy && copied < length; iov++) {
        uint32_t part = (uint32_t)ALB_MIN(iov->iov_len, (size_t)(length - copied));
        copy_words(copy + copied, iov->iov_base, part);
        copied += part;
    }
    const uint8_t *packet = copy ? copy : iov->iov_base;
    return alb_crc32_short_masked(crc, packet, length / 4, BTH_CHANGING);
}

// Goes on with the CRC of the completed prefix. copy: where the bytes are copied to, or NULL.
static uint32_t compute(uint32_t crc, const struct iovec *iov, uint32_t length, uint8_t *copy)
{
    alb_assert(length >= ALB_BTH_BYTES && iov->iov_len >= ALB_BTH_BYTES);
    if (length <= SHORT_MAX && length % 4 == 0 && (copy || iov->iov_len >= length))
        return compute_short(crc, iov, length, copy);
    return alb_crc32_pieces(crc, iov, length, BTH_CHANGING, copy);
}

uint32_t alb_icrc_compute(const struct alb_icrc_prefix *prefix, uint16_t identification, const struct iovec *iov,
                          uint32_t length)
{
    return compute(completed(prefix, identification, udp_bytes_of(length)), iov, length, NULL);
}

// The same for a packet of the flow.
static uint32_t compute_again(struct alb_icrc_flow *flow, uint16_t identification, const struct iovec *iov,
                              uint32_t length, uint8_t *copy)
{
    return compute(completed_again(flow, identification, udp_bytes_of(length)), iov, length, copy);
}

static void store(uint8_t *p, uint32_t icrc)
{
    icrc = htole32(icrc);
    memcpy(p, &icrc, sizeof(icrc));
}

static uint16_t identification_of(enum alb_icrc_ident ident, uint32_t place)
{
    switch (ident) {
    case ALB_ICRC_IDENT_PLACE:
        return (uint16_t)place;
    case ALB_ICRC_IDENT_ONES:
        return UINT16_MAX;
    case ALB_ICRC_IDENT_ZERO:
        break;
    }
    return 0;
}

#define FETCH_AHEAD     3    // packets: at 1.4 KiB that is the distance at which memory arrives in time
#define FETCH_STEP      64   // bytes of a cache line
#define FETCH_LEVEL     2    // into the second-level cache, since for bytes that are there already the first is dearer
#define FETCH_BYTES_MAX 2048 // longer pieces run long enough for the processor's own prefetching

// What a sender seals lies in a program's memory, and often in no cache: the payload of a packet to come is asked for.
// Always inline: GCC takes a function that only prefetches for one without effect (LESSONS 70).
__attribute__((always_inline)) static inline void fetch_next(const struct alb_tx *tx, const struct alb_burst *burst,
                                                             uint32_t place)
{
    if (place + FETCH_AHEAD >= burst->segment_count)
        return;
    const struct alb_segment *segment = &tx->segments[burst->segment_first + place + FETCH_AHEAD];
    const struct iovec *payload = &tx->iov[segment->iov_first + 1];
    if (segment->iov_count < 3 || payload->iov_len > FETCH_BYTES_MAX)
        return;
    for (size_t at = 0; at < payload->iov_len; at += FETCH_STEP)
        __builtin_prefetch((const uint8_t *)payload->iov_base + at, 0, FETCH_LEVEL);
}

// The packet's last four bytes, in its trailer and in the copy.
static void seal_segment(struct alb_icrc_flow *flow, const struct alb_tx *tx, const struct alb_segment *segment,
                         uint16_t identification, uint8_t *copy)
{
    const struct iovec *iov = &tx->iov[segment->iov_first];
    const struct iovec *trailer = &iov[segment->iov_count - 1];
    uint32_t covered = segment->length - ALB_ICRC_BYTES;
    uint32_t icrc = compute_again(flow, identification, iov, covered, copy);
    store((uint8_t *)trailer->iov_base + trailer->iov_len - ALB_ICRC_BYTES, icrc);
    if (copy)
        store(copy + covered, icrc);
}

static void seal(struct alb_icrc_flow *flow, struct alb_tx *tx, const struct alb_burst *burst,
                 const struct alb_endpoint *source, enum alb_icrc_ident ident, uint8_t *copy)
{
    recall(flow, source, &burst->peer);
    for (uint32_t place = 0; place < burst->segment_count; place++) {
        fetch_next(tx, burst, place);
        seal_segment(flow, tx, &tx->segments[burst->segment_first + place], identification_of(ident, place),
                     copy ? copy + place * burst->segment_bytes : NULL);
    }
}

void alb_icrc_seal(struct alb_icrc_flow *flow, struct alb_tx *tx, const struct alb_burst *burst,
                   const struct alb_endpoint *source, enum alb_icrc_ident ident)
{
    seal(flow, tx, burst, source, ident, NULL);
}

void alb_icrc_seal_copy(struct alb_icrc_flow *flow, struct alb_tx *tx, const struct alb_burst *burst,
                        const struct alb_endpoint *source, enum alb_icrc_ident ident, uint8_t *copy)
{
    seal(flow, tx, burst, source, ident, copy);
}

// Of the whole IPv4 packet, the words of four bytes from the identification's to the end of what the ICRC covers.
static uint32_t words_from_identification(uint32_t length)
{
    return (IPV4_BYTES - 4 + UDP_BYTES + length) / 4;
}

static bool is_length_good(uint32_t length, uint32_t length_max)
{
    return length % 4 == 0 && length >= ALB_BTH_BYTES + ALB_ICRC_BYTES && length <= length_max;
}

// By how much the ICRC received differs from the one that the datagram should have, had it this identification.
static uint32_t difference_from(struct alb_icrc_flow *flow, const struct alb_datagram *datagram,
                                uint16_t identification)
{
    recall(flow, &datagram->peer, &datagram->local);
    uint32_t length = datagram->length - ALB_ICRC_BYTES;
    struct iovec iov = {.iov_base = (void *)datagram->bytes, .iov_len = length};
    uint32_t received;
    memcpy(&received, datagram->bytes + length, sizeof(received));
    return le32toh(received) ^ compute_again(flow, identification, &iov, length, NULL);
}

bool alb_icrc_check(struct alb_icrc_flow *flow, const struct alb_datagram *datagram, struct alb_icrc_peer *peer,
                    uint16_t *identification, alb_time now)
{
    if (!is_length_good(datagram->length, ALB_ROCE_HEADER_MAX + ALB_ROCE_PAYLOAD_MAX + ALB_ICRC_BYTES))
        return false;

    uint16_t expected = alb_icrc_peer_expects(peer, *identification);
    uint32_t difference = difference_from(flow, datagram, expected);

    *identification = flow->prefix.is_ipv4 ? expected : 0;
    if (alb_likely(difference == 0))
        return !flow->prefix.is_ipv4 || alb_icrc_peer_admits(peer, expected, now);
    if (!flow->prefix.is_ipv4)
        return false;
    // The word that holds the identification in its first two bytes, had it differed by what explains all.
    uint32_t word = alb_crc32_word_for(difference, words_from_identification(datagram->length - ALB_ICRC_BYTES));
    if (word > UINT16_MAX)
        return false;
    *identification = expected ^ be16toh((uint16_t)word);
    return alb_icrc_peer_admits(peer, *identification, now);
}

bool alb_icrc_check_ones(struct alb_icrc_flow *flow, const struct alb_datagram *datagram)
{
    if (!is_length_good(datagram->length, ALB_ICRC_UDP_MAX))
        return false;
    return difference_from(flow, datagram, UINT16_MAX) == 0;
}
