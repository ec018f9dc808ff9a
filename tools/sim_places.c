// SPDX-License-Identifier: BSD-2-Clause
// Where results are written: nowhere twice, and not over what they are made from.
#include "tools/command.h"
#include "tools/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    PLACES_MAX = 4,
};

struct place {
    const char *option, *path;
};

static bool is_stdout(const struct place *place)
{
    return strcmp(place->path, "-") == 0;
}

static const char *path_of(const struct place *place)
{
    return is_stdout(place) ? "/dev/stdout" : place->path;
}

// A path with its folder's links followed, of a file that is not there yet; so many folders may not be there either.
static bool resolve(const char *path, uint32_t missing_max, char resolved[PATH_MAX])
{
    char folder[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/'), *end = slash;
    while (end && end > path + 1 && end[-1] == '/')
        end--;
    int length =
        snprintf(folder, sizeof(folder), "%.*s", slash ? ALB_MAX((int)(end - path), 1) : 1, slash ? path : ".");
    if (length < 0 || (size_t)length >= sizeof(folder))
        return false;
    if (!realpath(folder, real) && (missing_max == 0 || !resolve(folder, missing_max - 1, real)))
        return false;
    length = snprintf(resolved, PATH_MAX, "%s/%s", real, slash ? slash + 1 : path);
    return length > 0 && length < PATH_MAX;
}

// Devices may be written to by many. The folder of figures is made later.
static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    char path_a[PATH_MAX], path_b[PATH_MAX];
    bool has_a = stat(a, &of_a) == 0, has_b = stat(b, &of_b) == 0;
    if (has_a && has_b)
        return (S_ISREG(of_a.st_mode) || S_ISFIFO(of_a.st_mode)) && of_a.st_dev == of_b.st_dev &&
               of_a.st_ino == of_b.st_ino;
    return has_a == has_b && resolve(a, 1, path_a) && resolve(b, 1, path_b) && strcmp(path_a, path_b) == 0;
}

static int refuse(const char *command, const struct place *place, const char *why, const char *other)
{
    return command_error(COMMAND_USAGE, command, "%s: %s %s %s; expected a place of its own", place->option,
                         place->path, why, other);
}

// "file", "sizes", or such a key in a variant: "workload.web.sizes".
static bool names_data(const struct alb_document_entry *entry)
{
    const char *dot = strrchr(entry->key, '.'), *key = dot ? dot + 1 : entry->key;
    return strcmp(key, "file") == 0 || strcmp(key, "sizes") == 0;
}

// A data file, which a later variant reads again.
static const char *find_data(const struct sim_file *file, const char *path)
{
    const struct alb_scenario scenario = {.directory = file->directory};
    char data[ALB_SCENARIO_PATH_MAX];
    for (uint32_t i = 0; i < file->document.count; i++) {
        const struct alb_document_entry *entry = &file->document.entries[i];
        if (names_data(entry) && is_same_file(path, alb_scenario_path(&scenario, entry->value, data)))
            return entry->value;
    }
    return NULL;
}

static bool is_figure_of(const char *directory, const struct sim_file *file, const char *variant, const char *path)
{
    const struct alb_result_of result = {.scenario = file->name, .variant = variant};
    char figure[SIM_FIGURE_PATH_MAX];
    for (uint32_t i = 0; i < SIM_FIGURES; i++) {
        sim_plot_path(directory, &result, i, figure);
        if (is_same_file(path, figure))
            return true;
    }
    return false;
}

// One that a variant will have, or the scenario if it has none.
static bool is_figure(const struct sim_options *options, const struct sim_file *file, const char *path)
{
    const char *variant = alb_scenario_variant(&file->document, 0);
    if (options->plot && !variant)
        return is_figure_of(options->plot, file, NULL, path);
    for (uint32_t i = 0; options->plot && variant; variant = alb_scenario_variant(&file->document, ++i))
        if (is_figure_of(options->plot, file, variant, path))
            return true;
    return false;
}

static int check_place(const char *command, const struct sim_file *file, const struct sim_options *options,
                       const struct place *places, uint32_t index)
{
    const struct place *place = &places[index];
    const char *path = path_of(place);
    if (is_stdout(place) && strcmp(place->option, "--json") != 0)
        return command_error(COMMAND_USAGE, command,
                             "%s: only --json is written to standard output; ./- is a file of that name",
                             place->option);
    if (is_same_file(path, file->path))
        return refuse(command, place, "is the scenario", file->path);
    const char *data = find_data(file, path);
    if (data)
        return refuse(command, place, "is a data file of the scenario,", data);
    if (is_figure(options, file, path))
        return refuse(command, place, "is written by", "--plot");
    for (uint32_t i = 0; i < index; i++)
        if (is_same_file(path, path_of(&places[i])))
            return refuse(command, place, "is written by", places[i].option);
    return COMMAND_OK;
}

int sim_places_check(const char *command, const struct sim_file *file, const struct sim_options *options)
{
    const struct place all[] = {
        {"--json", options->json}, {"--html", options->html}, {"--pcap", options->pcap}, {"--trace", options->trace}};
    struct place places[PLACES_MAX];
    uint32_t count = 0;
    int status = COMMAND_OK;
    for (size_t i = 0; i < ALB_COUNT(all); i++)
        if (all[i].path)
            places[count++] = all[i];
    for (uint32_t i = 0; i < count && status == COMMAND_OK; i++)
        status = check_place(command, file, options, places, i);
    return status;
}
