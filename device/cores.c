// SPDX-License-Identifier: BSD-2-Clause
// Counting runnable threads, from /proc/loadavg: one read of a few bytes.
#include "device/cores.h"

#include "device/descriptor.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_INTERVAL_NS ALB_NS_PER_MS

void alb_cores_init(struct alb_cores *cores)
{
    cpu_set_t set;
    *cores = (struct alb_cores){.loadavg_fd = alb_descriptor_aside(open("/proc/loadavg", O_RDONLY | O_CLOEXEC)),
                                .usable = 1};
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        cores->usable = (uint32_t)CPU_COUNT(&set);
}

void alb_cores_fini(struct alb_cores *cores)
{
    if (cores->loadavg_fd >= 0)
        close(cores->loadavg_fd);
    cores->loadavg_fd = -1;
}

uint32_t alb_cores_parse_runnable(const char *loadavg)
{
    const char *slash = strchr(loadavg, '/');
    if (!slash)
        return UINT32_MAX;
    const char *number = slash;
    while (number > loadavg && number[-1] >= '0' && number[-1] <= '9')
        number--;
    return number < slash ? (uint32_t)strtoul(number, NULL, 10) : UINT32_MAX;
}

static bool look(const struct alb_cores *cores)
{
    char text[128];
    ssize_t length = cores->loadavg_fd < 0 ? -1 : pread(cores->loadavg_fd, text, sizeof(text) - 1, 0);
    if (length <= 0)
        return false;
    text[length] = 0;
    return alb_cores_parse_runnable(text) <= cores->usable;
}

bool alb_cores_has_free(struct alb_cores *cores, alb_time now)
{
    if (cores->looked_at == 0 || now - cores->looked_at >= LOOK_INTERVAL_NS) {
        cores->looked_at = now;
        cores->is_one_free = look(cores);
    }
    return cores->is_one_free;
}
