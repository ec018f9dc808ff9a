// SPDX-License-Identifier: BSD-2-Clause
// Encoding and decoding of the RoCEv2 headers, straight along the wire: BTH, then each extended header the opcode has.
#include "wire/roce.h"

#include "wire/bytes.h"

// The bits of the BTH: byte 1 is SE, M, pad (2), version (4); bytes 4 to 7 FECN, BECN, reserved (6), destination QPN
// (24); bytes 8 to 11 AckReq, reserved (7), PSN (24).
#define BTH_SOLICITED (1u << 7)
#define BTH_FECN      (1u << 31)
#define BTH_BECN      (1u << 30)
#define BTH_ACKREQ    (1u << 31)

static void decode_bth(const uint8_t *p, struct alb_roce *out)
{
    uint32_t dest = alb_get_be32(p + 4);
    uint32_t sequence = alb_get_be32(p + 8);

    out->opcode = p[0];
    out->solicited = p[1] & BTH_SOLICITED;
    out->migreq = p[1] & ALB_BTH_MIGREQ;
    out->pad = p[1] >> 4 & 3;
    out->version = p[1] & 15;
    out->pkey = alb_get_be16(p + 2);
    out->fecn = dest & BTH_FECN;
    out->becn = dest & BTH_BECN;
    out->dest_qpn = dest & ALB_QPN_MASK;
    out->ackreq = sequence & BTH_ACKREQ;
    out->psn = sequence & ALB_PSN_MASK;
}

static void encode_bth(const struct alb_roce *roce, uint8_t *p)
{
    uint32_t flags = (roce->solicited ? BTH_SOLICITED : 0) | (roce->migreq ? ALB_BTH_MIGREQ : 0) |
                     (uint32_t)roce->pad << 4 | (roce->version & 15u);
    // By words, since that is how they are read soon, for the ICRC.
    alb_put_be32(p, (uint32_t)roce->opcode << 24 | flags << 16 | roce->pkey);
    alb_put_be32(p + 4, (roce->fecn ? BTH_FECN : 0) | (roce->becn ? BTH_BECN : 0) | (roce->dest_qpn & ALB_QPN_MASK));
    alb_put_be32(p + 8, (roce->ackreq ? BTH_ACKREQ : 0) | (roce->psn & ALB_PSN_MASK));
}

// p stands behind the BTH, and the packet is long enough for all of headers.
static void decode_extended(const uint8_t *p, unsigned headers, struct alb_roce *out)
{
    if (headers & ALB_HEADER_DETH) {
        out->qkey = alb_get_be32(p);
        out->src_qpn = alb_get_be32(p + 4) & ALB_QPN_MASK;
        p += 8;
    }
    if (headers & ALB_HEADER_XRCETH) {
        out->xrc_srqn = alb_get_be32(p) & ALB_QPN_MASK;
        p += 4;
    }
    if (headers & ALB_HEADER_RETH) {
        out->va = alb_get_be64(p);
        out->rkey = alb_get_be32(p + 8);
        out->length = alb_get_be32(p + 12);
        p += 16;
    }
    if (headers & ALB_HEADER_ATOMIC) {
        out->va = alb_get_be64(p);
        out->rkey = alb_get_be32(p + 8);
        out->swap_add = alb_get_be64(p + 12);
        out->compare = alb_get_be64(p + 20);
        p += 28;
    }
    if (headers & ALB_HEADER_AETH) {
        uint32_t aeth = alb_get_be32(p);
        out->syndrome = (uint8_t)(aeth >> 24);
        out->msn = aeth & ALB_PSN_MASK;
        p += 4;
    }
    if (headers & ALB_HEADER_ATOMIC_ACK) {
        out->atomic_original = alb_get_be64(p);
        p += 8;
    }
    if (headers & ALB_HEADER_IMM) {
        memcpy(&out->imm_be, p, 4);
        p += 4;
    }
    if (headers & ALB_HEADER_IETH)
        out->invalidate_rkey = alb_get_be32(p);
}

static void encode_extended(const struct alb_roce *roce, unsigned headers, uint8_t *p)
{
    if (headers & ALB_HEADER_DETH) {
        alb_put_be32(p, roce->qkey);
        alb_put_be32(p + 4, roce->src_qpn & ALB_QPN_MASK);
        p += 8;
    }
    if (headers & ALB_HEADER_XRCETH) {
        alb_put_be32(p, roce->xrc_srqn & ALB_QPN_MASK);
        p += 4;
    }
    if (headers & ALB_HEADER_RETH) {
        alb_put_be64(p, roce->va);
        alb_put_be32(p + 8, roce->rkey);
        alb_put_be32(p + 12, roce->length);
        p += 16;
    }
    if (headers & ALB_HEADER_ATOMIC) {
        alb_put_be64(p, roce->va);
        alb_put_be32(p + 8, roce->rkey);
        alb_put_be64(p + 12, roce->swap_add);
        alb_put_be64(p + 20, roce->compare);
        p += 28;
    }
    if (headers & ALB_HEADER_AETH) {
        alb_put_be32(p, (uint32_t)roce->syndrome << 24 | (roce->msn & ALB_PSN_MASK));
        p += 4;
    }
    if (headers & ALB_HEADER_ATOMIC_ACK) {
        alb_put_be64(p, roce->atomic_original);
        p += 8;
    }
    if (headers & ALB_HEADER_IMM) {
        memcpy(p, &roce->imm_be, 4);
        p += 4;
    }
    if (headers & ALB_HEADER_IETH)
        alb_put_be32(p, roce->invalidate_rkey);
    if (headers & ALB_HEADER_CNP)
        memset(p, 0, 16);
}

enum alb_drop alb_roce_decode(const uint8_t *bytes, uint32_t length, struct alb_roce *out, uint32_t *payload_offset,
                              uint32_t *payload_bytes)
{
    if (alb_unlikely(length < ALB_BTH_BYTES))
        return ALB_DROP_TRUNCATED;
    decode_bth(bytes, out);
    if (alb_unlikely(out->version != 0))
        return ALB_DROP_BAD_VERSION;

    const struct alb_opcode_info *info = alb_opcode_info(out->opcode);
    if (alb_unlikely(!info))
        return ALB_DROP_UNKNOWN_OPCODE;
    if (alb_unlikely(length < info->header_bytes))
        return ALB_DROP_TRUNCATED;

    uint32_t padded = length - info->header_bytes;
    if (alb_unlikely(padded & 3 || out->pad > padded || (padded && !(info->flags & ALB_OPCODE_PAYLOAD))))
        return ALB_DROP_BAD_LENGTH;

    decode_extended(bytes + ALB_BTH_BYTES, info->headers, out);
    *payload_offset = info->header_bytes;
    *payload_bytes = padded - out->pad;
    return ALB_DROP_NONE;
}

uint32_t alb_roce_encode(const struct alb_roce *roce, uint8_t *out)
{
    const struct alb_opcode_info *info = alb_opcode_info(roce->opcode);
    alb_assert(info && roce->pad < 4);
    encode_bth(roce, out);
    encode_extended(roce, info->headers, out + ALB_BTH_BYTES);
    return info->header_bytes;
}
