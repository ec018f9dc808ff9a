// SPDX-License-Identifier: BSD-2-Clause
// The subcommands of `albedo` and what they share. Each takes its own argc and argv (argv[0] is its name) and returns
// the exit status.
#pragma once

#include "base/types.h"

#include <limits.h>

enum {
    COMMAND_OK = 0,
    COMMAND_FAILED = 1,
    COMMAND_USAGE = 2,
    COMMAND_NOT_EXECUTABLE = 126, // as shells have it
    COMMAND_NOT_FOUND = 127,
};

int command_run(int argc, char **argv);
int command_info(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_sim(int argc, char **argv);
int command_cp(int argc, char **argv);
int command_serve(int argc, char **argv);

// One line on stderr, "albedo run: message". Returns status, so that a caller can return what this returns.
__attribute__((format(printf, 3, 4))) int command_error(int status, const char *command, const char *format, ...);

// First of all in main: closed ones of the descriptors 0 to 2 are taken, so that no file which is opened later gets
// such a number, and with it what is printed. Writing there fails as before, and a program that this one becomes finds
// them closed.
void command_begin(void);

// Writes the folder that this program is in. 0, or an errno.
int command_folder(char folder[PATH_MAX]);

// Writes what was printed so far. 0, or the first error that doing so has met.
int command_flush(void);

// The exit status when stdout is done with: what could not be written there is a failure, with a line on stderr.
int command_end(int status);
