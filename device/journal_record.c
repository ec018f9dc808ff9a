// SPDX-License-Identifier: BSD-2-Clause
// The bytes of a journal.
#include "device/journal_record.h"

#include "wire/bytes.h"

#include <string.h>

#define VERSION         1
#define FLAG_PAGE_CACHE 1

// Offsets in the header.
enum {
    HEADER_MAGIC = 0,
    HEADER_VERSION = 8,
    HEADER_FLAGS = 12,
    HEADER_KEEPER = 16,
    HEADER_REGION = 24,
    HEADER_BOOT = 32,
    HEADER_CHECK = 56,
};

// Offsets in a record.
enum {
    RECORD_LENGTH = 0,
    RECORD_SEQUENCE = 8,
    RECORD_SYNCED = 16,
    RECORD_KIND = 24,
    RECORD_PARTS = 28,
    RECORD_INITIATOR = 32,
    RECORD_NUMBER = 40,
    RECORD_LOW_WATER = 48,
    RECORD_LEASE = 56,
    RECORD_DIGEST = 64,
    RECORD_BODY = 80,
    RECORD_CONDITIONS = 96, // 2 bytes; then 2 of flags
    RECORD_FLAGS = 98,
    RECORD_IMM = 100,
    RECORD_CHECK = 104,
};

enum { FLAG_NOTIFIES = 1, FLAG_SOLICITED = 2 };

static const uint8_t magic[8] = {'a', 'l', 'b', 'e', 'd', 'o', 'j', 'n'};

static void put_digest(uint8_t *bytes, const struct alb_digest *digest)
{
    alb_put_le64(bytes, digest->low);
    alb_put_le64(bytes + 8, digest->high);
}

static struct alb_digest get_digest(const uint8_t *bytes)
{
    return (struct alb_digest){.low = alb_get_le64(bytes), .high = alb_get_le64(bytes + 8)};
}

// The keeper is part of it, so that no record of another journal passes for one of this.
static uint64_t check_of(const uint8_t *bytes, size_t length, uint64_t keeper)
{
    uint8_t room[8 + RECORD_CHECK];
    alb_put_le64(room, keeper);
    memcpy(room + 8, bytes, length);
    return alb_digest_of(room, 8 + length).low;
}

void alb_journal_header_encode(const struct alb_journal_header *header, uint8_t bytes[ALB_JOURNAL_HEADER_BYTES])
{
    memset(bytes, 0, ALB_JOURNAL_HEADER_BYTES);
    memcpy(bytes + HEADER_MAGIC, magic, sizeof(magic));
    alb_put_le32(bytes + HEADER_VERSION, VERSION);
    alb_put_le32(bytes + HEADER_FLAGS, header->page_cache ? FLAG_PAGE_CACHE : 0);
    alb_put_le64(bytes + HEADER_KEEPER, header->keeper);
    alb_put_le64(bytes + HEADER_REGION, header->region_bytes);
    memcpy(bytes + HEADER_BOOT, header->boot, sizeof(header->boot));
    alb_put_le64(bytes + HEADER_CHECK, check_of(bytes, HEADER_CHECK, header->keeper));
}

const char *alb_journal_header_decode(const uint8_t bytes[ALB_JOURNAL_HEADER_BYTES], struct alb_journal_header *header)
{
    if (memcmp(bytes + HEADER_MAGIC, magic, sizeof(magic)) != 0)
        return "it is no journal of Albedo";
    header->keeper = alb_get_le64(bytes + HEADER_KEEPER);
    header->region_bytes = alb_get_le64(bytes + HEADER_REGION);
    header->page_cache = alb_get_le32(bytes + HEADER_FLAGS) & FLAG_PAGE_CACHE;
    memcpy(header->boot, bytes + HEADER_BOOT, sizeof(header->boot));
    if (alb_get_le64(bytes + HEADER_CHECK) != check_of(bytes, HEADER_CHECK, header->keeper))
        return "the header's checksum is wrong";
    if (alb_get_le32(bytes + HEADER_VERSION) != VERSION ||
        alb_get_le32(bytes + HEADER_FLAGS) & ~(uint32_t)FLAG_PAGE_CACHE)
        return "it is of another version of Albedo";
    return NULL;
}

void alb_record_encode(const struct alb_record *record, uint64_t keeper, uint8_t bytes[ALB_JOURNAL_RECORD_BYTES])
{
    alb_put_le64(bytes + RECORD_LENGTH, record->length);
    alb_put_le64(bytes + RECORD_SEQUENCE, record->sequence);
    alb_put_le64(bytes + RECORD_SYNCED, record->synced);
    alb_put_le32(bytes + RECORD_KIND, record->kind);
    alb_put_le32(bytes + RECORD_PARTS, record->part_count);
    alb_put_le64(bytes + RECORD_INITIATOR, record->id.initiator);
    alb_put_le64(bytes + RECORD_NUMBER, record->id.number);
    alb_put_le64(bytes + RECORD_LOW_WATER, record->low_water);
    alb_put_le64(bytes + RECORD_LEASE, record->lease_ns);
    put_digest(bytes + RECORD_DIGEST, &record->digest);
    put_digest(bytes + RECORD_BODY, &record->body);
    alb_put_le32(bytes + RECORD_CONDITIONS, record->condition_count); // the flags are its upper half
    bytes[RECORD_FLAGS] =
        (uint8_t)((record->notifies ? FLAG_NOTIFIES : 0) | (record->is_solicited ? FLAG_SOLICITED : 0));
    alb_put_le32(bytes + RECORD_IMM, record->imm_be);
    alb_put_le64(bytes + RECORD_CHECK, check_of(bytes, RECORD_CHECK, keeper));
}

const char *alb_record_decode(const uint8_t bytes[ALB_JOURNAL_RECORD_BYTES], uint64_t keeper, struct alb_record *record)
{
    uint32_t kind = alb_get_le32(bytes + RECORD_KIND);
    if (alb_get_le64(bytes + RECORD_CHECK) != check_of(bytes, RECORD_CHECK, keeper))
        return "a record's checksum is wrong";
    *record = (struct alb_record){
        .length = alb_get_le64(bytes + RECORD_LENGTH),
        .sequence = alb_get_le64(bytes + RECORD_SEQUENCE),
        .synced = alb_get_le64(bytes + RECORD_SYNCED),
        .kind = (enum alb_record_kind)kind,
        .part_count = alb_get_le32(bytes + RECORD_PARTS),
        .id = {.initiator = alb_get_le64(bytes + RECORD_INITIATOR), .number = alb_get_le64(bytes + RECORD_NUMBER)},
        .low_water = alb_get_le64(bytes + RECORD_LOW_WATER),
        .lease_ns = alb_get_le64(bytes + RECORD_LEASE),
        .digest = get_digest(bytes + RECORD_DIGEST),
        .body = get_digest(bytes + RECORD_BODY),
        .condition_count = alb_get_le32(bytes + RECORD_CONDITIONS) & 0xffff,
        .notifies = bytes[RECORD_FLAGS] & FLAG_NOTIFIES,
        .is_solicited = bytes[RECORD_FLAGS] & FLAG_SOLICITED,
        .imm_be = alb_get_le32(bytes + RECORD_IMM),
    };
    if (kind < ALB_RECORD_PREPARE || kind > ALB_RECORD_MARK)
        return "a record is of an unknown kind";
    bool is_exact = kind != ALB_RECORD_PREPARE;
    if (record->part_count > (is_exact ? 0 : ALB_TXN_WRITES_MAX) ||
        record->condition_count > (is_exact ? 0 : ALB_TXN_COMPARES_MAX) || bytes[RECORD_FLAGS] > 3 ||
        bytes[RECORD_FLAGS + 1])
        return "a record has too many parts";
    uint64_t least = alb_record_bytes(record->part_count, record->condition_count, 0);
    if (record->length % 8 != 0 || record->length < least || (is_exact && record->length != least))
        return "a record's length is impossible";
    return NULL;
}

uint64_t alb_record_tables_bytes(uint32_t part_count, uint32_t condition_count)
{
    return (uint64_t)part_count * ALB_JOURNAL_PART_BYTES + (uint64_t)condition_count * ALB_JOURNAL_CONDITION_BYTES;
}

uint64_t alb_record_bytes(uint32_t part_count, uint32_t condition_count, uint64_t payload_bytes)
{
    return ALB_JOURNAL_RECORD_BYTES + alb_record_tables_bytes(part_count, condition_count) +
           (payload_bytes + 7) / 8 * 8;
}

void alb_record_condition_encode(const struct alb_txn_condition *condition, uint8_t bytes[ALB_JOURNAL_CONDITION_BYTES])
{
    alb_put_le64(bytes, condition->offset);
    alb_put_le64(bytes + 8, condition->va);
    alb_put_le64(bytes + 16, condition->expected);
    alb_put_le64(bytes + 24, condition->mask);
    alb_put_le32(bytes + 32, condition->rkey);
    alb_put_le32(bytes + 36, 0);
}

void alb_record_condition_decode(const uint8_t bytes[ALB_JOURNAL_CONDITION_BYTES], struct alb_txn_condition *condition)
{
    condition->offset = alb_get_le64(bytes);
    condition->va = alb_get_le64(bytes + 8);
    condition->expected = alb_get_le64(bytes + 16);
    condition->mask = alb_get_le64(bytes + 24);
    condition->rkey = alb_get_le32(bytes + 32);
}

void alb_record_part_encode(const struct alb_record_part *part, uint8_t bytes[ALB_JOURNAL_PART_BYTES])
{
    alb_put_le64(bytes, part->offset);
    alb_put_le64(bytes + 8, part->length);
    alb_put_le64(bytes + 16, part->va);
    alb_put_le32(bytes + 24, part->rkey);
    alb_put_le32(bytes + 28, 0);
}

void alb_record_part_decode(const uint8_t bytes[ALB_JOURNAL_PART_BYTES], struct alb_record_part *part)
{
    part->offset = alb_get_le64(bytes);
    part->length = alb_get_le64(bytes + 8);
    part->va = alb_get_le64(bytes + 16);
    part->rkey = alb_get_le32(bytes + 24);
}

const char *alb_record_check_body(const struct alb_record *record, const uint8_t *body, uint64_t region_bytes)
{
    uint64_t payload = 0, body_bytes = record->length - ALB_JOURNAL_RECORD_BYTES;
    struct alb_digest digest = alb_digest_of(body, body_bytes);
    if (!alb_digest_is_equal(&digest, &record->body))
        return "the checksum of a record's content is wrong";
    for (uint32_t i = 0; i < record->part_count; i++) {
        struct alb_record_part part;
        alb_record_part_decode(body + (size_t)i * ALB_JOURNAL_PART_BYTES, &part);
        if (part.offset > region_bytes || part.length > region_bytes - part.offset)
            return "a record writes beyond the end of the region";
        if (part.length > body_bytes)
            return "a record's parts do not fill it";
        payload += part.length; // at most ALB_TXN_WRITES_MAX times what a file can have
    }
    for (uint32_t i = 0; i < record->condition_count; i++) {
        struct alb_txn_condition condition;
        alb_record_condition_decode(body + alb_record_tables_bytes(record->part_count, 0) +
                                        (size_t)i * ALB_JOURNAL_CONDITION_BYTES,
                                    &condition);
        if (region_bytes < sizeof(uint64_t) || condition.offset > region_bytes - sizeof(uint64_t))
            return "a record compares beyond the end of the region";
    }
    uint64_t length = alb_record_bytes(record->part_count, record->condition_count, payload);
    return length == record->length ? NULL : "a record's parts do not fill it";
}
