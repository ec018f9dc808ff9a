// SPDX-License-Identifier: BSD-2-Clause
#include "tools/free_memory.h"

#include <stdio.h>
#include <string.h>

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

uint64_t free_memory_bytes(void)
{
    double free = ALB_MIN(number_in("/proc/meminfo", "MemAvailable: ", unknown / 1024) * 1024, free_of_group(unknown));
    return (uint64_t)ALB_MAX(free, 1.0);
}
