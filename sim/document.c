// SPDX-License-Identifier: BSD-2-Clause
#include "sim/document.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct span {
    const char *at;
    size_t length;
};

// ---- characters -----------------------------------------------------------------------------------------------------

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(struct span span)
{
    while (span.length > 0 && is_space(span.at[0])) {
        span.at++;
        span.length--;
    }
    while (span.length > 0 && is_space(span.at[span.length - 1]))
        span.length--;
    return span;
}

// Up to a # that begins a comment: at the start or after a space.
static struct span without_comment(struct span line)
{
    for (size_t i = 0; i < line.length; i++)
        if (line.at[i] == '#' && (i == 0 || is_space(line.at[i - 1])))
            return (struct span){line.at, i};
    return line;
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == ',' || c == ':' || c == '/';
}

static bool take_word(char to[ALB_DOCUMENT_WORD_MAX], struct span word)
{
    if (word.length == 0 || word.length >= ALB_DOCUMENT_WORD_MAX)
        return false;
    for (size_t i = 0; i < word.length; i++)
        if (!is_word_char(word.at[i]))
            return false;
    memcpy(to, word.at, word.length);
    to[word.length] = '\0';
    return true;
}

// Printable, so that an error message can show it.
static bool take_value(char to[ALB_DOCUMENT_VALUE_MAX], struct span value)
{
    if (value.length >= ALB_DOCUMENT_VALUE_MAX)
        return false;
    for (size_t i = 0; i < value.length; i++)
        if ((unsigned char)value.at[i] < ' ' && value.at[i] != '\t')
            return false;
    memcpy(to, value.at, value.length);
    to[value.length] = '\0';
    return true;
}

// ---- entries --------------------------------------------------------------------------------------------------------

static struct alb_document_entry *find(const struct alb_document *document, const char *section, const char *name,
                                       const char *key)
{
    for (uint32_t i = 0; i < document->count; i++) {
        struct alb_document_entry *entry = &document->entries[i];
        if (strcmp(entry->section, section) == 0 && strcmp(entry->name, name) == 0 && strcmp(entry->key, key) == 0)
            return entry;
    }
    return NULL;
}

const struct alb_document_entry *alb_document_find(const struct alb_document *document, const char *section,
                                                   const char *name, const char *key)
{
    return find(document, section, name, key);
}

static void append(struct alb_document *document, const struct alb_document_entry *entry)
{
    if (document->count == document->capacity) {
        document->capacity = document->capacity ? 2 * document->capacity : 32;
        document->entries = realloc(document->entries, document->capacity * sizeof(*document->entries));
        alb_assert(document->entries);
    }
    document->entries[document->count++] = *entry;
}

void alb_document_fini(struct alb_document *document)
{
    free(document->entries);
    *document = (struct alb_document){.file = document->file};
}

void alb_document_begin(struct alb_document *document, uint32_t index)
{
    struct alb_document_entry entry = document->entries[index];
    entry.key[0] = entry.value[0] = '\0';
    append(document, &entry);
}

void alb_document_copy(struct alb_document *document, const struct alb_document *from)
{
    *document = (struct alb_document){.file = from->file};
    for (uint32_t i = 0; i < from->count; i++)
        append(document, &from->entries[i]);
}

// ---- a file ---------------------------------------------------------------------------------------------------------

static bool parse_section(struct alb_document *document, struct span line, struct alb_document_entry *entry,
                          struct alb_complaint *complaint)
{
    if (line.at[line.length - 1] != ']')
        return alb_complain(complaint, entry->file, entry->line,
                            "a section has no end; expected \"[section]\" or "
                            "\"[section name]\"");
    struct span inside = trim((struct span){line.at + 1, line.length - 2});
    size_t first = 0;
    while (first < inside.length && !is_space(inside.at[first]))
        first++;
    struct span name = trim((struct span){inside.at + first, inside.length - first});
    entry->name[0] = entry->key[0] = entry->value[0] = '\0';
    if (!take_word(entry->section, (struct span){inside.at, first}) ||
        (name.length > 0 && !take_word(entry->name, name)))
        return alb_complain(complaint, entry->file, entry->line,
                            "\"%.*s\" is no section; expected \"[section]\" or \"[section name]\", of letters, digits, "
                            "\"-\", \"_\", \".\", \",\", \":\" and \"/\", %d at most",
                            (int)ALB_MIN(line.length, (size_t)60), line.at, ALB_DOCUMENT_WORD_MAX - 1);
    const struct alb_document_entry *before = find(document, entry->section, entry->name, "");
    if (before)
        return alb_complain(complaint, entry->file, entry->line,
                            "section \"%s%s%s\" is there already, in line %" PRIu32 "; expected each once",
                            entry->section, entry->name[0] ? " " : "", entry->name, before->line);
    append(document, entry);
    return true;
}

static bool parse_key(struct alb_document *document, struct span line, struct alb_document_entry *entry,
                      struct alb_complaint *complaint)
{
    const char *equals = memchr(line.at, '=', line.length);
    if (!equals)
        return alb_complain(complaint, entry->file, entry->line,
                            "\"%.*s\" has no \"=\"; expected \"key = value\" or \"[section]\"",
                            (int)ALB_MIN(line.length, (size_t)60), line.at);
    struct span key = trim((struct span){line.at, (size_t)(equals - line.at)});
    struct span value = trim((struct span){equals + 1, line.length - (size_t)(equals + 1 - line.at)});
    if (entry->section[0] == '\0')
        return alb_complain(complaint, entry->file, entry->line, "a key before any section; expected \"[section]\"");
    if (!take_word(entry->key, key))
        return alb_complain(
            complaint, entry->file, entry->line,
            "\"%.*s\" is no key; expected letters, digits, \"-\", \"_\", \".\", \",\", \":\" and \"/\", %d at most",
            (int)ALB_MIN(key.length, (size_t)60), key.at, ALB_DOCUMENT_WORD_MAX - 1);
    if (!take_value(entry->value, value))
        return alb_complain(complaint, entry->file, entry->line,
                            "the value of %s is too long or not text; expected %d characters at most", entry->key,
                            ALB_DOCUMENT_VALUE_MAX - 1);
    const struct alb_document_entry *before = find(document, entry->section, entry->name, entry->key);
    if (before)
        return alb_complain(complaint, entry->file, entry->line,
                            "%s is there already, in line %" PRIu32 "; expected each key once", entry->key,
                            before->line);
    append(document, entry);
    return true;
}

bool alb_document_parse(struct alb_document *document, const char *file, const char *text, size_t length,
                        struct alb_complaint *complaint)
{
    *document = (struct alb_document){.file = file};
    struct alb_document_entry entry = {.file = file};
    bool is_good = true;
    for (const char *at = text + alb_text_mark(text, length), *end = text + length; is_good && at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct span line = {at, (size_t)((newline ? newline : end) - at)};
        at += line.length + 1;
        entry.line++;
        line = trim(without_comment(line));
        if (document->count == ALB_DOCUMENT_ENTRIES_MAX && line.length > 0)
            is_good = alb_complain(complaint, file, entry.line, "expected %d sections and keys at most",
                                   ALB_DOCUMENT_ENTRIES_MAX);
        else if (line.length > 0)
            is_good = line.at[0] == '[' ? parse_section(document, line, &entry, complaint)
                                        : parse_key(document, line, &entry, complaint);
        if (!newline)
            break;
    }
    if (!is_good)
        alb_document_fini(document);
    return is_good;
}

// ---- one more line --------------------------------------------------------------------------------------------------

// section.key or section.name.key, where the name may have dots and neither of the others has; but in a variant it is
// the key that has them, since it comes with its section, and in [expect] too, which has no name.
static bool split(const char *path, struct alb_document_entry *entry)
{
    const char *first = strchr(path, '.'), *last = strrchr(path, '.');
    if (!first)
        return false;
    if (strncmp(path, "variant.", strlen("variant.")) == 0 && first != last)
        last = strchr(first + 1, '.');
    if (strncmp(path, "expect.", strlen("expect.")) == 0)
        last = first;
    if (!take_word(entry->section, (struct span){path, (size_t)(first - path)}) ||
        !take_word(entry->key, (struct span){last + 1, strlen(last + 1)}))
        return false;
    return first == last || take_word(entry->name, (struct span){first + 1, (size_t)(last - first - 1)});
}

bool alb_document_put(struct alb_document *document, const char *path, const char *value, const char *file,
                      uint32_t line, struct alb_complaint *complaint)
{
    struct alb_document_entry entry = {.file = file, .line = line};
    struct span trimmed = trim((struct span){value, strlen(value)});
    if (!split(path, &entry))
        return alb_complain(complaint, file, line, "\"%.80s\" names no key; expected section.key or section.name.key",
                            path);
    if (!take_value(entry.value, trimmed))
        return alb_complain(complaint, file, line,
                            "the value of %s is too long or not text; expected %d characters at most", path,
                            ALB_DOCUMENT_VALUE_MAX - 1);
    struct alb_document_entry *before = find(document, entry.section, entry.name, entry.key);
    if (before && before->line == 0 && line != 0)
        return true;
    if (before)
        *before = entry;
    else
        append(document, &entry);
    return true;
}

bool alb_document_set(struct alb_document *document, const char *setting, struct alb_complaint *complaint)
{
    char path[3 * ALB_DOCUMENT_WORD_MAX];
    const char *equals = strchr(setting, '=');
    if (!equals || (size_t)(equals - setting) >= sizeof(path))
        return alb_complain(complaint, "--set", 0, "\"%.80s\"; expected section.key=value or section.name.key=value",
                            setting);
    memcpy(path, setting, (size_t)(equals - setting));
    path[equals - setting] = '\0';
    return alb_document_put(document, path, equals + 1, "--set", 0, complaint);
}
