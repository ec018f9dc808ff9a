// SPDX-License-Identifier: BSD-2-Clause
// Parts of `albedo sim`.
#pragma once

#include "sim/expect.h"
#include "sim/result.h"
#include "sim/scenario.h"

#include <getopt.h>
#include <limits.h>

enum {
    SIM_SETTINGS_MAX = 64,
    SIM_FIGURES = 3,
    SIM_FIGURE_PATH_MAX = PATH_MAX + 400, // a folder and a name
};

struct sim_options {
    const char *file;
    const char *settings[SIM_SETTINGS_MAX]; // section.key=value
    uint32_t setting_count;
    const char *variant; // NULL: each that there is
    const char *json, *plot, *html;
    const char *pcap, *trace; // of the host
    uint32_t host;
    bool is_check, is_keys, is_quiet, has_progress, has_host, has_first_seed;
    alb_sim_time until;
    uint64_t events_max;
    uint64_t search, first_seed; // search: how many seeds
};

// A scenario file with its settings, and where it is.
struct sim_file {
    char *text;
    char path[PATH_MAX];
    char directory[PATH_MAX];
    const char *name; // without its directory
    struct alb_document document;
};

// What a variant came to.
struct sim_outcome {
    const char *variant; // NULL: the scenario as it stands
    struct alb_summary summary;
    enum alb_run_end end;
    bool is_stuck; // tasks could never be done, though nothing has failed
    bool has_end;  // the scenario has one of its own
    bool is_cut;   // by a limit of the command line, before that
    uint64_t seed;
};

// COMMAND_OK, or a status after a line on stderr.
int sim_file_open(struct sim_file *file, const struct sim_options *options);
void sim_file_close(struct sim_file *file);
// What a key of [scenario] says, or NULL.
const char *sim_file_says(const struct sim_file *file, const char *key);

struct sim_reader {
    bool (*on_read)(void *context, const struct alb_scenario *scenario); // false: it has said what is wrong
    void *context;
};

// Whether a variant of it, NULL: the scenario as it stands, can be run: by its keys alone, or, as a whole, by all that
// can be known without a cluster (alb_run_check).
// reader: sees it then; may be NULL. complaint: what was said.
int sim_file_check(const struct sim_file *file, const char *variant, bool is_whole, const struct sim_reader *reader,
                   struct alb_complaint *complaint);

// Whether memory will do for all of these, when so many have been made; else why not. Made 0 begins anew.
bool sim_has_room(const char *what, uint32_t made, uint32_t all, char *why, size_t size);

// What one host sends and receives, and its engine's trace, written to files while a scenario runs.
struct sim_watch {
    struct alb_sim_capture capture;
    FILE *trace;
};
// Both: COMMAND_OK, or a status after a line on stderr; what could not be opened need not be closed.
int sim_watch_open(struct sim_watch *watch, const struct sim_options *options, struct alb_run *run);
int sim_watch_close(struct sim_watch *watch, const struct sim_options *options);

// Whether results can be written where the options say, and are not written over each other, the scenario or its data.
int sim_places_check(const char *command, const struct sim_file *file, const struct sim_options *options);

// Called when a run has ended, while it is still there, and before it begins (may be NULL).
struct sim_listener {
    void (*on_begin)(void *context);
    int (*on_end)(void *context, const struct alb_result_of *result);
    void *context;
};

// Runs one variant. COMMAND_OK if it ended, done or not.
int sim_run(const struct sim_file *file, const struct sim_options *options, const char *variant,
            const struct sim_listener *listener, struct sim_outcome *outcome);

// Prints each expectation and whether it was met. True: all were.
bool sim_check(const struct sim_file *file, const struct sim_outcome *outcomes, uint32_t count, FILE *to);

// Whether each run came to its end, or to that of its scenario; says of which it did not.
bool sim_check_ends(const struct sim_outcome *outcomes, uint32_t count, FILE *to);

// Options that a comparison has, too. False after a line on stderr that begins with the command's name.
bool sim_take_max_time(const char *command, const char *text, struct sim_options *options);
bool sim_take_max_events(const char *command, const char *text, struct sim_options *options);
// For each option that getopt_long returns, with what was returned before as bits of *given: those with a value are
// given once, but for --set and --vary.
bool sim_take_once(const char *command, const struct option *options, int option, uint64_t *given);

// The subcommand; argv[0] is its name.
int sim_compare(int argc, char **argv);

// Draws and checks so many scenarios.
int sim_search(uint64_t first, uint64_t count, bool has_progress);

// Makes the directory, if need be. COMMAND_OK: figures can be put there.
int sim_plot_open(const char *directory);
// Figures in a directory, made by gnuplot: NAME-fct.svg, NAME-slowdown.svg, NAME-links.svg.
int sim_plot(const char *directory, const struct alb_result_of *result);
// Where figure number figure of that scenario and variant is put.
void sim_plot_path(const char *directory, const struct alb_result_of *result, uint32_t figure,
                   char path[SIM_FIGURE_PATH_MAX]);

// One page with all variants.
struct sim_page;
int sim_page_open(struct sim_page **page, const char *path, const struct sim_file *file);
int sim_page_add(struct sim_page *page, const struct alb_result_of *result);
int sim_page_close(struct sim_page *page, const struct sim_file *file, const struct sim_outcome *outcomes,
                   uint32_t count);

// "name" or "name (variant)" for titles; "name" or "name-variant" for files.
void sim_title(const struct alb_result_of *result, bool is_file, char *text, size_t size);
