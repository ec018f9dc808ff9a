// SPDX-License-Identifier: BSD-2-Clause
// The kernel's own packets, byte by byte: headers there and back, ICRC with and without the identification.
#include "wire/icrc.h"
#include "wire/roce.h"

#include "wire/tests/capture.h"

#include <string.h>

static void capture__headers_decode_and_encode_to_the_same_bytes(void **state)
{
    for (unsigned i = 0; i < ALB_COUNT(capture_names); i++) {
        struct capture capture;
        struct alb_datagram datagram;
        struct alb_pcap_packet packet;
        unsigned packets = 0;
        capture_open(&capture, capture_names[i]);
        for (; capture_next(&capture, &datagram, &packet); packets++) {
            struct alb_roce roce;
            uint8_t bytes[ALB_ROCE_HEADER_MAX];
            uint32_t offset, payload, length = datagram.length - ALB_ICRC_BYTES;
            assert_int_equal(packet.destination.port, ALB_ROCE_PORT);
            assert_int_equal(alb_roce_decode(datagram.bytes, length, &roce, &offset, &payload), ALB_DROP_NONE);
            assert_int_equal(alb_roce_encode(&roce, bytes), offset);
            assert_memory_equal(bytes, datagram.bytes, offset);
            assert_int_equal(offset + payload + alb_roce_pad(payload), length);
            assert_int_equal(roce.pkey, ALB_PKEY_DEFAULT);
        }
        assert_true(packets > 5);
        capture_close(&capture);
    }
}

// The first cases of rc_vectors, whose content its README tells.
static void capture__says_what_was_done(void **state)
{
    struct capture capture;
    struct alb_datagram datagram;
    struct alb_pcap_packet packet;
    struct alb_roce roce;
    uint32_t offset, payload;
    static const struct {
        uint8_t opcode;
        uint32_t payload;
    } expected[] = {
        {ALB_RC_SEND_FIRST, 1024}, {ALB_RC_SEND_LAST_IMM, 476}, {ALB_RC_ACK, 0}, {ALB_RC_SEND_ONLY_INVALIDATE, 12},
        {ALB_RC_ACK, 0},           {ALB_RC_WRITE_FIRST, 1024},
    };
    capture_open(&capture, "rc_vectors");
    for (unsigned i = 0; i < ALB_COUNT(expected); i++) {
        assert_true(capture_next(&capture, &datagram, &packet));
        assert_int_equal(alb_roce_decode(datagram.bytes, datagram.length - 4, &roce, &offset, &payload), ALB_DROP_NONE);
        assert_int_equal(roce.opcode, expected[i].opcode);
        assert_int_equal(payload, expected[i].payload);
        if (roce.opcode == ALB_RC_ACK)
            assert_int_equal(roce.syndrome, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
    }
    while (capture_next(&capture, &datagram, &packet))
        ;
    capture_close(&capture);
}

static uint32_t stored_icrc(const struct alb_datagram *datagram)
{
    const uint8_t *p = datagram->bytes + datagram->length - ALB_ICRC_BYTES;
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void capture__icrc_is_what_we_compute(void **state)
{
    for (unsigned i = 0; i < ALB_COUNT(capture_names); i++) {
        struct capture capture;
        struct alb_datagram datagram;
        struct alb_pcap_packet packet;
        capture_open(&capture, capture_names[i]);
        while (capture_next(&capture, &datagram, &packet)) {
            struct alb_icrc_prefix prefix;
            struct iovec iov = {.iov_base = (void *)datagram.bytes, .iov_len = datagram.length - ALB_ICRC_BYTES};
            alb_icrc_prefix_init(&prefix, &datagram.peer, &datagram.local);
            assert_int_equal(alb_icrc_compute(&prefix, packet.identification, &iov, (uint32_t)iov.iov_len),
                             stored_icrc(&datagram));
        }
        capture_close(&capture);
    }
}

// Which of the two hosts of the captures a packet comes from.
static unsigned host_of(const struct alb_pcap_packet *packet)
{
    return packet->source.addr.bytes[15] & 1;
}

static void capture__icrc_checks_without_the_identification(void **state)
{
    for (unsigned i = 0; i < ALB_COUNT(capture_names); i++) {
        struct capture capture;
        struct alb_datagram datagram;
        struct alb_pcap_packet packet;
        struct alb_icrc_peer peers[2] = {0};
        struct alb_icrc_flow flow = {0};
        capture_open(&capture, capture_names[i]);
        while (capture_next(&capture, &datagram, &packet)) {
            uint16_t identification = 0;
            assert_true(alb_icrc_check(&flow, &datagram, &peers[host_of(&packet)], &identification, packet.time));
            assert_int_equal(identification, packet.identification);
        }
        capture_close(&capture);
    }
}

// Bits that the ICRC does not cover: byte 4 of the BTH.
static bool is_covered(uint32_t bit)
{
    return bit / 8 != 4;
}

static void capture__a_corrupt_bit_is_caught(void **state)
{
    uint32_t random = 1;
    for (unsigned i = 0; i < ALB_COUNT(capture_names); i++) {
        struct capture capture;
        struct alb_datagram datagram;
        struct alb_pcap_packet packet;
        struct alb_icrc_peer peers[2] = {0};
        struct alb_icrc_flow flow = {0};
        capture_open(&capture, capture_names[i]);
        while (capture_next(&capture, &datagram, &packet)) {
            uint16_t identification = 0;
            struct alb_icrc_peer *peer = &peers[host_of(&packet)];
            // The peer is known by one good packet, so that its range is.
            assert_true(alb_icrc_check(&flow, &datagram, peer, &identification, packet.time));
            uint8_t copy[4200];
            assert_in_range(datagram.length, 16, sizeof(copy));
            memcpy(copy, datagram.bytes, datagram.length);
            datagram.bytes = copy;
            for (unsigned n = 0; n < 40; n++) {
                random = random * 1664525 + 1013904223;
                uint32_t bit = (uint32_t)((uint64_t)random * datagram.length * 8 >> 32);
                copy[bit / 8] ^= 1 << bit % 8;
                struct alb_icrc_peer known = *peer;
                bool is_good = alb_icrc_check(&flow, &datagram, &known, &identification, packet.time);
                assert_int_equal(is_good, !is_covered(bit));
                copy[bit / 8] ^= 1 << bit % 8;
            }
        }
        capture_close(&capture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capture__headers_decode_and_encode_to_the_same_bytes),
        cmocka_unit_test(capture__says_what_was_done),
        cmocka_unit_test(capture__icrc_is_what_we_compute),
        cmocka_unit_test(capture__icrc_checks_without_the_identification),
        cmocka_unit_test(capture__a_corrupt_bit_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
