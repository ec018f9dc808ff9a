// SPDX-License-Identifier: BSD-2-Clause
// The opcode table. RC, UC and XRC are the same rows at another base, so the rows are written once, as macros.
#include "wire/opcode.h"

#define BTH 12

#define ROW(opcode, service_, text, headers_, bytes, flags_) \
    [opcode] = {.name = text, .service = service_, .header_bytes = BTH + (bytes), .headers = headers_, .flags = flags_}

#define REQ  ALB_OPCODE_REQUEST
#define RSP  ALB_OPCODE_RESPONSE
#define FST  ALB_OPCODE_FIRST
#define MID  ALB_OPCODE_MIDDLE
#define LST  ALB_OPCODE_LAST
#define ONLY ALB_OPCODE_ONLY
#define PAY  ALB_OPCODE_PAYLOAD
#define TAKE ALB_OPCODE_TAKES_RECEIVE
#define END  ALB_OPCODE_ENDS_RECEIVE
#define IMM  ALB_OPCODE_IMM
#define INV  ALB_OPCODE_INVALIDATE
#define SND  (REQ | PAY | ALB_OPCODE_SEND)
#define WRT  (REQ | PAY | ALB_OPCODE_WRITE)
#define ATM  ALB_OPCODE_ATOMIC

// SEND and WRITE of a connected service S, whose opcodes begin with P. X and XB are the header that the service adds to
// every request (XRCETH), and its bytes.
#define SEND_AND_WRITE(P, S, T, X, XB)                                                                                 \
    ROW(P##_SEND_FIRST, S, T " SEND First", X, XB, SND | FST | TAKE),                                                  \
        ROW(P##_SEND_MIDDLE, S, T " SEND Middle", X, XB, SND | MID),                                                   \
        ROW(P##_SEND_LAST, S, T " SEND Last", X, XB, SND | LST | END),                                                 \
        ROW(P##_SEND_LAST_IMM, S, T " SEND Last with Immediate", X | ALB_HEADER_IMM, XB + 4, SND | LST | END | IMM),   \
        ROW(P##_SEND_ONLY, S, T " SEND Only", X, XB, SND | ONLY | TAKE | END),                                         \
        ROW(P##_SEND_ONLY_IMM, S, T " SEND Only with Immediate", X | ALB_HEADER_IMM, XB + 4,                           \
            SND | ONLY | TAKE | END | IMM),                                                                            \
        ROW(P##_WRITE_FIRST, S, T " RDMA WRITE First", X | ALB_HEADER_RETH, XB + 16, WRT | FST),                       \
        ROW(P##_WRITE_MIDDLE, S, T " RDMA WRITE Middle", X, XB, WRT | MID),                                            \
        ROW(P##_WRITE_LAST, S, T " RDMA WRITE Last", X, XB, WRT | LST),                                                \
        ROW(P##_WRITE_LAST_IMM, S, T " RDMA WRITE Last with Immediate", X | ALB_HEADER_IMM, XB + 4,                    \
            WRT | LST | TAKE | END | IMM),                                                                             \
        ROW(P##_WRITE_ONLY, S, T " RDMA WRITE Only", X | ALB_HEADER_RETH, XB + 16, WRT | ONLY),                        \
        ROW(P##_WRITE_ONLY_IMM, S, T " RDMA WRITE Only with Immediate", X | ALB_HEADER_RETH | ALB_HEADER_IMM, XB + 20, \
            WRT | ONLY | TAKE | END | IMM)

// What a reliable service has beyond that.
#define READ_AND_ATOMIC(P, S, T, X, XB)                                                                            \
    ROW(P##_READ_REQUEST, S, T " RDMA READ Request", X | ALB_HEADER_RETH, XB + 16, REQ | ONLY | ALB_OPCODE_READ),  \
        ROW(P##_READ_RESPONSE_FIRST, S, T " RDMA READ response First", ALB_HEADER_AETH, 4,                         \
            RSP | FST | PAY | ALB_OPCODE_READ),                                                                    \
        ROW(P##_READ_RESPONSE_MIDDLE, S, T " RDMA READ response Middle", 0, 0, RSP | MID | PAY | ALB_OPCODE_READ), \
        ROW(P##_READ_RESPONSE_LAST, S, T " RDMA READ response Last", ALB_HEADER_AETH, 4,                           \
            RSP | LST | PAY | ALB_OPCODE_READ),                                                                    \
        ROW(P##_READ_RESPONSE_ONLY, S, T " RDMA READ response Only", ALB_HEADER_AETH, 4,                           \
            RSP | ONLY | PAY | ALB_OPCODE_READ),                                                                   \
        ROW(P##_ACK, S, T " Acknowledge", ALB_HEADER_AETH, 4, RSP | ONLY | ALB_OPCODE_ACK),                        \
        ROW(P##_ATOMIC_ACK, S, T " ATOMIC Acknowledge", ALB_HEADER_AETH | ALB_HEADER_ATOMIC_ACK, 12,               \
            RSP | ONLY | ATM),                                                                                     \
        ROW(P##_CMP_SWAP, S, T " CmpSwap", X | ALB_HEADER_ATOMIC, XB + 28, REQ | ONLY | ATM),                      \
        ROW(P##_FETCH_ADD, S, T " FetchAdd", X | ALB_HEADER_ATOMIC, XB + 28, REQ | ONLY | ATM),                    \
        ROW(P##_SEND_LAST_INVALIDATE, S, T " SEND Last with Invalidate", X | ALB_HEADER_IETH, XB + 4,              \
            SND | LST | END | INV),                                                                                \
        ROW(P##_SEND_ONLY_INVALIDATE, S, T " SEND Only with Invalidate", X | ALB_HEADER_IETH, XB + 4,              \
            SND | ONLY | TAKE | END | INV)

const struct alb_opcode_info alb_opcode_table[256] = {
    SEND_AND_WRITE(ALB_RC, ALB_SERVICE_RC, "RC", 0, 0),
    READ_AND_ATOMIC(ALB_RC, ALB_SERVICE_RC, "RC", 0, 0),
    ROW(ALB_RC_ATOMIC_WRITE, ALB_SERVICE_RC, "RC ATOMIC WRITE", ALB_HEADER_RETH, 16,
        REQ | ONLY | PAY | ALB_OPCODE_ATOMIC_WRITE),
    SEND_AND_WRITE(ALB_UC, ALB_SERVICE_UC, "UC", 0, 0),
    ROW(ALB_UD_SEND_ONLY, ALB_SERVICE_UD, "UD SEND Only", ALB_HEADER_DETH, 8, SND | ONLY | TAKE | END),
    ROW(ALB_UD_SEND_ONLY_IMM, ALB_SERVICE_UD, "UD SEND Only with Immediate", ALB_HEADER_DETH | ALB_HEADER_IMM, 12,
        SND | ONLY | TAKE | END | IMM),
    ROW(ALB_CNP, ALB_SERVICE_CNP, "CNP", ALB_HEADER_CNP, 16, ONLY),
    SEND_AND_WRITE(ALB_XRC, ALB_SERVICE_XRC, "XRC", ALB_HEADER_XRCETH, 4),
    READ_AND_ATOMIC(ALB_XRC, ALB_SERVICE_XRC, "XRC", ALB_HEADER_XRCETH, 4),
};
