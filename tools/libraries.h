// SPDX-License-Identifier: BSD-2-Clause
// Where the libraries that stand in front of the system's are: a private directory that is found from the program's own
// place, so that the build folder, an installed tree and a copied tree all work.
#pragma once

#include "base/types.h"

#include <limits.h>

#define LIBRARIES_DOOR    "libibverbs.so.1"   // the verbs door
#define LIBRARIES_CM_DOOR "librdmacm.so.1"    // the rdma_cm door
#define LIBRARIES_SHIM    "libalbedo-shim.so" // shows programs the device nodes they look for

// Writes the directory that holds the doors. COMMAND_OK, or COMMAND_FAILED after a line that says why there is none.
int libraries_find(const char *command, char directory[PATH_MAX]);

// Puts the libraries of that directory in front for programs that are executed from here on: sets LD_LIBRARY_PATH and
// LD_PRELOAD, and for programs built with a sanitizer ASAN_OPTIONS and TSAN_OPTIONS, keeping what they held.
// COMMAND_OK, or COMMAND_FAILED after a line.
int libraries_put_in_front(const char *command, const char *directory);
