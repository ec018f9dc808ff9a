// SPDX-License-Identifier: BSD-2-Clause
#include "dissector/tests/csa_capture.h"

#include "wire/csa.h"
#include "wire/icrc.h"
#include "wire/pcap.h"

struct capture capture;

uint8_t *capture_place(void)
{
    while (capture.length % 4)
        capture.bytes[capture.length++] = 0;
    return capture.bytes + capture.length;
}

void capture_write(void)
{
    struct alb_pcap_packet packet = {.time = capture.number * ALB_NS_PER_S, .source.port = 40000};
    uint8_t head[ALB_PCAP_HEAD_MAX];
    struct iovec iov = {.iov_base = capture.bytes, .iov_len = capture.length};
    packet.destination.port = capture.port;
    alb_assert(alb_addr_parse(capture.is_ipv6 ? "fd00::1" : "10.0.0.1", &packet.source.addr));
    alb_assert(alb_addr_parse(capture.is_ipv6 ? "fd00::2" : "10.0.0.2", &packet.destination.addr));
    uint32_t head_bytes = alb_pcap_head(head, &packet, &iov, capture.length);
    fwrite(head, head_bytes, 1, capture.file);
    fwrite(capture.bytes, capture.length, 1, capture.file);
}

void capture_write_sealed(void)
{
    struct alb_icrc_flow flow = {0};
    struct alb_endpoint from = {.port = 40000}, to = {.port = capture.port};
    capture.length += ALB_ICRC_BYTES;
    alb_assert(alb_addr_parse(capture.is_ipv6 ? "fd00::1" : "10.0.0.1", &from.addr));
    alb_assert(alb_addr_parse(capture.is_ipv6 ? "fd00::2" : "10.0.0.2", &to.addr));
    struct alb_segment segment = {.iov_count = 1, .length = capture.length};
    struct iovec iov = {.iov_base = capture.bytes, .iov_len = capture.length};
    struct alb_tx tx = {.segments = &segment, .iov = &iov};
    struct alb_burst burst = {.peer = to, .segment_count = 1, .segment_bytes = capture.length};
    alb_icrc_seal(&flow, &tx, &burst, &from, ALB_ICRC_IDENT_ONES);
    capture_write();
}

void capture_end(void)
{
    alb_csa_set_pad(capture.bytes, alb_roce_pad(capture.length));
    capture_place();
    capture_write_sealed();
}
