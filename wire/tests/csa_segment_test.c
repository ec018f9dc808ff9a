// SPDX-License-Identifier: BSD-2-Clause
// Segments there and back, and that none can stand for bytes outside of its message.
#include "wire/csa_frame.h"
#include "wire/tests/csa_packet.h"

static void csa_segment__every_kind_comes_back_as_it_was_encoded(void **state)
{
    for (unsigned kind = 0; kind < ALB_COUNT(kinds); kind++) {
        for (uint32_t payload = 0; payload <= 65000; payload += payload < 70 ? 1 : 9973) {
            struct packet *p = begin();
            struct alb_csa_segment in = draw_segment(kind, payload);
            add_segment(p, (enum alb_csa_type)kinds[kind].type, &in);
            struct alb_csa_cursor cursor = finish(p);
            struct alb_csa_frame frame = next(&cursor);
            assert_int_equal(frame.type, kinds[kind].type);
            assert_segment_same(frame.type, &in, &frame.segment);
            assert_end(&cursor);
        }
    }
}

static void csa_segment__bytes_are_those_of_the_specification(void **state)
{
    static const uint8_t expected[] = {
        0x01, 0x05, 0x00, 0x06,                         // REQUEST, WRITE_IMM, 6 bytes
        0x01, 0x02, 0x03, 0x19,                         // queue pair; solicited, XRC, last
        0x11, 0x12, 0x13, 0x00,                         // PSN
        0x00, 0x00, 0x02, 0x00,                         // index
        0x00, 0x00, 0x08, 0x06,                         // of 2054 bytes
        0x00, 0x21, 0x22, 0x23,                         // SRQ
        0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, // address
        0x41, 0x42, 0x43, 0x44,                         // key
        0x51, 0x52, 0x53, 0x54,                         // receive number
        0x61, 0x62, 0x63, 0x64,                         // immediate
        0x7b, 0x9a, 0xb9, 0xd8, 0xf7, 0x16,             // payload
    };
    static const uint8_t immediate[] = {0x61, 0x62, 0x63, 0x64};
    struct alb_csa_segment segment = {.op = ALB_CSA_WRITE_IMM,
                                      .flags = ALB_CSA_SOLICITED | ALB_CSA_XRC | ALB_CSA_LAST,
                                      .payload_bytes = 6,
                                      .dest_qpn = 0x010203,
                                      .psn = 0x111213,
                                      .index = 2,
                                      .total_bytes = 2054,
                                      .xrc_srqn = 0x212223,
                                      .va = 0x3132333435363738,
                                      .rkey = 0x41424344,
                                      .recv_number = 0x51525354};
    struct packet *p = begin();
    memcpy(&segment.imm_be, immediate, 4);
    add_segment(p, ALB_CSA_REQUEST, &segment);
    uint8_t *at = p->bytes + ALB_CSA_OUTER_BYTES;
    for (unsigned i = 0; i < 6; i++)
        at[44 + i] = expected[44 + i];
    assert_int_equal(p->length, ALB_CSA_OUTER_BYTES + sizeof(expected));
    assert_memory_equal(at, expected, sizeof(expected));
    struct alb_csa_cursor cursor = finish(p);
    struct alb_csa_frame frame = next(&cursor);
    assert_int_equal(alb_csa_segment_offset(&frame.segment), 2048);
}

static void csa_segment__offset_of_a_segment_before_the_last_follows_from_its_index(void **state)
{
    struct alb_csa_segment segment = {.op = ALB_CSA_SEND, .payload_bytes = 1000, .index = 3, .total_bytes = 4001};
    assert_int_equal(alb_csa_segment_offset(&segment), 3000);
}

static void csa_segment__refuses_payload_outside_of_its_message(void **state)
{
    static const uint8_t with_payload[] = {ALB_CSA_SEND,      ALB_CSA_SEND_IMM,  ALB_CSA_SEND_INV,     ALB_CSA_WRITE,
                                           ALB_CSA_WRITE_IMM, ALB_CSA_READ_DATA, ALB_CSA_PARTIAL_WRITE};
    for (unsigned i = 0; i < ALB_COUNT(with_payload); i++) {
        uint8_t op = with_payload[i];
        static const struct {
            uint32_t index, payload, total;
            uint8_t flags;
            enum alb_drop drop;
        } cases[] = {
            {0, 0, 0, ALB_CSA_LAST, ALB_DROP_NONE},
            {0, 5, 5, ALB_CSA_LAST, ALB_DROP_NONE},
            {0, 5, 4, ALB_CSA_LAST, ALB_DROP_BAD_LENGTH},
            {0, 5, 6, ALB_CSA_LAST, ALB_DROP_BAD_LENGTH},
            {1, 5, 9, ALB_CSA_LAST, ALB_DROP_NONE},
            {1, 5, 5, ALB_CSA_LAST, ALB_DROP_BAD_LENGTH}, // nothing is left for the first
            {1, 0, 8, ALB_CSA_LAST, ALB_DROP_BAD_LENGTH},
            {1, 8, 4, ALB_CSA_LAST, ALB_DROP_BAD_LENGTH},
            {0, 0, 8, 0, ALB_DROP_BAD_LENGTH},
            {0, 8, 9, 0, ALB_DROP_NONE},
            {0, 8, 8, 0, ALB_DROP_BAD_LENGTH}, // must be the last
            {0, 6, 9, 0, ALB_DROP_BAD_LENGTH}, // not a multiple of four
            {1, 8, 17, 0, ALB_DROP_NONE},
            {1, 8, 16, 0, ALB_DROP_BAD_LENGTH},
            {0xffffff, 0x1000, 0xffffffff, 0, ALB_DROP_BAD_LENGTH}, // more than 32 bits can say
            {0xffffff, 0x00fc, 0xfc000001, 0, ALB_DROP_NONE},
        };
        for (unsigned n = 0; n < ALB_COUNT(cases); n++)
            assert_int_equal(reason(with_segment(op, cases[n].index, cases[n].payload, cases[n].total, cases[n].flags)),
                             cases[n].drop);
    }
}

static void csa_segment__refuses_payload_where_the_operation_has_none(void **state)
{
    static const uint8_t single[] = {ALB_CSA_READ, ALB_CSA_CMP_SWAP, ALB_CSA_FETCH_ADD, ALB_CSA_ATOMIC_WRITE,
                                     ALB_CSA_RESULT};
    for (unsigned i = 0; i < ALB_COUNT(single); i++) {
        uint32_t payload = single[i] == ALB_CSA_ATOMIC_WRITE ? 8 : 0;
        assert_int_equal(reason(with_segment(single[i], 0, payload, 1u << 31, ALB_CSA_LAST)), ALB_DROP_NONE);
        assert_int_equal(reason(with_segment(single[i], 0, payload, 8, 0)), ALB_DROP_BAD_LENGTH);
        assert_int_equal(reason(with_segment(single[i], 1, payload, 16, ALB_CSA_LAST)), ALB_DROP_BAD_LENGTH);
        for (uint32_t other = 0; other <= 16; other++)
            if (other != payload)
                assert_int_equal(reason(with_segment(single[i], 0, other, other, ALB_CSA_LAST)), ALB_DROP_BAD_LENGTH);
    }
}

static void csa_segment__refuses_operations_that_its_type_does_not_have(void **state)
{
    for (unsigned type = ALB_CSA_REQUEST; type <= ALB_CSA_DATAGRAM; type++) {
        for (unsigned op = 0; op < 256; op++) {
            bool is_known = false;
            struct packet *p = with_segment(ALB_CSA_SEND, 0, 64, 64, ALB_CSA_LAST);
            p->bytes[ALB_CSA_OUTER_BYTES] = (uint8_t)type;
            p->bytes[ALB_CSA_OUTER_BYTES + 1] = (uint8_t)op;
            for (unsigned kind = 0; kind < ALB_COUNT(kinds); kind++)
                is_known |= kinds[kind].type == type && kinds[kind].op == op;
            struct alb_csa_cursor cursor = finish(p);
            struct alb_csa_frame frame;
            enum alb_drop drop;
            alb_csa_next(&cursor, &frame, &drop);
            assert_int_equal(drop == ALB_DROP_UNKNOWN_OPCODE, !is_known);
        }
    }
}

static void csa_segment__reserved_bytes_are_zero_and_not_looked_at(void **state)
{
    for (unsigned kind = 0; kind < ALB_COUNT(kinds); kind++) {
        struct packet *p = begin();
        struct alb_csa_segment in = draw_segment(kind, 64);
        bool is_datagram = kinds[kind].type == ALB_CSA_DATAGRAM;
        in.flags &= (uint8_t)~ALB_CSA_XRC;
        add_segment(p, (enum alb_csa_type)kinds[kind].type, &in);
        uint8_t *at = p->bytes + ALB_CSA_OUTER_BYTES;
        assert_int_equal(at[15], 0);
        at[15] = 0xff;
        if (!is_datagram) {
            assert_int_equal(at[11], 0);
            at[11] = 0xff;
        }
        struct alb_csa_cursor cursor = finish(p);
        struct alb_csa_frame frame = next(&cursor);
        assert_segment_same(frame.type, &in, &frame.segment);
    }
}

// Only a request names a shared receive queue; elsewhere the flag means nothing.
static void csa_segment__responses_have_no_srq(void **state)
{
    struct alb_csa_segment segment = {.op = ALB_CSA_RESULT, .flags = ALB_CSA_XRC};
    assert_int_equal(alb_csa_segment_bytes(ALB_CSA_RESPONSE, &segment), 32);
    segment.op = ALB_CSA_WRITE;
    assert_int_equal(alb_csa_segment_bytes(ALB_CSA_REQUEST, &segment), 36);
    segment.op = ALB_CSA_FETCH_ADD;
    assert_int_equal(alb_csa_segment_bytes(ALB_CSA_REQUEST, &segment), 56);
    segment = (struct alb_csa_segment){.op = ALB_CSA_WRITE_IMM, .flags = ALB_CSA_XRC | ALB_CSA_REFLECT};
    assert_int_equal(alb_csa_segment_bytes(ALB_CSA_REQUEST, &segment), ALB_CSA_FRAME_MAX);
}

// What asks for a verdict says what it was when it was posted; only the end of a message can.
static void csa_segment__asks_for_a_verdict_at_its_end(void **state)
{
    struct alb_csa_segment segment = {
        .op = ALB_CSA_SEND_INV,
        .flags = ALB_CSA_LAST | ALB_CSA_REFLECT,
        .invalidate_rkey = 9,
        .txn = {1, 2},
        .digest = {3, 4},
        .txn_low_water = 5,
    };
    uint8_t frame[ALB_CSA_FRAME_MAX];
    struct alb_csa_segment decoded;
    uint32_t taken;
    uint32_t bytes = alb_csa_encode_segment(ALB_CSA_REQUEST, &segment, frame);
    assert_int_equal(bytes, alb_csa_segment_bytes(ALB_CSA_REQUEST, &segment));
    assert_int_equal(alb_csa_decode_segment(frame, bytes, &decoded, &taken), ALB_DROP_NONE);
    assert_int_equal(taken, bytes);
    assert_int_equal(decoded.invalidate_rkey, 9);
    assert_int_equal(decoded.txn.initiator, 1);
    assert_int_equal(decoded.txn.number, 2);
    assert_int_equal(decoded.digest.low, 3);
    assert_int_equal(decoded.digest.high, 4);
    assert_int_equal(decoded.txn_low_water, 5);
    assert_int_equal(alb_csa_decode_segment(frame, bytes - 4, &decoded, &taken), ALB_DROP_TRUNCATED);
    frame[1] = ALB_CSA_TXN_END;
    assert_int_equal(alb_csa_decode_segment(frame, bytes, &decoded, &taken), ALB_DROP_BAD_LENGTH);
}

static void csa_segment__part_of_a_transaction_says_which(void **state)
{
    struct alb_csa_segment segment = {
        .op = ALB_CSA_TXN_WRITE, .flags = ALB_CSA_LAST, .va = 1, .rkey = 2, .txn.number = 3, .txn_mode = 1};
    uint8_t frame[ALB_CSA_FRAME_MAX];
    struct alb_csa_segment decoded;
    uint32_t taken, bytes = alb_csa_encode_segment(ALB_CSA_REQUEST, &segment, frame);
    assert_int_equal(alb_csa_decode_segment(frame, bytes, &decoded, &taken), ALB_DROP_NONE);
    assert_int_equal(decoded.va, 1);
    assert_int_equal(decoded.rkey, 2);
    assert_int_equal(decoded.txn.number, 3);
    assert_int_equal(decoded.txn_mode, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csa_segment__asks_for_a_verdict_at_its_end),
        cmocka_unit_test(csa_segment__part_of_a_transaction_says_which),
        cmocka_unit_test(csa_segment__every_kind_comes_back_as_it_was_encoded),
        cmocka_unit_test(csa_segment__bytes_are_those_of_the_specification),
        cmocka_unit_test(csa_segment__offset_of_a_segment_before_the_last_follows_from_its_index),
        cmocka_unit_test(csa_segment__refuses_payload_outside_of_its_message),
        cmocka_unit_test(csa_segment__refuses_payload_where_the_operation_has_none),
        cmocka_unit_test(csa_segment__refuses_operations_that_its_type_does_not_have),
        cmocka_unit_test(csa_segment__reserved_bytes_are_zero_and_not_looked_at),
        cmocka_unit_test(csa_segment__responses_have_no_srq),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
