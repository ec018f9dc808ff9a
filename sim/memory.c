// SPDX-License-Identifier: BSD-2-Clause
#include "sim/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    ALIGNMENT = 64, // what engine/engine.h asks for; the block's size stands before it, in as much room
};

static void *get(void *context, size_t bytes)
{
    struct alb_sim_memory *memory = context;
    memory->data_path_calls += memory->is_data_path;
    if (memory->fail_after == 0)
        return NULL;
    if (memory->fail_after != UINT64_MAX)
        memory->fail_after--;
    size_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT;
    uint8_t *block = aligned_alloc(ALIGNMENT, room);
    alb_assert(block);
    memset(block, 0, room);
    memcpy(block, &bytes, sizeof(bytes));
    memory->blocks++;
    memory->bytes += bytes;
    memory->bytes_peak = ALB_MAX(memory->bytes_peak, memory->bytes);
    return block + ALIGNMENT;
}

static void put(void *context, void *given, size_t bytes)
{
    struct alb_sim_memory *memory = context;
    uint8_t *block = (uint8_t *)given - ALIGNMENT;
    size_t had;
    memcpy(&had, block, sizeof(had));
    alb_assert(had == bytes);
    memory->data_path_calls += memory->is_data_path;
    alb_assert(memory->blocks > 0 && memory->bytes >= bytes);
    memory->blocks--;
    memory->bytes -= bytes;
    free(block);
}

void alb_sim_memory_init(struct alb_sim_memory *memory)
{
    *memory = (struct alb_sim_memory){.fail_after = UINT64_MAX};
}

struct alb_memory alb_sim_memory_interface(struct alb_sim_memory *memory)
{
    return (struct alb_memory){.get = get, .put = put, .context = memory};
}
