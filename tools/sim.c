// SPDX-License-Identifier: BSD-2-Clause
// albedo-sim(1): runs scenarios on a simulated cluster.
#include "tools/sim.h"

#include "base/text.h"
#include "tools/command.h"
#include "tools/sim_output.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    VARIANTS_MAX = 64,
    LARGE_BYTES = 128 << 10,
    OPTION_SET = 256,
    OPTION_VARIANT,
    OPTION_MAX_TIME,
    OPTION_MAX_EVENTS,
    OPTION_JSON,
    OPTION_PLOT,
    OPTION_HTML,
    OPTION_PCAP,
    OPTION_TRACE,
    OPTION_HOST,
    OPTION_KEYS,
    OPTION_SEARCH,
    OPTION_FIRST_SEED,
    OPTION_PROGRESS,
};

static void print_usage(FILE *to)
{
    fputs("Usage: albedo sim [OPTIONS] SCENARIO\n"
          "       albedo sim compare SCENARIO --policies A,B,... [OPTIONS]\n"
          "       albedo sim --search N [--first-seed N]\n"
          "Runs a scenario (a file, or the name of one that came with albedo) on a simulated cluster whose hosts\n"
          "run the product's engine.\n\n"
          "Options:\n"
          "      --set SECTION.KEY=VALUE  changes a key of the scenario; may be repeated\n"
          "      --variant NAME           runs this [variant] only\n"
          "      --max-time DURATION      ends the run at that simulated time\n"
          "      --max-events N           ends the run after so many events\n"
          "  -c, --check                  fails if the result is not what the scenario expects\n"
          "  -q, --quiet                  prints no summary\n"
          "      --progress               shows progress though stderr is no terminal\n"
          "      --json FILE              writes every flow, link, switch and host as JSON lines (- : stdout)\n"
          "      --plot DIRECTORY         makes figures (SVG, by gnuplot)\n"
          "      --html FILE              makes one page with topology, links over time and tables\n"
          "      --pcap FILE              writes what a host sends and receives as a capture\n"
          "      --trace FILE             writes its engine's events as JSON lines\n"
          "      --host N                 which host (default: 0)\n"
          "      --search N               draws N scenarios with faults, checks every byte, shrinks what fails\n"
          "      --first-seed N           of the search (default: 1)\n"
          "      --keys                   lists what a scenario may say, and the metrics\n"
          "  -h, --help                   show this help\n",
          to);
}

static int print_keys(void)
{
    alb_scenario_print_keys(stdout);
    puts("\nMetrics of [expect]; those of flows also as WORKLOAD.METRIC:");
    for (uint32_t i = 0; i < alb_metric_count; i++)
        printf("  %-18s %s%s\n", alb_metrics[i].name, alb_metrics[i].is_of_part ? "(flows) " : "", alb_metrics[i].text);
    return COMMAND_OK;
}

// ---- what a run leaves behind ---------------------------------------------------------------------------------------

struct outputs {
    const struct sim_options *options;
    const char *title; // of the scenario; NULL: none, or it has been printed
    FILE *text;        // summaries and what was expected: stdout, unless the result is written there
    struct sim_output json;
    bool has_failed; // to write json, which was said
    struct sim_page *page;
};

static void print_run(FILE *to, const struct alb_result_of *result)
{
    const struct alb_scenario *scenario = result->run->scenario;
    const struct alb_topology *topology = &result->run->topology;
    char title[300];
    sim_title(result, false, title, sizeof(title));
    fprintf(to, "== %s, seed %" PRIu64 ": %s after %.1f s, %.2f million packet-hops/s\n", title, scenario->seed,
            alb_result_end_name(result->run->end), result->wall_seconds,
            result->summary->network.packet_hops / result->wall_seconds / 1e6);
    fprintf(to, "hosts %" PRIu32 ", switches %" PRIu32 ", transport %s, loss %s, congestion %s, path %s, credit %s\n",
            topology->host_count, topology->node_count - topology->host_count, scenario->host.transport ? "csa" : "rc",
            scenario->engine.loss, scenario->engine.congestion, scenario->engine.path, scenario->engine.credit);
    alb_summary_print(result->summary, to);
}

// Only now is it known that something will be shown.
static void on_begin(void *context)
{
    struct outputs *outputs = context;
    if (outputs->title && !outputs->options->is_quiet)
        fprintf(outputs->text, "%s\n", outputs->title);
    outputs->title = NULL;
}

static int on_end(void *context, const struct alb_result_of *result)
{
    struct outputs *outputs = context;
    const struct sim_options *options = outputs->options;
    int failed = outputs->json.file ? alb_result_write(sim_output_begin(&outputs->json), result) : 0;
    outputs->has_failed |= failed != 0;
    if (failed)
        return command_error(COMMAND_FAILED, "sim", "%s: %s", options->json, strerror(failed));
    if (!options->is_quiet)
        print_run(outputs->text, result);
    int status = options->plot ? sim_plot(options->plot, result) : COMMAND_OK;
    if (status == COMMAND_OK && outputs->page)
        status = sim_page_add(outputs->page, result);
    return status;
}

static int open_outputs(struct outputs *outputs, const struct sim_file *file)
{
    const struct sim_options *options = outputs->options;
    bool is_json_on_stdout = options->json && strcmp(options->json, "-") == 0;
    outputs->text = is_json_on_stdout || (options->is_quiet && !options->is_check) ? stderr : stdout;
    if (is_json_on_stdout) {
        outputs->json = (struct sim_output){.file = stdout, .has_begun = true};
    } else if (options->json) {
        int error = sim_output_open(&outputs->json, options->json);
        if (error)
            return command_error(COMMAND_FAILED, "sim", "%s: %s", options->json, strerror(error));
    }
    int status = options->plot ? sim_plot_open(options->plot) : COMMAND_OK;
    if (status == COMMAND_OK && options->html)
        status = sim_page_open(&outputs->page, options->html, file);
    return status;
}

static int close_outputs(struct outputs *outputs, const struct sim_file *file, const struct sim_outcome *outcomes,
                         uint32_t count)
{
    int status = COMMAND_OK, error = 0;
    if (outputs->page)
        status = sim_page_close(outputs->page, file, outcomes, count);
    if (outputs->json.file && outputs->json.file != stdout)
        error = sim_output_close(&outputs->json);
    return error && !outputs->has_failed
               ? command_error(COMMAND_FAILED, "sim", "%s: %s", outputs->options->json, strerror(error))
               : status;
}

// ---- all variants ---------------------------------------------------------------------------------------------------

// Which variant runs as number index of all, or NULL: the scenario as it stands, or none any more.
static const char *variant_of(const struct sim_file *file, const struct sim_options *options, uint32_t index)
{
    if (options->variant)
        return index == 0 ? options->variant : NULL;
    return alb_scenario_variant(&file->document, index);
}

static int run_variants(const struct sim_file *file, const struct sim_options *options, struct outputs *outputs,
                        struct sim_outcome *outcomes, uint32_t *count)
{
    const struct sim_listener listener = {on_begin, on_end, outputs};
    int status = COMMAND_OK;
    outputs->title = sim_file_says(file, "title");
    for (uint32_t i = 0; i < VARIANTS_MAX && status == COMMAND_OK; i++) {
        const char *variant = variant_of(file, options, i);
        if (i > 0 && !variant)
            break;
        status = sim_run(file, options, variant, &listener, &outcomes[i]);
        *count += status == COMMAND_OK;
    }
    return status;
}

// A capture is of one run.
static int check_watch(const struct sim_file *file, const struct sim_options *options)
{
    bool has_variants = alb_scenario_variant(&file->document, 0) && alb_scenario_variant(&file->document, 1);
    if ((options->pcap || options->trace) && has_variants && !options->variant)
        return command_error(COMMAND_USAGE, "sim", "%s: the scenario has several variants; name one with --variant",
                             options->pcap ? "--pcap" : "--trace");
    return COMMAND_OK;
}

// A mistake in the last variant is said before the first one runs. A run that is alone says it by itself. A setting of
// a variant that is not run is refused like any other.
static int check_variants(const struct sim_file *file, const struct sim_options *options)
{
    bool is_alone = options->variant || !alb_scenario_variant(&file->document, 1);
    const char *variant, *beyond = alb_scenario_variant(&file->document, VARIANTS_MAX);
    struct alb_complaint complaint;
    int status = COMMAND_OK;
    if (beyond)
        return command_error(COMMAND_FAILED, "sim", "%s:%" PRIu32 ": expected %d variants at most", file->path,
                             alb_document_find(&file->document, "variant", beyond, "")->line, VARIANTS_MAX);
    if (is_alone && options->setting_count == 0)
        return COMMAND_OK;
    for (uint32_t i = 0; status == COMMAND_OK && (variant = alb_scenario_variant(&file->document, i)) != NULL; i++)
        status = sim_file_check(file, variant, !is_alone, NULL, &complaint);
    return status;
}

// With --check or without: such a scenario is none that can be done.
static bool any_stuck(const struct sim_outcome *outcomes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (outcomes[i].is_stuck)
            return true;
    return false;
}

static int run_file(const struct sim_options *options)
{
    static struct sim_outcome outcomes[VARIANTS_MAX];
    struct outputs outputs = {.options = options};
    struct sim_file file;
    uint32_t count = 0;
    int status = sim_file_open(&file, options);
    if (status != COMMAND_OK)
        return status;
    status = check_watch(&file, options);
    if (status == COMMAND_OK)
        status = sim_places_check("sim", &file, options);
    if (status == COMMAND_OK)
        status = check_variants(&file, options);
    if (status == COMMAND_OK)
        status = open_outputs(&outputs, &file);
    if (status == COMMAND_OK)
        status = run_variants(&file, options, &outputs, outcomes, &count);
    if (status == COMMAND_OK) {
        bool is_met = sim_check(&file, outcomes, count, outputs.text);
        if (options->is_check && (!sim_check_ends(outcomes, count, outputs.text) || !is_met))
            status = COMMAND_FAILED;
        if (any_stuck(outcomes, count))
            status = COMMAND_FAILED;
    }
    int closed = close_outputs(&outputs, &file, outcomes, count);
    for (uint32_t i = 0; i < count; i++)
        alb_summary_fini(&outcomes[i].summary);
    sim_file_close(&file);
    return status == COMMAND_OK ? closed : status;
}

// ---- options --------------------------------------------------------------------------------------------------------

static const struct option long_options[] = {
    {"set", required_argument, NULL, OPTION_SET},
    {"variant", required_argument, NULL, OPTION_VARIANT},
    {"max-time", required_argument, NULL, OPTION_MAX_TIME},
    {"max-events", required_argument, NULL, OPTION_MAX_EVENTS},
    {"check", no_argument, NULL, 'c'},
    {"quiet", no_argument, NULL, 'q'},
    {"progress", no_argument, NULL, OPTION_PROGRESS},
    {"json", required_argument, NULL, OPTION_JSON},
    {"plot", required_argument, NULL, OPTION_PLOT},
    {"html", required_argument, NULL, OPTION_HTML},
    {"pcap", required_argument, NULL, OPTION_PCAP},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"host", required_argument, NULL, OPTION_HOST},
    {"keys", no_argument, NULL, OPTION_KEYS},
    {"search", required_argument, NULL, OPTION_SEARCH},
    {"first-seed", required_argument, NULL, OPTION_FIRST_SEED},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

bool sim_take_max_time(const char *command, const char *text, struct sim_options *options)
{
    char error[ALB_TEXT_ERROR_MAX];
    alb_time span;
    if (!alb_text_parse_duration(text, &span, error, sizeof(error)))
        return command_error(false, command, "--max-time: %s", error);
    if (span == 0)
        return command_error(false, command, "--max-time: 0 would be no limit at all; expected 1ns or more");
    options->until = alb_sim_from_ns(span);
    return true;
}

bool sim_take_max_events(const char *command, const char *text, struct sim_options *options)
{
    char error[ALB_TEXT_ERROR_MAX];
    return alb_text_parse_u64(text, 1, UINT64_MAX, &options->events_max, error, sizeof(error)) ||
           command_error(false, command, "--max-events: %s", error);
}

bool sim_take_once(const char *command, const struct option *options, int option, uint64_t *given)
{
    uint32_t i = 0;
    while (options[i].name && options[i].val != option)
        i++;
    bool may_repeat = !options[i].name || options[i].has_arg == no_argument || strcmp(options[i].name, "set") == 0 ||
                      strcmp(options[i].name, "vary") == 0;
    bool is_repeated = *given >> i & 1;
    *given |= 1ull << i;
    return may_repeat || !is_repeated || command_error(false, command, "--%s: expected once", options[i].name);
}

static bool take_count(const char *name, uint64_t *count)
{
    char error[ALB_TEXT_ERROR_MAX];
    return alb_text_parse_u64(optarg, 1, UINT64_MAX / 2, count, error, sizeof(error)) ||
           command_error(false, "sim", "--%s: %s", name, error);
}

static bool take_host(struct sim_options *options)
{
    char error[ALB_TEXT_ERROR_MAX];
    uint64_t number;
    if (!alb_text_parse_u64(optarg, 0, UINT32_MAX, &number, error, sizeof(error)))
        return command_error(false, "sim", "--host: %s", error);
    options->host = (uint32_t)number;
    options->has_host = true;
    return true;
}

// -1: go on; else the status to end with.
static int take_option(int option, struct sim_options *options)
{
    switch (option) {
    case OPTION_SET:
        if (options->setting_count == SIM_SETTINGS_MAX)
            return command_error(COMMAND_USAGE, "sim", "--set: %d at most", SIM_SETTINGS_MAX);
        options->settings[options->setting_count++] = optarg;
        return -1;
    case OPTION_VARIANT:
        options->variant = optarg;
        return -1;
    case OPTION_MAX_TIME:
        return sim_take_max_time("sim", optarg, options) ? -1 : COMMAND_USAGE;
    case OPTION_MAX_EVENTS:
        return sim_take_max_events("sim", optarg, options) ? -1 : COMMAND_USAGE;
    case 'c':
        options->is_check = true;
        return -1;
    case 'q':
        options->is_quiet = true;
        return -1;
    case OPTION_PROGRESS:
        options->has_progress = true;
        return -1;
    case OPTION_JSON:
        options->json = optarg;
        return -1;
    case OPTION_PLOT:
        options->plot = optarg;
        return -1;
    case OPTION_HTML:
        options->html = optarg;
        return -1;
    case OPTION_PCAP:
        options->pcap = optarg;
        return -1;
    case OPTION_TRACE:
        options->trace = optarg;
        return -1;
    case OPTION_HOST:
        return take_host(options) ? -1 : COMMAND_USAGE;
    case OPTION_SEARCH:
        return take_count("search", &options->search) ? -1 : COMMAND_USAGE;
    case OPTION_FIRST_SEED:
        options->has_first_seed = true;
        return take_count("first-seed", &options->first_seed) ? -1 : COMMAND_USAGE;
    case OPTION_KEYS:
        options->is_keys = true;
        return -1;
    case 'h':
        print_usage(stdout);
        return COMMAND_OK;
    default:
        fputs("Try `albedo sim --help`.\n", stderr);
        return COMMAND_USAGE;
    }
}

// An option that would mean nothing is refused. NULL: there is none.
static const char *meaningless(const struct sim_options *options)
{
    bool is_search = options->search > 0;
    if (options->has_first_seed && !is_search)
        return "--first-seed is of a --search";
    if (options->has_host && !options->pcap && !options->trace)
        return "--host says whose --pcap or --trace it is; neither was asked for";
    bool is_of_run = options->setting_count || options->variant || options->json || options->plot || options->html ||
                     options->pcap || options->trace || options->is_check || options->is_quiet ||
                     options->until != ALB_SIM_NEVER || options->events_max != UINT64_MAX;
    return is_search && is_of_run
               ? "--search draws its own scenarios, and takes no options but --first-seed and --progress"
               : NULL;
}

// What a run takes in large blocks is given back at its end, and the next one gets fresh pages for it, of which only
// those that it touches count. By itself the C library keeps such blocks once some have been freed, and zeroes all of
// a host's memory, of which most is never used.
static void return_large_blocks(void)
{
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

int command_sim(int argc, char **argv)
{
    struct sim_options options = {
        .until = ALB_SIM_NEVER, .events_max = UINT64_MAX, .first_seed = 1, .has_progress = isatty(STDERR_FILENO)};
    uint64_t given = 0;
    return_large_blocks();
    signal(SIGCHLD, SIG_DFL); // who began this may have had it ignored, and then no child could be waited for
    if (argc > 1 && strcmp(argv[1], "compare") == 0)
        return sim_compare(argc - 1, argv + 1);
    for (int option; (option = getopt_long(argc, argv, "cqh", long_options, NULL)) != -1;) {
        int status = sim_take_once("sim", long_options, option, &given) ? take_option(option, &options) : COMMAND_USAGE;
        if (status >= 0)
            return status;
    }
    if (options.is_keys && argc > 2)
        return command_error(COMMAND_USAGE, "sim", "--keys lists all of them, and takes nothing else");
    if (options.is_keys)
        return print_keys();
    const char *complaint = meaningless(&options);
    if (complaint)
        return command_error(COMMAND_USAGE, "sim", "%s", complaint);
    if (options.search && optind == argc)
        return sim_search(options.first_seed, options.search, options.has_progress);
    if (optind + 1 != argc || options.search)
        return command_error(COMMAND_USAGE, "sim",
                             options.search ? "--search takes no scenario: it draws its own"
                                            : "give one scenario file; `albedo sim --help` says more");
    options.file = argv[optind];
    return run_file(&options);
}
