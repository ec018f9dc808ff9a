// SPDX-License-Identifier: BSD-2-Clause
// albedo-run(1): checks the options, puts them into the environment and the libraries in front, and becomes the
// program.
#include "tools/command.h"

#include "engine/engine.h"
#include "tools/environment.h"
#include "tools/libraries.h"

#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum option_code {
    OPTION_NET = 'n',
    OPTION_DEVICE = 'd',
    OPTION_FAULTS = 'f',
    OPTION_SEED = 's',
    OPTION_LOG = 'l',
    OPTION_HELP = 'h',
    OPTION_PCAP = 256, // without a short form
    OPTION_TRACE,
    OPTION_STATS,
    OPTION_PATHS,
    OPTION_LOSS,
    OPTION_CONGESTION,
    OPTION_PATH,
    OPTION_CREDIT,
    OPTION_COMPLETIONS,
};

static const struct option long_options[] = {
    {"net", required_argument, NULL, OPTION_NET},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"faults", required_argument, NULL, OPTION_FAULTS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"log", required_argument, NULL, OPTION_LOG},
    {"pcap", required_argument, NULL, OPTION_PCAP},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"stats", required_argument, NULL, OPTION_STATS},
    {"paths", required_argument, NULL, OPTION_PATHS},
    {"loss", required_argument, NULL, OPTION_LOSS},
    {"congestion", required_argument, NULL, OPTION_CONGESTION},
    {"path", required_argument, NULL, OPTION_PATH},
    {"credit", required_argument, NULL, OPTION_CREDIT},
    {"completions", required_argument, NULL, OPTION_COMPLETIONS},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

// The choices of albedo0, the default first.
static void print_policies(FILE *to)
{
    static const struct {
        const char *option;
        enum alb_policy policy;
        const char *text, *example;
    } lines[] = {
        {"--loss", ALB_POLICY_LOSS, "what is missing and when it is sent again", "irn:low=50us,high=1ms"},
        {"--congestion", ALB_POLICY_CONGESTION, "how much is in flight", "dcqcn:additive=40Mb/s,alpha=55us"},
        {"--path", ALB_POLICY_PATH, "which way a packet goes", NULL},
        {"--credit", ALB_POLICY_CREDIT, "whether receivers bound what is sent to them", "shortest:aging=64Gb/s"},
    };
    fputs("\nOptions of albedo0:\n"
          "      --paths NUMBER       source ports to a peer, 1 to 128 (default: 4)\n"
          "      --completions LEVEL  what a completion of RC says: delivered, visible, reflected;\n"
          "                           beyond the first the program sees albedo0 only\n",
          to);
    for (size_t i = 0; i < ALB_COUNT(lines); i++) {
        const char *name;
        fprintf(to, "      %-12s NAME    %s:", lines[i].option, lines[i].text);
        for (uint32_t k = 0; (name = alb_engine_policy_name("csa", lines[i].policy, k)) != NULL; k++)
            fprintf(to, "%s %s", k > 0 ? "," : "", name);
        fputc('\n', to);
        if (lines[i].example)
            fprintf(to, "                           with parameters behind a colon: %s\n", lines[i].example);
    }
}

static void print_usage(FILE *to)
{
    fputs("Usage: albedo run [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n"
          "Runs a program that uses RDMA verbs on an Albedo device. Its exit status is the program's.\n\n"
          "Options:\n"
          "  -n, --net LIST      addresses or interfaces of the devices, comma-separated (default: loopback)\n"
          "  -d, --device LIST   the devices the program sees, in this order (default: roce0,albedo0)\n"
          "  -f, --faults SPEC   such as loss=1%,duplicate=0.1%,reorder=1%,corrupt=0.01%,delay=50us..1ms\n"
          "  -s, --seed NUMBER   of the faults (default: 1)\n"
          "  -l, --log LEVEL     error, warning, info or debug (default: warning)\n"
          "      --pcap FILE     write what is sent and received as a capture\n"
          "      --trace FILE    write the engine's events as JSON lines\n"
          "      --stats FILE    write the counters as JSON when the device closes\n"
          "  -h, --help          show this help\n\n"
          "In a file's name, not in its folders', %p becomes the process id, %d the device's name.\n",
          to);
    print_policies(to);
}

static bool is_file_option(int option)
{
    return option == OPTION_PCAP || option == OPTION_TRACE || option == OPTION_STATS;
}

// Why a folder may not be there.
static const char *hint(const char *folder, int error)
{
    bool has_some = strstr(folder, "%p") || strstr(folder, "%d");
    return error == ENOENT && has_some ? "; %p and %d stand for something only in the name of the file itself" : "";
}

// A file that the device will create: its folder must be there and writable, and the name absolute, since programs
// change folders.
static int set_file(const char *option, const char *path)
{
    char absolute[PATH_MAX], folder[PATH_MAX];
    char here[PATH_MAX] = "";
    if (*path == '\0')
        return command_error(COMMAND_USAGE, "run", "--%s: give the name of a file", option);
    if (*path != '/' && getcwd(here, sizeof(here)) == NULL)
        return command_error(COMMAND_FAILED, "run", "--%s: the current folder: %s", option, strerror(errno));
    int length = snprintf(absolute, sizeof(absolute), "%s%s%s", here, *path != '/' ? "/" : "", path);
    if (length < 0 || (size_t)length >= sizeof(absolute))
        return command_error(COMMAND_USAGE, "run", "--%s: the name is too long", option);
    memcpy(folder, absolute, sizeof(folder));
    const char *parent = dirname(folder);
    struct stat status;
    if (stat(absolute, &status) == 0 && S_ISDIR(status.st_mode))
        return command_error(COMMAND_USAGE, "run", "--%s %s: %s", option, path, strerror(EISDIR));
    bool is_made = stat(absolute, &status) != 0 || S_ISREG(status.st_mode); // else it is a device, a pipe, /dev/stdout
    if (is_made && access(parent, W_OK | X_OK) != 0)
        return command_error(COMMAND_USAGE, "run", "--%s %s: cannot create files in %s: %s%s", option, path, parent,
                             strerror(errno), hint(parent, errno));
    int error = environment_set(option, absolute);
    return error == 0 ? COMMAND_OK : command_error(COMMAND_FAILED, "run", "%s", strerror(error));
}

// Puts one option into the environment.
static int take_option(int option, const char *name, const char *value)
{
    return is_file_option(option) ? set_file(name, value) : environment_take("run", name, value);
}

// Options until the program's name. COMMAND_OK: optind is at the program; otherwise the exit status; *is_done: leave
// with COMMAND_OK.
static int take_options(int argc, char **argv, bool *is_done)
{
    int option, index = 0;
    while ((option = getopt_long(argc, argv, "+n:d:f:s:l:h", long_options, &index)) != -1) {
        if (option == OPTION_HELP) {
            print_usage(stdout);
            *is_done = true;
            return COMMAND_OK;
        }
        if (option == '?') {
            fputs("Try `albedo run --help`.\n", stderr);
            return COMMAND_USAGE;
        }
        const char *name = "";
        for (const struct option *o = long_options; o->name != NULL; o++) {
            if (o->val == option)
                name = o->name;
        }
        int status = take_option(option, name, optarg);
        if (status != COMMAND_OK)
            return status;
    }
    if (optind == argc) {
        command_error(COMMAND_USAGE, "run", "no program given");
        print_usage(stderr);
        return COMMAND_USAGE;
    }
    return COMMAND_OK;
}

static bool is_in_path(const char *name)
{
    const char *path = getenv("PATH"), *folder = path ? path : "/bin:/usr/bin"; // as execvp(3) has it
    while (folder != NULL) {
        char file[PATH_MAX];
        size_t length = strcspn(folder, ":");
        int needed = snprintf(file, sizeof(file), "%.*s%s%s", (int)length, folder, length > 0 ? "/" : "", name);
        if (needed > 0 && (size_t)needed < sizeof(file) && access(file, X_OK) == 0)
            return true;
        folder = folder[length] != '\0' ? folder + length + 1 : NULL;
    }
    return false;
}

// What the error of execvp(3) means. ENOENT is said of a script's interpreter, or a dynamic loader, too.
static int cannot_run(const char *program, int error)
{
    if (*program == '\0')
        return command_error(COMMAND_NOT_FOUND, "run", "\"\": the program's name is empty");
    bool is_path = strchr(program, '/') != NULL;
    if (error == ENOENT && (is_path ? access(program, X_OK) == 0 : is_in_path(program)))
        return command_error(COMMAND_NOT_EXECUTABLE, "run", "%s: the interpreter that it names is not there", program);
    if (error == ENOENT && !is_path)
        return command_error(COMMAND_NOT_FOUND, "run", "\"%s\": no such program in PATH", program);
    return command_error(error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_EXECUTABLE, "run", "%s: %s", program,
                         strerror(error));
}

int command_run(int argc, char **argv)
{
    char directory[PATH_MAX];
    bool is_done = false;
    int status = take_options(argc, argv, &is_done);
    if (status != COMMAND_OK || is_done)
        return status;
    status = environment_check("run");
    if (status == COMMAND_OK)
        status = libraries_find("run", directory);
    if (status == COMMAND_OK)
        status = libraries_put_in_front("run", directory);
    if (status != COMMAND_OK)
        return status;

    char **program = argv + optind;
    execvp(program[0], program);
    return cannot_run(program[0], errno);
}
