// SPDX-License-Identifier: BSD-2-Clause
// The frames by which two engines keep each other informed: what streams and paths have received, and questions.
#include "wire/bytes.h"
#include "wire/csa_frame.h"

#define REPORT_BYTES 12
#define PATHS_BYTES  8
#define ENTRY_BYTES  20 // of PATHS
#define PROBE_BYTES  12
#define PING_BYTES   4
#define PONG_BYTES   4
#define RESET_BYTES  8
#define HELLO_BYTES  (4 + ALB_CSA_COOKIE_BYTES) // COOKIE too
#define CNP_BYTES    4

#define HOLDS_BYTES   16
#define TRIMMED_BYTES 16

#define FLAG_RESPONSE 1 // of REPORT, PROBE and TRIMMED
#define FLAG_OVERDUE  2
#define FLAG_FULL     4
#define PAGE_SHIFT    3 // of REPORT: the page is in the upper five bits
#define FLAG_QUESTION 1 // of HOLDS
#define FLAG_COMPLETE 2

enum alb_drop alb_csa_decode_report(const uint8_t *p, uint32_t length, struct alb_csa_report *out, uint32_t *taken)
{
    uint32_t word_count = p[2];
    if (alb_unlikely(word_count > ALB_CSA_BITMAP_WORDS))
        return ALB_DROP_BAD_LENGTH;
    *taken = alb_csa_report_bytes(word_count);
    if (alb_unlikely(length < *taken))
        return ALB_DROP_TRUNCATED;
    out->is_response = p[1] & FLAG_RESPONSE;
    out->is_overdue = p[1] & FLAG_OVERDUE;
    out->is_full = p[1] & FLAG_FULL;
    out->page = p[1] >> PAGE_SHIFT;
    out->word_count = word_count;
    out->syndrome = p[3];
    out->qpn = alb_get_be32(p + 4) >> 8;
    out->number = (uint16_t)(p[7] | p[11] << 8);
    out->cumulative = alb_get_be32(p + 8) >> 8;
    for (uint32_t i = 0; i < word_count; i++)
        out->held[i] = alb_get_be64(p + REPORT_BYTES + 8 * i);
    return ALB_DROP_NONE;
}

uint32_t alb_csa_encode_report(const struct alb_csa_report *report, uint8_t *out)
{
    alb_assert(report->word_count <= ALB_CSA_BITMAP_WORDS && report->page < ALB_CSA_PAGES_MAX);
    out[0] = ALB_CSA_REPORT;
    out[1] = (uint8_t)((report->is_response ? FLAG_RESPONSE : 0) | (report->is_overdue ? FLAG_OVERDUE : 0) |
                       (report->is_full ? FLAG_FULL : 0) | report->page << PAGE_SHIFT);
    out[2] = (uint8_t)report->word_count;
    out[3] = report->syndrome;
    alb_put_be32(out + 4, report->qpn << 8 | (report->number & 0xff));
    alb_put_be32(out + 8, report->cumulative << 8 | report->number >> 8);
    for (uint32_t i = 0; i < report->word_count; i++)
        alb_put_be64(out + REPORT_BYTES + 8 * i, report->held[i]);
    return alb_csa_report_bytes(report->word_count);
}

enum alb_drop alb_csa_decode_holds(const uint8_t *p, uint32_t length, struct alb_csa_holds *out, uint32_t *taken)
{
    uint32_t word_count = p[2];
    if (alb_unlikely(word_count > ALB_CSA_BITMAP_WORDS))
        return ALB_DROP_BAD_LENGTH;
    *taken = alb_csa_holds_bytes(word_count);
    if (alb_unlikely(length < *taken))
        return ALB_DROP_TRUNCATED;
    out->is_question = p[1] & FLAG_QUESTION;
    out->is_complete = p[1] & FLAG_COMPLETE;
    out->word_count = word_count;
    out->dest_qpn = alb_get_be24(p + 4);
    out->message = alb_get_be32(p + 8);
    out->first = alb_get_be32(p + 12);
    for (uint32_t i = 0; i < word_count; i++)
        out->held[i] = alb_get_be64(p + HOLDS_BYTES + 8 * i);
    return ALB_DROP_NONE;
}

uint32_t alb_csa_encode_holds(const struct alb_csa_holds *holds, uint8_t *out)
{
    alb_assert(holds->word_count <= ALB_CSA_BITMAP_WORDS);
    uint8_t flags = (uint8_t)((holds->is_question ? FLAG_QUESTION : 0) | (holds->is_complete ? FLAG_COMPLETE : 0));
    alb_put_be32(out, (uint32_t)ALB_CSA_HOLDS << 24 | (uint32_t)flags << 16 | holds->word_count << 8);
    alb_put_be32(out + 4, holds->dest_qpn << 8);
    alb_put_be32(out + 8, holds->message);
    alb_put_be32(out + 12, holds->first);
    for (uint32_t i = 0; i < holds->word_count; i++)
        alb_put_be64(out + HOLDS_BYTES + 8 * i, holds->held[i]);
    return alb_csa_holds_bytes(holds->word_count);
}

enum alb_drop alb_csa_decode_paths(const uint8_t *p, uint32_t length, struct alb_csa_paths *out, uint32_t *taken)
{
    uint32_t count = alb_csa_paths_count(p[1]);
    bool has_more = p[1] & ALB_CSA_PATHS_MORE;
    if (alb_unlikely(count > ALB_CSA_PATHS_ENTRIES || (has_more && count == 0)))
        return ALB_DROP_BAD_LENGTH;
    *taken = alb_csa_paths_bytes(count);
    if (alb_unlikely(length < *taken))
        return ALB_DROP_TRUNCATED;
    out->count = count;
    out->share = p[2];
    out->first = p[3];
    out->has_more = has_more;
    out->credit_bytes = alb_get_be32(p + 4);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *entry = p + PATHS_BYTES + ENTRY_BYTES * i;
        out->entries[i] = (struct alb_csa_path_entry){
            .path = entry[0],
            .settled = alb_get_be32(entry) & ALB_PSN_MASK,
            .echo = alb_get_be32(entry + 4),
            .delay_ns = alb_get_be32(entry + 8),
            .received = alb_get_be32(entry + 12),
            .marked = alb_get_be32(entry + 16),
        };
    }
    return ALB_DROP_NONE;
}

uint32_t alb_csa_encode_paths(const struct alb_csa_paths *paths, uint8_t *out)
{
    alb_assert(paths->count <= ALB_CSA_PATHS_ENTRIES && (paths->count > 0 || !paths->has_more));
    uint32_t entries = paths->count | (paths->has_more ? ALB_CSA_PATHS_MORE : 0);
    alb_put_be32(out, (uint32_t)ALB_CSA_PATHS << 24 | entries << 16 | (uint32_t)paths->share << 8 | paths->first);
    alb_put_be32(out + 4, paths->credit_bytes);
    for (uint32_t i = 0; i < paths->count; i++) {
        const struct alb_csa_path_entry *entry = &paths->entries[i];
        uint8_t *to = out + PATHS_BYTES + ENTRY_BYTES * i;
        alb_put_be32(to, (uint32_t)entry->path << 24 | (entry->settled & ALB_PSN_MASK));
        alb_put_be32(to + 4, entry->echo);
        alb_put_be32(to + 8, entry->delay_ns);
        alb_put_be32(to + 12, entry->received);
        alb_put_be32(to + 16, entry->marked);
    }
    return alb_csa_paths_bytes(paths->count);
}

static enum alb_drop decode_probe(const uint8_t *p, struct alb_csa_frame *frame)
{
    frame->probe.is_response = p[1] & FLAG_RESPONSE;
    frame->probe.dest_qpn = alb_get_be24(p + 4);
    frame->probe.next = alb_get_be24(p + 8);
    return ALB_DROP_NONE;
}

static enum alb_drop decode_trimmed(const uint8_t *p, struct alb_csa_frame *frame)
{
    frame->trimmed.is_response = p[1] & FLAG_RESPONSE;
    frame->trimmed.path = p[2];
    frame->trimmed.dest_qpn = alb_get_be24(p + 4);
    frame->trimmed.psn = alb_get_be24(p + 8);
    frame->trimmed.sequence = alb_get_be24(p + 12);
    return ALB_DROP_NONE;
}

static enum alb_drop decode_reset(const uint8_t *p, struct alb_csa_frame *frame)
{
    frame->reset.reason = p[1];
    frame->reset.epoch = alb_get_be32(p + 4);
    return ALB_DROP_NONE;
}

// HELLO and COOKIE: always as long as with a cookie.
static enum alb_drop decode_hello(const uint8_t *p, struct alb_csa_frame *frame)
{
    uint16_t cookie_bytes = alb_get_be16(p + 2);
    frame->hello.has_cookie = cookie_bytes != 0;
    memcpy(frame->hello.cookie, p + 4, ALB_CSA_COOKIE_BYTES);
    bool is_good = cookie_bytes == ALB_CSA_COOKIE_BYTES || (cookie_bytes == 0 && p[0] == ALB_CSA_HELLO);
    return is_good ? ALB_DROP_NONE : ALB_DROP_BAD_LENGTH;
}

enum alb_drop alb_csa_decode_short(const uint8_t *p, uint32_t length, struct alb_csa_frame *frame, uint32_t *taken)
{
    static const uint8_t sizes[] = {
        [ALB_CSA_PROBE] = PROBE_BYTES,     [ALB_CSA_PING] = PING_BYTES,
        [ALB_CSA_PONG] = PONG_BYTES,       [ALB_CSA_RESET] = RESET_BYTES,
        [ALB_CSA_HELLO] = HELLO_BYTES,     [ALB_CSA_COOKIE] = HELLO_BYTES,
        [ALB_CSA_TRIMMED] = TRIMMED_BYTES, [ALB_CSA_CNP] = CNP_BYTES,
        [ALB_CSA_TXN] = ALB_CSA_TXN_BYTES, [ALB_CSA_VERDICT] = ALB_CSA_VERDICT_BYTES,
    };
    if (p[0] >= ALB_COUNT(sizes) || !sizes[p[0]])
        return ALB_DROP_UNKNOWN_OPCODE;
    *taken = sizes[p[0]] + (p[0] == ALB_CSA_PING ? alb_get_be16(p + 2) : 0);
    if (length < *taken)
        return ALB_DROP_TRUNCATED;
    switch ((enum alb_csa_type)p[0]) {
    case ALB_CSA_PROBE:
        return decode_probe(p, frame);
    case ALB_CSA_TRIMMED:
        return decode_trimmed(p, frame);
    case ALB_CSA_RESET:
        return decode_reset(p, frame);
    case ALB_CSA_HELLO:
    case ALB_CSA_COOKIE:
        return decode_hello(p, frame);
    case ALB_CSA_PING:
        frame->ping_padding = alb_get_be16(p + 2);
        return ALB_DROP_NONE;
    case ALB_CSA_PONG:
        frame->pong_bytes = alb_get_be16(p + 2);
        return ALB_DROP_NONE;
    case ALB_CSA_TXN:
        return alb_csa_decode_txn(p, &frame->txn);
    case ALB_CSA_VERDICT:
        return alb_csa_decode_verdict(p, &frame->verdict);
    default:
        return ALB_DROP_NONE;
    }
}

uint32_t alb_csa_encode_probe(const struct alb_csa_probe *probe, uint8_t *out)
{
    alb_put_be32(out, (uint32_t)ALB_CSA_PROBE << 24 | (probe->is_response ? FLAG_RESPONSE : 0) << 16);
    alb_put_be32(out + 4, probe->dest_qpn << 8);
    alb_put_be32(out + 8, probe->next << 8);
    return PROBE_BYTES;
}

uint32_t alb_csa_encode_trimmed(const struct alb_csa_trimmed *trimmed, uint8_t *out)
{
    uint32_t flags = trimmed->is_response ? FLAG_RESPONSE : 0;
    alb_put_be32(out, (uint32_t)ALB_CSA_TRIMMED << 24 | flags << 16 | (uint32_t)trimmed->path << 8);
    alb_put_be32(out + 4, trimmed->dest_qpn << 8);
    alb_put_be32(out + 8, trimmed->psn << 8);
    alb_put_be32(out + 12, trimmed->sequence << 8);
    return TRIMMED_BYTES;
}

// The first word of a frame whose second half is a number.
static void put_head(enum alb_csa_type type, uint8_t code, uint16_t number, uint8_t *out)
{
    alb_put_be32(out, (uint32_t)type << 24 | (uint32_t)code << 16 | number);
}

uint32_t alb_csa_encode_ping(uint16_t padding, uint8_t *out)
{
    put_head(ALB_CSA_PING, 0, padding, out);
    return PING_BYTES;
}

uint32_t alb_csa_encode_pong(uint16_t bytes, uint8_t *out)
{
    put_head(ALB_CSA_PONG, 0, bytes, out);
    return PONG_BYTES;
}

uint32_t alb_csa_encode_reset(enum alb_csa_reset_reason reason, uint32_t epoch, uint8_t *out)
{
    put_head(ALB_CSA_RESET, (uint8_t)reason, 0, out);
    alb_put_be32(out + 4, epoch);
    return RESET_BYTES;
}

uint32_t alb_csa_encode_hello(const uint8_t *cookie, uint8_t *out)
{
    if (cookie)
        memcpy(out + 4, cookie, ALB_CSA_COOKIE_BYTES);
    else
        memset(out + 4, 0, ALB_CSA_COOKIE_BYTES);
    put_head(ALB_CSA_HELLO, 0, cookie ? ALB_CSA_COOKIE_BYTES : 0, out);
    return HELLO_BYTES;
}

uint32_t alb_csa_encode_cookie(const uint8_t *cookie, uint8_t *out)
{
    memcpy(out + 4, cookie, ALB_CSA_COOKIE_BYTES);
    put_head(ALB_CSA_COOKIE, 0, ALB_CSA_COOKIE_BYTES, out);
    return HELLO_BYTES;
}

uint32_t alb_csa_encode_cnp(uint8_t *out)
{
    put_head(ALB_CSA_CNP, 0, 0, out);
    return CNP_BYTES;
}

const char *alb_csa_type_name(uint8_t type)
{
    static const char *const names[] = {
        [ALB_CSA_REQUEST] = "REQUEST", [ALB_CSA_RESPONSE] = "RESPONSE", [ALB_CSA_DATAGRAM] = "DATAGRAM",
        [ALB_CSA_REPORT] = "REPORT",   [ALB_CSA_PATHS] = "PATHS",       [ALB_CSA_PROBE] = "PROBE",
        [ALB_CSA_PING] = "PING",       [ALB_CSA_PONG] = "PONG",         [ALB_CSA_RESET] = "RESET",
        [ALB_CSA_HELLO] = "HELLO",     [ALB_CSA_COOKIE] = "COOKIE",     [ALB_CSA_CNP] = "CNP",
        [ALB_CSA_TXN] = "TXN",         [ALB_CSA_VERDICT] = "VERDICT",   [ALB_CSA_HOLDS] = "HOLDS",
        [ALB_CSA_TRIMMED] = "TRIMMED",
    };
    return type < ALB_COUNT(names) ? names[type] : NULL;
}
