// SPDX-License-Identifier: BSD-2-Clause
// What a call says on stderr.
#pragma once

#include <stddef.h>

struct said {
    int file, kept;
};

// From here on stderr is kept for the test.
void said_begin(struct said *said);
// stderr is what it was; the text is what was said, cut to size - 1.
void said_end(struct said *said, char *text, size_t size);
