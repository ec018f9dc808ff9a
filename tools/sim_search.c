// SPDX-License-Identifier: BSD-2-Clause
// albedo sim --search: draws scenarios from seeds, runs each with every byte checked, and shrinks the first that breaks
// a promise to a short file (tools/sim_shrink.h).
#include "tools/command.h"
#include "tools/sim.h"
#include "tools/sim_shrink.h"

#include "sim/draw.h"
#include "sim/file.h"
#include "sim/last_words.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

// ---- the search -----------------------------------------------------------------------------------------------------

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

static bool names(const struct alb_document *document, const char *file)
{
    for (uint32_t i = 0; i < document->count; i++)
        if (strcmp(document->entries[i].value, file) == 0)
            return true;
    return false;
}

// COMMAND_OK, or a status after a line on stderr.
static int end_file(FILE *file, const char *name)
{
    return fclose(file) == 0 ? COMMAND_OK : command_error(COMMAND_FAILED, "sim", "%s: %s", name, strerror(errno));
}

// In the working directory. COMMAND_OK, or a status after a line on stderr.
static int write_case(const struct sim_case *of, uint64_t seed, const char *why)
{
    char name[64];
    snprintf(name, sizeof(name), "search-%" PRIu64, seed);
    FILE *file = alb_sim_file_open(name);
    if (!file)
        return command_error(COMMAND_FAILED, "sim", "%s: %s", name, strerror(errno));
    write_document(&of->document, seed, why, file);
    int status = end_file(file, name);
    for (uint32_t i = 0; i < of->data_count && status == COMMAND_OK; i++) {
        const struct alb_scenario_data *data = &of->data[i];
        if (!names(&of->document, data->name))
            continue;
        file = alb_sim_file_open(data->name);
        if (!file)
            return command_error(COMMAND_FAILED, "sim", "%s: %s", data->name, strerror(errno));
        fputs(data->text, file);
        status = end_file(file, data->name);
    }
    if (status == COMMAND_OK)
        fprintf(stderr, "albedo sim: written to %s\n", name);
    return status;
}

// What does not happen again is no scenario's, and nothing would be left of it after shrinking.
static bool happens_again(const struct sim_case *of, uint64_t seed, const struct sim_judgement *judgement)
{
    struct sim_judgement again;
    sim_judge_case(of, &again);
    if (sim_fails_alike(judgement, &again))
        return true;
    fprintf(stderr, "albedo sim: seed %" PRIu64 " does not do it again: %s\n", seed, again.why);
    return false;
}

static void report(struct sim_case *of, uint64_t seed, struct sim_judgement *judgement)
{
    fprintf(stderr, "albedo sim: seed %" PRIu64 ": %s\n", seed, judgement->why);
    if (happens_again(of, seed, judgement))
        sim_shrink(of, judgement, sim_judge_case);
    bool is_written = write_case(of, seed, judgement->why) == COMMAND_OK;
    write_document(&of->document, seed, judgement->why,
                   stdout); // where it could not be written, all that is left of it
    if (is_written)
        fprintf(stderr, "replay: albedo sim --check --max-time %ds --max-events %d search-%" PRIu64 "\n",
                SIM_JUDGED_SECONDS, SIM_JUDGED_EVENTS, seed);
}

static bool draw(struct sim_case *of, uint64_t seed, struct alb_complaint *complaint)
{
    static struct alb_drawn drawn;
    alb_draw_scenario(seed, &drawn);
    *of = (struct sim_case){.data_count = SIM_DATA_MAX};
    snprintf(of->data[0].name, sizeof(of->data[0].name), "%s", drawn.sizes_name);
    snprintf(of->data[1].name, sizeof(of->data[1].name), "%s", drawn.trace_name);
    of->data[0].text = strdup(drawn.sizes);
    of->data[1].text = strdup(drawn.trace);
    alb_assert(of->data[0].text && of->data[1].text);
    return alb_document_parse(&of->document, "drawn", drawn.text, strlen(drawn.text), complaint);
}

// COMMAND_OK: nothing was found.
static int search(uint64_t seed, uint64_t *impossible)
{
    struct sim_case of;
    struct sim_judgement judgement;
    struct alb_complaint complaint = {0};
    if (!draw(&of, seed, &complaint)) {
        sim_case_fini(&of);
        return command_error(COMMAND_FAILED, "sim", "seed %" PRIu64 ": %s", seed, complaint.text);
    }
    sim_judge_case(&of, &judgement);
    *impossible += judgement.verdict == SIM_IMPOSSIBLE;
    bool is_good = judgement.verdict == SIM_GOOD || judgement.verdict == SIM_IMPOSSIBLE;
    if (!is_good)
        report(&of, seed, &judgement);
    sim_case_fini(&of);
    return is_good ? COMMAND_OK : COMMAND_FAILED;
}

int sim_search(uint64_t first, uint64_t count, bool has_progress)
{
    uint64_t impossible = 0;
    alb_last_words_begin("albedo sim");
    for (uint64_t seed = first; seed - first < count; seed++) {
        alb_last_words_seed(seed);
        int status = search(seed, &impossible);
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
