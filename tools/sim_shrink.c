// SPDX-License-Identifier: BSD-2-Clause
#include "tools/sim_shrink.h"

#include <stdlib.h>
#include <string.h>

// Takes the smaller one if it fails alike.
static bool try(struct sim_case *of, struct sim_case *smaller, struct sim_judgement *judgement, sim_judge judge)
{
    struct sim_judgement other;
    judge(smaller, &other);
    if (!sim_fails_alike(judgement, &other)) {
        sim_case_fini(smaller);
        return false;
    }
    sim_case_fini(of);
    *of = *smaller;
    *judgement = other;
    return true;
}

// ---- the scenario ---------------------------------------------------------------------------------------------------

static bool is_one_of(const char *key, const char *const keys[])
{
    while (*keys && strcmp(key, *keys) != 0)
        keys++;
    return *keys != NULL;
}

// A fault has its times for as long as it is there: without its end it lasts, without its beginning it is longer than
// retries last, and then messages fail rightly. A cluster keeps its size: without it, it would be a larger one.
static bool may_go(const struct alb_document_entry *entry)
{
    static const char *const times[] = {"at", "until", NULL};
    static const char *const sizes[] = {"topology", "hosts", "leaves", NULL};
    return !(strcmp(entry->section, "fault") == 0 && is_one_of(entry->key, times)) &&
           !(strcmp(entry->section, "network") == 0 && is_one_of(entry->key, sizes));
}

// Without entry number index, or if it begins a section, without all of that.
static void leave_out(struct alb_document *document, const struct alb_document *from, uint32_t index)
{
    const struct alb_document_entry *out = &from->entries[index];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        const struct alb_document_entry *entry = &from->entries[i];
        bool is_of_it = strcmp(entry->section, out->section) == 0 && strcmp(entry->name, out->name) == 0;
        if (i != index && !(out->key[0] == '\0' && is_of_it))
            document->entries[kept++] = *entry;
    }
    document->count = kept;
}

static bool try_without_entry(struct sim_case *of, uint32_t index, struct sim_judgement *judgement, sim_judge judge)
{
    struct sim_case smaller;
    const struct alb_document_entry *entry = &of->document.entries[index];
    bool is_network = entry->key[0] == '\0' && strcmp(entry->section, "network") == 0;
    if (is_network || !may_go(entry))
        return false;
    sim_case_copy(&smaller, of);
    leave_out(&smaller.document, &of->document, index);
    return try(of, &smaller, judgement, judge);
}

// ---- data files -----------------------------------------------------------------------------------------------------

static const char *end_of(const char *line)
{
    const char *newline = strchr(line, '\n');
    return newline ? newline + 1 : line + strlen(line);
}

// Where the comment of a line begins, or NULL.
static const char *comment_of(const char *line)
{
    for (const char *end = end_of(line); line < end; line++)
        if (*line == '#' || (line[0] == '/' && line[1] == '/'))
            return line;
    return NULL;
}

static bool is_same(const char *comment, const char *other)
{
    size_t length = (size_t)(end_of(comment) - comment);
    return other && length == (size_t)(end_of(other) - other) && memcmp(comment, other, length) == 0;
}

// All lines that end in that comment.
static void cut(char *text, const char *comment)
{
    char *to = text;
    for (const char *line = text, *next; *line; line = next) {
        next = end_of(line);
        if (is_same(comment, comment_of(line)))
            continue;
        memmove(to, line, (size_t)(next - line));
        to += next - line;
    }
    *to = '\0';
}

// Without what goes with the line that begins there.
static bool try_without_line(struct sim_case *of, uint32_t data, size_t at, struct sim_judgement *judgement,
                             sim_judge judge)
{
    const char *comment = comment_of(of->data[data].text + at);
    struct sim_case smaller;
    if (!comment)
        return false;
    sim_case_copy(&smaller, of);
    char *copied = strndup(comment, (size_t)(end_of(comment) - comment)); // since the text is moved
    alb_assert(copied);
    cut(smaller.data[data].text, copied);
    free(copied);
    return try(of, &smaller, judgement, judge);
}

// The last lines first, as they may need earlier ones.
static bool try_lines(struct sim_case *of, uint32_t data, struct sim_judgement *judgement, sim_judge judge)
{
    bool has_shrunk = false;
    for (size_t at = strlen(of->data[data].text); at-- > 0;) {
        const char *text = of->data[data].text;
        bool is_line = at < strlen(text) && (at == 0 || text[at - 1] == '\n');
        if (is_line)
            has_shrunk |= try_without_line(of, data, at, judgement, judge);
    }
    return has_shrunk;
}

// ---- the whole ------------------------------------------------------------------------------------------------------

// A file that the scenario does not name any more says nothing.
static bool is_named(const struct sim_case *of, uint32_t data)
{
    for (uint32_t i = 0; i < of->document.count; i++)
        if (strcmp(of->document.entries[i].value, of->data[data].name) == 0)
            return true;
    return false;
}

void sim_shrink(struct sim_case *of, struct sim_judgement *judgement, sim_judge judge)
{
    bool has_shrunk = true;
    while (has_shrunk) {
        has_shrunk = false;
        for (uint32_t i = of->document.count; i-- > 0;)
            if (i < of->document.count)
                has_shrunk |= try_without_entry(of, i, judgement, judge);
        for (uint32_t i = 0; i < of->data_count; i++)
            if (is_named(of, i))
                has_shrunk |= try_lines(of, i, judgement, judge);
    }
}
