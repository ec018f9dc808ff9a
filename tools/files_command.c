// SPDX-License-Identifier: BSD-2-Clause
// `albedo cp` and `albedo serve`: puts the device's options into the environment and the doors in front, and becomes
// the program that does it.
#include "tools/command.h"

#include "tools/environment.h"
#include "tools/files.h"
#include "tools/libraries.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Takes from the options those that concern the device; what is wrong with the others the program says itself.
// COMMAND_OK, or the status to end with. *is_help: no device is asked for.
static int set_environment(const char *command, int argc, char **argv, const char *letters, bool *is_help)
{
    static const struct option options[] = FILES_OPTIONS;
    if (setenv("ALBEDO_DEVICES", "albedo0", 1) != 0)
        return command_error(COMMAND_FAILED, command, "%s", strerror(errno));
    int status = COMMAND_OK;
    opterr = 0;
    for (int option;
         status == COMMAND_OK && !*is_help && (option = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
        if (option == 'n')
            status = environment_take(command, "net", optarg);
        if (option == 'f')
            status = environment_take(command, "faults", optarg);
        if (option == FILES_SEED)
            status = environment_take(command, "seed", optarg);
        *is_help = option == 'h';
    }
    return status;
}

static int become_files(const char *command, int argc, char **argv, const char *letters)
{
    char directory[PATH_MAX], program[PATH_MAX + 32];
    bool is_help = false;
    int status = set_environment(command, argc, argv, letters, &is_help);
    if (status != COMMAND_OK)
        return status;
    if (!is_help && environment_check(command) != COMMAND_OK)
        return COMMAND_USAGE;
    if (libraries_find(command, directory) != COMMAND_OK || libraries_put_in_front(command, directory) != COMMAND_OK)
        return COMMAND_FAILED;
    snprintf(program, sizeof(program), "%s/albedo-files", directory);
    char **arguments = calloc((size_t)argc + 2, sizeof(*arguments));
    if (!arguments)
        return command_error(COMMAND_FAILED, command, "%s", strerror(ENOMEM));
    arguments[0] = program;
    arguments[1] = (char *)command;
    for (int i = 1; i < argc; i++)
        arguments[i + 1] = argv[i];
    execv(program, arguments);
    int error = errno;
    free(arguments);
    return command_error(COMMAND_NOT_FOUND, command, "%s: %s", program, strerror(error));
}

int command_cp(int argc, char **argv)
{
    return become_files("cp", argc, argv, FILES_CP_LETTERS);
}

int command_serve(int argc, char **argv)
{
    return become_files("serve", argc, argv, FILES_SERVE_LETTERS);
}
