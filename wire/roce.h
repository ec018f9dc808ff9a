// SPDX-License-Identifier: BSD-2-Clause
// RoCEv2 headers: bytes <-> one flat struct. This runs for every packet, so decoding fills only what the opcode has and
// the rest of the struct keeps what it held before.
#pragma once

#include "wire/aeth.h"
#include "wire/bytes.h"
#include "wire/drop.h"
#include "wire/opcode.h"
#include "wire/psn.h"

typedef uint32_t alb_qpn; // always below 2^24

#define ALB_QPN_MASK         0xffffffu
#define ALB_BTH_BYTES        12
#define ALB_ROCE_HEADER_MAX  44 // BTH, XRCETH and AtomicETH
#define ALB_ROCE_PAYLOAD_MAX 4096
#define ALB_AETH_BYTES       4u
#define ALB_PKEY_DEFAULT     0xffffu

// The decoded headers of one packet, in host byte order but for imm_be. Which of the extended fields hold anything is
// said by alb_opcode_info(opcode)->headers.
struct alb_roce {
    // BTH
    uint8_t opcode;
    uint8_t pad; // bytes, 0 ... 3
    uint8_t version;
    bool solicited;
    bool migreq; // connected queue pairs without an alternate path send it always (17.2.8)
    bool fecn;
    bool becn;
    bool ackreq;
    uint16_t pkey;
    uint8_t syndrome; // AETH
    alb_qpn dest_qpn;
    alb_psn psn;

    uint32_t qkey; // DETH
    alb_qpn src_qpn;

    uint64_t va; // RETH and AtomicETH
    uint32_t rkey;
    uint32_t length;   // RETH: of the whole message
    uint64_t swap_add; // AtomicETH: the value to swap in or to add
    uint64_t compare;

    uint32_t msn;             // AETH, 24 bits
    uint64_t atomic_original; // AtomicAckETH: what the word held before

    uint32_t imm_be;          // ImmDt: in network byte order, as verbs' imm_data is
    uint32_t invalidate_rkey; // IETH
    uint32_t xrc_srqn;        // XRCETH, 24 bits
};

// Decodes the headers of a packet: length bytes of UDP payload without the ICRC. On success payload_offset is also the
// number of header bytes, and the payload (pad not counted) lies within the packet. Returns ALB_DROP_NONE, or why the
// packet is to be dropped: truncated, bad_version, unknown_opcode or bad_length. *out then holds the BTH unless it is
// truncated. What depends on a queue pair (keys, PMTU, sequence) is not looked at.
enum alb_drop alb_roce_decode(const uint8_t *bytes, uint32_t length, struct alb_roce *out, uint32_t *payload_offset,
                              uint32_t *payload_bytes);

// Writes the headers of a known opcode into out (room for ALB_ROCE_HEADER_MAX bytes), reserved bits zero; returns their
// number. Values wider than their field are our bug (asserted for pad, masked elsewhere).
uint32_t alb_roce_encode(const struct alb_roce *roce, uint8_t *out);

// Bytes that pad a payload to a multiple of four.
static inline uint8_t alb_roce_pad(uint32_t payload_bytes)
{
    return (uint8_t)(-payload_bytes & 3);
}

#define ALB_BTH_MIGREQ   (1u << 6) // in byte 1 of a BTH
#define ALB_BTH_DEST_QPN 5         // where it stands in a BTH, three bytes
#define ALB_BTH_SEQUENCE 8 // the request for an acknowledgement (the highest bit), reserved bits, the PSN: four bytes

// Of a BTH that is written, what changes from one packet to the next.
static inline void alb_bth_number(uint8_t *bth, alb_psn psn, bool ackreq)
{
    alb_put_be32(bth + ALB_BTH_SEQUENCE, (uint32_t)ackreq << 31 | (psn & ALB_PSN_MASK));
}

// The BTH alone, as connected queue pairs send it: of the default partition, on the path they have (MigReq), no other
// flags.
static inline void alb_bth_encode(uint8_t *out, uint8_t opcode, uint8_t pad, alb_qpn dest_qpn, alb_psn psn, bool ackreq)
{
    alb_put_be32(out, (uint32_t)opcode << 24 | ALB_BTH_MIGREQ << 16 | (uint32_t)pad << 20 | ALB_PKEY_DEFAULT);
    alb_put_be32(out + 4, dest_qpn & ALB_QPN_MASK);
    alb_bth_number(out, psn, ackreq);
}
