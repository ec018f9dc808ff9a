// SPDX-License-Identifier: BSD-2-Clause
// Records come back as they were encoded; a journal that was cut or damaged anywhere is distinguished from a sound one.
#include "device/journal_scan.h"

#include "base/tests/test.h"

#include <stdlib.h>
#include <string.h>

#define KEEPER  0x1234567890abcdefull
#define RECORDS 6

static const uint8_t boot[ALB_JOURNAL_BOOT_BYTES] = "fifteen letters";
static const uint8_t other_boot[ALB_JOURNAL_BOOT_BYTES] = "another of them";

// A journal of some records, of which the first `safe` were safe before the next one was written.
struct sample {
    uint8_t bytes[2048];
    uint64_t length;
    uint64_t ends[RECORDS + 1];
};

static void add_record(struct sample *sample, uint64_t sequence, uint64_t synced)
{
    bool prepares = sequence % 2 == 1;
    uint8_t *at = sample->bytes + sample->length, *body = at + ALB_JOURNAL_RECORD_BYTES;
    const struct alb_record_part part = {.offset = 8 * sequence, .length = 21};
    struct alb_record record = {
        .length = alb_record_bytes(prepares, prepares, prepares ? part.length : 0),
        .sequence = sequence,
        .synced = synced,
        .kind = prepares ? ALB_RECORD_PREPARE : ALB_RECORD_COMMIT,
        .part_count = prepares,
        .condition_count = prepares,
        .imm_be = 0x12345678,
        .notifies = prepares,
        .id = {.initiator = 77, .number = (sequence + 1) / 2},
        .low_water = 1,
        .lease_ns = 5,
        .digest = {.low = sequence, .high = 2},
    };
    if (prepares) {
        alb_record_part_encode(&part, body);
        const struct alb_txn_condition condition = {.offset = sequence, .va = 3, .expected = 4, .mask = 5, .rkey = 6};
        alb_record_condition_encode(&condition, body + ALB_JOURNAL_PART_BYTES);
        memset(body + alb_record_tables_bytes(1, 1), (int)('a' + sequence), part.length);
    }
    record.body = alb_digest_of(body, record.length - ALB_JOURNAL_RECORD_BYTES);
    alb_record_encode(&record, KEEPER, at);
    sample->length += record.length;
}

// safe: how many of the first records each later one calls safe.
static void make_sample(struct sample *sample, uint64_t safe)
{
    struct alb_journal_header header = {.keeper = KEEPER, .region_bytes = 100};
    memset(sample, 0, sizeof(*sample));
    memcpy(header.boot, boot, sizeof(boot));
    alb_journal_header_encode(&header, sample->bytes);
    sample->ends[0] = sample->length = ALB_JOURNAL_HEADER_BYTES;
    for (uint64_t i = 1; i <= RECORDS; i++) {
        add_record(sample, i, ALB_MIN(safe, i - 1));
        sample->ends[i] = sample->length;
    }
}

// How many records can be read, and how it ends.
static uint64_t scan_all(const uint8_t *image, uint64_t length, const uint8_t *now, enum alb_scan_result *end)
{
    struct alb_journal_scan scan;
    struct alb_record record;
    const uint8_t *body;
    uint64_t count = 0;
    *end = ALB_SCAN_DAMAGED;
    if (!alb_journal_scan_begin(&scan, image, length, now))
        return 0;
    while ((*end = alb_journal_scan_next(&scan, &record, &body)) == ALB_SCAN_RECORD)
        count++;
    assert_true(*end == ALB_SCAN_END || scan.trouble);
    return count;
}

static void alb_journal_scan__reads_what_was_written(void **state)
{
    struct sample sample;
    struct alb_journal_scan scan;
    struct alb_record record;
    const uint8_t *body;
    make_sample(&sample, RECORDS);
    assert_true(alb_journal_scan_begin(&scan, sample.bytes, sample.length, boot));
    assert_true(scan.header.keeper == KEEPER && scan.header.region_bytes == 100 && scan.same_boot);
    for (uint64_t i = 1; i <= RECORDS; i++) {
        assert_int_equal(alb_journal_scan_next(&scan, &record, &body), ALB_SCAN_RECORD);
        assert_int_equal(record.sequence, i);
        assert_int_equal(record.synced, i - 1);
        assert_int_equal(record.kind, i % 2 ? ALB_RECORD_PREPARE : ALB_RECORD_COMMIT);
        assert_int_equal(record.id.initiator, 77);
        assert_int_equal(record.id.number, (i + 1) / 2);
        assert_int_equal(record.digest.low, i);
        assert_int_equal(scan.at, sample.ends[i]);
        if (record.part_count) {
            struct alb_record_part part;
            alb_record_part_decode(body, &part);
            assert_int_equal(part.offset, 8 * i);
            assert_int_equal(part.length, 21);
            assert_int_equal(body[alb_record_tables_bytes(1, 1) + 20], 'a' + i);
            struct alb_txn_condition condition;
            alb_record_condition_decode(body + ALB_JOURNAL_PART_BYTES, &condition);
            assert_true(condition.offset == i && condition.va == 3 && condition.expected == 4);
            assert_true(condition.mask == 5 && condition.rkey == 6);
            assert_true(record.notifies && !record.is_solicited && record.imm_be == 0x12345678);
        }
    }
    assert_int_equal(alb_journal_scan_next(&scan, &record, &body), ALB_SCAN_END);
}

static void alb_journal_scan__cut_anywhere_is_torn(void **state)
{
    struct sample sample;
    make_sample(&sample, RECORDS);
    for (uint64_t length = 0; length <= sample.length; length++) {
        enum alb_scan_result end;
        uint8_t *exact = malloc(length + 1); // so that a sanitizer sees what is read beyond
        memcpy(exact, sample.bytes, length);
        uint64_t count = scan_all(exact, length, length % 2 ? boot : other_boot, &end), whole = 0;
        while (whole < RECORDS && sample.ends[whole + 1] <= length)
            whole++;
        assert_int_equal(count, whole);
        bool is_cut = length != sample.ends[whole];
        assert_int_equal(end, length < sample.ends[0] ? ALB_SCAN_DAMAGED : is_cut ? ALB_SCAN_TORN : ALB_SCAN_END);
        free(exact);
    }
}

static void alb_journal_scan__every_flipped_bit_is_damage(void **state)
{
    struct sample sample;
    make_sample(&sample, RECORDS);
    for (uint64_t bit = 0; bit < 8 * sample.length; bit++) {
        enum alb_scan_result end;
        sample.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        scan_all(sample.bytes, sample.length, boot, &end);
        assert_int_equal(end, ALB_SCAN_DAMAGED);
        sample.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

// After the machine went down: damage to what was safe convicts itself, and only what was not is cut off.
static void alb_journal_scan__flipped_bits_after_another_boot(void **state)
{
    struct sample sample;
    const uint64_t safe = 3;
    make_sample(&sample, safe);
    for (uint64_t bit = 8 * ALB_JOURNAL_HEADER_BYTES; bit < 8 * sample.length; bit++) {
        enum alb_scan_result end;
        uint64_t record = 1;
        while (sample.ends[record] <= bit / 8)
            record++;
        sample.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        uint64_t count = scan_all(sample.bytes, sample.length, other_boot, &end);
        assert_int_equal(count, record - 1);
        assert_int_equal(end, record <= safe ? ALB_SCAN_DAMAGED : ALB_SCAN_TORN);
        sample.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void alb_journal_scan__records_of_another_journal(void **state)
{
    struct sample sample;
    struct alb_journal_header header = {.keeper = KEEPER + 1, .region_bytes = 100};
    enum alb_scan_result end;
    make_sample(&sample, RECORDS);
    memcpy(header.boot, boot, sizeof(boot));
    alb_journal_header_encode(&header, sample.bytes);
    assert_int_equal(scan_all(sample.bytes, sample.length, boot, &end), 0);
    assert_int_equal(end, ALB_SCAN_DAMAGED);
    header.keeper = KEEPER;
    header.region_bytes = 60; // less than what is written to
    alb_journal_header_encode(&header, sample.bytes);
    assert_int_equal(scan_all(sample.bytes, sample.length, boot, &end), 4);
    assert_int_equal(end, ALB_SCAN_DAMAGED);
}

static void alb_journal_header__versions(void **state)
{
    struct alb_journal_header header = {.keeper = KEEPER, .region_bytes = 7, .page_cache = true}, back;
    uint8_t bytes[ALB_JOURNAL_HEADER_BYTES];
    alb_journal_header_encode(&header, bytes);
    assert_null(alb_journal_header_decode(bytes, &back));
    assert_true(back.page_cache && back.keeper == KEEPER && back.region_bytes == 7);
    bytes[0] = 'x';
    assert_string_equal(alb_journal_header_decode(bytes, &back), "it is no journal of Albedo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_journal_scan__reads_what_was_written),
        cmocka_unit_test(alb_journal_scan__cut_anywhere_is_torn),
        cmocka_unit_test(alb_journal_scan__every_flipped_bit_is_damage),
        cmocka_unit_test(alb_journal_scan__flipped_bits_after_another_boot),
        cmocka_unit_test(alb_journal_scan__records_of_another_journal),
        cmocka_unit_test(alb_journal_header__versions),
    };
    return cmocka_run_group_tests_name("journal_scan", tests, NULL, NULL);
}
