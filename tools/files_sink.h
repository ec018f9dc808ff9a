// SPDX-License-Identifier: BSD-2-Clause
// Where a copy goes: a file in the making, or memory.
#pragma once

#include "tools/files_link.h"

struct files_sink {
    uint64_t size;
    uint32_t chunk_bytes;
    void (*place)(const struct files_sink *sink, struct files_place *place);
    // Reports how many bytes of it are there. May be NULL.
    uint64_t (*count)(struct files_sink *sink);
    // Nothing more comes: is it what the sender has sent? False: why says what is wrong.
    bool (*finish)(struct files_sink *sink, const struct alb_digest *expected, char why[FILES_WHY_MAX]);
    // Ends it; what has come stays for another attempt, if anything has.
    void (*close)(struct files_sink *sink);
};
