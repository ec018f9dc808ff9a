// SPDX-License-Identifier: BSD-2-Clause
#include "device/tests/said.h"

#include "base/tests/test.h"

#include <sys/mman.h>
#include <unistd.h>

void said_begin(struct said *said)
{
    said->file = memfd_create("said", MFD_CLOEXEC);
    said->kept = dup(STDERR_FILENO);
    assert_true(said->file >= 0 && said->kept >= 0);
    dup2(said->file, STDERR_FILENO);
}

void said_end(struct said *said, char *text, size_t size)
{
    dup2(said->kept, STDERR_FILENO);
    ssize_t length = pread(said->file, text, size - 1, 0);
    text[length > 0 ? length : 0] = 0;
    close(said->kept);
    close(said->file);
}
