// SPDX-License-Identifier: BSD-2-Clause
// albedo sim --search: draws scenarios from seeds, runs each with every byte checked, and shrinks the first that breaks
// a promise to a short file: lines and sections are left out for as long as it fails without them.
#include "tools/command.h"
#include "tools/sim.h"

#include "sim/draw.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    EVENTS_MAX = 20000000,
    WHY_MAX = 700,
};

// ---- one scenario ---------------------------------------------------------------------------------------------------

enum verdict {
    GOOD,
    BROKEN,     // a promise
    IMPOSSIBLE, // no scenario
};

static enum verdict judge(struct alb_run *run, char why[WHY_MAX])
{
    const struct alb_run_options options = {.until = ALB_SIM_S(100), .events_max = EVENTS_MAX};
    static const char *const ends[] = {"", "nothing happens any more", "100 s have passed", "the events are used up"};
    enum alb_run_end end = alb_run_go(run, &options);
    if (run->violation[0]) {
        snprintf(why, WHY_MAX, "%s", run->violation);
        return BROKEN;
    }
    if (run->tasks_failed > 0) {
        snprintf(why, WHY_MAX, "%" PRIu64 " messages failed", run->tasks_failed);
        return BROKEN;
    }
    if (end == ALB_RUN_DONE)
        return GOOD;
    snprintf(why, WHY_MAX, "it does not end: %s, and %" PRIu64 " of %" PRIu32 " tasks are done", ends[end],
             run->tasks_done, run->schedule.task_count);
    return BROKEN;
}

static enum verdict run_document(const struct alb_document *document, char why[WHY_MAX])
{
    static struct alb_scenario scenario;
    static struct alb_run run;
    struct alb_complaint complaint = {0};
    enum verdict verdict = IMPOSSIBLE;
    if (alb_scenario_read(&scenario, document, NULL, ".", &complaint)) {
        if (alb_run_init(&run, &scenario, &complaint)) {
            verdict = judge(&run, why);
            alb_run_fini(&run);
        }
        alb_scenario_fini(&scenario);
    }
    if (verdict == IMPOSSIBLE)
        snprintf(why, WHY_MAX, "%s", complaint.text);
    return verdict;
}

// ---- smaller and smaller --------------------------------------------------------------------------------------------

// Without entry number index, or if it begins a section, without all of that.
static void leave_out(struct alb_document *smaller, const struct alb_document *document, uint32_t index)
{
    const struct alb_document_entry *out = &document->entries[index];
    uint32_t kept = 0;
    alb_document_copy(smaller, document);
    for (uint32_t i = 0; i < document->count; i++) {
        const struct alb_document_entry *entry = &document->entries[i];
        bool is_of_it = strcmp(entry->section, out->section) == 0 && strcmp(entry->name, out->name) == 0;
        if (i != index && !(out->key[0] == '\0' && is_of_it))
            smaller->entries[kept++] = *entry;
    }
    smaller->count = kept;
}

static void shrink(struct alb_document *document, char why[WHY_MAX])
{
    bool has_shrunk = true;
    while (has_shrunk) {
        has_shrunk = false;
        for (uint32_t i = document->count; i-- > 0;) {
            struct alb_document smaller;
            char other[WHY_MAX];
            if (i >= document->count)
                continue;
            leave_out(&smaller, document, i);
            if (run_document(&smaller, other) != BROKEN) {
                alb_document_fini(&smaller);
                continue;
            }
            alb_document_fini(document);
            *document = smaller;
            snprintf(why, WHY_MAX, "%s", other);
            has_shrunk = true;
        }
    }
}

static void write_document(const struct alb_document *document, uint64_t seed, const char *why, FILE *to)
{
    fprintf(to, "# Drawn from seed %" PRIu64 ". %s\n", seed, why);
    for (uint32_t i = 0; i < document->count; i++) {
        const struct alb_document_entry *entry = &document->entries[i];
        if (entry->key[0])
            fprintf(to, "%s = %s\n", entry->key, entry->value);
        else
            fprintf(to, "[%s%s%s]\n", entry->section, entry->name[0] ? " " : "", entry->name);
    }
}

static int report(struct alb_document *document, uint64_t seed, char why[WHY_MAX])
{
    char name[64];
    fprintf(stderr, "albedo sim: seed %" PRIu64 ": %s\n", seed, why);
    shrink(document, why);
    snprintf(name, sizeof(name), "search-%" PRIu64, seed);
    FILE *file = fopen(name, "w");
    if (!file)
        return command_error(COMMAND_FAILED, "sim", "%s: %s", name, strerror(errno));
    write_document(document, seed, why, file);
    fclose(file);
    write_document(document, seed, why, stdout);
    fprintf(stderr, "albedo sim: written to %s\n", name);
    return COMMAND_FAILED;
}

int sim_search(uint64_t first, uint64_t count, bool has_progress)
{
    uint64_t impossible = 0;
    for (uint64_t seed = first; seed - first < count; seed++) {
        char text[ALB_DRAW_TEXT_MAX], why[WHY_MAX];
        struct alb_document document;
        struct alb_complaint complaint = {0};
        alb_draw_scenario(seed, text);
        if (!alb_document_parse(&document, "drawn", text, strlen(text), &complaint))
            return command_error(COMMAND_FAILED, "sim", "seed %" PRIu64 ": %s", seed, complaint.text);
        enum verdict verdict = run_document(&document, why);
        if (verdict == IMPOSSIBLE)
            impossible++;
        int status = verdict == BROKEN ? report(&document, seed, why) : COMMAND_OK;
        alb_document_fini(&document);
        if (status != COMMAND_OK)
            return status;
        if (has_progress)
            fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " ", seed - first + 1, count);
    }
    if (has_progress)
        fprintf(stderr, "\r%40s\r", "");
    printf("%" PRIu64 " scenarios from seed %" PRIu64 ", %" PRIu64 " of them impossible: every promise kept\n", count,
           first, impossible);
    return COMMAND_OK;
}
