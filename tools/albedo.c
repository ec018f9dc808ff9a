// SPDX-License-Identifier: BSD-2-Clause
// albedo(1): finds the subcommand and hands over.
#include "tools/command.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *text;
} commands[] = {
    {"run", command_run, "run a program on an Albedo device"},
    {"info", command_info, "show devices, addresses, limits and versions"},
    {"stat", command_stat, "show the counters of running devices"},
    {"sim", command_sim, "run a scenario on a simulated cluster"},
    {"cp", command_cp, "copy a file to or from a host, by transactions"},
    {"serve", command_serve, "let others copy files to and from a folder"},
};

static void print_usage(FILE *to)
{
    fputs("Usage: albedo COMMAND [OPTIONS]\n"
          "An RDMA device in user space: runs programs written for RDMA verbs, over UDP.\n\n"
          "Commands:\n",
          to);
    for (size_t i = 0; i < ALB_COUNT(commands); i++)
        fprintf(to, "  %-5s %s\n", commands[i].name, commands[i].text);
    fputs("\nOptions:\n"
          "  -h, --help     show this help\n"
          "  -V, --version  show the version\n\n"
          "`albedo COMMAND --help` shows a command's options; albedo(1) and albedo(7) say more.\n",
          to);
}

static int run_command(size_t index, int argc, char **argv)
{
    char called[32]; // as getopt_long's messages begin
    snprintf(called, sizeof(called), "albedo %s", commands[index].name);
    argv[0] = called;
    optind = 0; // getopt_long starts anew, with the subcommand's own argv
    return commands[index].run(argc, argv);
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "+hV", options, NULL)) != -1) {
        switch (option) {
        case 'h':
            print_usage(stdout);
            return COMMAND_OK;
        case 'V':
            puts("albedo " ALBEDO_VERSION);
            return COMMAND_OK;
        default:
            fputs("Try `albedo --help`.\n", stderr);
            return COMMAND_USAGE;
        }
    }
    if (optind == argc) {
        print_usage(stderr);
        return COMMAND_USAGE;
    }
    const char *name = argv[optind];
    for (size_t i = 0; i < ALB_COUNT(commands); i++) {
        if (strcmp(name, commands[i].name) == 0)
            return run_command(i, argc - optind, argv + optind);
    }
    fprintf(stderr, "albedo: no command \"%s\"; there are run, info, stat, sim, cp and serve\n", name);
    return COMMAND_USAGE;
}

int main(int argc, char **argv)
{
    command_begin();
    return command_end(run(argc, argv));
}
