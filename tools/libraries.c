// SPDX-License-Identifier: BSD-2-Clause
// Finds the libraries and puts them in front.
//
// Both variables are needed: LD_LIBRARY_PATH wins over DT_RUNPATH but not over DT_RPATH, and serves programs that
// dlopen "libibverbs.so" or "librdmacm.so"; a preloaded library of the same SONAME and symbol versions wins everywhere.
#include "tools/libraries.h"

#include "tools/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool holds(const char *directory, const char *library)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s", directory, library);
    return length > 0 && (size_t)length < sizeof(path) && access(path, R_OK) == 0;
}

static bool holds_doors(const char *directory)
{
    return holds(directory, LIBRARIES_DOOR) && holds(directory, LIBRARIES_CM_DOOR);
}

int libraries_find(const char *command, char directory[PATH_MAX])
{
    // From the installed program, and from the one in the build folder.
    static const char *const places[] = {ALBEDO_LIBRARIES_FROM_BIN, "../lib/albedo"};
    char bin[PATH_MAX];
    int error = command_folder(bin);
    if (error)
        return command_error(COMMAND_FAILED, command, "/proc/self/exe, to find the libraries: %s", strerror(error));
    for (size_t i = 0; i < ALB_COUNT(places); i++) {
        char place[PATH_MAX];
        int needed = snprintf(place, sizeof(place), "%s/%s", bin, places[i]);
        if (needed <= 0 || (size_t)needed >= sizeof(place) || !holds_doors(place))
            continue;
        if (realpath(place, directory) != NULL)
            return COMMAND_OK;
        if (errno != ENOENT)
            return command_error(COMMAND_FAILED, command, "%s: %s", place, strerror(errno));
    }
    return command_error(COMMAND_FAILED, command,
                         "%s and %s are not in %s/" ALBEDO_LIBRARIES_FROM_BIN
                         "; build them with make, or install again",
                         LIBRARIES_DOOR, LIBRARIES_CM_DOOR, bin);
}

// Sets the variable to front, a colon and what it held. 0, or an errno.
static int prepend(const char *variable, const char *front)
{
    const char *old = getenv(variable);
    char *value = NULL;
    int length = old != NULL && *old != '\0' ? asprintf(&value, "%s:%s", front, old) : asprintf(&value, "%s", front);
    if (length < 0)
        return ENOMEM;
    int error = setenv(variable, value, 1) == 0 ? 0 : errno;
    free(value);
    return error;
}

// Blanks separate the names in LD_PRELOAD too; bare names are then found through LD_LIBRARY_PATH.
static int preload(const char *directory)
{
    bool bare = strpbrk(directory, " \t\n") != NULL;
    const char *folder = bare ? "" : directory, *slash = bare ? "" : "/";
    const char *sanitizer = ALBEDO_SANITIZER_RUNTIME; // must come first of all; "" in an ordinary build
    char *names = NULL;
    if (asprintf(&names, "%s%s%s%s%s:%s%s%s:%s%s%s", sanitizer, *sanitizer != '\0' ? ":" : "", folder, slash,
                 LIBRARIES_DOOR, folder, slash, LIBRARIES_CM_DOOR, folder, slash, LIBRARIES_SHIM) < 0)
        return ENOMEM;
    int error = prepend("LD_PRELOAD", names);
    free(names);
    return error;
}

// For programs that are built with a sanitizer. AddressSanitizer refuses to start behind preloaded libraries, and
// ThreadSanitizer would report what the device places in a program's memory. What the user has set stands behind, and
// so has the last word.
static int prepare_sanitizers(void)
{
    if (*ALBEDO_SANITIZER_RUNTIME != '\0')
        return 0;
    int error = prepend("ASAN_OPTIONS", "verify_asan_link_order=0");
    return error ? error : prepend("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
}

int libraries_put_in_front(const char *command, const char *directory)
{
    if (strpbrk(directory, ":;$") != NULL)
        return command_error(COMMAND_FAILED, command,
                             "%s: the dynamic loader cannot use a folder with \":\", \";\" or \"$\" in its name",
                             directory);
    int error = prepend("LD_LIBRARY_PATH", directory);
    if (error == 0)
        error = preload(directory);
    if (error == 0)
        error = prepare_sanitizers();
    return error == 0 ? COMMAND_OK : command_error(COMMAND_FAILED, command, "%s", strerror(error));
}
