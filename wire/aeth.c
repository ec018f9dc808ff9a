// SPDX-License-Identifier: BSD-2-Clause
// Encoded times, sizes and syndromes of the transport.
#include "wire/aeth.h"

const char *alb_aeth_name(uint8_t syndrome)
{
    static const char *const naks[] = {
        [ALB_NAK_PSN_SEQUENCE_ERROR] = "nak_psn_sequence_error",
        [ALB_NAK_INVALID_REQUEST] = "nak_invalid_request",
        [ALB_NAK_REMOTE_ACCESS_ERROR] = "nak_remote_access_error",
        [ALB_NAK_REMOTE_OPERATIONAL_ERROR] = "nak_remote_operational_error",
        [ALB_NAK_INVALID_RD_REQUEST] = "nak_invalid_rd_request",
    };
    switch (alb_aeth_class(syndrome)) {
    case ALB_AETH_ACK:
        return "ack";
    case ALB_AETH_RNR:
        return "rnr_nak";
    case ALB_AETH_NAK:
        return alb_aeth_value(syndrome) < ALB_COUNT(naks) ? naks[alb_aeth_value(syndrome)] : "nak_reserved";
    case ALB_AETH_RESERVED:
        break;
    }
    return "reserved";
}

// Table 45 of the specification, in units of 10 us. Code 0 is the longest of all.
static const uint32_t rnr_10us[32] = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

alb_time alb_rnr_timer_ns(uint8_t code)
{
    return rnr_10us[code & 31] * 10 * ALB_NS_PER_US;
}

alb_time alb_ack_timeout_ns(uint8_t code)
{
    code &= 31;
    return code ? 4096ull << code : ALB_TIME_NEVER;
}

uint32_t alb_mtu_bytes(unsigned code)
{
    return code >= 1 && code <= 5 ? 128u << code : 0;
}

unsigned alb_mtu_code(uint32_t bytes)
{
    unsigned code = 0;
    while (code < 5 && bytes >= 256u << code)
        code++;
    return code;
}
