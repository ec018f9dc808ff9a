// SPDX-License-Identifier: BSD-2-Clause
#include "sim/goal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    const char *at;
    uint32_t length;
};

struct label {
    char name[ALB_GOAL_LABEL_MAX];
    uint32_t task, line;
};

struct requirement {
    char task[ALB_GOAL_LABEL_MAX], other[ALB_GOAL_LABEL_MAX];
    uint32_t line;
    bool at_start;
};

#define CALC_NS_MAX (INT64_MAX / 1000ull) // 106 days, in picoseconds half of what a time holds

struct reader {
    const char *file;
    const char *at, *end;
    uint32_t line;
    struct alb_complaint *complaint;
    struct alb_schedule *schedule;
    const char *name;
    uint64_t calc_left_ns; // of CALC_NS_MAX, which all calculations share: they may wait for one another
    bool has_ranks;        // num_ranks was said
    bool is_inside;        // a rank
    uint32_t rank, rank_line;
    bool *is_given; // by rank
    struct label *labels;
    struct requirement *requirements;
    uint32_t label_count, label_capacity, requirement_count, requirement_capacity;
};

// ---- words ----------------------------------------------------------------------------------------------------------

// Skips blanks and comments, but not the end of a line.
static bool skip(struct reader *reader)
{
    while (reader->at < reader->end) {
        size_t left = (size_t)(reader->end - reader->at);
        if (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\r') {
            reader->at++;
        } else if (left >= 2 && reader->at[0] == '/' && reader->at[1] == '/') {
            const char *newline = memchr(reader->at, '\n', left);
            reader->at = newline ? newline : reader->end;
        } else if (left >= 2 && reader->at[0] == '/' && reader->at[1] == '*') {
            uint32_t line = reader->line;
            for (reader->at += 2; reader->end - reader->at >= 2 && !(reader->at[0] == '*' && reader->at[1] == '/');)
                reader->line += *reader->at++ == '\n';
            if (reader->end - reader->at < 2)
                return alb_complain(reader->complaint, reader->file, line, "a comment has no end; expected \"*/\"");
            reader->at += 2;
        } else {
            break;
        }
    }
    return true;
}

static bool is_part_of_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// The next word of this line, of one character if it is not of letters or digits; of none at its end. False:
// complained.
static bool next(struct reader *reader, struct word *word)
{
    if (!skip(reader))
        return false;
    word->at = reader->at;
    while (reader->at < reader->end && is_part_of_word(*reader->at))
        reader->at++;
    if (reader->at == word->at && reader->at < reader->end && *reader->at != '\n')
        reader->at++;
    word->length = (uint32_t)(reader->at - word->at);
    return true;
}

static bool is(struct word word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.at, text, word.length) == 0;
}

static bool expected(struct reader *reader, struct word found, const char *what)
{
    if (found.length == 0)
        return alb_complain(reader->complaint, reader->file, reader->line, "the line ends; expected %s", what);
    bool is_text = (unsigned char)found.at[0] > ' ' && (unsigned char)found.at[0] < 0x7f;
    return alb_complain(reader->complaint, reader->file, reader->line, "found %s%.*s%s; expected %s",
                        is_text ? "\"" : "", is_text ? (int)ALB_MIN(found.length, 40u) : INT32_MAX,
                        is_text ? found.at : "no plain letter", is_text ? "\"" : "", what);
}

static bool take(struct reader *reader, const char *text)
{
    struct word word;
    char quoted[32];
    if (!next(reader, &word))
        return false;
    snprintf(quoted, sizeof(quoted), "\"%s\"", text);
    return is(word, text) || expected(reader, word, quoted);
}

static bool take_end(struct reader *reader)
{
    struct word word;
    return next(reader, &word) && (word.length == 0 || expected(reader, word, "the end of the line"));
}

static bool number_of(struct word word, uint64_t max, uint64_t *value)
{
    *value = 0;
    for (uint32_t i = 0; i < word.length; i++) {
        if (word.at[i] < '0' || word.at[i] > '9' || __builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(word.at[i] - '0'), value))
            return false;
    }
    return word.length > 0 && *value <= max;
}

static bool take_number(struct reader *reader, uint64_t max, const char *what, uint64_t *value)
{
    struct word word;
    char text[120];
    if (!next(reader, &word))
        return false;
    snprintf(text, sizeof(text), "%s, a whole number up to %" PRIu64, what, max);
    return number_of(word, max, value) || expected(reader, word, text);
}

// A number, or -1 for any.
static bool take_number_or_any(struct reader *reader, uint64_t max, bool may_be_any, const char *what, uint32_t *value)
{
    struct reader before = *reader;
    struct word word;
    uint64_t number;
    if (!next(reader, &word))
        return false;
    if (may_be_any && is(word, "-1")) {
        *value = ALB_TASK_ANY;
        return true;
    }
    *reader = before;
    if (!take_number(reader, max, what, &number))
        return false;
    *value = (uint32_t)number;
    return true;
}

static bool label_of(struct reader *reader, struct word word, char name[ALB_GOAL_LABEL_MAX])
{
    bool is_name = word.length > 0 && word.length < ALB_GOAL_LABEL_MAX &&
                   ((word.at[0] >= 'a' && word.at[0] <= 'z') || (word.at[0] >= 'A' && word.at[0] <= 'Z'));
    if (!is_name)
        return expected(reader, word, "a label: a letter, then letters, digits or \"_\", 31 at most");
    memcpy(name, word.at, word.length);
    name[word.length] = '\0';
    return true;
}

// ---- operations -----------------------------------------------------------------------------------------------------

static bool take_rank(struct reader *reader, bool may_be_any, uint32_t *rank)
{
    uint32_t last = reader->schedule->rank_count - 1;
    if (!take_number_or_any(reader, last, may_be_any, "a rank", rank))
        return false;
    return *rank != reader->rank ||
           alb_complain(reader->complaint, reader->file, reader->line,
                        "rank %" PRIu32 " speaks to itself; expected another rank up to %" PRIu32, *rank, last);
}

struct placement {
    uint32_t tag, processor;
};

// "tag T", "cpu C", "nic N", in any order.
static bool take_placement(struct reader *reader, bool is_calc, bool may_be_any, struct placement *placement)
{
    uint64_t number;
    *placement = (struct placement){0};
    for (;;) {
        struct word word;
        if (!next(reader, &word))
            return false;
        if (word.length == 0)
            return true;
        if (is(word, "tag") && !is_calc) {
            if (!take_number_or_any(reader, ALB_TASK_UNHEARD - 1, may_be_any, "a tag", &placement->tag))
                return false;
        } else if (is(word, "cpu")) {
            if (!take_number(reader, 255, "a processor", &number))
                return false;
            placement->processor = (uint32_t)number;
        } else if (is(word, "nic")) {
            if (!take_number(reader, 0, "a network interface, of which hosts have one", &number))
                return false;
        } else {
            return expected(reader, word,
                            is_calc ? "\"cpu\", \"nic\" or the end of the line"
                                    : "\"tag\", \"cpu\", \"nic\" or the end of the line");
        }
    }
}

// "4096b": number and unit are one word.
static bool take_bytes(struct reader *reader, uint64_t *bytes)
{
    struct word word;
    if (!next(reader, &word))
        return false;
    if (word.length > 0 && word.at[word.length - 1] == 'b') {
        struct word digits = {word.at, word.length - 1};
        if (number_of(digits, UINT32_MAX >> 1, bytes))
            return true;
    } else if (number_of(word, UINT32_MAX >> 1, bytes)) {
        return take(reader, "b");
    }
    return expected(reader, word, "a size such as 4096b, below 2 GiB");
}

static bool read_message(struct reader *reader, bool sends, uint32_t *task)
{
    uint64_t bytes;
    uint32_t peer;
    struct placement placement;
    if (!take_bytes(reader, &bytes) || !take(reader, sends ? "to" : "from") || !take_rank(reader, !sends, &peer) ||
        !take_placement(reader, false, !sends, &placement))
        return false;
    *task = sends ? alb_schedule_send(reader->schedule, reader->rank, peer, bytes, placement.tag, 0)
                  : alb_schedule_recv(reader->schedule, reader->rank, peer, bytes, placement.tag);
    return true;
}

static bool read_calc(struct reader *reader, uint32_t *task)
{
    uint64_t span;
    struct placement placement;
    if (!take_number(reader, reader->calc_left_ns, "nanoseconds, of all calculations together", &span) ||
        !take_placement(reader, true, false, &placement))
        return false;
    reader->calc_left_ns -= span;
    *task = alb_schedule_calc(reader->schedule, reader->rank, ALB_SIM_NS(span), placement.processor);
    return true;
}

static void *one_more(void *array, uint32_t count, uint32_t *capacity, size_t bytes)
{
    if (count == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 64;
        array = realloc(array, *capacity * bytes);
        alb_assert(array);
    }
    return array;
}

static bool read_operation(struct reader *reader, struct word verb, const char *label)
{
    uint32_t line = reader->line, task;
    bool is_good;
    if (reader->schedule->task_count == ALB_GOAL_TASKS_MAX)
        return alb_complain(reader->complaint, reader->file, line, "expected %d operations at most",
                            ALB_GOAL_TASKS_MAX);
    if (is(verb, "send") || is(verb, "recv"))
        is_good = read_message(reader, is(verb, "send"), &task);
    else if (is(verb, "calc"))
        is_good = read_calc(reader, &task);
    else
        return expected(reader, verb, "\"send\", \"recv\" or \"calc\"");
    if (!is_good)
        return false;
    reader->schedule->tasks[task].line = line;
    if (!label)
        return true;
    reader->labels = one_more(reader->labels, reader->label_count, &reader->label_capacity, sizeof(*reader->labels));
    struct label *own = &reader->labels[reader->label_count++];
    *own = (struct label){.task = task, .line = line};
    strcpy(own->name, label);
    return true;
}

static bool read_requirement(struct reader *reader, const char *label, bool at_start)
{
    struct requirement requirement = {.line = reader->line, .at_start = at_start};
    struct word word;
    if (!next(reader, &word) || !label_of(reader, word, requirement.other) || !take_end(reader))
        return false;
    strcpy(requirement.task, label);
    reader->requirements = one_more(reader->requirements, reader->requirement_count, &reader->requirement_capacity,
                                    sizeof(*reader->requirements));
    reader->requirements[reader->requirement_count++] = requirement;
    return true;
}

// ---- ranks ----------------------------------------------------------------------------------------------------------

static int compare_labels(const void *left, const void *right)
{
    const struct label *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int compare_names(const void *key, const void *label)
{
    return strcmp(key, ((const struct label *)label)->name);
}

static bool resolve(struct reader *reader, const char *name, uint32_t line, uint32_t *task)
{
    const struct label *label =
        reader->label_count ? bsearch(name, reader->labels, reader->label_count, sizeof(*reader->labels), compare_names)
                            : NULL;
    if (!label)
        return alb_complain(reader->complaint, reader->file, line,
                            "rank %" PRIu32 " has no operation \"%s\"; expected the label of one", reader->rank, name);
    *task = label->task;
    return true;
}

// At the end of a rank, since labels may stand behind their uses.
static bool end_rank(struct reader *reader)
{
    if (reader->label_count)
        qsort(reader->labels, reader->label_count, sizeof(*reader->labels), compare_labels);
    for (uint32_t i = 1; i < reader->label_count; i++)
        if (strcmp(reader->labels[i].name, reader->labels[i - 1].name) == 0)
            return alb_complain(reader->complaint, reader->file, reader->labels[i].line,
                                "label \"%s\" is there already, in line %" PRIu32 "; expected each once in a rank",
                                reader->labels[i].name, reader->labels[i - 1].line);
    for (uint32_t i = 0; i < reader->requirement_count; i++) {
        const struct requirement *requirement = &reader->requirements[i];
        uint32_t task = 0, other = 0;
        if (!resolve(reader, requirement->task, requirement->line, &task) ||
            !resolve(reader, requirement->other, requirement->line, &other))
            return false;
        alb_schedule_require(reader->schedule, task, other, requirement->at_start);
    }
    reader->label_count = reader->requirement_count = 0;
    reader->is_inside = false;
    return take_end(reader);
}

static bool read_inside(struct reader *reader, struct word word)
{
    char label[ALB_GOAL_LABEL_MAX];
    if (is(word, "}"))
        return end_rank(reader);
    if (is(word, "send") || is(word, "recv") || is(word, "calc"))
        return read_operation(reader, word, NULL);
    if (!label_of(reader, word, label) || !next(reader, &word))
        return false;
    if (is(word, "requires") || is(word, "irequires"))
        return read_requirement(reader, label, is(word, "irequires"));
    if (!is(word, ":"))
        return expected(reader, word, "\":\", \"requires\" or \"irequires\" behind a label");
    return next(reader, &word) && read_operation(reader, word, label);
}

static bool begin_rank(struct reader *reader)
{
    uint64_t rank;
    if (!reader->has_ranks)
        return alb_complain(reader->complaint, reader->file, reader->line, "expected \"num_ranks N\" before any rank");
    if (!take_number(reader, reader->schedule->rank_count - 1, "a rank", &rank) || !take(reader, "{"))
        return false;
    if (reader->is_given[rank])
        return alb_complain(reader->complaint, reader->file, reader->line,
                            "rank %" PRIu64 " is there already; expected each once", rank);
    reader->is_given[rank] = reader->is_inside = true;
    reader->rank = (uint32_t)rank;
    reader->rank_line = reader->line;
    return true;
}

static bool read_outside(struct reader *reader, struct word word)
{
    uint64_t ranks;
    if (is(word, "rank"))
        return begin_rank(reader);
    if (!is(word, "num_ranks"))
        return expected(reader, word, "\"num_ranks\" or \"rank\"");
    if (reader->has_ranks)
        return alb_complain(reader->complaint, reader->file, reader->line, "expected \"num_ranks\" once");
    if (!take_number(reader, ALB_GOAL_RANKS_MAX, "how many ranks there are", &ranks) || !take_end(reader))
        return false;
    if (ranks == 0)
        return alb_complain(reader->complaint, reader->file, reader->line, "expected one rank at least");
    reader->has_ranks = true;
    alb_schedule_init(reader->schedule, (uint32_t)ranks);
    alb_schedule_begin(reader->schedule, reader->name);
    reader->is_given = calloc(ranks, sizeof(*reader->is_given));
    alb_assert(reader->is_given);
    return true;
}

static bool read_all(struct reader *reader)
{
    for (; reader->at < reader->end; reader->line++, reader->at++) {
        struct word word;
        do {
            if (!next(reader, &word))
                return false;
            if (word.length > 0 && !(reader->is_inside ? read_inside(reader, word) : read_outside(reader, word)))
                return false;
        } while (word.length > 0 && reader->at < reader->end && *reader->at != '\n');
    }
    if (reader->is_inside)
        return alb_complain(reader->complaint, reader->file, reader->line,
                            "rank %" PRIu32 ", which begins in line %" PRIu32 ", has no end; expected \"}\"",
                            reader->rank, reader->rank_line);
    return reader->has_ranks || alb_complain(reader->complaint, reader->file, reader->line, "expected \"num_ranks N\"");
}

bool alb_goal_parse(struct alb_schedule *schedule, const char *name, const char *file, const char *text, size_t length,
                    struct alb_complaint *complaint)
{
    struct reader reader = {.file = file,
                            .at = text,
                            .end = text + length,
                            .line = 1,
                            .complaint = complaint,
                            .schedule = schedule,
                            .name = name,
                            .calc_left_ns = CALC_NS_MAX};
    *schedule = (struct alb_schedule){0};
    bool is_good = read_all(&reader) && alb_schedule_seal(schedule, file, complaint);
    if (!is_good)
        alb_schedule_fini(schedule);
    free(reader.is_given);
    free(reader.labels);
    free(reader.requirements);
    return is_good;
}
