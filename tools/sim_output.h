// SPDX-License-Identifier: BSD-2-Clause
// A file that a run of `albedo sim` is to leave behind. Whether it can be written is known before the run; what was in
// it stays until there is something to put in its place, and a new file is not left empty by SIGINT or SIGTERM.
#pragma once

#include "base/types.h"

#include <stdio.h>

struct sim_output {
    FILE *file; // NULL: none
    int fd;     // that it writes to
    const char *path;
    bool is_new;    // it was not there before
    bool has_begun; // what was there is gone
};

// Errors: those of open(2).
int sim_output_open(struct sim_output *output, const char *path);
// The stream to write to, of an empty file when it is called first.
FILE *sim_output_begin(struct sim_output *output);
// A file that was made and never begun is removed. Returns the first error of writing it, if there was one.
int sim_output_close(struct sim_output *output);
