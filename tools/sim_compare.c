// SPDX-License-Identifier: BSD-2-Clause
// albedo sim compare: runs a scenario under several policies with several seeds, a process for each run and a
// processor for each process, and prints the median of each figure with its spread.
#include "tools/command.h"
#include "tools/sim.h"
#include "tools/sim_output.h"

#include "base/text.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    POLICIES_MAX = 32,
    VARY_MAX = 4,
    VALUES_MAX = 32,
    METRICS_MAX = 64,
    SHOWN_MAX = 16,
    SEEDS_MAX = 10000,
    JOBS_MAX = 256,
    RUNS_MAX = 1000000,
    OPTION_POLICIES = 256,
    OPTION_SEEDS,
    OPTION_VARY,
    OPTION_METRICS,
    OPTION_JOBS,
    OPTION_JSON,
    OPTION_SET,
    OPTION_MAX_TIME,
};

struct vary {
    char *key;
    char *values[VALUES_MAX];
    uint32_t count;
};

struct grid {
    struct sim_options options;
    char *policies[POLICIES_MAX];
    struct vary vary[VARY_MAX];
    const struct alb_metric *shown[SHOWN_MAX];
    uint32_t policy_count, vary_count, shown_count;
    uint32_t point_count; // combinations of what varies
    uint32_t seeds, jobs;
    bool has_progress;
    const char *json;
    struct sim_output json_output;
    struct cell *cells; // by point, policy, seed
};

// What one run came to, as its process tells it.
struct cell {
    bool is_run;
    double values[METRICS_MAX]; // by number of alb_metrics, of all flows
    uint64_t trace_hash;
    enum alb_run_end end;
};

static void print_usage(FILE *to)
{
    fputs("Usage: albedo sim compare SCENARIO --policies A,B,... [OPTIONS]\n"
          "Runs a scenario under several policies, and prints medians with their spread (least .. most).\n\n"
          "Options:\n"
          "      --policies A,B,...         each a [variant] of the scenario, a loss policy, or \"plain\"\n"
          "      --seeds N                  runs each with seeds 1 to N (5)\n"
          "      --vary SECTION.KEY=V,W,... for each of these values, too; may be repeated\n"
          "      --metrics A,B,...          what is printed (`albedo sim --keys` lists them)\n"
          "      --set SECTION.KEY=VALUE    as for `albedo sim`\n"
          "      --max-time DURATION        as for `albedo sim`\n"
          "      --json FILE                writes every figure of every run as JSON lines\n"
          "      --jobs N                   runs at a time (one for each processor)\n"
          "  -h, --help                     show this help\n",
          to);
}

// ---- one run --------------------------------------------------------------------------------------------------------

static struct cell *cell_of(const struct grid *grid, uint32_t point, uint32_t policy, uint32_t seed)
{
    return &grid->cells[((size_t)point * grid->policy_count + policy) * grid->seeds + seed];
}

static const char *value_at(const struct grid *grid, uint32_t point, uint32_t vary)
{
    for (uint32_t i = 0; i < vary; i++)
        point /= grid->vary[i].count;
    return grid->vary[vary].values[point % grid->vary[vary].count];
}

static bool is_variant(const struct sim_file *file, const char *name)
{
    return alb_document_find(&file->document, "variant", name, "") != NULL;
}

struct report {
    const struct grid *grid;
    struct cell *cell;
};

static int on_end(void *context, const struct alb_result_of *result)
{
    struct cell *cell = ((struct report *)context)->cell;
    for (uint32_t i = 0; i < alb_metric_count; i++)
        alb_metric_value(result->summary, &alb_metrics[i], NULL, &cell->values[i]);
    cell->trace_hash = result->summary->trace_hash;
    cell->end = result->run->end;
    cell->is_run = true;
    return COMMAND_OK;
}

// One key as this run has it; option says who asked for it.
static bool put(struct sim_file *file, const char *path, const char *value, const char *option)
{
    struct alb_complaint complaint = {0};
    return alb_document_put(&file->document, path, value, option, 0, &complaint) ||
           command_error(false, "sim compare", "%s", complaint.text);
}

// The scenario as one run has it. *variant: of the file, or NULL.
static int open_cell(const struct grid *grid, uint32_t point, uint32_t policy, uint32_t seed, struct sim_file *file,
                     const char **variant)
{
    const char *name = grid->policies[policy];
    char number[16];
    int status = sim_file_open(file, &grid->options);
    if (status != COMMAND_OK)
        return status;
    snprintf(number, sizeof(number), "%" PRIu32, seed + 1);
    bool varies = is_variant(file, name);
    bool is_good = put(file, "scenario.seed", number, "--seeds");
    for (uint32_t i = 0; i < grid->vary_count && is_good; i++)
        is_good = put(file, grid->vary[i].key, value_at(grid, point, i), "--vary");
    if (is_good && !varies && strcmp(name, "plain") != 0)
        is_good = put(file, "host.loss", name, "--policies");
    *variant = varies ? name : NULL;
    if (is_good)
        return COMMAND_OK;
    sim_file_close(file);
    return COMMAND_USAGE; // put has said which option
}

// In a process of its own.
static int run_cell(const struct grid *grid, uint32_t point, uint32_t policy, uint32_t seed, struct cell *cell)
{
    struct sim_file file;
    struct sim_outcome outcome;
    const char *variant;
    struct report report = {grid, cell};
    const struct sim_listener listener = {on_end, &report};
    int status = open_cell(grid, point, policy, seed, &file, &variant);
    return status == COMMAND_OK ? sim_run(&file, &grid->options, variant, &listener, &outcome) : status;
}

// One mistake is said once, and not by each run that it keeps from beginning.
static int check_cells(const struct grid *grid)
{
    int status = COMMAND_OK;
    for (uint32_t i = 0; i < grid->point_count * grid->policy_count && status == COMMAND_OK; i++) {
        struct sim_file file;
        const char *variant;
        status = open_cell(grid, i / grid->policy_count, i % grid->policy_count, 0, &file, &variant);
        if (status != COMMAND_OK)
            break;
        status = sim_file_check(&file, variant);
        sim_file_close(&file);
    }
    return status;
}

// ---- all of them ----------------------------------------------------------------------------------------------------

struct job {
    pid_t pid;
    int pipe;
    uint32_t point, policy, seed;
};

static bool begin_job(const struct grid *grid, struct job *job)
{
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    fflush(NULL);
    job->pid = fork();
    if (job->pid == 0) {
        struct cell cell = {0};
        close(ends[0]);
        int status = run_cell(grid, job->point, job->policy, job->seed, &cell);
        if (status == COMMAND_OK && write(ends[1], &cell, sizeof(cell)) != (ssize_t)sizeof(cell))
            status = COMMAND_FAILED;
        _exit(status);
    }
    close(ends[1]);
    job->pipe = ends[0];
    if (job->pid < 0)
        close(ends[0]);
    return job->pid > 0;
}

// What its process has said is in the pipe, whole, or was not said.
static bool end_job(const struct grid *grid, const struct job *job)
{
    struct cell cell;
    bool is_good = read(job->pipe, &cell, sizeof(cell)) == (ssize_t)sizeof(cell);
    close(job->pipe);
    if (is_good)
        *cell_of(grid, job->point, job->policy, job->seed) = cell;
    return is_good;
}

static bool wait_for_one(const struct grid *grid, struct job *jobs, uint32_t *running)
{
    int status;
    pid_t pid;
    do
        pid = waitpid(-1, &status, 0);
    while (pid < 0 && errno == EINTR);
    for (uint32_t i = 0; i < *running; i++) {
        if (jobs[i].pid != pid)
            continue;
        bool is_good = end_job(grid, &jobs[i]);
        jobs[i] = jobs[--*running];
        return is_good;
    }
    return false;
}

static int run_grid(const struct grid *grid)
{
    struct job jobs[JOBS_MAX];
    uint32_t running = 0, done = 0, total = grid->point_count * grid->policy_count * grid->seeds;
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
        is_good &= wait_for_one(grid, jobs, &running);
        if (grid->has_progress)
            fprintf(stderr, "\r%" PRIu32 " of %" PRIu32 " runs ", ++done, total);
    }
    if (grid->has_progress)
        fprintf(stderr, "\r%40s\r", "");
    return is_good ? COMMAND_OK : COMMAND_FAILED;
}

// ---- the table ------------------------------------------------------------------------------------------------------

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void print_figure(const struct grid *grid, uint32_t point, uint32_t policy, const struct alb_metric *metric)
{
    double values[SEEDS_MAX];
    uint32_t count = 0, number = (uint32_t)(metric - alb_metrics);
    char median[ALB_METRIC_TEXT_MAX], least[ALB_METRIC_TEXT_MAX], most[ALB_METRIC_TEXT_MAX];
    for (uint32_t seed = 0; seed < grid->seeds; seed++) {
        const struct cell *cell = cell_of(grid, point, policy, seed);
        if (cell->is_run)
            values[count++] = cell->values[number];
    }
    if (count == 0) {
        printf("  %-18s no run ended\n", metric->name);
        return;
    }
    qsort(values, count, sizeof(*values), compare_doubles);
    double middle = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    printf("  %-18s %12s  (%s .. %s)\n", metric->name, alb_metric_format(metric->unit, middle, median),
           alb_metric_format(metric->unit, values[0], least), alb_metric_format(metric->unit, values[count - 1], most));
}

static void print_table(const struct grid *grid)
{
    for (uint32_t point = 0; point < grid->point_count; point++) {
        for (uint32_t policy = 0; policy < grid->policy_count; policy++) {
            uint32_t done = 0;
            for (uint32_t seed = 0; seed < grid->seeds; seed++)
                done += cell_of(grid, point, policy, seed)->is_run &&
                        cell_of(grid, point, policy, seed)->end == ALB_RUN_DONE;
            printf("%s", grid->policies[policy]);
            for (uint32_t i = 0; i < grid->vary_count; i++)
                printf(", %s = %s", grid->vary[i].key, value_at(grid, point, i));
            printf(": %" PRIu32 " of %" PRIu32 " runs done\n", done, grid->seeds);
            for (uint32_t i = 0; i < grid->shown_count; i++)
                print_figure(grid, point, policy, grid->shown[i]);
        }
    }
}

static void write_cell(FILE *to, const struct grid *grid, uint32_t point, uint32_t policy, uint32_t seed)
{
    const struct cell *cell = cell_of(grid, point, policy, seed);
    fputs("{\"record\":\"cell\",\"policy\":", to);
    alb_result_string(to, grid->policies[policy]);
    for (uint32_t i = 0; i < grid->vary_count; i++) {
        fputc(',', to);
        alb_result_string(to, grid->vary[i].key);
        fputc(':', to);
        alb_result_string(to, value_at(grid, point, i));
    }
    fprintf(to, ",\"seed\":%" PRIu32 ",\"end\":\"%s\"", seed + 1,
            cell->is_run ? alb_result_end_name(cell->end) : "failed");
    for (uint32_t i = 0; i < alb_metric_count && cell->is_run; i++)
        fprintf(to, ",\"%s\":%.10g", alb_metrics[i].name, cell->values[i]);
    fprintf(to, ",\"trace\":\"%016" PRIx64 "\"}\n", cell->trace_hash);
}

static bool has_run(const struct grid *grid)
{
    for (uint32_t i = 0; i < grid->point_count * grid->policy_count * grid->seeds; i++)
        if (grid->cells[i].is_run)
            return true;
    return false;
}

static int write_json(struct grid *grid)
{
    FILE *to = has_run(grid) ? sim_output_begin(&grid->json_output) : NULL;
    for (uint32_t point = 0; point < grid->point_count && to; point++)
        for (uint32_t policy = 0; policy < grid->policy_count; policy++)
            for (uint32_t seed = 0; seed < grid->seeds; seed++)
                write_cell(to, grid, point, policy, seed);
    int error = sim_output_close(&grid->json_output);
    return error ? command_error(COMMAND_FAILED, "sim compare", "%s: %s", grid->json, strerror(error)) : COMMAND_OK;
}

// ---- options --------------------------------------------------------------------------------------------------------

// Cuts a list at its commas. Returns how many parts; 0, and that is said: too many, or one of them is empty.
static uint32_t cut(const char *option, char *list, char **parts, uint32_t parts_max)
{
    uint32_t count = 0;
    for (char *part; (part = strsep(&list, ",")) != NULL;) {
        if (count == parts_max || *part == '\0')
            return command_error(0, "sim compare",
                                 "%s: expected one to %" PRIu32 " names or values, with commas between", option,
                                 parts_max);
        parts[count++] = part;
    }
    return count;
}

static bool take_metrics(struct grid *grid, char *list)
{
    char *names[SHOWN_MAX];
    grid->shown_count = cut("--metrics", list, names, SHOWN_MAX);
    for (uint32_t i = 0; i < grid->shown_count; i++) {
        grid->shown[i] = alb_metric_find(names[i]);
        if (!grid->shown[i])
            return command_error(false, "sim compare", "there is no metric \"%s\"; `albedo sim --keys` lists them",
                                 names[i]);
    }
    return grid->shown_count > 0;
}

static bool take_vary(struct grid *grid, char *text)
{
    char *equals = strchr(text, '=');
    if (!equals || grid->vary_count == VARY_MAX)
        return command_error(false, "sim compare", "--vary: expected SECTION.KEY=V,W,..., %d of them at most",
                             VARY_MAX);
    struct vary *vary = &grid->vary[grid->vary_count++];
    *equals = '\0';
    vary->key = text;
    vary->count = cut("--vary", equals + 1, vary->values, VALUES_MAX);
    return vary->count > 0;
}

static bool take_number(const char *name, const char *text, uint32_t max, uint32_t *value)
{
    char error[ALB_TEXT_ERROR_MAX];
    uint64_t number;
    if (!alb_text_parse_u64(text, 1, max, &number, error, sizeof(error)))
        return command_error(false, "sim compare", "--%s: %s", name, error);
    *value = (uint32_t)number;
    return true;
}

static bool take_time(struct grid *grid, const char *text)
{
    char error[ALB_TEXT_ERROR_MAX];
    alb_time span;
    if (!alb_text_parse_duration(text, &span, error, sizeof(error)))
        return command_error(false, "sim compare", "--max-time: %s", error);
    grid->options.until = alb_sim_from_ns(span);
    return true;
}

static bool take_option(struct grid *grid, int option)
{
    switch (option) {
    case OPTION_POLICIES:
        grid->policy_count = cut("--policies", optarg, grid->policies, POLICIES_MAX);
        return grid->policy_count > 0;
    case OPTION_SEEDS:
        return take_number("seeds", optarg, SEEDS_MAX, &grid->seeds);
    case OPTION_JOBS:
        return take_number("jobs", optarg, JOBS_MAX, &grid->jobs);
    case OPTION_VARY:
        return take_vary(grid, optarg);
    case OPTION_METRICS:
        return take_metrics(grid, optarg);
    case OPTION_MAX_TIME:
        return take_time(grid, optarg);
    case OPTION_JSON:
        grid->json = optarg;
        return true;
    case OPTION_SET:
        if (grid->options.setting_count == SIM_SETTINGS_MAX)
            return command_error(false, "sim compare", "--set: %d at most", SIM_SETTINGS_MAX);
        grid->options.settings[grid->options.setting_count++] = optarg;
        return true;
    default:
        return false;
    }
}

static void set_defaults(struct grid *grid)
{
    static char metrics[] =
        "fct_p50,fct_p99,fct_p999,slowdown_p99,time,goodput,retransmitted,spurious,timeouts,dropped";
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    *grid = (struct grid){.options = {.until = ALB_SIM_NEVER, .events_max = UINT64_MAX, .is_quiet = true},
                          .has_progress = isatty(STDERR_FILENO),
                          .seeds = 5,
                          .jobs = (uint32_t)ALB_MIN(ALB_MAX(processors, 1l), (long)JOBS_MAX)};
    take_metrics(grid, metrics);
}

// -1: go on; else the status to end with.
static int take_options(struct grid *grid, int argc, char **argv)
{
    static const struct option options[] = {
        {"policies", required_argument, NULL, OPTION_POLICIES},
        {"seeds", required_argument, NULL, OPTION_SEEDS},
        {"vary", required_argument, NULL, OPTION_VARY},
        {"metrics", required_argument, NULL, OPTION_METRICS},
        {"jobs", required_argument, NULL, OPTION_JOBS},
        {"json", required_argument, NULL, OPTION_JSON},
        {"set", required_argument, NULL, OPTION_SET},
        {"max-time", required_argument, NULL, OPTION_MAX_TIME},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    static char called[] = "albedo sim compare";
    argv[0] = called; // in getopt_long's messages
    optind = 0;       // getopt_long starts anew
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option == 'h') {
            print_usage(stdout);
            return COMMAND_OK;
        }
        if (!take_option(grid, option)) {
            fputs("Try `albedo sim compare --help`.\n", stderr);
            return COMMAND_USAGE;
        }
    }
    if (optind + 1 != argc || grid->policy_count == 0)
        return command_error(COMMAND_USAGE, "sim compare",
                             "give one scenario file and --policies; `albedo sim compare --help` says more");
    grid->options.file = argv[optind];
    return -1;
}

static bool count_points(struct grid *grid)
{
    grid->point_count = 1;
    for (uint32_t i = 0; i < grid->vary_count; i++)
        grid->point_count *= grid->vary[i].count;
    uint64_t runs = (uint64_t)grid->point_count * grid->policy_count * grid->seeds;
    return runs <= RUNS_MAX ||
           command_error(false, "sim compare", "that would be %" PRIu64 " runs; %d are the most", runs, RUNS_MAX);
}

int sim_compare(int argc, char **argv)
{
    static struct grid grid;
    set_defaults(&grid);
    int status = take_options(&grid, argc, argv);
    if (status >= 0)
        return status;
    if (!count_points(&grid))
        return COMMAND_USAGE;
    status = check_cells(&grid);
    if (status != COMMAND_OK)
        return status;
    int error = grid.json ? sim_output_open(&grid.json_output, grid.json) : 0;
    if (error)
        return command_error(COMMAND_FAILED, "sim compare", "%s: %s", grid.json, strerror(error));
    grid.cells = calloc((size_t)grid.point_count * grid.policy_count * grid.seeds, sizeof(*grid.cells));
    alb_assert(grid.cells && alb_metric_count <= METRICS_MAX);
    status = run_grid(&grid);
    print_table(&grid);
    if (grid.json && write_json(&grid) != COMMAND_OK)
        status = COMMAND_FAILED;
    free(grid.cells);
    return status;
}
