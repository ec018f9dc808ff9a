// SPDX-License-Identifier: BSD-2-Clause
// One run of `albedo sim`: the scenario file, the progress line, the end.
#include "tools/command.h"
#include "tools/free_memory.h"
#include "tools/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PROGRESS_EVENTS = 50000,
    FILE_BYTES_MAX = 1 << 24,
};

// ---- the file -------------------------------------------------------------------------------------------------------

static char *read_all(const char *path, size_t *length)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    char *text = malloc(FILE_BYTES_MAX);
    *length = text ? fread(text, 1, FILE_BYTES_MAX, file) : 0;
    int failed = ferror(file) ? errno : *length == FILE_BYTES_MAX ? EFBIG : 0;
    fclose(file);
    if (text && !failed)
        return text;
    free(text);
    errno = failed ? failed : ENOMEM;
    return NULL;
}

// Says it; the exit status. variant: in which it is wrong; NULL: none.
static int refuse(const struct alb_complaint *complaint, const char *variant)
{
    if (complaint->is_of_option)
        return command_error(COMMAND_USAGE, "sim", "%s", complaint->text);
    return command_error(COMMAND_FAILED, "sim", "%s%s%s%s", complaint->text, variant ? " (variant " : "",
                         variant ? variant : "", variant ? ")" : "");
}

// The scenarios that came with the program: from the installed one, and from the one in a build folder of the source.
static bool find_library(char library[PATH_MAX])
{
    static const char *const places[] = {ALBEDO_SCENARIOS_FROM_BIN, "../../scenarios"};
    char bin[PATH_MAX], place[PATH_MAX];
    if (command_folder(bin) != 0)
        return false;
    for (size_t i = 0; i < ALB_COUNT(places); i++) {
        int length = snprintf(place, sizeof(place), "%s/%s", bin, places[i]);
        if (length > 0 && (size_t)length < sizeof(place) && realpath(place, library) != NULL)
            return true;
    }
    return false;
}

// Reads the file of that name or, if there is none, the scenario of the library. NULL after a line on stderr.
static char *read_file(struct sim_file *file, const char *name, size_t *length)
{
    char library[PATH_MAX];
    int needed = snprintf(file->path, sizeof(file->path), "%s", name);
    char *text = (size_t)needed < sizeof(file->path) ? read_all(file->path, length) : (errno = ENAMETOOLONG, NULL);
    if (text)
        return text;
    int error = errno;
    bool has_library = error == ENOENT && find_library(library);
    if (has_library && !strchr(name, '/')) {
        needed = snprintf(file->path, sizeof(file->path), "%s/%s", library, name);
        text = (size_t)needed < sizeof(file->path) ? read_all(file->path, length) : NULL;
    }
    if (!text)
        command_error(COMMAND_FAILED, "sim", "%s: %s%s%s", name, strerror(error),
                      has_library ? "; the scenarios that came with albedo are in " : "", has_library ? library : "");
    return text;
}

int sim_file_open(struct sim_file *file, const struct sim_options *options)
{
    struct alb_complaint complaint = {0};
    size_t length;
    *file = (struct sim_file){0};
    file->text = read_file(file, options->file, &length);
    if (!file->text)
        return COMMAND_FAILED;
    const char *slash = strrchr(file->path, '/');
    file->name = slash ? slash + 1 : file->path;
    snprintf(file->directory, sizeof(file->directory), "%.*s", slash ? (int)(slash - file->path) : 1,
             slash ? file->path : ".");
    bool is_good = alb_document_parse(&file->document, file->path, file->text, length, &complaint);
    for (uint32_t i = 0; i < options->setting_count && is_good; i++)
        is_good = alb_document_set(&file->document, options->settings[i], &complaint);
    is_good = is_good && alb_scenario_check_sections(&file->document, &complaint) &&
              alb_expect_check(&file->document, &complaint);
    if (is_good)
        return COMMAND_OK;
    sim_file_close(file);
    return refuse(&complaint, NULL);
}

void sim_file_close(struct sim_file *file)
{
    alb_document_fini(&file->document);
    free(file->text);
}

const char *sim_file_says(const struct sim_file *file, const char *key)
{
    const struct alb_document_entry *entry = alb_document_find(&file->document, "scenario", "", key);
    return entry ? entry->value : NULL;
}

void sim_title(const struct alb_result_of *result, bool is_file, char *text, size_t size)
{
    if (!result->variant)
        snprintf(text, size, "%s", result->scenario);
    else
        snprintf(text, size, is_file ? "%s-%s" : "%s (%s)", result->scenario, result->variant);
}

// ---- progress -------------------------------------------------------------------------------------------------------

struct watch {
    double begun; // when the cluster began to be built,
    double ran;   // and the run to go
    double shown;
    uint64_t shown_events;
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// The part of a run that is behind it: of its messages, or of the time that it has.
static double part_of(const struct alb_run_progress *progress)
{
    double done = progress->bytes ? (double)progress->bytes_done / (double)progress->bytes
                                  : (double)progress->tasks_done / (double)ALB_MAX(progress->tasks, (uint64_t)1);
    double passed = progress->until != ALB_SIM_NEVER ? (double)progress->now / (double)progress->until : 0;
    return ALB_MAX(done, passed);
}

static void show(void *context, const struct alb_run_progress *progress)
{
    struct watch *watch = context;
    double now = seconds(), span = now - watch->shown;
    if (span < 0.5)
        return;
    double part = part_of(progress);
    char at[ALB_METRIC_TEXT_MAX], left[ALB_METRIC_TEXT_MAX] = "?";
    if (part > 0)
        alb_metric_format(ALB_METRIC_NS, (now - watch->ran) * (1 - part) / part * 1e9, left);
    fprintf(stderr, "\r%s simulated, %.2f million events/s, %.1f %% done, %s left   ",
            alb_metric_format(ALB_METRIC_NS, (double)progress->now / 1000, at),
            (double)(progress->events - watch->shown_events) / span / 1e6, part * 100, left);
    fflush(stderr);
    watch->shown = now;
    watch->shown_events = progress->events;
}

static void wipe(void)
{
    fprintf(stderr, "\r%80s\r", "");
}

// ---- a run ----------------------------------------------------------------------------------------------------------

// Nothing happens any more, though no message has failed: what is not done never could be.
static bool is_stuck(const struct alb_run *run)
{
    return run->end == ALB_RUN_STUCK && run->tasks_failed == 0;
}

enum {
    SHOWN_MAX = 5, // tasks that a run was stuck with
};

// Where a task stands in its trace, or NULL: it has none.
static const char *trace_of(const struct alb_run *run, const struct alb_task *task, char path[ALB_SCENARIO_PATH_MAX])
{
    const struct alb_scenario *scenario = run->scenario;
    for (uint32_t i = 0; i < scenario->workload_count && task->line; i++)
        if (scenario->workloads[i].file &&
            strcmp(scenario->workloads[i].name, run->schedule.works[task->work].name) == 0)
            return alb_scenario_path(scenario, scenario->workloads[i].file, path);
    return NULL;
}

static void describe_task(const struct alb_run *run, uint32_t index)
{
    static const char *const verbs[] = {"a send", "a receipt", "a calculation"};
    const struct alb_task *task = &run->schedule.tasks[index];
    bool has_begun = run->times[index].begun != ALB_SIM_NEVER;
    char path[ALB_SCENARIO_PATH_MAX];
    const char *trace = trace_of(run, task, path);
    if (trace)
        fprintf(stderr, "%s:%" PRIu32 ": ", trace, task->line);
    else
        fprintf(stderr, "albedo sim: ");
    fprintf(stderr, "%s of host %" PRIu32 ", %s, %s\n", verbs[task->kind], task->rank,
            run->schedule.works[task->work].name,
            !has_begun                                                  ? "waits for what must be done before it"
            : task->kind == ALB_TASK_RECV && task->peer == ALB_TASK_ANY ? "waits for a message from any host"
            : task->kind == ALB_TASK_RECV                               ? "waits for its message"
                                                                        : "has begun and is not done");
}

// What has begun stands for the rest, which waits for it.
static void describe_stuck(const struct alb_run *run)
{
    uint32_t shown = 0;
    for (uint32_t begun = 2; begun-- > 0;)
        for (uint32_t i = 0; i < run->schedule.task_count && shown < SHOWN_MAX; i++) {
            bool is_open = run->times[i].done == ALB_SIM_NEVER;
            if (!is_open || (run->times[i].begun != ALB_SIM_NEVER) != begun)
                continue;
            describe_task(run, i);
            shown++;
        }
}

static void describe_end(const struct alb_run *run)
{
    uint32_t open = alb_run_first_open(run);
    if (run->end == ALB_RUN_DONE || open == ALB_TASK_NONE)
        return;
    static const char *const whys[] = {"", "nothing happens any more", "its time has come", "so many events have been"};
    const struct alb_task *task = &run->schedule.tasks[open];
    fprintf(stderr,
            "albedo sim: the run ended since %s, with %" PRIu64 " of %" PRIu32
            " tasks open or failed; the first: host %" PRIu32 ", %s",
            whys[run->end], run->schedule.task_count - run->tasks_done + run->tasks_failed, run->schedule.task_count,
            task->rank, run->schedule.works[task->work].name);
    fprintf(stderr, task->line ? ", line %" PRIu32 " of its trace\n" : "\n", task->line);
    if (is_stuck(run))
        describe_stuck(run);
}

static int run_scenario(const struct sim_file *file, const struct sim_options *options, struct alb_scenario *scenario,
                        const struct sim_listener *listener, struct sim_outcome *outcome)
{
    static struct alb_run run;
    struct alb_complaint complaint = {0};
    struct watch watch = {.begun = seconds()};
    struct sim_watch watched;
    scenario->has_trace = options->trace != NULL;
    scenario->traced_host = options->host;
    if (!alb_run_init(&run, scenario, &complaint))
        return refuse(&complaint, outcome->variant);
    int status = sim_watch_open(&watched, options, &run);
    if (status != COMMAND_OK) {
        alb_run_fini(&run);
        return status;
    }
    const struct alb_run_options run_options = {
        .until = options->until,
        .events_max = options->events_max,
        .has_heat = options->json || options->plot || options->html,
        .progress_events = PROGRESS_EVENTS,
        .on_progress = options->has_progress ? show : NULL,
        .context = &watch,
    };
    if (listener && listener->on_begin)
        listener->on_begin(listener->context);
    watch.ran = watch.shown = seconds();
    outcome->end = alb_run_go(&run, &run_options);
    if (options->has_progress)
        wipe();
    outcome->seed = scenario->seed;
    alb_summary_make(&outcome->summary, &run);
    const struct alb_result_of result = {.scenario = file->name,
                                         .variant = outcome->variant,
                                         .run = &run,
                                         .summary = &outcome->summary,
                                         .wall_seconds = seconds() - watch.begun};
    outcome->is_stuck = is_stuck(&run);
    outcome->has_end = scenario->end != ALB_SIM_NEVER;
    outcome->is_cut = run.end == ALB_RUN_EVENTS || (run.end == ALB_RUN_TIME && options->until < scenario->end);
    if (!options->is_quiet || outcome->is_stuck)
        describe_end(&run);
    if (run.violation[0])
        fprintf(stderr, "albedo sim: %s\n", run.violation);
    status = listener ? listener->on_end(listener->context, &result) : COMMAND_OK;
    if (run.violation[0])
        status = COMMAND_FAILED;
    alb_run_fini(&run);
    int closed = sim_watch_close(&watched, options);
    return status == COMMAND_OK ? closed : status;
}

static int read_scenario(struct alb_scenario *scenario, const struct sim_file *file, const char *variant,
                         struct alb_complaint *complaint)
{
    *complaint = (struct alb_complaint){0};
    if (!alb_scenario_read(scenario, &file->document, variant, file->directory, complaint))
        return refuse(complaint, variant);
    if (!alb_scenario_keys_have_effect(scenario, &file->document, variant, complaint)) {
        alb_scenario_fini(scenario);
        return refuse(complaint, variant);
    }
    scenario->has_room = sim_has_room;
    scenario->memory_bytes = free_memory_bytes();
    return COMMAND_OK;
}

int sim_file_check(const struct sim_file *file, const char *variant, bool is_whole, const struct sim_reader *reader,
                   struct alb_complaint *complaint)
{
    static struct alb_scenario scenario;
    int status = read_scenario(&scenario, file, variant, complaint);
    if (status != COMMAND_OK)
        return status;
    if (is_whole && !alb_run_check(&scenario, complaint))
        status = refuse(complaint, variant);
    else if (reader && !reader->on_read(reader->context, &scenario))
        status = COMMAND_FAILED;
    alb_scenario_fini(&scenario);
    return status;
}

int sim_run(const struct sim_file *file, const struct sim_options *options, const char *variant,
            const struct sim_listener *listener, struct sim_outcome *outcome)
{
    static struct alb_scenario scenario;
    struct alb_complaint complaint;
    *outcome = (struct sim_outcome){.variant = variant};
    int status = read_scenario(&scenario, file, variant, &complaint);
    if (status != COMMAND_OK)
        return status;
    status = run_scenario(file, options, &scenario, listener, outcome);
    alb_scenario_fini(&scenario);
    return status;
}
