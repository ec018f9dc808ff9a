// SPDX-License-Identifier: BSD-2-Clause
// For the tests of CSA packets: writing one as an engine does, with frames that are drawn, and reading it.
#pragma once

#include "wire/csa.h"

#include "base/tests/test.h"

#include <stdlib.h>
#include <string.h>

#define ROOM 66000

// A packet that is being written as an engine writes it.
struct packet {
    uint8_t bytes[ROOM];
    uint32_t length; // without pad
};

static struct packet packet;
static uint64_t random_state = 1;

// xorshift64*: what is drawn need only be different, and the same in every run.
static inline uint64_t draw(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1dull;
}

static inline struct packet *begin(void)
{
    struct alb_csa_header header = {.dest_slot = 7, .source_slot = 9, .sequence = 0x123456, .source_epoch = 1};
    memset(packet.bytes, 0xee, sizeof(packet.bytes));
    alb_csa_encode(&header, packet.bytes);
    packet.length = ALB_CSA_OUTER_BYTES;
    return &packet;
}

// Where the next frame begins: what is there already is padded.
static inline uint8_t *place(struct packet *p)
{
    while (p->length % 4)
        p->bytes[p->length++] = 0;
    return p->bytes + p->length;
}

static inline void add_segment(struct packet *p, enum alb_csa_type type, const struct alb_csa_segment *segment)
{
    uint8_t *at = place(p);
    uint32_t bytes = alb_csa_encode_segment(type, segment, at);
    assert_int_equal(bytes % 4, 0);
    assert_int_equal(bytes, alb_csa_segment_bytes(type, segment));
    assert_true(bytes <= ALB_CSA_FRAME_MAX);
    for (uint32_t i = 0; i < segment->payload_bytes; i++)
        at[bytes + i] = (uint8_t)(i * 31 + segment->psn);
    p->length += bytes + segment->payload_bytes;
}

// Sets the pad and decodes the header. The bytes end where the packet does, so that a sanitizer sees what is read
// behind it; they stay until the next call.
static inline struct alb_csa_cursor finish(struct packet *p)
{
    static uint8_t *exact;
    struct alb_csa_header header;
    struct alb_csa_cursor cursor;
    uint8_t pad = alb_roce_pad(p->length);
    uint32_t length = p->length + pad;
    alb_csa_set_pad(p->bytes, pad);
    free(exact);
    exact = calloc(1, length);
    assert_non_null(exact);
    memcpy(exact, p->bytes, p->length);
    assert_true(alb_csa_is_packet(exact, length));
    assert_int_equal(alb_csa_decode(exact, length, &header, &cursor), ALB_DROP_NONE);
    assert_int_equal(cursor.end - cursor.at, p->length - ALB_CSA_OUTER_BYTES);
    return cursor;
}

static inline struct alb_csa_frame next(struct alb_csa_cursor *cursor)
{
    struct alb_csa_frame frame;
    enum alb_drop drop;
    memset(&frame, 0xcd, sizeof(frame));
    assert_true(alb_csa_next(cursor, &frame, &drop));
    assert_int_equal(drop, ALB_DROP_NONE);
    return frame;
}

static inline void assert_end(struct alb_csa_cursor *cursor)
{
    struct alb_csa_frame frame;
    enum alb_drop drop;
    assert_false(alb_csa_next(cursor, &frame, &drop));
    assert_int_equal(drop, ALB_DROP_NONE);
}

// What comes of the packet: the reason why a frame of it was not understood.
static inline enum alb_drop reason(struct packet *p)
{
    struct alb_csa_cursor cursor = finish(p);
    struct alb_csa_frame frame;
    enum alb_drop drop;
    while (alb_csa_next(&cursor, &frame, &drop))
        ;
    return drop;
}

static const struct {
    uint8_t type, op;
    bool has_payload; // of any size
} kinds[] = {
    {ALB_CSA_REQUEST, ALB_CSA_SEND, true},
    {ALB_CSA_REQUEST, ALB_CSA_SEND_IMM, true},
    {ALB_CSA_REQUEST, ALB_CSA_SEND_INV, true},
    {ALB_CSA_REQUEST, ALB_CSA_WRITE, true},
    {ALB_CSA_REQUEST, ALB_CSA_WRITE_IMM, true},
    {ALB_CSA_REQUEST, ALB_CSA_READ, false},
    {ALB_CSA_REQUEST, ALB_CSA_CMP_SWAP, false},
    {ALB_CSA_REQUEST, ALB_CSA_FETCH_ADD, false},
    {ALB_CSA_REQUEST, ALB_CSA_ATOMIC_WRITE, false},
    {ALB_CSA_RESPONSE, ALB_CSA_READ_DATA, true},
    {ALB_CSA_RESPONSE, ALB_CSA_RESULT, false},
    {ALB_CSA_DATAGRAM, ALB_CSA_SEND, true},
    {ALB_CSA_DATAGRAM, ALB_CSA_SEND_IMM, true},
    {ALB_CSA_REQUEST, ALB_CSA_TXN_WRITE, true},
    {ALB_CSA_REQUEST, ALB_CSA_TXN_END, true},
    {ALB_CSA_REQUEST, ALB_CSA_PARTIAL_WRITE, true},
    {ALB_CSA_REQUEST, ALB_CSA_PARTIAL_WRITE_IMM, true},
};

// Fields that the operation does not have are drawn too: they must not show up.
static inline struct alb_csa_segment draw_segment(unsigned kind, uint32_t payload_bytes)
{
    struct alb_csa_segment segment = {
        .op = kinds[kind].op,
        .flags = draw() & (ALB_CSA_SOLICITED | ALB_CSA_REPORT_NOW | ALB_CSA_PROBING | ALB_CSA_XRC),
        .dest_qpn = draw() & ALB_QPN_MASK,
        .psn = draw() & ALB_PSN_MASK,
        .xrc_srqn = draw() & ALB_QPN_MASK,
        .recv_number = (uint32_t)draw(),
        .imm_be = (uint32_t)draw(),
        .invalidate_rkey = (uint32_t)draw(),
        .message = (uint32_t)draw(),
        .va = draw(),
        .rkey = (uint32_t)draw(),
        .acked = draw() & ALB_PSN_MASK,
        .operand = draw(),
        .compare = draw(),
        .request_psn = draw() & ALB_PSN_MASK,
        .original = draw(),
        .qkey = (uint32_t)draw(),
        .src_qpn = draw() & ALB_QPN_MASK,
        .txn = {.number = draw()},
        .txn_mode = (uint32_t)draw(),
    };
    if (!kinds[kind].has_payload) {
        segment.flags |= ALB_CSA_LAST;
        segment.payload_bytes = segment.op == ALB_CSA_ATOMIC_WRITE ? 8 : 0;
        segment.total_bytes = (uint32_t)draw();
        return segment;
    }
    segment.payload_bytes = payload_bytes;
    bool is_last = payload_bytes % 4 || payload_bytes == 0 || (draw() & 1);
    segment.flags |= is_last ? ALB_CSA_LAST : 0;
    segment.index = payload_bytes ? draw() % 1000 : 0;
    // The last one of a message of several may be of any size.
    uint32_t before = segment.index * (is_last ? 1024 : payload_bytes);
    segment.total_bytes = before + payload_bytes + (is_last ? 0 : 1 + draw() % 1000);
    return segment;
}

static inline void assert_request_same(const struct alb_csa_segment *a, const struct alb_csa_segment *b)
{
#define SAME(field) assert_true(a->field == b->field)
    if (a->flags & ALB_CSA_XRC)
        SAME(xrc_srqn);
    switch ((enum alb_csa_op)a->op) {
    case ALB_CSA_WRITE_IMM:
        SAME(va), SAME(rkey), SAME(recv_number), SAME(imm_be);
        break;
    case ALB_CSA_WRITE:
        SAME(va), SAME(rkey);
        break;
    case ALB_CSA_SEND_INV:
        SAME(recv_number), SAME(invalidate_rkey);
        break;
    case ALB_CSA_SEND_IMM:
        SAME(recv_number), SAME(imm_be);
        break;
    case ALB_CSA_SEND:
        SAME(recv_number);
        break;
    case ALB_CSA_CMP_SWAP:
    case ALB_CSA_FETCH_ADD:
        SAME(compare), SAME(operand), SAME(va), SAME(rkey), SAME(acked);
        break;
    case ALB_CSA_ATOMIC_WRITE:
    case ALB_CSA_READ:
        SAME(va), SAME(rkey), SAME(acked);
        break;
    case ALB_CSA_TXN_WRITE:
        SAME(va), SAME(rkey), SAME(txn.number), SAME(txn_mode);
        break;
    case ALB_CSA_TXN_END:
        break;
    case ALB_CSA_PARTIAL_WRITE_IMM:
        SAME(imm_be), SAME(va), SAME(rkey), SAME(message);
        break;
    case ALB_CSA_PARTIAL_WRITE:
        SAME(va), SAME(rkey), SAME(message);
        break;
    default:
        fail();
    }
}

static inline void assert_segment_same(enum alb_csa_type type, const struct alb_csa_segment *a,
                                       const struct alb_csa_segment *b)
{
    SAME(op), SAME(flags), SAME(dest_qpn), SAME(payload_bytes);
    for (uint32_t i = 0; i < b->payload_bytes; i++)
        assert_int_equal(b->payload[i], (uint8_t)(i * 31 + a->psn));
    if (type == ALB_CSA_DATAGRAM) {
        SAME(qkey), SAME(src_qpn);
        if (a->op == ALB_CSA_SEND_IMM)
            SAME(imm_be);
        return;
    }
    SAME(psn), SAME(index), SAME(total_bytes);
    if (type == ALB_CSA_REQUEST) {
        assert_request_same(a, b);
        return;
    }
    SAME(request_psn);
    if (a->op == ALB_CSA_RESULT)
        SAME(original);
}
#undef SAME

static inline struct alb_csa_report draw_report(uint32_t word_count)
{
    struct alb_csa_report report = {
        .is_response = draw() & 1,
        .is_overdue = draw() & 1,
        .is_full = draw() & 1,
        .number = (uint16_t)draw(),
        .syndrome = (uint8_t)draw(),
        .qpn = draw() & ALB_QPN_MASK,
        .cumulative = draw() & ALB_PSN_MASK,
        .page = draw() % ALB_CSA_PAGES_MAX,
        .word_count = word_count,
    };
    for (uint32_t i = 0; i < word_count; i++)
        report.held[i] = draw();
    return report;
}

static inline struct alb_csa_paths draw_paths(uint32_t count)
{
    struct alb_csa_paths paths = {.credit_bytes = (uint32_t)draw(), .share = (uint8_t)draw(), .count = count};
    for (uint32_t i = 0; i < count; i++)
        paths.entries[i] = (struct alb_csa_path_entry){
            .path = (uint8_t)draw(),
            .settled = draw() & ALB_PSN_MASK,
            .echo = (uint32_t)draw(),
            .delay_ns = (uint32_t)draw(),
            .received = (uint32_t)draw(),
            .marked = (uint32_t)draw(),
        };
    return paths;
}

// A packet with one segment, of which the test then spoils something.
static inline struct packet *with_segment(uint8_t op, uint32_t index, uint32_t payload, uint32_t total, uint8_t flags)
{
    struct packet *p = begin();
    struct alb_csa_segment segment = {
        .op = op, .index = index, .payload_bytes = payload, .total_bytes = total, .flags = flags};
    add_segment(p, op < ALB_CSA_READ_DATA ? ALB_CSA_REQUEST : ALB_CSA_RESPONSE, &segment);
    return p;
}
