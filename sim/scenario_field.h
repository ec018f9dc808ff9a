// SPDX-License-Identifier: BSD-2-Clause
// Keys of a scenario's section as members of a struct: a table says which key is written where, how, and within which
// bounds, so that reading, bounds, error messages and the documentation's list come from one place.
#pragma once

#include "sim/document.h"
#include "sim/time.h"

enum alb_field_kind {
    ALB_FIELD_COUNT,      // whole number; uint32_t
    ALB_FIELD_BIG_COUNT,  // whole number; uint64_t
    ALB_FIELD_OCTET,      // whole number; uint8_t
    ALB_FIELD_BYTES,      // size; uint64_t
    ALB_FIELD_BYTES_32,   // size; uint32_t
    ALB_FIELD_TIME,       // duration; alb_sim_time, picoseconds
    ALB_FIELD_NS,         // duration; uint64_t, nanoseconds
    ALB_FIELD_NS_32,      // duration; uint32_t, nanoseconds
    ALB_FIELD_RATE,       // uint64_t, bits per second
    ALB_FIELD_BYTE_RATE,  // uint64_t, bytes per second
    ALB_FIELD_BILLIONTHS, // probability; uint32_t
    ALB_FIELD_MILLIONTHS, // probability; uint32_t
    ALB_FIELD_SIXTEENTHS, // decimal number; uint32_t
    ALB_FIELD_FLAG,       // yes or no; bool
    ALB_FIELD_TEXT,       // const char *, into the document
    ALB_FIELD_CHOICE,     // one of some names; uint32_t or an enum
};

struct alb_field {
    const char *key;
    enum alb_field_kind kind;
    size_t offset;
    uint64_t min, max;          // of what is written; both 0: as large as it can be
    const char *const *choices; // CHOICE: up to a NULL
    const char *text;           // what it means, for people
};

struct alb_field_table {
    const struct alb_field *fields;
    uint32_t count;
    void *object;
};

// Sets the members that the entries of that section and name give. tables: a key is looked up in each. False: a key
// that none of them has, or a value out of place.
bool alb_fields_read(const struct alb_document *document, const char *section, const char *name,
                     const struct alb_field_table *tables, uint32_t table_count, struct alb_complaint *complaint);
#define ALB_FIELD_TEXT_MAX 40

// The value that the object has, in the shortest form that alb_field_parse takes; at most that many bytes of a text.
char *alb_field_format(const struct alb_field *field, const void *object, char text[ALB_FIELD_TEXT_MAX]);
// One value.
bool alb_field_parse(const struct alb_field *field, const struct alb_document_entry *entry, void *object,
                     struct alb_complaint *complaint);
