// SPDX-License-Identifier: BSD-2-Clause
// Reading a journal. Input: a byte, then, if it is even, the file as it is; if it is odd, what headers and records are
// made of, so that checksums are no obstacle.
#include "fuzz/fuzz.h"

#include "device/journal_scan.h"

#include <string.h>

#define IMAGE_MAX 65536

static const uint8_t boot[ALB_JOURNAL_BOOT_BYTES];

struct input {
    const uint8_t *next;
    size_t left;
};

static uint8_t take(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->next++;
}

// Mostly small, now and then enormous.
static uint64_t take_number(struct input *input)
{
    uint8_t first = take(input);
    return first < 0xf0 ? first : UINT64_MAX >> (first & 15) * 4;
}

// The body is what the input has, cut or filled to the length that follows from its parts, or to any other.
static uint64_t add_record(struct input *input, uint64_t keeper, uint64_t sequence, uint8_t *at, uint64_t room)
{
    uint8_t kind = take(input), odd = take(input);
    struct alb_record record = {
        .sequence = odd & 1 ? take_number(input) : sequence,
        .synced = take_number(input),
        .kind = (enum alb_record_kind)(kind & 7),
        .part_count = odd & 2 ? take(input) : kind == ALB_RECORD_PREPARE,
        .id = {.initiator = take(input), .number = take(input)},
    };
    uint64_t body_bytes = 0, payload = 0;
    uint8_t *body = at + ALB_JOURNAL_RECORD_BYTES;
    for (uint32_t i = 0; i < record.part_count; i++) {
        const struct alb_record_part part = {.offset = take_number(input), .length = take_number(input)};
        if (ALB_JOURNAL_RECORD_BYTES + body_bytes + ALB_JOURNAL_PART_BYTES > room)
            break;
        alb_record_part_encode(&part, body + body_bytes);
        body_bytes += ALB_JOURNAL_PART_BYTES;
        payload += part.length;
    }
    record.condition_count = odd & 8 ? take(input) : 0;
    record.length =
        odd & 4 ? take_number(input) * 8 : alb_record_bytes(record.part_count, record.condition_count, payload);
    uint64_t has = ALB_MIN(room, ALB_MAX(record.length, ALB_JOURNAL_RECORD_BYTES + body_bytes));
    for (uint64_t i = ALB_JOURNAL_RECORD_BYTES + body_bytes; i < has; i++)
        at[i] = take(input);
    record.body = alb_digest_of(body, has - ALB_JOURNAL_RECORD_BYTES);
    alb_record_encode(&record, keeper, at);
    return has;
}

static size_t make_image(struct input *input, uint8_t *image)
{
    struct alb_journal_header header = {.keeper = 1, .region_bytes = take_number(input)};
    uint64_t length = ALB_JOURNAL_HEADER_BYTES;
    header.boot[0] = take(input) & 1;
    alb_journal_header_encode(&header, image);
    for (uint64_t i = 1; input->left > 0 && IMAGE_MAX - length >= ALB_JOURNAL_RECORD_BYTES; i++)
        length += add_record(input, header.keeper, i, image + length, IMAGE_MAX - length);
    return length;
}

static void check_record(const struct alb_journal_scan *scan, const struct alb_record *record, const uint8_t *body)
{
    uint8_t again[ALB_JOURNAL_RECORD_BYTES];
    alb_record_encode(record, scan->header.keeper, again);
    alb_assert(memcmp(again, body - ALB_JOURNAL_RECORD_BYTES, sizeof(again)) == 0);
    alb_assert(body - ALB_JOURNAL_RECORD_BYTES + record->length <= scan->image + scan->image_bytes);
    const uint8_t *payload = body + alb_record_tables_bytes(record->part_count, record->condition_count);
    for (uint32_t i = 0; i < record->part_count; i++) {
        struct alb_record_part part;
        alb_record_part_decode(body + (size_t)i * ALB_JOURNAL_PART_BYTES, &part);
        alb_assert(part.offset <= scan->header.region_bytes && part.offset + part.length >= part.offset);
        alb_assert(part.offset + part.length <= scan->header.region_bytes);
        payload += part.length;
    }
    alb_assert(payload <= scan->image + scan->at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t room[IMAGE_MAX];
    struct input input = {.next = data, .left = size};
    struct alb_journal_scan scan;
    struct alb_record record;
    const uint8_t *body;
    bool is_made = take(&input) & 1;
    const uint8_t *image = is_made ? room : input.next;
    size_t length = is_made ? make_image(&input, room) : input.left;
    if (!alb_journal_scan_begin(&scan, image, length, boot))
        return 0;
    uint64_t sequence = 0;
    while (alb_journal_scan_next(&scan, &record, &body) == ALB_SCAN_RECORD) {
        alb_assert(record.sequence == ++sequence);
        check_record(&scan, &record, body);
    }
    alb_assert(scan.at <= length);
    return 0;
}
