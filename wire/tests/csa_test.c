// SPDX-License-Identifier: BSD-2-Clause
// The header of CSA packets there and back, walking from frame to frame, and every way in which bytes can be wrong.
#include "wire/icrc.h"
#include "wire/tests/csa_packet.h"

static void csa_header__comes_back_as_it_was_encoded(void **state)
{
    for (unsigned round = 0; round < 1000; round++) {
        struct alb_csa_header in = {
            .dest_slot = draw() & 255,
            .source_slot = draw() & 255,
            .sequence = draw() & ALB_PSN_MASK,
            .source_epoch = (uint32_t)draw() | 1,
            .destination_epoch = (uint32_t)draw(),
            .timestamp = (uint32_t)draw(),
            .path = (uint8_t)draw(),
            .rtt_code = (uint16_t)draw(),
        };
        struct alb_csa_header out = {.key_id = 77};
        struct alb_csa_cursor cursor;
        uint8_t bytes[ALB_CSA_OUTER_BYTES];
        alb_csa_encode(&in, bytes);
        assert_true(alb_csa_is_packet(bytes, sizeof(bytes)));
        assert_int_equal(alb_csa_decode(bytes, sizeof(bytes), &out, &cursor), ALB_DROP_NONE);
        assert_int_equal(out.dest_slot, in.dest_slot);
        assert_int_equal(out.source_slot, in.source_slot);
        assert_int_equal(out.sequence, in.sequence);
        assert_int_equal(out.source_epoch, in.source_epoch);
        assert_int_equal(out.destination_epoch, in.destination_epoch);
        assert_int_equal(out.timestamp, in.timestamp);
        assert_int_equal(out.key_id, 0);
        assert_int_equal(out.path, in.path);
        assert_int_equal(out.rtt_code, in.rtt_code);
        assert_ptr_equal(cursor.at, bytes + sizeof(bytes));
        assert_end(&cursor);
    }
}

static void csa_header__outside_is_a_ud_send_that_others_understand(void **state)
{
    struct packet *p = begin();
    struct alb_roce roce;
    uint32_t offset, payload;
    alb_csa_set_pad(p->bytes, 3);
    assert_int_equal(alb_roce_decode(p->bytes, p->length + 8, &roce, &offset, &payload), ALB_DROP_NONE);
    assert_int_equal(roce.opcode, ALB_UD_SEND_ONLY);
    assert_int_equal(roce.dest_qpn, 7 << 16 | ALB_CSA_QPN_INDEX);
    assert_int_equal(roce.src_qpn, 9 << 16 | ALB_CSA_QPN_INDEX);
    assert_int_equal(roce.qkey, ALB_CSA_QKEY);
    assert_int_equal(roce.pkey, ALB_PKEY_DEFAULT);
    assert_int_equal(roce.psn, 0x123456);
    assert_int_equal(roce.pad, 3);
    assert_int_equal(offset, ALB_CSA_OUTER_BYTES - ALB_CSA_HEADER_BYTES);
    alb_csa_set_pad(p->bytes, 0);
    assert_int_equal(alb_roce_decode(p->bytes, p->length + 8, &roce, &offset, &payload), ALB_DROP_NONE);
    assert_int_equal(roce.pad, 0);
}

static void csa_header__bytes_are_those_of_the_specification(void **state)
{
    static const uint8_t expected[ALB_CSA_OUTER_BYTES] = {
        0x64, 0x00, 0xff, 0xff, 0x00, 0x07, 0x00, 0x02, 0x00, 0x12, 0x34, 0x56, // BTH
        0x00, 0x43, 0x53, 0x41, 0x00, 0x09, 0x00, 0x02,                         // DETH
        0x10, 0x00, 0x00, 0x00, 0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2, 0xb3, 0xb4, // version, flags, key; epochs
        0xc1, 0xc2, 0xc3, 0xc4, 0x05, 0x00, 0xd1, 0xd2,                         // timestamp; path, round-trip time
    };
    struct alb_csa_header header = {.dest_slot = 7,
                                    .source_slot = 9,
                                    .sequence = 0x123456,
                                    .source_epoch = 0xa1a2a3a4,
                                    .destination_epoch = 0xb1b2b3b4,
                                    .timestamp = 0xc1c2c3c4,
                                    .path = 5,
                                    .rtt_code = 0xd1d2};
    uint8_t bytes[ALB_CSA_OUTER_BYTES];
    alb_csa_encode(&header, bytes);
    assert_memory_equal(bytes, expected, sizeof(bytes));
}

// The example at the end of docs/PROTOCOL.md, its ICRC for both families included.
static void csa_packet__example_is_that_of_the_specification(void **state)
{
    static const uint8_t expected[] = {
        0x64, 0x30, 0xff, 0xff, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x43, 0x53, 0x41, //
        0x00, 0x01, 0x00, 0x02, 0x10, 0x00, 0x00, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, //
        0x01, 0x02, 0x03, 0x04, 0x02, 0x00, 0x26, 0x1a, 0x01, 0x04, 0x00, 0x05, 0x00, 0x00, 0x12, 0x12, //
        0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x7f, 0x00, //
        0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x03, 0x01, 'h',  'e',  'l',  'l',  'o',  0x00, 0x00, 0x00, //
    };
    static const struct {
        const char *from, *to;
        uint8_t icrc[ALB_ICRC_BYTES];
    } ends[] = {{"10.0.0.1", "10.0.0.2", {0x8d, 0xc0, 0xe3, 0x07}}, {"fd00::1", "fd00::2", {0x3b, 0x79, 0xfe, 0x0f}}};
    const struct alb_csa_header header = {.source_slot = 1,
                                          .sequence = 10,
                                          .source_epoch = 0x11223344,
                                          .destination_epoch = 0x55667788,
                                          .timestamp = 0x01020304,
                                          .path = 2,
                                          .rtt_code = alb_csa_time_encode(25 * ALB_NS_PER_US)};
    const struct alb_csa_segment segment = {.op = ALB_CSA_WRITE,
                                            .flags = ALB_CSA_LAST | ALB_CSA_REPORT_NOW,
                                            .dest_qpn = 0x12,
                                            .psn = 256,
                                            .total_bytes = 5,
                                            .payload_bytes = 5,
                                            .va = 0x7f0000001000,
                                            .rkey = 0x301};
    uint8_t bytes[sizeof(expected) + ALB_ICRC_BYTES] = {0};
    alb_csa_encode(&header, bytes);
    uint32_t length = ALB_CSA_OUTER_BYTES;
    length += alb_csa_encode_segment(ALB_CSA_REQUEST, &segment, bytes + length);
    memcpy(bytes + length, "hello", 5);
    alb_csa_set_pad(bytes, alb_roce_pad(length + 5));
    assert_memory_equal(bytes, expected, sizeof(expected));

    for (unsigned i = 0; i < ALB_COUNT(ends); i++) {
        struct alb_icrc_flow flow = {0};
        struct alb_datagram datagram = {.peer.port = 4792, .local.port = 4791, .bytes = bytes, .length = sizeof(bytes)};
        assert_true(alb_addr_parse(ends[i].from, &datagram.peer.addr));
        assert_true(alb_addr_parse(ends[i].to, &datagram.local.addr));
        memcpy(bytes + sizeof(expected), ends[i].icrc, ALB_ICRC_BYTES);
        assert_true(alb_icrc_check_ones(&flow, &datagram));
    }
}

static void csa_is_packet__tells_others_apart(void **state)
{
    struct packet *p = begin();
    for (uint32_t length = 0; length < ALB_BTH_BYTES; length++)
        assert_false(alb_csa_is_packet(p->bytes, length));
    assert_true(alb_csa_is_packet(p->bytes, ALB_BTH_BYTES));
    p->bytes[5] = 200; // any slot
    p->bytes[4] = 0xff;
    assert_true(alb_csa_is_packet(p->bytes, p->length));
    p->bytes[7] = 1; // the connection manager
    assert_false(alb_csa_is_packet(p->bytes, p->length));
    p->bytes[7] = 2;
    p->bytes[6] = 1; // queue pair 0x102
    assert_false(alb_csa_is_packet(p->bytes, p->length));
    p->bytes[6] = 0;
    p->bytes[0] = ALB_UD_SEND_ONLY_IMM;
    assert_false(alb_csa_is_packet(p->bytes, p->length));
}

// The header's reason with one byte changed.
static enum alb_drop reason_with(uint32_t offset, uint8_t value)
{
    struct packet *p = begin();
    struct alb_csa_header header;
    struct alb_csa_cursor cursor;
    p->bytes[offset] = value;
    return alb_csa_decode(p->bytes, p->length, &header, &cursor);
}

static void csa_decode__refuses_what_it_does_not_speak(void **state)
{
    assert_int_equal(reason_with(1, 0x01), ALB_DROP_BAD_VERSION);  // of the BTH
    assert_int_equal(reason_with(20, 0x20), ALB_DROP_BAD_VERSION); // of the CSA header
    assert_int_equal(reason_with(20, 0x11), ALB_DROP_BAD_VERSION); // reserved
    assert_int_equal(reason_with(21, 0x01), ALB_DROP_BAD_VERSION); // a flag
    assert_int_equal(reason_with(22, 0x01), ALB_DROP_BAD_VERSION); // a key
    assert_int_equal(reason_with(23, 0x01), ALB_DROP_BAD_VERSION);
    assert_int_equal(reason_with(12, 0x01), ALB_DROP_BAD_QKEY);
    assert_int_equal(reason_with(15, 0x42), ALB_DROP_BAD_QKEY);
    assert_int_equal(reason_with(18, 0x01), ALB_DROP_WRONG_PEER);
    assert_int_equal(reason_with(19, 0x03), ALB_DROP_WRONG_PEER);
    assert_int_equal(reason_with(27, 0x00), ALB_DROP_BAD_EPOCH);
    assert_int_equal(reason_with(1, 0x10), ALB_DROP_BAD_LENGTH); // pad without frames
}

static void csa_decode__does_not_look_at_what_a_router_or_a_later_version_may_set(void **state)
{
    assert_int_equal(reason_with(4, 0xff), ALB_DROP_NONE);  // congestion marks and reserved bits of the BTH
    assert_int_equal(reason_with(2, 0x12), ALB_DROP_NONE);  // partition key
    assert_int_equal(reason_with(16, 0xff), ALB_DROP_NONE); // reserved byte of the DETH
    assert_int_equal(reason_with(37, 0xff), ALB_DROP_NONE); // reserved byte of the CSA header
}

static void csa_decode__refuses_every_length_that_is_none(void **state)
{
    struct packet *p = begin();
    struct alb_csa_header header;
    struct alb_csa_cursor cursor;
    for (uint32_t length = ALB_BTH_BYTES; length < ALB_CSA_OUTER_BYTES; length++)
        assert_int_equal(alb_csa_decode(p->bytes, length, &header, &cursor), ALB_DROP_TRUNCATED);
    for (uint32_t length = ALB_CSA_OUTER_BYTES; length < ALB_CSA_OUTER_BYTES + 64; length++)
        assert_int_equal(alb_csa_decode(p->bytes, length, &header, &cursor),
                         length % 4 ? ALB_DROP_BAD_LENGTH : ALB_DROP_NONE);
}

static void csa_next__refuses_unknown_types(void **state)
{
    for (unsigned type = 0; type < 256; type++) {
        struct packet *p = begin();
        memset(p->bytes + ALB_CSA_OUTER_BYTES, 0, 64);
        p->bytes[ALB_CSA_OUTER_BYTES] = (uint8_t)type;
        p->length += 64;
        struct alb_csa_cursor cursor = finish(p);
        struct alb_csa_frame frame;
        enum alb_drop drop;
        if (alb_csa_type_name((uint8_t)type) == NULL) {
            assert_false(alb_csa_next(&cursor, &frame, &drop));
            assert_int_equal(drop, ALB_DROP_UNKNOWN_OPCODE);
        }
    }
}

// One packet with every kind of frame, payloads of each remainder.
static struct packet *with_everything(struct alb_csa_segment segments[], struct alb_csa_report *report,
                                      struct alb_csa_paths *paths)
{
    struct packet *p = begin();
    for (unsigned kind = 0; kind < ALB_COUNT(kinds); kind++) {
        segments[kind] = draw_segment(kind, kind % 5);
        add_segment(p, (enum alb_csa_type)kinds[kind].type, &segments[kind]);
    }
    *report = draw_report(3);
    p->length += alb_csa_encode_report(report, place(p));
    *paths = draw_paths(2);
    p->length += alb_csa_encode_paths(paths, place(p));
    struct alb_csa_segment last = draw_segment(0, 5);
    add_segment(p, ALB_CSA_REQUEST, &last);
    return p;
}

static void csa_next__walks_through_frames_of_every_kind(void **state)
{
    struct alb_csa_segment segments[ALB_COUNT(kinds)];
    struct alb_csa_report report;
    struct alb_csa_paths paths;
    struct packet *p = with_everything(segments, &report, &paths);
    struct alb_csa_cursor cursor = finish(p);
    const uint8_t *first = cursor.at;
    for (unsigned kind = 0; kind < ALB_COUNT(kinds); kind++) {
        assert_int_equal((cursor.at - first) % 4, 0);
        struct alb_csa_frame frame = next(&cursor);
        assert_int_equal(frame.type, kinds[kind].type);
        assert_segment_same(frame.type, &segments[kind], &frame.segment);
    }
    struct alb_csa_frame frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_REPORT);
    assert_int_equal(frame.report.cumulative, report.cumulative);
    frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_PATHS);
    assert_int_equal(frame.paths.credit_bytes, paths.credit_bytes);
    frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_REQUEST);
    assert_int_equal(frame.segment.payload_bytes, 5);
    assert_end(&cursor);
}

// Cut anywhere, a packet yields whole frames and then a reason, unless the cut is between two frames.
static void csa_next__notices_where_a_packet_was_cut(void **state)
{
    struct alb_csa_segment segments[ALB_COUNT(kinds)];
    struct alb_csa_report report;
    struct alb_csa_paths paths;
    struct packet *p = with_everything(segments, &report, &paths);
    uint32_t whole = p->length;
    for (uint32_t cut = ALB_CSA_OUTER_BYTES; cut < whole; cut++) {
        p->length = cut;
        struct alb_csa_cursor cursor = finish(p);
        struct alb_csa_frame frame;
        enum alb_drop drop;
        unsigned frames = 0;
        while (alb_csa_next(&cursor, &frame, &drop))
            frames++;
        assert_true(drop == ALB_DROP_NONE || drop == ALB_DROP_TRUNCATED || drop == ALB_DROP_BAD_LENGTH);
        assert_int_equal(drop == ALB_DROP_NONE, cursor.at == cursor.end);
        assert_true(frames < ALB_COUNT(kinds) + 3);
    }
}

static void csa_next__refuses_a_last_frame_with_half_a_padding(void **state)
{
    struct packet *p = with_segment(ALB_CSA_SEND, 0, 5, 5, ALB_CSA_LAST);
    uint32_t end = p->length;
    place(p);
    for (unsigned pad = 0; pad <= 3; pad++) {
        p->length = end + pad;
        assert_int_equal(reason(p), pad == 0 || pad == 3 ? ALB_DROP_NONE : ALB_DROP_BAD_LENGTH);
    }
}

static void csa_next__random_bytes_do_no_harm(void **state)
{
    for (unsigned round = 0; round < 100000; round++) {
        struct packet *p = begin();
        uint32_t bytes = draw() % 200;
        for (uint32_t i = 0; i < bytes; i++)
            p->bytes[ALB_CSA_OUTER_BYTES + i] = (uint8_t)(draw() & (i < 2 ? 0x1f : 0xff));
        p->length += bytes;
        struct alb_csa_cursor cursor = finish(p);
        struct alb_csa_frame frame;
        enum alb_drop drop;
        for (const uint8_t *before = cursor.at; alb_csa_next(&cursor, &frame, &drop); before = cursor.at) {
            assert_true(cursor.at > before && cursor.at <= cursor.end);
            if (frame.type > ALB_CSA_DATAGRAM)
                continue;
            assert_true(frame.segment.payload > before);
            assert_true(frame.segment.payload + frame.segment.payload_bytes <= cursor.end);
            if (frame.type != ALB_CSA_DATAGRAM && frame.segment.payload_bytes)
                assert_true((uint64_t)alb_csa_segment_offset(&frame.segment) + frame.segment.payload_bytes <=
                            frame.segment.total_bytes);
        }
    }
}

static void csa_time__is_exact_when_small_and_a_thousandth_off_when_large(void **state)
{
    for (alb_time ns = 0; ns < 2048; ns++)
        assert_int_equal(alb_csa_time_decode(alb_csa_time_encode(ns)), ns);
    for (unsigned bit = 11; bit < 42; bit++) {
        for (unsigned round = 0; round < 1000; round++) {
            alb_time ns = 1ull << bit | (draw() & ((1ull << bit) - 1));
            alb_time back = alb_csa_time_decode(alb_csa_time_encode(ns));
            assert_true(back <= ns && ns - back <= ns / 1024);
        }
    }
    assert_int_equal(alb_csa_time_encode(0), 0);
    assert_int_equal(alb_csa_time_encode(1ull << 42), UINT16_MAX);
    assert_int_equal(alb_csa_time_encode(UINT64_MAX), UINT16_MAX);
    assert_true(alb_csa_time_decode(UINT16_MAX) < 1ull << 42);
}

static void csa_time__is_in_order(void **state)
{
    for (uint32_t code = 2048; code < UINT16_MAX; code++) {
        alb_time ns = alb_csa_time_decode((uint16_t)code);
        if (code % 2048 >= 1024)
            assert_int_equal(alb_csa_time_encode(ns), code);
    }
    for (alb_time ns = 1; ns < 1ull << 43; ns += ns / 3 + 1)
        assert_true(alb_csa_time_encode(ns) >= alb_csa_time_encode(ns - 1));
}

static void csa_names__are_there_for_what_is_known(void **state)
{
    unsigned types = 0, ops = 0;
    for (unsigned i = 0; i < 256; i++) {
        types += alb_csa_type_name((uint8_t)i) != NULL;
        ops += alb_csa_op_name((uint8_t)i) != NULL;
    }
    assert_int_equal(types, 16);
    assert_int_equal(ops, 15);
    assert_string_equal(alb_csa_type_name(ALB_CSA_REPORT), "REPORT");
    assert_string_equal(alb_csa_type_name(ALB_CSA_CNP), "CNP");
    assert_string_equal(alb_csa_op_name(ALB_CSA_WRITE_IMM), "WRITE_IMM");
    assert_string_equal(alb_csa_op_name(ALB_CSA_RESULT), "RESULT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csa_header__comes_back_as_it_was_encoded),
        cmocka_unit_test(csa_header__outside_is_a_ud_send_that_others_understand),
        cmocka_unit_test(csa_header__bytes_are_those_of_the_specification),
        cmocka_unit_test(csa_packet__example_is_that_of_the_specification),
        cmocka_unit_test(csa_is_packet__tells_others_apart),
        cmocka_unit_test(csa_decode__refuses_what_it_does_not_speak),
        cmocka_unit_test(csa_decode__does_not_look_at_what_a_router_or_a_later_version_may_set),
        cmocka_unit_test(csa_decode__refuses_every_length_that_is_none),
        cmocka_unit_test(csa_next__refuses_unknown_types),
        cmocka_unit_test(csa_next__walks_through_frames_of_every_kind),
        cmocka_unit_test(csa_next__notices_where_a_packet_was_cut),
        cmocka_unit_test(csa_next__refuses_a_last_frame_with_half_a_padding),
        cmocka_unit_test(csa_next__random_bytes_do_no_harm),
        cmocka_unit_test(csa_time__is_exact_when_small_and_a_thousandth_off_when_large),
        cmocka_unit_test(csa_time__is_in_order),
        cmocka_unit_test(csa_names__are_there_for_what_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
