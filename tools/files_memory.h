// SPDX-License-Identifier: BSD-2-Clause
// Memory that `albedo serve` has under a name: a region of a fixed size that files are copied to and from. It is as
// volatile as the server.
#pragma once

#include "tools/files_sink.h"

#define FILES_MEMORIES_MAX 16

struct files_memory {
    char name[256];
    uint64_t bytes;
    int fd;
    uint8_t *address;
    uint8_t *table; // of digests, for the copy that was last under way
    uint64_t table_size;
    uint32_t table_chunk_bytes;
    _Atomic uint64_t mixed_bytes; // so many, from the first on, are of copies that were begun and not completed since
};

// NAME=BYTES, a plain name; K, M and G may follow. 0, or an errno with why: EINVAL: it is not that; there is no such
// memory.
int files_memory_make(struct files_memory *memory, const char *text, char why[FILES_WHY_MAX]);

// Whether all that was made, so many bytes, can be used, too, as things are now: it takes room when it is written to.
// False: why says what is there.
bool files_memory_is_free(uint64_t bytes, char why[FILES_WHY_MAX]);

// A copy of so many bytes to it begins, or is complete. One that is shorter than those that were not completed leaves
// the rest of theirs as it was.
void files_memory_note_begun(struct files_memory *memory, uint64_t bytes);
void files_memory_note_complete(struct files_memory *memory, uint64_t bytes);

// A copy into it, by one connection at a time.
struct files_memory_sink {
    struct files_sink sink;
    struct files_memory *memory;
    struct ibv_mr *mr, *table_mr;
};

bool files_memory_has_room(const struct files_memory *memory, uint64_t bytes, char why[FILES_WHY_MAX]);
// What has room there.
bool files_memory_open(struct files_memory_sink *sink, struct files_memory *memory, struct ibv_pd *pd,
                       const struct files_message *offer, char why[FILES_WHY_MAX]);
