// SPDX-License-Identifier: BSD-2-Clause
// struct alb_memory on malloc and mmap.
#include "device/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT       64
#define MMAP_FROM_BYTES (64u << 10)

static void *get(void *context, size_t bytes)
{
    if (bytes >= MMAP_FROM_BYTES) {
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return memory == MAP_FAILED ? NULL : memory;
    }
    void *memory = NULL;
    if (posix_memalign(&memory, ALIGNMENT, bytes ? bytes : 1) != 0)
        return NULL;
    return memset(memory, 0, bytes);
}

static void put(void *context, void *memory, size_t bytes)
{
    if (bytes >= MMAP_FROM_BYTES)
        munmap(memory, bytes);
    else
        free(memory);
}

struct alb_memory alb_device_memory(void)
{
    return (struct alb_memory){.get = get, .put = put};
}
