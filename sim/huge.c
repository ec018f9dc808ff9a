// SPDX-License-Identifier: BSD-2-Clause
#include "sim/huge.h"

#include "base/types.h"

#include <sys/mman.h>

enum {
    LINE_BYTES = 64,
    HUGE_BYTES = 2 << 20,
    MAPPED_BYTES = ALB_SIM_HUGE_CHUNK_BYTES + HUGE_BYTES, // so that a chunk begins where a huge page does
};

static bool add_chunk(struct alb_sim_huge *huge)
{
    if (huge->chunk_count == ALB_SIM_HUGE_CHUNKS)
        return false;
    uint8_t *whole = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED)
        return false;
    huge->chunks[huge->chunk_count++] = whole;
    huge->next = whole + HUGE_BYTES - (uintptr_t)whole % HUGE_BYTES;
    huge->end = huge->next + ALB_SIM_HUGE_CHUNK_BYTES;
    madvise(huge->next, ALB_SIM_HUGE_CHUNK_BYTES, MADV_HUGEPAGE); // without, it is only slower
    return true;
}

void *alb_sim_huge_get(struct alb_sim_huge *huge, size_t bytes)
{
    size_t room = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    if (room > ALB_SIM_HUGE_CHUNK_BYTES || ((size_t)(huge->end - huge->next) < room && !add_chunk(huge)))
        return NULL;
    void *block = huge->next;
    huge->next += room;
    return block;
}

void alb_sim_huge_fini(struct alb_sim_huge *huge)
{
    for (uint32_t i = 0; i < huge->chunk_count; i++)
        munmap(huge->chunks[i], MAPPED_BYTES);
    *huge = (struct alb_sim_huge){0};
}
