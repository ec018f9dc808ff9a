// SPDX-License-Identifier: BSD-2-Clause
// The outside and the header of a CSA packet, and the way from frame to frame. Reserved bytes are written as zero and
// not looked at, but for the header's flags and key.
#include "wire/csa.h"

#include "wire/bytes.h"
#include "wire/csa_frame.h"

#define FRAMES_OFFSET   (ALB_BTH_BYTES + 8) // of the CSA header
#define FRAME_INDEX_END 15                  // in a segment's frame: up to here it says which segment it is

bool alb_csa_is_packet(const uint8_t *bytes, uint32_t length)
{
    return length >= ALB_BTH_BYTES && bytes[0] == ALB_UD_SEND_ONLY && alb_get_be16(bytes + 6) == ALB_CSA_QPN_INDEX;
}

static enum alb_drop decode_outer(const uint8_t *bytes, uint32_t length)
{
    if (alb_unlikely(length < ALB_CSA_OUTER_BYTES))
        return ALB_DROP_TRUNCATED;
    const uint8_t *csa = bytes + FRAMES_OFFSET;
    if (alb_unlikely((bytes[1] & 15) != 0 || csa[0] != ALB_CSA_VERSION << 4 || csa[1] != 0 || csa[2] || csa[3]))
        return ALB_DROP_BAD_VERSION;
    if (alb_unlikely(alb_get_be32(bytes + ALB_BTH_BYTES) != ALB_CSA_QKEY))
        return ALB_DROP_BAD_QKEY;
    if (alb_unlikely(alb_get_be16(bytes + ALB_BTH_BYTES + 6) != ALB_CSA_QPN_INDEX))
        return ALB_DROP_WRONG_PEER;
    return ALB_DROP_NONE;
}

static enum alb_drop decode_header(const uint8_t *bytes, struct alb_csa_header *header)
{
    const uint8_t *csa = bytes + FRAMES_OFFSET;
    header->dest_slot = bytes[5];
    header->source_slot = bytes[ALB_BTH_BYTES + 5];
    header->sequence = alb_get_be24(bytes + 9);
    header->key_id = alb_get_be16(csa + 2);
    header->source_epoch = alb_get_be32(csa + 4);
    header->destination_epoch = alb_get_be32(csa + 8);
    header->timestamp = alb_get_be32(csa + 12);
    header->path = csa[16];
    header->rtt_code = alb_get_be16(csa + 18);
    return header->source_epoch ? ALB_DROP_NONE : ALB_DROP_BAD_EPOCH;
}

enum alb_drop alb_csa_decode(const uint8_t *bytes, uint32_t length, struct alb_csa_header *header,
                             struct alb_csa_cursor *cursor)
{
    alb_assert(length >= ALB_BTH_BYTES);
    uint32_t pad = bytes[1] >> 4 & 3;
    enum alb_drop drop = decode_outer(bytes, length);
    if (alb_unlikely(drop != ALB_DROP_NONE))
        return drop;
    if (alb_unlikely(length % 4 || pad > length - ALB_CSA_OUTER_BYTES))
        return ALB_DROP_BAD_LENGTH;
    *cursor = (struct alb_csa_cursor){.at = bytes + ALB_CSA_OUTER_BYTES, .end = bytes + length - pad};
    return decode_header(bytes, header);
}

enum alb_drop alb_csa_decode_trimmed(const uint8_t *bytes, uint32_t length, struct alb_csa_header *header,
                                     struct alb_csa_trimmed *trimmed)
{
    const uint8_t *frame = bytes + ALB_CSA_OUTER_BYTES;
    alb_assert(length >= ALB_BTH_BYTES);
    enum alb_drop drop = decode_outer(bytes, length);
    if (drop != ALB_DROP_NONE)
        return drop;
    if (length < ALB_CSA_OUTER_BYTES + FRAME_INDEX_END)
        return ALB_DROP_TRUNCATED;
    if (frame[0] != ALB_CSA_REQUEST && frame[0] != ALB_CSA_RESPONSE)
        return ALB_DROP_UNKNOWN_OPCODE;
    drop = decode_header(bytes, header);
    *trimmed = (struct alb_csa_trimmed){
        .is_response = frame[0] == ALB_CSA_RESPONSE,
        .dest_qpn = alb_get_be24(frame + 4),
        .psn = alb_get_be24(frame + 8),
        .index = alb_get_be24(frame + 12),
        .path = header->path,
        .sequence = header->sequence,
    };
    return drop;
}

// BTH and DETH, which differ between packets in slots and sequence alone.
static void encode_outer(const struct alb_csa_header *header, uint8_t *out)
{
    out[0] = ALB_UD_SEND_ONLY;
    out[1] = 0;
    alb_put_be16(out + 2, ALB_PKEY_DEFAULT);
    alb_put_be32(out + 4, (uint32_t)header->dest_slot << 16 | ALB_CSA_QPN_INDEX);
    alb_put_be32(out + 8, header->sequence & ALB_PSN_MASK);
    alb_put_be32(out + ALB_BTH_BYTES, ALB_CSA_QKEY);
    alb_put_be32(out + ALB_BTH_BYTES + 4, (uint32_t)header->source_slot << 16 | ALB_CSA_QPN_INDEX);
}

void alb_csa_encode(const struct alb_csa_header *header, uint8_t *out)
{
    uint8_t *csa = out + FRAMES_OFFSET;
    encode_outer(header, out);
    csa[0] = ALB_CSA_VERSION << 4;
    csa[1] = 0;
    alb_put_be16(csa + 2, header->key_id);
    alb_put_be32(csa + 4, header->source_epoch);
    alb_put_be32(csa + 8, header->destination_epoch);
    alb_put_be32(csa + 12, header->timestamp);
    csa[16] = header->path;
    csa[17] = 0;
    alb_put_be16(csa + 18, header->rtt_code);
}

void alb_csa_set_pad(uint8_t *packet, uint8_t pad)
{
    alb_assert(pad < 4);
    packet[1] = (uint8_t)((packet[1] & ~0x30) | pad << 4);
}

static enum alb_drop decode_frame(const uint8_t *p, uint32_t length, struct alb_csa_frame *frame, uint32_t *taken)
{
    switch (p[0]) {
    case ALB_CSA_REQUEST:
    case ALB_CSA_RESPONSE:
        return alb_csa_decode_segment(p, length, &frame->segment, taken);
    case ALB_CSA_DATAGRAM:
        return alb_csa_decode_datagram(p, length, &frame->segment, taken);
    case ALB_CSA_REPORT:
        return alb_csa_decode_report(p, length, &frame->report, taken);
    case ALB_CSA_PATHS:
        return alb_csa_decode_paths(p, length, &frame->paths, taken);
    case ALB_CSA_HOLDS:
        return alb_csa_decode_holds(p, length, &frame->holds, taken);
    default:
        return alb_csa_decode_short(p, length, frame, taken);
    }
}

bool alb_csa_next(struct alb_csa_cursor *cursor, struct alb_csa_frame *frame, enum alb_drop *drop)
{
    uint32_t length = (uint32_t)(cursor->end - cursor->at), taken;
    *drop = ALB_DROP_NONE;
    if (length == 0)
        return false;
    if (alb_unlikely(length < ALB_CSA_FRAME_MIN)) {
        *drop = ALB_DROP_TRUNCATED;
        return false;
    }
    frame->type = (enum alb_csa_type)cursor->at[0];
    *drop = decode_frame(cursor->at, length, frame, &taken);
    if (alb_unlikely(*drop != ALB_DROP_NONE))
        return false;

    uint32_t pad = length == taken ? 0 : alb_roce_pad(taken);
    if (alb_unlikely(pad > length - taken)) {
        *drop = ALB_DROP_BAD_LENGTH;
        return false;
    }
    cursor->at += taken + pad;
    return true;
}

#define MANTISSA_BITS 11
#define MANTISSA_MAX  ((1u << MANTISSA_BITS) - 1)
#define TIME_MAX      ((alb_time)MANTISSA_MAX << 31)

uint16_t alb_csa_time_encode(alb_time ns)
{
    if (ns <= MANTISSA_MAX)
        return (uint16_t)ns;
    ns = ALB_MIN(ns, TIME_MAX);
    unsigned exponent = 64 - MANTISSA_BITS - (unsigned)__builtin_clzll(ns);
    return (uint16_t)(exponent << MANTISSA_BITS | ns >> exponent);
}

alb_time alb_csa_time_decode(uint16_t code)
{
    return (alb_time)(code & MANTISSA_MAX) << (code >> MANTISSA_BITS);
}
