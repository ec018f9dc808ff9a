// SPDX-License-Identifier: BSD-2-Clause
// The opcodes of the base transport header and what each of them means: which service it belongs to, which extended
// headers follow, what kind of packet it is. (InfiniBand specification, volume 1, chapter 9.2, annexes A14 XRC, A17
// RoCEv2 and A19 memory placement extensions.)
#pragma once

#include "base/types.h"

enum alb_roce_opcode {
    ALB_RC_SEND_FIRST = 0x00,
    ALB_RC_SEND_MIDDLE = 0x01,
    ALB_RC_SEND_LAST = 0x02,
    ALB_RC_SEND_LAST_IMM = 0x03,
    ALB_RC_SEND_ONLY = 0x04,
    ALB_RC_SEND_ONLY_IMM = 0x05,
    ALB_RC_WRITE_FIRST = 0x06,
    ALB_RC_WRITE_MIDDLE = 0x07,
    ALB_RC_WRITE_LAST = 0x08,
    ALB_RC_WRITE_LAST_IMM = 0x09,
    ALB_RC_WRITE_ONLY = 0x0a,
    ALB_RC_WRITE_ONLY_IMM = 0x0b,
    ALB_RC_READ_REQUEST = 0x0c,
    ALB_RC_READ_RESPONSE_FIRST = 0x0d,
    ALB_RC_READ_RESPONSE_MIDDLE = 0x0e,
    ALB_RC_READ_RESPONSE_LAST = 0x0f,
    ALB_RC_READ_RESPONSE_ONLY = 0x10, // also the answer to an atomic write, then without payload
    ALB_RC_ACK = 0x11,
    ALB_RC_ATOMIC_ACK = 0x12,
    ALB_RC_CMP_SWAP = 0x13,
    ALB_RC_FETCH_ADD = 0x14,
    ALB_RC_SEND_LAST_INVALIDATE = 0x16,
    ALB_RC_SEND_ONLY_INVALIDATE = 0x17,
    ALB_RC_ATOMIC_WRITE = 0x1d,

    ALB_UC_SEND_FIRST = 0x20,
    ALB_UC_SEND_MIDDLE = 0x21,
    ALB_UC_SEND_LAST = 0x22,
    ALB_UC_SEND_LAST_IMM = 0x23,
    ALB_UC_SEND_ONLY = 0x24,
    ALB_UC_SEND_ONLY_IMM = 0x25,
    ALB_UC_WRITE_FIRST = 0x26,
    ALB_UC_WRITE_MIDDLE = 0x27,
    ALB_UC_WRITE_LAST = 0x28,
    ALB_UC_WRITE_LAST_IMM = 0x29,
    ALB_UC_WRITE_ONLY = 0x2a,
    ALB_UC_WRITE_ONLY_IMM = 0x2b,

    ALB_UD_SEND_ONLY = 0x64,
    ALB_UD_SEND_ONLY_IMM = 0x65,

    ALB_CNP = 0x81, // congestion notification packet: no service, sixteen reserved bytes behind the BTH

    ALB_XRC_SEND_FIRST = 0xa0,
    ALB_XRC_SEND_MIDDLE = 0xa1,
    ALB_XRC_SEND_LAST = 0xa2,
    ALB_XRC_SEND_LAST_IMM = 0xa3,
    ALB_XRC_SEND_ONLY = 0xa4,
    ALB_XRC_SEND_ONLY_IMM = 0xa5,
    ALB_XRC_WRITE_FIRST = 0xa6,
    ALB_XRC_WRITE_MIDDLE = 0xa7,
    ALB_XRC_WRITE_LAST = 0xa8,
    ALB_XRC_WRITE_LAST_IMM = 0xa9,
    ALB_XRC_WRITE_ONLY = 0xaa,
    ALB_XRC_WRITE_ONLY_IMM = 0xab,
    ALB_XRC_READ_REQUEST = 0xac,
    ALB_XRC_READ_RESPONSE_FIRST = 0xad,
    ALB_XRC_READ_RESPONSE_MIDDLE = 0xae,
    ALB_XRC_READ_RESPONSE_LAST = 0xaf,
    ALB_XRC_READ_RESPONSE_ONLY = 0xb0,
    ALB_XRC_ACK = 0xb1,
    ALB_XRC_ATOMIC_ACK = 0xb2,
    ALB_XRC_CMP_SWAP = 0xb3,
    ALB_XRC_FETCH_ADD = 0xb4,
    ALB_XRC_SEND_LAST_INVALIDATE = 0xb6,
    ALB_XRC_SEND_ONLY_INVALIDATE = 0xb7,
};

enum alb_service {
    ALB_SERVICE_RC,
    ALB_SERVICE_UC,
    ALB_SERVICE_UD,
    ALB_SERVICE_XRC,
    ALB_SERVICE_CNP, // the congestion notification packet, which belongs to none
};

// Extended headers, in the order they have on the wire.
enum alb_roce_header {
    ALB_HEADER_DETH = 1 << 0,       // qkey, src_qpn
    ALB_HEADER_XRCETH = 1 << 1,     // xrc_srqn
    ALB_HEADER_RETH = 1 << 2,       // va, rkey, length
    ALB_HEADER_ATOMIC = 1 << 3,     // va, rkey, swap_add, compare
    ALB_HEADER_AETH = 1 << 4,       // syndrome, msn
    ALB_HEADER_ATOMIC_ACK = 1 << 5, // atomic_original
    ALB_HEADER_IMM = 1 << 6,        // imm_be
    ALB_HEADER_IETH = 1 << 7,       // invalidate_rkey
    ALB_HEADER_CNP = 1 << 8,        // sixteen reserved bytes
};

// What kind of packet an opcode makes. "Only" is first and last at once.
enum alb_opcode_flag {
    ALB_OPCODE_REQUEST = 1 << 0,
    ALB_OPCODE_RESPONSE = 1 << 1, // everything that a responder sends: acknowledgements too
    ALB_OPCODE_FIRST = 1 << 2,
    ALB_OPCODE_MIDDLE = 1 << 3,
    ALB_OPCODE_LAST = 1 << 4,
    ALB_OPCODE_PAYLOAD = 1 << 5, // may carry payload
    ALB_OPCODE_SEND = 1 << 6,
    ALB_OPCODE_WRITE = 1 << 7,
    ALB_OPCODE_READ = 1 << 8,   // request or response
    ALB_OPCODE_ATOMIC = 1 << 9, // compare-and-swap, fetch-and-add and their acknowledgement; not atomic write
    ALB_OPCODE_ATOMIC_WRITE = 1 << 10,
    ALB_OPCODE_ACK = 1 << 11,           // the plain acknowledgement (ACK, NAK, RNR NAK)
    ALB_OPCODE_IMM = 1 << 12,           // hands immediate data to the target's completion
    ALB_OPCODE_INVALIDATE = 1 << 13,    // send with invalidate
    ALB_OPCODE_TAKES_RECEIVE = 1 << 14, // a posted receive is taken at this packet: the first of a send, the last of a
                                        // write with immediate
    ALB_OPCODE_ENDS_RECEIVE = 1 << 15,  // and completed at this one: the last of a send or of a write with immediate
    ALB_OPCODE_ONLY = ALB_OPCODE_FIRST | ALB_OPCODE_LAST,
};

struct alb_opcode_info {
    const char *name;     // as the specification writes it, such as "RC SEND First"; NULL for a reserved opcode
    uint8_t service;      // enum alb_service
    uint8_t header_bytes; // BTH and extended headers
    uint16_t headers;     // of enum alb_roce_header
    uint32_t flags;       // of enum alb_opcode_flag
};

extern const struct alb_opcode_info alb_opcode_table[256];

// What is known of an opcode, NULL if it is reserved or of a service that Albedo has no words for (RD).
static inline const struct alb_opcode_info *alb_opcode_info(uint8_t opcode)
{
    const struct alb_opcode_info *info = &alb_opcode_table[opcode];
    return info->name ? info : NULL;
}
