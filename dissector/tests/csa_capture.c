// SPDX-License-Identifier: BSD-2-Clause
// csa_capture FILE: writes a capture with every kind of CSA frame, and what should not be taken for CSA, and prints
// what a dissector should show: lines of "packet field value". The packets come from the encoder that the engine uses.
#include "dissector/tests/csa_capture.h"

#include "wire/csa.h"
#include "wire/pcap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t value_state = 1;

// A value that is unlike all others, in that many bits.
static uint64_t value(unsigned bits)
{
    value_state ^= value_state >> 12;
    value_state ^= value_state << 25;
    value_state ^= value_state >> 27;
    uint64_t drawn = value_state * 0x2545f4914f6cdd1dull;
    return bits == 64 ? drawn : drawn & ((1ull << bits) - 1);
}

static void expect(const char *field, uint64_t expected)
{
    if (strcmp(field, "type") == 0)
        capture.has_type[expected] = true;
    printf("%u albedo_csa.%s %" PRIu64 "\n", capture.number, field, expected);
}

static void expect_bytes(const char *field, const uint8_t *bytes, uint32_t length)
{
    printf("%u albedo_csa.%s ", capture.number, field);
    for (uint32_t i = 0; i < length; i++)
        printf("%02x", bytes[i]);
    printf("\n");
}

static void begin(void)
{
    const struct alb_csa_header header = {
        .dest_slot = value(8),
        .source_slot = value(8),
        .sequence = value(24),
        .source_epoch = (uint32_t)value(32),
        .destination_epoch = (uint32_t)value(32),
        .timestamp = (uint32_t)value(32),
        .path = (uint8_t)value(6),
        .rtt_code = (uint16_t)value(16),
    };
    capture.number++;
    capture.is_ipv6 = capture.number % 2;
    capture.port = (uint16_t)(ALB_ROCE_PORT + header.dest_slot);
    alb_csa_encode(&header, capture.bytes);
    capture.length = ALB_CSA_OUTER_BYTES;
    expect("version", ALB_CSA_VERSION);
    expect("flags", 0);
    expect("key_id", 0);
    expect("destination_slot", header.dest_slot);
    expect("source_slot", header.source_slot);
    expect("sequence", header.sequence);
    expect("source_epoch", header.source_epoch);
    expect("destination_epoch", header.destination_epoch);
    expect("timestamp", header.timestamp);
    expect("path", header.path);
    expect("rtt_code", header.rtt_code);
    expect("rtt", alb_csa_time_decode(header.rtt_code));
}

// ---- frames ---------------------------------------------------------------------------------------------------------

static struct alb_csa_segment draw_segment(uint8_t op, uint32_t payload_bytes)
{
    return (struct alb_csa_segment){
        .op = op,
        .flags = value(4) & (uint8_t)~ALB_CSA_XRC,
        .dest_qpn = value(24),
        .psn = value(24),
        .payload_bytes = payload_bytes,
        .total_bytes = payload_bytes,
        .xrc_srqn = value(24),
        .recv_number = (uint32_t)value(32),
        .imm_be = (uint32_t)value(32),
        .invalidate_rkey = (uint32_t)value(32),
        .va = value(64),
        .rkey = (uint32_t)value(32),
        .acked = value(24),
        .operand = value(64),
        .compare = value(64),
        .request_psn = value(24),
        .original = value(64),
        .qkey = (uint32_t)value(32),
        .src_qpn = value(24),
        .txn = {.initiator = value(64), .number = value(64)},
        .txn_mode = value(1),
        .digest = {value(64), value(64)},
        .txn_low_water = value(64),
        .message = (uint32_t)value(32),
    };
}

static void add_payload(uint32_t bytes)
{
    uint8_t *at = capture.bytes + capture.length;
    for (uint32_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)value(8);
    if (bytes)
        expect_bytes("payload", at, bytes);
    capture.length += bytes;
}

static void expect_common(enum alb_csa_type type, const struct alb_csa_segment *segment)
{
    expect("type", type);
    expect("op", segment->op);
    expect("payload_bytes", segment->payload_bytes);
    expect("dest_qpn", segment->dest_qpn);
    expect("segment_flags", segment->flags);
    expect("flag.solicited", (segment->flags & ALB_CSA_SOLICITED) != 0);
    if (type != ALB_CSA_DATAGRAM)
        expect("flag.uc", (segment->flags & ALB_CSA_UC) != 0);
}

static void expect_operation(const struct alb_csa_segment *segment)
{
    uint8_t op = segment->op;
    bool is_partial = op == ALB_CSA_PARTIAL_WRITE || op == ALB_CSA_PARTIAL_WRITE_IMM;
    if ((op >= ALB_CSA_WRITE && op <= ALB_CSA_TXN_WRITE) || is_partial) {
        expect("va", segment->va);
        expect("rkey", segment->rkey);
    }
    if (op >= ALB_CSA_READ && op <= ALB_CSA_ATOMIC_WRITE)
        expect("acked", segment->acked);
    if (op == ALB_CSA_CMP_SWAP || op == ALB_CSA_FETCH_ADD) {
        expect("operand", segment->operand);
        expect("compare", segment->compare);
    }
    if (op <= ALB_CSA_SEND_INV || op == ALB_CSA_WRITE_IMM)
        expect("recv_number", segment->recv_number);
    if (op == ALB_CSA_SEND_IMM || op == ALB_CSA_WRITE_IMM || op == ALB_CSA_PARTIAL_WRITE_IMM)
        expect("imm", be32toh(segment->imm_be));
    if (op == ALB_CSA_SEND_INV)
        expect("invalidate_rkey", segment->invalidate_rkey);
    if (op >= ALB_CSA_READ_DATA)
        expect("request_psn", segment->request_psn);
    if (op == ALB_CSA_RESULT)
        expect("original", segment->original);
    if (op == ALB_CSA_TXN_WRITE) {
        expect("txn.number", segment->txn.number);
        expect("txn.mode", segment->txn_mode);
    }
    if (is_partial)
        expect("message", segment->message);
}

static void expect_digest(const struct alb_csa_digest *digest)
{
    uint8_t bytes[16];
    for (uint32_t i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(digest->low >> (56 - 8 * i));
        bytes[8 + i] = (uint8_t)(digest->high >> (56 - 8 * i));
    }
    expect_bytes("txn.digest", bytes, sizeof(bytes));
}

static void expect_id(const struct alb_csa_txn_id *id)
{
    expect("txn.initiator", id->initiator);
    expect("txn.number", id->number);
}

static void add_segment(enum alb_csa_type type, const struct alb_csa_segment *segment)
{
    capture.length += alb_csa_encode_segment(type, segment, capture_place());
    expect_common(type, segment);
    expect("flag.report_now", (segment->flags & ALB_CSA_REPORT_NOW) != 0);
    expect("flag.probing", (segment->flags & ALB_CSA_PROBING) != 0);
    expect("flag.xrc", (segment->flags & ALB_CSA_XRC) != 0);
    expect("flag.last", (segment->flags & ALB_CSA_LAST) != 0);
    expect("psn", segment->psn);
    expect("index", segment->index);
    expect("message_psn", alb_psn_add(segment->psn, -(int32_t)segment->index));
    expect("total_bytes", segment->total_bytes);
    if (segment->flags & ALB_CSA_XRC && type == ALB_CSA_REQUEST)
        expect("xrc_srqn", segment->xrc_srqn);
    expect("flag.reflect", (segment->flags & ALB_CSA_REFLECT) != 0);
    expect_operation(segment);
    if (segment->flags & ALB_CSA_REFLECT) {
        expect_id(&segment->txn);
        expect_digest(&segment->digest);
        expect("txn.low_water", segment->txn_low_water);
    }
    if (segment->payload_bytes)
        expect("offset", alb_csa_segment_offset(segment));
    add_payload(segment->payload_bytes);
}

static void add_datagram(uint8_t op, uint32_t payload_bytes)
{
    struct alb_csa_segment segment = draw_segment(op, payload_bytes);
    segment.flags &= ALB_CSA_SOLICITED;
    capture.length += alb_csa_encode_segment(ALB_CSA_DATAGRAM, &segment, capture_place());
    expect_common(ALB_CSA_DATAGRAM, &segment);
    expect("qkey", segment.qkey);
    expect("src_qpn", segment.src_qpn);
    if (op == ALB_CSA_SEND_IMM)
        expect("imm", be32toh(segment.imm_be));
    add_payload(payload_bytes);
}

static void add_report(uint32_t word_count, uint8_t syndrome)
{
    struct alb_csa_report report = {
        .is_response = word_count % 2,
        .is_overdue = word_count % 2 == 0,
        .is_full = word_count % 3 == 0,
        .number = (uint16_t)value(16),
        .syndrome = syndrome,
        .qpn = value(24),
        .cumulative = value(24),
        .page = value(5),
        .word_count = word_count,
    };
    for (uint32_t i = 0; i < word_count; i++)
        report.held[i] = value(64);
    capture.length += alb_csa_encode_report(&report, capture_place());
    expect("type", ALB_CSA_REPORT);
    expect("response", report.is_response);
    expect("report.overdue", report.is_overdue);
    expect("report.full", report.is_full);
    expect("report.page", report.page);
    expect("report.words", word_count);
    expect("report.syndrome", syndrome);
    expect("report.qpn", report.qpn);
    expect("report.number", report.number);
    expect("report.cumulative", report.cumulative);
    for (uint32_t i = 0; i < word_count; i++)
        expect("report.bitmap", report.held[i]);
}

static void add_held(void)
{
    // Bits 1, 2, 3, 63, 64 and 70: a run, and one over the edge of a word, and of the numbers.
    struct alb_csa_report report = {.cumulative = 0xffffc0, .word_count = 2, .held = {0x800000000000000e, 0x41}};
    capture.length += alb_csa_encode_report(&report, capture_place());
    printf("%u albedo_csa.report.held 16777153-16777155, 16777215-0, 6\n", capture.number);
}

static void add_held_on_a_page(void)
{
    struct alb_csa_report report = {.cumulative = 100, .page = 2, .word_count = 1, .held = {0x5}};
    capture.length += alb_csa_encode_report(&report, capture_place());
    printf("%u albedo_csa.report.held 4196, 4198\n", capture.number);
}

static void add_holds(uint32_t word_count, bool is_question, bool is_complete)
{
    struct alb_csa_holds holds = {
        .is_question = is_question,
        .is_complete = is_complete,
        .dest_qpn = value(24),
        .message = (uint32_t)value(32),
        .first = (uint32_t)value(16) * 64,
        .word_count = word_count,
    };
    for (uint32_t i = 0; i < word_count; i++)
        holds.held[i] = value(64);
    capture.length += alb_csa_encode_holds(&holds, capture_place());
    expect("type", ALB_CSA_HOLDS);
    expect("holds.question", is_question);
    expect("holds.complete", is_complete);
    expect("holds.words", word_count);
    expect("dest_qpn", holds.dest_qpn);
    expect("message", holds.message);
    expect("holds.first", holds.first);
    for (uint32_t i = 0; i < word_count; i++)
        expect("holds.bitmap", holds.held[i]);
}

static void add_segments_held(void)
{
    struct alb_csa_holds holds = {.first = 1 << 24, .word_count = 1, .held = {0x1d}};
    capture.length += alb_csa_encode_holds(&holds, capture_place());
    printf("%u albedo_csa.holds.held 16777216, 16777218-16777220\n", capture.number);
}

static void add_paths(uint32_t count, uint32_t credit_bytes, bool has_more)
{
    struct alb_csa_paths paths = {
        .credit_bytes = credit_bytes, .first = (uint8_t)value(5), .has_more = has_more, .count = count};
    expect("type", ALB_CSA_PATHS);
    expect("paths.more", has_more);
    expect("paths.first", paths.first);
    expect("paths.entries", count);
    paths.share = (uint8_t)value(8);
    expect("paths.share", paths.share);
    expect("paths.credit", credit_bytes);
    for (uint32_t i = 0; i < count; i++) {
        struct alb_csa_path_entry *entry = &paths.entries[i];
        *entry = (struct alb_csa_path_entry){
            .path = (uint8_t)value(6),
            .settled = value(24),
            .echo = (uint32_t)value(32),
            .delay_ns = (uint32_t)value(32),
            .received = (uint32_t)value(32),
            .marked = (uint32_t)value(32),
        };
        expect("paths.path", entry->path);
        expect("paths.settled", entry->settled);
        expect("paths.echo", entry->echo);
        expect("paths.delay", entry->delay_ns);
        expect("paths.received", entry->received);
        expect("paths.marked", entry->marked);
    }
    capture.length += alb_csa_encode_paths(&paths, capture_place());
}

static void add_short(void)
{
    static const uint8_t cookie[ALB_CSA_COOKIE_BYTES] = {0xc0, 0x0c, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    const struct alb_csa_probe probe = {.is_response = true, .dest_qpn = value(24), .next = value(24)};
    const struct alb_csa_trimmed trimmed = {
        .is_response = true, .dest_qpn = value(24), .psn = value(24), .path = (uint8_t)value(6), .sequence = value(24)};
    uint32_t epoch = (uint32_t)value(32);
    capture.length += alb_csa_encode_probe(&probe, capture_place());
    expect("response", 1);
    expect("dest_qpn", probe.dest_qpn);
    expect("probe.next", probe.next);
    capture.length += alb_csa_encode_ping(21, capture_place());
    memset(capture.bytes + capture.length, 0, 21);
    capture.length += 21;
    expect("ping.padding", 21);
    capture.length += alb_csa_encode_pong(8972, capture_place());
    expect("pong.bytes", 8972);
    capture.length += alb_csa_encode_reset(ALB_CSA_RESET_UNKNOWN, epoch, capture_place());
    expect("reset.reason", ALB_CSA_RESET_UNKNOWN);
    expect("reset.epoch", epoch);
    capture.length += alb_csa_encode_hello(NULL, capture_place());
    expect("cookie_bytes", 0);
    capture.length += alb_csa_encode_hello(cookie, capture_place());
    expect("cookie_bytes", sizeof(cookie));
    expect_bytes("cookie", cookie, sizeof(cookie));
    capture.length += alb_csa_encode_cookie(cookie, capture_place());
    expect("cookie_bytes", sizeof(cookie));
    expect_bytes("cookie", cookie, sizeof(cookie));
    capture.length += alb_csa_encode_cnp(capture_place());
    capture.length += alb_csa_encode_trimmed(&trimmed, capture_place());
    expect("type", ALB_CSA_TRIMMED);
    expect("response", 1);
    expect("trimmed.path", trimmed.path);
    expect("dest_qpn", trimmed.dest_qpn);
    expect("psn", trimmed.psn);
    expect("trimmed.sequence", trimmed.sequence);
    for (unsigned type = ALB_CSA_PROBE; type <= ALB_CSA_CNP; type++)
        expect("type", type);
    expect("type", ALB_CSA_HELLO);
}

static void add_reflection(void)
{
    const struct alb_csa_txn txn = {
        .command = ALB_CSA_TXN_COMMIT,
        .dest_qpn = value(24),
        .id = {value(64), value(64)},
        .keeper = value(64),
        .low_water = value(64),
    };
    const struct alb_csa_verdict verdict = {
        .state = ALB_CSA_VERDICT_COMMITTED,
        .reason = value(4),
        .dest_qpn = value(24),
        .id = {value(64), value(64)},
        .keeper = value(64),
        .digest = {value(64), value(64)},
        .placed_at = value(64),
        .decided_at = value(64),
        .visible_at = value(64),
        .now = value(64),
    };
    capture.length += alb_csa_encode_txn(&txn, capture_place());
    expect("type", ALB_CSA_TXN);
    expect("txn.command", txn.command);
    expect("dest_qpn", txn.dest_qpn);
    expect_id(&txn.id);
    expect("txn.keeper", txn.keeper);
    expect("txn.low_water", txn.low_water);
    capture.length += alb_csa_encode_verdict(&verdict, capture_place());
    expect("type", ALB_CSA_VERDICT);
    expect("verdict.state", verdict.state);
    expect("verdict.reason", verdict.reason);
    expect("dest_qpn", verdict.dest_qpn);
    expect_id(&verdict.id);
    expect("txn.keeper", verdict.keeper);
    expect_digest(&verdict.digest);
    expect("verdict.placed", verdict.placed_at);
    expect("verdict.decided", verdict.decided_at);
    expect("verdict.visible", verdict.visible_at);
    expect("verdict.now", verdict.now);
}

static void add_proposal(void)
{
    const struct alb_csa_proposal proposal = {
        .id = {value(64), value(64)},
        .low_water = value(64),
        .digest = {value(64), value(64)},
        .bytes = value(64),
        .lease_us = (uint32_t)value(32),
        .part_count = (uint32_t)value(32),
        .imm_be = (uint32_t)value(32),
        .notifies = true,
        .level = 3,
        .is_solicited = true,
        .compare_count = 2,
        .compares = {{value(64), value(64), value(64), (uint32_t)value(32)},
                     {value(64), value(64), value(64), (uint32_t)value(32)}},
    };
    uint8_t payload[ALB_CSA_PROPOSAL_BYTES_MAX];
    struct alb_csa_segment segment = draw_segment(ALB_CSA_TXN_END, alb_csa_encode_proposal(&proposal, payload));
    segment.flags = ALB_CSA_LAST;
    capture.length += alb_csa_encode_segment(ALB_CSA_REQUEST, &segment, capture_place());
    expect("type", ALB_CSA_REQUEST);
    expect("dest_qpn", segment.dest_qpn);
    memcpy(capture.bytes + capture.length, payload, segment.payload_bytes);
    capture.length += segment.payload_bytes;
    expect_id(&proposal.id);
    expect_digest(&proposal.digest);
    expect("txn.low_water", proposal.low_water);
    expect("txn.bytes", proposal.bytes);
    expect("txn.lease", proposal.lease_us);
    expect("txn.parts", proposal.part_count);
    expect("imm", be32toh(proposal.imm_be));
    expect("txn.flags", 6);
    expect("txn.in_place", 0);
    expect("txn.notify", 1);
    expect("txn.solicited", 1);
    expect("txn.compares", 2);
    for (uint32_t i = 0; i < proposal.compare_count; i++) {
        expect("txn.compare.va", proposal.compares[i].va);
        expect("txn.compare.rkey", proposal.compares[i].rkey);
        expect("txn.compare.expected", proposal.compares[i].expected);
        expect("txn.compare.mask", proposal.compares[i].mask);
    }
    expect("txn.level", 3);
}

// ---- packets --------------------------------------------------------------------------------------------------------

static void segments(void)
{
    static const uint8_t with_payload[] = {ALB_CSA_SEND,      ALB_CSA_SEND_IMM,      ALB_CSA_SEND_INV,
                                           ALB_CSA_WRITE,     ALB_CSA_WRITE_IMM,     ALB_CSA_READ_DATA,
                                           ALB_CSA_TXN_WRITE, ALB_CSA_PARTIAL_WRITE, ALB_CSA_PARTIAL_WRITE_IMM};
    static const uint8_t single[] = {ALB_CSA_READ, ALB_CSA_CMP_SWAP, ALB_CSA_FETCH_ADD, ALB_CSA_ATOMIC_WRITE,
                                     ALB_CSA_RESULT};
    for (unsigned i = 0; i < ALB_COUNT(with_payload); i++) {
        enum alb_csa_type type = with_payload[i] == ALB_CSA_READ_DATA ? ALB_CSA_RESPONSE : ALB_CSA_REQUEST;
        begin();
        struct alb_csa_segment segment = draw_segment(with_payload[i], 13 + i);
        segment.flags |= ALB_CSA_LAST;
        segment.index = 3;
        segment.total_bytes = 3000 + segment.payload_bytes;
        add_segment(type, &segment);
        segment = draw_segment(with_payload[i], 64);
        segment.index = 0x010203;
        segment.total_bytes = (segment.index + 1) * 64 + 1;
        add_segment(type, &segment);
        segment = draw_segment(with_payload[i], 0);
        segment.flags |= ALB_CSA_LAST | ALB_CSA_XRC | ALB_CSA_UC;
        add_segment(type, &segment);
        capture_end();
    }
    for (unsigned i = 0; i < ALB_COUNT(single); i++) {
        begin();
        struct alb_csa_segment segment = draw_segment(single[i], single[i] == ALB_CSA_ATOMIC_WRITE ? 8 : 0);
        segment.flags |= ALB_CSA_LAST;
        segment.total_bytes = single[i] == ALB_CSA_READ ? 123456 : segment.payload_bytes;
        add_segment(single[i] == ALB_CSA_RESULT ? ALB_CSA_RESPONSE : ALB_CSA_REQUEST, &segment);
        capture_end();
    }
}

static void others(void)
{
    begin();
    add_datagram(ALB_CSA_SEND, 5);
    add_datagram(ALB_CSA_SEND_IMM, 0);
    capture_end();
    begin();
    add_report(0, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
    add_report(1, ALB_AETH_SYNDROME_RNR(12));
    add_report(ALB_CSA_BITMAP_WORDS, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
    capture_end();
    begin();
    add_held();
    capture_end();
    begin();
    add_held_on_a_page();
    capture_end();
    begin();
    add_holds(0, true, false);
    add_holds(0, false, true);
    add_holds(ALB_CSA_BITMAP_WORDS, false, false);
    capture_end();
    begin();
    add_segments_held();
    capture_end();
    begin();
    add_paths(0, ALB_CSA_CREDIT_NONE, false);
    add_paths(3, 1 << 20, true);
    capture_end();
    begin();
    add_short();
    capture_end();
    begin();
    add_reflection();
    add_proposal();
    capture_end();
    begin();
    struct alb_csa_segment reflected = draw_segment(ALB_CSA_WRITE_IMM, 9);
    reflected.flags = ALB_CSA_LAST | ALB_CSA_REFLECT;
    add_segment(ALB_CSA_REQUEST, &reflected);
    capture_end();
}

int main(int argc, char **argv)
{
    uint8_t header[ALB_PCAP_FILE_HEADER_BYTES];
    capture.file = argc == 2 ? fopen(argv[1], "wb") : NULL;
    if (!capture.file) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    alb_pcap_file_header(header);
    fwrite(header, sizeof(header), 1, capture.file);
    segments();
    others();
    csa_capture_bad();
    csa_capture_others();
    for (unsigned type = 0; type <= UINT8_MAX; type++)
        alb_assert(capture.has_type[type] == (alb_csa_type_name((uint8_t)type) != NULL));
    return fclose(capture.file) == 0 ? 0 : 1;
}
