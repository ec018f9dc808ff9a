// SPDX-License-Identifier: BSD-2-Clause
// Whether a cluster fits into memory, judged while it is made: the system would let the process take more than
// there is, and kill it, or another one, when that is used.
#include "tools/sim.h"

#include "tools/free_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    MADE_MIN = 512, // hosts: the first have tables of the whole cluster beside them
};

static double used_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%*u %llu", &pages) != 1)
        pages = 0;
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

bool sim_has_room(const char *what, uint32_t made, uint32_t all, char *why, size_t size)
{
    static double used_before;
    static uint32_t made_before;
    const double gib = 1 << 30;
    double used = used_bytes(), each = made ? (used - used_before) / (made - made_before) : 0;
    double free = (double)free_memory_bytes();
    used_before = used;
    made_before = made;
    if (made < MADE_MIN || each * (all - made) <= free)
        return true;
    snprintf(why, size, "%" PRIu32 " %s take %.1f GiB of memory or more, and there are %.1f", all, what,
             each * all / gib, ALB_MAX(free, 0.0) / gib + each * made / gib);
    return false;
}
