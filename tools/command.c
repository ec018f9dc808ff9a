// SPDX-License-Identifier: BSD-2-Clause
// How subcommands complain.
#include "tools/command.h"

#include <stdarg.h>
#include <stdio.h>

int command_error(int status, const char *command, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "albedo %s: ", command);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return status;
}
