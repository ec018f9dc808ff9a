// SPDX-License-Identifier: BSD-2-Clause
// The receiving half of a copy. What comes goes to NAME.albedo-part, a durable region of the data and, behind it, a
// table of the digests of the chunks that are there: each transaction writes a chunk and its digest, so that after any
// interruption the table says what need not come again. When all of it is there and its digest is the sender's, the
// file gets its name. One copy has it from its beginning until then, also against other processes.
#pragma once

#include "tools/files_sink.h"

#include <limits.h>

struct files_part {
    struct files_sink sink; // finishing makes it safe, and gives it its name and its mode
    int folder;             // not owned
    char name[NAME_MAX + 1];
    char part[NAME_MAX + 1];
    char journal[NAME_MAX + 1];
    uint32_t mode;
    bool may_pass; // what it failed by, with time
    int fd; // of the part, which nobody else has until it is closed; -1: none
    struct ibv_mr *mr;
    uint64_t counted; // chunks that are there, without a gap before them
};

// False, and why: a file with that name at the end of its path cannot be copied, since it is a part or its journal, or
// has no room for their names beside it.
bool files_part_check_name(const char *path, char why[FILES_WHY_MAX]);

// Begins, or goes on where an interrupted copy of the same size and chunks ended. makes_safe: each transaction survives
// the machine, too. False: why says so.
bool files_part_open(struct files_part *part, struct ibv_pd *pd, int folder, const char *name,
                     const struct files_message *offer, bool makes_safe, char why[FILES_WHY_MAX]);
