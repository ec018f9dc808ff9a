// SPDX-License-Identifier: BSD-2-Clause
// Copies to memory.
#include "tools/files_memory.h"

#include "tools/files_path.h"
#include "tools/free_memory.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY_BYTES 16u

int files_memory_make(struct files_memory *memory, const char *text, char why[FILES_WHY_MAX])
{
    const char *equals = strchr(text, '=');
    size_t name_bytes = equals ? (size_t)(equals - text) : 0;
    char wrong[ALB_TEXT_ERROR_MAX];
    uint64_t bytes;
    if (name_bytes == 0 || name_bytes >= sizeof(memory->name) ||
        !alb_text_parse_bytes(equals + 1, &bytes, wrong, sizeof(wrong)) || bytes == 0) {
        snprintf(why, FILES_WHY_MAX, "--memory: \"%s\" is not NAME=BYTES, such as weights=512M", text);
        return EINVAL;
    }
    *memory = (struct files_memory){.bytes = bytes};
    snprintf(memory->name, sizeof(memory->name), "%.*s", (int)name_bytes, text);
    if (!files_path_is_plain(memory->name)) {
        snprintf(why, FILES_WHY_MAX, "--memory %s: the name is to have no \"/\", and not to be \".\" or \"..\"", text);
        return EINVAL;
    }
    memory->fd = memfd_create(memory->name, MFD_CLOEXEC);
    void *address = MAP_FAILED;
    // A file that is copied from here gets its mode, which would let everyone write.
    if (memory->fd >= 0 && fchmod(memory->fd, 0644) == 0 && ftruncate(memory->fd, (off_t)memory->bytes) == 0)
        address = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
    int error = address == MAP_FAILED ? errno : 0;
    if (error)
        snprintf(why, FILES_WHY_MAX, "--memory %s: %s", text, strerror(error));
    memory->address = address;
    return error;
}

bool files_memory_is_free(uint64_t bytes, char why[FILES_WHY_MAX])
{
    const double gib = 1 << 30;
    uint64_t free = free_memory_bytes();
    if (bytes > free)
        snprintf(
            why, FILES_WHY_MAX,
            "--memory: %.1f GiB in all, and %.1f GiB are free: when copies fill more than that the system ends this "
            "process, or another one",
            (double)bytes / gib, (double)free / gib);
    return bytes <= free;
}

void files_memory_note_begun(struct files_memory *memory, uint64_t bytes)
{
    if (bytes > atomic_load(&memory->mixed_bytes))
        atomic_store(&memory->mixed_bytes, bytes);
}

void files_memory_note_complete(struct files_memory *memory, uint64_t bytes)
{
    if (bytes >= atomic_load(&memory->mixed_bytes))
        atomic_store(&memory->mixed_bytes, 0);
}

static struct files_memory_sink *memory_sink(struct files_sink *sink)
{
    return ALB_CONTAINER_OF(sink, struct files_memory_sink, sink);
}

static void place(const struct files_sink *sink, struct files_place *place)
{
    const struct files_memory_sink *own = ALB_CONTAINER_OF((struct files_sink *)sink, struct files_memory_sink, sink);
    *place = (struct files_place){
        .address = (uintptr_t)own->mr->addr,
        .table = (uintptr_t)own->table_mr->addr,
        .rkey = own->mr->rkey,
        .table_rkey = own->table_mr->rkey,
    };
}

static void close_sink(struct files_sink *sink)
{
    struct files_memory_sink *own = memory_sink(sink);
    if (own->mr)
        ibv_dereg_mr(own->mr);
    if (own->table_mr)
        ibv_dereg_mr(own->table_mr);
    own->mr = own->table_mr = NULL;
}

static bool finish(struct files_sink *sink, const struct alb_digest *expected, char why[FILES_WHY_MAX])
{
    struct files_memory *memory = memory_sink(sink)->memory;
    uint64_t wrong = 0;
    close_sink(sink); // it cannot be changed from here on
    for (uint64_t at = 0; at < sink->size; at += sink->chunk_bytes) {
        uint8_t *entry = memory->table + at / sink->chunk_bytes * ENTRY_BYTES;
        struct alb_digest digest =
            alb_digest_of(memory->address + at, ALB_MIN((uint64_t)sink->chunk_bytes, sink->size - at));
        if (memcmp(entry, &digest, ENTRY_BYTES) != 0) {
            memset(entry, 0, ENTRY_BYTES);
            wrong++;
        }
    }
    struct alb_digest digest = alb_digest_of(memory->address, sink->size);
    if (wrong == 0 && alb_digest_is_equal(&digest, expected)) {
        // Before the sender hears of it: whoever copies from here then gets it.
        files_memory_note_complete(memory, sink->size);
        return true;
    }
    snprintf(why, FILES_WHY_MAX, "%llu chunks are not what was agreed; copy it again", (unsigned long long)wrong);
    return false;
}

bool files_memory_has_room(const struct files_memory *memory, uint64_t bytes, char why[FILES_WHY_MAX])
{
    if (bytes > memory->bytes)
        snprintf(why, FILES_WHY_MAX, "the memory of that name has %llu bytes, which is less than the file",
                 (unsigned long long)memory->bytes);
    return bytes <= memory->bytes;
}

bool files_memory_open(struct files_memory_sink *own, struct files_memory *memory, struct ibv_pd *pd,
                       const struct files_message *offer, char why[FILES_WHY_MAX])
{
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    uint64_t table_bytes = (files_chunks(offer->size, offer->chunk_bytes) + 1) * ENTRY_BYTES;
    *own = (struct files_memory_sink){.memory = memory};
    own->sink = (struct files_sink){
        .size = offer->size, .chunk_bytes = offer->chunk_bytes, .place = place, .finish = finish, .close = close_sink};
    alb_assert(offer->size <= memory->bytes);
    if (!memory->table || memory->table_size != offer->size || memory->table_chunk_bytes != offer->chunk_bytes) {
        free(memory->table);
        memory->table = calloc(1, table_bytes);
        memory->table_size = offer->size;
        memory->table_chunk_bytes = offer->chunk_bytes;
    }
    own->mr = memory->table ? ibv_reg_mr(pd, memory->address, memory->bytes, access) : NULL;
    own->table_mr = own->mr ? ibv_reg_mr(pd, memory->table, table_bytes, access) : NULL;
    if (!own->table_mr) {
        snprintf(why, FILES_WHY_MAX, "the memory of that name cannot be registered: %s", strerror(errno));
        close_sink(&own->sink);
    }
    return own->table_mr != NULL;
}
