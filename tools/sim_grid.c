// SPDX-License-Identifier: BSD-2-Clause
#include "tools/sim_grid.h"

#include "tools/command.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct sim_cell *sim_grid_cell(const struct sim_grid *grid, uint32_t point, uint32_t policy, uint32_t seed)
{
    size_t number = ((size_t)point * grid->policy_count + policy) * grid->seeds + seed;
    return (struct sim_cell *)(grid->cells + number * sim_grid_cell_bytes(grid));
}

size_t sim_grid_cell_bytes(const struct sim_grid *grid)
{
    return sizeof(struct sim_cell) + grid->column_count * sizeof(double);
}

const char *sim_grid_value(const struct sim_grid *grid, uint32_t point, uint32_t vary)
{
    for (uint32_t i = 0; i < vary; i++)
        point /= grid->vary[i].count;
    return grid->vary[vary].values[point % grid->vary[vary].count];
}

static bool is_variant(const struct sim_file *file, const char *name)
{
    return alb_document_find(&file->document, "variant", name, "") != NULL;
}

struct listening {
    const struct sim_grid *grid;
    struct sim_cell *cell;
};

static int on_end(void *context, const struct alb_result_of *result)
{
    const struct sim_grid *grid = ((struct listening *)context)->grid;
    struct sim_cell *cell = ((struct listening *)context)->cell;
    for (uint32_t i = 0; i < grid->column_count; i++) {
        const struct sim_column *column = &grid->columns[i];
        if (!alb_metric_value(result->summary, column->metric, column->part[0] ? column->part : NULL, &cell->values[i]))
            cell->values[i] = NAN;
    }
    cell->trace_hash = result->summary->trace_hash;
    cell->end = result->run->end;
    cell->is_run = true;
    return COMMAND_OK;
}

// One key as this run has it; option says where it comes from.
static bool put(struct sim_file *file, const char *path, const char *value, const char *option)
{
    struct alb_complaint complaint = {0};
    return alb_document_put(&file->document, path, value, option, 0, &complaint) ||
           command_error(false, "sim compare", "%s", complaint.text);
}

// A run has one policy: the key's value, from elsewhere, would be in the run's name only.
static bool put_policy(struct sim_file *file, const char *name)
{
    const struct alb_document_entry *said = alb_document_find(&file->document, "host", "", "loss");
    if (said && said->line == 0)
        return command_error(false, "sim compare",
                             "%s: host.loss: \"%s\" of --policies, which is a loss policy, would win over it; expected "
                             "one of them",
                             said->file, name);
    return put(file, "host.loss", name, "--policies");
}

// What is said of a variant alone wins in its runs.
static bool is_overruled(const struct sim_grid *grid, const char *key, const char *variant)
{
    char path[512];
    size_t length = (size_t)snprintf(path, sizeof(path), "variant.%s.%s", variant, key);
    const char *option = NULL;
    for (uint32_t i = 0; i < grid->vary_count; i++)
        if (strcmp(grid->vary[i].key, path) == 0)
            option = "--vary";
    for (uint32_t i = 0; i < grid->options.setting_count; i++)
        if (strncmp(grid->options.settings[i], path, length) == 0 && grid->options.settings[i][length] == '=')
            option = "--set";
    if (option)
        command_error(false, "sim compare", "--vary: %s: %s %s would win over it; expected one of them", key, option,
                      path);
    return option != NULL;
}

static bool put_varied(const struct sim_grid *grid, uint32_t point, struct sim_file *file, const char *variant)
{
    for (uint32_t i = 0; i < grid->vary_count; i++)
        if ((variant && is_overruled(grid, grid->vary[i].key, variant)) ||
            !put(file, grid->vary[i].key, sim_grid_value(grid, point, i), "--vary"))
            return false;
    return true;
}

// The scenario as one run has it. *variant: of the file, or NULL.
static int open_cell(const struct sim_grid *grid, uint32_t point, uint32_t policy, uint32_t seed, struct sim_file *file,
                     const char **variant)
{
    const char *name = grid->policies[policy];
    char number[16];
    int status = sim_file_open(file, &grid->options);
    if (status != COMMAND_OK)
        return status;
    snprintf(number, sizeof(number), "%" PRIu32, seed + 1);
    *variant = is_variant(file, name) ? name : NULL;
    bool is_good = put(file, "scenario.seed", number, "--seeds") && put_varied(grid, point, file, *variant);
    if (is_good && !*variant && strcmp(name, "plain") != 0)
        is_good = put_policy(file, name);
    if (is_good)
        return COMMAND_OK;
    sim_file_close(file);
    return COMMAND_USAGE; // put has said which option
}

// In a process of its own.
static int run_cell(const struct sim_grid *grid, uint32_t point, uint32_t policy, uint32_t seed, struct sim_cell *cell)
{
    struct sim_file file;
    struct sim_outcome outcome;
    const char *variant;
    struct listening listening = {grid, cell};
    const struct sim_listener listener = {NULL, on_end, &listening};
    int status = open_cell(grid, point, policy, seed, &file, &variant);
    if (status != COMMAND_OK)
        return status;
    status = sim_run(&file, &grid->options, variant, &listener, &outcome);
    cell->is_stuck = outcome.is_stuck;
    return status;
}

static bool add_parts(void *context, const struct alb_scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->workload_count; i++)
        if (!sim_grid_add_part(context, scenario->workloads[i].name))
            return false;
    return true;
}

static bool is_of_policy(const struct alb_complaint *complaint)
{
    static const char option[] = "--policies: ";
    return strncmp(complaint->text, option, sizeof(option) - 1) == 0;
}

// What else the name of that policy might have been meant for.
static void say_variants(const struct sim_file *file, const char *policy)
{
    char names[512] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < file->document.count && length < sizeof(names); i++) {
        const struct alb_document_entry *entry = &file->document.entries[i];
        if (strcmp(entry->section, "variant") == 0 && entry->key[0] == '\0')
            length += (size_t)snprintf(names + length, sizeof(names) - length, ", %s", entry->name);
    }
    command_error(
        COMMAND_USAGE, "sim compare",
        "\"%s\" is no variant of the scenario, which has plain (as it stands)%s, and so was taken for a loss policy",
        policy, names);
}

static int check_cell(struct sim_grid *grid, uint32_t point, uint32_t policy)
{
    const struct sim_reader reader = {add_parts, grid};
    struct alb_complaint complaint = {0};
    struct sim_file file;
    const char *variant;
    int status = open_cell(grid, point, policy, 0, &file, &variant);
    if (status != COMMAND_OK)
        return status;
    status = sim_places_check("sim compare", &file, &grid->options);
    if (status == COMMAND_OK)
        status = sim_file_check(&file, variant, true, &reader, &complaint);
    if (is_of_policy(&complaint))
        say_variants(&file, grid->policies[policy]);
    sim_file_close(&file);
    for (uint32_t i = 0; i < grid->vary_count && status != COMMAND_OK; i++)
        command_error(status, "sim compare", "that is with %s = %s", grid->vary[i].key, sim_grid_value(grid, point, i));
    return status;
}

static int find_shown(struct sim_grid *grid)
{
    for (uint32_t i = 0; i < grid->shown_count; i++) {
        grid->shown[i] = sim_grid_find(grid, grid->shown_names[i]);
        if (grid->shown[i] == UINT32_MAX)
            return command_error(COMMAND_USAGE, "sim compare",
                                 "there is no metric \"%s\"; `albedo sim --keys` lists them, and those of flows are "
                                 "also there as WORKLOAD.METRIC",
                                 grid->shown_names[i]);
    }
    return COMMAND_OK;
}

int sim_grid_check(struct sim_grid *grid)
{
    int status = sim_grid_add_part(grid, "") ? COMMAND_OK : COMMAND_FAILED;
    for (uint32_t i = 0; i < grid->point_count * grid->policy_count && status == COMMAND_OK; i++)
        status = check_cell(grid, i / grid->policy_count, i % grid->policy_count);
    return status == COMMAND_OK ? find_shown(grid) : status;
}

// ---- all runs -------------------------------------------------------------------------------------------------------

struct job {
    pid_t pid;
    int pipe;
    uint32_t point, policy, seed;
};

// A run does not outlive the comparison, however that ends: also if it had ended before the run asked for its signal.
static void end_with(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(COMMAND_FAILED);
}

static bool begin_job(const struct sim_grid *grid, struct job *job)
{
    int ends[2];
    pid_t parent = getpid();
    if (pipe(ends) != 0)
        return false;
    fflush(NULL);
    job->pid = fork();
    if (job->pid == 0) {
        size_t bytes = sim_grid_cell_bytes(grid);
        struct sim_cell *cell = sim_grid_cell(grid, job->point, job->policy, job->seed); // its own copy
        end_with(parent);
        close(ends[0]);
        int status = run_cell(grid, job->point, job->policy, job->seed, cell);
        if (status == COMMAND_OK && write(ends[1], cell, bytes) != (ssize_t)bytes)
            status = COMMAND_FAILED;
        _exit(status);
    }
    close(ends[1]);
    job->pipe = ends[0];
    if (job->pid < 0)
        close(ends[0]);
    return job->pid > 0;
}

// A run that succeeded has written its cell to the pipe as a whole; it fits into a pipe.
static bool end_job(const struct sim_grid *grid, const struct job *job)
{
    struct sim_cell *cell = sim_grid_cell(grid, job->point, job->policy, job->seed);
    ssize_t bytes = (ssize_t)sim_grid_cell_bytes(grid);
    bool is_good = read(job->pipe, cell, (size_t)bytes) == bytes;
    close(job->pipe);
    cell->is_run &= is_good;
    return is_good;
}

// It could not say so itself: there was no memory left, say.
static void say_killed(const struct sim_grid *grid, const struct job *job, int signal)
{
    char varied[512] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < grid->vary_count && length < sizeof(varied); i++)
        length += (size_t)snprintf(varied + length, sizeof(varied) - length, ", %s = %s", grid->vary[i].key,
                                   sim_grid_value(grid, job->point, i));
    command_error(COMMAND_FAILED, "sim compare", "%s%s, seed %" PRIu32 ": the run was ended by signal %d (%s)",
                  grid->policies[job->policy], varied, job->seed + 1, signal, strsignal(signal));
}

// Takes one that has ended out of the jobs; a child that was there before the comparison is none of them. False: errno.
static bool wait_for_one(const struct sim_grid *grid, struct job *jobs, uint32_t *running, bool *is_good)
{
    pid_t pid;
    int status;
    uint32_t i = 0;
    do
        pid = waitpid(-1, &status, 0);
    while (pid < 0 && errno == EINTR);
    while (i < *running && jobs[i].pid != pid)
        i++;
    if (i < *running) {
        if (WIFSIGNALED(status))
            say_killed(grid, &jobs[i], WTERMSIG(status));
        *is_good &= end_job(grid, &jobs[i]);
        jobs[i] = jobs[--*running];
    }
    return pid > 0;
}

int sim_grid_run(const struct sim_grid *grid)
{
    struct job jobs[SIM_GRID_JOBS_MAX];
    uint32_t running = 0, total = grid->point_count * grid->policy_count * grid->seeds;
    bool is_good = true;
    for (uint32_t next = 0; next < total || running > 0;) {
        if (next < total && running < grid->jobs) {
            struct job *job = &jobs[running];
            *job = (struct job){.seed = next % grid->seeds,
                                .policy = next / grid->seeds % grid->policy_count,
                                .point = next / grid->seeds / grid->policy_count};
            if (!begin_job(grid, job))
                return command_error(COMMAND_FAILED, "sim compare", "fork: %s", strerror(errno));
            running++;
            next++;
            continue;
        }
        if (!wait_for_one(grid, jobs, &running, &is_good))
            return command_error(COMMAND_FAILED, "sim compare", "waitpid: %s", strerror(errno));
        if (grid->has_progress)
            fprintf(stderr, "\r%" PRIu32 " of %" PRIu32 " runs ", next - running, total);
    }
    if (grid->has_progress)
        fprintf(stderr, "\r%40s\r", "");
    return is_good ? COMMAND_OK : COMMAND_FAILED;
}

int sim_grid_check_ends(const struct sim_grid *grid)
{
    uint32_t stuck = 0, total = grid->point_count * grid->policy_count * grid->seeds;
    for (uint32_t i = 0; i < total; i++)
        stuck += sim_grid_cell(grid, 0, 0, i)->is_stuck;
    return stuck == 0 ? COMMAND_OK
                      : command_error(COMMAND_FAILED, "sim compare",
                                      "%" PRIu32 " of %" PRIu32
                                      " runs were stuck: nothing happened any more before all was done",
                                      stuck, total);
}
