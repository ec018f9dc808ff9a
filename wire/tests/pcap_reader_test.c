// SPDX-License-Identifier: BSD-2-Clause
// Reading captures that are not ours: both byte orders, both precisions, both link types, and ones cut or bent
// anywhere.
#include "wire/tests/capture.h"

#include <string.h>

static void put32(uint8_t *p, uint32_t value, bool swap)
{
    value = swap ? __builtin_bswap32(value) : value;
    memcpy(p, &value, 4);
}

// One Ethernet frame of 42 + 5 bytes and two of pad.
static size_t make_capture(uint8_t *out, bool swap, uint32_t magic)
{
    static const uint8_t frame[] = {
        0, 0,  0, 0, 0, 1,  0, 0, 0, 0,    0,    2,    8,    0, 0x45, 3, 0, 33,  0,   9,   0x40, 0,   64, 17, 0,
        0, 10, 0, 0, 1, 10, 0, 0, 2, 0xc3, 0x50, 0x12, 0xb7, 0, 13,   0, 0, 'h', 'e', 'l', 'l',  'o', 0,  0,
    };
    memset(out, 0, 24);
    put32(out, magic, swap);
    put32(out + 20, 1, swap);
    put32(out + 24, 100, swap);
    put32(out + 28, 7, swap);
    put32(out + 32, sizeof(frame), swap);
    put32(out + 36, sizeof(frame), swap);
    memcpy(out + 40, frame, sizeof(frame));
    return 40 + sizeof(frame);
}

static void pcap_reader__reads_both_orders_and_precisions(void **state)
{
    for (unsigned variant = 0; variant < 4; variant++) {
        bool swap = variant & 1, nanoseconds = variant & 2;
        uint8_t bytes[128];
        size_t length = make_capture(bytes, swap, nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4);
        struct alb_pcap_reader reader;
        struct alb_pcap_packet packet;
        const uint8_t *payload;
        uint32_t payload_bytes;
        assert_true(alb_pcap_reader_init(&reader, bytes, length));
        assert_true(alb_pcap_next(&reader, &packet, &payload, &payload_bytes));
        assert_int_equal(packet.time, 100 * ALB_NS_PER_S + (nanoseconds ? 7 : 7000));
        assert_int_equal(packet.source.port, 50000);
        assert_int_equal(packet.destination.port, ALB_ROCE_PORT);
        assert_int_equal(packet.identification, 9);
        assert_int_equal(packet.traffic_class, 3);
        assert_int_equal(payload_bytes, 5); // the frame's pad is not the datagram's
        assert_memory_equal(payload, "hello", 5);
        assert_false(alb_pcap_next(&reader, &packet, &payload, &payload_bytes));
    }
}

static void pcap_reader_init__refuses_what_it_does_not_read(void **state)
{
    uint8_t bytes[128];
    size_t length = make_capture(bytes, false, 0xa1b2c3d4);
    struct alb_pcap_reader reader;
    assert_false(alb_pcap_reader_init(&reader, bytes, 23));
    put32(bytes + 20, 113, false); // Linux cooked
    assert_false(alb_pcap_reader_init(&reader, bytes, length));
    put32(bytes, 0x0a0d0d0a, false); // pcapng
    put32(bytes + 20, 1, false);
    assert_false(alb_pcap_reader_init(&reader, bytes, length));
}

// Every cut and every changed byte: read to the end without a step outside (the sanitizer watches the exact
// allocation).
static void pcap_reader__survives_any_cut_and_any_byte(void **state)
{
    uint8_t original[128];
    size_t whole = make_capture(original, false, 0xa1b2c3d4);
    for (size_t length = 0; length <= whole; length++) {
        for (size_t at = 0; at < ALB_MAX(length, (size_t)1); at++) {
            uint8_t *bytes = malloc(ALB_MAX(length, (size_t)1));
            assert_non_null(bytes);
            memcpy(bytes, original, length);
            if (length)
                bytes[at] ^= length == whole ? 0xff : 0;
            struct alb_pcap_reader reader;
            struct alb_pcap_packet packet;
            const uint8_t *payload;
            uint32_t payload_bytes;
            if (alb_pcap_reader_init(&reader, bytes, length))
                while (alb_pcap_next(&reader, &packet, &payload, &payload_bytes))
                    assert_true(payload >= bytes && payload + payload_bytes <= bytes + length);
            free(bytes);
            if (length < whole)
                break; // once a cut is enough
        }
    }
}

static void pcap_reader__passes_over_what_is_no_udp_datagram(void **state)
{
    uint8_t bytes[256];
    size_t length = make_capture(bytes, false, 0xa1b2c3d4);
    memcpy(bytes + length, bytes + 24, length - 24);
    bytes[40 + 14 + 9] = 6; // the first one is TCP
    struct alb_pcap_reader reader;
    struct alb_pcap_packet packet;
    const uint8_t *payload;
    uint32_t payload_bytes;
    assert_true(alb_pcap_reader_init(&reader, bytes, 2 * length - 24));
    assert_true(alb_pcap_next(&reader, &packet, &payload, &payload_bytes));
    assert_ptr_equal(payload, bytes + length + 16 + 42);
    assert_false(alb_pcap_next(&reader, &packet, &payload, &payload_bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pcap_reader__reads_both_orders_and_precisions),
        cmocka_unit_test(pcap_reader_init__refuses_what_it_does_not_read),
        cmocka_unit_test(pcap_reader__survives_any_cut_and_any_byte),
        cmocka_unit_test(pcap_reader__passes_over_what_is_no_udp_datagram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
