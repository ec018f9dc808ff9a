// SPDX-License-Identifier: BSD-2-Clause
#include "plugins/rdmacm/rsocket_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

// As it stands on the wire between rdma-core's rsockets: version, flags, credits, iomap scale, two places.
static const uint8_t hello_bytes[RSOCKET_HELLO_BYTES] = {
    1,    2,    0x01, 0x80, 0,    0,    0,    5,                                                    //
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x00, 0x00, 0x00, 0x02, //
    0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x41, 0x42, 0x43, 0x44, 0x00, 0x01, 0x00, 0x00,
};

static const struct rsocket_hello hello_known = {
    .has_iomap = true,
    .credits = 384,
    .iomap_count = 5,
    .targets = {0x1112131415161718, 0x21222324, 2},
    .buffer = {0x3132333435363738, 0x41424344, 65536},
};

static void hello__as_on_the_wire(void **state)
{
    uint8_t bytes[RSOCKET_HELLO_BYTES];
    struct rsocket_hello hello;
    rsocket_hello_encode(&hello_known, bytes);
    assert_memory_equal(bytes, hello_bytes, sizeof(bytes));
    assert_true(rsocket_hello_decode(hello_bytes, sizeof(hello_bytes), &hello));
    assert_int_equal(hello.credits, 384);
    assert_int_equal(hello.iomap_count, 5);
    assert_int_equal(hello.targets.addr, 0x1112131415161718);
    assert_int_equal(hello.buffer.length, 65536);
    assert_false(hello.is_big_endian);
}

static void hello__hostile(void **state)
{
    uint8_t bytes[RSOCKET_HELLO_BYTES];
    struct rsocket_hello hello;
    assert_false(rsocket_hello_decode(hello_bytes, RSOCKET_HELLO_BYTES - 1, &hello));
    memcpy(bytes, hello_bytes, sizeof(bytes));
    bytes[0] = 2; // version
    assert_false(rsocket_hello_decode(bytes, sizeof(bytes), &hello));
    memcpy(bytes, hello_bytes, sizeof(bytes));
    bytes[23] = 1; // a table of one: it would be written while it is in use
    assert_false(rsocket_hello_decode(bytes, sizeof(bytes), &hello));
    bytes[20] = 0xff; // and one of four milliards
    assert_false(rsocket_hello_decode(bytes, sizeof(bytes), &hello));
    memcpy(bytes, hello_bytes, sizeof(bytes));
    memset(bytes + 36, 0, 4); // nowhere to send to
    assert_false(rsocket_hello_decode(bytes, sizeof(bytes), &hello));
    memcpy(bytes, hello_bytes, sizeof(bytes));
    bytes[1] = 0; // a peer without mappings
    assert_true(rsocket_hello_decode(bytes, sizeof(bytes), &hello));
    assert_int_equal(hello.iomap_count, 0);
}

static void iomap_count__through_eight_bits(void **state)
{
    assert_int_equal(rsocket_iomap_count_carried(0), 0);
    assert_int_equal(rsocket_iomap_count_carried(128), 128);
    assert_int_equal(rsocket_iomap_count_carried(1024), 1024);
    assert_int_equal(rsocket_iomap_count_carried(1100), 1024);
    assert_int_equal(rsocket_iomap_count_carried(UINT32_MAX), 127 * 256);
}

static void message__kinds(void **state)
{
    struct rsocket_message message;
    assert_int_equal(rsocket_message_encode(RSOCKET_OP_DATA, 65536), 65536);
    assert_int_equal(rsocket_message_encode(RSOCKET_OP_GRANT, 384), 0x80000180);
    assert_int_equal(rsocket_message_encode(RSOCKET_OP_CONTROL, RSOCKET_CONTROL_SHUTDOWN), 0xe0000002);
    assert_true(rsocket_message_decode(0xc0000007, &message));
    assert_int_equal(message.op, RSOCKET_OP_IOMAP);
    assert_int_equal(message.value, 7);
    assert_false(rsocket_message_decode(0x20000000, &message));
    assert_false(rsocket_message_decode(0x40000000, &message));
    assert_false(rsocket_message_decode(0x60000000, &message));
    assert_false(rsocket_message_decode(0xa0000000, &message));
}

static void datagram_header__both_families(void **state)
{
    uint8_t bytes[RSOCKET_DATAGRAM_HEADER_MAX];
    static const uint8_t ipv4_known[] = {4, 8, 0x1b, 0x58, 10, 0, 0, 1};
    struct rsocket_datagram_header out, header = {alb_addr_from_ipv4((const uint8_t[]){10, 0, 0, 1}), 7000};
    assert_int_equal(rsocket_datagram_header_encode(&header, bytes), 8);
    assert_memory_equal(bytes, ipv4_known, 8);
    assert_int_equal(rsocket_datagram_header_decode(bytes, 8, &out), 8);
    assert_true(alb_addr_equals(&out.source, &header.source));
    header.source.bytes[0] = 0xfd;
    assert_int_equal(rsocket_datagram_header_encode(&header, bytes), 24);
    assert_int_equal(rsocket_datagram_header_decode(bytes, 24, &out), 24);
    assert_true(alb_addr_equals(&out.source, &header.source));
    assert_int_equal(out.port, 7000);
}

static void datagram_header__hostile(void **state)
{
    struct rsocket_datagram_header out;
    assert_int_equal(rsocket_datagram_header_decode((const uint8_t[8]){4, 8}, 7, &out), 0);
    assert_int_equal(rsocket_datagram_header_decode((const uint8_t[8]){4, 9}, 8, &out), 0);
    assert_int_equal(rsocket_datagram_header_decode((const uint8_t[8]){5, 8}, 8, &out), 0);
    assert_int_equal(rsocket_datagram_header_decode((const uint8_t[8]){6, 24}, 8, &out), 0);
    assert_int_equal(rsocket_datagram_header_decode((const uint8_t[8]){6, 8}, 8, &out), 0);
}

static void udp_header__both_ways(void **state)
{
    uint8_t bytes[RSOCKET_UDP_HEADER_MAX];
    struct rsocket_udp_header out,
        header = {RSOCKET_UDP_CONTROL, 0x123456, alb_addr_from_ipv4((const uint8_t[]){10, 0, 0, 1})};
    static const uint8_t known[] = {0x55, 0x55, 0x55, 0x55, 4, 7, 16, 0, 0, 0x12, 0x34, 0x56, 10, 0, 0, 1};
    assert_int_equal(rsocket_udp_header_encode(&header, bytes), 16);
    assert_memory_equal(bytes, known, 16);
    assert_int_equal(rsocket_udp_header_decode(bytes, 16, &out), 16);
    assert_int_equal(out.qpn, 0x123456);
    bytes[5] = 3; // no such operation
    assert_int_equal(rsocket_udp_header_decode(bytes, 16, &out), 0);
    bytes[5] = 0;
    assert_int_equal(rsocket_udp_header_decode(bytes, 15, &out), 0);
    bytes[6] = 28; // longer than what there is
    assert_int_equal(rsocket_udp_header_decode(bytes, 16, &out), 0);
    bytes[6] = 16;
    bytes[0] = 0; // a datagram that is not ours
    assert_int_equal(rsocket_udp_header_decode(bytes, 16, &out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello__as_on_the_wire),           cmocka_unit_test(hello__hostile),
        cmocka_unit_test(iomap_count__through_eight_bits), cmocka_unit_test(message__kinds),
        cmocka_unit_test(datagram_header__both_families),  cmocka_unit_test(datagram_header__hostile),
        cmocka_unit_test(udp_header__both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
