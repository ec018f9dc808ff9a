// SPDX-License-Identifier: BSD-2-Clause
// Whether a cluster fits into memory, judged while it is made: the system would let the process take more than
// there is, and kill it, or another one, when that is used.
#include "tools/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
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

// The number behind a name at the beginning of a line, or alone in the file if the name is empty.
static double number_in(const char *path, const char *name, double otherwise)
{
    char line[200];
    unsigned long long number;
    size_t length = strlen(name);
    double found = otherwise;
    FILE *file = fopen(path, "r");
    if (!file)
        return otherwise;
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, name, length) == 0 && sscanf(line + length, "%llu", &number) == 1)
            found = (double)number;
    fclose(file);
    return found;
}

// Of a container with a limit; pages of files give way.
static double free_of_group(double unknown)
{
    double limit = number_in("/sys/fs/cgroup/memory.max", "", unknown);
    double used = number_in("/sys/fs/cgroup/memory.current", "", 0);
    double files = number_in("/sys/fs/cgroup/memory.stat", "inactive_file ", 0) +
                   number_in("/sys/fs/cgroup/memory.stat", "active_file ", 0);
    return limit == unknown ? unknown : limit - used + files;
}

static const double unknown = 1e18;

uint64_t sim_free_bytes(void)
{
    double free = ALB_MIN(number_in("/proc/meminfo", "MemAvailable: ", unknown / 1024) * 1024, free_of_group(unknown));
    return (uint64_t)ALB_MAX(free, 1.0);
}

bool sim_has_room(const char *what, uint32_t made, uint32_t all, char *why, size_t size)
{
    static double used_before;
    static uint32_t made_before;
    const double gib = 1 << 30;
    double used = used_bytes(), each = made ? (used - used_before) / (made - made_before) : 0;
    double free = (double)sim_free_bytes();
    used_before = used;
    made_before = made;
    if (made < MADE_MIN || each * (all - made) <= free)
        return true;
    snprintf(why, size, "%" PRIu32 " %s take %.1f GiB of memory or more, and there are %.1f", all, what,
             each * all / gib, ALB_MAX(free, 0.0) / gib + each * made / gib);
    return false;
}
