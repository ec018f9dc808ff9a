// SPDX-License-Identifier: BSD-2-Clause
// Decoding CSA packets, frame by frame. What was understood is encoded again and must give the same bytes, but for
// reserved bits.
//
// Input: a UDP payload without its ICRC. A header that is not one of CSA is replaced, so that the frames are reached.
#include "fuzz/fuzz.h"

#include "wire/bytes.h"
#include "wire/csa.h"
#include "wire/icrc.h"

#include <stdlib.h>

// Clears the high byte of a field of 24 bits that is not where it begins for every frame.
static void clear_high_byte(uint8_t *frame, uint32_t offset)
{
    frame[offset] = 0;
}

static void clear_segment(uint8_t *frame, const struct alb_csa_segment *segment, enum alb_csa_type type)
{
    frame[15] = 0;
    if (type == ALB_CSA_DATAGRAM)
        return;
    frame[11] = 0;
    uint32_t fields = 20;
    if (type == ALB_CSA_REQUEST && segment->flags & ALB_CSA_XRC) {
        clear_high_byte(frame, fields);
        fields += 4;
    }
    if (type == ALB_CSA_RESPONSE)
        clear_high_byte(frame, fields);
    if (segment->op >= ALB_CSA_READ && segment->op <= ALB_CSA_ATOMIC_WRITE)
        clear_high_byte(frame, fields + 12);
}

// Clears the bits of a copied frame that no field stands for.
static void clear_reserved(uint8_t *frame, const struct alb_csa_frame *decoded)
{
    switch (decoded->type) {
    case ALB_CSA_REQUEST:
    case ALB_CSA_RESPONSE:
    case ALB_CSA_DATAGRAM:
        clear_segment(frame, &decoded->segment, decoded->type);
        break;
    case ALB_CSA_REPORT:
    case ALB_CSA_PATHS:
        break;
    case ALB_CSA_PROBE:
        frame[1] &= 1;
        frame[2] = frame[3] = frame[7] = frame[11] = 0;
        break;
    case ALB_CSA_RESET:
    case ALB_CSA_CNP:
        frame[2] = frame[3] = 0;
        if (decoded->type == ALB_CSA_CNP)
            frame[1] = 0;
        break;
    case ALB_CSA_HELLO:
        if (!decoded->hello.has_cookie)
            memset(frame + 4, 0, ALB_CSA_COOKIE_BYTES);
        frame[1] = 0;
        break;
    case ALB_CSA_COOKIE:
    case ALB_CSA_PING:
    case ALB_CSA_PONG:
        frame[1] = 0;
        break;
    case ALB_CSA_TXN:
        frame[2] = frame[3] = frame[7] = 0;
        break;
    case ALB_CSA_HOLDS:
        frame[1] &= 3;
        frame[3] = frame[7] = 0;
        break;
    case ALB_CSA_TRIMMED:
        frame[1] &= 1;
        frame[3] = frame[7] = frame[11] = frame[15] = 0;
        break;
    case ALB_CSA_VERDICT:
        frame[3] = frame[7] = 0;
        break;
    }
}

static uint32_t encode(const struct alb_csa_frame *frame, uint8_t *out)
{
    switch (frame->type) {
    case ALB_CSA_REQUEST:
    case ALB_CSA_RESPONSE:
    case ALB_CSA_DATAGRAM:
        return alb_csa_encode_segment(frame->type, &frame->segment, out);
    case ALB_CSA_REPORT:
        return alb_csa_encode_report(&frame->report, out);
    case ALB_CSA_PATHS:
        return alb_csa_encode_paths(&frame->paths, out);
    case ALB_CSA_PROBE:
        return alb_csa_encode_probe(&frame->probe, out);
    case ALB_CSA_PING:
        return alb_csa_encode_ping(frame->ping_padding, out);
    case ALB_CSA_PONG:
        return alb_csa_encode_pong(frame->pong_bytes, out);
    case ALB_CSA_RESET:
        return alb_csa_encode_reset((enum alb_csa_reset_reason)frame->reset.reason, frame->reset.epoch, out);
    case ALB_CSA_HELLO:
        return alb_csa_encode_hello(frame->hello.has_cookie ? frame->hello.cookie : NULL, out);
    case ALB_CSA_COOKIE:
        return alb_csa_encode_cookie(frame->hello.cookie, out);
    case ALB_CSA_CNP:
        return alb_csa_encode_cnp(out);
    case ALB_CSA_TXN:
        return alb_csa_encode_txn(&frame->txn, out);
    case ALB_CSA_HOLDS:
        return alb_csa_encode_holds(&frame->holds, out);
    case ALB_CSA_TRIMMED:
        return alb_csa_encode_trimmed(&frame->trimmed, out);
    case ALB_CSA_VERDICT:
        return alb_csa_encode_verdict(&frame->verdict, out);
    }
    abort();
}

static void check_frame(const struct alb_csa_frame *frame, const uint8_t *at, const uint8_t *past)
{
    uint8_t encoded[8 + 20 * ALB_CSA_PATHS_ENTRIES], expected[sizeof(encoded)];
    uint32_t bytes = encode(frame, encoded);
    uint32_t payload_bytes = 0;
    if (frame->type <= ALB_CSA_DATAGRAM) {
        payload_bytes = frame->segment.payload_bytes;
        alb_assert(frame->segment.payload == at + bytes);
        if (frame->type != ALB_CSA_DATAGRAM && payload_bytes && frame->segment.op != ALB_CSA_ATOMIC_WRITE)
            alb_assert(alb_csa_segment_offset(&frame->segment) <= frame->segment.total_bytes - payload_bytes);
    } else if (frame->type == ALB_CSA_PING) {
        payload_bytes = frame->ping_padding;
    }
    alb_assert(bytes <= sizeof(encoded) && at + bytes + payload_bytes <= past);
    alb_assert(past - (at + bytes + payload_bytes) < 4);
    memcpy(expected, at, bytes);
    clear_reserved(expected, frame);
    alb_assert(memcmp(encoded, expected, bytes) == 0);
}

// The beginning of a packet that is understood whole says the same by itself.
static void check_trimmed(const uint8_t *bytes, uint32_t length)
{
    struct alb_csa_header header, left_header = {0};
    struct alb_csa_cursor cursor;
    struct alb_csa_frame frame;
    struct alb_csa_trimmed trimmed;
    enum alb_drop drop;
    uint32_t left = ALB_MIN(length, (uint32_t)ALB_CSA_TRIMMED_BYTES);
    if (!alb_csa_is_packet(bytes, length))
        return;
    bool is_good = alb_csa_decode_trimmed(bytes, left, &left_header, &trimmed) == ALB_DROP_NONE;
    if (alb_csa_decode(bytes, length, &header, &cursor) != ALB_DROP_NONE || !alb_csa_next(&cursor, &frame, &drop))
        return;
    alb_assert(is_good == (frame.type == ALB_CSA_REQUEST || frame.type == ALB_CSA_RESPONSE));
    if (!is_good)
        return;
    alb_assert(trimmed.is_response == (frame.type == ALB_CSA_RESPONSE) && trimmed.index == frame.segment.index);
    alb_assert(trimmed.dest_qpn == frame.segment.dest_qpn && trimmed.psn == frame.segment.psn);
    alb_assert(trimmed.path == header.path && trimmed.sequence == header.sequence);
    alb_assert(left_header.source_epoch == header.source_epoch);
}

static void check_packet(const uint8_t *bytes, uint32_t length)
{
    struct alb_csa_header header;
    struct alb_csa_cursor cursor;
    struct alb_csa_frame frame;
    enum alb_drop drop;
    if (!alb_csa_is_packet(bytes, length) || alb_csa_decode(bytes, length, &header, &cursor) != ALB_DROP_NONE)
        return;
    for (const uint8_t *at = cursor.at; alb_csa_next(&cursor, &frame, &drop); at = cursor.at) {
        alb_assert(cursor.at > at && cursor.at <= cursor.end && cursor.end <= bytes + length);
        check_frame(&frame, at, cursor.at);
    }
    alb_assert((drop == ALB_DROP_NONE) == (cursor.at == cursor.end));
}

// Sealed as a sender would, every datagram has a good ICRC.
static void check_icrc(uint8_t *bytes, uint32_t length)
{
    struct alb_datagram datagram = {.peer.port = 1, .local.port = 2, .bytes = bytes, .length = length};
    struct alb_icrc_flow flow = {0};
    if (length % 4 || length < ALB_BTH_BYTES + ALB_ICRC_BYTES || length > ALB_ICRC_UDP_MAX) {
        alb_assert(!alb_icrc_check_ones(&flow, &datagram));
        return;
    }
    alb_icrc_check_ones(&flow, &datagram);
    struct alb_segment segment = {.iov_count = 1, .length = length};
    struct iovec iov = {.iov_base = bytes, .iov_len = length};
    struct alb_tx tx = {.segments = &segment, .iov = &iov};
    struct alb_burst burst = {.peer = datagram.local, .segment_count = 1, .segment_bytes = length};
    alb_icrc_seal(&flow, &tx, &burst, &datagram.peer, ALB_ICRC_IDENT_ONES);
    alb_assert(alb_icrc_check_ones(&flow, &datagram));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > UINT16_MAX)
        return 0;
    uint32_t length = (uint32_t)size;
    check_packet(data, length);
    check_trimmed(data, length);
    uint8_t *copy = malloc(size ? size : 1); // as long as it is, so that a sanitizer sees what is read behind it
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    if (length >= ALB_CSA_OUTER_BYTES) {
        uint8_t pad = copy[1] >> 4 & 3;
        alb_csa_encode(&(struct alb_csa_header){.source_epoch = 1}, copy);
        alb_csa_set_pad(copy, pad);
        check_packet(copy, length);
        check_trimmed(copy, length);
    }
    check_icrc(copy, length);
    free(copy);
    return 0;
}
