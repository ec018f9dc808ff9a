// SPDX-License-Identifier: BSD-2-Clause
// `albedo cp` and `albedo serve`: puts the device's options into the environment and the doors in front, and becomes
// the program that does it.
#include "tools/command.h"

#include "tools/environment.h"
#include "tools/libraries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The value of an option, in any of its forms; NULL: argv[i] is another one.
static const char *value_of(int argc, char **argv, int i, char letter, const char *name)
{
    const char *argument = argv[i];
    size_t length = strlen(name);
    if (argument[0] != '-')
        return NULL;
    if (argument[1] == letter)
        return argument[2] ? argument + 2 : i + 1 < argc ? argv[i + 1] : NULL;
    if (argument[1] != '-' || strncmp(argument + 2, name, length) != 0)
        return NULL;
    if (argument[2 + length] == '=')
        return argument + 3 + length;
    return argument[2 + length] == '\0' && i + 1 < argc ? argv[i + 1] : NULL;
}

// 0, or an errno.
static int set_environment(int argc, char **argv)
{
    int error = setenv("ALBEDO_DEVICES", "albedo0", 1) == 0 ? 0 : errno;
    for (int i = 1; argv[i] && strcmp(argv[i], "--") != 0 && error == 0; i++) {
        const char *net = value_of(argc, argv, i, 'n', "net"), *faults = value_of(argc, argv, i, 'f', "faults");
        error = net ? environment_set("net", net) : faults ? environment_set("faults", faults) : 0;
    }
    return error;
}

static int become_files(const char *command, int argc, char **argv)
{
    char directory[PATH_MAX], program[PATH_MAX + 32];
    int error = set_environment(argc, argv);
    if (error)
        return command_error(COMMAND_FAILED, command, "%s", strerror(error));
    if (environment_check(command) != COMMAND_OK)
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
    error = errno;
    free(arguments);
    return command_error(COMMAND_NOT_FOUND, command, "%s: %s", program, strerror(error));
}

int command_cp(int argc, char **argv)
{
    return become_files("cp", argc, argv);
}

int command_serve(int argc, char **argv)
{
    return become_files("serve", argc, argv);
}
