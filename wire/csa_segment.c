// SPDX-License-Identifier: BSD-2-Clause
// The frames that carry messages: REQUEST, RESPONSE and DATAGRAM. Payload is only referred to.
#include "wire/bytes.h"
#include "wire/csa_frame.h"

// What follows the fixed part of a segment, in this order.
enum field {
    FIELD_MEMORY = 1 << 0,   // va, rkey
    FIELD_ACKED = 1 << 1,    // acked
    FIELD_OPERAND = 1 << 2,  // operand
    FIELD_COMPARE = 1 << 3,  // compare
    FIELD_RECV = 1 << 4,     // recv_number
    FIELD_IMM = 1 << 5,      // imm_be
    FIELD_KEY = 1 << 6,      // invalidate_rkey
    FIELD_REQUEST = 1 << 7,  // request_psn
    FIELD_RESULT = 1 << 8,   // original
    FIELD_SINGLE = 1 << 9,   // one segment, without payload or (ATOMIC_WRITE) with a word
    FIELD_TXN = 1 << 10,     // txn.number, txn_mode
    FIELD_MESSAGE = 1 << 11, // message
};

struct op_info {
    const char *name;
    uint8_t type;  // of which it is, 0: unknown
    uint8_t bytes; // of its fields
    uint16_t fields;
};

#define ATOMIC_FIELDS     (FIELD_MEMORY | FIELD_ACKED | FIELD_OPERAND | FIELD_COMPARE | FIELD_SINGLE)
#define ATOMIC_WRITE_WORD 8

static const struct op_info ops[] = {
    [ALB_CSA_SEND] = {"SEND", ALB_CSA_REQUEST, 4, FIELD_RECV},
    [ALB_CSA_SEND_IMM] = {"SEND_IMM", ALB_CSA_REQUEST, 8, FIELD_RECV | FIELD_IMM},
    [ALB_CSA_SEND_INV] = {"SEND_INV", ALB_CSA_REQUEST, 8, FIELD_RECV | FIELD_KEY},
    [ALB_CSA_WRITE] = {"WRITE", ALB_CSA_REQUEST, 12, FIELD_MEMORY},
    [ALB_CSA_WRITE_IMM] = {"WRITE_IMM", ALB_CSA_REQUEST, 20, FIELD_MEMORY | FIELD_RECV | FIELD_IMM},
    [ALB_CSA_READ] = {"READ", ALB_CSA_REQUEST, 16, FIELD_MEMORY | FIELD_ACKED | FIELD_SINGLE},
    [ALB_CSA_CMP_SWAP] = {"CMP_SWAP", ALB_CSA_REQUEST, 32, ATOMIC_FIELDS},
    [ALB_CSA_FETCH_ADD] = {"FETCH_ADD", ALB_CSA_REQUEST, 32, ATOMIC_FIELDS},
    [ALB_CSA_ATOMIC_WRITE] = {"ATOMIC_WRITE", ALB_CSA_REQUEST, 16, FIELD_MEMORY | FIELD_ACKED | FIELD_SINGLE},
    [ALB_CSA_TXN_WRITE] = {"TXN_WRITE", ALB_CSA_REQUEST, 24, FIELD_MEMORY | FIELD_TXN},
    [ALB_CSA_TXN_END] = {"TXN_END", ALB_CSA_REQUEST, 0, 0},
    [ALB_CSA_PARTIAL_WRITE] = {"PARTIAL_WRITE", ALB_CSA_REQUEST, 16, FIELD_MEMORY | FIELD_MESSAGE},
    [ALB_CSA_PARTIAL_WRITE_IMM] = {"PARTIAL_WRITE_IMM", ALB_CSA_REQUEST, 20, FIELD_MEMORY | FIELD_IMM | FIELD_MESSAGE},
    [ALB_CSA_READ_DATA] = {"READ_DATA", ALB_CSA_RESPONSE, 4, FIELD_REQUEST},
    [ALB_CSA_RESULT] = {"RESULT", ALB_CSA_RESPONSE, 12, FIELD_REQUEST | FIELD_RESULT | FIELD_SINGLE},
};

#define SEGMENT_BYTES  20 // fixed part of REQUEST and RESPONSE
#define DATAGRAM_BYTES 16
#define SRQN_BYTES     4
#define REFLECT_BYTES  40

static bool is_reflected(uint8_t type, uint8_t flags)
{
    return type == ALB_CSA_REQUEST && (flags & ALB_CSA_REFLECT);
}

static bool has_srqn(uint8_t type, uint8_t flags)
{
    return type == ALB_CSA_REQUEST && (flags & ALB_CSA_XRC);
}

static void decode_fields(const uint8_t *p, unsigned fields, struct alb_csa_segment *out)
{
    if (fields & FIELD_MEMORY) {
        out->va = alb_get_be64(p);
        out->rkey = alb_get_be32(p + 8);
        p += 12;
    }
    if (fields & FIELD_ACKED) {
        out->acked = alb_get_be32(p) & ALB_PSN_MASK;
        p += 4;
    }
    if (fields & FIELD_OPERAND) {
        out->operand = alb_get_be64(p);
        p += 8;
    }
    if (fields & FIELD_COMPARE) {
        out->compare = alb_get_be64(p);
        p += 8;
    }
    if (fields & FIELD_RECV) {
        out->recv_number = alb_get_be32(p);
        p += 4;
    }
    if (fields & FIELD_IMM) {
        memcpy(&out->imm_be, p, 4);
        p += 4;
    }
    if (fields & FIELD_KEY)
        out->invalidate_rkey = alb_get_be32(p);
    if (fields & FIELD_MESSAGE)
        out->message = alb_get_be32(p);
    if (fields & FIELD_TXN) {
        out->txn = (struct alb_csa_txn_id){.number = alb_get_be64(p)};
        out->txn_mode = alb_get_be32(p + 8);
    }
    if (fields & FIELD_REQUEST)
        out->request_psn = alb_get_be32(p) & ALB_PSN_MASK;
    if (fields & FIELD_RESULT)
        out->original = alb_get_be64(p + 4);
}

static void encode_fields(const struct alb_csa_segment *segment, unsigned fields, uint8_t *p)
{
    if (fields & FIELD_MEMORY) {
        alb_put_be64(p, segment->va);
        alb_put_be32(p + 8, segment->rkey);
        p += 12;
    }
    if (fields & FIELD_ACKED) {
        alb_put_be32(p, segment->acked & ALB_PSN_MASK);
        p += 4;
    }
    if (fields & FIELD_OPERAND) {
        alb_put_be64(p, segment->operand);
        p += 8;
    }
    if (fields & FIELD_COMPARE) {
        alb_put_be64(p, segment->compare);
        p += 8;
    }
    if (fields & FIELD_RECV) {
        alb_put_be32(p, segment->recv_number);
        p += 4;
    }
    if (fields & FIELD_IMM) {
        memcpy(p, &segment->imm_be, 4);
        p += 4;
    }
    if (fields & FIELD_KEY)
        alb_put_be32(p, segment->invalidate_rkey);
    if (fields & FIELD_MESSAGE)
        alb_put_be32(p, segment->message);
    if (fields & FIELD_TXN) {
        alb_put_be64(p, segment->txn.number);
        alb_put_be32(p + 8, segment->txn_mode);
    }
    if (fields & FIELD_REQUEST)
        alb_put_be32(p, segment->request_psn & ALB_PSN_MASK);
    if (fields & FIELD_RESULT)
        alb_put_be64(p + 4, segment->original);
}

static void decode_reflect(const uint8_t *p, struct alb_csa_segment *out)
{
    out->txn = (struct alb_csa_txn_id){.initiator = alb_get_be64(p), .number = alb_get_be64(p + 8)};
    out->digest = (struct alb_csa_digest){.low = alb_get_be64(p + 16), .high = alb_get_be64(p + 24)};
    out->txn_low_water = alb_get_be64(p + 32);
}

static void encode_reflect(const struct alb_csa_segment *segment, uint8_t *p)
{
    alb_put_be64(p, segment->txn.initiator);
    alb_put_be64(p + 8, segment->txn.number);
    alb_put_be64(p + 16, segment->digest.low);
    alb_put_be64(p + 24, segment->digest.high);
    alb_put_be64(p + 32, segment->txn_low_water);
}

// Only the last segment of a message that places something can ask for a verdict.
static bool may_reflect(const struct alb_csa_segment *segment)
{
    return segment->flags & ALB_CSA_LAST && alb_csa_is_message(segment->op);
}

// The payload lies within the message, and what has none has none.
static bool is_geometry_good(const struct alb_csa_segment *segment, unsigned fields)
{
    uint32_t payload = segment->payload_bytes, total = segment->total_bytes;
    bool is_last = segment->flags & ALB_CSA_LAST;
    if (fields & FIELD_SINGLE)
        return is_last && segment->index == 0 &&
               payload == (segment->op == ALB_CSA_ATOMIC_WRITE ? ATOMIC_WRITE_WORD : 0);
    if (is_last)
        return segment->index == 0 ? payload == total : payload > 0 && payload < total;
    return payload > 0 && payload % 4 == 0 && ((uint64_t)segment->index + 1) * payload < total;
}

static enum alb_drop take_payload(struct alb_csa_segment *out, const uint8_t *p, uint32_t length, uint32_t header_bytes,
                                  uint32_t *taken)
{
    out->payload = p + header_bytes;
    *taken = header_bytes + out->payload_bytes;
    return alb_likely(length >= *taken) ? ALB_DROP_NONE : ALB_DROP_TRUNCATED;
}

enum alb_drop alb_csa_decode_segment(const uint8_t *p, uint32_t length, struct alb_csa_segment *out, uint32_t *taken)
{
    const struct op_info *info = &ops[p[1] < ALB_COUNT(ops) ? p[1] : 0];
    if (alb_unlikely(info->type != p[0]))
        return ALB_DROP_UNKNOWN_OPCODE;
    if (alb_unlikely(length < SEGMENT_BYTES))
        return ALB_DROP_TRUNCATED;
    out->op = p[1];
    out->payload_bytes = alb_get_be16(p + 2);
    out->dest_qpn = alb_get_be32(p + 4) >> 8;
    out->flags = p[7];
    out->psn = alb_get_be32(p + 8) >> 8;
    out->index = alb_get_be32(p + 12) >> 8;
    out->total_bytes = alb_get_be32(p + 16);

    uint32_t fixed = SEGMENT_BYTES + (has_srqn(p[0], out->flags) ? SRQN_BYTES : 0);
    bool reflects = is_reflected(p[0], out->flags);
    uint32_t header_bytes = fixed + info->bytes + (reflects ? REFLECT_BYTES : 0);
    if (alb_unlikely(length < header_bytes))
        return ALB_DROP_TRUNCATED;
    if (alb_unlikely(!is_geometry_good(out, info->fields) || (reflects && !may_reflect(out))))
        return ALB_DROP_BAD_LENGTH;
    if (alb_unlikely(reflects))
        decode_reflect(p + fixed + info->bytes, out);
    if (fixed > SEGMENT_BYTES)
        out->xrc_srqn = alb_get_be32(p + SEGMENT_BYTES) & ALB_QPN_MASK;
    decode_fields(p + fixed, info->fields, out);
    return take_payload(out, p, length, header_bytes, taken);
}

static bool is_of_datagram(uint8_t op)
{
    return op == ALB_CSA_SEND || op == ALB_CSA_SEND_IMM;
}

static uint32_t datagram_bytes(uint8_t op)
{
    return DATAGRAM_BYTES + (op == ALB_CSA_SEND_IMM ? 4 : 0);
}

enum alb_drop alb_csa_decode_datagram(const uint8_t *p, uint32_t length, struct alb_csa_segment *out, uint32_t *taken)
{
    if (alb_unlikely(!is_of_datagram(p[1])))
        return ALB_DROP_UNKNOWN_OPCODE;
    uint32_t header_bytes = datagram_bytes(p[1]);
    if (alb_unlikely(length < header_bytes))
        return ALB_DROP_TRUNCATED;
    out->op = p[1];
    out->payload_bytes = alb_get_be16(p + 2);
    out->dest_qpn = alb_get_be24(p + 4);
    out->flags = p[7];
    out->qkey = alb_get_be32(p + 8);
    out->src_qpn = alb_get_be24(p + 12);
    if (p[1] == ALB_CSA_SEND_IMM)
        memcpy(&out->imm_be, p + DATAGRAM_BYTES, 4);
    return take_payload(out, p, length, header_bytes, taken);
}

static uint32_t encode_datagram(const struct alb_csa_segment *segment, uint8_t *out)
{
    alb_put_be32(out + 8, segment->qkey);
    alb_put_be32(out + 12, segment->src_qpn << 8);
    if (segment->op == ALB_CSA_SEND_IMM)
        memcpy(out + DATAGRAM_BYTES, &segment->imm_be, 4);
    return datagram_bytes(segment->op);
}

uint32_t alb_csa_encode_segment(enum alb_csa_type type, const struct alb_csa_segment *segment, uint8_t *out)
{
    alb_assert(segment->payload_bytes <= UINT16_MAX);
    out[0] = (uint8_t)type;
    out[1] = segment->op;
    alb_put_be16(out + 2, (uint16_t)segment->payload_bytes);
    alb_put_be32(out + 4, segment->dest_qpn << 8 | segment->flags);
    if (type == ALB_CSA_DATAGRAM) {
        alb_assert(is_of_datagram(segment->op));
        return encode_datagram(segment, out);
    }

    alb_assert(segment->op < ALB_COUNT(ops) && ops[segment->op].type == type);
    alb_put_be32(out + 8, segment->psn << 8);
    alb_put_be32(out + 12, segment->index << 8);
    alb_put_be32(out + 16, segment->total_bytes);
    uint8_t *p = out + SEGMENT_BYTES;
    if (has_srqn((uint8_t)type, segment->flags)) {
        alb_put_be32(p, segment->xrc_srqn & ALB_QPN_MASK);
        p += SRQN_BYTES;
    }
    encode_fields(segment, ops[segment->op].fields, p);
    p += ops[segment->op].bytes;
    if (is_reflected((uint8_t)type, segment->flags)) {
        encode_reflect(segment, p);
        p += REFLECT_BYTES;
    }
    return (uint32_t)(p - out);
}

uint32_t alb_csa_segment_header_bytes(enum alb_csa_type type, uint8_t op, uint8_t flags)
{
    if (type == ALB_CSA_DATAGRAM)
        return datagram_bytes(op);
    alb_assert(op < ALB_COUNT(ops) && ops[op].type == type);
    return SEGMENT_BYTES + (has_srqn((uint8_t)type, flags) ? SRQN_BYTES : 0) + ops[op].bytes +
           (is_reflected((uint8_t)type, flags) ? REFLECT_BYTES : 0);
}

const char *alb_csa_op_name(uint8_t op)
{
    return op < ALB_COUNT(ops) ? ops[op].name : NULL;
}
