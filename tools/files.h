// SPDX-License-Identifier: BSD-2-Clause
// `albedo cp` and `albedo serve`: their options, and the program that has both. It links the public libraries as any
// program does; `albedo` becomes it with Albedo's doors in front.
#pragma once

#include "base/types.h"

struct files_serve_options {
    const char *folder;
    const char *address; // NULL: any
    const char *port;
    bool makes_safe;
    const char *memories[16]; // NAME=BYTES
    uint32_t memory_count;
};

int files_serve(const struct files_serve_options *options);

struct files_cp_options {
    const char *from, *to; // one of them HOST:PATH
    const char *port;
    uint32_t chunk_bytes;
    uint32_t retry_seconds;
    bool makes_safe;
};

int files_cp(const struct files_cp_options *options);
