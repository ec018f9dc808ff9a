// SPDX-License-Identifier: BSD-2-Clause
// A bar on stderr, if that is a terminal.
#pragma once

#include "base/types.h"

struct progress {
    const char *name;
    uint64_t total, done; // bytes
    uint64_t skipped;     // of done: were there already
    alb_time begun, shown;
    bool is_shown;
};

void progress_begin(struct progress *progress, const char *name, uint64_t total);
// Draws anew now and then.
void progress_add(struct progress *progress, uint64_t bytes, bool was_there);
// Removes it.
void progress_end(struct progress *progress);
