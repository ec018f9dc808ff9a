// SPDX-License-Identifier: BSD-2-Clause
// The bytes of a journal (docs/REFLECTION.md, "Durable regions"): a header, then records, each with its length, its
// number in the file and checksums of header and body. All numbers are little-endian. Pure: no file is touched here.
#pragma once

#include "engine/transaction.h"

#define ALB_JOURNAL_HEADER_BYTES    64
#define ALB_JOURNAL_RECORD_BYTES    112 // of a record without a body
#define ALB_JOURNAL_PART_BYTES      32  // of a part in the table that begins a body
#define ALB_JOURNAL_CONDITION_BYTES 40  // of a compared word, behind the parts
#define ALB_JOURNAL_BOOT_BYTES      16

struct alb_journal_header {
    uint64_t keeper;
    uint64_t region_bytes;
    uint8_t boot[ALB_JOURNAL_BOOT_BYTES]; // of the machine, when the file was made
    bool page_cache;                      // nothing was waited for: see alb_journal_scan
};

void alb_journal_header_encode(const struct alb_journal_header *header, uint8_t bytes[ALB_JOURNAL_HEADER_BYTES]);
// NULL, or what is wrong with it.
const char *alb_journal_header_decode(const uint8_t bytes[ALB_JOURNAL_HEADER_BYTES], struct alb_journal_header *header);

enum alb_record_kind {
    ALB_RECORD_PREPARE = 1, // with a body: parts, then their bytes
    ALB_RECORD_COMMIT,
    ALB_RECORD_ABORT,
    ALB_RECORD_OUTCOME, // committed, and in the file since
    ALB_RECORD_MARK,    // an initiator's low-water mark; no transaction
};

struct alb_record {
    uint64_t length;   // with its body; a multiple of 8
    uint64_t sequence; // in this file, from 1
    uint64_t synced;   // all up to this one were safe when this one was written
    enum alb_record_kind kind;
    uint32_t part_count;
    uint32_t condition_count;
    uint32_t imm_be;
    bool notifies, is_solicited;
    struct alb_txn_id id;
    uint64_t low_water;
    uint64_t lease_ns;
    struct alb_digest digest;
    struct alb_digest body; // of the body; of no bytes, if there is none
};

void alb_record_encode(const struct alb_record *record, uint64_t keeper, uint8_t bytes[ALB_JOURNAL_RECORD_BYTES]);
// NULL, or what is wrong with it. The body is not looked at.
const char *alb_record_decode(const uint8_t bytes[ALB_JOURNAL_RECORD_BYTES], uint64_t keeper,
                              struct alb_record *record);

// How long the record of a transaction is: a table of parts and one of conditions stand before the payload.
uint64_t alb_record_bytes(uint32_t part_count, uint32_t condition_count, uint64_t payload_bytes);
uint64_t alb_record_tables_bytes(uint32_t part_count, uint32_t condition_count);

struct alb_record_part {
    uint64_t offset; // in the region
    uint64_t length;
    uint64_t va; // as its initiator named it
    uint32_t rkey;
};

void alb_record_part_encode(const struct alb_record_part *part, uint8_t bytes[ALB_JOURNAL_PART_BYTES]);
void alb_record_part_decode(const uint8_t bytes[ALB_JOURNAL_PART_BYTES], struct alb_record_part *part);

// region is not looked at, and not set.
void alb_record_condition_encode(const struct alb_txn_condition *condition, uint8_t bytes[ALB_JOURNAL_CONDITION_BYTES]);
void alb_record_condition_decode(const uint8_t bytes[ALB_JOURNAL_CONDITION_BYTES], struct alb_txn_condition *condition);

// NULL, or what is wrong with the body of a record: its checksum, parts that do not fill it or leave the region.
const char *alb_record_check_body(const struct alb_record *record, const uint8_t *body, uint64_t region_bytes);
