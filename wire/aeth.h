// SPDX-License-Identifier: BSD-2-Clause
// The small codes of the transport: what an acknowledgement's syndrome says, and the encoded times and sizes of queue
// pair attributes (InfiniBand specification, volume 1: 9.7.5.1 AETH, table 45 RNR timer, 9.7.6.1.3 local ACK timeout).
#pragma once

#include "base/types.h"

// Bits 6 and 5 of the syndrome.
enum alb_aeth_class {
    ALB_AETH_ACK = 0,
    ALB_AETH_RNR = 1,
    ALB_AETH_RESERVED = 2,
    ALB_AETH_NAK = 3,
};

// The five bits below them, in a NAK.
enum alb_nak {
    ALB_NAK_PSN_SEQUENCE_ERROR = 0,
    ALB_NAK_INVALID_REQUEST = 1,
    ALB_NAK_REMOTE_ACCESS_ERROR = 2,
    ALB_NAK_REMOTE_OPERATIONAL_ERROR = 3,
    ALB_NAK_INVALID_RD_REQUEST = 4,
};

#define ALB_AETH_CREDIT_NO_LIMIT 31 // credit count of an ACK: end-to-end flow control is not used

#define ALB_AETH_SYNDROME_ACK(credits) ((uint8_t)(ALB_AETH_ACK << 5 | (credits)))
#define ALB_AETH_SYNDROME_RNR(timer)   ((uint8_t)(ALB_AETH_RNR << 5 | (timer)))
#define ALB_AETH_SYNDROME_NAK(code)    ((uint8_t)(ALB_AETH_NAK << 5 | (code)))

// Bit 7 is reserved and not looked at.
static inline enum alb_aeth_class alb_aeth_class(uint8_t syndrome)
{
    return (enum alb_aeth_class)(syndrome >> 5 & 3);
}

// Credit count, RNR timer code or NAK code, as the class says.
static inline uint8_t alb_aeth_value(uint8_t syndrome)
{
    return syndrome & 31;
}

// "ack", "rnr_nak", "reserved", "nak_psn_sequence_error" ...: for traces and messages.
const char *alb_aeth_name(uint8_t syndrome);

// The time that an RNR NAK's five-bit code (min_rnr_timer of a queue pair) stands for. Bits above are ignored.
alb_time alb_rnr_timer_ns(uint8_t code);

// The time of a local ACK timeout code: 4.096 us * 2^code, and ALB_TIME_NEVER for 0. Bits above the low five are
// ignored.
alb_time alb_ack_timeout_ns(uint8_t code);

// The path MTU of a code of enum ibv_mtu (1 ... 5): 256 ... 4096 bytes; 0 if the code is none.
uint32_t alb_mtu_bytes(unsigned code);

// The code of the largest path MTU not above bytes, 0 if bytes is below 256.
unsigned alb_mtu_code(uint32_t bytes);
