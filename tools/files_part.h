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
    char new_journal[NAME_MAX + 1];
    uint32_t mode;
    bool may_pass; // what it failed by, with time
    int fd;        // of the part, which nobody else has until it is closed; -1: none
    struct ibv_mr *mr;
    uint64_t counted; // chunks that are there, without a gap before them
};

// True, and why it is left alone: the path is that of a part, or of its journal. A copy of its own would remove what
// stands beside another one, and it is for its user alone until it has its name.
bool files_part_is_unfinished(const char *path, char why[FILES_WHY_MAX]);
// False, and why: nothing can be copied to that path, since it is such a one, or there is no room behind its name.
bool files_part_check_name(const char *path, char why[FILES_WHY_MAX]);

// Begins, or goes on where an interrupted copy of the same size and chunks ended. makes_safe: each transaction survives
// the machine, too. False: why says so.
bool files_part_open(struct files_part *part, struct ibv_pd *pd, int folder, const char *name,
                     const struct files_message *offer, bool makes_safe, char why[FILES_WHY_MAX]);
