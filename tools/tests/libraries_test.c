// SPDX-License-Identifier: BSD-2-Clause
// Finding the libraries where something refuses it.
#include "tools/libraries.h"

#include "tools/command.h"

#include "base/tests/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int realpath_error;
static char said[512];

int __wrap_access(const char *path, int mode);
char *__wrap_realpath(const char *path, char *resolved);

// The linker puts these before their namesakes (--wrap).
int __wrap_access(const char *path, int mode)
{
    return 0;
}

char *__wrap_realpath(const char *path, char *resolved)
{
    errno = realpath_error;
    return NULL;
}

int command_folder(char folder[PATH_MAX])
{
    strcpy(folder, "/where/it/is");
    return 0;
}

int command_error(int status, const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof(said), format, arguments);
    va_end(arguments);
    return status;
}

static void libraries_find__says_why(void **state)
{
    char directory[PATH_MAX];
    realpath_error = EACCES;
    assert_int_equal(libraries_find("run", directory), COMMAND_FAILED);
    assert_string_equal(said, "/where/it/is/../lib/albedo: Permission denied");
    realpath_error = ENOENT;
    assert_int_equal(libraries_find("run", directory), COMMAND_FAILED);
    assert_non_null(strstr(said, "build them with make, or install again"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_find__says_why),
    };
    return cmocka_run_group_tests_name("libraries", tests, NULL, NULL);
}
