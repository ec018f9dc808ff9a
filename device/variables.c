// SPDX-License-Identifier: BSD-2-Clause
// The environment variables that are Albedo's, by name: one that is misspelt would change nothing, and say nothing.
#include "base/log.h"
#include "device/device.h"

#include <string.h>

#define PREFIX "ALBEDO_"

static const char *const known[] = {"NET",    "DEVICES",     "FAULTS",    "SEED", "LOG",        "PCAP",
                                    "TRACE",  "STATS",       "PATHS",     "LOSS", "CONGESTION", "PATH",
                                    "CREDIT", "COMPLETIONS", "DIRECTORY", "CRASH"};

static bool is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < ALB_COUNT(known); i++)
        if (strlen(known[i]) == length && memcmp(known[i], name, length) == 0)
            return true;
    return false;
}

uint32_t alb_device_warn_of_variables(char *const *environment)
{
    uint32_t count = 0;
    for (; environment && *environment; environment++) {
        if (strncmp(*environment, PREFIX, strlen(PREFIX)) != 0)
            continue;
        const char *name = *environment + strlen(PREFIX);
        size_t length = strcspn(name, "=");
        if (is_known(name, length))
            continue;
        alb_log(ALB_LOG_WARNING, PREFIX "%.*s is none of Albedo's variables, which albedo(7) lists: ignored",
                (int)ALB_MIN(length, (size_t)64), name);
        count++;
    }
    return count;
}
