// SPDX-License-Identifier: BSD-2-Clause
// What a dissector should find bad: what an engine drops for what it says itself.
#include "dissector/tests/csa_capture.h"

#include "wire/csa.h"
#include "wire/datagram.h"

// A packet whose outside is as it should be, and not looked at.
static void begin_bad(void)
{
    const struct alb_csa_header header = {.dest_slot = 5, .source_slot = 7, .source_epoch = 1};
    capture.number++;
    capture.is_ipv6 = false;
    capture.port = ALB_ROCE_PORT + 5;
    alb_csa_encode(&header, capture.bytes);
    capture.length = ALB_CSA_OUTER_BYTES;
}

static void end_bad(void)
{
    capture_end();
    printf("%u bad\n", capture.number);
}

static void put_segment(const struct alb_csa_segment *segment)
{
    capture.length += alb_csa_encode_segment(ALB_CSA_REQUEST, segment, capture_place());
    memset(capture.bytes + capture.length, 0, segment->payload_bytes);
    capture.length += segment->payload_bytes;
}

static void bad_segments(void)
{
    static const struct alb_csa_segment segments[] = {
        // The last one has more than the message, all of it though others precede it, or nothing.
        {.op = ALB_CSA_WRITE, .flags = ALB_CSA_LAST, .index = 1, .payload_bytes = 8, .total_bytes = 4},
        {.op = ALB_CSA_WRITE, .flags = ALB_CSA_LAST, .index = 1, .payload_bytes = 8, .total_bytes = 8},
        {.op = ALB_CSA_WRITE, .flags = ALB_CSA_LAST, .index = 1, .total_bytes = 8},
        // The only one is not the message.
        {.op = ALB_CSA_WRITE, .flags = ALB_CSA_LAST, .payload_bytes = 8, .total_bytes = 60},
        // One that is not the last lies behind 2^32, behind the message, or ends it; is no multiple of four; or empty.
        {.op = ALB_CSA_WRITE, .index = 0xffffff, .payload_bytes = 1024, .total_bytes = UINT32_MAX},
        {.op = ALB_CSA_WRITE, .index = 5, .payload_bytes = 8, .total_bytes = 16},
        {.op = ALB_CSA_WRITE, .index = 1, .payload_bytes = 8, .total_bytes = 16},
        {.op = ALB_CSA_WRITE, .payload_bytes = 6, .total_bytes = 60},
        {.op = ALB_CSA_WRITE, .total_bytes = 60},
        // What is one segment has another payload, an index, or no end.
        {.op = ALB_CSA_READ, .flags = ALB_CSA_LAST, .payload_bytes = 4, .total_bytes = 60},
        {.op = ALB_CSA_READ, .flags = ALB_CSA_LAST, .index = 1, .total_bytes = 60},
        {.op = ALB_CSA_READ, .total_bytes = 60},
        {.op = ALB_CSA_FETCH_ADD, .flags = ALB_CSA_LAST, .payload_bytes = 8, .total_bytes = 8},
        {.op = ALB_CSA_ATOMIC_WRITE, .flags = ALB_CSA_LAST, .payload_bytes = 4, .total_bytes = 8},
        // A verdict is asked for before the end, or of a READ.
        {.op = ALB_CSA_WRITE, .flags = ALB_CSA_REFLECT, .payload_bytes = 8, .total_bytes = 60},
        {.op = ALB_CSA_READ, .flags = ALB_CSA_LAST | ALB_CSA_REFLECT, .total_bytes = 60},
        // The zeros are the proposal: too short, or with a word to compare that it does not count.
        {.op = ALB_CSA_TXN_END, .flags = ALB_CSA_LAST, .payload_bytes = 8, .total_bytes = 8},
        {.op = ALB_CSA_TXN_END, .flags = ALB_CSA_LAST, .payload_bytes = 96, .total_bytes = 96},
    };
    for (unsigned i = 0; i < ALB_COUNT(segments); i++) {
        begin_bad();
        put_segment(&segments[i]);
        end_bad();
    }
}

static void bad_proposal(uint32_t length, uint8_t compare_count)
{
    const struct alb_csa_segment segment = {
        .op = ALB_CSA_TXN_END, .flags = ALB_CSA_LAST, .payload_bytes = length, .total_bytes = length};
    begin_bad();
    put_segment(&segment);
    capture.bytes[capture.length - length + 61] = compare_count;
    end_bad();
}

static void bad_commands(void)
{
    const struct alb_csa_txn txn = {.command = 9};
    const struct alb_csa_verdict verdict = {.state = 9};
    begin_bad();
    capture.length += alb_csa_encode_txn(&txn, capture_place());
    end_bad();
    begin_bad();
    capture.length += alb_csa_encode_verdict(&verdict, capture_place());
    end_bad();
}

static void bad_outsides(void)
{
    static const struct {
        uint32_t at;
        uint8_t byte;
    } changes[] = {
        {1, 1},                                               // version of the BTH
        {ALB_BTH_BYTES + 7, 5},                               // source QPN
        {ALB_CSA_OUTER_BYTES - ALB_CSA_HEADER_BYTES, 2 << 4}, // version
        {ALB_CSA_OUTER_BYTES - ALB_CSA_HEADER_BYTES + 1, 1},  // flags
        {ALB_CSA_OUTER_BYTES - ALB_CSA_HEADER_BYTES + 7, 0},  // source epoch, which was 1
    };
    for (unsigned i = 0; i < ALB_COUNT(changes); i++) {
        begin_bad();
        capture.bytes[changes[i].at] = changes[i].byte;
        capture.length += alb_csa_encode_cnp(capture_place());
        end_bad();
    }
}

static void bad_lengths(void)
{
    begin_bad(); // pad without frames
    alb_csa_set_pad(capture.bytes, 3);
    capture_write_sealed();
    printf("%u bad\n", capture.number);
    begin_bad(); // a frame behind which one zero is missing
    capture.length += alb_csa_encode_ping(1, capture_place());
    memset(capture.bytes + capture.length, 0, 4);
    capture.length += 4;
    alb_csa_set_pad(capture.bytes, 1);
    capture_write_sealed();
    printf("%u bad\n", capture.number);
    begin_bad(); // no multiple of four
    capture.length += alb_csa_encode_ping(2, capture_place());
    memset(capture.bytes + capture.length, 0, 2);
    capture.length += 2;
    capture_write_sealed();
    printf("%u bad\n", capture.number);
}

// A type that is none, and a payload that ends behind the packet.
static void bad_frames(void)
{
    const struct alb_csa_segment segment = {
        .op = ALB_CSA_SEND, .flags = ALB_CSA_LAST, .payload_bytes = 64, .total_bytes = 64};
    begin_bad();
    memset(capture.bytes + capture.length, 0, 4);
    capture.bytes[capture.length] = 0x7f;
    capture.length += 4;
    end_bad();
    begin_bad();
    capture.length += alb_csa_encode_segment(ALB_CSA_REQUEST, &segment, capture_place());
    end_bad();
}

void csa_capture_bad(void)
{
    bad_frames();
    bad_segments();
    bad_proposal(ALB_CSA_PROPOSAL_BYTES, 1);
    bad_proposal(ALB_CSA_PROPOSAL_BYTES + 9 * ALB_CSA_COMPARE_BYTES, 9);
    bad_commands();
    bad_outsides();
    bad_lengths();
}
