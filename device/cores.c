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
#define LOOK_BUSY_NS     (4 * ALB_NS_PER_MS) // where none is soon: a look costs as much as a message
#define LOAD_BUSY        (2 * ALB_HOST_LOAD_ONE)

#define LOAD_INTERVAL_NS (10 * ALB_NS_PER_MS)
#define LOAD_SPAN_NS     (200 * ALB_NS_PER_MS)
#define LOAD_PRECISION   1024

void alb_cores_init(struct alb_cores *cores)
{
    cpu_set_t set;
    *cores = (struct alb_cores){.loadavg_fd = alb_descriptor_aside(open("/proc/loadavg", O_RDONLY | O_CLOEXEC)),
                                .usable = 1,
                                .load_sum = ALB_HOST_LOAD_ONE * LOAD_PRECISION};
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cores->online = (uint32_t)ALB_MAX(online, 1l);
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

// UINT32_MAX if it is not to be known.
static uint32_t count_runnable(const struct alb_cores *cores)
{
    char text[128];
    ssize_t length = cores->loadavg_fd < 0 ? -1 : pread(cores->loadavg_fd, text, sizeof(text) - 1, 0);
    if (length <= 0)
        return UINT32_MAX;
    text[length] = 0;
    return alb_cores_parse_runnable(text);
}

static void take_load(struct alb_cores *cores, uint32_t runnable, alb_time passed)
{
    if (runnable == UINT32_MAX)
        return;
    uint64_t load = ALB_MIN((uint64_t)runnable * ALB_HOST_LOAD_ONE / cores->online, (uint64_t)ALB_HOST_LOAD_MAX);
    load = ALB_MAX(load, (uint64_t)ALB_HOST_LOAD_ONE);
    uint64_t weight = ALB_MIN(passed, (alb_time)LOAD_SPAN_NS);
    cores->load_sum = (cores->load_sum * (LOAD_SPAN_NS - weight) + load * LOAD_PRECISION * weight) / LOAD_SPAN_NS;
}

static void look(struct alb_cores *cores, alb_time now)
{
    uint32_t runnable = count_runnable(cores);
    cores->is_one_free = runnable <= cores->usable;
    take_load(cores, runnable, now - cores->looked_at);
    cores->looked_at = now;
}

static bool is_older(const struct alb_cores *cores, alb_time now, alb_time span)
{
    return cores->looked_at == 0 || now - ALB_MIN(cores->looked_at, now) >= span;
}

static uint32_t load_of(const struct alb_cores *cores)
{
    return (uint32_t)(cores->load_sum / LOAD_PRECISION);
}

bool alb_cores_has_free(struct alb_cores *cores, alb_time now)
{
    if (is_older(cores, now, load_of(cores) < LOAD_BUSY ? LOOK_INTERVAL_NS : LOOK_BUSY_NS))
        look(cores, now);
    return cores->is_one_free;
}

uint32_t alb_cores_load(struct alb_cores *cores, alb_time now)
{
    if (is_older(cores, now, LOAD_INTERVAL_NS))
        look(cores, now);
    return load_of(cores);
}

bool alb_cores_have_room(const struct alb_cores *cores)
{
    uint64_t runnable_twice = 2 * cores->load_sum * cores->online;
    return cores->loadavg_fd >= 0 && runnable_twice < (2ull * cores->usable + 3) * ALB_HOST_LOAD_ONE * LOAD_PRECISION;
}
