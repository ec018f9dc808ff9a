// SPDX-License-Identifier: BSD-2-Clause
// How programs begin, and how subcommands complain and end.
#include "tools/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

void command_begin(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int command_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (length < 0)
        return errno;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    return 0;
}

int command_flush(void)
{
    static int first_error;
    if (fflush(stdout) != 0 && !first_error)
        first_error = errno;
    return first_error;
}

int command_end(int status)
{
    bool had_failed = ferror(stdout) != 0; // for a reason that was said, or is not known any more
    int error = command_flush();
    if (!error && !had_failed)
        return status;
    fprintf(stderr, "albedo: cannot write to stdout%s%s\n", error ? ": " : "", error ? strerror(error) : "");
    return status == COMMAND_OK ? COMMAND_FAILED : status;
}
