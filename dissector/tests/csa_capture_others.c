// SPDX-License-Identifier: BSD-2-Clause
// What is none of CSA's, at ports that are slots'.
#include "dissector/tests/csa_capture.h"

#include "wire/cm.h"
#include "wire/csa.h"
#include "wire/datagram.h"
#include "wire/mad.h"

// What others send to ports that are slots' to us, in datagrams that RoCE's could be as long as.
static void foreign(void)
{
    static const struct {
        uint16_t port;
        uint32_t length;
        uint8_t begins[12];
    } packets[] = {
        {4800, 1200, {0xc3, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51}}, // QUIC, Initial
        {5004, 172, {0x80, 0, 0, 1, 0, 0, 0, 0xa0, 0xde, 0xad, 0xbe, 0xef}},     // RTP
        {5010, 1316, {0x47, 0x50, 0, 0x10}},                                     // MPEG-TS
    };
    for (unsigned i = 0; i < ALB_COUNT(packets); i++) {
        capture.number++;
        capture.port = packets[i].port;
        capture.length = packets[i].length;
        memset(capture.bytes, 0xff, capture.length);
        memcpy(capture.bytes, packets[i].begins, sizeof(packets[i].begins));
        capture_write();
        printf("%u other\n", capture.number);
    }
}

// RoCE that is not CSA, at a slot's port; and what is none at such a port, and at one that is another protocol's.
static void not_csa(void)
{
    const struct alb_roce roce = {
        .opcode = ALB_UD_SEND_ONLY, .dest_qpn = 5 << 16 | 3, .src_qpn = 17, .qkey = ALB_CSA_QKEY};
    capture.is_ipv6 = false;
    capture.number++;
    capture.port = ALB_ROCE_PORT + 5;
    memset(capture.bytes, 0, 400);
    capture.length = alb_roce_encode(&roce, capture.bytes) + 256 + ALB_ICRC_BYTES;
    capture_write();
    printf("%u roce\n", capture.number);
    for (unsigned i = 0; i < 2; i++) {
        capture.number++;
        capture.port = i == 0 ? ALB_ROCE_PORT + 5 : 5005; // 5005 is RTP's, should its dissector be asked
        memset(capture.bytes, 0x55, 31);
        capture.length = 31;
        capture_write();
        printf("%u other\n", capture.number);
    }
}

// RoCE that ends within its DETH, which is C's to find.
static void cut_short(void)
{
    const struct alb_roce roce = {.opcode = ALB_UD_SEND_ONLY, .dest_qpn = 1 << 16 | 2, .qkey = ALB_CSA_QKEY};
    capture.number++;
    capture.port = ALB_ROCE_PORT + 1;
    capture.length = alb_roce_encode(&roce, capture.bytes) - 4;
    capture_write();
    printf("%u cut\n", capture.number);
}

// A message of the connection manager, which is MAD as if it went to QPN 1. Some slots' ports are registered to others.
static void management(void)
{
    static const uint8_t slots[] = {0, 5, 200, 209, 210, 240};
    const struct alb_cm_message message = {
        .type = ALB_CM_DREQ, .local_id = 0x05123456, .remote_id = 0x07654321, .dreq_qpn = 0x07abcd};
    for (unsigned i = 0; i < ALB_COUNT(slots); i++) {
        const struct alb_roce roce = {.opcode = ALB_UD_SEND_ONLY,
                                      .dest_qpn = (uint32_t)slots[i] << 16 | 3,
                                      .src_qpn = 7 << 16 | 3,
                                      .qkey = ALB_GSI_QKEY};
        capture.is_ipv6 = slots[i] == 0;
        capture.number++;
        capture.port = (uint16_t)(ALB_ROCE_PORT + slots[i]);
        capture.length = alb_roce_encode(&roce, capture.bytes);
        alb_cm_encode(&message, capture.bytes + capture.length);
        capture.length += ALB_MAD_BYTES;
        capture_write_sealed();
        printf("%u cm\n", capture.number);
    }
}

void csa_capture_others(void)
{
    foreign();
    not_csa();
    cut_short();
    management();
}
