// SPDX-License-Identifier: BSD-2-Clause
#include "sim/scenario_field.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PS_PER_NS 1000ull

static const char *const answers[] = {"no", "yes", NULL};

static bool complain_choice(const struct alb_field *field, const struct alb_document_entry *entry,
                            struct alb_complaint *complaint)
{
    char names[300] = "";
    size_t length = 0;
    for (uint32_t i = 0; field->choices[i] && length < sizeof(names); i++)
        length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s", i ? ", " : "", field->choices[i]);
    return alb_complain(complaint, entry->file, entry->line, "%s is \"%.60s\"; expected one of %s", entry->key,
                        entry->value, names);
}

static bool parse_choice(const struct alb_field *field, const struct alb_document_entry *entry, uint32_t *value,
                         struct alb_complaint *complaint)
{
    for (uint32_t i = 0; field->choices[i]; i++) {
        if (strcmp(entry->value, field->choices[i]) == 0) {
            *value = i;
            return true;
        }
    }
    return complain_choice(field, entry, complaint);
}

// A decimal number of sixteenths: "0.5", "8".
static bool parse_sixteenths(const char *text, uint64_t *value, char *error, size_t error_size)
{
    uint64_t thousandths = 0, digits = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && thousandths < UINT32_MAX; at++)
        thousandths = thousandths * 10 + (uint64_t)(*at - '0');
    bool has_whole = at > text;
    if (has_whole && *at == '.')
        for (at++; *at >= '0' && *at <= '9' && digits < 4; at++, digits++)
            thousandths = thousandths * 10 + (uint64_t)(*at - '0');
    for (uint64_t i = digits; i < 4; i++)
        thousandths *= 10;
    if (!has_whole || *at || thousandths * 16 % 10000 != 0 || thousandths > 100000000) {
        snprintf(error, error_size, "\"%.60s\" is not a number of whole sixteenths, such as 0.5 or 0.0625", text);
        return false;
    }
    *value = thousandths * 16 / 10000;
    return true;
}

// The most that the member holds, in what is written.
static uint64_t capacity_of(enum alb_field_kind kind)
{
    switch (kind) {
    case ALB_FIELD_BIG_COUNT:
    case ALB_FIELD_BYTES:
    case ALB_FIELD_RATE:
    case ALB_FIELD_BYTE_RATE:
    case ALB_FIELD_NS:
        return INT64_MAX;
    case ALB_FIELD_TIME:
        return INT64_MAX / PS_PER_NS;
    case ALB_FIELD_OCTET:
        return UINT8_MAX;
    default:
        return UINT32_MAX;
    }
}

static uint64_t max_of(const struct alb_field *field)
{
    return field->max ? field->max : capacity_of(field->kind);
}

// What is no number at all is answered with those that it could be.
static bool parse_count(const struct alb_field *field, const char *text, uint64_t *value, char *error,
                        size_t error_size)
{
    return alb_text_parse_u64(text, 0, UINT64_MAX, value, error, error_size) ||
           alb_text_parse_u64(text, field->min, max_of(field), value, error, error_size);
}

// The value in the unit of the member.
static bool parse_number(const struct alb_field *field, const char *text, uint64_t *value, char *error,
                         size_t error_size)
{
    uint32_t per_billion;
    switch (field->kind) {
    case ALB_FIELD_COUNT:
    case ALB_FIELD_BIG_COUNT:
    case ALB_FIELD_OCTET:
        return parse_count(field, text, value, error, error_size);
    case ALB_FIELD_BYTES:
    case ALB_FIELD_BYTES_32:
        return alb_text_parse_bytes(text, value, error, error_size);
    case ALB_FIELD_TIME:
    case ALB_FIELD_NS:
    case ALB_FIELD_NS_32:
        return alb_text_parse_duration(text, value, error, error_size);
    case ALB_FIELD_RATE:
        return alb_text_parse_rate(text, value, error, error_size);
    case ALB_FIELD_BYTE_RATE:
        if (!alb_text_parse_rate(text, value, error, error_size))
            return false;
        if (*value > 0 && *value < 8 && field->min == 0) {
            snprintf(error, error_size, "\"%.60s\" is less than a byte a second; expected 0b/s, or 8b/s and more",
                     text);
            return false;
        }
        *value /= 8;
        return true;
    case ALB_FIELD_SIXTEENTHS:
        return parse_sixteenths(text, value, error, error_size);
    default:
        if (!alb_text_parse_probability(text, &per_billion, error, error_size))
            return false;
        if (field->kind == ALB_FIELD_MILLIONTHS && per_billion % 1000 != 0) {
            snprintf(error, error_size, "\"%.60s\" is finer than a part per million; expected whole ones, such as 1e-6",
                     text);
            return false;
        }
        *value = field->kind == ALB_FIELD_MILLIONTHS ? per_billion / 1000 : per_billion;
        return true;
    }
}

static void store(const struct alb_field *field, uint64_t value, void *object)
{
    char *at = (char *)object + field->offset;
    uint32_t word = (uint32_t)value;
    uint8_t octet = (uint8_t)value;
    switch (field->kind) {
    case ALB_FIELD_TIME:
        value *= PS_PER_NS;
        memcpy(at, &value, sizeof(value));
        break;
    case ALB_FIELD_BIG_COUNT:
    case ALB_FIELD_BYTES:
    case ALB_FIELD_NS:
    case ALB_FIELD_RATE:
    case ALB_FIELD_BYTE_RATE:
        memcpy(at, &value, sizeof(value));
        break;
    case ALB_FIELD_OCTET:
        memcpy(at, &octet, sizeof(octet));
        break;
    default:
        memcpy(at, &word, sizeof(word));
    }
}

static char *format_scaled(uint64_t value, uint64_t step, const char *const units[], char text[ALB_FIELD_TEXT_MAX])
{
    uint32_t i = 0;
    while (value && units[i + 1] && value % step == 0) {
        value /= step;
        i++;
    }
    snprintf(text, ALB_FIELD_TEXT_MAX, "%" PRIu64 "%s", value, units[i]);
    return text;
}

// In the unit that is written, as by parse_number.
static char *format_value(const struct alb_field *field, uint64_t value, char text[ALB_FIELD_TEXT_MAX])
{
    static const char *const sizes[] = {"", "K", "M", "G", NULL};
    static const char *const rates[] = {"b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", NULL};
    switch (field->kind) {
    case ALB_FIELD_BYTES:
    case ALB_FIELD_BYTES_32:
        return format_scaled(value, 1024, sizes, text);
    case ALB_FIELD_TIME:
    case ALB_FIELD_NS:
    case ALB_FIELD_NS_32:
        return alb_text_format_duration(value, text);
    case ALB_FIELD_RATE:
        return format_scaled(value, 1000, rates, text);
    case ALB_FIELD_BYTE_RATE:
        return format_scaled(value * 8, 1000, rates, text);
    case ALB_FIELD_BILLIONTHS:
        return alb_text_format_probability((uint32_t)value, text);
    case ALB_FIELD_MILLIONTHS:
        return alb_text_format_probability((uint32_t)value * 1000, text);
    case ALB_FIELD_SIXTEENTHS:
        snprintf(text, ALB_FIELD_TEXT_MAX, "%.8g", (double)value / 16);
        return text;
    case ALB_FIELD_FLAG:
    case ALB_FIELD_CHOICE:
        snprintf(text, ALB_FIELD_TEXT_MAX, "%s",
                 field->kind == ALB_FIELD_FLAG ? answers[value] : field->choices[value]);
        return text;
    default:
        snprintf(text, ALB_FIELD_TEXT_MAX, "%" PRIu64, value);
        return text;
    }
}

bool alb_field_parse(const struct alb_field *field, const struct alb_document_entry *entry, void *object,
                     struct alb_complaint *complaint)
{
    const struct alb_field yes_or_no = {.choices = answers};
    char error[ALB_TEXT_ERROR_MAX], low[ALB_FIELD_TEXT_MAX], high[ALB_FIELD_TEXT_MAX];
    uint64_t value;
    uint32_t choice = 0;
    if (field->kind == ALB_FIELD_TEXT) {
        *(const char **)((char *)object + field->offset) = entry->value;
        return true;
    }
    if (field->kind == ALB_FIELD_FLAG) {
        if (!parse_choice(&yes_or_no, entry, &choice, complaint))
            return false;
        *(bool *)((char *)object + field->offset) = choice == 1;
        return true;
    }
    if (field->kind == ALB_FIELD_CHOICE) {
        if (!parse_choice(field, entry, &choice, complaint))
            return false;
        store(field, choice, object);
        return true;
    }
    if (!parse_number(field, entry->value, &value, error, sizeof(error)))
        return alb_complain(complaint, entry->file, entry->line, "%s: %s", entry->key, error);
    if (value < field->min || value > max_of(field))
        return alb_complain(complaint, entry->file, entry->line, "%s is \"%.60s\"; expected from %s to %s", entry->key,
                            entry->value, format_value(field, field->min, low),
                            format_value(field, max_of(field), high));
    store(field, value, object);
    return true;
}

// ---- as text --------------------------------------------------------------------------------------------------------

static uint64_t load(const struct alb_field *field, const void *object)
{
    const char *at = (const char *)object + field->offset;
    uint64_t value;
    uint32_t word;
    switch (field->kind) {
    case ALB_FIELD_TIME:
    case ALB_FIELD_BIG_COUNT:
    case ALB_FIELD_BYTES:
    case ALB_FIELD_NS:
    case ALB_FIELD_RATE:
    case ALB_FIELD_BYTE_RATE:
        memcpy(&value, at, sizeof(value));
        return field->kind == ALB_FIELD_TIME ? value / PS_PER_NS : value;
    case ALB_FIELD_OCTET:
    case ALB_FIELD_FLAG:
        return *(const uint8_t *)at;
    default:
        memcpy(&word, at, sizeof(word));
        return word;
    }
}

char *alb_field_format(const struct alb_field *field, const void *object, char text[ALB_FIELD_TEXT_MAX])
{
    if (field->kind == ALB_FIELD_TEXT) {
        const char *value = *(const char *const *)((const char *)object + field->offset);
        snprintf(text, ALB_FIELD_TEXT_MAX, "%s", value ? value : "");
        return text;
    }
    return format_value(field, load(field, object), text);
}

// ---- sections -------------------------------------------------------------------------------------------------------

static bool complain_key(const struct alb_document_entry *entry, const struct alb_field_table *tables,
                         uint32_t table_count, struct alb_complaint *complaint)
{
    char keys[ALB_COMPLAINT_MAX] = "";
    size_t length = 0;
    for (uint32_t t = 0; t < table_count; t++)
        for (uint32_t i = 0; i < tables[t].count && length < sizeof(keys); i++)
            length += (size_t)snprintf(keys + length, sizeof(keys) - length, "%s%s", length ? ", " : "",
                                       tables[t].fields[i].key);
    return alb_complain(complaint, entry->file, entry->line, "[%s%s%s] has no key \"%s\"; expected one of %s",
                        entry->section, entry->name[0] ? " " : "", entry->name, entry->key, keys);
}

static bool read_entry(const struct alb_document_entry *entry, const struct alb_field_table *tables,
                       uint32_t table_count, struct alb_complaint *complaint)
{
    for (uint32_t t = 0; t < table_count; t++)
        for (uint32_t i = 0; i < tables[t].count; i++)
            if (strcmp(tables[t].fields[i].key, entry->key) == 0)
                return alb_field_parse(&tables[t].fields[i], entry, tables[t].object, complaint);
    return complain_key(entry, tables, table_count, complaint);
}

bool alb_fields_read(const struct alb_document *document, const char *section, const char *name,
                     const struct alb_field_table *tables, uint32_t table_count, struct alb_complaint *complaint)
{
    for (uint32_t i = 0; i < document->count; i++) {
        const struct alb_document_entry *entry = &document->entries[i];
        if (entry->key[0] && strcmp(entry->section, section) == 0 && strcmp(entry->name, name) == 0 &&
            !read_entry(entry, tables, table_count, complaint))
            return false;
    }
    return true;
}
