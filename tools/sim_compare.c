// SPDX-License-Identifier: BSD-2-Clause
// albedo sim compare: runs a scenario under several policies with several seeds, a process for each run and a
// processor for each process, and prints the median of each figure with its spread.
#include "tools/command.h"
#include "tools/sim_grid.h"

#include "base/text.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RUNS_MAX = 1000000,
    OPTION_POLICIES = 256,
    OPTION_SEEDS,
    OPTION_VARY,
    OPTION_METRICS,
    OPTION_JOBS,
    OPTION_JSON,
    OPTION_SET,
    OPTION_MAX_TIME,
    OPTION_MAX_EVENTS,
};

static void print_usage(FILE *to)
{
    fputs("Usage: albedo sim compare SCENARIO --policies A,B,... [OPTIONS]\n"
          "Runs a scenario under several policies, and prints medians with their spread (least .. most).\n\n"
          "Options:\n"
          "      --policies A,B,...         each a [variant] of the scenario, a loss policy, or \"plain\"\n"
          "      --seeds N                  runs each with seeds 1 to N (default: 5)\n"
          "      --vary SECTION.KEY=V,W,... for each of these values, too; may be repeated\n"
          "      --metrics A,B,...          what is printed (`albedo sim --keys` lists them); also WORKLOAD.METRIC\n"
          "      --set SECTION.KEY=VALUE    as for `albedo sim`\n"
          "      --max-time DURATION        as for `albedo sim`\n"
          "      --max-events N             as for `albedo sim`\n"
          "      --json FILE                writes every figure of every run as JSON lines (- : stdout)\n"
          "      --jobs N                   runs at a time (default: one for each processor)\n"
          "  -h, --help                     show this help\n",
          to);
}

// ---- options --------------------------------------------------------------------------------------------------------

// A further parameter of the policy before it, as high=160us in irn:low=50us,high=160us.
static bool belongs_to(const char *before, const char *part)
{
    return strchr(before, ':') && strchr(part, '=') && !strchr(part, ':');
}

// Cuts a list at its commas. Returns how many parts; 0, and that is said: too many, or one of them is empty.
static uint32_t cut(const char *option, char *list, char **parts, uint32_t parts_max)
{
    uint32_t count = 0;
    for (char *part; (part = strsep(&list, ",")) != NULL;) {
        if (count > 0 && belongs_to(parts[count - 1], part)) {
            part[-1] = ','; // where strsep ended the one before
            continue;
        }
        if (count == parts_max || *part == '\0')
            return command_error(0, "sim compare",
                                 "%s: expected one to %" PRIu32 " names or values, with commas between", option,
                                 parts_max);
        parts[count++] = part;
    }
    return count;
}

// Each is shown by its name alone.
static bool are_different(const char *option, char *const *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(parts[i], parts[k]) == 0)
                return command_error(false, "sim compare", "%s: \"%s\" is there twice", option, parts[i]);
    return true;
}

static bool take_metrics(struct sim_grid *grid, char *list)
{
    grid->shown_count = cut("--metrics", list, grid->shown_names, SIM_GRID_SHOWN_MAX);
    return grid->shown_count > 0 && are_different("--metrics", grid->shown_names, grid->shown_count);
}

// Each run has its own seed, which a setting would not change; path: "scenario.seed", or that of a variant.
static bool is_seed(const char *path, size_t length)
{
    static const char seed[] = "scenario.seed";
    const size_t seed_length = sizeof(seed) - 1;
    return length >= seed_length && memcmp(path + length - seed_length, seed, seed_length) == 0;
}

static bool take_setting(struct sim_grid *grid, const char *text)
{
    if (is_seed(text, strcspn(text, "=")))
        return command_error(false, "sim compare", "--set: scenario.seed: expected --seeds N for seeds 1 to N");
    if (grid->options.setting_count == SIM_SETTINGS_MAX)
        return command_error(false, "sim compare", "--set: %d at most", SIM_SETTINGS_MAX);
    grid->options.settings[grid->options.setting_count++] = text;
    return true;
}

// Of two lists of the same key the last one would win, though each run would be named by both.
static bool varies(const struct sim_grid *grid, const char *key)
{
    for (uint32_t i = 0; i < grid->vary_count; i++)
        if (strcmp(grid->vary[i].key, key) == 0)
            return true;
    return false;
}

static bool take_vary(struct sim_grid *grid, char *text)
{
    char *equals = strchr(text, '=');
    if (is_seed(text, strcspn(text, "=")))
        return command_error(false, "sim compare", "--vary: scenario.seed: expected --seeds N for seeds 1 to N");
    if (!equals || grid->vary_count == SIM_GRID_VARY_MAX)
        return command_error(false, "sim compare", "--vary: expected SECTION.KEY=V,W,..., %d of them at most",
                             SIM_GRID_VARY_MAX);
    *equals = '\0';
    if (varies(grid, text))
        return command_error(false, "sim compare", "--vary: %s: expected once, with all its values", text);
    struct sim_vary *vary = &grid->vary[grid->vary_count++];
    vary->key = text;
    vary->count = cut("--vary", equals + 1, vary->values, SIM_GRID_VALUES_MAX);
    return vary->count > 0 && are_different("--vary", vary->values, vary->count);
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

static bool take_option(struct sim_grid *grid, int option)
{
    switch (option) {
    case OPTION_POLICIES:
        grid->policy_count = cut("--policies", optarg, grid->policies, SIM_GRID_POLICIES_MAX);
        return grid->policy_count > 0 && are_different("--policies", grid->policies, grid->policy_count);
    case OPTION_SEEDS:
        return take_number("seeds", optarg, SIM_GRID_SEEDS_MAX, &grid->seeds);
    case OPTION_JOBS:
        return take_number("jobs", optarg, SIM_GRID_JOBS_MAX, &grid->jobs);
    case OPTION_VARY:
        return take_vary(grid, optarg);
    case OPTION_METRICS:
        return take_metrics(grid, optarg);
    case OPTION_MAX_TIME:
        return sim_take_max_time("sim compare", optarg, &grid->options);
    case OPTION_MAX_EVENTS:
        return sim_take_max_events("sim compare", optarg, &grid->options);
    case OPTION_JSON:
        grid->options.json = optarg;
        return true;
    case OPTION_SET:
        return take_setting(grid, optarg);
    default:
        return false;
    }
}

static void set_defaults(struct sim_grid *grid)
{
    static char metrics[] =
        "fct_p50,fct_p99,fct_p999,slowdown_p99,time,goodput,retransmitted,spurious,timeouts,dropped";
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    *grid = (struct sim_grid){.options = {.until = ALB_SIM_NEVER, .events_max = UINT64_MAX, .is_quiet = true},
                              .has_progress = isatty(STDERR_FILENO),
                              .seeds = 5,
                              .jobs = (uint32_t)ALB_MIN(ALB_MAX(processors, 1l), (long)SIM_GRID_JOBS_MAX)};
    take_metrics(grid, metrics);
}

// What is read from a pipe is there once.
static bool may_read_again(const char *path)
{
    struct stat file;
    return stat(path, &file) != 0 || S_ISREG(file.st_mode) || S_ISDIR(file.st_mode) ||
           command_error(false, "sim compare", "%s: expected a plain file, since each run reads it", path);
}

// -1: go on; else the status to end with.
static int take_options(struct sim_grid *grid, int argc, char **argv)
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
        {"max-events", required_argument, NULL, OPTION_MAX_EVENTS},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    uint64_t given = 0;
    static char called[] = "albedo sim compare";
    argv[0] = called; // in getopt_long's messages
    optind = 0;       // getopt_long starts anew
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option == 'h') {
            print_usage(stdout);
            return COMMAND_OK;
        }
        if (!sim_take_once("sim compare", options, option, &given) || !take_option(grid, option)) {
            fputs("Try `albedo sim compare --help`.\n", stderr);
            return COMMAND_USAGE;
        }
    }
    if (optind + 1 != argc || grid->policy_count == 0)
        return command_error(COMMAND_USAGE, "sim compare",
                             "give one scenario file and --policies; `albedo sim compare --help` says more");
    grid->options.file = argv[optind];
    return may_read_again(argv[optind]) ? -1 : COMMAND_USAGE;
}

static bool count_points(struct sim_grid *grid)
{
    grid->point_count = 1;
    for (uint32_t i = 0; i < grid->vary_count; i++)
        grid->point_count *= grid->vary[i].count;
    uint64_t runs = (uint64_t)grid->point_count * grid->policy_count * grid->seeds;
    return runs <= RUNS_MAX ||
           command_error(false, "sim compare", "that would be %" PRIu64 " runs; %d are the most", runs, RUNS_MAX);
}

static int open_output(struct sim_grid *grid)
{
    const char *path = grid->options.json;
    bool is_on_stdout = path && strcmp(path, "-") == 0;
    grid->text = is_on_stdout ? stderr : stdout;
    if (is_on_stdout)
        grid->json = (struct sim_output){.file = stdout, .has_begun = true};
    int error = path && !is_on_stdout ? sim_output_open(&grid->json, path) : 0;
    return error ? command_error(COMMAND_FAILED, "sim compare", "%s: %s", path, strerror(error)) : COMMAND_OK;
}

int sim_compare(int argc, char **argv)
{
    static struct sim_grid grid;
    set_defaults(&grid);
    int status = take_options(&grid, argc, argv);
    if (status >= 0)
        return status;
    if (!count_points(&grid))
        return COMMAND_USAGE;
    status = sim_grid_check(&grid);
    if (status != COMMAND_OK)
        return status;
    status = open_output(&grid);
    if (status != COMMAND_OK)
        return status;
    grid.cells = calloc((size_t)grid.point_count * grid.policy_count * grid.seeds, sim_grid_cell_bytes(&grid));
    alb_assert(grid.cells);
    status = sim_grid_run(&grid);
    sim_grid_print(&grid);
    if (sim_grid_check_ends(&grid) != COMMAND_OK)
        status = COMMAND_FAILED;
    if (grid.options.json && sim_grid_write_json(&grid) != COMMAND_OK)
        status = COMMAND_FAILED;
    free(grid.cells);
    return status;
}
