// SPDX-License-Identifier: BSD-2-Clause
// albedo sim --search: draws scenarios from seeds, runs each with every byte checked, and shrinks the first that breaks
// a promise to a short file (tools/sim_shrink.h).
#include "tools/command.h"
#include "tools/sim.h"
#include "tools/sim_shrink.h"

#include "sim/draw.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    EVENTS_MAX = 20000000,
};

// ---- one scenario ---------------------------------------------------------------------------------------------------

static enum sim_verdict judge(struct alb_run *run, char why[SIM_WHY_MAX])
{
    const struct alb_run_options options = {.until = ALB_SIM_S(100), .events_max = EVENTS_MAX};
    static const char *const ends[] = {"", "nothing happens any more", "100 s have passed", "the events are used up"};
    enum alb_run_end end = alb_run_go(run, &options);
    if (run->violation[0]) {
        snprintf(why, SIM_WHY_MAX, "%s", run->violation);
        return SIM_BROKEN;
    }
    if (run->tasks_failed > 0) {
        snprintf(why, SIM_WHY_MAX, "%" PRIu64 " messages failed", run->tasks_failed);
        return SIM_FAILED;
    }
    if (end == ALB_RUN_DONE)
        return SIM_GOOD;
    snprintf(why, SIM_WHY_MAX, "it does not end: %s, and %" PRIu64 " of %" PRIu32 " tasks are done", ends[end],
             run->tasks_done, run->schedule.task_count);
    return end == ALB_RUN_STUCK ? SIM_STUCK : SIM_NEVER_ENDED;
}

static enum sim_verdict run_document(const struct alb_document *document, char why[SIM_WHY_MAX])
{
    static struct alb_scenario scenario;
    static struct alb_run run;
    struct alb_complaint complaint = {0};
    enum sim_verdict verdict = SIM_IMPOSSIBLE;
    if (alb_scenario_read(&scenario, document, NULL, ".", &complaint)) {
        if (alb_run_init(&run, &scenario, &complaint)) {
            verdict = judge(&run, why);
            alb_run_fini(&run);
        }
        alb_scenario_fini(&scenario);
    }
    if (verdict == SIM_IMPOSSIBLE)
        snprintf(why, SIM_WHY_MAX, "%s", complaint.text);
    return verdict;
}

// ---- the search ----------------------------------------------------------------------------------------------------

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

static int report(struct alb_document *document, uint64_t seed, enum sim_verdict verdict, char why[SIM_WHY_MAX])
{
    char name[64];
    fprintf(stderr, "albedo sim: seed %" PRIu64 ": %s\n", seed, why);
    sim_shrink(document, verdict, why, run_document);
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
        char text[ALB_DRAW_TEXT_MAX], why[SIM_WHY_MAX];
        struct alb_document document;
        struct alb_complaint complaint = {0};
        alb_draw_scenario(seed, text);
        if (!alb_document_parse(&document, "drawn", text, strlen(text), &complaint))
            return command_error(COMMAND_FAILED, "sim", "seed %" PRIu64 ": %s", seed, complaint.text);
        enum sim_verdict verdict = run_document(&document, why);
        if (verdict == SIM_IMPOSSIBLE)
            impossible++;
        bool is_good = verdict == SIM_GOOD || verdict == SIM_IMPOSSIBLE;
        int status = is_good ? COMMAND_OK : report(&document, seed, verdict, why);
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
