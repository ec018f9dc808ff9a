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
    uint32_t session_limit;   // at a time
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

// Of both; each has a part of them. --seed has no letter (-s is --sync), only a number that no letter has.
#define FILES_SEED          1
#define FILES_CP_LETTERS    "p:c:r:sn:f:h"
#define FILES_SERVE_LETTERS "p:a:m:l:sn:f:h"
#define FILES_OPTIONS                                                                               \
    {                                                                                               \
        {"port", required_argument, NULL, 'p'}, {"chunk", required_argument, NULL, 'c'},            \
            {"retry", required_argument, NULL, 'r'}, {"address", required_argument, NULL, 'a'},     \
            {"sync", no_argument, NULL, 's'}, {"net", required_argument, NULL, 'n'},                \
            {"faults", required_argument, NULL, 'f'}, {"memory", required_argument, NULL, 'm'},     \
            {"limit", required_argument, NULL, 'l'}, {"seed", required_argument, NULL, FILES_SEED}, \
            {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0},                                   \
    }
