// SPDX-License-Identifier: BSD-2-Clause
#include "sim/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ALIGNMENT = 64, // what engine/engine.h asks for
    HUGE_BYTES = 2 << 20,
};

// Stands before a block, in as much room.
struct head {
    size_t bytes;
    void *whole; // NULL: of huge pages, and given back with them
};

static void *get(void *context, size_t bytes)
{
    struct alb_sim_memory *memory = context;
    memory->data_path_calls += memory->is_data_path;
    if (memory->fail_after == 0)
        return NULL;
    if (memory->fail_after != UINT64_MAX)
        memory->fail_after--;
    // Zeroed pages of the system are not touched before they are used.
    uint8_t *block = memory->huge ? alb_sim_huge_get(memory->huge, bytes + ALIGNMENT) : NULL, *whole = NULL;
    if (!block) {
        whole = calloc(1, bytes + 2 * ALIGNMENT);
        if (!whole)
            return NULL;
        block = whole + ALIGNMENT - (uintptr_t)whole % ALIGNMENT;
    }
    struct head head = {bytes, whole};
    memcpy(block, &head, sizeof(head));
    memory->blocks++;
    memory->bytes += bytes;
    memory->bytes_peak = ALB_MAX(memory->bytes_peak, memory->bytes);
    return block + ALIGNMENT;
}

static void put(void *context, void *given, size_t bytes)
{
    struct alb_sim_memory *memory = context;
    uint8_t *block = (uint8_t *)given - ALIGNMENT;
    struct head head;
    memcpy(&head, block, sizeof(head));
    alb_assert(head.bytes == bytes);
    memory->data_path_calls += memory->is_data_path;
    alb_assert(memory->blocks > 0 && memory->bytes >= bytes);
    memory->blocks--;
    memory->bytes -= bytes;
    free(head.whole);
}

void *alb_sim_big(size_t bytes)
{
    bool is_big = bytes >= HUGE_BYTES;
    size_t alignment = is_big ? HUGE_BYTES : ALIGNMENT; // whose multiple the size must be
    void *memory = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    alb_assert(memory);
    if (is_big)
        madvise(memory, bytes / HUGE_BYTES * HUGE_BYTES, MADV_HUGEPAGE); // without, it is only slower
    return memory;
}

void alb_sim_memory_init(struct alb_sim_memory *memory)
{
    *memory = (struct alb_sim_memory){.fail_after = UINT64_MAX};
}

struct alb_memory alb_sim_memory_interface(struct alb_sim_memory *memory)
{
    return (struct alb_memory){.get = get, .put = put, .context = memory};
}
