// SPDX-License-Identifier: BSD-2-Clause
// The end of a process that has found a bug of Albedo in itself.
#include "base/types.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void alb_assert_failed(const char *condition, const char *file, int line)
{
    // Neither stdio nor malloc: the heap or a stream's lock may be what is broken.
    char text[512];
    int length = snprintf(text, sizeof(text), "albedo: bug: %s at %s:%d, please report\n", condition, file, line);
    if (length >= (int)sizeof(text)) {
        length = sizeof(text) - 1;
        text[length - 1] = '\n';
    }
    if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
        abort(); // nowhere left to say it
    abort();
}
